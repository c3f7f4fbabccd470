"""Questions asked several times: how often the answers agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_simpleqa.metrics import wilson
from pytest_simpleqa.pairing import rows_of
from pytest_simpleqa.repeats import clustered_intervals, consistency

from .letters import questions, results, run


def consistency_of(letters: str, repeats: int) -> dict[str, Any]:
    return consistency(run(letters, repeats=repeats)[1])


def test_consistency_is_the_share_of_the_most_frequent_verdict() -> None:
    """Every question has its own share, and the run their mean."""
    found = consistency_of("AAAAABABCB?!", 3)
    assert [each["consistency"] for each in found["per_question"]] == pytest.approx([1, 2 / 3, 1 / 3, 1 / 3])
    assert found["consistency"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 4)
    assert (found["questions"], found["repeats"], found["unanimous"]) == (4, 3, 0.25)


def test_right_once_and_always() -> None:
    """Shares of questions that were right at least once, and every time."""
    found = consistency_of("AAAAABCACBBB", 3)
    assert (found["ever_correct"], found["always_correct"]) == (0.75, 0.25)
    assert [each["correct"] for each in found["per_question"]] == [3, 2, 1, 0]
    assert found["per_question"][2]["id"] == "q0003"


def test_failures_agree_with_nothing() -> None:
    """A question that only failed is not consistent, and a failure is never part of the majority."""
    assert consistency_of("??A!", 2)["consistency"] == 0.25


def test_missing_repeats_are_not_counted() -> None:
    """A repeat without a result leaves the others to themselves."""
    found = consistency_of("A..AB....", 3)
    assert [each["asked"] for each in found["per_question"]] == [1, 2]
    assert found["always_correct"] == 0.5


def test_accuracy_is_uncertain_by_question() -> None:
    """Repeats that always agree leave the certainty of as many questions, not of as many rows."""
    found = consistency_of("AAAAA" * 10 + "BBBBB" * 10, 5)
    assert found["accuracy"] == 0.5
    assert found["accuracy_interval"] == pytest.approx(wilson(10, 20), abs=5e-5)


def test_single_rows_keep_wilsons_interval() -> None:
    """Without repeats the intervals of shares of rows are those of the Report, and the F-score has one too."""
    report, rows = run("AAABBC?!")
    found = clustered_intervals(rows)
    assert {rate: found[rate] for rate in report.intervals} == {
        rate: pytest.approx(report.interval(rate), abs=1e-9) for rate in report.intervals
    }
    assert found["f_score"] is not None
    assert found["f_score"][0] < (report.f_score or 0) < found["f_score"][1]


def test_twins_are_questions_of_their_own() -> None:
    """Two equal rows, each asked twice, are two questions."""
    twins = [replace(question, id=f"q{i}") for i, question in enumerate(questions(1) * 2)]
    found = consistency(rows_of(twins, results(twins, "AABB", repeats=2), repeats=2))
    assert (found["questions"], found["consistency"]) == (2, 1)


def test_no_rows_are_no_figures() -> None:
    """Without a result every share is null, never 0."""
    found = consistency_of("....", 2)
    assert (found["questions"], found["repeats"]) == (0, 0)
    assert {found[key] for key in ("consistency", "unanimous", "ever_correct", "always_correct", "accuracy")} == {None}
