"""A gate: a condition on a run's metrics, read from what was typed."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from .errors import OptionError
from .pairing import METRICS, ComparedRow
from .report import UNSPECIFIED

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}

_KINDS = {"topic": "topic", "type": "answer_type", "answer_type": "answer_type"}
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows of one topic or of one answer type."""

    kind: str
    """`topic` or `answer_type`."""
    name: str

    def holds(self, row: ComparedRow) -> bool:
        """Tell whether a row belongs to it: the exact name in any case, `(unspecified)` for none."""
        return self.name_in(row).casefold() == self.name.casefold()

    def name_in(self, row: ComparedRow) -> str:
        """Return the name of the slice of this kind that a row belongs to."""
        return getattr(row, self.kind) or UNSPECIFIED


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition, as typed and as understood."""

    text: str
    run: str | None
    """The only run that it applies to; None for every run."""
    slice: Slice | None
    metric: str
    end: str | None
    """`low` or `high` where an end of the interval is compared, not the value."""
    op: str
    """One of OPERATORS."""
    number: float
    """What is compared with; beside a baseline the margin that is added to it."""
    against_baseline: bool = False

    @property
    def wants_more(self) -> bool:
        """Higher is better."""
        return self.op[0] == ">"

    def holds(self, value: float) -> bool:
        """Tell whether `value` is on the good side of the number."""
        return OPERATORS[self.op](value, self.number)

    def holds_row(self, row: ComparedRow) -> bool:
        """Tell whether `row` counts for it."""
        return self.slice is None or self.slice.holds(row)

    def applies_to(self, run: str) -> bool:
        """Tell whether the run of that name is held to it."""
        return self.run is None or self.run == run


# -- reading --------------------------------------------------------------------------------------


def parse_gate(text: str) -> Gate:
    """Return the gate that `[RUN: ][topic[NAME].]METRIC[.low|.high] OP NUMBER` says, or `... OP baseline [+|- NUMBER]`.

    Raises OptionError, in one line with the column of what is wrong.
    """
    scan = _Scanner(text)
    run = scan.run()
    part = scan.slice()
    metric, end = scan.metric()
    op = scan.op()
    number, against_baseline = scan.wanted(end)
    scan.end()
    return Gate(text.strip(), run, part, metric, end, op, number, against_baseline)


class _Scanner:
    """Reads a gate from left to right; remembers the column."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def take(self, pattern: str) -> re.Match[str] | None:
        """Skip blanks, then take what `pattern` matches here."""
        self.at += len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
        found = re.compile(pattern).match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def refuse(self, wanted: str, at: int | None = None) -> NoReturn:
        column = (self.at if at is None else at) + 1
        raise OptionError(f"--simpleqa-gate {self.text!r}: column {column}: {wanted}")

    def run(self) -> str | None:
        found = self.take(r"(?!\w+\[)(\S.*?):\s+")
        return found[1] if found else None

    def slice(self) -> Slice | None:
        found = self.take(r"(\w+)\[")
        if not found:
            return None
        if found[1] not in _KINDS:
            self.refuse(f"wanted topic[...] or type[...], found '{found[1]}['", found.start())
        name = self.take(r"(.*?)\]\s*\.")
        if not name:
            self.refuse(f"wanted the name, ']', '.' and a metric, as in {found[1]}[Art].accuracy")
        if not name[1].strip():
            self.refuse("wanted a name between [ and ]", name.start())
        return Slice(_KINDS[found[1]], name[1].strip())

    def metric(self) -> tuple[str, str | None]:
        found = self.take(r"\w+")
        start = found.start() if found else self.at
        name = found[0] if found else ""
        if name not in METRICS:
            close = difflib.get_close_matches(name, METRICS, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            self.refuse(f"wanted a metric, one of {', '.join(METRICS)}{hint}", start)
        if not self.take(r"\."):
            return name, None
        end = self.take(r"(low|high)\b")
        if not end:
            self.refuse("wanted low or high, the ends of the interval")
        return name, end[1]

    def op(self) -> str:
        found = self.take(r"[<>=!]+")
        if not found or found[0] not in OPERATORS:
            self.refuse("wanted >=, <=, > or <", found.start() if found else self.at)
        return found[0]

    def wanted(self, end: str | None) -> tuple[float, bool]:
        start = self.at
        if not self.take(r"baseline\b"):
            return self.fraction("a number from 0 to 1, or baseline"), False
        if end:
            self.refuse(f"a baseline is compared by its own interval; leave .{end} out", start + 1)
        sign = self.take(r"[+-]")
        if not sign:
            return 0.0, True
        margin = self.fraction("a number from 0 to 1")
        return (margin if sign[0] == "+" else -margin), True

    def fraction(self, wanted: str) -> float:
        found = self.take(_NUMBER.pattern)
        if not found:
            self.refuse(f"wanted {wanted}")
        value = float(found[0])
        if self.take("%"):
            self.refuse(f"rates are fractions: for {found[0]} % type {value / 100:g}", self.at - 1)
        if value > 1:
            hint = f": for {found[0]} % type {value / 100:g}" if value <= 100 else ""
            self.refuse(f"rates are fractions, from 0 to 1{hint}", found.start())
        return value

    def end(self) -> None:
        if self.take(r"\S"):
            self.refuse("wanted the end of the gate here", self.at - 1)
