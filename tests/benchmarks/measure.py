"""Starts the server, runs one pytest session against it, and says what the session took."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.benchmarks.server import Settings

_SERVER = Path(__file__).with_name("server.py")
_BECOME_SUBREAPER = 36  # prctl(2): orphans of a session become our children, so that their time is counted


class ServerProcess:
    """The server in a process of its own; a context manager."""

    def __init__(self, dataset: Path, max_seconds: float = 600.0) -> None:
        self._command = [sys.executable, str(_SERVER), str(dataset), f"--max-seconds={max_seconds}"]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=10)  # closes its standard input, which ends it

    @property
    def environment(self) -> dict[str, str]:
        """The variable that makes `bench:<model>` lead here."""
        return {"SIMPLEQA_BENCH": json.dumps({"base_url": f"{self.address}/v1", "api_key": "sk-bench-0123456789"})}

    def set(self, settings: Settings) -> None:
        """Set latency and faults, and forget all counts."""
        self._ask("/settings", asdict(settings))

    def stats(self) -> dict[str, Any]:
        """Return the counts since the last `set`."""
        stats: dict[str, Any] = self._ask("/stats")
        return stats

    def log(self) -> list[dict[str, Any]]:
        """Return the requests since the last `set`, in order."""
        log: list[dict[str, Any]] = self._ask("/log")
        return log

    def _ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.address + path, data=data, timeout=30) as reply:
            return json.loads(reply.read())


@dataclass(frozen=True)
class Measured:
    """What one session took."""

    status: int
    output: str
    started_at: float
    """Unix time."""
    wall_s: float
    """From the start of the process to its end."""
    cpu_s: float
    """Of the whole process tree."""
    main_mb: float
    """Peak memory (resident) of the first process: the controller under xdist."""
    child_mb: float
    """Peak memory of the largest process below it: a worker; 0 without."""
    report: dict[str, Any] | None
    run_dir: Path | None


def arguments(dataset: Path, *more: str) -> list[str]:
    """Return the command of a session over `dataset`, answered and judged by the server."""
    asked = (f"--simpleqa-dataset={dataset}", "--answer-llm=bench:model", "--judge-llm=bench:judge")
    return [sys.executable, "-m", "pytest", "-q", *asked, *more]


def start(command: Sequence[str], folder: Path, environment: Mapping[str, str], output: Any) -> subprocess.Popen[bytes]:
    """Start a session in a process group of its own, untouched by the variables of a pytest around us."""
    foreign = ("PYTEST_", "SIMPLEQA_", "COV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**kept, "COLUMNS": "100", **environment},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def measured(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit_s: float) -> Measured:
    """Run `command` in the empty `folder` for at most `limit_s` seconds; the Report is that of its only run."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (folder / "output.txt").open("wb") as output:
        started_at, began = time.time(), time.monotonic()
        process = start(command, folder, environment, output)
        guard = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
        guard.start()
        with _MemoryWatch(process.pid) as memory:
            status = process.wait()
            wall_s = time.monotonic() - began
        guard.cancel()
        _reap_orphans(process.pid)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_dir = run_dir_of(folder)
    return Measured(
        status=status,
        output=(folder / "output.txt").read_text(encoding="utf-8", errors="replace"),
        started_at=started_at,
        wall_s=wall_s,
        cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        main_mb=memory.main_mb,
        child_mb=memory.child_mb,
        report=read_report(run_dir),
        run_dir=run_dir,
    )


def run_dir_of(folder: Path) -> Path | None:
    """Return the directory of the only run in `folder`; None where there is none."""
    return next((path.parent for path in folder.glob(".simpleqa/*/run.json")), None)


def read_report(run_dir: Path | None) -> dict[str, Any] | None:
    """Return the Report in `run_dir`; None where there is none."""
    if run_dir is None or not (run_dir / "report.json").exists():
        return None
    report: dict[str, Any] = json.loads((run_dir / "report.json").read_text(encoding="utf-8"))
    return report


class _MemoryWatch:
    """Looks at the peak memory of a process and its descendants a few times a second (Linux)."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.main_mb = self.child_mb = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.main_mb = max(self.main_mb, _peak_mb(self._pid))
            for pid in descendants(self._pid):
                self.child_mb = max(self.child_mb, _peak_mb(pid))


def _peak_mb(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def descendants(pid: int) -> list[int]:
    """Return the living processes below `pid` (Linux)."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                found += [child, *descendants(child)]
    return found


def living(group: int) -> list[int]:
    """Return the living processes of a process group (Linux); zombies are not alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = path.read_text().rpartition(")")[2].split()[:3]
            if its_group == str(group) and state != "Z":
                found.append(int(path.parent.name))
    return found


def _reap_orphans(group: int, patience_s: float = 5.0) -> None:
    """Collect what a session has left behind in its group, so that its time is counted."""
    deadline = time.monotonic() + patience_s
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-group, os.WNOHANG) == (0, 0):
                time.sleep(0.05)


def write_dataset(path: Path, rows: int) -> Path:
    """Write a dataset of the shape of SimpleQA."""
    topics, kinds = ("Art", "Geography", "Music", "Sports", "TV shows"), ("Date", "Number", "Person", "Place")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metadata", "problem", "answer"])
        for number in range(1, rows + 1):
            metadata = {
                "topic": topics[number % 5],
                "answer_type": kinds[number % 4],
                "urls": [f"https://example.org/{number}/{place}" for place in range(4)],
            }
            problem = f"On what day, month and year did the person of number {number} receive the prize of that name?"
            writer.writerow([str(metadata), problem, f"number {number}"])
    return path
