"""Tests of `kill -9` and resuming; more moments: `python tests/benchmarks/kill.py --times 20`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .benchmarks.kill import ROWS, Kill, broken_promises, moments
from .benchmarks.measure import ServerProcess, write_dataset

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("sys.platform != 'linux'", reason="looks at processes in /proc"),
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("kill") / "kill.csv", ROWS)


@pytest.fixture
def server(dataset: Path) -> Iterator[ServerProcess]:
    with ServerProcess(dataset, max_seconds=110) as running:
        yield running


@pytest.mark.parametrize("kill", moments(1, "controller", 2), ids=lambda kill: f"after_{kill.after}")
def test_a_killed_run_is_resumed_to_the_same_report(
    kill: Kill, server: ServerProcess, dataset: Path, tmp_path: Path
) -> None:
    """After a kill the resumed run reports what an unbroken one does, and asks for nothing that was on disk."""
    assert list(broken_promises(kill, server, dataset, tmp_path)) == []


@pytest.mark.parametrize("kill", moments(1, "controller", 2, "-n2"), ids=lambda kill: f"after_{kill.after}")
def test_workers_do_not_outlive_a_killed_controller(
    kill: Kill, server: ServerProcess, dataset: Path, tmp_path: Path
) -> None:
    """Under xdist likewise, and workers that have lost their controller end."""
    assert list(broken_promises(kill, server, dataset, tmp_path)) == []


@pytest.mark.parametrize("kill", moments(1, "worker", 2, "-n2"), ids=lambda kill: f"after_{kill.after}")
def test_a_killed_worker_costs_no_more_than_what_it_had_in_flight(
    kill: Kill, server: ServerProcess, dataset: Path, tmp_path: Path
) -> None:
    """After a worker's death nothing that it had written is asked for again, in this session or when it is resumed."""
    assert list(broken_promises(kill, server, dataset, tmp_path)) == []
