"""A run beside its baseline: differences, flips, topics and regressions on the questions that both were asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .baseline import Baseline
from .intervals import Difference, mcnemar, z_of
from .pairing import METRICS, STATUSES, ComparedRow, Pair, Pairing, difference, pair, rows_of_report
from .records import Verdict
from .report import UNSPECIFIED, Report

REGRESSIONS_KEPT = 20
TOPICS_KEPT = 10

FLIPS = (
    ("incorrect", "correct"),
    ("not_attempted", "correct"),
    ("correct", "incorrect"),
    ("correct", "not_attempted"),
)
"""The four ways of winning or losing a right answer: before, now."""

_Z = z_of(0.95)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs come to on the same questions."""

    baseline: Baseline
    pairing: Pairing
    metrics: Mapping[str, Difference | None]
    """By name; None where a run has no row to count."""
    transitions: Mapping[tuple[str, str], int]
    """Rows by status before and now: the verdicts, and `failed` for none."""
    p: float | None
    """Mid-p of McNemar's exact test on accuracy; None with repeats, which are not independent."""
    topics: tuple[tuple[str, int, Difference], ...]
    """Topic, questions and the difference in accuracy; the worst first."""
    regressions: tuple[tuple[ComparedRow, ComparedRow], ...]
    """Rows that were correct and are incorrect or not attempted now: before, now; in the order of the run now."""

    @property
    def flips(self) -> dict[str, int]:
        """Count the four ways of winning or losing a right answer, `before_to_now`."""
        return {f"{before}_to_{now}": self.transitions[before, now] for before, now in FLIPS}

    def to_json(self) -> dict[str, Any]:
        """Return what stands in `Report.comparison`."""
        statuses = self.transitions
        return {
            "baseline": self.baseline.name,
            "model": self.baseline.model,
            "judge": self.baseline.judge,
            **({"wrapped_by": [dict(each) for each in self.baseline.wrapped_by]} if self.baseline.wrapped_by else {}),
            "questions": len(self.pairing.pairs),
            "rows": sum(statuses.values()),
            "only_here": self.pairing.only_here,
            "only_there": self.pairing.only_there,
            "changed_gold": self.pairing.changed_gold,
            "metrics": {name: _difference_to_json(each) for name, each in self.metrics.items()},
            "mcnemar": {**_discordant(statuses), "p": self.p},
            "flips": self.flips,
            "transitions": {before: {now: statuses[before, now] for now in STATUSES} for before in STATUSES},
            "topics": [
                {"topic": topic, "questions": number, **(_difference_to_json(each) or {})}
                for topic, number, each in self.topics[:TOPICS_KEPT]
            ],
            "regressed": len(self.regressions),
            "regressions": [_regression_to_json(*each) for each in self.regressions[:REGRESSIONS_KEPT]],
        }


def compare(run: Report | Sequence[ComparedRow], baseline: Baseline) -> Comparison:
    """Return the comparison of a run, its rows or the Report of them, with an earlier one."""
    pairing = pair(rows_of_report(run) if isinstance(run, Report) else run, baseline.rows)
    rows = [both for each in pairing.pairs for both in _row_by_row(each)]
    transitions = Counter((str(before.status), str(now.status)) for before, now in rows)
    repeated = any(len(each.now) > 1 or len(each.before) > 1 for each in pairing.pairs)
    return Comparison(
        baseline,
        pairing,
        {metric: difference(metric, pairing.pairs, _Z) for metric in METRICS},
        transitions,
        None if repeated or not pairing.pairs else mcnemar(**_discordant(transitions)),
        tuple(_topics(pairing.pairs)),
        tuple(
            (before, now)
            for before, now in rows
            if before.verdict == Verdict.CORRECT and now.verdict in (Verdict.INCORRECT, Verdict.NOT_ATTEMPTED)
        ),
    )


def _row_by_row(pair: Pair) -> Iterator[tuple[ComparedRow, ComparedRow]]:
    """Yield (before, now) for each repeat that both have; a question asked once pairs with every repeat."""
    if len(pair.now) == 1 or len(pair.before) == 1:
        yield from ((before, now) for now in pair.now for before in pair.before)
        return
    by_repeat = {row.repeat: row for row in pair.before}
    yield from ((by_repeat[now.repeat], now) for now in pair.now if now.repeat in by_repeat)


def _discordant(transitions: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Count the right answers won and lost between two verdicts: a failure is none."""
    return {
        "gained": sum(transitions[before, now] for before, now in FLIPS if now == "correct"),
        "lost": sum(transitions[before, now] for before, now in FLIPS if before == "correct"),
    }


def _topics(pairs: Iterable[Pair]) -> list[tuple[str, int, Difference]]:
    """Return the topics by their difference in accuracy, the worst first; none where no row has a topic."""
    groups: dict[str, list[Pair]] = {}
    for each in pairs:
        groups.setdefault(each.now[0].topic or UNSPECIFIED, []).append(each)
    if set(groups) <= {UNSPECIFIED}:
        return []
    found = [(topic, len(group), difference("accuracy", group, _Z)) for topic, group in groups.items()]
    known = [(topic, number, each) for topic, number, each in found if each is not None]
    return sorted(known, key=lambda topic: (topic[2].difference, topic[0]))


def _difference_to_json(each: Difference | None) -> dict[str, Any] | None:
    if each is None:
        return None
    return {
        "baseline": each.before,
        "value": each.now,
        "difference": each.difference,
        "interval": [round(end, 4) for end in each.interval],
        "detectable": round(each.detectable, 4),
    }


def _regression_to_json(before: ComparedRow, now: ComparedRow) -> dict[str, Any]:
    return {
        "id": now.id,
        "topic": now.topic,
        "question": now.question or before.question,
        "gold": now.gold or before.gold,
        "repeat": now.repeat,
        "before": {"verdict": before.status, "predicted": before.predicted},
        "now": {"verdict": now.status, "predicted": now.predicted},
    }
