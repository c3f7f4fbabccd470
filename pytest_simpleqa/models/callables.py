"""Models that are Python callables: `python:package.module:attribute`."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from ..errors import ModelError, RunStopped, SpecError
from ..records import Prompt, Reply
from .importing import error_line, find_target, where
from .protocol import Model
from .reply import cut_thinking, plain_text
from .runnables import RunnableModel, is_runnable
from .shapes import as_chat, as_text
from .threads import DaemonThreads


def load_callable(argument: str, base: Path, *, params: Mapping[str, Any] | None = None, threads: int = 32) -> Model:
    """Return the model behind `python:ARGUMENT`; modules in the folder `base` are importable from now on.

    `params` go to the callable as keyword arguments as far as it takes them; a sync callable runs in up
    to `threads` threads. An attribute that is a Model already is returned as it is. Raises SpecError.
    """
    spec = f"python:{argument}"
    target = find_target(argument, base)
    return callable_model(argument, _make(spec, target) if argument.endswith("()") else target, params, threads)


def callable_model(
    name: str,
    target: Any,
    params: Mapping[str, Any] | None = None,
    threads: int = 32,
    home: asyncio.AbstractEventLoop | None = None,
) -> Model:
    """Return the model that calls `target`, which messages name as `python:NAME`; see `load_callable`.

    What `target` gives to await is awaited on the loop `home`, by default the one that `complete` runs on.
    """
    spec = f"python:{name}"
    is_class = inspect.isclass(target)  # as an expression it would narrow the type to one that mypy calls unhashable
    if is_class:
        target = _make(spec, functools.partial(_instance, target))
    if isinstance(target, Model):
        return target
    if is_runnable(target):
        return RunnableModel(spec, target)
    return CallableModel(name, _checked(spec, target), _accepted(spec, target, params or {}), threads, home)


def check_callable(argument: str, base: Path) -> None:
    """Raise SpecError unless `python:ARGUMENT` can be imported and called; makes no instance of anything."""
    target = find_target(argument, base)
    if argument.endswith("()") or inspect.isclass(target):
        _checked(f"python:{argument}", target)
    elif not isinstance(target, Model) and not is_runnable(target):
        _accepted(f"python:{argument}", _checked(f"python:{argument}", target), {})


class CallableModel:
    """A model that is a function or an object of the user's."""

    is_service = True
    alias = "python"
    """What stands before its name in messages."""

    def __init__(
        self,
        name: str,
        target: Callable[..., Any],
        params: Mapping[str, Any],
        threads: int,
        home: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._name = name
        self._target = target
        self._params = dict(params)
        self._home = home
        self._wants_chat = bool(getattr(target, "chat", False))
        self._threads = None if _is_async(target) else DaemonThreads(threads)
        self.max_in_flight = threads if self._threads else None

    async def complete(self, prompt: Prompt) -> Reply:
        """Return what the callable says to `prompt`; whatever it raises becomes a ModelError."""
        return await self.complete_with(prompt, {})

    async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        """Do as `complete` does, with those of `params` that the callable takes, under its own."""
        given = {**_taken(self._target, params), **self._params} if params else self._params
        started = time.perf_counter()
        call = functools.partial(self._target, self._shaped(prompt), **given)
        if self._threads is None:
            value = await self._await(call)
        else:
            value = await self._threads.run(functools.partial(_call, call))
            if inspect.isawaitable(value):
                value = await self._await(lambda: value)
        return self._reply(value, time.perf_counter() - started)

    async def close(self) -> None:
        """End the threads that are idle; a hung one is left to die with the process."""
        if self._threads is not None:
            self._threads.close()

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of this model."""
        return {"provider": self.alias, "model": self._name, "base_url_host": None, "params": self._params}

    def _shaped(self, prompt: Prompt) -> Prompt:
        """Return `prompt` in the shape that the target wants."""
        return as_chat(prompt) if self._wants_chat else as_text(prompt)

    async def _await(self, call: Callable[[], Any]) -> Any:
        """Call and await on the loop; what comes out is a value, a ModelError, or a cancellation of ours."""
        try:
            return _completion(await (call() if self._home is None else _at(self._home, call)))
        except GeneratorExit:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            _raise_as_model_error(error)
        except KeyboardInterrupt as error:
            if threading.current_thread() is threading.main_thread():
                raise  # a real Ctrl-C, where the loop runs on the main thread
            _raise_as_model_error(error)
        except BaseException as error:
            _raise_as_model_error(error)

    def _reply(self, value: Any, seconds: float) -> Reply:
        if value is None:
            raise ModelError("declined", f"{self.alias}:{self._name} returned None")
        said = value.text if isinstance(value, Reply) else value
        if not isinstance(said, str):
            raise ModelError("exception", f"{self.alias}:{self._name} returned {type(value).__name__}; wanted str")
        if isinstance(value, Reply):
            latency = seconds if value.latency_s is None else value.latency_s
            return replace(value, text=plain_text(said), latency_s=latency, extra=self._plain_extra(value))
        raw = plain_text(said)
        text, left_open = cut_thinking(raw)
        if left_open:
            raise ModelError("truncated", f"{self.alias}:{self._name} returned a <think> block without its end")
        return Reply(text, raw=None if text == raw else raw, latency_s=seconds)

    def _plain_extra(self, reply: Reply) -> Mapping[str, Any] | None:
        # A value that is not plain JSON would end an xdist worker or the Report, long after it was made.
        if reply.extra is None:
            return None
        try:
            text = json.dumps(dict(reply.extra), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"{self.alias}:{self._name} returned a Reply whose `extra` is not plain JSON: {error}"
            raise ModelError("exception", message) from None
        plain: Mapping[str, Any] = json.loads(plain_text(text))
        return plain


def _call(call: Callable[[], Any]) -> Any:
    """Call the target in a thread, where nothing but a ModelError may come out."""
    try:
        return _completion(call())
    except BaseException as error:
        _raise_as_model_error(error)


async def _at(home: asyncio.AbstractEventLoop, call: Callable[[], Any]) -> Any:
    """Call and await on another loop, where the user's clients live; a cancellation goes there too."""

    async def at_home() -> Any:
        return await call()

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(at_home(), home))


