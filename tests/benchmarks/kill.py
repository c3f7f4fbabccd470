"""Sessions killed at random moments and resumed: `python tests/benchmarks/kill.py [--times K] [--seed S]`.

After `kill -9` of the controller, or of a worker, the resumed run must report what an unbroken one reports, and the
server must not have been asked again for anything whose reply was on disk when the process died.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.measure import (
    ServerProcess,
    arguments,
    descendants,
    living,
    read_report,
    run_dir_of,
    start,
    write_dataset,
)
from tests.benchmarks.server import Settings

ROWS = 120
CONCURRENCY = 8
LATENCY = Settings(answer_s=0.06, judge_s=0.03, sigma=0.5)
NOTICE_S = 2.0
"""How long a worker may live on without its controller: it looks four times a second, and the machine may be busy."""

Asked = Counter[tuple[str, str]]
"""Requests by role and question."""


@dataclass(frozen=True)
class Kill:
    """What to kill, and when: after so many requests."""

    target: str
    """`controller` or `worker`; bare the only process is the controller."""
    after: int
    args: tuple[str, ...] = ()


def moments(seed: int, target: str, times: int, *args: str) -> list[Kill]:
    """Return `times` random moments, from the first request to the last quarter."""
    drawn = random.Random(f"{seed} {target} {args}")
    return [Kill(target, drawn.randrange(1, ROWS * 3 // 2), args) for _ in range(times)]


def broken_promises(kill: Kill, server: ServerProcess, dataset: Path, folder: Path) -> Iterator[str]:
    """Kill and resume in the empty `folder`; yield what did not hold."""
    server.set(LATENCY)
    command = arguments(dataset, f"--simpleqa-concurrency={CONCURRENCY}", "--simpleqa-max-samples=-1", *kill.args)
    with (folder / "first.txt").open("wb") as output:
        process = start(command, folder, server.environment, output)
        try:
            victim = _wait_and_kill(kill, process, server)
            process.wait(timeout=60)
            yield from _left_behind(process.pid)
        finally:
            _end(process)
    run_dir = run_dir_of(folder)
    assert run_dir is not None
    kept = written(run_dir)
    before = asked(server)
    if victim is None:
        yield "the session was over before it could be killed"
    elif kill.target == "worker":
        yield from _asked_twice(before, folder, run_dir, most_in_flight=CONCURRENCY)
    with (folder / "second.txt").open("wb") as output:
        process = start([*command, "--simpleqa-resume=latest"], folder, server.environment, output)
        try:
            status = process.wait(timeout=90)
        finally:
            _end(process)
    if status != 1:  # some questions are answered incorrectly
        yield f"the resumed session ended with status {status}: {(folder / 'second.txt').read_text()[-1500:]}"
    after = asked(server)
    again = [key for key in kept if after[key] != before[key]]
    if again:
        yield f"asked again although the reply was on disk: {len(again)} of {len(kept)}, such as {again[0]}"
    yield from _differences(read_report(run_dir), dataset)


def asked(server: ServerProcess) -> Asked:
    """Return how often each question was put to each role."""
    return Counter((entry["role"], entry["question"]) for entry in server.log())


def written(run_dir: Path, name: str = "results*.jsonl") -> set[tuple[str, str]]:
    """Return the replies that stand in a run directory's files, by role and question's id; torn lines are none."""
    kept = set()
    for path in run_dir.glob(name):
        for line in path.read_bytes().split(b"\n"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if found["kind"] in ("answer", "verdict"):
                kept.add(("answer" if found["kind"] == "answer" else "judge", _question(found["id"])))
    return kept


def _question(row_id: str) -> str:
    """Return the text of a made-up question by its id."""
    number = int(row_id.removeprefix("q"))
    return f"On what day, month and year did the person of number {number} receive the prize of that name?"


def _wait_and_kill(kill: Kill, process: subprocess.Popen[bytes], server: ServerProcess) -> int | None:
    """Kill at the moment; return whom, or None where the session was over before."""
    deadline = time.monotonic() + 60
    while sum(server.stats()["calls"].values()) < kill.after:
        if process.poll() is not None or time.monotonic() > deadline:
            return None
        time.sleep(0.005)
    workers = [pid for pid in descendants(process.pid) if os.getpgid(pid) == process.pid]
    is_worker = kill.target == "worker"
    victim = random.Random(kill.after).choice(sorted(workers)) if is_worker else process.pid
    os.kill(victim, signal.SIGKILL)
    return victim


def _left_behind(group: int) -> Iterator[str]:
    """Yield the processes that live on after their session."""
    deadline = time.monotonic() + NOTICE_S
    while living(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    if left := living(group):
        yield f"{len(left)} processes live on {NOTICE_S:g} s after their session"


def _end(process: subprocess.Popen[bytes]) -> None:
    if living(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _asked_twice(counts: Asked, folder: Path, run_dir: Path, most_in_flight: int) -> Iterator[str]:
    """Yield what a session that lost a worker has paid for twice: no more than was in flight in that worker."""
    twice = [key for key, count in counts.items() if count > 1]
    if len(twice) > most_in_flight:
        yield f"{len(twice)} replies were asked for twice after a worker's death; {most_in_flight} were in flight"
    dead = (run_dir / "dead").read_text().split() if (run_dir / "dead").exists() else []
    kept = {key for name in dead for key in written(run_dir, name)}
    if again := [key for key in twice if key in kept]:
        yield f"{len(again)} replies of the dead worker were asked for again, such as {again[0]}"
    report = read_report(run_dir)
    if report is None:
        yield f"no Report after a worker's death: {(folder / 'first.txt').read_text()[-1500:]}"
    elif report["n"] != ROWS:
        yield f"{report['n']} of {ROWS} rows in the Report after a worker's death"


def _differences(report: Mapping[str, Any] | None, dataset: Path) -> Iterator[str]:
    """Yield where a resumed run's Report is not that of an unbroken one."""
    if report is None:
        yield "no Report after resuming"
        return
    found = comparable(report)
    for name, value in unbroken(dataset).items():
        if found[name] != value:
            yield f"{name} of the resumed run: {str(found[name])[:200]}; of an unbroken one: {str(value)[:200]}"
    if report["resumed"] != 1:
        yield f"resumed is {report['resumed']} after one resumption"


