"""The decision on a gate: pass, fail or undecided, with the figures and the reason."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .baseline import Baseline
from .errors import OptionError
from .gate import Gate, Slice
from .intervals import Difference, z_of
from .metrics import Interval
from .pairing import FAILED, ComparedRow, by_question, difference, furthest_status, measure, pair, rows_of_report
from .report import Report
from .trust import doubt


@dataclass(frozen=True, slots=True)
class GateResult:
    """What became of a gate."""

    expression: str
    verdict: str
    """`pass`, `fail` or `undecided`."""
    reason: str
    value: float | None
    """What was compared, of the rows that have a result."""
    bound: float | None
    """The same, with the worst verdict for each row that has none."""
    interval: Interval | None
    """Of the value; against a baseline of the difference, at its worst."""
    more: dict[str, Any] = field(default_factory=dict)
    """With a baseline `baseline, difference, difference_bound, detectable, questions`; slices `level, slice_gates`."""

    def to_json(self) -> dict[str, Any]:
        """Return what stands in `Report.gates`."""
        return {
            "expression": self.expression,
            "value": self.value,
            "bound": self.bound,
            "interval": [round(end, 4) for end in self.interval] if self.interval else None,
            "verdict": self.verdict,
            "reason": self.reason,
            **self.more,
        }


def decide_all(
    gates: Iterable[Gate],
    report: Report,
    rows: Sequence[ComparedRow] | None = None,
    *,
    baseline: Baseline | None = None,
    max_failures: float = 0.01,
    reasons: Sequence[str] = (),
) -> list[GateResult]:
    """Decide the gates that apply to this run; gates on slices are corrected for how many of them there are."""
    ours = [gate for gate in gates if gate.applies_to(report.name)]
    slices = sum(gate.slice is not None for gate in ours)
    return [
        decide(gate, report, rows, baseline=baseline, max_failures=max_failures, slice_gates=slices, reasons=reasons)
        for gate in ours
    ]


def decide(
    gate: Gate,
    report: Report,
    rows: Sequence[ComparedRow] | None = None,
    *,
    baseline: Baseline | None = None,
    max_failures: float = 0.01,
    slice_gates: int = 1,
    reasons: Sequence[str] = (),
) -> GateResult:
    """Decide one gate.

    `rows` are those of the population and default to what the Report keeps of them. Rows without a
    verdict take the one that is worst for the gate. `reasons` are further causes to leave it
    undecided, a phrase each. Raises OptionError where a baseline is wanted and there is none.
    """
    known = rows_of_report(report) if rows is None else rows
    chosen = [row for row in known if gate.holds_row(row)]
    doubts = [*reasons, *_doubts(report, max_failures)]
    if not chosen and gate.slice:
        doubts.append(_unknown(gate.slice, known))
    if rows is None and gate.slice and len(report.samples) < report.n:
        doubts.append(f"the Report tells the topics of {len(report.samples):,} of its {report.n:,} rows")
    level = 1 - 0.05 / max(1, slice_gates) if gate.slice else 0.95
    if not gate.against_baseline:
        result = _alone(gate, chosen, z_of(level))
    elif baseline is None:
        raise OptionError(f"--simpleqa-gate {gate.text!r}: there is no baseline; type --simpleqa-baseline=FILE")
    else:
        doubts += _doubts_about(baseline, chosen, max_failures)
        result = _against(gate, known, baseline, level)
    return _finish(gate, result, doubts, level, slice_gates)


def _unknown(part: Slice, rows: Iterable[ComparedRow]) -> str:
    names = sorted({part.name_in(row) for row in rows})
    close = difflib.get_close_matches(part.name, names, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"no row has the {part.kind.replace('_', ' ')} {part.name!r}{hint}"


def _doubts(report: Report, max_failures: float) -> Iterable[str]:
    """Yield why no gate on this run can be decided."""
    if report.population == 0:
        yield "there are no rows"
    elif report.n == 0:
        yield f"no row of {report.population:,} has a result"
    if report.selected < report.population:
        left_out = report.population - report.selected
        yield f"pytest's own selection left {left_out:,} of {report.population:,} rows out"
    if 0 < report.n < report.selected:
        yield f"incomplete: {report.n:,} of {report.selected:,} rows have a result"
    if report.n and report.failures / report.n > max_failures:
        yield f"failures {report.failures:,} of {report.n:,} are above {max_failures:g}"
    if judge_fails := doubt(report.sentinels):
        yield judge_fails


def _doubts_about(baseline: Baseline, rows: Sequence[ComparedRow], max_failures: float) -> Iterable[str]:
    asked, shared = len(by_question(rows)), len(pair(rows, baseline.rows).pairs)
    if 0 < shared < asked / 2:
        yield f"the baseline has only {shared:,} of {asked:,} questions"
    finished = [row for row in baseline.rows if row.finished]
    failures = sum(row.verdict is None for row in finished)
    if finished and failures / len(finished) > max_failures:
        yield f"failures {failures:,} of {len(finished):,} of the baseline are above {max_failures:g}"


def _finish(gate: Gate, result: GateResult, doubts: list[str], level: float, slice_gates: int) -> GateResult:
    """Add what keeps the gate from being decided, and what holds for every gate of its kind."""
    verdict, more = "undecided" if doubts else result.verdict, dict(result.more)
    # A threshold is not met or missed on rows that do not stand for the run; a difference is still told.
    phrases = [*doubts, *([result.reason] if not doubts or gate.against_baseline else [])]
    if verdict == "undecided" and "detectable" in more:
        shown = f"{more['questions']:,} questions show a distance of {more['detectable']:.4f}"
        phrases.append(f"{shown} from {_margin(gate)} or more (80 % power)")
    if gate.slice:
        more = {"level": round(level, 6), "slice_gates": slice_gates, **more}
        if slice_gates > 1:
            phrases.append(f"intervals are at {100 * level:.4g} %, corrected for {slice_gates} gates on slices")
    reason = "; ".join(phrases)
    return GateResult(gate.text, verdict, reason, result.value, result.bound, result.interval, more)


# -- a threshold ----------------------------------------------------------------------------------


def _alone(gate: Gate, rows: Sequence[ComparedRow], z: float) -> GateResult:
    """Compare a value, or an end of its interval, with a number."""
    value, interval = _compared(gate, [row for row in rows if row.finished], z, FAILED)
    bound, _ = _compared(gate, rows, z, furthest_status(gate.metric, up=not gate.wants_more))
    if value is None or bound is None:
        return GateResult(gate.text, "undecided", f"{gate.metric} has no row to count", value, bound, interval)
    verdict = "pass" if gate.holds(bound) else "fail"
    what = f"the interval's {gate.end} end" if gate.end else "the value"
    if verdict == "fail" and gate.holds(value):
        without = sum(row.verdict is None for row in rows)
        worst = f"at worst, {without:,} of {len(rows):,} rows having no verdict, it is {_figure(gate, bound)}"
        reason = f"{what} {_figure(gate, value)} is {gate.op} {gate.number:g}, but {worst}"
    else:
        worst = f" (at worst {_figure(gate, bound)})" if bound != value else ""
        reason = (
            f"{what} {_figure(gate, value)}{worst} is {'' if verdict == 'pass' else 'not '}{gate.op} {gate.number:g}"
        )
    return GateResult(gate.text, verdict, reason, value, bound, interval)


def _figure(gate: Gate, value: float) -> str:
    """Return a value in as many decimals as it takes to see its side of the number; 4 as a rule."""
    for digits in range(4, 16):
        text = f"{value:.{digits}f}"
        if gate.holds(float(text)) == gate.holds(value):
            return text
    return repr(value)


def _compared(gate: Gate, rows: Sequence[ComparedRow], z: float, missing: str) -> tuple[float | None, Interval | None]:
    """Return what the gate compares, the metric or an end of its interval, and the interval."""
    value, interval = measure(gate.metric, rows, z, missing)
    if gate.end and interval:
        value = interval[gate.end == "high"]
    return value, interval


# -- a baseline -----------------------------------------------------------------------------------


def _against(gate: Gate, rows: Sequence[ComparedRow], baseline: Baseline, level: float) -> GateResult:
    """Compare the paired difference with the margin: the whole interval decides, at its worst."""
    pairing = pair(rows, baseline.rows)
    pairs = [pair for pair in pairing.pairs if gate.holds_row(pair.now[0])]
    worst_now = furthest_status(gate.metric, up=not gate.wants_more)
    best_before = furthest_status(gate.metric, up=gate.wants_more)
    z = z_of(level)
    measured = difference(gate.metric, pairs, z, margin=gate.number)
    worst = difference(gate.metric, pairs, z, margin=gate.number, missing=(worst_now, best_before))
    differing = f"; the questions differ: {', '.join(pairing.differences)}" if pairing.differences else ""
    if measured is None or worst is None:
        what = f"{gate.metric} has no row to count" if pairs else "no question is in both runs"
        return GateResult(gate.text, "undecided", what + differing, None, None, None)
    near, far = worst.interval if gate.wants_more else worst.interval[::-1]
    verdict = "pass" if gate.holds(near) else "undecided" if gate.holds(far) else "fail"
    return GateResult(
        gate.text,
        verdict,
        _in_words(gate, verdict, measured, worst, level) + differing,
        measured.now,
        worst.now,
        worst.interval,
        {
            "baseline": measured.before,
            "difference": measured.difference,
            "difference_bound": worst.difference,
            "detectable": worst.detectable,
            "questions": len(pairs),
        },
    )


_SIDES = {
    "pass": "is wholly on the good side of",
    "fail": "is wholly on the bad side of",
    "undecided": "reaches to both sides of",
}


def _in_words(gate: Gate, verdict: str, measured: Difference, worst: Difference, level: float) -> str:
    value = f"{measured.now:.4f} against {measured.before:.4f}"
    if worst.interval == (0, 0):
        return f"{value}, no question changed: equal"
    at_worst = f" (at worst {worst.difference:+.4f})" if worst.difference != measured.difference else ""
    ends = f"{100 * level:.4g} % {worst.interval[0]:+.4f} to {worst.interval[1]:+.4f}"
    side = f"{_SIDES[verdict]} {_margin(gate)}"
    return f"{value}, difference {measured.difference:+.4f}{at_worst}: its interval, {ends}, {side}"


def _margin(gate: Gate) -> str:
    return f"{gate.number:+g}" if gate.number else "0"
