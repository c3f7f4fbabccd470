"""What completes a prompt and what answers a question: the two protocols that the engine drives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from ..records import Prompt, Question, Reply

Complete = Callable[[Prompt], Awaitable[Reply]]
"""Completes a prompt with the model that stands behind it; raises ModelError."""


@runtime_checkable
class Model(Protocol):
    """Something that completes a prompt."""

    max_in_flight: int | None
    """The most requests it takes at once in the whole run; None where it sets no bound."""
    is_service: bool
    """Whether a call costs a request to a service (and is counted in the announcement)."""

    async def complete(self, prompt: Prompt) -> Reply:
        """Return the reply to `prompt`; raise ModelError where there is no usable one.

        Sends one request: trying again is the engine's business. Safe to call many times at once
        from one event loop.
        """
        ...

    async def close(self) -> None:
        """Give back connections and threads; called once, on the loop that `complete` ran on."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return `provider, model, base_url_host, params` and whatever else is fit for the Report; no secrets."""
        ...


@runtime_checkable
class TunableModel(Model, Protocol):
    """A model that takes request parameters with a prompt."""

    async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        """Do as `complete` does, with `params` under those that the user gave the model."""
        ...


async def complete_with(model: Model, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
    """Return the reply of `model` to `prompt`, with request parameters as far as it takes any."""
    if params and isinstance(model, TunableModel):
        return await model.complete_with(prompt, params)
    return await model.complete(prompt)


@runtime_checkable
class Answerer(Protocol):
    """Something that answers a question without being sent a prompt: a recording, a hook."""

    max_in_flight: int | None
    is_service: bool

    async def answer(self, question: Question, repeat: int) -> Reply:
        """Return the answer; raise ModelError where there is none."""
        ...

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]: ...


@runtime_checkable
class PromptingAnswerer(Answerer, Protocol):
    """An answerer that puts one prompt of its own to a model, which may be changed."""

    def prompt_of(self, question: Question) -> Prompt:
        """Return what is put to the model."""
        ...

    async def answer_to(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        """Do as `answer` does, with that prompt, and with `params` over its own ones."""
        ...
