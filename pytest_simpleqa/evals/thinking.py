"""Chain of thought around any model: think first, then give the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import ModelError
from ..models.protocol import Model, complete_with
from ..models.shapes import as_chat
from ..records import Prompt, Reply

THINK = "\nThink it through step by step first. Give your answer at the end."
EXTRACT = "\nNow give the final answer alone, in the form that the question asks for."


class ThinkingModel:
    """Asks a model to think, and the same or another for the answer that follows; the thinking stands in `extra`."""

    def __init__(self, name: str, thinker: Model, extractor: Model, think: str = THINK, extract: str = EXTRACT) -> None:
        self.models = (thinker, extractor)
        bounds = [model.max_in_flight for model in self.models if model.max_in_flight is not None]
        self.max_in_flight = min(bounds, default=None)
        self.is_service = any(model.is_service for model in self.models)
        self.calls_each = sum(model.is_service for model in self.models)
        self._name = name
        self._think = think
        self._extract = extract
        self._thoughts: dict[str, list[Reply]] = {}
        """What was thought by prompt, where the answer then failed: the next try begins behind it."""

    async def complete(self, prompt: Prompt) -> Reply:
        """Return the answer, with what both requests cost."""
        return await self.complete_with(prompt, {})

    async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        """Do as `complete` does; the thinking has as many tokens as it wants, `params` are for the answer."""
        thinker, extractor = self.models
        asked = _with_user(prompt, self._think)
        key = repr(asked)
        kept = self._thoughts.pop(key, [])
        loose = {name: value for name, value in params.items() if name not in _BOUNDS}
        thought = kept.pop() if kept else await complete_with(thinker, asked, loose)
        spent = 0 if kept else thought.calls
        if kept:
            self._thoughts[key] = kept
        follow = [*as_chat(asked), {"role": "assistant", "content": thought.text}]
        try:
            answer = await complete_with(extractor, _with_user(follow, self._extract), params)
        except ModelError as error:
            error.calls += spent
            self._thoughts.setdefault(key, []).append(replace(thought, calls=0))
            raise
        return _joined(thought, answer)

    async def close(self) -> None:
        for model in {id(model): model for model in self.models}.values():
            await model.close()

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of it: both models, and what they are told."""
        thinker, extractor = (dict(model.describe()) for model in self.models)
        told = {"think": self._think, "extract": self._extract, "thinker": thinker, "extractor": extractor}
        return {
            "provider": "fn",
            "model": self._name,
            "base_url_host": thinker.get("base_url_host"),
            "params": thinker.get("params", {}),
            "chain_of_thought": told,
        }


_BOUNDS = ("max_tokens", "max_completion_tokens", "stop")
"""Meant for an answer's length: they would cut the thinking short."""


def _with_user(chat: Prompt, text: str) -> Prompt:
    """Return `chat` with `text` said by the user at its end: one turn, since many services want turns to alternate."""
    if isinstance(chat, str):
        return chat + text
    if chat[-1]["role"] != "user":
        return [*chat, {"role": "user", "content": text.strip()}]
    return [*chat[:-1], {**chat[-1], "content": chat[-1]["content"] + text}]


def _joined(thought: Reply, answer: Reply) -> Reply:
    latencies = [reply.latency_s for reply in (thought, answer) if reply.latency_s is not None]
    return replace(
        answer,
        text=answer.text.strip(),
        calls=thought.calls + answer.calls,
        prompt_tokens=thought.prompt_tokens + answer.prompt_tokens,
        completion_tokens=thought.completion_tokens + answer.completion_tokens,
        latency_s=sum(latencies) if latencies else None,
        extra={**(answer.extra or {}), "thinking": thought.text},
        notes=tuple(dict.fromkeys((*thought.notes, *answer.notes))),
    )
