"""Tests of how a run reads in OpenAI Evals' logs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pytest_simpleqa.openaievents import LoggedRun, final_report
from pytest_simpleqa.prompts import Template
from pytest_simpleqa.records import Failure, Question, QuestionResult, Usage, Verdict
from pytest_simpleqa.reportbuild import build_report

QUESTION = Question("q0001", "Capital of France?", "Paris")
CONTENT: Mapping[str, Any] = {
    "answer": {"spec": "openai:m"},
    "judge": {"spec": "rules"},
    "dataset": {"name": "quiz.csv"},
    "options": {"seed": 7, "limit_questions": 0, "sample": 50, "repeats": 1},
}


def logged(name: str = "quiz.csv", *, is_eval: bool = False, repeats: int = 1) -> LoggedRun:
    content = {**CONTENT, "options": {**CONTENT["options"], "repeats": repeats}}
    prompt = None if is_eval else Template("Say: {question}")
    return LoggedRun("run-1", name, datetime(2026, 1, 2, tzinfo=UTC), content, prompt, is_eval)


def result(**values: Any) -> QuestionResult:
    used = Usage(1, 5, 3, 0.5, "m-1")
    given = {"predicted": "Lyon", "verdict": Verdict.INCORRECT, "answer_usage": used, **values}
    return QuestionResult.for_question(QUESTION, **given)


def test_a_graded_row_is_sampled_matched_and_measured() -> None:
    """A row with a verdict has the prompt and the answer, whether it matched, and its accuracy."""
    events = list(logged().events(result(judge_reply="B")))
    assert events == [
        (
            "sampling",
            {
                "prompt": "Say: Capital of France?",
                "sampled": ["Lyon"],
                "model": "m-1",
                "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
            },
        ),
        (
            "match",
            {
                "correct": False,
                "expected": "Paris",
                "picked": "Lyon",
                "sampled": "Lyon",
                "verdict": "incorrect",
                "judge_reply": "B",
            },
        ),
        ("metrics", {"accuracy": 0.0}),
    ]


def test_figures_of_a_row_are_metrics_and_the_rest_is_extra() -> None:
    """Numbers and a choice that belong to a row stand among its metrics, anything else in an event of its own."""
    told = dict(logged().events(result(extra={"f1_score": 0.5, "choice": "B", "trace": ["a"]})))
    assert told["metrics"] == {"accuracy": 0.0, "f1_score": 0.5, "choice": "B"}
    assert told["extra"] == {"trace": ["a"]}


def test_a_choice_without_right_and_wrong_is_measured_alone() -> None:
    """A row that is only recorded has no match."""
    told = dict(logged().events(result(verdict=Verdict.RECORDED, extra={"choice": "B"})))
    assert set(told) == {"sampling", "metrics"}
    assert told["metrics"] == {"choice": "B"}


def test_failures_are_errors() -> None:
    """A judge failure has its answer and an error, an answer error the error alone; neither has a match."""
    failure = {"verdict": None, "error": Failure("timeout", "too late")}
    assert [kind for kind, _ in logged().events(result(**failure))] == ["sampling", "error"]
    assert list(logged().events(result(predicted=None, **failure))) == [
        ("error", {"type": "timeout", "message": "too late"})
    ]


def test_what_an_eval_in_code_recorded_stands_as_it_is() -> None:
    """Where the eval's own code recorded events, those are the row's, and no others."""
    recorded = [{"type": "match", "data": {"correct": True}}, {"type": "mine", "data": [1]}]
    row = result(verdict=Verdict.CORRECT, extra={"events": recorded, "returned": 1})
    assert list(logged().events(row)) == [("match", {"correct": True}), ("mine", [1])]


def test_samples_are_named_as_there() -> None:
    """A dataset's row keeps its id; an eval's sample has OpenAI Evals' name, counted from 0; repeats are told apart."""
    row, sample = result(), QuestionResult.for_question(Question("3", "?", "!"), 2)
    assert logged().sample_id(row) == "q0001"
    assert logged("coqa-match.dev.v0", is_eval=True).sample_id(sample) == "coqa-match.dev.2"
    assert logged(repeats=3).sample_id(row) == "q0001-r1"
    assert logged("coqa-match.dev.v0", is_eval=True, repeats=3).sample_id(sample) == "coqa-match.dev.2-r2"


def test_the_spec_has_the_keys_of_openai_evals() -> None:
    """The spec says who answers what, under the keys that readers of such logs look for."""
    spec = logged("coqa-match.dev.v0", is_eval=True).spec()
    assert list(spec) == [
        "completion_fns", "eval_name", "base_eval", "split", "run_config", "created_by", "run_id", "created_at",
    ]  # fmt: skip
    assert (spec["completion_fns"], spec["base_eval"], spec["split"]) == (["openai:m"], "coqa-match", "dev")
    assert spec["run_config"]["seed"] == 7
    assert spec["run_config"]["max_samples"] == 50
    assert spec["created_at"] == "2026-01-02 00:00:00+00:00"
    assert (logged().spec()["base_eval"], logged().spec()["split"]) == ("quiz.csv", "")


def test_the_final_report_is_flat() -> None:
    """The final report has the Report's rates and counts, and tokens as OpenAI Evals adds them up."""
    row = result()
    report = build_report(
        dataset="d", model="m", judge="j", started_at=datetime.now(UTC), duration_s=1, population=[QUESTION],
        results={(row.id, 1): row},
    )  # fmt: skip
    final = final_report(report)
    assert (final["accuracy"], final["n"], final["incorrect"], final["complete"]) == (0.0, 1, 1, True)
    assert [final[f"usage_{name}_tokens"] for name in ("prompt", "completion", "total")] == [5, 3, 8]
