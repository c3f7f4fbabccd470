"""The `simpleqa` fixture: an item for each row of a dataset, and what a test of the user's does with its question."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import pytest

from .errors import ModelError
from .records import Question, QuestionResult, Reply

if TYPE_CHECKING:  # a session that asks nothing loads nothing of them
    from .stage import Ask

T = TypeVar("T")
Put = Callable[["Ask"], Reply | QuestionResult]
"""Puts a question and waits for what comes of it."""


class KnowsRows(Protocol):
    """What knows the runs of test functions, in a session that asks."""

    def rows_for(self, definition: Any) -> Sequence[Any] | str:
        """Return the rows of a test function as pytest's parameters, or why it has none."""
        ...


PLUGIN = "simpleqa-fixtureruns"
"""The name under which it is registered."""
_NO_MODEL = "no model is named: add --answer-llm=<alias>[:<model>] and --judge-llm"


class SimpleQA:
    """One question in the hands of a test, with the answer model and the judge of the command line."""

    def __init__(self, ask: Ask, put: Put) -> None:
        self.question: Question = ask.question
        self.repeat = ask.repeat
        """Which asking of the question this is, from 1."""
        self.result: QuestionResult | None = None
        """What has been recorded so far: a verdict, a judge failure, or an answer error."""
        self._ask = ask
        self._put = put
        self._reply: Reply | None = None
        self._failed: QuestionResult | None = None
        self._graded: tuple[Reply, QuestionResult] | None = None
        self._told: QuestionResult | None = None
        self._turn = threading.Lock()
        """One at a time, whatever threads and tasks the test has: the second finds what the first has paid for."""

    @property
    def run(self) -> str:
        """The name of the run that the question belongs to."""
        return self._ask.run

    def ask(self) -> str:
        """Return the answer model's answer; asked once, however often this is called.

        An answer error is recorded, and fails the test in one line.
        """
        with self._turn:
            if self._reply is None and self._failed is None:
                given = self._put(self._ask._replace(part="answer"))
                if isinstance(given, Reply):
                    self._reply = given
                else:
                    self._failed = self.result = given
        if self._reply is None:
            assert self._failed is not None
            _fail(self._failed)
        return self._reply.text

    def grade(self, answer: str | Reply) -> QuestionResult:
        """Return the result of `answer`, judged and recorded; what is graded last counts.

        `answer` is a text, whoever has given it, or a Reply, whose tokens and `extra` are then kept. A judge failure
        is recorded, and fails the test in one line. Raises TypeError where `answer` is neither.
        """
        __tracebackhide__ = True  # a mistake in the test is shown at the test's own line
        with self._turn:
            reply = self._reply_of(answer)
            if self._graded is None or self._graded[0] != reply:
                given = self._put(self._ask._replace(part="verdict", reply=reply))
                assert isinstance(given, QuestionResult)
                self._graded = reply, given
            result = self.result = self._graded[1]
        if result.verdict is None:
            _fail(result)
        return result

    async def aask(self) -> str:
        """Do as `ask` does, with the test's event loop free meanwhile."""
        __tracebackhide__ = True
        return await _in_a_thread(self.ask)

    async def agrade(self, answer: str | Reply) -> QuestionResult:
        """Do as `grade` does, with the test's event loop free meanwhile."""
        __tracebackhide__ = True
        self._reply_of(answer)  # told here, and not behind the frames of a thread
        return await _in_a_thread(partial(self.grade, answer))

    def news(self) -> QuestionResult | None:
        """Return what has been recorded since this was last called; None where nothing has."""
        if self.result is self._told:
            return None
        self._told = self.result
        return self.result

    def _reply_of(self, answer: str | Reply) -> Reply:
        from .intake import take_reply

        __tracebackhide__ = True
        if self._reply is not None and answer == self._reply.text:
            return self._reply
        if not isinstance(answer, str | Reply):
            raise TypeError(f"simpleqa.grade: wanted the answer as a text or a Reply: found {type(answer).__name__}")
        reply = Reply(answer, calls=0) if isinstance(answer, str) else answer
        try:
            take_reply(reply)
        except ModelError as error:
            raise TypeError(f"simpleqa.grade: wanted the answer as a text or a Reply: {error.message}") from None
        return reply

    def __repr__(self) -> str:
        return f"<SimpleQA {self.run} {self.question.id}>"


HANDLE: pytest.StashKey[SimpleQA] = pytest.StashKey()
"""Where an item keeps what its test is handed: a rerun of it pays nothing twice."""


def _fail(result: QuestionResult) -> NoReturn:
    from .items import told

    pytest.fail(told(result), pytrace=False)


async def _in_a_thread(work: Callable[[], T]) -> T:
    """Return what `work` does; a task that is cancelled leaves it behind in a thread that keeps no process alive."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # a test that runs on trio, whose threads are daemons
        from anyio import to_thread  # comes with the openai package

        return await to_thread.run_sync(work, abandon_on_cancel=True)
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    work = partial(copy_context().run, work)
    # asyncio's own threads, and anyio's on asyncio, are waited for when the interpreter ends.
    threading.Thread(target=_settle, args=(done, work), name="simpleqa-test", daemon=True).start()
    return await asyncio.wrap_future(done)


def _settle(done: Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as error:  # pytest's own outcomes are no Exception
        done.set_exception(error)
    else:
        done.set_result(result)


def handle_of(request: pytest.FixtureRequest) -> SimpleQA:
    """Return what the test behind `request` is handed."""
    handle: SimpleQA | None = request.node.stash.get(HANDLE, None)
    if handle is None:
        pytest.fail("simpleqa: take it as an argument of the test: each row of the dataset is an item", pytrace=False)
    return handle


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make an item of each row for a test that takes the fixture; one skip where nothing can be asked."""
    if not _is_ours(metafunc):
        return
    rows = _rows_for(metafunc)
    if isinstance(rows, str):
        # pytest < 8.4 cannot leave an id out: drop when 8.4 is the least.
        nothing: Any = getattr(pytest, "HIDDEN_PARAM", "simpleqa")
        rows = [pytest.param(None, marks=pytest.mark.skip(reason=f"simpleqa: {rows}"), id=nothing)]
    metafunc.parametrize("simpleqa", rows, indirect=True)


def _rows_for(metafunc: pytest.Metafunc) -> Sequence[Any] | str:
    """Return the rows of the test as pytest's parameters, or why it has none."""
    runs: KnowsRows | None = metafunc.config.pluginmanager.getplugin(PLUGIN)
    return _NO_MODEL if runs is None else runs.rows_for(metafunc.definition)


def _is_ours(metafunc: pytest.Metafunc) -> bool:
    """Tell whether the test's `simpleqa` is ours, or one of the user's that builds on ours."""
    # pytest has no public look at which fixture a name means: drop when it has.
    for definition in reversed(metafunc._arg2fixturedefs.get("simpleqa", ())):
        if definition.func.__module__ == "pytest_simpleqa.plugin":
            return True
        if "simpleqa" not in definition.argnames:
            return False
    return False
