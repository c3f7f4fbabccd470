"""How fast, how lean: `python tests/benchmarks/bench.py [--rows N] [--quick] [--repeat K] [--only WORD]`.

Runs real pytest sessions against the project's own server (200 ms an answer, 100 ms a verdict) and prints, beside each
target, wall over floor, CPU, memory, and what the server saw. Floor = the server's work / pairs in flight; wall is from
the start of the process to its exit. With several runs (`--repeat`) the figures are medians. The official CSV is taken
where it is found (`SIMPLEQA_SHARED_DATA`, `../shared/data`), else questions of the same shape are made up.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.measure import Measured, ServerProcess, arguments, measured, write_dataset
from tests.benchmarks.server import Settings, truth

OFFICIAL_ROWS = 4326
QUICK_FLOOR_S = 5.0
PAIR_S = 0.3
"""Mean latency of an answer and its verdict."""


@dataclass(frozen=True)
class Case:
    """One way to run the questions, and what is wanted of it."""

    name: str
    in_flight: int
    args: tuple[str, ...] = ()
    sigma: float = 0.0
    wanted: dict[str, float] = field(default_factory=dict)
    """The most that a figure may be, by its name in `Figures`."""
    rows: int | None = None

    def rows_of(self, rows: int, quick: bool) -> int:
        """Return how many questions to put; quickly: no more than a few seconds of them."""
        most = self.rows or rows
        return min(most, rows, round(QUICK_FLOOR_S * self.in_flight / PAIR_S) if quick else most)


BARE = {"peak_mb": 130.0, "first_s": 1.5}
TWO = {"first_s": 2.5}
CASES = (
    Case("bare, 8", 8, wanted=BARE),
    Case("-n 2, 8", 8, ("-n2",), wanted=TWO),
    Case("bare, 64", 64, wanted={"ratio": 1.10, **BARE}),
    Case("-n 2, 64", 64, ("-n2",), wanted={"ratio": 1.15, **TWO}),
    Case("bare, 256", 256, wanted={"ratio": 1.45, "cpu_ms": 1.6, **BARE}),
    Case("-n 2, 256", 256, ("-n2",), wanted={"ratio": 1.60, **TWO}),
    Case("-n 8, default", 32, ("-n8",), wanted={"ratio": 1.15}),
    Case("lognormal bare, 64", 64, sigma=0.8, wanted={"ratio": 1.15, **BARE}),
    Case("lognormal -n 2, 64", 64, ("-n2",), sigma=0.8, wanted={"ratio": 1.25, **TWO}),
    Case("bare, 1", 1, rows=20),
)


@dataclass(frozen=True)
class Figures:
    """What came of a case."""

    wall_s: float
    ratio: float
    """Wall / floor."""
    cpu_ms: float
    """Per question, whole process tree."""
    peak_mb: float
    """The largest process."""
    first_s: float
    """From the start of the process to the first request."""
    in_flight: float
    """The most requests that the server had at once."""
    duplicates: float

    @classmethod
    def median(cls, all_: Sequence[Figures]) -> Figures:
        """Return the median of each figure."""
        return cls(**{name: median(getattr(each, name) for each in all_) for name in cls.__dataclass_fields__})


def official() -> Path | None:
    """Return the official CSV, where it is on this machine."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    path = Path(os.environ.get("SIMPLEQA_SHARED_DATA", default)) / "simple_qa_test_set.csv"
    return path if path.is_file() else None


def run_case(case: Case, dataset: Path, server: ServerProcess, rows: int) -> tuple[Figures, list[str]]:
    """Run a case once; return its figures, and what was wrong with the run itself."""
    server.set(Settings(sigma=case.sigma))
    concurrency = () if case.name.endswith("default") else (f"--simpleqa-concurrency={case.in_flight}",)
    limit = () if rows >= OFFICIAL_ROWS else (f"--simpleqa-limit={rows}",)
    floor_s = rows * PAIR_S / case.in_flight
    with tempfile.TemporaryDirectory() as folder:
        command = arguments(dataset, *concurrency, *limit, *case.args)
        run = measured(command, Path(folder), server.environment, limit_s=30 + 6 * floor_s)
    stats = server.stats()
    figures = Figures(
        wall_s=run.wall_s,
        ratio=run.wall_s / (stats["work_s"] / case.in_flight or 1.0),
        cpu_ms=1000 * run.cpu_s / rows,
        peak_mb=max(run.main_mb, run.child_mb),
        first_s=(stats["first_at"] or run.started_at) - run.started_at,
        in_flight=stats["max_in_flight"],
        duplicates=stats["duplicates"],
    )
    return figures, [*_faults(run, rows), *(_order_faults(server) if case.in_flight == 1 else ())]


def _faults(run: Measured, rows: int) -> Iterator[str]:
    """Yield what is wrong with a run whose figures would otherwise look fine."""
    report = run.report
    if report is None:
        yield f"no Report, exit status {run.status}: {run.output[-500:]}"
        return
    if not report["complete"] or report["n"] != rows:
        yield f"{report['n']} of {rows} rows in the Report"
    if report["errors"] or report["judge_failures"]:
        yield f"{report['errors']} errors, {report['judge_failures']} judge failures"
    wrong = [sample["id"] for sample in report["samples"] if sample["verdict"] != truth(sample["question"])]
    if wrong:
        yield f"another verdict than the server's: {', '.join(wrong[:5])}"


