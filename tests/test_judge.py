"""The judges: one re-ask, what counts as a verdict, what the judge is shown, functions and recordings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError
from pytest_simpleqa.judges.judge import MAX_JUDGED_CHARS, FunctionJudge, ModelJudge, ReplayJudge, RulesJudge
from pytest_simpleqa.judges.protocol import Judge
from pytest_simpleqa.models.replay import Recording
from pytest_simpleqa.prompts import Template, grade_template
from pytest_simpleqa.records import Judgement, Prompt, Question, Reply, Verdict
from pytest_simpleqa.testing import FakeModel

PARIS = Question("q0001", "What is the capital of France?", "Paris")
TEMPLATE = Template("{question}|{target}|{predicted_answer}")


def judge(
    model: FakeModel, predicted: str = "Paris", *, paper: bool = False, template: Template = TEMPLATE
) -> Judgement:
    """Return what a model judge makes of `predicted`."""
    return asyncio.run(ModelJudge(model, template, paper=paper).judge(PARIS, predicted, model.complete))


async def never(prompt: Prompt) -> Reply:
    raise AssertionError("this judge asks no model")


def find(judge: Judge, predicted: str = "Paris") -> Judgement:
    """Return what a judge without a model finds."""
    return asyncio.run(judge.judge(PARIS, predicted, never))


# -- a model that judges ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "verdict"),
    [("A", Verdict.CORRECT), ("(B)", Verdict.INCORRECT), ("NOT ATTEMPTED", Verdict.NOT_ATTEMPTED)],
)
def test_a_clear_reply_is_asked_for_once(said: str, verdict: Verdict) -> None:
    """A verdict costs one call, and the judge's words are kept."""
    model = FakeModel(Reply(said, prompt_tokens=100, completion_tokens=1, model="j-1", latency_s=0.5))
    found = judge(model)
    assert (found.verdict, found.reply, found.error) == (verdict, said, None)
    assert (found.calls, found.prompt_tokens, found.completion_tokens, found.latency_s) == (1, 100, 1, 0.5)
    assert (found.model, model.prompts) == ("j-1", ["What is the capital of France?|Paris|Paris"])


def test_an_unclear_reply_is_asked_for_once_more() -> None:
    """The second reply counts, with the same prompt, and both calls are paid for in the books."""
    model = FakeModel([Reply("Honestly I am not sure", prompt_tokens=7), Reply("B", prompt_tokens=7, calls=2)])
    found = judge(model)
    assert (found.verdict, found.reply, found.calls, found.prompt_tokens) == (Verdict.INCORRECT, "B", 3, 14)
    assert model.prompts[0] == model.prompts[1]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("", "judge_unreadable"),
        ("the model said maybe", "judge_unreadable"),
        ("Honestly I am not sure", "judge_unreadable"),
        ("A: INCORRECT", "judge_conflict"),
    ],
)
def test_two_unclear_replies_are_a_judge_failure(said: str, kind: str) -> None:
    """There is no default verdict: after the second try the raw reply and the kind stand, and no third is paid."""
    model = FakeModel(said)
    found = judge(model)
    assert (found.verdict, found.reply, found.calls, len(model.prompts)) == (None, said, 2, 2)
    assert found.error is not None
    assert found.error.kind == kind


def test_thinking_is_kept_and_not_read() -> None:
    """The verdict is read behind the think block; the reply is kept as it came."""
    found = judge(FakeModel(Reply("B", raw="<think>A? No.</think>B")))
    assert (found.verdict, found.reply) == (Verdict.INCORRECT, "<think>A? No.</think>B")


def test_a_failed_request_passes_on_with_its_calls() -> None:
    """A judge model that fails on the second try has cost both calls."""
    with pytest.raises(ModelError) as caught:
        judge(FakeModel(["no idea", ModelError("timeout", "late")]))
    assert (caught.value.kind, caught.value.calls) == ("timeout", 2)


