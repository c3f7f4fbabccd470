"""The table of counts and rates, a row for each topic or each run, as wide as the screen allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from .metrics import Rates
from .report import UNSPECIFIED, Report
from .textline import Line, Markup, Span
from .wording import columns, cut, ends, left, rate, visible

_LEAST_TOPIC = 8
"""Columns that a topic's name keeps however narrow the screen is."""
_LEAST_RUN = 30
"""The same for a run's name, which is told apart from others by its end as well."""


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of numbers: two rows of head, at length and short, and its cell."""

    head: tuple[str, str]
    short: tuple[str, str]
    cell: Callable[[Rates], str]
    markup: Markup = field(default_factory=dict)
    opens_group: bool = False

    def width(self, rows: Iterable[Rates], short: bool) -> int:
        return max(*map(len, self.short if short else self.head), *(len(self.cell(row)) for row in rows))


_COUNTS = (
    _Column(("", "n"), ("", "n"), lambda row: f"{row.n:,}"),
    _Column(("", "correct"), ("", "corr."), lambda row: f"{row.correct:,}", {"green": True}),
    _Column(("", "incorrect"), ("in-", "corr."), lambda row: f"{row.incorrect:,}", {"red": True}),
    _Column(("not", "attempted"), ("not", "att."), lambda row: f"{row.not_attempted:,}", {"yellow": True}),
)
_ATTEMPTED = _Column(
    ("attempted", "accuracy"),
    ("att.", "acc."),
    lambda row: rate(row.attempted_accuracy),
    {"bold": True},
    opens_group=True,
)
_RATES = (
    _Column(
        ("accuracy and", "95 % interval"),
        ("accuracy and", "95 % interval"),
        lambda row: f"{rate(row.accuracy)} {ends(row.interval('accuracy')):>9}",
        opens_group=True,
    ),
    _ATTEMPTED,
    _Column(("", "abstention"), ("", "abst."), lambda row: rate(row.abstention_rate)),
    _Column(("", "hallucination"), ("", "hall."), lambda row: rate(row.hallucination_rate)),
)
_RECORDED = _Column(("", "recorded"), ("", "rec."), lambda row: f"{row.recorded:,}", {"green": True})
"""Stands behind the other counts where there is such a row."""


_JUDGE_FAILURES = _Column(
    ("judge", "failures"), ("judge", "fail."), lambda row: f"{row.judge_failures:,}", {"red": True}
)
_ERRORS = _Column(("", "errors"), ("", "err."), lambda row: f"{row.errors:,}", {"red": True})
_ACCURACY = _Column(("", "accuracy"), ("", "acc."), lambda row: rate(row.accuracy), opens_group=True)
_SCORE = _Column(("", "score"), ("", "score"), lambda row: _score(row), {"bold": True})
"""What a model-graded eval's choices are worth on average."""


def _score(row: Rates) -> str:
    value = (getattr(row, "metrics", None) or {}).get("score")
    return f"{value:.3g}" if isinstance(value, int | float) else "-"


def _counts_in(rows: Sequence[Rates]) -> Sequence[_Column]:
    """Return the columns of counts, which add up to `n`: those that hold nothing anywhere are left out."""
    rare = (
        (_RECORDED, any(row.recorded for row in rows)),
        (_JUDGE_FAILURES, any(row.judge_failures for row in rows)),
        (_ERRORS, any(row.errors for row in rows)),
    )
    return (*_COUNTS, *(column for column, is_there in rare if is_there))


def _columns_for(rows: Sequence[Rates]) -> Sequence[_Column]:
    return (*_counts_in(rows), *_RATES)


def _columns_of_runs(rows: Sequence[Rates]) -> Sequence[_Column]:
    """Return the columns where each row is a run: names are long, so what is not needed is left out."""
    has_score = any(_score(row) != "-" for row in rows)
    return (*_counts_in(rows), _ACCURACY, _ATTEMPTED, *([_SCORE] if has_score else []))


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which columns are shown, how wide each is with the gap before it, and with which heads."""

    columns: Sequence[_Column]
    widths: Sequence[int]
    short: bool

    @classmethod
    def of(cls, columns: Sequence[_Column], rows: Sequence[Rates], gap: int, short: bool) -> Self:
        # Where the gap is narrow, a wider one keeps the groups of columns apart.
        gaps = [gap + (column.opens_group and gap == 1) for column in columns]
        return cls(columns, [g + column.width(rows, short) for g, column in zip(gaps, columns, strict=True)], short)

    @classmethod
    def fitting(cls, columns: Sequence[_Column], rows: Sequence[Rates], names: int, least: int, width: int) -> Self:
        """Return the roomiest layout that fits; names are cut first, to `least`, then columns go from the right."""
        for short in (False, True):
            roomy = cls.of(columns, rows, gap=2, short=short)
            if names + sum(roomy.widths) <= width:
                return roomy
        shown = len(columns)
        while shown > 1 and least + sum(cls.of(columns[:shown], rows, gap=1, short=True).widths) > width:
            shown -= 1
        return cls.of(columns[:shown], rows, gap=1, short=True)

    def head(self, row: int, label: str) -> Line:
        """Return one of the two rows of the head."""
        heads = (column.short if self.short else column.head for column in self.columns)
        cells = (head[row].rjust(width) for head, width in zip(heads, self.widths, strict=True))
        return Line.of((label + "".join(cells)).rstrip())

    def row(self, label: str, counts: Rates, markup: Markup) -> Line:
        """Return one row of numbers."""
        spans: list[Span] = [(label, markup)]
        for column, width in zip(self.columns, self.widths, strict=True):
            cell = column.cell(counts).rjust(width)
            # A count of nothing needs no colour.
            spans.append((cell, markup if cell.strip() in {"0", "-"} else {**markup, **column.markup}))
        return Line(tuple(spans))


def table_lines(report: Report, width: int, *, topics: bool) -> Iterator[Line]:
    """Yield the head, the row of all questions and the topics."""
    groups = (report.per_topic or {}) if topics and set(report.per_topic or {}) != {UNSPECIFIED} else {}
    rows: list[tuple[str, Rates]] = [("all questions", report)]
    rows += [(visible(name), group) for name, group in groups.items()]
    yield from _table("topic" if groups else "", rows, _columns_for([each for _, each in rows]), _LEAST_TOPIC, width)


def run_lines(total: Rates, reports: Sequence[Report], width: int) -> Iterator[Line]:
    """Yield the head, the row of all runs and each run."""
    rows: list[tuple[str, Rates]] = [("all runs", total), *((visible(report.name), report) for report in reports)]
    return _table("run", rows, _columns_of_runs([each for _, each in rows]), _LEAST_RUN, width)


def _table(
    head: str, rows: Sequence[tuple[str, Rates]], wanted: Sequence[_Column], least: int, width: int
) -> Iterator[Line]:
    names = max(columns(name) for name, _ in rows)
    layout = _Layout.fitting(wanted, [counts for _, counts in rows], names, least, width)
    names = min(names, max(least, width - sum(layout.widths)))
    for row, label in enumerate(("", head)):
        yield layout.head(row, left(label, names))
    for place, (name, counts) in enumerate(rows):
        yield layout.row(left(cut(name, names), names), counts, {} if place else {"bold": True})
