"""A run beside its baseline: what flipped, where, and whether it could be chance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_simpleqa.baseline import read_baseline
from pytest_simpleqa.comparison import REGRESSIONS_KEPT, Comparison, compare
from pytest_simpleqa.intervals import mcnemar

from .letters import baseline, run


def compared(
    letters: str, before: str, topics: str = "", repeats: int = 1, repeats_before: int | None = None
) -> Comparison:
    _, rows = run(letters, topics, repeats)
    return compare(rows, baseline(before, repeats if repeats_before is None else repeats_before))


def test_flips_are_told_apart() -> None:
    """The four ways of winning or losing a right answer have counts of their own."""
    found = compared("AABCCAA", "BCAAAAA")
    assert found.flips == {
        "incorrect_to_correct": 1,
        "not_attempted_to_correct": 1,
        "correct_to_incorrect": 1,
        "correct_to_not_attempted": 2,
    }


def test_every_transition_is_counted() -> None:
    """The table from before to now holds each row once, failures too."""
    letters = "ABC?" * 4
    table = compared(letters, "".join(letter * 4 for letter in "ABC?")).to_json()["transitions"]
    assert [list(line.values()) for line in table.values()] == [[1] * 4] * 4
    assert list(table) == list(table["correct"]) == ["correct", "incorrect", "not_attempted", "failed"]


def test_mcnemar_looks_at_answers_won_and_lost() -> None:
    """The test counts flips between verdicts; a failure on either side is no flip."""
    found = compared("AAAAAB?A", "BBBBBAA?").to_json()["mcnemar"]
    assert found == {"gained": 5, "lost": 1, "p": mcnemar(5, 1)}


def test_every_metric_is_side_by_side() -> None:
    """Each metric has both values, the difference and its interval."""
    metrics = compared("AABC", "ABBB").to_json()["metrics"]
    assert list(metrics) == [
        "accuracy",
        "attempted_accuracy",
        "abstention_rate",
        "hallucination_rate",
        "coverage",
        "f_score",
    ]
    accuracy = metrics["accuracy"]
    assert (accuracy["baseline"], accuracy["value"], accuracy["difference"]) == (0.25, 0.5, 0.25)
    assert accuracy["interval"][0] < 0.25 < accuracy["interval"][1]
    assert compared("CC", "AA").to_json()["metrics"]["attempted_accuracy"] is None


def test_the_worst_topics_come_first() -> None:
    """Topics stand by their difference in accuracy; without any topic there is no list."""
    topics = compared("AABBA", "BAAAA", topics="aabb ").to_json()["topics"]
    assert [(topic["topic"], topic["questions"], topic["difference"]) for topic in topics] == [
        ("b", 2, -1.0),
        ("(unspecified)", 1, 0.0),
        ("a", 2, 0.5),
    ]
    assert compared("A", "B").topics == ()


def test_regressions_show_question_gold_before_and_now() -> None:
    """The first right answers that were lost are told with both answers, in dataset order."""
    found = compared("B" * 30, "A" * 29 + "B").to_json()
    assert (found["regressed"], len(found["regressions"])) == (29, REGRESSIONS_KEPT)
    assert found["regressions"][1] == {
        "id": "q0002",
        "topic": None,
        "question": "Question 2?",
        "gold": "gold 2",
        "repeat": 1,
        "before": {"verdict": "correct", "predicted": "said A"},
        "now": {"verdict": "incorrect", "predicted": "said B"},
    }


def test_failures_are_no_regressions() -> None:
    """A right answer before and a failure now says nothing of the model."""
    assert compared("?C", "AA").to_json()["regressed"] == 1


def test_repeats_are_compared_by_question() -> None:
    """With repeats a difference is one of questions' means, and there is no test that takes rows for independent."""
    found = compared("AAAB", "BBBB", repeats=2).to_json()
    assert (found["questions"], found["rows"], found["mcnemar"]["p"]) == (2, 4, None)
    assert found["metrics"]["accuracy"]["difference"] == 0.75


def test_repeats_pair_with_a_question_asked_once() -> None:
    """Each repeat is compared with the one answer of a baseline without repeats."""
    found = compared("AAAB", "BB", repeats=2, repeats_before=1)
    assert (found.to_json()["rows"], found.flips["incorrect_to_correct"]) == (4, 3)


def test_nothing_in_common_is_a_comparison_of_nothing() -> None:
    """Two runs without a common question give counts of 0 and no figures."""
    found = compared("AA", "").to_json()
    assert (found["questions"], found["only_here"], found["mcnemar"]["p"]) == (0, 2, None)
    assert set(found["metrics"].values()) == {None}


def test_a_report_is_compared_by_what_it_keeps() -> None:
    """A Report without the texts of all rows is compared all the same, in strict JSON."""
    report, _ = run("BBB", max_samples=1)
    found = compare(report, baseline("AAA")).to_json()
    assert [each["question"] for each in found["regressions"]] == ["Question 1?", "Question 2?", "Question 3?"]
    assert [each["now"]["predicted"] for each in found["regressions"]] == ["said B", None, None]
    assert json.dumps(found, allow_nan=False)


def test_real_runs_are_compared(shared_data: Path) -> None:
    """Two real models on 4,326 questions: the flips add up, and are no chance."""
    runs = shared_data / "runs"
    large = read_baseline(runs / "gpt-4o-2024-11-20.csv.gz")
    small = read_baseline(runs / "gpt-4o-mini-2024-07-18.csv.gz")
    found = compare(large.rows, small).to_json()
    assert found["metrics"]["accuracy"]["difference"] == pytest.approx((1345 - 347) / 4326)
    assert found["mcnemar"]["gained"] - found["mcnemar"]["lost"] == 1345 - 347
    assert found["mcnemar"]["p"] < 1e-100
    assert found["rows"] == sum(sum(line.values()) for line in found["transitions"].values()) == 4326
    assert found["regressed"] == found["mcnemar"]["lost"]
    same = compare(large.rows, large).to_json()
    assert set(same["flips"].values()) == {0}
    assert same["metrics"]["f_score"]["difference"] == 0
