"""The line to one connection: its first request alone, retries, pauses, the adaptive limit, and when to give up."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from .errors import ModelError, RunStopped
from .models.importing import error_line, where
from .records import Reply
from .retry import MAX_WAIT_S, Action, action_for, backoff

T = TypeVar("T")

MAX_TRIES = 10
"""The most requests for one reply, whatever the deadline."""
MAX_FAILURES_IN_ROW = 20
"""Replies given up one after the other, with no success between, before the run stops itself."""
_PATIENCE_S = 5.0
"""How long the others wait for what becomes of the first request."""
_SLOW_DOWN = frozenset({429, 503, 529})
_UNWELL = frozenset({"timeout", "connection", "server_error", "unreadable", "empty"})
"""What a service does that is down or no such service at all; `rate_limited` only asks for patience."""
_BURST = 3
"""So many requests to wait, one after the other and no reply between, hold everybody back."""
_STRAY_SHARE = 0.2
"""Up to this share of refusals a service is well: it is asked no less than before."""
_NO_WORD = frozenset({"timeout", "connection"})
_LAST_SHARE = 0.1
"""The share of a question's time that no wait takes: it is left for one more request."""
_LET_GO_S = 0.5
"""How long a call that is cancelled may take to end before it is left behind."""
_STEP_SHARE = 0.1
"""The share of a question's time after which is looked whether the loop keeps up."""
_HELD_UP_S = 0.1
"""A step that takes so much longer tells of the loop, which something holds up, and not of the service."""
_ENOUGH_SHARE = 0.8
"""For so much of a question's time a service may say nothing but 429 before the run stops."""


class OutOfTime(Exception):
    """A question's budget is used up; not TimeoutError, which the code that is called may raise itself."""


class Budget:
    """The seconds that one question may spend on requests and back-off; waiting for a slot is free."""

    __slots__ = ("spent", "total")

    def __init__(self, seconds: float) -> None:
        self.total = seconds
        self.spent = 0.0

    def afresh(self) -> Budget:
        """Return as much time again, none of it spent."""
        return Budget(self.total)

    @property
    def left(self) -> float:
        """Seconds that are left; infinite where there is no deadline."""
        return max(0.0, self.total - self.spent) if self.total else math.inf

    def told(self, left: float) -> str:
        """Return how long was waited where `left` seconds were left at the start."""
        return f"{self.total:g} s" if left > 0.9 * self.total else f"the {left:.1f} s left of {self.total:g}"

    @property
    def room(self) -> float:
        """Seconds that may be waited so that time for one more request is left; negative where it is too late."""
        return self.left - _LAST_SHARE * self.total

    async def run(self, call: Awaitable[T]) -> T:
        """Await `call` on this budget; raise OutOfTime when it is used up, and nothing that would end the loop.

        A call that does not let itself be cancelled is left behind: what comes of it is nobody's. Time in which
        something holds up the loop (code that blocks it) is not counted, but for a step.
        """
        task = asyncio.get_running_loop().create_task(_contained(call))
        step = _STEP_SHARE * self.total or None
        try:
            while True:
                await self._step(task, min(step, self.left) if step else None)
                if task.done():
                    return task.result()
                if self.left <= 0:
                    raise OutOfTime
        finally:
            if not task.done():
                await _let_go(task, call)

    async def _step(self, task: asyncio.Task[Any], seconds: float | None) -> None:
        """Wait for `task` no longer than so many seconds, and count them."""
        began = time.monotonic()
        try:
            await asyncio.wait((task,), timeout=seconds)
        finally:
            took = time.monotonic() - began
            is_held_up = seconds is not None and took > seconds + _HELD_UP_S
            self.spent += seconds if is_held_up and seconds is not None else took

    async def wait(self, seconds: float) -> None:
        """Wait on this budget, which must have the room."""
        await asyncio.sleep(seconds)
        self.spent += seconds


async def _contained(call: Awaitable[T]) -> T:
    """Await `call`, and let nothing out of it that would end the loop."""
    try:
        return await call
    except BaseException as error:
        if isinstance(error, (Exception, GeneratorExit)) or _is_being_cancelled():
            raise
        raise ModelError("exception", f"{error_line(error)}{where(error)}") from error


