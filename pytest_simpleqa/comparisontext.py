"""A comparison on the screen: both models side by side, what flipped, the worst topics, the regressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .metrics import Interval
from .report import Report, wrappers_in
from .textline import Line, Markup, fitted, spaced, wrapped
from .wording import columns, cut, left, many, rate, shown, visible

METRIC_WORDS: Mapping[str, str] = {
    "accuracy": "accuracy",
    "attempted_accuracy": "attempted accuracy",
    "abstention_rate": "abstention rate",
    "hallucination_rate": "hallucination rate",
    "coverage": "coverage",
    "f_score": "F score",
}
FLIP_WORDS: Mapping[str, str] = {
    "incorrect_to_correct": "incorrect to correct",
    "not_attempted_to_correct": "not attempted to correct",
    "correct_to_incorrect": "correct to incorrect",
    "correct_to_not_attempted": "correct to not attempted",
}

_BETTER = {"accuracy": 1, "attempted_accuracy": 1, "hallucination_rate": -1, "coverage": 1, "f_score": 1}
"""Which way a metric is better; abstaining more is neither."""
_DETAIL = 24
"""Columns of what a wrapper says of itself."""
_LEAST_NAME = 8
"""Columns that a topic's name keeps however narrow the screen is."""


def comparison_lines(report: Report, width: int, *, brief: bool = False) -> list[Line]:
    """Return the comparison that a Report holds, nothing for none; `brief` leaves topics and regressions out."""
    found = report.comparison
    if not found:
        return []
    blocks: list[Iterator[Line]] = [_head(report, found, width), _table(found, width, topics=not brief)]
    if found["rows"]:
        blocks.append(_flips(found, width))
    if not brief:
        blocks.append(_regressions(found, width))
    return spaced(blocks)


def _head(report: Report, found: Mapping[str, Any], width: int) -> Iterator[Line]:
    now, before = both_words(report, found)
    text = f"{now} compared with {before}, on the same {many(found['questions'], 'question')}"
    for line in wrapped(visible(text), width, indent="  "):
        yield Line.of(cut(line, width), bold=True)
    if unjudged := unjudged_words(found):
        yield Line.of(cut(unjudged, width), yellow=True)
    if differing := differing_words(found):
        yield Line.of(cut(f"the questions differ: {differing}", width), yellow=True)


def both_words(report: Report, found: Mapping[str, Any]) -> tuple[str, str]:
    """Return how a run and its baseline are called: the models, the baseline's file, wrappers where they differ."""
    mine, other = report.wrapped_by, wrappers_in(found)
    now = f"{report.model}{_wrapping(mine, other)}"
    if not found.get("model"):
        return now, str(found["baseline"])
    by = f", judged by {found['judge']}" if found.get("judge") else ""
    return now, f"{found['model']}{_wrapping(other, mine)} ({found['baseline']}{by})"


