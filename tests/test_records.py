"""The frozen values: hashes, statuses, and JSON both ways."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from pytest_simpleqa.records import Dataset, Failure, Question, QuestionResult, Usage, Verdict, text_hash

CAFE = Question("q0001", "Where is the café?", "Zürich", topic="Geography", answer_type="Place", metadata={"urls": []})
FULL: dict[str, Any] = {
    "predicted": "in Z\ud83c",
    "verdict": Verdict.CORRECT,
    "judge_reply": "A",
    "latency_s": 1.5,
    "raw": "<think>\u2028</think>in Z",
    "notes": ("a note",),
    "answer_usage": Usage(2, 10, 3, 0.5, "m-1"),
    "judge_usage": Usage(1, 100, 1, 0.25, "j-1"),
    "extra": {"trace": [1, {"a": None}]},
}


@pytest.mark.parametrize(
    "values",
    [
        FULL,
        {},
        {"error": Failure("timeout", "late"), "answer_usage": Usage(4)},
        {"predicted": "", "verdict": Verdict.NOT_ATTEMPTED},
        {"predicted": "x", "error": Failure("judge_conflict", "A and B"), "judge_reply": "A B"},
    ],
)
def test_a_result_survives_json(values: dict[str, Any]) -> None:
    """What `to_json` gives is ASCII-safe plain JSON, and `from_json` reads all of it back."""
    result = QuestionResult.for_question(CAFE, 2, **values)
    assert QuestionResult.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_a_sample_is_a_result_without_its_costs() -> None:
    """A row of the Report reads back as the result, but for the usage that the Report sums up."""
    result = QuestionResult.for_question(CAFE, **FULL)
    assert "usage" not in result.to_sample()
    bare = dataclasses.replace(result, answer_usage=Usage(), judge_usage=Usage())
    assert QuestionResult.from_json(result.to_sample()) == bare


def test_a_sample_has_the_documented_keys() -> None:
    """The binding keys always stand there, null where they do not apply; the odd ones only where they say something."""
    bare = QuestionResult.for_question(CAFE, error=Failure("timeout", "late")).to_sample()
    assert bare == {
        "id": "q0001",
        "topic": "Geography",
        "answer_type": "Place",
        "question": "Where is the café?",
        "gold": "Zürich",
        "predicted": None,
        "verdict": None,
        "fingerprint": CAFE.fingerprint,
        "repeat": 1,
        "judge_reply": None,
        "error": {"kind": "timeout", "message": "late"},
        "latency_s": None,
    }
    assert set(QuestionResult.for_question(CAFE, **FULL).to_sample()) - set(bare) == {"raw", "notes", "extra"}


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"predicted": "x", "verdict": Verdict.CORRECT}, "correct"),
        ({"predicted": "x", "verdict": Verdict.INCORRECT}, "incorrect"),
        ({"predicted": "", "verdict": Verdict.NOT_ATTEMPTED}, "not_attempted"),
        ({"predicted": "x", "error": Failure("timeout", "")}, "judge_failure"),
        ({"predicted": "", "error": Failure("timeout", "")}, "judge_failure"),
        ({"error": Failure("timeout", "")}, "error"),
    ],
)
def test_each_result_is_in_one_of_five_ways(values: dict[str, Any], status: str) -> None:
    """Verdict, judge failure and error exclude each other."""
    result = QuestionResult.for_question(CAFE, **values)
    assert result.status == status
    assert (result.is_judge_failure, result.is_error) == (status == "judge_failure", status == "error")


def test_a_hash_is_of_the_text_not_of_its_form() -> None:
    """Composed and decomposed letters and outer blanks hash alike; case and inner blanks do not."""
    assert text_hash("café") == text_hash(" cafe\u0301\n")
    assert len({text_hash(text) for text in ("café", "Café", "ca fé", "cafe")}) == 4
    assert text_hash("abc") == "ba7816bf8f01cfea"
    assert len(text_hash("half \ud83c")) == 16


def test_a_fingerprint_goes_with_the_text() -> None:
    """It is the same wherever the row stands, and changes with question and gold, each in its half."""
    elsewhere = Question("q0777", " Where is the cafe\u0301? ", "Zürich", topic="Food")
    assert CAFE.fingerprint == elsewhere.fingerprint == f"{text_hash(CAFE.problem)}-{text_hash(CAFE.answer)}"
    other_gold = dataclasses.replace(CAFE, answer="Bern")
    assert other_gold.fingerprint.split("-")[0] == CAFE.question_hash
    assert other_gold.fingerprint != CAFE.fingerprint


def test_values_are_frozen_and_comparable() -> None:
    """Questions can be keys of a dict whatever their metadata, and nobody changes them."""
    assert {CAFE: 1}[dataclasses.replace(CAFE, metadata={"other": [1]})] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        CAFE.id = "other"  # type: ignore[misc]  # the point of the test


def test_a_dataset_is_its_questions() -> None:
    """Length and iteration are those of the questions, in order."""
    dataset = Dataset("d.csv", (CAFE, dataclasses.replace(CAFE, id="q0002")), "0" * 64)
    assert (len(dataset), [question.id for question in dataset]) == (2, ["q0001", "q0002"])


def test_a_result_travels_without_its_question() -> None:
    """What crosses to a process that knows the question leaves its texts out and loses nothing."""
    question = Question("q0001", "Who?", "Ada", topic="Art", answer_type="Person")
    result = QuestionResult.for_question(question, 2, predicted="Eve", verdict=Verdict.INCORRECT, notes=("kept",))
    sent = result.to_wire()
    assert "Who?" not in sent.values()
    assert QuestionResult.from_wire(sent, question) == result


def test_a_failing_assert_shows_a_result_in_one_line() -> None:
    """What pytest shows of a result is its id, status, gold and answer, cut short; of a verdict its word."""
    wrong = QuestionResult.for_question(CAFE, predicted="in Bern " * 20, verdict=Verdict.INCORRECT)
    assert repr(wrong) == f"<{CAFE.id} incorrect: gold 'Zürich', predicted 'in Bern in Bern in Bern in Bern in Bern…'>"
    failed = QuestionResult.for_question(CAFE, error=Failure("timeout", "late"))
    assert repr(failed) == f"<{CAFE.id} error: gold 'Zürich', timeout: 'late'>"
    assert repr(Verdict.INCORRECT) == "'incorrect'"
