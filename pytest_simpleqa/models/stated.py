"""Answers that state how sure they are: the confidence is taken out of the text and kept beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..confidence import split_confidence
from ..prompts import Template
from ..records import Question, Reply
from .protocol import Answerer


def stating(answerer: Answerer, template: Template) -> Answerer:
    """Return `answerer` so that what it states of its confidence is no part of its answers, where `template` asks."""
    return StatingAnswerer(answerer) if template.asks_confidence else answerer


class StatingAnswerer:
    """An answerer whose prompt asks for a stated confidence."""

    def __init__(self, inner: Answerer) -> None:
        self.inner = inner
        self.max_in_flight = inner.max_in_flight
        self.is_service = inner.is_service

    async def answer(self, question: Question, repeat: int) -> Reply:
        """Return the answer without its confidence, which is `extra["confidence"]`; as it came where it states none."""
        reply = await self.inner.answer(question, repeat)
        text, confidence = split_confidence(reply.text, question.problem)
        if confidence is None:
            return reply
        extra = {**(reply.extra or {}), "confidence": confidence}
        return replace(reply, text=text, raw=reply.text if reply.raw is None else reply.raw, extra=extra)

    async def close(self) -> None:
        await self.inner.close()

    def describe(self) -> Mapping[str, Any]:
        return self.inner.describe()
