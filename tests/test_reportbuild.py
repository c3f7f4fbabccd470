"""The Report put together from results: counts, groups, intervals, repeats, calibration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.intervals import intervals_of
from pytest_simpleqa.metrics import INTERVAL_RATES, wilson
from pytest_simpleqa.records import Question, Usage, Verdict
from pytest_simpleqa.report import UNSPECIFIED, Report, TopicReport
from pytest_simpleqa.reportbuild import measured

from . import letters
from .example_run import QUESTIONS, by_key, first_letter, graded, make


def measured_topic(correct: int) -> TopicReport:
    topic = TopicReport(n=correct, correct=correct)
    return replace(topic, intervals={rate: topic.interval(rate) for rate in INTERVAL_RATES})


def test_example_is_what_its_rows_build(shared_data: Path) -> None:
    """The rows of the example build every key of it, in its order, and beside these intervals alone."""
    example = json.loads((shared_data / "report.example.json").read_text("utf-8"))
    known = {key: value for key, value in example["provenance"].items() if key != "paper_parse_differs"}
    report = make(
        options=example["options"],
        provenance=known,
        other_parse=first_letter,
        gates=example["gates"],
        exit_status=6,
    )
    document = report.to_json()
    assert document["intervals"].pop("f_score")
    for group in (*document["per_topic"].values(), *document["per_answer_type"].values()):
        assert list(group.pop("intervals")) == list(example["intervals"])
    assert json.dumps(document) == json.dumps(example)


def test_complete_needs_every_row() -> None:
    """A Report is complete when population, selection and results are the same rows."""
    first = by_key(graded(QUESTIONS[0], Verdict.CORRECT))
    assert make().complete
    left_out = make(first, selected=1)
    assert (left_out.population, left_out.selected, left_out.n, left_out.complete) == (5, 1, 1, False)
    stopped = make(first, selected=3)
    assert (stopped.population, stopped.selected, stopped.n, stopped.complete) == (5, 3, 1, False)


def test_more_results_than_were_selected_are_no_report() -> None:
    """A selection is never widened by results: a run that left rows out would look complete."""
    with pytest.raises(AssertionError, match="5 of 2 of 5 rows"):
        make(selected=2)


def test_nothing_measured_is_still_a_report() -> None:
    """A run without a result has rates of null, no topics, and a verdict of null for every row."""
    document = make({}).to_json()
    assert (document["n"], document["accuracy"], document["f_score"]) == (0, None, None)
    assert document["intervals"]["accuracy"] is None
    assert document["per_topic"] == {}
    assert document["usage"]["answer"] == {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "latency_s": None}
    assert [row[3] for row in document["verdicts"]] == [None] * 5
    json.dumps(document, allow_nan=False)


def test_rows_without_a_topic_come_last() -> None:
    """Groups are sorted by name; rows without one are `(unspecified)`, behind all others."""
    rows = [Question(f"q{i}", f"{i}?", "x", topic) for i, topic in enumerate(["Zoo", None, "Art", "电影"])]
    report = make(by_key(*(graded(row, Verdict.CORRECT) for row in rows)), population=rows)
    assert report.per_topic is not None
    assert list(report.per_topic) == ["Art", "Zoo", "电影", UNSPECIFIED]
    assert report.per_answer_type == {UNSPECIFIED: measured_topic(correct=4)}


def test_breakdown_can_be_left_out() -> None:
    """Without the breakdown both groupings are null."""
    document = make(topic_breakdown=False).to_json()
    assert (document["per_topic"], document["per_answer_type"]) == (None, None)


@pytest.mark.parametrize(("kept", "ids"), [(0, []), (2, ["q0001", "q0002"]), (-1, [q.id for q in QUESTIONS])])
def test_samples_follow_the_dataset(kept: int, ids: list[str]) -> None:
    """Samples stand in dataset order whatever order results came in; -1 keeps all, 0 none; verdicts stay whole."""
    report = make(max_samples=kept)
    assert [sample.id for sample in report.samples] == ids
    assert len(report.verdicts) == 5


def test_repeats_are_rows() -> None:
    """A question asked twice is two rows, side by side."""
    one, two = QUESTIONS[:2]
    results = by_key(graded(two, Verdict.INCORRECT, repeat=1), graded(one, Verdict.CORRECT, repeat=2))
    report = make(results, population=[one, two], repeats=2)
    assert (report.population, report.n, report.complete) == (4, 2, False)
    assert [(row[2], row[3]) for row in report.verdicts] == [(1, None), (2, "correct"), (1, "incorrect"), (2, None)]


def test_foreign_results_are_left_out() -> None:
    """A result of no row of the population is not counted."""
    stray = graded(Question("q9999", "?", "x"), Verdict.CORRECT)
    assert make(by_key(stray)).n == 0


def test_latencies_are_values_that_were_measured() -> None:
    """Percentiles are by nearest rank, over the requests that have a latency."""
    rows = [Question(f"q{i}", f"{i}?", "x") for i in range(21)]
    results = [graded(q, Verdict.CORRECT, answer_usage=Usage(2, 3, 4, float(i) or None)) for i, q in enumerate(rows)]
    usage = make(by_key(*results), population=rows).usage
    assert usage["answer"] == {
        "calls": 42,
        "prompt_tokens": 63,
        "completion_tokens": 84,
        "latency_s": {"p50": 10.0, "p95": 19.0, "max": 20.0},
    }
    assert usage["judge"]["latency_s"] is None


def test_returned_model_names_are_kept() -> None:
    """The names that services gave back stand beside the ones that were asked for."""
    results = by_key(graded(QUESTIONS[0], Verdict.CORRECT, answer_usage=Usage(1, model="small-1-0613")))
    report = make(results, provenance={"answer": {"model": "small-1"}})
    assert report.provenance["answer"] == {"model": "small-1", "returned_models": ["small-1-0613"]}
    assert report.provenance["paper_parse_differs"] is None


# -- intervals ------------------------------------------------------------------------------------


def test_every_rate_has_its_interval() -> None:
    """Overall the four rates and the F-score, by topic and answer type the four rates, to four decimals."""
    report, _ = letters.run("AAABBC", topics="aabbbb")
    document = report.to_json()
    assert list(document["intervals"]) == [*INTERVAL_RATES, "f_score"]
    assert document["per_topic"]["a"]["intervals"]["accuracy"] == [round(end, 4) for end in wilson(2, 2) or ()]
    assert document["per_topic"]["b"]["intervals"]["attempted_accuracy"] == [
        round(end, 4) for end in wilson(1, 3) or ()
    ]
    assert document["per_answer_type"][UNSPECIFIED]["intervals"] == {
        rate: document["intervals"][rate] for rate in INTERVAL_RATES
    }


def test_the_f_score_lies_in_its_interval() -> None:
    """The F-score's interval holds it, and is null where there is none."""
    report, _ = letters.run("AAABBBBC?!")
    low, high = report.interval("f_score") or (2.0, -1.0)
    assert 0 < low < (report.f_score or 0) < high < 1
    assert letters.run("...")[0].interval("f_score") is None


