"""Whether answers are as often right as they claim."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pytest_simpleqa.calibration import (
    Claim,
    auroc,
    brier_score,
    calibration,
    calibration_error,
    coverage_curve,
    reliability,
)
from pytest_simpleqa.metrics import wilson
from pytest_simpleqa.records import Failure, Question, QuestionResult, Verdict

WORDS = {"A": Verdict.CORRECT, "B": Verdict.INCORRECT, "C": Verdict.NOT_ATTEMPTED}


def claims(*pairs: tuple[float, int]) -> list[Claim]:
    return [Claim(confidence, bool(right), f"q{i}") for i, (confidence, right) in enumerate(pairs)]


def result(letter: str, extra: Any = None, number: int = 1, repeat: int = 1) -> QuestionResult:
    question = Question(f"q{number}", "Who?", "X")
    error = None if letter in WORDS else Failure("timeout", "late")
    predicted = None if letter == "!" else "X"
    return QuestionResult.for_question(
        question, repeat, predicted=predicted, verdict=WORDS.get(letter), error=error, extra=extra
    )


def results(*pairs: tuple[str, Any]) -> list[QuestionResult]:
    return [result(letter, {"confidence": value}, i) for i, (letter, value) in enumerate(pairs)]


FOUR = claims((0.9, 1), (0.8, 0), (0.8, 1), (0.3, 0))


def test_the_calibration_error_is_weighted_by_bin() -> None:
    """Two answers at .8 of which one is right, one right at .9, one wrong at .3: (.6 + .1 + .3) / 4."""
    assert calibration_error(FOUR) == pytest.approx((abs(1 - 1.6) + 0.1 + 0.3) / 4)


def test_gaps_within_a_bin_cancel() -> None:
    """Within one bin the mean counts: .62 right and .68 wrong are off by .15 together."""
    assert calibration_error(claims((0.62, 1), (0.68, 0))) == pytest.approx(abs(0.5 - 0.65))


def test_the_brier_score_is_a_mean_square() -> None:
    """Each answer's distance from what it turned out to be, squared."""
    assert brier_score(FOUR) == pytest.approx((0.01 + 0.64 + 0.04 + 0.09) / 4)
    assert brier_score(claims((1, 1), (0, 0))) == 0
    assert brier_score(claims((0.5, 1), (0.5, 0))) == 0.25


def test_the_area_counts_pairs() -> None:
    """Of the pairs right and wrong, the share in which the right one is surer; a tie is half a pair."""
    assert auroc(FOUR) == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    assert auroc(claims((0.9, 1), (0.1, 0))) == 1
    assert auroc(claims((0.1, 1), (0.9, 0))) == 0
    assert auroc(claims((0.5, 1), (0.5, 0), (0.5, 0))) == 0.5


@pytest.mark.parametrize("right", [0, 1])
def test_one_kind_of_answer_has_no_area(right: int) -> None:
    """Without a right or without a wrong answer there is no pair."""
    assert auroc(claims((0.9, right), (0.2, right))) is None


def test_bins_hold_their_upper_end() -> None:
    """Whole tenths are the upper end of their bin, whatever floating point makes of them; 0 is in the first."""
    for tenth in range(1, 11):
        table = reliability(claims((tenth / 10, 1)))
        assert [row["n"] for row in table].index(1) == tenth - 1
    assert reliability(claims((0, 1)))[0]["n"] == 1
    assert reliability(claims((0.7000001, 1)))[7]["n"] == 1


def test_the_table_tells_each_bin() -> None:
    """A bin has its bounds, its answers, their mean confidence, how many were right, and Wilson's interval of that."""
    table = reliability(claims((0.82, 1), (0.84, 1), (0.86, 0)))
    assert len(table) == 10
    assert {key: table[8][key] for key in ("low", "high", "n")} == {"low": 0.8, "high": 0.9, "n": 3}
    assert table[8]["confidence"] == pytest.approx(0.84)
    assert table[8]["accuracy"] == pytest.approx(2 / 3)
    assert table[8]["interval"] == pytest.approx(wilson(2, 3), abs=5e-5)
    assert table[0] == {"low": 0.0, "high": 0.1, "n": 0, "confidence": None, "accuracy": None, "interval": None}


