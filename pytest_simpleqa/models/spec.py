"""From a spec as typed to what answers: `<alias>[:<model>]` put together with its surroundings."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ModelError, SpecError
from ..prompts import Template
from ..records import Prompt, Question, Reply
from ..secret import Secret
from .connection import Connection, resolve_connection
from .credentials import Credential, Token
from .http import HttpModel
from .importing import find_target
from .local import LOCAL_SLOTS, check_local, local_defaults
from .protocol import Answerer, Model
from .replay import Recording, ReplayAnswerer
from .reply import cut_thinking, plain_text

Params = Mapping[str, Any]

BUILT_IN = ("local", "python", "fn", "replay", "hook")
"""Aliases that are no connection of the environment."""
BASIC_JUDGES = ("match", "includes", "fuzzy_match", "json_match")
"""The judges that compare as OpenAI Evals' basic templates do."""
JUDGES_ONLY = ("rules", *BASIC_JUDGES)
_NEXT_SPEC = re.compile(r",\s*(?=[A-Za-z][\w-]*(?::|,|$))")
"""A comma with an alias behind it."""


class LocalAddress(NamedTuple):
    """Where the embedded server of this run listens."""

    base_url: str
    model: str


@dataclass(frozen=True)
class Surroundings:
    """What a spec may need from the process that resolves it."""

    environment: Mapping[str, str] = field(repr=False)
    """Holds keys: never shown, not by --showlocals either."""
    base: Path
    """The folder that relative paths count from and that is importable."""
    questions: Sequence[Question]
    """The dataset in order, for pairing with recordings."""
    local_address: Callable[[Path], LocalAddress]
    """Starts the embedded server for a model file, or tells where it runs already; may block."""
    threads: int = 32
    """Threads for a plain function that answers or judges."""
    model_hook: Callable[[str], Model | None] | None = None
    """What a conftest makes of an alias of its own."""
    functions: Callable[[str, Params, Surroundings], Model] | None = None
    """Makes the model behind `fn:NAME`, a completion function of a registry of evals."""
    answer_hook: Callable[[Question], Awaitable[Any]] | None = None
    judge_hook: Callable[[Question, str], Awaitable[Any]] | None = None


def split_spec(text: str) -> tuple[str, str | None]:
    """Return the alias and what stands behind the first colon."""
    alias, colon, argument = text.partition(":")
    return alias, argument if colon else None


def split_specs(text: str) -> tuple[str, ...]:
    """Return the specs of several models, with a comma between them; a comma inside a path or a name is none."""
    return tuple(part.strip() for part in _NEXT_SPEC.split(text))


def resolve_model(text: str, params: Params, around: Surroundings, *, judges: bool = False) -> Model:
    """Return the model that `text` names; nothing is asked, opened or started yet. Raises SpecError."""
    alias, argument = split_spec(text)
    if alias == "local":
        path = check_local(argument, around.base)
        return LocalModel(path, params, around, local_defaults(argument, judges=judges))
    if alias == "python":
        from .callables import load_callable

        if not argument:
            raise SpecError("python: names no callable; write python:package.module:attribute")
        sent = {key: value for key, value in params.items() if value is not None}
        return load_callable(argument, around.base, params=sent, threads=around.threads)
    if alias == "fn":
        if not argument or around.functions is None:
            raise SpecError("fn: names no completion function; write fn:NAME, as a registry of OpenAI Evals has it")
        return around.functions(argument, params, around)
    if around.model_hook is not None and (model := around.model_hook(text)) is not None:
        if not isinstance(model, Model):
            raise SpecError(
                f"{text}: the hook pytest_simpleqa_model returned {type(model).__name__}; wanted an object with "
                "complete, close, describe, max_in_flight and is_service"
            )
        return model
    connection = resolve_connection(text, around.environment, known=(*BUILT_IN, *JUDGES_ONLY))
    return _asked(connection, params, around)


def _asked(connection: Connection, params: Params, around: Surroundings) -> Model:
    """Return the model behind `connection`, with whatever proves to the service who asks."""
    if connection.provider == "litellm":
        from .through_litellm import LitellmModel

        return LitellmModel(connection, params, around.environment)
    return HttpModel(connection, params, _credential_of(connection, around))


