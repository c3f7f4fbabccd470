"""The numbers: counts, rates and intervals."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from pytest_simpleqa.metrics import INTERVAL_RATES, Counts, wilson
from pytest_simpleqa.records import Failure, QuestionResult, Verdict

RECORDED = Counts(n=4326, correct=1345, incorrect=2904, not_attempted=77)
"""A real run of gpt-4o on the Czech set."""


def test_recorded_counts_give_the_published_rates() -> None:
    """A real run's counts give its published rates."""
    assert RECORDED.accuracy == pytest.approx(0.3109, abs=5e-5)
    assert RECORDED.attempted_accuracy == pytest.approx(0.3165, abs=5e-5)
    assert RECORDED.abstention_rate == pytest.approx(0.0178, abs=5e-5)
    assert RECORDED.hallucination_rate == pytest.approx(0.6713, abs=5e-5)
    assert RECORDED.f_score == pytest.approx(0.3137, abs=5e-5)
    assert RECORDED.coverage == 1.0


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("gpt-4o-2024-11-20.csv.gz", (4326, 1345, 2904, 77)),
        ("gpt-4o-mini-2024-07-18.csv.gz", (4326, 347, 3913, 66)),
    ],
)
def test_recorded_runs_are_counted(shared_data: Path, file: str, counts: tuple[int, ...]) -> None:
    """Counting the grades of a real run gives its known counts."""
    words = {"A": "correct", "B": "incorrect", "C": "not_attempted"}
    with gzip.open(shared_data / "runs" / file, "rt", encoding="utf-8", newline="") as rows:
        found = Counts.from_statuses(words[row["grade"]] for row in csv.DictReader(rows))
    assert found == Counts(*counts)


def test_failures_stay_in_the_denominator() -> None:
    """A failed row counts in n: 2 correct, 1 incorrect, 1 not attempted, 1 failed are five rows."""
    counts = Counts.from_statuses(["correct", "correct", "incorrect", "not_attempted", "error"])
    assert (counts.n, counts.accuracy, counts.f_score) == (5, 0.4, 0.5)
    assert counts.attempted_accuracy == pytest.approx(2 / 3)
    assert counts.coverage == 0.8
    assert counts.failures == 1


def test_rates_without_a_denominator_are_none() -> None:
    """No rows give no rate, and only abstentions give no attempted accuracy: never 0.0, never an exception."""
    assert [Counts().rate(rate) for rate in (*INTERVAL_RATES, "coverage", "f_score")] == [None] * 6
    assert Counts().interval("accuracy") is None
    only_abstained = Counts(n=3, not_attempted=3)
    assert only_abstained.attempted_accuracy is None
    assert only_abstained.accuracy == 0.0


def test_every_rate_is_a_fraction_in_one_unit() -> None:
    """F and the shares are all fractions from 0 to 1."""
    counts = Counts(n=5, correct=2, incorrect=2, not_attempted=1)
    assert counts.f_score == pytest.approx(4 / 9)
    assert (counts.accuracy, counts.attempted_accuracy) == (0.4, 0.5)


def test_totals_are_by_row_not_by_group() -> None:
    """Adding the counts of two topics weighs rows, not topics."""
    total = Counts(n=1, correct=1) + Counts(n=3, incorrect=3)
    assert total == Counts(n=4, correct=1, incorrect=3)
    assert total.accuracy == 0.25


def test_counts_must_add_up() -> None:
    """Counts that do not add up to n, or an unknown status, cannot exist."""
    with pytest.raises(AssertionError, match="add up to 1, not to n = 2"):
        Counts(n=2, correct=1)
    with pytest.raises(AssertionError):
        Counts.from_statuses(["correct", "ungraded"])
    with pytest.raises(AssertionError, match="negative"):
        Counts(n=0, correct=1, incorrect=-1)


def test_results_are_counted_by_status() -> None:
    """A failed judge is neither incorrect nor not attempted, and no answer is an error."""

    def result(predicted: str | None, verdict: Verdict | None) -> QuestionResult:
        error = None if verdict else Failure("timeout", "late")
        return QuestionResult("q1", "Who?", "X", None, None, "a-b", predicted=predicted, verdict=verdict, error=error)

    rows = [result("X", Verdict.CORRECT), result("X", None), result(None, None)]
    assert Counts.from_results(rows) == Counts(n=3, correct=1, judge_failures=1, errors=1)


def test_recorded_rows_count_in_no_rate() -> None:
    """What is neither right nor wrong leaves the denominators; beside it failures alone give no rate."""
    mixed = Counts.from_statuses(["correct", "incorrect", "recorded", "recorded"])
    assert (mixed.n, mixed.recorded, mixed.accuracy, mixed.coverage, mixed.f_score) == (4, 2, 0.5, 1.0, 0.5)
    only = Counts.from_statuses(["recorded", "error"])
    assert [only.rate(rate) for rate in (*INTERVAL_RATES, "coverage", "f_score")] == [None] * 6
    assert (mixed + only).recorded == 3


def test_wilson_agrees_with_known_values() -> None:
    """The interval is Wilson's, without continuity correction."""
    assert wilson(1, 5) == pytest.approx((0.0362, 0.6245), abs=5e-5)
    assert wilson(1, 2) == pytest.approx((0.0945, 0.9055), abs=5e-5)
    assert wilson(1345, 4326) == pytest.approx((0.29729, 0.32487), abs=5e-6)


@pytest.mark.parametrize("n", [1, 7, 4326, 10**6])
def test_wilson_is_exact_at_its_ends(n: int) -> None:
    """No success gives a low end of exactly 0, nothing but successes a high end of exactly 1."""
    none, every = wilson(0, n), wilson(n, n)
    assert none is not None
    assert every is not None
    assert (none[0], every[1]) == (0.0, 1.0)
    assert none[1] == pytest.approx(1 - every[0])


def test_wilson_contains_the_share() -> None:
    """The share lies inside its interval, and the interval inside 0 to 1."""
    for n in range(1, 40):
        for successes in range(n + 1):
            low, high = wilson(successes, n) or (2.0, -1.0)
            assert 0 <= low <= successes / n <= high <= 1


def test_f_score_has_no_wilson_interval() -> None:
    """An interval is refused for the one figure that is no share of rows, and for unknown names."""
    with pytest.raises(AssertionError, match="f_score"):
        RECORDED.interval("f_score")
    with pytest.raises(KeyError):
        RECORDED.rate("recall")