def _order_faults(server: ServerProcess) -> Iterator[str]:
    """Yield where pairs were not asked strictly one after the other."""
    log = server.log()
    if [entry["role"] for entry in log] != ["answer", "judge"] * (len(log) // 2):
        yield "answers and verdicts do not take turns"
    if any(later["started"] < (entry["ended"] or 0) for entry, later in pairwise(log)):
        yield "a request began before the one before it had ended"
    if any(answer["question"] != judge["question"] for answer, judge in zip(log[::2], log[1::2], strict=False)):
        yield "a verdict belongs to another question than the answer before it"


def table_row(case: Case, figures: Figures, faults: Sequence[str], loose: bool) -> str:
    """Return a line of the table; `loose`: too few rows for the targets of time to mean anything."""

    def cell(name: str, text: str, width: int) -> str:
        most = case.wanted.get(name)
        if most is None or (loose and name in ("ratio", "cpu_ms")):
            return f"{text:>{width}}" + " " * 13
        mark = "ok" if getattr(figures, name) <= most else "MISS"
        return f"{text:>{width}}" + f" <={most:g} {mark}".ljust(13)

    is_exact = figures.in_flight <= case.in_flight and not figures.duplicates and not faults
    return " ".join(
        [
            f"{case.name:<20}{figures.wall_s:>7.1f}",
            cell("ratio", f"{figures.ratio:.3f}", 6),
            cell("cpu_ms", f"{figures.cpu_ms:.2f}", 6),
            cell("peak_mb", f"{figures.peak_mb:.0f}", 4),
            cell("first_s", f"{figures.first_s:.2f}", 5),
            f"{figures.in_flight:>4.0f} {figures.duplicates:>3.0f} {'ok' if is_exact else 'MISS'}",
        ]
    )


HEADER = (
    f"{'case, in flight':<20}{'wall s':>7} {'w/floor':>7}{'':<12} {'CPU ms':>6}{'':<13} {'MB':>4}{'':<13} "
    f"{'first':>5}{'':<13} {'most':>4} {'dup':>3}"
)


AT_ONCE = """
async def answer(prompt):
    return "number 1, which is right for one row and wrong for the others"


async def judge(prompt):
    return "AB"[len(prompt) % 2]
"""
"""A model and a judge that take no time."""


def memory_lines(rows: int) -> Iterator[str]:
    """Yield what `rows` rows take in the controller and in a worker, answered by callables that take no time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dataset = write_dataset(folder / "many.csv", rows)
        for args, targets in (((), (400.0, 0.0)), (("-n2",), (400.0, 300.0))):
            place = folder / f"run{len(args)}"
            place.mkdir()
            (place / "at_once.py").write_text(AT_ONCE)
            models = ("--answer-llm=python:at_once:answer", "--judge-llm=python:at_once:judge")
            run = measured(arguments(dataset, *models, *args), place, {}, limit_s=60 + rows / 100)
            whole = run.report is not None and run.report["n"] == rows
            parts = [
                f"{who} {found:.0f} MB <={most:g} {'ok' if found <= most and whole else 'MISS'}"
                for who, found, most in zip(("main", "worker"), (run.main_mb, run.child_mb), targets, strict=True)
                if most
            ]
            cpu = f"CPU {1000 * run.cpu_s / rows:.2f} ms a row"
            yield f"{rows:,} rows, {' '.join(args) or 'bare'}: {'; '.join(parts)}; {run.wall_s:.1f} s; {cpu}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=OFFICIAL_ROWS)
    parser.add_argument("--quick", action="store_true", help="a few seconds a case: ratios then mean little")
    parser.add_argument("--repeat", type=int, default=1, help="runs a case, of which the median counts")
    parser.add_argument("--only", default="", help="only cases whose name holds this ('memory' for that of many rows)")
    parser.add_argument("--memory-rows", type=int, default=50_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dataset = official() or write_dataset(Path(folder) / "synthetic.csv", OFFICIAL_ROWS)
        print(f"{dataset.name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", HEADER, sep="\n", flush=True)
        with ServerProcess(dataset, max_seconds=7200) as server:
            for case in CASES:
                if given.only in case.name:
                    rows = case.rows_of(given.rows, given.quick)
                    runs = [run_case(case, dataset, server, rows) for _ in range(max(1, given.repeat))]
                    figures = Figures.median([run for run, _ in runs])
                    faults = [fault for _, found in runs for fault in found]
                    loose = case.rows is None and rows < OFFICIAL_ROWS
                    print(table_row(case, figures, faults, loose), *faults, sep="\n    ", flush=True)
    if given.only in "memory":
        for line in memory_lines(1000 if given.quick else given.memory_rows):
            print(line, flush=True)


if __name__ == "__main__":
    main()