def test_the_papers_rule_always_gives_a_verdict() -> None:
    """Under `paper` the first letter counts, else it is not attempted, and nothing is asked twice."""
    for said, verdict in (("Bah, A", Verdict.INCORRECT), ("hm", Verdict.NOT_ATTEMPTED)):
        model = FakeModel(said)
        assert judge(model, paper=True).verdict is verdict
        assert len(model.prompts) == 1


def test_the_judge_sees_a_long_answer_only_so_far() -> None:
    """Beyond the cap the prompt has a mark, and the row a note."""
    model = FakeModel("A")
    found = judge(model, "y" * 25_000)
    assert model.prompts[0] == f"{PARIS.problem}|Paris|{'y' * MAX_JUDGED_CHARS} [... 5,000 more characters]"
    assert found.notes == ("the judge saw the first 20,000 of 25,000 characters",)


def test_an_answer_cannot_reach_into_the_prompt() -> None:
    """Placeholders in an answer are text, also with the built-in prompt."""
    model = FakeModel("A")
    judge(model, "{target} {question}", template=grade_template())
    assert "{target} {question}" in str(model.prompts[0])


# -- judges without a model ------------------------------------------------------------------------


def test_rules_judge_offline() -> None:
    """The rules find the three verdicts and ask no model."""
    found = [find(RulesJudge(), predicted).verdict for predicted in ("It is Paris.", "Rome", "I don't know.")]
    assert found == [Verdict.CORRECT, Verdict.INCORRECT, Verdict.NOT_ATTEMPTED]
    assert find(RulesJudge(), "Paris " + "x" * 10_000).calls == 0


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (Verdict.INCORRECT, Verdict.INCORRECT),
        ("incorrect", Verdict.INCORRECT),
        ("A", Verdict.CORRECT),
        (Judgement(Verdict.NOT_ATTEMPTED), Verdict.NOT_ATTEMPTED),
    ],
)
def test_a_function_judges(said: Any, verdict: Verdict) -> None:
    """A function may give a verdict, a text that holds one, or a whole judgement."""

    async def function(question: Question, predicted: str) -> Any:
        assert (question, predicted) == (PARIS, "Paris")
        return said

    assert find(FunctionJudge("hook", function)).verdict is verdict


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (None, "declined", "hook gave no verdict"),
        ("maybe", "judge_unreadable", "hook gave no verdict: 'maybe'"),
        ("A: INCORRECT", "judge_conflict", "hook gave no verdict: 'A: INCORRECT'"),
        (0.7, "judge_unreadable", "hook gave no verdict: '0.7'"),
    ],
)
def test_a_function_that_gives_no_verdict_fails(said: Any, kind: str, message: str) -> None:
    """What is no verdict is a judge failure with its kind, never a default."""

    async def function(question: Question, predicted: str) -> Any:
        return said

    with pytest.raises(ModelError) as caught:
        find(FunctionJudge("hook", function))
    assert (caught.value.kind, caught.value.message) == (kind, message)


def test_a_recording_judges(tmp_path: Path) -> None:
    """Recorded verdicts are given again; a question without one is a judge failure that names the file."""
    path = tmp_path / "old.csv"
    path.write_text("question,answer,predicted,verdict\nWhat is the capital of France?,Paris,Rome,B\n")
    judge = ReplayJudge(Recording.load(str(path), tmp_path))
    assert find(judge).verdict is Verdict.INCORRECT
    with pytest.raises(ModelError, match=r"^old\.csv has no verdict on this question$") as caught:
        asyncio.run(judge.judge(Question("q0002", "And of Italy?", "Rome"), "Rome", never))
    assert caught.value.kind == "missing"


@pytest.mark.parametrize("judge", [RulesJudge(), FunctionJudge("hook", lambda question, predicted: None)])
def test_judges_without_a_model_say_so(judge: Judge) -> None:
    """A judge without a model has nothing to close and no service to count."""
    asyncio.run(judge.close())
    assert judge.model is None
    assert set(judge.describe()) >= {"provider", "model", "base_url_host", "params"}