async def _let_go(task: asyncio.Task[T], call: Awaitable[T]) -> None:
    """Cancel `task` and wait a moment for its end; one that goes on then goes on unheard."""
    task.cancel()
    await asyncio.wait((task,), timeout=_LET_GO_S)
    if task.done() and asyncio.iscoroutine(call):
        call.close()  # a task that is cancelled before its first step never awaits it
    if not task.done():
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # as asyncio does itself for what it gathers
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


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
        self._replies = self._refusals = 0
        """Since the limit was halved: replies, and requests to slow down."""
        self._told_to_wait = 0
        """Replies in a row that named a time to wait."""
        self._not_before = 0.0
        """The service has asked for no request before this time, whoever's it be."""
        self._only_refused_since: float | None = None
        """When it began to say 429 and nothing else; None where its last word was another."""
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
        is_last_chance = False
        while True:
            tries += 1
            async with self._turn(at_once=is_last_chance):
                said = await self._outcome(call, budget, left)
            if isinstance(said, Reply):
                self._worked()
                return replace(said, calls=said.calls + spent) if spent else said
            spent += said.calls
            delay, room = self._delay_after(said, tries), budget.room
            self._hear(said)
            if action_for(said.kind) is not Action.RETRY or tries >= MAX_TRIES or room <= 0:
                message = f"{said.message} ({tries} tries)" if tries > 1 else said.message
                self._give_up(said.kind, message, budget, had_time=2 * left > budget.total)
                raise ModelError(said.kind, message, status=said.status, calls=spent) from None
            is_last_chance = delay > room
            await budget.wait(min(delay, room))

    @asynccontextmanager
    async def _turn(self, *, at_once: bool) -> AsyncIterator[None]:
        """Wait for a slot and the end of a pause, on nobody's time; raise RunStopped where the run has stopped.

        `at_once`: the question's time ends before the pause does, and it has nothing to lose by asking.
        """
        while True:
            async with self._slots or nullcontext():
                if self.stopped is not None:
                    raise RunStopped(self.stopped)
                pause = self._not_before - time.monotonic()
                if at_once or pause <= 0:
                    yield
                    return
            await asyncio.sleep(pause)

    async def _outcome(self, call: Callable[[], Awaitable[Reply]], budget: Budget, left: float) -> Reply | ModelError:
        """Return what one request gave; nothing that it raises comes through, except a cancellation."""
        try:
            return await budget.run(call())
        except OutOfTime:
            return ModelError("timeout", f"no answer within {budget.told(left)}")
        except ModelError as error:
            return error
        except Exception as error:  # user code: a hook, a callable
            return ModelError("exception", f"{error_line(error)}{where(error)}")

    def _delay_after(self, failure: ModelError, tries: int) -> float:
        """Return how long to wait: as long as the service says, longer where it says so again and again."""
        wait = backoff(tries, self._random)
        if failure.retry_after is None:
            return wait
        asked = min(failure.retry_after, MAX_WAIT_S)
        return asked if tries == 1 else max(asked, wait)

    def _hear(self, failure: ModelError) -> None:
        """Take in what a failure says of the service: slow down, wait, or only that it is still there."""
        now = time.monotonic()
        if failure.status in _SLOW_DOWN:
            self._slow_down(now)
        if failure.retry_after is not None and action_for(failure.kind) is Action.RETRY:
            self._told_to_wait += 1
        if self._told_to_wait >= _BURST and failure.retry_after is not None:
            # Several in a row are a burst: nobody asks before it is over. A single one is that question's own.
            self._not_before = max(self._not_before, now + min(failure.retry_after, MAX_WAIT_S))
        if failure.kind == "rate_limited":
            self._only_refused_since = self._only_refused_since or now
        elif failure.kind not in _NO_WORD:
            self._only_refused_since = None

    def _worked(self) -> None:
        self._has_worked = True
        self._failures_in_row = 0
        self._only_refused_since = None
        self._told_to_wait = 0
        self._replies += 1
        if self.limit < self.most:
            self.limit = min(float(self.most), self.limit + 1.0 / self.limit)

    def _slow_down(self, now: float) -> None:
        """Halve the limit, once for a burst of refusals; again only where refusals are more than stray ones."""
        self._refusals += 1
        is_due = not self._halved_at or self._refusals > _STRAY_SHARE * (self._replies + self._refusals)
        if is_due and now - self._halved_at > 1.0:
            self._halved_at, self._replies, self._refusals = now, 0, 0
            self.limit = max(1.0, self.limit / 2)

    def _give_up(self, kind: str, message: str, budget: Budget, *, had_time: bool) -> None:
        """Count a failure, and stop the run where the next request would fare no better.

        A judge that a slow answer has left no time for (not `had_time`) has shown nothing of itself.
        """
        if kind == "rate_limited":
            self._give_up_waiting(message, budget)
            return
        action = action_for(kind)
        is_grave = action is Action.STOP_IF_NOTHING_WORKED or (kind in _UNWELL and had_time)
        self._failures_in_row = self._failures_in_row + 1 if is_grave else 0  # a filtered reply is a reply
        in_row = self._failures_in_row >= MAX_FAILURES_IN_ROW
        if action is Action.STOP or in_row or (is_grave and not self._has_worked):
            tail = f" ({self._failures_in_row} in a row)" if in_row and action is not Action.STOP else ""
            self._stop(message + tail)

    def _give_up_waiting(self, message: str, budget: Budget) -> None:
        """Stop the run where nobody has heard anything but 429 for about as long as a question has."""
        since = self._only_refused_since
        refused_s = time.monotonic() - since if since is not None else 0.0
        if refused_s >= _ENOUGH_SHARE * (budget.total or MAX_WAIT_S):
            self._stop(f"{message}, and nothing else for {refused_s:.0f} s")

    def _stop(self, why: str) -> None:
        self.stopped = f"{self.name}: {why}"
        self._on_stop(self.stopped)