def test_repeats_make_intervals_by_question() -> None:
    """Five equal verdicts of each of 20 questions leave the certainty of 20, overall and in every topic."""
    report, _ = letters.run("AAAAA" * 10 + "BBBBB" * 10, topics="ab" * 10, repeats=5)
    assert report.interval("accuracy") == pytest.approx(wilson(10, 20), abs=1e-9)
    assert report.per_topic is not None
    assert report.per_topic["a"].interval("accuracy") == pytest.approx(wilson(5, 10), abs=1e-9)
    again = Report.from_json(report.to_json())
    assert again.interval("accuracy") == pytest.approx(wilson(10, 20), abs=5e-5)


# -- what is not always there ---------------------------------------------------------------------


def test_repeats_stand_only_in_runs_with_repeats() -> None:
    """A question asked several times gives the key `repeats`; one asked once leaves the document without it."""
    once, _ = letters.run("AB")
    assert "repeats" not in once.to_json()
    twice, _ = letters.run("AABC", repeats=2)
    document = twice.to_json()
    assert (document["repeats"]["k"], document["repeats"]["consistency"]) == (2, 0.75)
    assert Report.from_json(json.loads(json.dumps(document))).to_json() == document


def sure(*pairs: tuple[Verdict, Any], **values: Any) -> Report:
    rows = [graded(q, verdict, extra={"confidence": c}) for q, (verdict, c) in zip(QUESTIONS, pairs, strict=False)]
    return make(by_key(*rows), **values)


def test_calibration_stands_only_beside_confidences() -> None:
    """Answers with a confidence give the key `calibration`; without one, and unasked, there is none."""
    assert "calibration" not in make().to_json()
    document = sure((Verdict.CORRECT, 0.9), (Verdict.INCORRECT, 0.3)).to_json()
    assert document["calibration"]["ece"] == pytest.approx(0.2)
    assert Report.from_json(json.loads(json.dumps(document))).to_json() == document
    asked = make(options={"ask_confidence": True}).to_json()
    assert (asked["calibration"]["n"], asked["calibration"]["no_confidence"]) == (0, 2)


def test_a_report_of_reports_is_measured_anew() -> None:
    """From counts, verdicts and samples follow the same intervals, repeats and calibration."""
    for whole in (
        make(),
        letters.run("AAABBCAB", topics="aabb", repeats=2)[0],
        sure((Verdict.CORRECT, 0.9), (Verdict.INCORRECT, 0.3)),
    ):
        bare = replace(whole, intervals={}, repeats=None, calibration=None)
        assert measured(bare).to_json() == whole.to_json()


def test_what_only_whole_rows_tell_is_left_out() -> None:
    """Where the samples are cut, neither repeats by topic nor a calibration is guessed at."""
    repeated = measured(letters.run("AAAAABCB", topics="aabb", repeats=2, max_samples=1)[0])
    assert repeated.per_topic is not None
    assert repeated.per_topic["a"].intervals == {}
    assert repeated.interval("accuracy") is not None
    cut = measured(sure((Verdict.CORRECT, 0.9), (Verdict.INCORRECT, 0.3), max_samples=1))
    assert cut.calibration is None
    assert cut.intervals == intervals_of(cut)
