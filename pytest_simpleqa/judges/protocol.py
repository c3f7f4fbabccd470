"""What turns a question and a predicted answer into a verdict: the protocol that the engine drives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from ..models.protocol import Complete as Complete  # what judges are given stands here, too
from ..models.protocol import Model
from ..records import Judgement, Question


@runtime_checkable
class Judge(Protocol):
    """Something that turns a question and a predicted answer into a verdict."""

    model: Model | None
    """The judge model; None for a judge that asks none."""

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        """Return the judgement; raise ModelError where the judge model gave no usable reply.

        `predicted` is never blank; `repeat` counts the askings of one question from 1. `complete` puts a
        prompt to `model`, tried again while that helps; it may be called only where `model` is not None.
        """
        ...

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]: ...
