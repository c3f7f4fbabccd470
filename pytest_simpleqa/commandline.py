"""What can be typed behind `simpleqa`: the commands and their options."""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from typing import Any, NoReturn

from .errors import OptionError


class _Parser(argparse.ArgumentParser):
    """Tells a mistake as everything else here does."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(f"{message}; see {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command; what it reads has `command`, the command's name or None.

    A mistake raises OptionError, in one line.
    """
    whole = _Parser(
        prog="simpleqa", description="Report, compare and merge runs of pytest-simpleqa; check a judge; list evals."
    )
    whole.add_argument("--version", action="version", version=f"pytest-simpleqa {version('pytest-simpleqa')}")
    whole.set_defaults(command=None)
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)
    a_run = "a run directory, its name in .simpleqa, 'latest' there, a report.json or a recording with verdicts"

    report = _command(commands, "report", "print a run's summary and write its Report again")
    report.add_argument("run", metavar="RUN", help=a_run)
    report.add_argument("--out", metavar="FILE", help="write the Report here, not into the run; '-' = standard output")
    _add_dataset(report)
    _add_gates(report)

    comparing = _command(commands, "compare", "put two runs side by side, on the same questions")
    comparing.add_argument("base", metavar="BASE", help=a_run)
    comparing.add_argument("new", metavar="NEW", help="likewise")
    comparing.add_argument("--markdown", action="store_true", help="as a comment for GitHub")
    _add_dataset(comparing)
    _add_gates(comparing, baseline=False)

    merging = _command(commands, "merge", "make one run of the shards that several machines have asked")
    merging.add_argument("runs", metavar="RUN", nargs="+", help="a run directory, its name in .simpleqa or 'latest'")
    merging.add_argument(
        "--out", metavar="DIR_OR_FILE", help="a new run directory, or a FILE.json for the Report; '-' = standard output"
    )
    _add_dataset(merging)
    _add_gates(merging)

    checking = _command(commands, "judge-check", "let a judge grade answers that have labels")
    checking.add_argument(
        "labelled",
        metavar="LABELLED",
        help="a table with a column of labels, or an earlier run, whose verdicts they are",
    )
    checking.add_argument("--judge-llm", metavar="SPEC", required=True, help="the judge, as under pytest")
    checking.add_argument(
        "--judge-llm-param",
        metavar="K=V",
        type=_param,
        action="append",
        default=[],
        help="request parameter for the judge (default temperature=0; K= drops it); repeatable",
    )
    checking.add_argument("--label-column", metavar="NAME", help="the column of labels, where it has a name of its own")
    checking.add_argument(
        "--correct", metavar="RUN", action="append", default=[], help="a run of this judge, to correct its accuracy"
    )
    checking.add_argument("--concurrency", metavar="N", type=_count, default=32, help="answers in flight (default 32)")
    checking.add_argument("--limit", metavar="N", type=_count, default=0, help="only the first N answers")
    _add_dataset(checking)

    _add_evals(commands)
    return whole


def _add_evals(commands: Any) -> None:
    """Add `evals list` and `evals show`."""
    evals = _command(commands, "evals", "tell what registries of OpenAI Evals hold")
    actions = evals.add_subparsers(title="actions", metavar="ACTION", parser_class=_Parser, required=True)

    listing = _command(actions, "list", "list the evals, and which of them cannot be run here")
    listing.add_argument(
        "pattern", metavar="PATTERN", nargs="?", default="*", help="only names like coqa-* (default *)"
    )
    form = listing.add_mutually_exclusive_group()
    form.add_argument("--classes", action="store_true", help="count them by class")
    form.add_argument("--json", action="store_true", help="as a JSON array")

    showing = _command(actions, "show", "show what is said of one eval, or what an eval set holds")
    showing.add_argument("name", metavar="NAME", help="an eval, an alias or an eval set")

    for action, name in ((listing, "list"), (showing, "show")):
        action.set_defaults(command="evals", action=name)
        action.add_argument(
            "--registry-path",
            "--simpleqa-registry-path",
            metavar="DIR",
            action="append",
            default=[],
            help="a registry, looked at before ~/.evals and that of an installed evals package; repeatable",
        )


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(command=name)
    return parser


def _add_dataset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dataset",
        "--simpleqa-dataset",
        metavar="SOURCE",
        help="the questions that were asked, where they are not found by their name",
    )


def _add_gates(parser: argparse.ArgumentParser, *, baseline: bool = True) -> None:
    parser.add_argument(
        "--gate",
        "--simpleqa-gate",
        metavar="EXPR",
        action="append",
        default=[],
        help="what the run must reach, such as 'accuracy >= 0.4' or 'accuracy >= baseline - 0.02'; repeatable",
    )
    if baseline:
        parser.add_argument("--baseline", "--simpleqa-baseline", metavar="RUN", help="an earlier run to compare with")
    parser.add_argument(
        "--max-failures",
        "--simpleqa-max-failures",
        metavar="RATE",
        type=_fraction,
        default=0.01,
        help="share of failed rows that leaves a gate undecided (default 0.01)",
    )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r}: wanted a whole number of at least 1")
    return int(text)


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r}: wanted a number from 0 to 1")
    return value


def _param(text: str) -> tuple[str, Any]:
    """Return the request parameter that K=V says; V is JSON, else a text, and None where it is to be dropped."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip().isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r}: wanted NAME=VALUE, such as temperature=0")
    if not value:
        return key.strip(), None
    try:
        return key.strip(), json.loads(value)
    except ValueError:
        return key.strip(), value
