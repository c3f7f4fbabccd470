"""Questions asked several times: how often the answers agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_simpleqa.intervals import intervals_of
from pytest_simpleqa.metrics import wilson
from pytest_simpleqa.pairing import rows_of
from pytest_simpleqa.repeats import clustered_intervals, consistency

from .letters import questions, results, run


def consistency_of(letters: str, repeats: int) -> dict[str, Any]:
    return consistency(run(letters, repeats=repeats)[1], repeats)


def test_consistency_is_the_share_of_the_most_frequent_verdict() -> None:
    """Every question has its own share, and the run their mean."""
    found = consistency_of("AAAAABABCB?!", 3)
    assert [share for *_, share in found["per_question"]] == pytest.approx([1, 2 / 3, 1 / 3, 1 / 3])
    assert found["consistency"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 4)
    assert (found["questions"], found["k"], found["unanimous"]) == (4, 3, 0.25)


def test_right_once_and_always() -> None:
    """Shares of questions that were right at least once, and every time."""
    found = consistency_of("AAAAABCACBBB", 3)
    assert (found["right_at_least_once"], found["right_always"]) == (0.75, 0.25)
    assert found["intervals"]["right_at_least_once"] == pytest.approx(wilson(3, 4), abs=5e-5)
    assert [row[:3] for row in found["per_question"]] == [
        ["q0001", 3, 3],
        ["q0002", 3, 2],
        ["q0003", 3, 1],
        ["q0004", 3, 0],
    ]


def test_failures_agree_with_nothing() -> None:
    """A question that only failed is not consistent, and a failure is never part of the majority."""
    assert consistency_of("??A!", 2)["consistency"] == 0.25


def test_missing_repeats_are_not_counted() -> None:
    """A repeat without a result leaves the others to themselves."""
    found = consistency_of("A..AB....", 3)
    assert [row[1] for row in found["per_question"]] == [1, 2]
    assert found["right_always"] == 0.5


def test_accuracy_is_uncertain_by_question() -> None:
    """Repeats that always agree leave the certainty of as many questions, not of as many rows."""
    found = clustered_intervals(run("AAAAA" * 10 + "BBBBB" * 10, repeats=5)[1])
    assert found["accuracy"] == pytest.approx(wilson(10, 20), abs=1e-9)


def test_single_rows_keep_wilsons_interval() -> None:
    """Without repeats the intervals of shares of rows are those of the Report, and the F-score has one too."""
    report, rows = run("AAABBC?!")
    found = clustered_intervals(rows)
    assert found == {rate: pytest.approx(ends, abs=1e-9) for rate, ends in intervals_of(report).items()}
    assert found["f_score"] is not None
    assert found["f_score"][0] < (report.f_score or 0) < found["f_score"][1]


def test_twins_are_questions_of_their_own() -> None:
    """Two equal rows, each asked twice, are two questions."""
    twins = [replace(question, id=f"q{i}") for i, question in enumerate(questions(1) * 2)]
    found = consistency(rows_of(twins, results(twins, "AABB", repeats=2), repeats=2), 2)
    assert (found["questions"], found["consistency"]) == (2, 1)


def test_no_rows_are_no_figures() -> None:
    """Without a result every share is null, never 0."""
    found = consistency_of("....", 2)
    assert (found["questions"], found["k"], found["per_question"]) == (0, 2, [])
    shares = ("unanimous", "right_at_least_once", "right_always")
    assert {found[key] for key in ("consistency", *shares)} == {None}
    assert found["intervals"] == dict.fromkeys(shares)
