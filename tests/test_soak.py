"""Tests of a run against a service that fails in every way; the whole dataset: `python tests/benchmarks/soak.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .benchmarks.measure import ServerProcess, write_dataset
from .benchmarks.server import read_golds
from .benchmarks.soak import broken_promises, soak

ROWS = 200


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "soak.csv", ROWS)


@pytest.fixture
def server(dataset: Path) -> Iterator[ServerProcess]:
    with ServerProcess(dataset, max_seconds=110) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
def test_no_fault_loses_or_invents_a_row(
    server: ServerProcess, dataset: Path, tmp_path: Path, mode: tuple[str, ...]
) -> None:
    """Whatever fails, every row is in the Report, no verdict is invented, nothing is paid twice, and the run ends."""
    run = soak(server, dataset, tmp_path, *mode, limit_s=90)
    assert list(broken_promises(run, server.stats(), list(read_golds(dataset)))) == []