def _completion(value: Any) -> Any:
    """Return the first completion of an OpenAI Evals result, anything else as it is."""
    completions = getattr(value, "get_completions", None)
    return value if completions is None else next(iter(completions()), None)


def _raise_as_model_error(error: BaseException) -> NoReturn:
    if isinstance(error, (ModelError, RunStopped)):
        raise error
    raise ModelError("exception", f"{error_line(error)}{where(error)}") from error


def _is_async(target: object) -> bool:
    method = getattr(type(target), "__call__", None)  # noqa: B004 - the method itself is looked at
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(method)


@functools.cache
def _instance(made: Callable[[], Any]) -> Any:
    """Return the one instance of a class in this process."""
    return made()


def _make(spec: str, factory: Any) -> Any:
    try:
        return _checked(spec, factory)()
    except (Exception, SystemExit) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"{spec}: making it failed: {error_line(error)}{where(error)}") from error


def _checked(spec: str, target: Any) -> Callable[..., Any]:
    if not callable(target):
        raise SpecError(f"{spec} is of type {type(target).__name__}; wanted something to call with a prompt")
    return target  # type: ignore[no-any-return] # callable() does not narrow Any


def _accepted(spec: str, target: Callable[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of `params` that `target` takes beside the prompt; raise SpecError where that is not enough."""
    accepted = _taken(target, params)
    if (signature := _signature(target)) is not None:
        try:
            signature.bind("prompt", **accepted)
        except TypeError as error:
            raise SpecError(f"{spec} cannot be called with one prompt: {error}") from None
    return accepted


def _taken(target: Callable[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of `params` that `target` takes beside the prompt; none where it does not say."""
    signature = _signature(target)
    takes = list(signature.parameters.values()) if signature else []
    named = {p.name for p in takes[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_all = any(p.kind is p.VAR_KEYWORD for p in takes)
    return {key: value for key, value in params.items() if takes_all or key in named}


def _signature(target: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(target)
    except (TypeError, ValueError):  # written in C: it does not say
        return None
