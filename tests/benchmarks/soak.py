"""A service that fails in every way: `python tests/benchmarks/soak.py [--rows N] [--seed S]`.

One request in five meets a fault; then every row must be in the Report, no verdict may be another than the server's,
and the run must end by itself. `broken_promises` tells what did not hold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.measure import Measured, ServerProcess, arguments, measured, write_dataset
from tests.benchmarks.server import Settings, read_golds, truth

ROWS = 4326
FAULTS = {
    "rate_limited": 0.10,
    "server_error": 0.05,
    "reset": 0.02,
    "truncated": 0.01,
    "empty": 0.01,
    "hang": 0.005,
}
TIMEOUT_S = 8.0


def soak(
    server: ServerProcess, dataset: Path, folder: Path, *args: str, seed: int = 0, limit_s: float = 600.0
) -> Measured:
    """Put `dataset` to a server with all faults; it is killed after `limit_s` seconds, which is a broken promise."""
    server.set(Settings(answer_s=0.02, judge_s=0.01, sigma=0.8, seed=seed, faults=FAULTS))
    asked = (f"--simpleqa-timeout={TIMEOUT_S:g}", "--simpleqa-concurrency=64", "--simpleqa-max-samples=-1", *args)
    return measured(arguments(dataset, *asked), folder, server.environment, limit_s)


def broken_promises(run: Measured, stats: dict[str, Any], questions: list[str]) -> Iterator[str]:
    """Yield what a soak's Report got wrong, and what the server saw that should not have been."""
    report = run.report
    if report is None:
        yield f"no Report; exit status {run.status}: {run.output[-1000:]}"
        return
    names = ("correct", "incorrect", "not_attempted", "judge_failures", "errors")
    counts = {name: report[name] for name in names}
    if not report["complete"] or report["n"] != len(questions) or sum(counts.values()) != len(questions):
        yield f"{len(questions)} rows were asked; the Report has n = {report['n']} and {counts}"
    if run.status != 1:
        yield f"exit status {run.status} where questions failed: {run.output[-500:]}"
    samples = report["samples"]
    if [sample["question"].strip() for sample in samples] != questions:
        yield "the samples are not the questions in dataset order"
    for sample in samples:
        right = truth(sample["question"])
        if sample["verdict"] is None and not sample["error"]:
            yield f"{sample['id']}: neither a verdict nor an error"
        elif sample["verdict"] not in (None, right):
            yield f"{sample['id']}: {sample['verdict']}, where the server said {right}"
    lost = counts["errors"] + counts["judge_failures"]
    # One or two requests in a hundred rows hang until the deadline; hardly any other row should be lost.
    if lost > 3 + 0.05 * len(questions):
        kinds = sorted({sample["error"]["kind"] for sample in samples if sample["error"]})
        yield f"{lost} of {len(questions)} rows lost to {', '.join(kinds)}"
    if stats["duplicates"]:
        yield f"{stats['duplicates']} requests for what had been replied to already"
    if stats["max_in_flight"] > 64:
        yield f"{stats['max_in_flight']} requests in flight"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    broken = 0
    with tempfile.TemporaryDirectory() as name:
        dataset = write_dataset(Path(name) / "soak.csv", given.rows)
        questions = list(read_golds(dataset))
        with ServerProcess(dataset, max_seconds=1800) as server:
            for args in ((), ("-n2",)):
                folder = Path(name) / f"run{len(args)}"
                folder.mkdir()
                run = soak(server, dataset, folder, *args, seed=given.seed)
                stats = server.stats()
                found = list(broken_promises(run, stats, questions))
                broken += len(found)
                lost = run.report and {key: run.report[key] for key in ("n", "errors", "judge_failures")}
                print(f"{' '.join(args) or 'bare'}: {run.wall_s:.0f} s, {lost}, server: {stats['outcomes']}")
                print(*(found or ["every promise held"]), sep="\n", flush=True)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
