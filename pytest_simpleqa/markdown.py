"""A comparison as a comment for GitHub: every text of a model or a dataset is shown, none is acted on."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .certaintytext import certainty_lines
from .comparisontext import FLIP_WORDS, METRIC_WORDS, both_words, differing_words, p_words, signed, signed_ends
from .report import Report
from .wording import cut, many, rate, visible

TEXT_SHOWN = 100
"""Characters of a question or an answer: twenty regressions stay below the 65,536 of a comment."""
_NAME_SHOWN = 200

_ENTITIES = {ord(character): f"&#{ord(character)};" for character in string.punctuation}
_GATE_MARKS = {"pass": "✅", "fail": "❌"}
_UNDECIDED_MARK = "❔"


def escaped(text: str, most: int = _NAME_SHOWN) -> str:
    """Return `text` on one line so that neither Markdown nor HTML nor GitHub makes anything of it.

    All punctuation becomes a character reference, which Markdown takes for text alone; the `<code>` around
    it keeps GitHub from mentions, issue numbers and emoji, which it looks for after that.
    """
    return f"<code>{cut(visible(text[: 4 * most]), most).translate(_ENTITIES)}</code>" if text else ""


def comparison_markdown(report: Report) -> str:
    """Return the comparison that a Report holds, and its gates, as a comment."""
    found = report.comparison
    assert found is not None, "a Report without a comparison"
    blocks = (
        _head(report, found),
        _gates(report),
        _metrics(found),
        _certainty(report),
        _flips(found),
        _topics(found),
        _regressed(found),
    )
    return "\n".join(line for block in blocks for line in block).rstrip() + "\n"


def _head(report: Report, found: Mapping[str, Any]) -> Iterator[str]:
    now, before = both_words(report, found)
    yield f"### {escaped(report.name)}: {escaped(now)} compared with {escaped(before)}"
    yield ""
    differing = differing_words(found)
    yield f"On the same {many(found['questions'], 'question')}" + (f" ({differing})." if differing else ".")
    if not report.complete:
        yield f"**Incomplete:** {report.n:,} of {many(report.population, 'question')} have a result."
    yield ""


def _gates(report: Report) -> Iterator[str]:
    for gate in report.gates:
        mark = _GATE_MARKS.get(str(gate.get("verdict")), _UNDECIDED_MARK)
        reason = f": {escaped(str(gate['reason']), 400)}" if gate.get("reason") else ""
        yield f"- {mark} **{gate.get('verdict')}** {escaped(str(gate.get('expression')))}{reason}"
    if report.gates:
        yield ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """Yield a table: the first columns are texts, the others numbers."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * texts}{' ---: |' * (len(heads) - texts)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _figures(each: Mapping[str, Any]) -> tuple[str, ...]:
    return rate(each["baseline"]), rate(each["value"]), signed(each["difference"]), signed_ends(each["interval"])


def _metrics(found: Mapping[str, Any]) -> Iterator[str]:
    rows = [(METRIC_WORDS[name], *_figures(each)) for name, each in found["metrics"].items() if each]
    if rows:
        yield from _table(("", "before", "now", "difference", "95 % interval"), rows)


def _certainty(report: Report) -> Iterator[str]:
    lines = list(certainty_lines(report))
    for label, text in lines:
        yield f"{label.capitalize()}: {text}." if label else f"{text[0].upper()}{text[1:]}."
    if lines:
        yield ""


def _flips(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["rows"]:
        return
    test = found["mcnemar"]
    yield f"Right answers: {test['gained']:,} won, {test['lost']:,} lost; McNemar's exact test: {p_words(test['p'])}."
    yield ""
    yield from _table(("flip", "questions"), [(FLIP_WORDS[flip], f"{n:,}") for flip, n in found["flips"].items()])


def _topics(found: Mapping[str, Any]) -> Iterator[str]:
    rows = [(escaped(str(each["topic"])), f"{each['questions']:,}", *_figures(each)) for each in found["topics"]]
    heads = ("topic, the worst first", "questions", "before", "now", "difference", "95 % interval")
    if rows:
        yield from _folded("Accuracy by topic", _table(heads, rows))


def _regressed(found: Mapping[str, Any]) -> Iterator[str]:
    kept, number = found["regressions"], found["regressed"]
    if not kept:
        return
    rows = [
        [
            escaped(str(each["id"] or "")),
            *(escaped(text or "", TEXT_SHOWN) for text in (each["question"], each["gold"])),
            escaped(each["before"]["predicted"] or "", TEXT_SHOWN),
            ("*not attempted* " if each["now"]["verdict"] == "not_attempted" else "")
            + escaped(each["now"]["predicted"] or "", TEXT_SHOWN),
        ]
        for each in kept
    ]
    first = f", the first {len(kept)}" if len(kept) < number else ""
    table = _table(("", "question", "gold", "before", "now"), rows, texts=5)
    yield from _folded(f"{many(number, 'regression')}{first}", table)


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield from lines
    yield "</details>"
    yield ""
