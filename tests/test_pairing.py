"""Which rows of two runs belong together, and what rows without a verdict are taken for."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pytest_simpleqa.metrics import INTERVAL_RATES
from pytest_simpleqa.pairing import (
    METRICS,
    ComparedRow,
    Pairing,
    by_question,
    difference,
    furthest_status,
    measure,
    pair,
    rows_of,
    rows_of_report,
)
from pytest_simpleqa.records import GRADED, Verdict

from .letters import VERDICTS, questions, results, run

Z = 1.96


def row(question: str, letter: str = "A", gold: str | None = "gold", repeat: int = 1) -> ComparedRow:
    return ComparedRow(question, gold, repeat, VERDICTS.get(letter), finished=letter != ".")


def statuses(pairing: Pairing) -> list[tuple[list[str | None], list[str | None]]]:
    return [([row.status for row in each.now], [row.status for row in each.before]) for each in pairing.pairs]


def test_rows_pair_in_any_order() -> None:
    """The order of either run does not matter."""
    _, now = run("ABCAB")
    before = [replace(row, verdict=Verdict.CORRECT) for row in now]
    random.Random(1).shuffle(before)
    pairing = pair(now, before)
    assert [each.now[0] for each in pairing.pairs] == now
    assert all(each.now[0].question_hash == each.before[0].question_hash for each in pairing.pairs)
    assert pairing.differences == []


def test_twins_pair_by_occurrence() -> None:
    """A question that stands twice pairs first with first and second with second."""
    now = [row("twin", "A"), row("x", "B"), row("twin", "C")]
    before = [row("twin", "B"), row("twin", "A"), row("x", "C")]
    assert statuses(pair(now, before)) == [
        (["correct"], ["incorrect"]),
        (["incorrect"], ["not_attempted"]),
        (["not_attempted"], ["correct"]),
    ]


def test_differing_questions_are_counted() -> None:
    """What only one run has and what has another gold now is counted and not paired."""
    now = [row("both"), row("here"), row("here too"), row("gold", gold="new")]
    before = [row("gold", gold="old"), row("there"), row("both")]
    pairing = pair(now, before)
    assert len(pairing.pairs) == 1
    assert (pairing.only_here, pairing.only_there, pairing.changed_gold) == (2, 1, 1)
    assert pairing.differences == ["2 only here", "1 only there", "1 changed gold"]


def test_a_baseline_without_golds_pairs_by_question() -> None:
    """A recording that holds no golds pairs by the question's text."""
    pairing = pair([row("a"), row("b")], [row("b", gold=None), row("a", gold=None)])
    assert (len(pairing.pairs), pairing.differences) == (2, [])


def test_repeats_stay_together() -> None:
    """A question asked three times is one pair with the one that was asked once."""
    now = [row("a", letter, repeat=repeat) for repeat, letter in enumerate("AAB", start=1)]
    assert statuses(pair(now, [row("a", "B")])) == [(["correct", "correct", "incorrect"], ["incorrect"])]


def test_rows_without_a_result_are_not_paired() -> None:
    """An unfinished row is in neither run, and its twin keeps its own place."""
    pairing = pair([row("twin", "."), row("twin", "A"), row("x", ".")], [row("twin", "B"), row("twin", "C"), row("x")])
    assert statuses(pairing) == [(["correct"], ["not_attempted"])]
    assert pairing.only_there == 2


def test_twins_of_repeats_are_two_questions() -> None:
    """Two equal rows asked twice each are two questions with two askings."""
    twice = questions(1) * 2
    named = [replace(question, id=f"q{i}") for i, question in enumerate(twice)]
    rows = rows_of(named, results(named, "AABB", repeats=2), repeats=2)
    assert [[str(row.status) for row in askings] for askings in by_question(rows).values()] == [
        ["correct", "correct"],
        ["incorrect", "incorrect"],
    ]


# -- rows of a Report -----------------------------------------------------------------------------


def test_a_report_gives_its_rows_back() -> None:
    """A complete Report with all its samples holds the rows of its run."""
    report, rows = run("ABC?!", "aabb")
    assert rows_of_report(report) == rows


def test_a_report_tells_texts_of_its_samples_alone() -> None:
    """Beyond the samples a row is its verdict; without one it has failed, for the run is complete."""
    report, _ = run("AB?", "aaa", max_samples=1)
    first, second, third = rows_of_report(report)
    assert (first.question, first.topic, first.predicted) == ("Question 1?", "a", "said A")
    assert (second.question, second.status) == (None, "incorrect")
    assert third.status == "failed"


def test_an_incomplete_report_tells_failures_from_missing_rows() -> None:
    """A row without a verdict is a failure where a sample says so, else it has no result."""
    report, rows = run("A?..")
    assert [row.status for row in rows_of_report(report)] == ["correct", "failed", None, None]
    assert rows_of_report(report)[:2] == rows[:2]


# -- measuring ------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_a_measured_value_is_the_reports(metric: str) -> None:
    """Rows give the value of the Report, and for shares of rows its interval."""
    report, rows = run("AAABBBBC?!")
    value, interval = measure(metric, rows, 1.959963984540054)
    assert value == report.rate(metric)
    if metric in INTERVAL_RATES:
        assert interval == pytest.approx(report.interval(metric), abs=1e-9)


def test_no_rows_measure_nothing() -> None:
    """Without rows there is no value, no interval and no difference."""
    assert measure("accuracy", [], Z) == (None, None)
    assert difference("accuracy", [], Z) is None


@pytest.mark.parametrize(
    ("metric", "up", "down"),
    [
        ("accuracy", "correct", "incorrect"),
        ("attempted_accuracy", "correct", "incorrect"),
        ("abstention_rate", "not_attempted", "correct"),
        ("hallucination_rate", "incorrect", "correct"),
        ("coverage", "correct", "failed"),
        ("f_score", "correct", "incorrect"),
    ],
)
def test_the_worst_verdict_depends_on_the_metric(metric: str, up: str, down: str) -> None:
    """A row without a verdict is taken for the one that moves the metric furthest."""
    assert furthest_status(metric, up=True) == up
    assert furthest_status(metric, up=False) == down


@pytest.mark.parametrize("metric", METRICS)
def test_no_verdict_is_worse_than_the_worst(metric: str) -> None:
    """On small runs every other verdict for the failed rows gives a value between the two bounds."""
    for letters in ("A?", "B?", "C?", "AB??", "ABC?", "AAB?!", "BBCC?"):
        _, rows = run(letters)
        bounds = [measure(metric, rows, Z, furthest_status(metric, up=up))[0] for up in (False, True)]
        low, high = (bound if bound is not None else 0.5 for bound in bounds)
        for verdict in GRADED:
            value, _ = measure(metric, rows, Z, verdict.value)
            assert value is None or low <= value <= high
