"""The look-ahead: which questions are asked before pytest reaches them, and the stages that answer them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from .cast import Cast
from .engine import Engine
from .fixtureruns import FixtureRuns, ahead_of
from .items import QuestionItem
from .machines import Link
from .plan import Plan, Planned
from .rundisk import DEAD_FILE, SUSPECTS_FILE, results_files
from .runlog import Log, RunLog, read_rows
from .seat import ANY_TEST, Seat, watch_of, window
from .stage import Ask, Stage

Upcoming = Callable[[], pytest.Item | None]
"""Gives the item that this process reaches next and that it has not given yet; None where it knows none now."""


class LookAhead:
    """Keeps the engine of this process filled with what comes next."""

    def __init__(
        self,
        config: pytest.Config,
        runs: Planned,
        in_tests: FixtureRuns,
        seat: Callable[[], Seat],
        cast: Callable[[Plan], Cast],
        upcoming: Callable[[pytest.Session], Upcoming] | None = None,
    ) -> None:
        self._config = config
        self._plans = runs.plans
        self._in_tests = in_tests
        self._seat = cache(seat)
        self._cast = cast
        self._upcoming = upcoming or _rest_of_session
        self._ahead: Upcoming | None = None
        self._lock = threading.RLock()
        """Tests may ask in threads of their own, and threads that are given up go on behind the next test."""
        self.engine: Engine | None = None
        """None before the first question is reached: nothing is built while collecting."""
        self._stages: dict[str, Stage] = {}
        self._window = 0
        self._offered: set[str] = set()
        self._begun: set[str] = set()
        """Items that pytest has come to: none of them is asked ahead any more."""
        self._ahead_now = 0
        """Items that have been offered and that pytest has not come to."""
        self._sizes = 0, 0
        self._suspects: frozenset[str] = frozenset()
        self._signals: Path | None = None
        self._link: Link | None = None

    @property
    def limit(self) -> int:
        """Pairs that may be in flight now; 0 before the first question."""
        return self.engine.limit if self.engine is not None else 0

    def reach(self, item: pytest.Item, ask: Ask) -> Engine:
        """Have `ask` asked, now that pytest has reached its item, and what comes behind it; return who answers it."""
        with self._lock:
            engine = self.engine or self._open(item.session)
            self._top_up(engine, item, ask)
        return engine

    def put(self, item: pytest.Item, ask: Ask) -> Engine:
        """Have asked what a test puts, unless that has happened ahead; return who answers it."""
        with self._lock:
            engine = self.engine or self._open(item.session)
            if ahead_of(item) == ask:
                self._top_up(engine, item, ask)
            else:
                self._recall_dead()
                self._stage_of(ask.run)
                engine.offer([ask], first=True)  # the test waits for it, nobody yet for what was asked ahead
        return engine

    def pass_by(self, item: pytest.Item) -> None:
        """Take in that pytest has come to an item, whether it asks or not; a second time does nothing."""
        with self._lock:
            if item.nodeid not in self._begun:
                self._begun.add(item.nodeid)
                self._ahead_now -= item.nodeid in self._offered

    def send(self) -> None:
        """Bring what has been written to the controller, where that is on another machine."""
        if self._link is not None:
            self._link.send()

    def close(self) -> None:
        """Stop asking; a second time does nothing."""
        if self.engine is not None:
            self.engine.close()
        for stage in list(self._stages.values()):
            if stage.log is not None:
                stage.log.close()

    def _open(self, session: pytest.Session) -> Engine:
        seat = self._seat()
        self._signals, self._link = seat.signals, seat.link
        self._stages = {plan.name: self._stage(plan, seat) for plan in self._plans}
        self.engine = Engine(self._stages, concurrency=seat.concurrency, watch=watch_of(seat))
        self._window = window(seat.concurrency, self._config)
        self._ahead = self._upcoming(session)
        return self.engine

    def _stage_of(self, run: str) -> Stage:
        """Return the stage of a run; that of a test function's is made when its first question is put."""
        if run not in self._stages:
            assert self.engine is not None
            stage = self._stage(self._in_tests.plan(run), self._seat())
            self.engine.add(run, stage)
            self._stages[run] = stage
        return self._stages[run]

    def _stage(self, plan: Plan, seat: Seat) -> Stage:
        """Return where a run's questions are answered and judged, with what an earlier session has left of it."""
        cast, options, run_dir = self._cast(plan), plan.options, seat.run_dirs.get(plan.name)
        assert cast.answerer is not None
        assert cast.judge is not None
        log: Log | None = None
        if run_dir is not None:
            log = RunLog(run_dir / seat.results_name)
        elif seat.link is not None:
            log = seat.link.log(plan.name)
        known = read_rows(results_files(run_dir))[0] if run_dir is not None else {}
        return Stage(
            cast.answerer,
            cast.judge,
            options.timeout,
            (options.answer_llm or "", options.judge_llm or ""),
            *seat.limits.get(ANY_TEST if plan.in_tests else plan.name, (None, None)),
            log=log,
            known=known,
        )

    def _top_up(self, engine: Engine, item: pytest.Item, ask: Ask) -> None:
        """Offer `item` itself where that has not happened, and what comes behind it as far as the window goes."""
        self.pass_by(item)
        is_new = item.nodeid not in self._offered
        self._offered.add(item.nodeid)
        room = self._window - self._ahead_now
        batch = []
        if is_new or room > self._window // 8:  # in batches: a look at an xdist queue costs its length
            self._recall_dead()
            batch = list(self._next(room))
        for run in {ask.run, *(each.run for each in batch)}:
            self._stage_of(run)
        engine.offer([ask], first=True)  # pytest waits for it now; where it was asked ahead, nothing is added
        if batch:
            engine.offer(batch)

    def _next(self, count: int) -> Iterator[Ask]:
        assert self._ahead is not None
        while count > 0 and (item := self._ahead()) is not None:
            if any(item.nodeid in known for known in (self._begun, self._offered, self._suspects)):
                continue
            ask = item.ask if isinstance(item, QuestionItem) else ahead_of(item)
            if ask is not None and not _may_be_skipped(item):
                self._offered.add(item.nodeid)
                self._ahead_now += 1
                count -= 1
                yield ask

    def _recall_dead(self) -> None:
        """Learn what a worker that has died had written (it is not asked for again), and what may have killed it."""
        if self._link is not None:
            self._suspects = self._link.suspects
            for run, rows in self._link.heard_rows():
                self._stage_of(run).known.update(rows)
        if self._signals is None:
            return
        dead, suspects = self._signals / DEAD_FILE, self._signals / SUSPECTS_FILE
        sizes = _size(dead), _size(suspects)
        if sizes != self._sizes:
            self._sizes = sizes
            for stage in self._stages.values():
                if isinstance(stage.log, RunLog):
                    rows, _ = read_rows(results_files(stage.log.path.parent))
                    stage.known.update(rows)
            self._suspects = frozenset(_lines(suspects))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _rest_of_session(session: pytest.Session) -> Upcoming:
    """Give the items in the order in which pytest runs them."""
    items = iter(session.items)
    return lambda: next(items, None)


def _may_be_skipped(item: pytest.Item) -> bool:
    """Tell whether a mark on the item may keep it from running: then it is asked only when it is reached."""
    if isinstance(item, QuestionItem) and len(item.own_markers) == 1:
        return False
    marks = list(item.iter_markers())
    is_not_run = any(mark.name == "xfail" and not mark.kwargs.get("run", True) for mark in marks)
    return is_not_run or any(mark.name in ("skip", "skipif") for mark in marks)
