"""Small runs written as letters, one a row.

`A` correct, `B` incorrect, `C` not attempted, `R` recorded, `?` judge failure, `!` error, `.` no result.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pytest_simpleqa.baseline import Baseline
from pytest_simpleqa.pairing import ComparedRow, rows_of
from pytest_simpleqa.records import Failure, Question, QuestionResult, Verdict
from pytest_simpleqa.report import Report
from pytest_simpleqa.reportbuild import build_report

VERDICTS = {"A": Verdict.CORRECT, "B": Verdict.INCORRECT, "C": Verdict.NOT_ATTEMPTED, "R": Verdict.RECORDED}

Results = dict[tuple[str, int], QuestionResult]


def questions(number: int, topics: str = "", gold: str = "gold") -> list[Question]:
    """Make questions; `topics` has one letter for each, a blank for none."""
    return [
        Question(f"q{i:04}", f"Question {i}?", f"{gold} {i}", topic.strip() or None)
        for i, topic in enumerate(topics.ljust(number)[:number], start=1)
    ]


def results(asked: Sequence[Question], letters: str, repeats: int = 1) -> Results:
    """Make results, `repeats` letters a question; none for `.`."""
    rows = [(question, repeat) for question in asked for repeat in range(1, repeats + 1)]
    assert len(rows) == len(letters)
    return {
        (question.id, repeat): _result(question, repeat, letter)
        for (question, repeat), letter in zip(rows, letters, strict=True)
        if letter != "."
    }


def _result(question: Question, repeat: int, letter: str) -> QuestionResult:
    if letter in VERDICTS:
        return QuestionResult.for_question(question, repeat, predicted=f"said {letter}", verdict=VERDICTS[letter])
    said = None if letter == "!" else "said something"
    return QuestionResult.for_question(question, repeat, predicted=said, error=Failure("timeout", "late"))


def run(letters: str, topics: str = "", repeats: int = 1, **values: Any) -> tuple[Report, list[ComparedRow]]:
    """Make a run's Report and rows."""
    asked = questions(len(letters) // repeats, topics)
    answered = results(asked, letters, repeats)
    given: dict[str, Any] = {
        "dataset": "small.csv",
        "model": "new",
        "judge": "rules",
        "started_at": datetime(2026, 11, 30, tzinfo=UTC),
        "duration_s": 1,
        "population": asked,
        "results": answered,
        "repeats": repeats,
        **values,
    }
    return build_report(**given), rows_of(asked, answered, repeats)


def baseline(letters: str, repeats: int = 1) -> Baseline:
    """Make a baseline on the same questions."""
    return Baseline("old", tuple(run(letters, repeats=repeats)[1]), model="old")