_TIMED = ("started_at", "duration_ms", "usage", "samples", "resumed", "provenance")
"""What differs from run to run."""
_unbroken: dict[Path, dict[str, Any]] = {}


def unbroken(dataset: Path) -> dict[str, Any]:
    """Return the Report of a run that nothing has disturbed, without what differs from run to run."""
    if dataset not in _unbroken:
        with ServerProcess(dataset) as server, tempfile.TemporaryDirectory() as name:
            server.set(Settings(answer_s=0.0, judge_s=0.0))
            asked = (f"--simpleqa-concurrency={CONCURRENCY}", "--simpleqa-max-samples=-1")
            with (Path(name) / "output.txt").open("wb") as output:
                process = start(arguments(dataset, *asked), Path(name), server.environment, output)
                process.wait(timeout=60)
            report = read_report(run_dir_of(Path(name)))
        assert report is not None
        _unbroken[dataset] = comparable(report)
    return _unbroken[dataset]


def comparable(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Report without times, with its samples without theirs."""
    kept = {name: value for name, value in report.items() if name not in _TIMED}
    rows = [{name: value for name, value in row.items() if name != "latency_s"} for row in report["samples"]]
    return {**kept, "samples": rows}


def all_kills(seed: int, times: int) -> Sequence[Kill]:
    """Return the moments of a whole trial: the controller bare, the controller with workers, a worker."""
    return [
        *moments(seed, "controller", times),
        *moments(seed, "controller", times, "-n2"),
        *moments(seed, "worker", times, "-n2"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=20, help="kills of each kind")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    broken = 0
    with tempfile.TemporaryDirectory() as name:
        dataset = write_dataset(Path(name) / "kill.csv", ROWS)
        with ServerProcess(dataset, max_seconds=3600) as server:
            for number, kill in enumerate(all_kills(given.seed, given.times)):
                folder = Path(name) / str(number)
                folder.mkdir()
                found = list(broken_promises(kill, server, dataset, folder))
                broken += len(found)
                print(kill, *(found or ["every promise held"]), sep="\n    ", flush=True)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