def _wrapping(wrappers: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> str:
    """Return what stands around a model, nothing where the same stands around the other one.

    Wrappers of the same names are told apart by what they say of themselves.
    """
    if not wrappers or list(wrappers) == list(others):
        return ""
    same_names = [each.get("name") for each in wrappers] == [each.get("name") for each in others]
    told = zip(wrappers, others if same_names else wrappers, strict=True)
    return f" wrapped by {', '.join(_wrapper(each, other) for each, other in told)}"


def _wrapper(wrapper: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    apart = (f"{key} {cut(str(value), _DETAIL)}" for key, value in wrapper.items() if other.get(key) != value)
    details = ", ".join(apart)
    return f"{wrapper.get('name')} ({details})" if details else str(wrapper.get("name"))


def differing_words(found: Mapping[str, Any]) -> str:
    """Return how the questions of both runs differ, nothing where they do not."""
    counts = ((found[key], key.replace("_", " ")) for key in ("only_here", "only_there", "changed_gold"))
    return ", ".join(f"{number:,} {words}" for number, words in counts if number)


def unjudged_words(found: Mapping[str, Any]) -> str:
    """Return how many rows of either run have no verdict, and so are no flips; nothing where all have one."""
    before = sum(found["transitions"]["failed"].values())
    now = sum(row["failed"] for row in found["transitions"].values())
    counts = ((number, when) for number, when in ((before, "before"), (now, "now")) if number)
    said = " and ".join(f"{many(number, 'row')} {when}" for number, when in counts)
    return f"without a verdict: {said}; they are not right in the rates, and no flips" if said else ""


def signed(value: float) -> str:
    """Return a difference of fractions in five columns: `+.023`, `.000` for less than can be seen."""
    text = f"{value:+.3f}".replace("0.", ".", 1)
    return ".000" if text in ("+.000", "-.000") else text


def signed_ends(interval: Interval | Sequence[float]) -> str:
    """Return both ends of a difference's interval."""
    return f"{signed(interval[0])} to {signed(interval[1])}"


def p_words(p: float | None) -> str:
    """Return a p-value to read; with repeats, which are not independent, there is none."""
    if p is None:
        return "no test, since rows are not independent"
    return "mid-p < .0001" if p < 0.0001 else f"mid-p = {p:.4f}"


# -- side by side ---------------------------------------------------------------------------------

_Row = tuple[str, str, Mapping[str, Any], int]
"""Name, number of questions, the difference, and which way is better."""

_HEADS = (("questions", 11), ("before", 8), ("now", 7), ("difference", 12), ("95 % interval", 17))
_FIRST_TO_GO = ("questions", "95 % interval", "before")
"""Columns that are left out where a screen is too narrow, in this order."""


def _table(found: Mapping[str, Any], width: int, *, topics: bool) -> Iterator[Line]:
    rows: list[_Row] = [
        (METRIC_WORDS[name], "", each, _BETTER.get(name, 0)) for name, each in found["metrics"].items() if each
    ]
    worst: list[_Row] = [
        (visible(str(each["topic"])), f"{each['questions']:,}", each, 1) for each in (found["topics"] if topics else ())
    ]
    names = max((columns(name) for name, *_ in (*rows, *worst)), default=0)
    heads = _fitting(names, width, counted=bool(worst))
    names = min(names, max(_LEAST_NAME, width - sum(heads.values())))
    if rows:
        yield Line.of(" " * names + "".join(head.rjust(size) for head, size in heads.items()))
    yield from (_table_row(row, names, heads) for row in rows)
    if worst:
        yield Line()
        yield Line.of(left(cut("accuracy by topic, the worst first", width), names))
    yield from (_table_row(row, names, heads) for row in worst)


def _fitting(names: int, width: int, *, counted: bool) -> dict[str, int]:
    heads = dict(_HEADS)
    if not counted:
        del heads["questions"]
    for name in _FIRST_TO_GO:
        if min(names, _LEAST_NAME * 2) + sum(heads.values()) > width:
            heads.pop(name, None)
    return heads


def _table_row(row: _Row, names: int, heads: Mapping[str, int]) -> Line:
    name, questions, each, better = row
    cells = {
        "questions": questions,
        "before": rate(each["baseline"]),
        "now": rate(each["value"]),
        "difference": signed(each["difference"]),
        "95 % interval": signed_ends(each["interval"]),
    }
    markup = _markup(each["interval"], better)
    spans = [(cells[head].rjust(size), markup if head == "difference" else {}) for head, size in heads.items()]
    return Line(((left(cut(name, names), names), {}), *spans))


def _markup(interval: Sequence[float], better: int) -> Markup:
    """Return the colour of a difference that is told from none; no colour for one that is not."""
    low, high = sorted(end * better for end in interval)
    return {"green": True} if low > 0 else {"red": True} if high < 0 else {}


# -- flips and regressions ------------------------------------------------------------------------


def _flips(found: Mapping[str, Any], width: int) -> Iterator[Line]:
    test = found["mcnemar"]
    text = f"right answers: {test['gained']:,} won, {test['lost']:,} lost; McNemar's exact test: {p_words(test['p'])}"
    for line in wrapped(text, width, indent="  "):
        yield Line.of(line, bold=True)
    for flip, number in found["flips"].items():
        colour = {"green" if flip.endswith("to_correct") else "red": bool(number)}
        yield Line.of(cut(f"  {FLIP_WORDS[flip]:<26}{number:>7,}", width), **colour)


def _regressions(found: Mapping[str, Any], width: int) -> Iterator[Line]:
    kept, number = found["regressions"], found["regressed"]
    if not kept:
        return
    known = [each for each in kept if each["question"] or each["now"]["predicted"]]
    note = f", the first {len(known)}" if 0 < len(known) < number else ""
    text = f"{many(number, 'regression')}{note}" + ("" if known else "; neither run keeps the texts")
    yield Line.of(cut(text, width), bold=True)
    for each in known:
        yield Line.of(_regression(each, width))


def _regression(each: Mapping[str, Any], width: int) -> str:
    """Return `id  question  gold: X  before: Y  now: Z` in one line, each text with its fair share of the room."""
    now = "not attempted: " if each["now"]["verdict"] == "not_attempted" else "now: "
    texts = (
        ("", each["question"]),
        ("gold: ", each["gold"]),
        ("before: ", each["before"]["predicted"]),
        (now, each["now"]["predicted"]),
    )
    return fitted(shown(str(each["id"] or ""), width), texts, width)
