"""Answers that state how sure they are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_simpleqa import run
from pytest_simpleqa.errors import OptionError, SpecError
from pytest_simpleqa.models.replay import ReplayAnswerer
from pytest_simpleqa.models.spec import PromptAnswerer
from pytest_simpleqa.models.stated import StatingAnswerer, stating
from pytest_simpleqa.models.wrapping import unwrapped
from pytest_simpleqa.prompts import CONFIDENCE_REQUEST, Template
from pytest_simpleqa.records import Question, Reply
from pytest_simpleqa.testing import FakeJudge, FakeModel, fake_dataset

ASKING = Template("{question}").asking_confidence()
QUESTION = Question("q1", "What is the capital of Australia?", "Canberra")


def answer(said: str | Reply) -> Reply:
    answerer = stating(PromptAnswerer(FakeModel(said), ASKING), ASKING)

    async def once() -> Reply:
        return await answerer.answer(QUESTION, 1)

    return asyncio.run(once())


def test_the_request_stands_in_the_same_prompt() -> None:
    """The prompt is the user's, an empty line, and the request; its hash is another one."""
    assert ASKING.render(QUESTION) == f"{QUESTION.problem}\n\n{CONFIDENCE_REQUEST}"
    assert ASKING.sha256 != Template("{question}").sha256


def test_the_confidence_leaves_the_answer() -> None:
    """The judge sees the answer alone; the percentage is a fraction beside it, and the whole text is kept."""
    reply = answer("Canberra\nConfidence: 85%")
    assert (reply.text, reply.raw, reply.extra) == ("Canberra", "Canberra\nConfidence: 85%", {"confidence": 0.85})


def test_what_else_belongs_to_the_reply_stays() -> None:
    """The text as it came with its thinking, and what a callable attached, are kept."""
    said = Reply("Canberra (85%)", raw="<think>50%?</think>Canberra (85%)", extra={"trace": [1]}, calls=2)
    reply = answer(said)
    assert (reply.text, reply.raw, reply.calls) == ("Canberra", said.raw, 2)
    assert reply.extra == {"trace": [1], "confidence": 0.85}


def test_an_answer_without_a_confidence_stays_as_it_is() -> None:
    """Nothing is cut, attached or invented."""
    said = Reply("Canberra\nConfidence: high", extra={"trace": [1]})
    assert answer(said) == said


def test_unasked_answers_are_not_touched() -> None:
    """Without the request a percentage belongs to the answer."""
    plain = Template("{question}")
    answerer = PromptAnswerer(FakeModel("Canberra\nConfidence: 85%"), plain)
    assert stating(answerer, plain) is answerer
    assert unwrapped(StatingAnswerer(answerer)) is answerer


def test_a_library_run_has_a_calibration() -> None:
    """`ask_confidence` counts what was stated and what was not."""
    dataset = fake_dataset(4)
    said = [f"{question.answer}\nConfidence: {10 * i}%" for i, question in enumerate(dataset)]
    said[3] = "no idea, confidence: low"
    replies = iter(said)

    def ask(prompt: str) -> str:
        assert CONFIDENCE_REQUEST in prompt
        return next(replies)

    report = run(dataset, ask, FakeJudge(), ask_confidence=True, concurrency=1)
    assert report.calibration is not None
    assert (report.calibration["n"], report.calibration["no_confidence"]) == (3, 1)
    assert [(row.extra or {}).get("confidence") for row in report.samples] == [0.0, 0.1, 0.2, None]
    assert [row.predicted for row in report.samples][1:] == [*(q.answer for q in dataset.questions[1:3]), said[3]]
    assert report.options["ask_confidence"]


def test_what_is_sent_no_prompt_is_refused() -> None:
    """An answerer that takes no prompt cannot be asked: one line before anything else."""
    dataset = fake_dataset(2)
    with pytest.raises(SpecError, match="replay is sent no prompt that could ask; a recording has a column 'confiden"):
        run(dataset, "replay:nowhere.csv", FakeJudge(), ask_confidence=True)
    mute: Any = ReplayAnswerer.__new__(ReplayAnswerer)
    mute.max_in_flight = None
    with pytest.raises(OptionError, match="ask_confidence: ReplayAnswerer is sent no prompt that asks; wanted a model"):
        run(dataset, mute, FakeJudge(), ask_confidence=True)
