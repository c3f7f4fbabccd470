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
from .models.importing import error_line, where
from .records import Failure, Judgement, QuestionResult, Reply, Usage, Verdict
from .runlog import Row, merged, paid_for, usage_of
from .stage import Ask, Place, Stage

GRACE_S = 1.0
"""How long requests that are under way may go on after a stop, so that what was paid for arrives."""
ENDED = "the session has ended"
"""Why a closed engine starts nothing."""
_ROLES = ("answer", "judge")
_WATCH_S = 0.25
_WAKE_S = 0.02
"""How long the thread that waits sleeps on: what finishes meanwhile is told with it, at one switch of threads."""


class _Work:
    """One piece of work: what came of it, and who waits for it."""

    __slots__ = ("outcome", "waiting")

    def __init__(self) -> None:
        self.outcome: QuestionResult | Reply | None = None
        self.waiting: list[threading.Event] = []


class Engine:
    """Asks and judges what it is offered, in order, so many pairs at a time.

    `add`, `offer`, `result`, `reply` and `stop` are called from other threads than the loop's, from any number of them.
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
        self._works: dict[Place, _Work] = {}
        """What is offered, until somebody has taken what came of it."""
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
                line = Line(name, most=self._concurrency, max_in_flight=limit, on_stop=self._stop_soon)
                self._lines = {**self._lines, (role, name): line}  # a new one: the loop may be looking at the old

    # --- called from the threads that wait -------------------------------------------------

    def offer(self, asks: Iterable[Ask], *, first: bool = False) -> None:
        """Put `asks` behind what is queued, or `first`, in their order; they start as soon as there is room.

        What has been offered already and not been taken is not asked twice.
        """
        new = [ask for ask in asks if self._is_new(ask)]
        if first:
            self._queue.extendleft(reversed(new))
        else:
            self._queue.extend(new)
        if new and self._hungry and not self.stopped:
            self._hungry = False
            self._loop.call_soon_threadsafe(self._pump)

    def _is_new(self, ask: Ask) -> bool:
        work = _Work()
        return self._works.setdefault(ask.place, work) is work  # of two threads one puts it there

    def result(self, ask: Ask) -> QuestionResult:
        """Wait for the result of an offered question and hand it over; raise RunStopped if there will be none."""
        result = self._wait(ask.place)
        assert isinstance(result, QuestionResult)
        return result

    def reply(self, ask: Ask) -> Reply | QuestionResult:
        """Wait for the answer to an offered question; the result is that of an answer error. Raises RunStopped."""
        return self._wait(ask.place)

    def _wait(self, place: Place) -> QuestionResult | Reply:
        work = self._works[place]
        outcome = work.outcome or self._outcome(work)
        self._works.pop(place, None)
        return outcome

    def _outcome(self, work: _Work) -> QuestionResult | Reply:
        arrived = threading.Event()
        work.waiting.append(arrived)
        try:
            while work.outcome is None:
                if self._broken is not None:
                    raise self._broken
                if self.stopped:
                    raise RunStopped(self.stopped)
                arrived.wait()
                arrived.clear()
            return work.outcome
        finally:
            work.waiting.remove(arrived)

    def stop(self, reason: str) -> None:
        """Start nothing new; what is under way may finish within `close`'s grace."""
        if not self.stopped:
            self.stopped = reason
            self._queue.clear()
            for work in list(self._works.values()):
                self._wake(work)

    def close(self, grace: float = GRACE_S) -> None:
        """Stop, give what is under way `grace` seconds, close models and loop; a second time does nothing."""
        self.stop(ENDED)
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
        return max(1, min((self._concurrency, *(int(line.limit) for line in self._lines.values()))))

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
            async with stage.turns[ask.key]:
                await self._judge_given(ask, stage, row, budget)
            return
        kept = row.result(ask.question, ask.repeat) if row is not None and row.verdict is not None else None
        if kept is not None and ask.part == "pair":
            self._hand_over(ask, kept)
            return
        reply = self._answered(ask, stage, row)[0]
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
            stage.answered.setdefault(ask.key, (reply, budget.spent))
            self._hand_over(ask, reply)
        else:
            judging = partial(self._judged, ask, stage)
            judgement = await after_sentinel(stage.judge, ask.key, judging, reply, budget)
            self._finish(ask, stage, budget.spent, reply, judgement)

    async def _answer(self, ask: Ask, stage: Stage, budget: Budget) -> Reply:
        line = self._lines["answer", stage.names[0]]
        return take_reply(await line.attempt(lambda: stage.answerer.answer(ask.question, ask.repeat), budget))

    @staticmethod
    def _answered(ask: Ask, stage: Stage, row: Row | None) -> tuple[Reply | None, float]:
        """Return the model's own answer, where there is one already, and the seconds that this session spent on it."""
        if (answered := stage.answered.get(ask.key)) is not None:
            return answered
        return row.reply() if row is not None else None, 0.0

    async def _judge_given(self, ask: Ask, stage: Stage, row: Row | None, budget: Budget) -> None:
        """Judge the text that a test has brought, be it the model's answer or another.

        The text that an earlier session has judged last is not judged again; the verdict is written again all the
        same, so that the log ends on what counts, whatever has been judged between.
        """
        assert ask.reply is not None
        answer, spent = self._answered(ask, stage, row)
        is_own = answer is ask.reply  # checked and capped when it came
        reply = ask.reply if is_own else take_reply(ask.reply)
        kept = row.judgement_on(reply.text) if row is not None else None
        if kept is not None:
            judgement, spent = kept
        else:
            judging = partial(self._judged, ask, stage)
            judgement = await after_sentinel(stage.judge, ask.key, judging, reply, budget)
        self._finish(ask, stage, spent + budget.spent, answer, judgement, None if is_own else reply)

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
            return Judgement(None, error=Failure("exception", f"{error_line(error)}{where(error)}"))

    def _finish(
        self,
        ask: Ask,
        stage: Stage,
        spent_s: float,
        answer: Reply | None,
        judgement: Judgement,
        graded: Reply | None = None,
    ) -> None:
        """Write down and hand over what came of a question; `graded` is what was judged in place of the answer."""
        spent, reply = usage_of(judgement), graded or answer
        result = QuestionResult.for_question(
            ask.question,
            ask.repeat,
            predicted=reply.text if reply else None,
            verdict=judgement.verdict,
            judge_reply=judgement.reply,
            error=judgement.error,
            latency_s=round(spent_s, 4),
            raw=reply.raw if reply else None,
            notes=_each_once((*(reply.notes if reply else ()), *judgement.notes)),
            answer_usage=paid_for(answer, graded) if reply else spent,
            judge_usage=spent if reply else Usage(),
            extra=merged(reply.extra if reply else None, judgement.extra),
        )
        if stage.log is not None:
            stage.log.finished(ask.question, result, judgement.extra, graded)
        self._hand_over(ask, result)

    def _hand_over(self, ask: Ask, result: QuestionResult | Reply) -> None:
        work = self._works[ask.place]
        work.outcome = result
        if work.waiting:
            self._loop.call_later(_WAKE_S, self._wake, work)

    @staticmethod
    def _wake(work: _Work) -> None:
        for arrived in list(work.waiting):
            arrived.set()

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


def _each_once(notes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the notes, none of them twice: a verdict that is kept has those of its answer, too."""
    return tuple(dict.fromkeys(notes)) if notes else notes


def _failure(error: ModelError) -> Failure:
    return Failure(error.kind, error.message)
