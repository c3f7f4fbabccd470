"""The engine: one event loop in a background thread, and one coroutine per question: answer, then judge."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from .errors import ModelError, RunError, RunStopped
from .intake import take_judgement, take_reply
from .judges.protocol import Judge
from .judges.sentinels import after_sentinel
from .line import Budget, Line, OutOfTime
from .models.importing import error_line
from .models.protocol import Answerer
from .records import Failure, Judgement, Question, QuestionResult, Reply, Usage, Verdict
from .runlog import Key, Row, RunLog, merged, usage_of

T = TypeVar("T")

GRACE_S = 1.0
"""How long requests that are under way may go on after a stop, so that what was paid for arrives."""
_WATCH_S = 0.25
_WAKE_S = 0.02
"""How long the thread that waits sleeps on: what finishes meanwhile is told with it, at one switch of threads."""


class Ask(NamedTuple):
    """One question to be put once; `repeat` counts from 1."""

    question: Question
    repeat: int = 1

    @property
    def key(self) -> Key:
        return self.question.id, self.repeat


class LoopThread:
    """An event loop in a daemon thread: it never keeps the process alive."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="simpleqa-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run `work` on the loop and return what it returns; raise TimeoutError after `timeout` seconds."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def close(self) -> None:
        """Stop the loop and wait a moment for its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(1.0)


class Engine:
    """Asks and judges what it is offered, in order, so many pairs at a time.

    `offer`, `result` and `stop` are called from other threads than the loop's. What is known of a
    question already (`known`: rows of the run log) is not asked again.
    """

    def __init__(
        self,
        answerer: Answerer,
        judge: Judge,
        *,
        concurrency: int,
        timeout: float,
        answer_limit: int | None = None,
        judge_limit: int | None = None,
        log: RunLog | None = None,
        known: Mapping[Key, Row] | None = None,
        watch: Callable[[], str | None] | None = None,
        names: tuple[str, str] = ("the answer model", "the judge"),
    ) -> None:
        self._answerer = answerer
        self._judge = judge
        self._concurrency = concurrency
        self._timeout = timeout
        self._log = log
        self.known: dict[Key, Row] = dict(known or {})
        self._watch = watch
        self._thread = LoopThread()
        self._loop = self._thread.loop
        self._answer_line = Line(names[0], most=concurrency, max_in_flight=answer_limit, on_stop=self._stop_soon)
        self._judge_line = Line(names[1], most=concurrency, max_in_flight=judge_limit, on_stop=self._stop_soon)
        self._queue: deque[Ask] = deque()
        self._hungry = True
        self._in_flight = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished: dict[Key, QuestionResult] = {}
        self._wanted: Key | None = None
        self._wake = threading.Event()
        self._broken: BaseException | None = None
        self.stopped: str | None = None
        """Why nothing new is started any more; None while the run goes on."""
        self.was_told = False
        """Whether the stop came from outside (another process) rather than from what a service said."""
        if watch is not None:
            self._loop.call_soon_threadsafe(self._look)

    # --- called from the thread that waits -------------------------------------------------

    def offer(self, asks: Iterable[Ask]) -> None:
        """Put `asks` behind what is queued; they start as soon as there is room."""
        self._queue.extend(asks)
        if self._hungry and not self.stopped:
            self._hungry = False
            self._loop.call_soon_threadsafe(self._pump)

    def result(self, ask: Ask) -> QuestionResult:
        """Wait for the result of an offered question and hand it over; raise RunStopped if there will be none."""
        key = ask.key
        while True:
            self._wake.clear()
            self._wanted = key
            if key in self._finished:
                self._wanted = None
                return self._finished.pop(key)
            if self._broken is not None:
                raise self._broken
            if self.stopped:
                raise RunStopped(self.stopped)
            self._wake.wait()

    def stop(self, reason: str) -> None:
        """Start nothing new; what is under way may finish within `close`'s grace."""
        if not self.stopped:
            self.stopped = reason
            self._queue.clear()
            self._wake.set()

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
        return self._answer_line.stopped or self._judge_line.stopped

    @property
    def in_flight(self) -> int:
        """Pairs running now."""
        return self._in_flight

    @property
    def limit(self) -> int:
        """Pairs that may run now: the concurrency, or less while a service says slow down."""
        return max(1, min(self._concurrency, int(self._answer_line.limit), int(self._judge_line.limit)))

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
        question, repeat = ask
        row = self.known.get(ask.key)
        if row is not None and row.verdict is not None and (kept := row.result(question, repeat)) is not None:
            self._hand_over(ask, kept)
            return
        budget = Budget(self._timeout)
        reply = row.reply() if row is not None else None
        if reply is None:
            try:
                reply = take_reply(
                    await self._answer_line.attempt(lambda: self._answerer.answer(question, repeat), budget)
                )
            except ModelError as error:
                self._finish(ask, budget, None, Judgement(None, error=_failure(error), calls=error.calls))
                return
            if self._log is not None:
                self._log.answer(question, repeat, reply, budget.spent)
        judging = partial(self._judged, ask)
        self._finish(ask, budget, reply, await after_sentinel(self._judge, ask.key, judging, reply, budget))

    async def _judged(self, ask: Ask, reply: Reply, budget: Budget) -> Judgement:
        if not reply.text.strip():
            return Judgement(Verdict.NOT_ATTEMPTED)
        model = self._judge.model

        async def complete(prompt: Any) -> Reply:
            assert model is not None
            return await self._judge_line.attempt(lambda: model.complete(prompt), budget)

        judging = self._judge.judge(ask.question, reply.text, complete, ask.repeat)
        try:  # a judge with a model spends its time in `complete`, where waiting for a slot is free
            return take_judgement(await (judging if model is not None else budget.run(judging)))
        except ModelError as error:
            return Judgement(None, error=_failure(error), calls=error.calls)
        except OutOfTime:
            return Judgement(None, error=Failure("timeout", f"no verdict within {budget.total:g} s"))
        except Exception as error:  # the user's code
            if isinstance(error, RunStopped) and self._judge_line.stopped:
                raise
            return Judgement(None, error=Failure("exception", error_line(error)))

    def _finish(self, ask: Ask, budget: Budget, reply: Reply | None, judgement: Judgement) -> None:
        spent = usage_of(judgement)
        result = QuestionResult.for_question(
            ask.question,
            ask.repeat,
            predicted=reply.text if reply else None,
            verdict=judgement.verdict,
            judge_reply=judgement.reply,
            error=judgement.error,
            latency_s=round(budget.spent, 4),
            raw=reply.raw if reply else None,
            notes=(*(reply.notes if reply else ()), *judgement.notes),
            answer_usage=usage_of(reply) if reply else spent,
            judge_usage=spent if reply else Usage(),
            extra=merged(reply.extra if reply else None, judgement.extra),
        )
        if self._log is not None:
            self._log.finished(ask.question, result, judgement.extra)
        self._hand_over(ask, result)

    def _hand_over(self, ask: Ask, result: QuestionResult) -> None:
        self._finished[ask.key] = result
        if self._wanted == ask.key:
            self._loop.call_later(_WAKE_S, self._wake.set)

    async def _shut_down(self, grace: float) -> None:
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for model in (self._answerer, self._judge):
            with contextlib.suppress(Exception):  # the user's code; what is finished counts, not how it ends
                async with asyncio.timeout(1.0):
                    await model.close()


def _failure(error: ModelError) -> Failure:
    return Failure(error.kind, error.message)
