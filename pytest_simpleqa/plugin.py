"""The pytest plugin: registers, nothing else."""

from __future__ import annotations

import pytest

from . import optiontable


def pytest_addoption(parser: pytest.Parser) -> None:
    optiontable.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from . import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    optiontable.refuse_loop(config)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "simpleqa(topic, answer_type): label of a question's item; for -m")
    if optiontable.is_asked_for(config):
        from .roles import register

        register(config)
