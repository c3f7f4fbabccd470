"""Fixtures for the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the public data files; a test that needs it is skipped without it."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("SIMPLEQA_SHARED_DATA", default))
    if not (path / "simple_qa_test_set.csv").is_file():
        pytest.skip("the public data files are not here (set SIMPLEQA_SHARED_DATA)")
    return path


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """End a hanging test, where pytest-timeout is installed."""
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(120))
