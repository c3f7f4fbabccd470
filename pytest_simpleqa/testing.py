"""Fakes for tests of whatever drives a model or a judge: scripted, recording, offline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .models.protocol import Complete, Model
from .records import Dataset, Judgement, Prompt, Question, Reply, Verdict

Said = str | Reply | BaseException
"""What a fake model says to one prompt; an exception is raised."""
Found = Verdict | Judgement | BaseException
"""What a fake judge finds; an exception is raised."""


class FakeModel:
    """A model that says what it is told to.

    `says` is one reply for ever, several in turn (the last for ever), or a function of the prompt.

        model = FakeModel(["Paris", ModelError("rate_limited", "slow down", status=429), "Rome"])
        report = run("sample", model, FakeJudge())
        assert model.prompts[0] == "What is the capital of France?"
    """

    def __init__(
        self,
        says: Said | Sequence[Said] | Callable[[Prompt], Said] = "an answer",
        *,
        latency_s: float = 0.0,
        max_in_flight: int | None = None,
        is_service: bool = True,
        name: str = "fake",
    ) -> None:
        self._says = says
        self._name = name
        self.latency_s = latency_s
        self.max_in_flight = max_in_flight
        self.is_service = is_service
        self.prompts: list[Prompt] = []
        """What it was asked, in order."""
        self.in_flight = 0
        self.most_in_flight = 0
        self.closed = 0
        """How often it was closed."""

    async def complete(self, prompt: Prompt) -> Reply:
        """Record the prompt, wait `latency_s`, then say what is due."""
        self.prompts.append(prompt)
        number = len(self.prompts)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s)
            said = _due(self._says, number, prompt)
        finally:
            self.in_flight -= 1
        return said if isinstance(said, Reply) else Reply(said, latency_s=self.latency_s)

    async def close(self) -> None:
        """Count the call; the fake may be used again."""
        self.closed += 1

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of it."""
        return {"provider": "fake", "model": self._name, "base_url_host": None, "params": {}}


class FakeJudge:
    """A judge that finds what it is told to, by default whether the gold stands in the answer.

    `finds` is one verdict for ever, several in turn (the last for ever), or a function of question and answer.
    """

    model: Model | None = None

    def __init__(
        self,
        finds: Found | Sequence[Found] | Callable[[Question, str], Found] | None = None,
        *,
        latency_s: float = 0.0,
    ) -> None:
        self._finds = finds or _gold_stands_in
        self.latency_s = latency_s
        self.judged: list[tuple[Question, str]] = []
        """What it was shown, in order."""
        self.closed = 0
        """How often it was closed."""

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        """Record what is shown, wait `latency_s`, then find what is due."""
        self.judged.append((question, predicted))
        number = len(self.judged)
        await asyncio.sleep(self.latency_s)
        found = _due(self._finds, number, question, predicted)
        return found if isinstance(found, Judgement) else Judgement(found)

    async def close(self) -> None:
        """Count the call; the fake may be used again."""
        self.closed += 1

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of it."""
        return {"provider": "fake", "model": "judge", "base_url_host": None, "params": {}}


def fake_dataset(count: int) -> Dataset:
    """Return `count` questions, `q0001` with the gold `gold 1` and so on, in two topics by turns."""
    questions = tuple(
        Question(f"q{n:04d}", f"question {n}?", f"gold {n}", topic="Even" if n % 2 == 0 else "Odd")
        for n in range(1, count + 1)
    )
    return Dataset("fake", questions, sha256="0" * 64)


def _gold_stands_in(question: Question, predicted: str) -> Verdict:
    is_there = question.answer.casefold() in predicted.casefold()
    return Verdict.CORRECT if is_there else Verdict.INCORRECT


def _due(script: Any, number: int, *asked: Any) -> Any:
    """Return what the script says to call `number` (from 1); raise what is an exception."""
    if callable(script):
        said = script(*asked)
    elif isinstance(script, Sequence) and not isinstance(script, str):
        said = script[min(number, len(script)) - 1]
    else:
        said = script
    if isinstance(said, BaseException):
        raise said
    return said
