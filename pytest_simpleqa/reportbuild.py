"""A Report put together from the results of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from .metrics import Counts
from .records import Question, QuestionResult, Usage, Verdict
from .report import UNSPECIFIED, Report, TopicReport


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
) -> Report:
    """Return the Report of `results`, keyed by question id and repeat (from 1).

    `population` is in dataset order; a result that belongs to none of its rows is left out.
    `selected` counts rows and defaults to all of them. `other_parse` is the parse rule that the run
    did not use (`paper` for a strict run): the replies that it grades otherwise are counted as
    `paper_parse_differs` in the provenance, which is None without it. `max_samples=-1` keeps all.
    """
    assert started_at.tzinfo is not None, "started_at needs a zone"
    rows = [(question, repeat) for question in population for repeat in range(1, repeats + 1)]
    found = {(q.id, repeat): results[q.id, repeat] for q, repeat in rows if (q.id, repeat) in results}
    done = list(found.values())
    counts = Counts.from_results(done)
    return Report(
        name=dataset if name is None else name,
        dataset=dataset,
        model=model,
        judge=judge,
        started_at=started_at.replace(microsecond=0),
        duration_ms=round(duration_s * 1000),
        population=len(rows),
        # Rows finished ahead of a stop count, so there may be more results than the selection knew of.
        selected=len(rows) if selected is None else max(selected, counts.n),
        **asdict(counts),
        per_topic=_grouped((r.topic, r.status) for r in done) if topic_breakdown else None,
        per_answer_type=_grouped((r.answer_type, r.status) for r in done) if topic_breakdown else None,
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
    )


def _grouped(rows: Iterable[tuple[str | None, str]]) -> dict[str, TopicReport]:
    """Count statuses by group: sorted by name, the rows without one last."""
    groups: dict[str, list[str]] = {}
    for group, status in rows:
        groups.setdefault(group or UNSPECIFIED, []).append(status)
    order = sorted(groups, key=lambda group: (group == UNSPECIFIED, group))
    return {group: TopicReport.from_statuses(groups[group]) for group in order}


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