def test_repeats_in_a_bin_are_one_question() -> None:
    """Five askings of each of two questions leave the certainty of two, not of ten."""
    rows = [Claim(0.85, question == "a", question) for question in "ab" for _ in range(5)]
    assert reliability(rows)[8]["interval"] == pytest.approx(wilson(1, 2), abs=5e-5)


def test_the_curve_goes_from_the_surest_to_all() -> None:
    """Every tenth of the answers, the surest first, adds a point."""
    rows = claims(*((k / 100, int(k > 50)) for k in range(1, 101)))
    curve = coverage_curve(rows)
    assert [point["coverage"] for point in curve] == [tenth / 10 for tenth in range(1, 11)]
    assert [point["threshold"] for point in curve] == [k / 100 for k in range(91, 0, -10)]
    assert [point["accuracy"] for point in curve[:5]] == [1] * 5
    assert curve[-1]["accuracy"] == 0.5


def test_equally_sure_answers_stay_together() -> None:
    """A tie is never cut: its point keeps all of it."""
    curve = coverage_curve(claims((0.9, 1), *[(0.5, right) for right in (1, 0, 0, 0)]))
    assert curve == [
        {"threshold": 0.9, "coverage": 0.2, "accuracy": 1},
        {"threshold": 0.5, "coverage": 1.0, "accuracy": 0.4},
    ]


def test_the_order_of_the_answers_does_not_matter() -> None:
    """Shuffled answers give the same figures."""
    rows = claims(*((k / 20, k % 3 == 0) for k in range(21)))
    mixed = random.Random(1).sample(rows, len(rows))
    assert auroc(rows) == auroc(mixed)
    assert coverage_curve(rows) == coverage_curve(mixed)
    assert calibration_error(rows) == pytest.approx(calibration_error(mixed))


def test_one_answer_is_enough() -> None:
    """A single answer has every figure but the area."""
    found = calibration(results(("A", 0.75)))
    assert found is not None
    assert (found["n"], found["confidence"], found["accuracy"], found["auroc"]) == (1, 0.75, 1, None)
    assert (found["ece"], found["brier"]) == (0.25, 0.0625)
    assert found["curve"] == [{"threshold": 0.75, "coverage": 1.0, "accuracy": 1.0}]


def test_what_was_not_attempted_claims_nothing() -> None:
    """Rows that were not attempted, and rows without a verdict, are left out whatever they carry."""
    attempted = results(("A", 0.9), ("B", 0.4))
    others = results(("C", 0.95), ("?", 0.9), ("!", None))
    assert calibration([*attempted, *others]) == calibration(attempted)


def test_what_is_no_fraction_is_counted_and_not_used() -> None:
    """A confidence outside 0 to 1, or none, is told by number and changes nothing else."""
    strange = results(("A", 85), ("B", -0.1), ("A", "high"), ("B", True), ("A", float("nan")))
    found = calibration([*results(("A", 0.9)), *strange, result("B"), result("B", {"trace": []})])
    assert found is not None
    assert (found["n"], found["out_of_range"], found["no_confidence"]) == (1, 5, 2)
    assert found["accuracy"] == 1


def test_no_confidence_is_no_calibration() -> None:
    """Where no answer carries a confidence there is no table, unless every answer was asked for one."""
    rows = [result("A"), result("B", {"trace": []})]
    assert calibration(rows) is None
    found = calibration(rows, asked=True)
    assert found is not None
    assert (found["n"], found["no_confidence"], found["curve"]) == (0, 2, [])
    assert {found[key] for key in ("confidence", "accuracy", "ece", "brier", "auroc")} == {None}
    assert calibration([], asked=True) is not None


def test_a_calibrated_model_has_a_small_error() -> None:
    """Answers that are right as often as they say leave next to no error, those that boast all of it."""
    rng = random.Random(2)
    honest = [Claim(c := rng.random(), rng.random() < c, f"q{i}") for i in range(20_000)]
    boasting = [Claim(1.0, right, question) for _, right, question in honest]
    assert (calibration_error(honest) or 1) < 0.015
    assert calibration_error(boasting) == pytest.approx(0.5, abs=0.015)
    assert brier_score(honest) == pytest.approx(1 / 6, abs=0.01)
    assert auroc(honest) == pytest.approx(5 / 6, abs=0.01)
