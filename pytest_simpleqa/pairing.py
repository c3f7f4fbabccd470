"""Rows of one run or two, question by question: which belong together, and what they come to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .intervals import Difference, Part, counted, paired_difference, score_interval
from .metrics import Counts, Interval
from .records import GRADED, Question, QuestionResult, Verdict
from .report import Report

FAILED = "failed"
"""The status of a row that has a result and no verdict: a judge failure or an error."""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One row of a run, with what a comparison needs to know of it."""

    question_hash: str
    gold_hash: str | None
    """None where a recording holds no golds."""
    repeat: int = 1
    verdict: Verdict | None = None
    finished: bool = True
    """The row has a result; without a verdict it is then a failure."""
    id: str | None = None
    topic: str | None = None
    answer_type: str | None = None
    question: str | None = None
    gold: str | None = None
    predicted: str | None = None

    @property
    def status(self) -> str | None:
        """The verdict's word, `failed`, or None for a row without a result."""
        if self.verdict is not None:
            return self.verdict.value
        return FAILED if self.finished else None


# -- rows -----------------------------------------------------------------------------------------


def rows_of(
    population: Sequence[Question], results: Mapping[tuple[str, int], QuestionResult], repeats: int = 1
) -> list[ComparedRow]:
    """Return the rows of a run in dataset order; `results` by question id and repeat."""
    return [
        _row(question, repeat, results.get((question.id, repeat)))
        for question in population
        for repeat in range(1, repeats + 1)
    ]


def _row(question: Question, repeat: int, result: QuestionResult | None) -> ComparedRow:
    return ComparedRow(
        question.question_hash,
        question.gold_hash,
        repeat,
        result.verdict if result else None,
        finished=result is not None,
        id=question.id,
        topic=question.topic,
        answer_type=question.answer_type,
        question=question.problem,
        gold=question.answer,
        predicted=result.predicted if result else None,
    )


def rows_of_report(report: Report) -> list[ComparedRow]:
    """Return the rows of a Report; those that are not among its samples have neither topic nor texts.

    A row without a verdict is a failure in a complete run, else one only if it is among the samples.
    """
    samples: dict[tuple[str, int], list[QuestionResult]] = defaultdict(list)
    for sample in reversed(report.samples):
        samples[sample.fingerprint, sample.repeat].append(sample)
    rows = []
    for question_hash, gold_hash, repeat, verdict in report.verdicts:
        row = ComparedRow(question_hash, gold_hash, repeat, verdict, finished=report.complete or verdict is not None)
        twins = samples.get((f"{question_hash}-{gold_hash}", repeat))
        # An unfinished row has no sample: its twin's must stay where it is.
        if twins and (row.finished or twins[-1].verdict is None):
            row = _labelled(row, twins.pop())
        rows.append(row)
    return rows


def _labelled(row: ComparedRow, sample: QuestionResult) -> ComparedRow:
    return replace(
        row,
        finished=True,
        id=sample.id,
        topic=sample.topic,
        answer_type=sample.answer_type,
        question=sample.question,
        gold=sample.gold,
        predicted=sample.predicted,
    )


# -- pairing --------------------------------------------------------------------------------------

