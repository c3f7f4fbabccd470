"""Reports of shards become one Report, where nothing else was kept of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from .errors import RunError
from .records import QuestionResult
from .report import UNSPECIFIED, Groups, Report, TopicReport
from .reportbuild import measured
from .trust import merged_tallies

_SAME = ("dataset", "model", "judge", "name")
_SAME_PROVENANCE = ("dataset_sha256", "answer_prompt_sha256", "grade_prompt_sha256", "answer", "judge", "eval")
_SAME_OPTIONS = ("parse", "repeats", "limit_questions", "sample", "seed", "topics", "include_topic_breakdown")
_OF_A_SESSION = ("returned_models", "dropped_params")


class NamedReport(NamedTuple):
    """A Report, and what it is called in errors."""

    name: str
    report: Report

    @property
    def share(self) -> tuple[int, int]:
        """Which of how many, from 1."""
        part, parts = self.report.options.get("shard") or (1, 1)
        return part, parts


def merge_reports(given: Iterable[NamedReport]) -> Report:
    """Return the Report of the whole run. Raises RunError where they are not all the shards of one run.

    All numbers are those of the run that was never parted, but for the latencies' percentiles, which are
    None: they do not follow from those of the shards.
    """
    ordered = sorted(given, key=lambda each: (each.share, each.name))
    first = ordered[0]
    for other in ordered[1:]:
        require_same_reports(first, other)
    shards = [each.report for each in _one_of_each(ordered)]
    repeats = first.report.options.get("repeats", 1)
    most = first.report.options.get("max_samples", 200)
    samples = _interleaved([_places(report, repeats) for report in shards])
    started_at = min(report.started_at for report in shards)
    ended_at = max(report.started_at + timedelta(seconds=report.duration_s) for report in shards)
    counts = (
        "population",
        "selected",
        "n",
        "correct",
        "incorrect",
        "not_attempted",
        "judge_failures",
        "errors",
        "recorded",
    )
    merged = replace(
        shards[0],
        **{name: sum(getattr(report, name) for report in shards) for name in (*counts, "resumed")},
        started_at=started_at,
        duration_ms=round((ended_at - started_at) / timedelta(milliseconds=1)),
        per_topic=_groups([report.per_topic for report in shards]),
        per_answer_type=_groups([report.per_answer_type for report in shards]),
        samples=tuple(row for row in chain(*samples) if row is not None)[: None if most < 0 else most],
        verdicts=tuple(chain(*_interleaved([_chunks(report.verdicts, repeats) for report in shards]))),
        options={**shards[0].options, "shard": [1, 1]},
        usage={role: _usage([report.usage.get(role) or {} for report in shards]) for role in ("answer", "judge")},
        provenance=_provenance(shards),
        sentinels=merged_tallies(report.sentinels for report in shards),
        metrics=None,  # no sum of theirs: an eval makes them of all its results
        gates=(),
        comparison=None,
        exit_status=None,
    )
    return measured(merged)


# -- whether they belong together -----------------------------------------------------------------


def require_same_reports(first: NamedReport, other: NamedReport) -> None:
    """Raise RunError, naming the difference, where two Reports are not of one run."""
    pairs = [
        *((key, getattr(first.report, key), getattr(other.report, key)) for key in _SAME),
        *((key, *(_told(each.report.provenance.get(key)) for each in (first, other))) for key in _SAME_PROVENANCE),
        *((key, *(each.report.options.get(key) for each in (first, other))) for key in _SAME_OPTIONS),
    ]
    for key, there, here in pairs:
        if there != here:
            shown = (json.dumps(value, ensure_ascii=False, default=str)[:80] for value in (there, here))
            raise RunError(f"{other.name} is no shard of the run of {first.name}: {key}: {' there, '.join(shown)} here")


def _told(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    return {key: value for key, value in part.items() if key not in _OF_A_SESSION}


def _one_of_each(shards: Sequence[NamedReport]) -> list[NamedReport]:
    """Return one Report of each share. Raises RunError for a missing one, or for two that disagree."""
    parts = shards[0].share[1]
    found: dict[int, NamedReport] = {}
    for each in shards:
        if each.share[1] != parts:
            raise RunError(f"{each.name} is one of {each.share[1]} shards, {shards[0].name} one of {parts}")
        known = found.setdefault(each.share[0], each)
        for old, new in zip_longest(known.report.verdicts, each.report.verdicts):
            if old != new:
                said = ", ".join(str(row[3]) if row else "not asked" for row in (old, new))
                raise RunError(f"{known.name} and {each.name} disagree on question {(old or new)[0]}: {said}")
    missing = [f"{part}/{parts}" for part in range(1, parts + 1) if part not in found]
    if missing:
        raise RunError(
            f"missing are the shards {', '.join(missing)}; Reports alone do not tell what those were to ask: merge run "
            "directories, beside the dataset"
        )
    return list(found.values())


# -- putting together -----------------------------------------------------------------------------


def _interleaved(shards: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the first of each shard, then the second of each: shard I of N holds every N-th question from I."""
    return [each for row in zip_longest(*shards) for each in row if each is not None]


def _chunks(rows: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _places(report: Report, repeats: int) -> list[list[QuestionResult | None]]:
    """Return the samples at their rows' places, by question; None where a row has none."""
    samples = iter(report.samples)
    waiting = next(samples, None)
    placed: list[QuestionResult | None] = []
    for question_hash, gold_hash, repeat, verdict in report.verdicts:
        row = f"{question_hash}-{gold_hash}", repeat, verdict
        if waiting is not None and row == (waiting.fingerprint, waiting.repeat, waiting.verdict):
            placed.append(waiting)
            waiting = next(samples, None)
        else:
            placed.append(None)
    return [list(chunk) for chunk in _chunks(placed, repeats)]


def _groups(shards: Sequence[Groups | None]) -> Groups | None:
    if any(groups is None for groups in shards):
        return None
    names = {name for groups in shards for name in groups or ()}
    return {
        name: _sum([groups[name] for groups in shards if groups and name in groups])
        for name in sorted(names, key=lambda name: (name == UNSPECIFIED, name))
    }


def _sum(groups: Iterable[TopicReport]) -> TopicReport:
    names = ("n", "correct", "incorrect", "not_attempted", "judge_failures", "errors", "recorded")
    known = list(groups)
    return TopicReport(**{name: sum(getattr(group, name) for group in known) for name in names})


def _usage(shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = ("calls", "prompt_tokens", "completion_tokens")
    return {**{name: sum(usage.get(name) or 0 for usage in shards) for name in names}, "latency_s": None}


def _provenance(shards: Sequence[Report]) -> dict[str, Any]:
    known = dict(shards[0].provenance)
    for role in ("answer", "judge"):
        parts = [part for report in shards if isinstance(part := report.provenance.get(role), Mapping)]
        if names := sorted({name for part in parts for name in part.get("returned_models") or ()}):
            known[role] = {**parts[0], "returned_models": names}
    differing = [report.provenance.get("paper_parse_differs") for report in shards]
    known["paper_parse_differs"] = None if None in differing else sum(number or 0 for number in differing)
    return known
