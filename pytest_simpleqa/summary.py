"""What stands on pytest's terminal at the end: a page for a run, a table for many."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from . import terminal
from .ledger import Ledger
from .manyruns import SUMMARIES_SHOWN, many_runs_lines
from .report import Report
from .screen import Screen
from .secret import without_password


def show_summary(
    terminalreporter: pytest.TerminalReporter, screen: Screen, reported: Sequence[Ledger], config: pytest.Config
) -> None:
    """Write what came of the runs that have a Report."""
    verbosity = config.get_verbosity()
    is_alone = len(reported) == 1
    blocks = []
    if len(reported) <= SUMMARIES_SHOWN or verbosity >= 1:
        blocks += [_page(ledger, screen.width, verbosity, config, is_alone=is_alone) for ledger in reported]
    if len(reported) > SUMMARIES_SHOWN:
        blocks.append(_table(reported, screen.width, verbosity, config))
    for lines in blocks:
        if verbosity > -2:
            terminalreporter.write_sep("=", "simpleqa")
        screen.show(lines)


def _page(ledger: Ledger, width: int, verbosity: int, config: pytest.Config, *, is_alone: bool) -> list[terminal.Line]:
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
        resume=_resume_command(ledger, config, is_alone=is_alone) if report.n < report.selected else None,
    )


def _table(ledgers: Sequence[Ledger], width: int, verbosity: int, config: pytest.Config) -> list[terminal.Line]:
    """Return the summary of all runs in one."""
    reports = [_report_of(ledger) for ledger in ledgers]
    lacking = (ledger for ledger, report in zip(ledgers, reports, strict=True) if report.n < report.selected)
    unfinished = next(lacking, None)
    return many_runs_lines(
        reports,
        width=width,
        verbosity=verbosity,
        rows=(result for ledger in ledgers for result in ledger.in_order() if result.error is not None),
        run_dirs=[Path(_relative(ledger.run_dir.path)) for ledger in ledgers],
        resume=_resume_command(unfinished, config, is_alone=False) if unfinished is not None else None,
    )


def _report_of(ledger: Ledger) -> Report:
    assert ledger.report is not None
    return ledger.report


def _resume_command(ledger: Ledger, config: pytest.Config, *, is_alone: bool) -> str:
    """Return what to type to go on with this run: the same command line, and its name."""
    args = [without_password(str(arg)) for arg in config.invocation_params.args]
    kept = [arg for arg in args if not arg.startswith("--simpleqa-resume=")]
    if "--simpleqa-resume" in kept:
        place = kept.index("--simpleqa-resume")
        del kept[place : place + 2]
    word = ledger.run_dir.path.name if is_alone else "latest"
    return shlex.join(["pytest", *kept, f"--simpleqa-resume={word}"])


def _relative(path: Path) -> str:
    """Return `path` as the user would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