Asked = tuple[str, str | None, int]
"""What names a question in every run: its hash, its gold's hash, and which of its twins it is, from 0."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The rows of one question, now and before: one for each repeat that has a result."""

    now: tuple[ComparedRow, ...]
    before: tuple[ComparedRow, ...]


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which questions two runs share."""

    pairs: tuple[Pair, ...]
    """In the order of the run now."""
    only_here: int
    only_there: int
    changed_gold: int
    """Equal questions with another gold: not paired, and not among those that only one run has."""

    @property
    def differences(self) -> list[str]:
        """How the questions of the two runs differ, a phrase each; none where they do not."""
        counts = ((self.only_here, "only here"), (self.only_there, "only there"), (self.changed_gold, "changed gold"))
        return [f"{number:,} {words}" for number, words in counts if number]


def pair(rows: Iterable[ComparedRow], baseline_rows: Iterable[ComparedRow]) -> Pairing:
    """Pair rows by fingerprint, twins by occurrence, whatever their order; rows without a result are not there.

    Repeats stay together: a question asked three times pairs with one asked once. A baseline without
    golds pairs by question alone.
    """
    here, there = (_finished(by_question(each)) for each in (rows, baseline_rows))
    pairs, left_here = [], Counter[str]()
    for key, now in here.items():
        question_hash, _, twin = key
        before = there.pop(key, None) or there.pop((question_hash, None, twin), None)
        if before:
            pairs.append(Pair(now, before))
        else:
            left_here[question_hash] += 1
    left_there = Counter(question_hash for question_hash, _, _ in there)
    changed = (left_here & left_there).total()
    return Pairing(tuple(pairs), left_here.total() - changed, left_there.total() - changed, changed)


def by_question(rows: Iterable[ComparedRow]) -> dict[Asked, tuple[ComparedRow, ...]]:
    """Return the rows by question, in order; twins are counted for each repeat."""
    found: dict[Asked, list[ComparedRow]] = {}
    seen = Counter[tuple[str, str | None, int]]()
    for row in rows:
        asking = row.question_hash, row.gold_hash, row.repeat
        key = row.question_hash, row.gold_hash, seen[asking]
        seen[asking] += 1
        found.setdefault(key, []).append(row)
    return {key: tuple(askings) for key, askings in found.items()}


def _finished(questions: Mapping[Asked, Sequence[ComparedRow]]) -> dict[Asked, tuple[ComparedRow, ...]]:
    """Return what has a result; the twins were counted among all rows."""
    kept = {key: tuple(row for row in askings if row.finished) for key, askings in questions.items()}
    return {key: askings for key, askings in kept.items() if askings}


# -- measuring ------------------------------------------------------------------------------------

METRICS = ("accuracy", "attempted_accuracy", "abstention_rate", "hallucination_rate", "coverage", "f_score")

STATUSES = (*(verdict.value for verdict in GRADED), FAILED)
"""What a row can be that counts in a rate."""
# Every metric is a ratio of sums over rows, so one row counted alone gives its part.
_PARTS: dict[str, dict[str, Part]] = {
    metric: {
        status: Counts.from_statuses(["error" if status == FAILED else status]).fraction(metric) for status in STATUSES
    }
    for metric in METRICS
}


def furthest_status(metric: str, *, up: bool) -> str:
    """Return what a row without a verdict takes to move `metric` as far as it can, upwards or downwards.

    That is a verdict, but for coverage, which only such a row can lower.
    """
    choices = STATUSES if metric == "coverage" else STATUSES[:-1]
    # By what a part adds to numerator - ratio * denominator; at 1/2 the order is that of every ratio inside 0 to 1.
    gains = {status: a - b / 2 for status, (a, b) in _PARTS[metric].items() if status in choices}
    return (max if up else min)(gains, key=gains.__getitem__)


def measure(
    metric: str, rows: Iterable[ComparedRow], z: float, missing: str = FAILED
) -> tuple[float | None, Interval | None]:
    """Return a metric's value and its interval, clustered by question; `missing` stands for no verdict."""
    askings = by_question(_gradable(rows)).values()
    parts = [_sum(metric, question, missing) for question in askings]
    numerator, denominator = (sum(part[i] for part in parts) for i in (0, 1))
    repeats = max(map(len, askings), default=1)
    extremes = [(a * repeats, b * repeats) for a, b in _PARTS[metric].values()]
    interval = score_interval(counted(parts, extremes), z)
    return (numerator / denominator if denominator else None), interval


def difference(
    metric: str,
    pairs: Iterable[Pair],
    z: float,
    *,
    margin: float = 0.0,
    missing: tuple[str, str] = (FAILED, FAILED),
) -> Difference | None:
    """Return a metric's paired difference; `missing` stands for no verdict, now and before.

    None where there is no pair, or no row to count in one of the runs.
    """
    sides = [(_gradable(pair.now), _gradable(pair.before)) for pair in pairs]
    parts = [
        (_mean(metric, now, missing[0]), _mean(metric, before, missing[1])) for now, before in sides if now and before
    ]
    extremes = [(now, before) for now in _PARTS[metric].values() for before in _PARTS[metric].values()]
    return paired_difference(counted(parts, extremes), z, margin) if parts else None


def _gradable(rows: Iterable[ComparedRow]) -> Sequence[ComparedRow]:
    """Return the rows that can be right or wrong: none where what has a verdict was only recorded."""
    known = list(rows)
    kept = [row for row in known if row.verdict is not Verdict.RECORDED]
    return kept if len(kept) == len(known) or any(row.verdict for row in kept) else []


def _sum(metric: str, askings: Iterable[ComparedRow], missing: str) -> Part:
    parts = [_PARTS[metric][missing if row.verdict is None else row.verdict.value] for row in askings]
    return sum(a for a, _ in parts), sum(b for _, b in parts)


def _mean(metric: str, askings: Sequence[ComparedRow], missing: str) -> Part:
    numerator, denominator = _sum(metric, askings, missing)
    return numerator / len(askings), denominator / len(askings)
