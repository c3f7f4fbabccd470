"""How a sample is put to the answer model: prompt, request parameters, and what came of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import ModelError, OptionError
from ..models.protocol import Model, TunableModel, complete_with
from ..records import Prompt, Question, Reply
from ..rows import BadRowError, kind_of


class SampleAnswerer:
    """Puts each sample's prompt to a model."""

    def __init__(
        self,
        model: Model,
        prompt: Callable[[Question], Prompt],
        params: Mapping[str, Any],
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """`params` are sent under those that the user gave the model; `about` tells this eval's asking from others."""
        self.model = model
        self.max_in_flight = model.max_in_flight
        self.is_service = model.is_service
        self._prompt = prompt
        self._params = params
        self._about = dict(about or {})

    async def answer(self, question: Question, repeat: int) -> Reply:
        return await self.answer_to(self._prompt(question), {})

    def prompt_of(self, question: Question) -> Prompt:
        """Return what is put to the model."""
        return self._prompt(question)

    async def answer_to(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        """Return the answer, also one that ends at the `max_tokens` of the template: it is meant to."""
        try:
            return await complete_with(self.model, prompt, {**self._params, **params})
        except ModelError as error:
            if error.partial is None or "max_tokens" not in self._params:
                raise
            note = f"cut off at the token limit, as the eval wants (max_tokens {self._params['max_tokens']})"
            return replace(error.partial, notes=(*error.partial.notes, note))

    async def close(self) -> None:
        await self.model.close()

    def describe(self) -> Mapping[str, Any]:
        described = {**self.model.describe(), **self._about}
        if isinstance(self.model, TunableModel):
            described["params"] = {**self._params, **described.get("params", {})}
        return described


def only_model(name: str, models: tuple[Model, ...]) -> Model:
    """Return the one model under test; raises OptionError where the eval `name` is given more."""
    if len(models) != 1:
        raise OptionError(f"{name}: {len(models)} answer models found, one was wanted: its template asks a single one")
    return models[0]


def checked_prompt(value: Any, key: str = "input") -> Prompt:
    """Return a sample's prompt, a text or chat messages; raise BadRowError for anything else."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise BadRowError(f"{key!r} is {kind_of(value) if value else 'empty'}; a text or chat messages were wanted")
    for number, message in enumerate(value, 1):
        if not isinstance(message, dict):
            raise BadRowError(f"{key!r}, message {number}: {kind_of(message)} found, an object was wanted")
        for part in ("role", "content"):
            if not isinstance(message.get(part), str):
                found = kind_of(message[part]) if part in message else "nothing"
                raise BadRowError(f"{key!r}, message {number}: {found} found at {part!r}, a text was wanted")
    return value
