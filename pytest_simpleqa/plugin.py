"""The pytest plugin: registers, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import optiontable

if TYPE_CHECKING:  # loaded in every pytest run
    from .fixtures import SimpleQA


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
    config.addinivalue_line(
        "markers",
        "simpleqa_dataset(source, limit, topics, ask_ahead=False): the rows of a test that takes the simpleqa fixture",
    )
    if optiontable.is_asked_for(config):
        from .roles import register

        register(config)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "simpleqa" in metafunc.fixturenames:
        from .fixtures import parametrize

        parametrize(metafunc)


@pytest.fixture
def simpleqa(request: pytest.FixtureRequest) -> SimpleQA:
    """A question of a dataset, with the answer model and the judge of the command line; one item for each row."""
    from .fixtures import handle_of

    return handle_of(request)
