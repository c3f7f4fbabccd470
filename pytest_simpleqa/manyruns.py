"""The summary of a session that holds several runs: one table. Makes lines and writes none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

from .comparisontext import comparison_lines
from .metrics import Counts, Rates
from .ratestable import run_lines
from .records import QuestionResult
from .report import Report
from .terminal import ahead_words, failure_lines, gate_lines, open_gate_lines, sentinel_lines, wrong_lines
from .textline import Line, spaced
from .trust import doubt
from .wording import cut, gate_words, many, rate, span, visible


def total_of(reports: Iterable[Rates]) -> Counts:
    """Return the counts of all runs."""
    names = [each.name for each in fields(Counts)]
    counts = (Counts(*(getattr(each, name) for name in names)) for each in reports)
    return sum(counts, Counts())


def many_runs_lines(
    reports: Sequence[Report],
    *,
    width: int,
    verbosity: int = 0,
    rows: Iterable[QuestionResult] = (),
    wrong: Iterable[tuple[str, QuestionResult]] = (),
    run_dirs: Sequence[Path] = (),
    resume: str | None = None,
    ahead: int = 0,
    left_open: Sequence[str] = (),
) -> list[Line]:
    """Return the summary of several runs.

    `verbosity` -1 leaves out wrong answers, -2 all but one line; from 1 on each run has been shown on a page of its
    own. `rows` is where failures' reasons stand, `wrong` has the wrong answers with their node ids. `ahead` counts
    results of questions that pytest has not reached; `left_open` tells of gates that stand in no Report.
    """
    total = total_of(reports)
    if verbosity <= -2:
        return [Line.of(_one_line(reports, total, len(left_open)))]
    has_pages = verbosity >= 1
    return spaced(
        [
            run_lines(total, reports, width),
            [
                *_incomplete(reports, width, resume, ahead),
                *failure_lines(total, rows, width),
                *(line for report in reports for line in sentinel_lines(report, width, f"{report.name}: ")),
                *_gates(reports, width),
                *open_gate_lines(left_open, width),
            ],
            *([] if has_pages else (_comparison(report, width) for report in reports)),
            _facts(reports, run_dirs, width, is_all=has_pages),
            wrong_lines(total.incorrect, wrong, width) if verbosity == 0 else (),
        ]
    )


def _comparison(report: Report, width: int) -> list[Line]:
    """Return what a baseline says of a run, under its name."""
    lines = comparison_lines(report, width, brief=True)
    return [Line.of(cut(f"{visible(report.name)}:", width)), *lines] if lines else []


def _one_line(reports: Sequence[Report], total: Counts, left_open: int) -> str:
    pieces = [
        f"{total.n:,} of {many(sum(report.population for report in reports), 'question')}",
        f"accuracy {rate(total.accuracy)}",
        f"attempted {rate(total.attempted_accuracy)}",
    ]
    if total.failures:
        pieces.append(many(total.failures, "failure"))
    if doubted := sum(doubt(report.sentinels) is not None for report in reports):
        pieces.append(f"{many(doubted, 'judge')} not to be trusted")
    pieces += gate_words(reports, left_open)
    return f"{many(len(reports), 'run')}: {', '.join(pieces)}"


def _incomplete(reports: Sequence[Report], width: int, resume: str | None, ahead: int) -> Iterator[Line]:
    lacking = [report for report in reports if not report.complete]
    if not lacking:
        return
    names = ", ".join(visible(report.name) for report in lacking)
    yield Line.of(cut(f"incomplete: {many(len(lacking), 'run')}: {names}", width), yellow=True)
    if ahead:
        yield Line.of(cut(f"  {ahead_words(ahead)}", width), yellow=True)
    if resume:
        yield Line.of(f"go on with: {visible(resume)}")


def _gates(reports: Sequence[Report], width: int) -> Iterator[Line]:
    """Yield every gate that has not passed, under the name of its run, and how many have."""
    passed = 0
    for report in reports:
        open_gates = tuple(gate for gate in report.gates if gate.get("verdict") != "pass")
        passed += len(report.gates) - len(open_gates)
        yield from gate_lines(replace(report, gates=open_gates), width, label=f"{report.name}: ")
    if passed:
        yield Line.of(f"{many(passed, 'gate')} passed", green=True)


def _facts(reports: Sequence[Report], run_dirs: Sequence[Path], width: int, *, is_all: bool) -> Iterator[Line]:
    """Yield what the runs cost and where they lie; `is_all` tells that each has been shown on a page of its own."""
    for role in ("answer", "judge"):
        spent = Counter[str]()
        for report in reports:
            spent.update({key: value for key, value in report.usage.get(role, {}).items() if isinstance(value, int)})
        if spent["calls"]:
            tokens = f"{spent['prompt_tokens']:,} tokens in, {spent['completion_tokens']:,} out"
            yield Line.of(cut(f"{role:<8}{many(spent['calls'], 'call')}, {tokens}", width))
    yield Line.of(f"time    {span(max(report.duration_s for report in reports))}")
    for folder in dict.fromkeys(path.parent for path in run_dirs):
        more = "" if is_all else "; -v shows them one by one"
        yield Line.of(f"runs    {visible(str(folder))}, a directory with its Report for each{more}")
