"""The loop that awaits blocking work: what belongs to it is called on it, and its cancellation stops the work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import ParamSpec, TypeVar

from .models.threads import DaemonThreads

P = ParamSpec("P")
T = TypeVar("T")


class Caller:
    """The loop that waits for a piece of work in another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._stop: Callable[[str], object] | None = None
        self._is_gone = False

    def post(self, function: Callable[[T], object]) -> Callable[[T], None]:
        """Return `function` as a call on the loop: in order, and nobody waits for it."""

        def call(value: T) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody listens any more
                self.loop.call_soon_threadsafe(function, value)

        return call

    def stops_with(self, stop: Callable[[str], object]) -> None:
        """Have `stop` called with the reason when the caller goes, or at once if it has gone."""
        self._stop = stop
        if self._is_gone:
            stop("cancelled")

    def go(self) -> None:
        """Stop the work: nobody waits for it any more."""
        self._is_gone = True
        if self._stop is not None:
            self._stop("cancelled")


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def current_caller() -> Caller | None:
    """Return who awaits the work that runs here; None where it was simply called."""
    return _caller.get()


def awaited(function: Callable[P, T]) -> Callable[P, Coroutine[object, object, T]]:
    """Return the blocking `function` as a coroutine function of the same signature.

    It works in a daemon thread of its own: many at once never wait for the places of the loop's executor.
    """

    @wraps(function)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        caller, context, thread = Caller(asyncio.get_running_loop()), copy_context(), DaemonThreads(1)
        context.run(_caller.set, caller)
        try:
            made: T = await thread.run(lambda: context.run(function, *args, **kwargs))
        except asyncio.CancelledError:
            caller.go()
            raise
        finally:
            thread.close()
        return made

    return twin
