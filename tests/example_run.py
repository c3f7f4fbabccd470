"""The run behind the example Report: its questions, its results, and a Report made of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pytest_simpleqa.records import Failure, Question, QuestionResult, Usage, Verdict
from pytest_simpleqa.report import Report
from pytest_simpleqa.reportbuild import build_report

STARTED = datetime(2026, 11, 30, 12, tzinfo=UTC)
Results = dict[tuple[str, int], QuestionResult]

QUESTIONS = [
    Question("q0001", "Who painted the Mona Lisa?", "Leonardo da Vinci", "Art", "Person"),
    Question("q0002", "What is the capital of Australia?", "Canberra", "Geography", "Place"),
    Question("q0003", "In which year did the Berlin Wall fall?", "1989", "History", "Date"),
    Question("q0004", "How many strings does a violin have?", "4", "Music", "Number"),
    Question("q0005", "How many players of one team are on a football pitch?", "11", "Sports", "Number"),
]


def graded(question: Question, verdict: Verdict | None, predicted: str | None = "x", **values: Any) -> QuestionResult:
    return QuestionResult.for_question(question, verdict=verdict, predicted=predicted, **values)


def by_key(*results: QuestionResult) -> Results:
    return {(result.id, result.repeat): result for result in results}


def example_results() -> Results:
    used = {"answer_usage": Usage(1, 16, 8, 1.1), "judge_usage": Usage(1, 820, 2, 0.4), "latency_s": 1.2}
    slow = {**used, "answer_usage": Usage(1, 16, 8, 1.4), "judge_usage": Usage(2, 1640, 3, 0.5)}
    unread = Failure("judge_unreadable", "the judge gave no verdict twice: 'Hard to say.'")
    late = Failure("timeout", "no answer within 90 s (3 tries)")
    one, two, three, four, five = QUESTIONS
    return by_key(
        graded(five, None, None, error=late, answer_usage=Usage(3, 16, 8)),
        graded(four, None, "Four.", judge_reply="Hard to say.", error=unread, **slow),
        graded(three, Verdict.NOT_ATTEMPTED, "I am not sure.", judge_reply="C", **used),
        graded(two, Verdict.INCORRECT, "Sydney", judge_reply="B", **used),
        graded(one, Verdict.CORRECT, "Leonardo da Vinci", judge_reply="A", **used),
    )


def first_letter(reply: str) -> Verdict:
    words = {"A": Verdict.CORRECT, "B": Verdict.INCORRECT}
    return words.get(reply[:1], Verdict.NOT_ATTEMPTED)


def make(results: Results | None = None, **values: Any) -> Report:
    given: dict[str, Any] = {
        "dataset": "example.csv",
        "model": "mine:small-1",
        "judge": "mine:large-1",
        "started_at": STARTED,
        "duration_s": 91.234,
        "population": QUESTIONS,
        "results": example_results() if results is None else results,
    }
    return build_report(**{**given, **values})
