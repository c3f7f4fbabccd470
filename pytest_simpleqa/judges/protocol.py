"""What turns a question and a predicted answer into a verdict: the protocol that the engine drives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from ..models.protocol import Model
from ..records import Judgement, Prompt, Question, Reply

Complete = Callable[[Prompt], Awaitable[Reply]]
"""Completes a prompt with the judge's model, tried again while that helps; raises ModelError."""


@runtime_checkable
class Judge(Protocol):
    """Something that turns a question and a predicted answer into a verdict."""

    model: Model | None
    """The judge model; None for a judge that asks none."""

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        """Return the judgement; raise ModelError where the judge model gave no usable reply.

        `predicted` is never blank; `repeat` counts the askings of one question from 1. `complete` may be
        called only where `model` is not None.
        """
        ...

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]: ...
