"""The `simpleqa` command: what can be done with runs after they have ended."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .catalogue import class_lines, list_evals, list_lines, show_lines
from .commandline import parser
from .comparisontext import comparison_lines
from .errors import OptionError, RunError, RunStopped, SimpleQAError
from .evals.registry import Registry, registry_dirs
from .gate import parse_gate
from .gates import Gates
from .judgecheck import check_judge, check_lines
from .keptrun import KeptRun, read_kept_run
from .labelled import read_labelled
from .markdown import comparison_markdown
from .merge import merge, write_merged
from .paths import typed_path
from .report import Report
from .reportfile import report_text, write_report
from .runevents import Event
from .terminal import gate_lines, summary_lines
from .textline import Line, spaced
from .wording import many, visible

PASSED, FAILED, INTERRUPTED, MISTAKEN, UNDECIDED = 0, 1, 2, 4, 6
"""Exit statuses, as under pytest: 4 is a mistake of the user's, 6 a gate that is undecided."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; a mistake of the user's is one line on standard error."""
    _let_nothing_be_unprintable()
    whole = parser()
    try:
        args = whole.parse_args(argv)
        if args.command is None:
            whole.print_help()
            return PASSED
        status = _COMMANDS[args.command](args)
        sys.stdout.flush()
        return status
    except SimpleQAError as error:
        _complain(str(error))
        return MISTAKEN
    except RunStopped as error:
        _complain(str(error))
        return FAILED
    except BrokenPipeError:  # whoever read us has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASSED
    except OSError as error:
        _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return MISTAKEN
    except KeyboardInterrupt:
        return INTERRUPTED


def _complain(message: str) -> None:
    for option in ("gate", "baseline", "max-failures", "registry-path"):  # pytest's names of ours
        message = message.replace(f"--simpleqa-{option}", f"--{option}")
    print(f"simpleqa: {visible(message)}", file=sys.stderr)


def _let_nothing_be_unprintable() -> None:
    """Let a console that knows few characters show the others in some way, not fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


# -- report ---------------------------------------------------------------------------------------


def _report(args: argparse.Namespace) -> int:
    base = Path.cwd()
    kept = read_kept_run(args.run, base, args.dataset)
    before = read_kept_run(args.baseline, base) if args.baseline else None
    report = decided(kept, args.gate or _recorded_gates(kept), before, args.max_failures)
    return _finish(replace(kept, report=report), args.out)


def _recorded_gates(kept: KeptRun) -> list[str]:
    """Return the gates that are to be decided again: those of a Report that is older than the run's lines."""
    return [str(gate.get("expression")) for gate in kept.report.gates] if kept.is_stale else []


def decided(kept: KeptRun, texts: Sequence[str], before: KeptRun | None, max_failures: float) -> Report:
    """Return a run's Report with these gates decided and compared with `before`; without either as it was."""
    gates = Gates(tuple(parse_gate(text) for text in texts), before.as_baseline if before else None, max_failures)
    report = kept.report
    if before is not None:
        report = replace(report, comparison=gates.compare(kept.rows))
    elif kept.is_stale:
        report = replace(report, comparison=None)
    if texts:
        other = next((gate for gate in gates.expressions if not gate.applies_to(report.name)), None)
        if other is not None:
            raise OptionError(f"--gate {other.text!r}: there is no run {other.run!r}; this one is {report.name!r}")
        report = replace(report, gates=tuple(result.to_json() for result in gates.decide(report, kept.rows, [])))
        report = replace(report, exit_status=exit_status(report))
    return report


def exit_status(report: Report) -> int:
    """Return what a Report's gates come to: 1 where one failed, else 6 where one is undecided, else 0."""
    verdicts = {gate.get("verdict") for gate in report.gates}
    if "fail" in verdicts:
        return FAILED
    return UNDECIDED if verdicts - {"pass"} else PASSED


def _finish(kept: KeptRun, out: str | None) -> int:
    """Print a run's summary, write its Report and return the exit status."""
    report = kept.report
    folder = kept.path if kept.is_rebuilt else None
    target = Path(out) if out and out != "-" else folder / "report.json" if folder and not out else None
    if target is not None:
        write_report(report, target)
    lines = summary_lines(
        report,
        width=_width(),
        run_dir=str(folder) if folder else None,
        out=str(target) if target else None,
        results=kept.results or None,
        resume=kept.resume if report.n < report.selected else None,
    )
    _show(lines, sys.stderr if out == "-" else sys.stdout)
    _note(kept)
    if out == "-":
        sys.stdout.write(report_text(report))
    return exit_status(report)


