"""Text on the screen: the summary of a run. Makes lines and writes none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from .certaintytext import certainty_lines
from .comparisontext import comparison_lines
from .metrics import Rates
from .ratestable import table_lines
from .records import QuestionResult
from .report import Report
from .textline import Line as Line  # what the summary is made of, for those who show it
from .textline import Markup, spaced, wrapped
from .trust import doubt, in_words, scant
from .wording import columns, cut, kept_ends, many, one_line, rate, shown, span, speed, visible

WRONG_SHOWN = 20
ERRORS_SHOWN = 5

_INDENT = "    "
_LABEL = 12
"""Columns of a label before the words on certainty."""


# -- the summary ----------------------------------------------------------------------------------


def summary_lines(
    report: Report,
    *,
    width: int = 80,
    colour: bool = True,
    run_dir: str | None = None,
    out: str | None = None,
    node_id: Callable[[str], str] | None = None,
    verbosity: int = 0,
    results: Iterable[QuestionResult] | None = None,
    resume: str | None = None,
    ahead: int = 0,
    left_open: Sequence[str] = (),
) -> list[Line]:
    """Return the summary of one run, no line wider than `width` except for paths and the `resume` command.

    `node_id` makes one of an item's own name, by default behind the run's name and `::`. `results`, in
    dataset order, is where wrong answers and errors are looked for, and defaults to the Report's
    samples. `verbosity` -1 leaves out topics and wrong answers, -2 all but one line. `ahead` counts results of
    questions that pytest has not reached; `left_open` tells of gates that stand in no Report.
    """
    if verbosity <= -2:
        return [Line.of(one_line(report, len(left_open)))]
    rows = list(report.samples if results is None else results)
    blocks = [
        [Line.of(shown(f"{report.name}: {report.model}, judged by {report.judge}", width), bold=True)],
        list(table_lines(report, width, topics=verbosity >= 0)),
        [
            *_incomplete(report, width, resume, ahead),
            *failure_lines(report, rows, width),
            *sentinel_lines(report, width),
            *gate_lines(report, width),
            *open_gate_lines(left_open, width),
        ],
        comparison_lines(report, width, brief=verbosity < 0),
        list(_certainty(report, width)),
        list(_facts(report, width, run_dir, out)),
        list(_wrong(report, rows, width, node_id)) if verbosity >= 0 else [],
    ]
    lines = spaced(blocks)
    return lines if colour else [line.plain() for line in lines]


def _incomplete(report: Report, width: int, resume: str | None, ahead: int) -> Iterator[Line]:
    if report.complete:
        return
    left_out = report.population - report.selected
    text = f"incomplete: {report.n:,} of {many(report.population, 'question')} have a result"
    text += f", {ahead_words(ahead)}" if ahead else ""
    text += f", {left_out:,} not selected" if left_out else ""
    for line in wrapped(text, width, indent="  "):
        yield Line.of(cut(line, width), yellow=True)
    if resume:
        yield Line.of(f"go on with: {visible(resume)}")


def ahead_words(number: int) -> str:
    """Return that so many questions have a result without pytest having come to them."""
    return f"{number:,} answered ahead of pytest, whose last line lacks them"


def failure_lines(found: Rates, rows: Iterable[QuestionResult], width: int) -> Iterator[Line]:
    """Yield how many rows have no verdict, and the usual reasons, which are looked for in `rows`."""
    if not found.failures:
        return
    counts = ((found.judge_failures, "judge failure"), (found.errors, "error"))
    none = f": 0 of {found.n:,} have a verdict, so the rates tell nothing" if found.failures == found.n else ""
    text = ", ".join(many(number, noun) for number, noun in counts if number)
    yield Line.of(cut(text + none, width), red=True, bold=True)
    reasons = Counter((row.error.kind, row.error.message) for row in rows if row.error)
    for (kind, message), number in reasons.most_common(ERRORS_SHOWN):
        yield Line.of(shown(f"  {number:,} {kind}: {message}", width))
    if (left := len(reasons) - ERRORS_SHOWN) > 0:
        yield Line.of(shown(f"  and {many(left, 'further reason')}", width))


def sentinel_lines(report: Report, width: int, label: str = "") -> Iterator[Line]:
    """Yield what the judge made of its sentinels: a warning where it is not to be trusted, or has hardly been tried."""
    if report.sentinels is None:
        return
    why = doubt(report.sentinels)
    questions = report.population // report.options.get("repeats", 1)
    few = scant(report.sentinels, report.options.get("sentinels", 0), questions)
    text = f"{why}: do not trust its verdicts" if why else in_words(report.sentinels) + few
    markup: Markup = {"red": True, "bold": True} if why else {"yellow": True} if few else {}
    for line in wrapped(visible(label + text), width, indent="  "):
        yield Line.of(line, **markup)


def gate_lines(report: Report, width: int, label: str = "") -> Iterator[Line]:
    """Yield every gate with its figures and its reason, wrapped: nothing of a decision is cut off."""
    for gate in report.gates:
        verdict = str(gate.get("verdict"))
        figures = [
            f"{word} {rate(gate[key])}"
            for word, key in (("value", "value"), ("bound", "bound"))
            if gate.get(key) is not None
        ]
        if gate.get("interval") and "difference" not in gate:  # that one's interval stands in the reason
            figures.append(f"{100 * gate.get('level', 0.95):.4g} % {kept_ends(gate['interval'])}")
        text = f"{label}gate {gate.get('expression')}: {', '.join((verdict, *figures))}"
        reason = f"; {gate['reason']}" if gate.get("reason") else ""
        markup = {{"pass": "green", "fail": "red"}.get(verdict, "yellow"): True}
        for line in wrapped(visible(text + reason), width, indent="     "):
            yield Line.of(line, **markup)


def open_gate_lines(left_open: Iterable[str], width: int) -> Iterator[Line]:
    """Yield the gates that stand in no Report, wrapped."""
    for text in left_open:
        yield from (Line.of(line, yellow=True) for line in wrapped(visible(text), width, indent="     "))


def _certainty(report: Report, width: int) -> Iterator[Line]:
    """Yield how far repeats agree and what stated confidences are worth."""
    for label, text in certainty_lines(report):
        for place, line in enumerate(wrapped(text, width - _LABEL)):
            yield Line.of(f"{'' if place else label:<{_LABEL}}{line}")


def _facts(report: Report, width: int, run_dir: str | None, out: str | None) -> Iterator[Line]:
    """Yield what the run cost and where it lies."""
    facts = [(role, _spent(report.usage[role])) for role in ("answer", "judge") if role in report.usage]
    facts += [("metrics", _metrics(report)), ("wrapped", _wrappers(report)), ("time", _time(report))]
    yield from (Line.of(cut(f"{label:<8}{text}", width)) for label, text in facts if text)
    for label, path in (("run", run_dir), ("report", out)):
        if path:
            yield Line.of(f"{label:<8}{visible(path)}")  # never cut: it is there to be copied


def _metrics(report: Report) -> str:
    """Return what an eval makes of its results, as OpenAI Evals prints it."""
    figures = (f"{visible(str(name))} {_figure(value)}" for name, value in (report.metrics or {}).items())
    return ", ".join(figures)


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else visible(str(value))


def _wrappers(report: Report) -> str:
    """Return what stands around the answer model: two runs of one model may differ in nothing else."""
    names = [visible(str(each.get("name"))) for each in report.wrapped_by]
    return f"by {', '.join(names)}" if names else ""


def _spent(usage: Mapping[str, Any]) -> str:
    if not usage.get("calls"):
        return ""
    tokens_in, tokens_out = (usage.get(f"{kind}_tokens", 0) for kind in ("prompt", "completion"))
    text = f"{many(usage['calls'], 'call')}, {tokens_in:,} tokens in, {tokens_out:,} out"
    latency = usage.get("latency_s")
    return text + (f", {span(latency['p50'])} each (p95 {span(latency['p95'])})" if latency else "")


def _time(report: Report) -> str:
    text = span(report.duration_s)
    if report.resumed:
        return f"{text} since it was resumed" + (f" ({report.resumed:,} times in all)" if report.resumed > 1 else "")
    if report.n > 0 and report.duration_ms > 0:
        text += f", {speed(report.n, report.duration_s)} questions a second"
    return text


def _wrong(
    report: Report, rows: Iterable[QuestionResult], width: int, node_id: Callable[[str], str] | None
) -> Iterator[Line]:
    """Yield the first wrong answers of a run."""
    name_of = node_id or (lambda item: f"{report.name}::{item}")
    repeated = report.options.get("repeats", 1) != 1
    wrong = (row for row in rows if row.verdict == "incorrect")
    named = ((name_of(row.id + (f"-r{row.repeat}" if repeated else "")), row) for row in wrong)
    return wrong_lines(report.incorrect, named, width)


def wrong_lines(number: int, wrong: Iterable[tuple[str, QuestionResult]], width: int) -> Iterator[Line]:
    """Yield the first of `number` wrong answers with their node ids: one line each, two where the screen is narrow."""
    first = list(islice(wrong, WRONG_SHOWN))
    if not first:
        return
    more = f", the first {len(first)}; the rest is in the Report" if len(first) < number else ""
    yield Line.of(cut(f"{many(number, 'wrong answer')}{more}", width), bold=True)
    told = [_wrong_answer(visible(name), row, width) for name, row in first]
    if all(columns(f"{asked}  {said}") <= width for asked, said in told):
        yield from (Line.of(f"{asked}  {said}") for asked, said in told)
        return
    for asked, said in told:
        yield Line.of(cut(asked, width))
        yield Line.of(f"{_INDENT}{said}")


def _wrong_answer(node_id: str, row: QuestionResult, width: int) -> tuple[str, str]:
    """Return `node id  question`, and `gold: X  predicted: Y` in what a line of its own holds; the gold goes first."""
    question, gold, predicted = (shown(text or "", width) for text in (row.question, row.gold, row.predicted))
    room = max(0, width - columns(f"{_INDENT}gold:   predicted: "))
    for_gold = min(columns(gold), max(room // 2, room - columns(predicted)))
    said = f"gold: {cut(gold, for_gold)}  predicted: {cut(predicted, room - for_gold)}"
    return f"{node_id}  {question}", said