def _credential_of(connection: Connection, around: Surroundings) -> Credential | None:
    """Return what stands in for a key, where there is none."""
    if connection.token_source:
        target = find_target(connection.token_source.removeprefix("python:"), around.base)
        if not callable(target):
            raise SpecError(f"{connection.key_from} is of type {type(target).__name__}; wanted something to call")
        return Token(connection.token_source, target)
    if connection.signed_for:
        from .sigv4 import Signature

        return Signature(connection.signed_for, around.environment)
    return None


def resolve_answerer(text: str, params: Params, template: Template, around: Surroundings) -> Answerer:
    """Return what answers under the spec `text`. Raises SpecError."""
    alias, argument = split_spec(text)
    if alias in JUDGES_ONLY:
        raise SpecError(f"--answer-llm {text}: {alias} is a judge and answers nothing; use it with --judge-llm")
    if alias in ("replay", "hook") and template.asks_confidence:
        raise SpecError(
            f"--simpleqa-ask-confidence: {alias} is sent no prompt that could ask; a recording has a column "
            "'confidence', a hook returns Reply(text, extra={'confidence': 0.85})"
        )
    if alias == "replay":
        recording = Recording.load(argument or "", around.base)
        recording.bind(around.questions)
        recording.require_pairs()
        return ReplayAnswerer(recording)
    if alias == "hook":
        if around.answer_hook is None:
            raise SpecError(f"--answer-llm {text}: no conftest.py implements pytest_simpleqa_answer")
        return FunctionAnswerer(text, around.answer_hook)
    return PromptAnswerer(resolve_model(text, params, around), template)


class PromptAnswerer:
    """Puts the answer prompt to a model."""

    def __init__(self, model: Model, template: Template) -> None:
        self.model = model
        self.max_in_flight = model.max_in_flight
        self.is_service = model.is_service
        self._template = template

    async def answer(self, question: Question, repeat: int) -> Reply:
        return await self.model.complete(self._template.render(question))

    async def close(self) -> None:
        await self.model.close()

    def describe(self) -> Mapping[str, Any]:
        return self.model.describe()


class FunctionAnswerer:
    """Answers with what a function says of a question: a text, a Reply, or None where it declines."""

    max_in_flight: int | None = None
    is_service = True

    def __init__(self, name: str, function: Callable[[Question], Awaitable[Any]]) -> None:
        self._name = name
        self._function = function

    async def answer(self, question: Question, repeat: int) -> Reply:
        return reply_of(self._name, await self._function(question))

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "hook", "model": self._name, "base_url_host": None, "params": {}}


def reply_of(name: str, said: Any) -> Reply:
    """Return what a function called `name` said as a Reply; raise ModelError where it is no answer."""
    if isinstance(said, Reply):
        return said
    if said is None:
        raise ModelError("declined", f"{name} gave no answer")
    if not isinstance(said, str):
        raise ModelError("exception", f"{name} returned {type(said).__name__}; wanted str")
    raw = plain_text(said)
    text, left_open = cut_thinking(raw)
    if left_open:
        raise ModelError("truncated", f"{name} returned a <think> block without its end")
    return Reply(text, raw=None if text == raw else raw)


class LocalModel:
    """The embedded llama.cpp server, started (or found) when the first prompt comes."""

    is_service = True

    def __init__(self, path: Path, params: Params, around: Surroundings, defaults: Params) -> None:
        self.max_in_flight: int | None = LOCAL_SLOTS
        self.path = path
        self._params = params
        self._defaults = defaults
        self._address = around.local_address
        self._http: HttpModel | None = None
        self._opening: asyncio.Lock | None = None

    async def complete(self, prompt: Prompt) -> Reply:
        return await self.complete_with(prompt, {})

    async def complete_with(self, prompt: Prompt, params: Params) -> Reply:
        if self._http is None:
            self._opening = self._opening or asyncio.Lock()
            async with self._opening:
                if self._http is None:
                    self._http = await self._open()
        return await self._http.complete_with(prompt, {**self._defaults, **params})

    async def _open(self) -> HttpModel:
        address = await asyncio.to_thread(self._address, self.path)
        connection = Connection(
            alias="local", provider="local", base_url=address.base_url, model=address.model, api_key=Secret("")
        )
        return HttpModel(connection, self._params)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    def describe(self) -> Mapping[str, Any]:
        return {
            "provider": "local",
            "model": self.path.name,
            "base_url_host": "localhost",
            "params": {**self._defaults, **self._params},
        }
