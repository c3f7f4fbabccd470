"""The shipped fakes: they say what they are told, and record what they are asked."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError
from pytest_simpleqa.judges.protocol import Judge
from pytest_simpleqa.models.protocol import Model
from pytest_simpleqa.records import Judgement, Prompt, Reply, Verdict
from pytest_simpleqa.testing import FakeJudge, FakeModel, fake_dataset

ONE, TWO = fake_dataset(2)


def complete(model: FakeModel, *prompts: Prompt) -> list[str]:
    return [asyncio.run(model.complete(prompt)).text for prompt in prompts]


async def never(prompt: Prompt) -> Reply:
    raise AssertionError


def judge(fake: FakeJudge, predicted: str) -> Judgement:
    return asyncio.run(fake.judge(ONE, predicted, never))


def test_the_fakes_are_what_the_engine_drives() -> None:
    """They keep the protocols that real models and judges keep."""
    assert isinstance(FakeModel(), Model)
    assert isinstance(FakeJudge(), Judge)


@pytest.mark.parametrize(
    ("says", "said"),
    [
        ("x", ["x", "x", "x"]),
        (["x", Reply("y")], ["x", "y", "y"]),
        (lambda prompt: f"<{prompt}>", ["<a>", "<b>", "<c>"]),
        (Reply("r"), ["r", "r", "r"]),
    ],
)
def test_a_model_says_what_it_is_told(says: Any, said: list[str]) -> None:
    """One reply for ever, several in turn, or a function of the prompt; every prompt is recorded."""
    model = FakeModel(says)
    assert complete(model, "a", "b", "c") == said
    assert model.prompts == ["a", "b", "c"]


def test_a_model_fails_as_told() -> None:
    """An exception in the script is raised when it is due, and nothing stays in flight."""
    model = FakeModel(["x", ModelError("timeout", "late")])
    assert complete(model, "a") == ["x"]
    with pytest.raises(ModelError, match="late"):
        complete(model, "b")
    assert (model.in_flight, len(model.prompts)) == (0, 2)


def test_latency_and_load_are_what_was_asked_for() -> None:
    """Replies come after the latency, and the most that was in flight at once is known."""

    async def three(model: FakeModel) -> None:
        await asyncio.gather(*(model.complete("x") for _ in range(3)))

    began = time.monotonic()
    asyncio.run(three(model := FakeModel(latency_s=0.02)))
    assert time.monotonic() - began >= 0.02
    assert (model.most_in_flight, model.in_flight) == (3, 0)


@pytest.mark.parametrize(
    ("finds", "found"),
    [
        (None, [Verdict.CORRECT, Verdict.INCORRECT]),
        (Verdict.NOT_ATTEMPTED, [Verdict.NOT_ATTEMPTED] * 2),
        ([Verdict.INCORRECT, Judgement(Verdict.CORRECT)], [Verdict.INCORRECT, Verdict.CORRECT]),
        (lambda question, predicted: Verdict.CORRECT, [Verdict.CORRECT] * 2),
    ],
)
def test_a_judge_finds_what_it_is_told(finds: Any, found: list[Verdict]) -> None:
    """By default whether the gold stands in the answer; what it was shown is recorded."""
    fake = FakeJudge(finds)
    assert [judge(fake, predicted).verdict for predicted in ("It is GOLD 1.", "no idea")] == found
    assert fake.judged == [(ONE, "It is GOLD 1."), (ONE, "no idea")]


def test_a_judge_fails_as_told() -> None:
    """An exception in the script is raised when it is due."""
    with pytest.raises(ModelError, match="no idea"):
        judge(FakeJudge(ModelError("judge_unreadable", "no idea")), "x")


def test_a_dataset_of_any_size() -> None:
    """Ids, golds and topics are what the docstring says."""
    assert (ONE.id, ONE.problem, ONE.answer, ONE.topic, TWO.topic) == ("q0001", "question 1?", "gold 1", "Odd", "Even")
    assert len(fake_dataset(300)) == len({question.id for question in fake_dataset(300)}) == 300
