"""What stands on pytest's terminal at the end: a page for one run, a table for several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from . import terminal
from .ledger import Ledger
from .manyruns import many_runs_lines
from .records import QuestionResult
from .report import Report
from .resume import resume_command
from .screen import Screen


def show_summary(
    terminalreporter: pytest.TerminalReporter,
    screen: Screen,
    reported: Sequence[Ledger],
    left_open: Sequence[str],
) -> None:
    """Write what came of the runs that have a Report, and of the gates that stand in none."""
    verbosity = terminalreporter.config.get_verbosity()
    is_alone = len(reported) == 1
    with_pages = [each for each in reported if each.results] if verbosity >= 1 and not is_alone else []
    pages = [_page(ledger, screen.width, verbosity) for ledger in with_pages]
    if is_alone:
        pages.append(_page(reported[0], screen.width, verbosity, left_open))
    elif reported:
        pages.append(_table(reported, screen.width, verbosity, left_open))
    for lines in pages:
        if verbosity > -2:
            terminalreporter.write_sep("=", "simpleqa")
        screen.show(lines)


def _page(ledger: Ledger, width: int, verbosity: int, left_open: Sequence[str] = ()) -> list[terminal.Line]:
    """Return the summary of one run."""
    report = _report_of(ledger)
    written = ledger.plan.options.out_of(ledger.plan.name) or ledger.run_dir.path / "report.json"
    return terminal.summary_lines(
        report,
        width=width,
        colour=True,
        run_dir=_relative(ledger.run_dir.path),
        out=_relative(written),
        verbosity=verbosity,
        node_id=ledger.plan.node_id,
        results=list(ledger.in_order()),
        resume=_resume_command(ledger) if report.n < report.selected else None,
        ahead=ledger.ahead,
        left_open=left_open,
    )


def _table(ledgers: Sequence[Ledger], width: int, verbosity: int, left_open: Sequence[str]) -> list[terminal.Line]:
    """Return the summary of all runs in one."""
    reports = [_report_of(ledger) for ledger in ledgers]
    lacking = (ledger for ledger, report in zip(ledgers, reports, strict=True) if report.n < report.selected)
    unfinished = next(lacking, None)
    return many_runs_lines(
        reports,
        width=width,
        verbosity=verbosity,
        rows=(result for ledger in ledgers for result in ledger.in_order() if result.error is not None),
        wrong=_wrong_answers(ledgers),
        run_dirs=[Path(_relative(ledger.run_dir.path)) for ledger in ledgers],
        resume=_resume_command(unfinished) if unfinished is not None else None,
        ahead=sum(ledger.ahead for ledger in ledgers),
        left_open=left_open,
    )


def _wrong_answers(ledgers: Sequence[Ledger]) -> Iterator[tuple[str, QuestionResult]]:
    """Yield the wrong answers of all runs with their node ids."""
    for ledger in ledgers:
        for name, ask in ledger.plan.asks():
            if (result := ledger.results.get(ask.key)) is not None and result.verdict == "incorrect":
                yield ledger.plan.node_id(name), result


def _report_of(ledger: Ledger) -> Report:
    assert ledger.report is not None
    return ledger.report


def _resume_command(ledger: Ledger) -> str:
    """Return what to type to go on with this run; its name means the other runs of its session too."""
    return resume_command(ledger.plan.options.typed, ledger.run_dir.path.name)


def _relative(path: Path) -> str:
    """Return `path` as the user would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
