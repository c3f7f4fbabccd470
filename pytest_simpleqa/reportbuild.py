"""A Report put together from the results of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, TypeVar

from .calibration import calibration
from .intervals import intervals_of
from .metrics import INTERVAL_RATES, Counts, Rates
from .pairing import ComparedRow, rows_of, rows_of_report
from .records import Question, QuestionResult, Usage, Verdict
from .repeats import clustered_intervals, consistency
from .report import UNSPECIFIED, Groups, Intervals, Report, TopicReport
from .trust import tally

_Row = TypeVar("_Row")


def build_report(
    *,
    dataset: str,
    model: str,
    judge: str,
    started_at: datetime,
    duration_s: float,
    population: Sequence[Question],
    results: Mapping[tuple[str, int], QuestionResult],
    name: str | None = None,
    selected: int | None = None,
    repeats: int = 1,
    max_samples: int = 200,
    topic_breakdown: bool = True,
    options: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
    other_parse: Callable[[str], Verdict | None] | None = None,
    resumed: int = 0,
    gates: Sequence[Mapping[str, Any]] = (),
    comparison: Mapping[str, Any] | None = None,
    exit_status: int | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> Report:
    """Return the Report of `results`, keyed by question id and repeat (from 1).

    `population` is in dataset order; a result that belongs to none of its rows is left out.
    `selected` counts rows, those with a result among them, and defaults to all of them.
    `other_parse` is the parse rule that the run did not use (`paper` for a strict run): the replies
    that it grades otherwise are counted as `paper_parse_differs` in the provenance, which is None
    without it. `max_samples=-1` keeps all.
    """
    assert started_at.tzinfo is not None, "started_at needs a zone"
    rows = [(question, repeat) for question in population for repeat in range(1, repeats + 1)]
    found = {(q.id, repeat): results[q.id, repeat] for q, repeat in rows if (q.id, repeat) in results}
    done = list(found.values())
    counts = Counts.from_results(done)
    askings = rows_of(population, found, repeats) if repeats > 1 else []
    return Report(
        name=dataset if name is None else name,
        dataset=dataset,
        model=model,
        judge=judge,
        started_at=started_at.replace(microsecond=0),
        duration_ms=round(duration_s * 1000),
        population=len(rows),
        selected=len(rows) if selected is None else selected,
        **asdict(counts),
        intervals=_intervals(counts, askings),
        per_topic=_grouped("topic", done, askings) if topic_breakdown else None,
        per_answer_type=_grouped("answer_type", done, askings) if topic_breakdown else None,
        repeats=consistency(askings, repeats) if askings else None,
        calibration=calibration(done, asked=bool((options or {}).get("ask_confidence"))),
        sentinels=tally(done, asked_for=(options or {}).get("sentinels", 0)),
        samples=tuple(done if max_samples < 0 else done[:max_samples]),
        verdicts=tuple(
            (q.question_hash, q.gold_hash, repeat, result.verdict if (result := found.get((q.id, repeat))) else None)
            for q, repeat in rows
        ),
        options=dict(options or {}),
        usage={
            "answer": _usage([r.answer_usage for r in done]),
            "judge": _usage([r.judge_usage for r in done]),
        },
        provenance=_provenance(provenance or {}, done, other_parse),
        resumed=resumed,
        gates=tuple(gates),
        comparison=comparison,
        exit_status=exit_status,
        metrics=metrics,
    )


def measured(report: Report) -> Report:
    """Return a Report, put together from others, with what follows from its counts, verdicts and samples.

    Intervals by topic of repeated questions, and the calibration, follow from whole rows: they are there only where
    the samples keep all of them.
    """
    repeats = max((repeat for _, _, repeat, _ in report.verdicts), default=1)
    askings = rows_of_report(report) if repeats > 1 else []
    is_whole = len(report.samples) == report.n
    asked = bool(report.options.get("ask_confidence"))
    return replace(
        report,
        intervals=_intervals(report, askings),
        per_topic=_measured_groups("topic", report.per_topic, askings, is_whole),
        per_answer_type=_measured_groups("answer_type", report.per_answer_type, askings, is_whole),
        repeats=consistency(askings, repeats) if askings else None,
        calibration=calibration(report.samples, asked=asked) if is_whole else None,
    )


def _measured_groups(
    label: str, groups: Groups | None, askings: Sequence[ComparedRow], is_whole: bool
) -> Groups | None:
    if groups is None:
        return None
    asked = _by_group(label, askings)
    return {
        name: replace(
            group,
            intervals=_of_rates(_intervals(group, asked.get(name, []))) if is_whole or not askings else {},
        )
        for name, group in groups.items()
    }


def _grouped(label: str, done: Iterable[QuestionResult], askings: Iterable[ComparedRow]) -> dict[str, TopicReport]:
    """Count the rows by group: sorted by name, those without one last."""
    groups, asked = _by_group(label, done), _by_group(label, askings)
    return {
        group: _topic(Counts.from_results(groups[group]), asked.get(group, []))
        for group in sorted(groups, key=lambda group: (group == UNSPECIFIED, group))
    }


def _by_group(label: str, rows: Iterable[_Row]) -> dict[str, list[_Row]]:
    groups: dict[str, list[_Row]] = {}
    for row in rows:
        groups.setdefault(getattr(row, label) or UNSPECIFIED, []).append(row)
    return groups


def _topic(counts: Counts, askings: Sequence[ComparedRow]) -> TopicReport:
    return TopicReport(**asdict(counts), intervals=_of_rates(_intervals(counts, askings)))


def _of_rates(intervals: Intervals) -> Intervals:
    return {rate: intervals[rate] for rate in INTERVAL_RATES}


def _intervals(counts: Rates, askings: Sequence[ComparedRow]) -> Intervals:
    """Return the intervals of what was counted; `askings` are its rows where questions were asked several times."""
    return clustered_intervals(askings) if askings else intervals_of(counts)


def _usage(usages: Sequence[Usage]) -> dict[str, Any]:
    """Sum what one role spent."""
    latencies = sorted(usage.latency_s for usage in usages if usage.latency_s is not None)
    return {
        "calls": sum(usage.calls for usage in usages),
        "prompt_tokens": sum(usage.prompt_tokens for usage in usages),
        "completion_tokens": sum(usage.completion_tokens for usage in usages),
        "latency_s": {
            "p50": _percentile(latencies, 0.50),
            "p95": _percentile(latencies, 0.95),
            "max": latencies[-1],
        }
        if latencies
        else None,
    }


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile: always a value that was measured."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _provenance(
    given: Mapping[str, Any], done: Sequence[QuestionResult], other_parse: Callable[[str], Verdict | None] | None
) -> dict[str, Any]:
    """Add what only the results know: the model names that came back, and the rows that the parse rules part on."""
    known = dict(given)
    for role, usages in (("answer", [r.answer_usage for r in done]), ("judge", [r.judge_usage for r in done])):
        if names := sorted({usage.model for usage in usages if usage.model}):
            known[role] = {**known.get(role, {}), "returned_models": names}
    replies = [(r.judge_reply, r.verdict) for r in done if r.judge_reply is not None]
    known["paper_parse_differs"] = (
        sum(other_parse(reply) != verdict for reply, verdict in replies) if other_parse else None
    )
    return known
