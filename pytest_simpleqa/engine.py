"""The engine: one coroutine per question on one event loop: answer, then judge."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from .errors import ModelError, RunError, RunStopped
from .intake import take_judgement, take_reply
from .judges.sentinels import after_sentinel
from .line import Budget, Line, OutOfTime
from .loopthread import LoopThread
from .models.importing import error_line
from .records import Failure, Judgement, QuestionResult, Reply, Usage, Verdict
from .runlog import Row, merged, usage_of
from .stage import Ask, Place, Stage

GRACE_S = 1.0
"""How long requests that are under way may go on after a stop, so that what was paid for arrives."""
_ROLES = ("answer", "judge")
_WATCH_S = 0.25
_WAKE_S = 0.02
"""How long the thread that waits sleeps on: what finishes meanwhile is told with it, at one switch of threads."""


class Engine:
    """Asks and judges what it is offered, in order, so many pairs at a time.

    `offer`, `result` and `stop` are called from other threads than the loop's.
    """

    def __init__(
        self, stages: Mapping[str, Stage], *, concurrency: int, watch: Callable[[], str | None] | None = None
    ) -> None:
        self._concurrency = concurrency
        self._watch = watch
        self._thread = LoopThread()
        self._loop = self._thread.loop
        self._lines: dict[tuple[str, str], Line] = {}
        self._stages: dict[str, Stage] = {}
        for run, stage in stages.items():
            self.add(run, stage)
        self._queue: deque[Ask] = deque()
        self._hungry = True
        self._in_flight = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished: dict[Place, QuestionResult | Reply] = {}
        self._waiting: dict[Place, threading.Event] = {}
        self._broken: BaseException | None = None
        self.stopped: str | None = None
        """Why nothing new is started any more; None while the run goes on."""
        self.was_told = False
        """Whether the stop came from outside (another process) rather than from what a service said."""
        if watch is not None:
            self._loop.call_soon_threadsafe(self._look)

    def add(self, run: str, stage: Stage) -> None:
        """Let asks of `run` be answered and judged on `stage`; before the first of them is offered."""
        self._stages[run] = stage
        for role, limit in zip(_ROLES, (stage.answer_limit, stage.judge_limit), strict=True):
            name = stage.names[_ROLES.index(role)]
            if (role, name) not in self._lines:
                self._lines[role, name] = Line(
                    name, most=self._concurrency, max_in_flight=limit, on_stop=self._stop_soon
                )

    # --- called from the threads that wait -------------------------------------------------

    def offer(self, asks: Iterable[Ask]) -> None:
        """Put `asks` behind what is queued; they start as soon as there is room."""
        self._queue.extend(asks)
        if self._hungry and not self.stopped:
            self._hungry = False
            self._loop.call_soon_threadsafe(self._pump)

    def result(self, ask: Ask) -> QuestionResult:
        """Wait for the result of an offered question and hand it over; raise RunStopped if there will be none."""
        result = self._wait(ask.place)
        assert isinstance(result, QuestionResult)
        return result

    def reply(self, ask: Ask) -> Reply | QuestionResult:
        """Wait for the answer to an offered question; the result is that of an answer error. Raises RunStopped."""
        return self._wait(ask.place)

    def _wait(self, place: Place) -> QuestionResult | Reply:
        arrived = self._waiting[place] = threading.Event()
        try:
            while place not in self._finished:
                if self._broken is not None:
                    raise self._broken
                if self.stopped:
                    raise RunStopped(self.stopped)
                arrived.wait()
                arrived.clear()
            return self._finished.pop(place)
        finally:
            self._waiting.pop(place, None)

    def stop(self, reason: str) -> None:
        """Start nothing new; what is under way may finish within `close`'s grace."""
        if not self.stopped:
            self.stopped = reason
            self._queue.clear()
            for arrived in list(self._waiting.values()):
                arrived.set()

    def close(self, grace: float = GRACE_S) -> None:
        """Stop, give what is under way `grace` seconds, close models and loop; a second time does nothing."""
        self.stop("the session has ended")
        if self._loop.is_closed() or not self._loop.is_running():
            return
        with contextlib.suppress(TimeoutError):  # a model that will not let go: the thread is a daemon
            self._thread.run(self._shut_down(grace), timeout=grace + 3.0)
        self._thread.close()

    @property
    def gave_up(self) -> str | None:
        """Why a service can be asked no more; None where none has refused."""
        return next((line.stopped for line in self._lines.values() if line.stopped), None)

    @property
    def in_flight(self) -> int:
        """Pairs running now."""
        return self._in_flight

    @property
    def limit(self) -> int:
        """Pairs that may run now: the concurrency, or less while a service says slow down."""
        return max(1, min(self._concurrency, *(int(line.limit) for line in self._lines.values())))

    # --- on the loop -----------------------------------------------------------------------

    def _pump(self) -> None:
        while self._in_flight < self.limit and not self.stopped:
            try:
                ask = self._queue.popleft()
            except IndexError:
                self._hungry = True
                if not self._queue:
                    return
                self._hungry = False  # something was offered between the look and the flag
                continue
            self._in_flight += 1
            task = self._loop.create_task(self._pair(ask))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._in_flight -= 1
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, RunStopped):
            self._broken = error
            self.stop(str(error) if isinstance(error, RunError) else f"{type(error).__name__}: {error}")
        self._pump()

    def _stop_soon(self, reason: str) -> None:
        """Stop after the row that caused it has its error recorded."""
        self._loop.call_soon(self.stop, reason)

    def _look(self) -> None:
        assert self._watch is not None
        if reason := self._watch():
            self.was_told = not self.stopped
            self.stop(reason)
        else:
            self._loop.call_later(_WATCH_S, self._look)

    async def _pair(self, ask: Ask) -> None:
        stage = self._stages[ask.run]
        budget = Budget(stage.timeout)
        row = stage.known.get(ask.key)
        if ask.part == "verdict":
            await self._judge_given(ask, stage, row, budget)
            return
        kept = row.result(ask.question, ask.repeat) if row is not None and row.verdict is not None else None
        if kept is not None and ask.part == "pair":
            self._hand_over(ask, kept)
            return
        reply = row.reply() if row is not None else None
        if reply is None:
            try:
                reply = await self._answer(ask, stage, budget)
            except ModelError as error:
                failed = Judgement(None, error=_failure(error), calls=error.calls)
                self._finish(ask, stage, budget.spent, None, failed)
                return
            if stage.log is not None:
                stage.log.answer(ask.question, ask.repeat, reply, budget.spent)
        if ask.part == "answer":
            stage.answered[ask.key] = reply, budget.spent
            self._hand_over(ask, reply)
        else:
            judging = partial(self._judged, ask, stage)
            judgement = await after_sentinel(stage.judge, ask.key, judging, reply, budget)
            self._finish(ask, stage, budget.spent, reply, judgement)

    async def _answer(self, ask: Ask, stage: Stage, budget: Budget) -> Reply:
        line = self._lines["answer", stage.names[0]]
        return take_reply(await line.attempt(lambda: stage.answerer.answer(ask.question, ask.repeat), budget))

    async def _judge_given(self, ask: Ask, stage: Stage, row: Row | None, budget: Budget) -> None:
        """Judge an answer that somebody else has; one that was judged in an earlier session is not judged again."""
        assert ask.reply is not None
        kept = row.result(ask.question, ask.repeat) if row is not None and row.verdict is not None else None
        if kept is not None and kept.predicted == ask.reply.text:
            self._hand_over(ask, kept)
            return
        reply = take_reply(ask.reply)
        answered, spent = stage.answered.get(ask.key, (None, 0.0))
        if answered is not ask.reply:
            spent = 0.0
            if stage.log is not None:
                stage.log.answer(ask.question, ask.repeat, reply, spent)
        judging = partial(self._judged, ask, stage)
        judgement = await after_sentinel(stage.judge, ask.key, judging, reply, budget)
        self._finish(ask, stage, spent + budget.spent, reply, judgement)

    async def _judged(self, ask: Ask, stage: Stage, reply: Reply, budget: Budget) -> Judgement:
        if not reply.text.strip():
            return Judgement(Verdict.NOT_ATTEMPTED)
        model, line = stage.judge.model, self._lines["judge", stage.names[1]]

        async def complete(prompt: Any) -> Reply:
            assert model is not None
            return await line.attempt(lambda: model.complete(prompt), budget)

        judging = stage.judge.judge(ask.question, reply.text, complete, ask.repeat)
        try:  # a judge with a model spends its time in `complete`, where waiting for a slot is free
            return take_judgement(await (judging if model is not None else budget.run(judging)))
        except ModelError as error:
            return Judgement(None, error=_failure(error), calls=error.calls)
        except OutOfTime:
            return Judgement(None, error=Failure("timeout", f"no verdict within {budget.total:g} s"))
        except Exception as error:  # the user's code
            if isinstance(error, RunStopped) and line.stopped:
                raise
            return Judgement(None, error=Failure("exception", error_line(error)))

    def _finish(self, ask: Ask, stage: Stage, spent_s: float, reply: Reply | None, judgement: Judgement) -> None:
        spent = usage_of(judgement)
        result = QuestionResult.for_question(
            ask.question,
            ask.repeat,
            predicted=reply.text if reply else None,
            verdict=judgement.verdict,
            judge_reply=judgement.reply,
            error=judgement.error,
            latency_s=round(spent_s, 4),
            raw=reply.raw if reply else None,
            notes=(*(reply.notes if reply else ()), *judgement.notes),
            answer_usage=usage_of(reply) if reply else spent,
            judge_usage=spent if reply else Usage(),
            extra=merged(reply.extra if reply else None, judgement.extra),
        )
        if stage.log is not None:
            stage.log.finished(ask.question, result, judgement.extra)
        self._hand_over(ask, result)

    def _hand_over(self, ask: Ask, result: QuestionResult | Reply) -> None:
        self._finished[ask.place] = result
        if (arrived := self._waiting.get(ask.place)) is not None:
            self._loop.call_later(_WAKE_S, arrived.set)

    async def _shut_down(self, grace: float) -> None:
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for model in {
            id(model): model for stage in self._stages.values() for model in (stage.answerer, stage.judge)
        }.values():
            with contextlib.suppress(Exception):  # the user's code; what is finished counts, not how it ends
                async with asyncio.timeout(1.0):
                    await model.close()


def _failure(error: ModelError) -> Failure:
    return Failure(error.kind, error.message)
