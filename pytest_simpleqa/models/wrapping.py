"""What stands around the answer model: wrappers that change its prompt or its answer, or answer without it."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from ..errors import ModelError, RunStopped, SpecError
from ..prompts import Template
from ..records import Prompt, Question, Reply
from .importing import error_line, where
from .protocol import Answerer, PromptingAnswerer, complete_with
from .spec import PromptAnswerer, reply_of
from .stated import StatingAnswerer


class Inner(Protocol):
    """Completes a prompt with what stands further in, in the end with the model; raises ModelError."""

    async def __call__(self, prompt: Prompt, **params: Any) -> Reply:
        """Return the reply; `params` are request parameters under the user's, as far as the model takes any."""
        ...


Wrapper = Callable[[Question, Prompt, Inner, int], Awaitable[Reply | str]]
"""An async function `(question, prompt, complete, repeat)`, or an object that is called like one.

It may have `describe()`, whose plain JSON tells one wrapped run from another, and `close()`.
"""
_HOOK = "the hook pytest_simpleqa_wrap returned"


def wrapped(answerer: Answerer, wrappers: Sequence[Any], template: Template, said: str = _HOOK) -> Answerer:
    """Return `answerer` with `wrappers` around it, the outermost first; as it is where there are none.

    `said` is how a mistake is told: where the wrappers come from. Raises SpecError for what is no wrapper.
    """
    for wrapper in wrappers:
        _require_wrapper(wrapper, said)
    return WrappedAnswerer(answerer, wrappers, template) if wrappers else answerer


def unwrapped(answerer: Answerer | None) -> Answerer | None:
    """Return what stands inside all wrappers."""
    while isinstance(answerer, (WrappedAnswerer, StatingAnswerer)):
        answerer = answerer.inner
    return answerer


class WrappedAnswerer:
    """An answerer with wrappers around it; the engine sees one answerer, and tries all of it again."""

    def __init__(self, inner: Answerer, wrappers: Sequence[Wrapper], template: Template) -> None:
        self.inner = inner
        self.max_in_flight = inner.max_in_flight
        self.is_service = inner.is_service
        self._wrappers = tuple(wrappers)
        self._template = template

    async def answer(self, question: Question, repeat: int) -> Reply:
        complete = self._innermost(question, repeat)
        for wrapper in reversed(self._wrappers):
            complete = _around(wrapper, complete, question, repeat)
        return await complete(self._prompt_of(question))

    async def close(self) -> None:
        """Close the wrappers, the outermost first, then what they stand around."""
        for wrapper in self._wrappers:
            if (close := getattr(wrapper, "close", None)) is not None:
                with contextlib.suppress(Exception):  # the user's code; what is finished counts, not how it ends
                    if inspect.isawaitable(closing := close()):
                        await closing
        await self.inner.close()

    def describe(self) -> Mapping[str, Any]:
        """Return what the inner answerer says of itself, and `wrapped_by`, the outermost first."""
        return {**self.inner.describe(), "wrapped_by": [_described(wrapper) for wrapper in self._wrappers]}

    def _prompt_of(self, question: Question) -> Prompt:
        inner = self.inner
        return inner.prompt_of(question) if isinstance(inner, PromptingAnswerer) else self._template.render(question)

    def _innermost(self, question: Question, repeat: int) -> Inner:
        inner = self.inner
        may_change = not getattr(inner, "asks_by_itself", False)

        async def ask(prompt: Prompt, **params: Any) -> Reply:
            if isinstance(inner, PromptAnswerer):
                return await complete_with(inner.model, prompt, params)
            if isinstance(inner, PromptingAnswerer):
                return await inner.answer_to(prompt, params)
            if not may_change and (params or prompt != self._prompt_of(question)):
                raise ModelError(
                    "exception", "this eval asks by itself: a wrapper can change its answers only", calls=0
                )
            return await inner.answer(question, repeat)  # a recording or a hook answers, whatever the prompt

        return ask


class _Meter:
    """Counts what one wrapper spends on one question."""

    def __init__(self, complete: Inner) -> None:
        self._complete = complete
        self._calls = 0
        self._replies: list[Reply] = []

    async def complete(self, prompt: Prompt, **params: Any) -> Reply:
        try:
            reply = await self._complete(prompt, **params)
        except ModelError as error:
            self._calls += error.calls
            raise
        self._calls += reply.calls
        self._replies.append(reply)
        return reply

    @property
    def calls(self) -> int:
        """Requests so far, failed ones included."""
        return self._calls

    def told(self, said: Any, name: str) -> Reply:
        """Return what the wrapper said as a Reply that costs what was spent."""
        reply = reply_of(name, said)
        if not isinstance(said, Reply) and self._replies:  # a text: who said it stands in the reply it was made of
            last = self._replies[-1]
            reply = replace(reply, model=last.model, latency_s=last.latency_s, notes=last.notes, extra=last.extra)
        return replace(
            reply,
            calls=self._calls,
            prompt_tokens=sum(each.prompt_tokens for each in self._replies),
            completion_tokens=sum(each.completion_tokens for each in self._replies),
        )


def _around(wrapper: Wrapper, complete: Inner, question: Question, repeat: int) -> Inner:
    """Return what `complete` becomes with `wrapper` around it."""
    name = wrapper_name(wrapper)

    async def outer(prompt: Prompt, **params: Any) -> Reply:
        meter = _Meter(functools.partial(complete, **params))
        try:
            return meter.told(await wrapper(question, prompt, meter.complete, repeat), name)
        except ModelError as error:
            error.calls = meter.calls
            raise
        except RunStopped:
            raise
        except Exception as error:  # the user's code
            raise ModelError("exception", f"{name}: {error_line(error)}{where(error)}", calls=meter.calls) from error

    return outer


def wrapper_name(wrapper: Any) -> str:
    """Return `module:qualname` of a wrapper, of its class where it is an object."""
    if isinstance(wrapper, functools.partial):
        return wrapper_name(wrapper.func)
    owner = wrapper if hasattr(wrapper, "__qualname__") else type(wrapper)
    return f"{owner.__module__}:{owner.__qualname__}"


def _described(wrapper: Any) -> dict[str, Any]:
    describe = getattr(wrapper, "describe", None)
    return {"name": wrapper_name(wrapper), **(describe() if describe is not None else {})}


def _require_wrapper(given: Any, said: str) -> None:
    """Raise SpecError where `given` is no wrapper: a mistake that would otherwise cost every question."""
    call = given if inspect.isroutine(given) else getattr(type(given), "__call__", None)  # noqa: B004  the method itself
    if not inspect.iscoroutinefunction(given) and not inspect.iscoroutinefunction(call):
        raise SpecError(f"{said} {_kind(given)}; wanted an async function (question, prompt, complete, repeat)")
    try:
        inspect.signature(given).bind(None, None, None, 1)
    except TypeError as error:
        wanted = "(question, prompt, complete, repeat)"
        raise SpecError(f"{said} {wrapper_name(given)}, which cannot be called with {wanted}: {error}") from None
    try:
        _described(given)
    except Exception as error:
        raise SpecError(f"{said} {wrapper_name(given)}, whose describe() failed: {error_line(error)}") from error


def _kind(given: Any) -> str:
    return "a plain function" if inspect.isroutine(given) else type(given).__name__