# -- compare --------------------------------------------------------------------------------------


def _compare(args: argparse.Namespace) -> int:
    base = Path.cwd()
    before, now = (read_kept_run(word, base, args.dataset) for word in (args.base, args.new))
    report = decided(replace(now, report=replace(now.report, gates=())), args.gate, before, args.max_failures)
    _require_shared(args, report.comparison or {})
    if args.markdown:
        sys.stdout.write(comparison_markdown(report))
    else:
        _show(spaced([comparison_lines(report, _width()), gate_lines(report, _width())]), sys.stdout)
    for kept in (before, now):
        _note(kept)
    return exit_status(report)


def _require_shared(args: argparse.Namespace, found: Mapping[str, Any]) -> None:
    """Raise RunError where no question stands in both runs: there is nothing to put side by side."""
    if not found.get("questions"):
        golds = f"; {many(found['changed_gold'], 'question')} with another gold" if found.get("changed_gold") else ""
        raise RunError(f"{args.base} and {args.new} have no question in common{golds}")


# -- merge ----------------------------------------------------------------------------------------


def _merge(args: argparse.Namespace) -> int:
    base = Path.cwd()
    merged = merge(args.runs, base, args.dataset)
    before = read_kept_run(args.baseline, base) if args.baseline else None
    merged = replace(merged, report=decided(merged, args.gate, before, args.max_failures))
    if args.out is None or args.out == "-" or args.out.endswith(".json"):
        return _finish(merged, args.out)
    write_merged(args.runs, base, merged, Path(args.out))
    return _finish(replace(merged, path=Path(args.out), is_rebuilt=True), None)


# -- judge-check ----------------------------------------------------------------------------------


def _judge_check(args: argparse.Namespace) -> int:
    base = Path.cwd()
    labelled = read_labelled(args.labelled, base, column=args.label_column, dataset=args.dataset)
    others = [read_kept_run(word, base, args.dataset) for word in args.correct]
    params = {"temperature": 0, **dict(args.judge_llm_param)}
    check = check_judge(
        labelled, args.judge_llm, params, concurrency=args.concurrency, limit=args.limit, hook=_Progress()
    )
    _show(check_lines(check, _width(), others), sys.stdout)
    return PASSED


_QUIET_S = 5.0
"""What is done sooner needs no word of how far it is."""


class _Progress:
    """Tells on standard error what is asked, before it is, and how far it is."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, event: Event) -> None:
        fields = event.fields
        if event.kind == "start":
            self._started = time.monotonic()
            text = f"{many(int(fields['n_qs']), 'answer')} of {fields['dataset']} to {fields['judge']}"
            print(visible(text), file=sys.stderr)
        elif event.kind == "qa_progress" and time.monotonic() - self._started >= _QUIET_S:
            print(f"{int(fields['done']):,} of {int(fields['total']):,}", file=sys.stderr)


# -- evals ----------------------------------------------------------------------------------------


def _evals(args: argparse.Namespace) -> int:
    base = Path.cwd()
    registry = Registry(registry_dirs([typed_path(text, base) for text in args.registry_path]))
    if args.action == "show":
        _show(show_lines(registry, args.name, base), sys.stdout)
    else:
        _list_evals(registry, args, base)
    for note in (*registry.faults, *registry.notes):
        print(f"simpleqa: note: {visible(note)}", file=sys.stderr)
    return PASSED


def _list_evals(registry: Registry, args: argparse.Namespace, base: Path) -> None:
    listed = list_evals(registry, args.pattern, base)
    if args.json:
        print(json.dumps([each.to_json() for each in listed], indent=1))
    else:
        _show((class_lines if args.classes else list_lines)(listed), sys.stdout)


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "report": _report,
    "compare": _compare,
    "merge": _merge,
    "judge-check": _judge_check,
    "evals": _evals,
}


# -- the screen -----------------------------------------------------------------------------------


def _width() -> int:
    return max(40, shutil.get_terminal_size().columns)


def _show(lines: Iterable[Line], stream: Any) -> None:
    coloured = _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    for line in lines:
        print(line.ansi if coloured else line.text, file=stream)


def _is_terminal(stream: Any) -> bool:
    return bool(stream.isatty())


def _note(kept: KeptRun) -> None:
    for note in kept.notes:
        print(f"simpleqa: note: {visible(note)}", file=sys.stderr)
