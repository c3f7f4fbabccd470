"""The line to one connection: its first request alone, retries, the adaptive limit, and when to give up."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

from .errors import ModelError, RunStopped
from .models.importing import error_line
from .records import Reply
from .retry import Action, action_for, backoff

T = TypeVar("T")

MAX_TRIES = 10
"""The most requests for one reply, whatever the deadline."""
MAX_FAILURES_IN_ROW = 20
"""Replies given up one after the other, with no success between, before the run stops itself."""
_PATIENCE_S = 5.0
"""How long the others wait for what becomes of the first request."""
_SLOW_DOWN = frozenset({429, 503, 529})
_UNREACHABLE = frozenset({"timeout", "connection", "server_error", "rate_limited"})


class OutOfTime(Exception):
    """A question's budget is used up; not TimeoutError, which the code that is called may raise itself."""


class Budget:
    """The seconds that one question may spend on requests and back-off; waiting for a slot is free."""

    __slots__ = ("spent", "total")

    def __init__(self, seconds: float) -> None:
        self.total = seconds
        self.spent = 0.0

    @property
    def left(self) -> float:
        """Seconds that are left; infinite where there is no deadline."""
        return max(0.0, self.total - self.spent) if self.total else math.inf

    def told(self, left: float) -> str:
        """Return how long was waited where `left` seconds were left at the start."""
        return f"{self.total:g} s" if left > 0.9 * self.total else f"the {left:.1f} s left of {self.total:g}"

    def covers(self, seconds: float) -> bool:
        """Tell whether `seconds` of waiting would still leave time for a request."""
        return seconds < self.left

    async def run(self, call: Awaitable[T]) -> T:
        """Await `call` on this budget; raise OutOfTime when it is used up, and nothing that would end the loop."""
        began = time.monotonic()
        deadline = asyncio.timeout(self.left if self.total else None)
        try:
            async with deadline:
                return await call
        except TimeoutError:
            if deadline.expired():
                raise OutOfTime from None
            raise
        except BaseException as error:
            if isinstance(error, (Exception, GeneratorExit)) or _is_being_cancelled():
                raise
            raise ModelError("exception", error_line(error)) from error
        finally:
            self.spent += time.monotonic() - began

    async def wait(self, seconds: float) -> None:
        """Wait on this budget, which must cover it."""
        await asyncio.sleep(seconds)
        self.spent += seconds


def _is_being_cancelled() -> bool:
    """Tell whether somebody cancels this task, rather than the code that it calls having been cancelled."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class Line:
    """All requests to one connection go through here; the one retry owner of the run.

    `on_stop` is called with one line of text when the run must not go on.
    """

    def __init__(
        self,
        name: str,
        *,
        most: int,
        max_in_flight: int | None = None,
        on_stop: Callable[[str], None],
        random: Random | None = None,
    ) -> None:
        self.name = name
        self.most = most
        self.limit = float(most)
        """How many pairs may be in flight now: halved when the service says slow down, up by one a round."""
        self._slots = asyncio.Semaphore(max_in_flight) if max_in_flight else None
        self._on_stop = on_stop
        self._random = random or Random()
        self._opened = False
        self._probe: asyncio.Future[None] | None = None
        self._has_worked = False
        self._failures_in_row = 0
        self._halved_at = 0.0
        self.stopped: str | None = None

    async def attempt(self, call: Callable[[], Awaitable[Reply]], budget: Budget) -> Reply:
        """Return the reply to `call`, tried again while that helps; raise ModelError or RunStopped."""
        while not self._opened:
            if self._probe is None:
                return await self._open(call, budget)
            answered, _ = await asyncio.wait({self._probe}, timeout=_PATIENCE_S)
            if not answered:  # one request that hangs must not hold up a service that is well
                self._opened = True
        return await self._try(call, budget)

    async def _open(self, call: Callable[[], Awaitable[Reply]], budget: Budget) -> Reply:
        """Send the first request; whoever else wants to ask waits for what becomes of it."""
        self._probe = asyncio.get_running_loop().create_future()
        try:
            return await self._try(call, budget)
        finally:
            self._opened = True
            self._probe.set_result(None)

    async def _try(self, call: Callable[[], Awaitable[Reply]], budget: Budget) -> Reply:
        tries = spent = 0
        left = budget.left
        while True:
            if self.stopped is not None:
                raise RunStopped(self.stopped)
            tries += 1
            try:
                if self._slots is None:
                    reply = await budget.run(call())
                else:
                    async with self._slots:
                        reply = await budget.run(call())
            except OutOfTime:
                failure = ModelError("timeout", f"no answer within {budget.told(left)}")
            except ModelError as error:
                failure = error
            except Exception as error:  # user code: a hook, a callable
                failure = ModelError("exception", error_line(error))
            else:
                self._worked()
                return replace(reply, calls=reply.calls + spent) if spent else reply
            spent += failure.calls
            if failure.status in _SLOW_DOWN:
                self._slow_down()
            delay = backoff(tries, self._random) if failure.retry_after is None else failure.retry_after
            if action_for(failure.kind) is not Action.RETRY or tries >= MAX_TRIES or not budget.covers(delay):
                message = f"{failure.message} ({tries} tries)" if tries > 1 else failure.message
                self._give_up(failure.kind, message, had_time=2 * left > budget.total)
                raise ModelError(failure.kind, message, status=failure.status, calls=spent) from None
            await budget.wait(delay)

    def _worked(self) -> None:
        self._has_worked = True
        self._failures_in_row = 0
        if self.limit < self.most:
            self.limit = min(float(self.most), self.limit + 1.0 / self.limit)

    def _slow_down(self) -> None:
        """Halve the limit, once for a burst of refusals rather than once for each."""
        now = time.monotonic()
        if now - self._halved_at > 1.0:
            self._halved_at = now
            self.limit = max(1.0, self.limit / 2)

    def _give_up(self, kind: str, message: str, *, had_time: bool) -> None:
        """Count a failure, and stop the run where the next request would fare no better.

        A judge that a slow answer has left no time for (not `had_time`) has shown nothing of itself.
        """
        action = action_for(kind)
        is_grave = action is Action.STOP_IF_NOTHING_WORKED or (kind in _UNREACHABLE and had_time)
        self._failures_in_row = self._failures_in_row + 1 if is_grave else 0  # a filtered reply is a reply
        in_row = self._failures_in_row >= MAX_FAILURES_IN_ROW
        if action is Action.STOP or in_row or (is_grave and not self._has_worked):
            tail = f" ({self._failures_in_row} in a row)" if in_row and action is not Action.STOP else ""
            self.stopped = f"{self.name}: {message}{tail}"
            self._on_stop(self.stopped)
