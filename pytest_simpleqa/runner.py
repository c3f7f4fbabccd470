"""The process that answers: collects the questions, asks ahead, and hands each item its own result."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from .cast import Cast
from .engine import Ask, Engine, Stage
from .errors import RunStopped, SimpleQAError
from .fixtureruns import FixtureRuns, ahead_of
from .fixtures import HANDLE
from .fixtures import PLUGIN as FIXTURE_RUNS
from .items import QuestionCollector, QuestionItem, RefusedCollector, wants_failed_of_none
from .machines import Link
from .models.embedded import Embedded
from .models.spec import split_spec, split_specs
from .options import Options
from .payload import Payload
from .plan import Plan, Planned
from .protocol import PlainProtocol, is_plain
from .records import QuestionResult, Reply
from .runlog import DEAD_FILE, STOP_FILE, SUSPECTS_FILE, Log, RunLog, read_rows, results_files
from .surroundings import start_servers

LOOK_AHEAD = 8
"""Questions started and not yet reached, as a multiple of the pairs in flight: a slow answer must not hold the line."""
LEAST_LOOK_AHEAD = 256
_COLLECT_EVERY = 50_000
"""New objects between two collections while questions run: what hundreds of requests hold is garbage of no cycle."""

Upcoming = Callable[[], pytest.Item | None]
"""Gives the item that this process reaches next and that it has not given yet; None where it knows none now."""
ANY_TEST = ""
"""Stands for the run of any test function, where limits are shared out before these are known."""


@dataclass(frozen=True)
class Seat:
    """This process's part of the session."""

    concurrency: int
    """Pairs in flight here."""
    limits: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    """By run: requests at once to the answer model and to the judge from here; None where one sets no bound."""
    run_dirs: Mapping[str, Path] = field(default_factory=dict)
    """By run; empty on another machine."""
    results_name: str = "results.jsonl"
    signals: Path | None = None
    """The folder in which the controller tells its workers of a stop and of each other's death."""
    parent_pid: int | None = None
    """The controller; a worker that has lost it starts nothing new."""
    link: Link | None = None
    """On another machine than the controller: what stands in for the directories and the folder."""


def window(concurrency: int, config: pytest.Config) -> int:
    """Return how many questions may be started before pytest reaches them.

    No further than what is in flight where a failure ends the session, not at all under a debugger.
    """
    option = config.option
    if option.usepdb or getattr(option, "trace", False):
        return 0
    if option.maxfail or getattr(option, "stepwise", False):
        return concurrency
    return max(LEAST_LOOK_AHEAD, LOOK_AHEAD * concurrency)


class Runner:
    """Registered in each process that answers."""

    def __init__(
        self,
        config: pytest.Config,
        options: Options,
        runs: Planned,
        in_tests: FixtureRuns,
        seat: Callable[[], Seat],
        cast: Callable[[Plan], Cast],
        embedded: Embedded,
        upcoming: Callable[[pytest.Session], Upcoming] | None = None,
    ) -> None:
        self._config = config
        self._options = options
        self._runs = runs
        self._plans = runs.plans
        self._seat = cache(seat)
        self._cast = cast
        self._embedded = embedded
        self._upcoming = upcoming or _rest_of_session
        self._ahead: Upcoming | None = None
        self._engine: Engine | None = None
        self._stages: dict[str, Stage] = {}
        self._window = 0
        self._offered: set[str] = set()
        self._reached = 0
        self._sizes = 0, 0
        self._suspects: frozenset[str] = frozenset()
        self._signals: Path | None = None
        self._link: Link | None = None
        self._thresholds = gc.get_threshold()
        self._in_tests = in_tests
        in_tests.put = self.put
        config.pluginmanager.register(in_tests, FIXTURE_RUNS)

    # --- collection ------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if isinstance(collector, pytest.Session) and report.outcome == "passed":
            report.result += [QuestionCollector.make(collector, plan, self.answer) for plan in self._plans]
            if refused := self._runs.refused:
                report.result.append(
                    RefusedCollector.from_parent(collector, name="evals", nodeid="evals", refused=refused)
                )
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Select no question under --lf and --ff where none has failed: they never pay for everything again."""
        mine = [item for item in items if isinstance(item, QuestionItem)]
        if mine and wants_failed_of_none(config, (item.nodeid for item in mine)):
            items[:] = [item for item in items if not isinstance(item, QuestionItem)]
            config.hook.pytest_deselected(items=mine)

    # --- running ---------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start the embedded server, where the run needs one, before any item waits for it."""
        option = self._config.option
        if option.collectonly or option.setuponly or option.setupplan:
            return
        if any(HANDLE in item.stash for item in session.items):
            start_servers(self._embedded)
        if any(isinstance(item, QuestionItem) for item in session.items):
            start_servers(self._embedded)
            gc.freeze()  # thousands of items that live to the end: no collection need walk them
            gc.set_threshold(_COLLECT_EVERY, *gc.get_threshold()[1:])

    def answer(self, item: QuestionItem) -> QuestionResult:
        """Return the result of `item`, asked now or asked already; keep the look-ahead filled."""
        if item.result is not None:  # a rerun of the item: nothing is paid twice
            return item.result
        with self._skipping(item.session):
            engine = self._engine or self._open(item.session)
            self._reached += 1
            self._top_up(engine, item, item.ask)
            result = engine.result(item.ask)
            if self._link is not None:
                self._link.send()
            return result

    def put(self, item: pytest.Item, ask: Ask) -> Reply | QuestionResult:
        """Return what comes of a question that a test puts; what has been asked ahead is there already."""
        with self._skipping(item.session):
            engine = self._engine or self._open(item.session)
            if ahead_of(item) == ask:
                self._reached += item.nodeid not in self._offered
                self._top_up(engine, item, ask)
            else:
                self._recall_dead()
                self._stage_of(ask.run)
                engine.offer([ask])
            return engine.reply(ask)

    @contextlib.contextmanager
    def _skipping(self, session: pytest.Session) -> Iterator[None]:
        """Skip the item where its question is not asked any more, and let the session end then."""
        try:
            yield
        except RunStopped as stop:
            pytest.skip(f"not asked: {stop}")
        except SimpleQAError as error:  # a disk that is full, once for the whole run
            session.shouldfail = session.shouldfail or str(error)
            pytest.skip(f"not asked: {error}")
        finally:
            self._pass_on_stop(session)

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, QuestionItem):
            self._reached += item.nodeid in self._offered  # asked ahead, whether its test asks or not
            return None
        if self._plainly is None or len(item.own_markers) > 1:
            return None
        self._plainly.run(item, nextitem)
        return True

    @cached_property
    def _plainly(self) -> PlainProtocol | None:
        """How items are run that need no more than asking; user code that answers has its prints captured by pytest."""
        options = self._options
        specs = (*split_specs(options.answer_llm or ""), options.judge_llm or "")
        aliases = {split_spec(spec)[0] for spec in specs}
        has_own_models = bool(self._config.hook.pytest_simpleqa_model.get_hookimpls())
        if has_own_models or aliases & {"python", "hook"} or not is_plain(self._config):
            return None
        return PlainProtocol(self._config)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call" and isinstance(item, QuestionItem) and item.result is not None:
            item.mark_report(report)
            self._attach(report, item.ask.run, item.result)
        elif (handle := item.stash.get(HANDLE, None)) is not None and (result := handle.news()) is not None:
            if self._link is not None:
                self._link.send()
            self._attach(report, handle.run, result)
        return report

    def _attach(self, report: pytest.TestReport, run: str, result: QuestionResult) -> None:
        """Let the report carry a result to the process that reports."""
        payload = Payload(run, result, self._engine.limit if self._engine else 0)
        # Extra attributes travel.
        report.simpleqa = payload.packed() if self._is_worker else payload  # type: ignore[attr-defined]

    @property
    def _is_worker(self) -> bool:
        return hasattr(self._config, "workerinput")

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_runtest_metadata(self, item: pytest.Item, call: pytest.CallInfo[None]) -> dict[str, Any] | None:
        result = item.result if isinstance(item, QuestionItem) else _result_in_test(item)
        if call.when != "call" or result is None:
            return None
        # Plain types only: this too crosses the process.
        return {"simpleqa": {"verdict": result.verdict and result.verdict.value, "status": result.status}}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.close()
        if all(isinstance(item, QuestionItem) for item in getattr(session, "items", ())):
            gc.freeze()  # pytest collects five times now, for ordinary tests that leak: there were none

    def pytest_unconfigure(self) -> None:
        self.close()

    def close(self) -> None:
        """Stop asking and give everything back; a second time does nothing."""
        if self._engine is not None:
            self._engine.close()
        for stage in self._stages.values():
            if stage.log is not None:
                stage.log.close()
        self._embedded.stop()
        gc.set_threshold(*self._thresholds)

    # --- look-ahead ------------------------------------------------------------------------

    def _open(self, session: pytest.Session) -> Engine:
        """Open the engine at the first question that is reached: nothing is built while collecting."""
        seat = self._seat()
        self._signals, self._link = seat.signals, seat.link
        self._stages = {plan.name: self._stage(plan, seat) for plan in self._plans}
        self._engine = Engine(self._stages, concurrency=seat.concurrency, watch=_watch(seat))
        self._window = window(seat.concurrency, self._config)
        self._ahead = self._upcoming(session)
        return self._engine

    def _stage_of(self, run: str) -> Stage:
        """Return the stage of a run; that of a test function's is made when its first question is put."""
        if run not in self._stages:
            assert self._engine is not None
            self._stages[run] = self._stage(self._in_tests.plan(run), self._seat())
            self._engine.add(run, self._stages[run])
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
        batch = []
        if item.nodeid not in self._offered:
            self._offered.add(item.nodeid)
            batch.append(ask)
        room = self._window - (len(self._offered) - self._reached)
        if room > self._window // 8 or batch:  # in batches: a look at an xdist queue costs its length
            self._recall_dead()
            batch += self._next(room)
        for run in {each.run for each in batch}:
            self._stage_of(run)
        if batch:
            engine.offer(batch)

    def _next(self, count: int) -> Iterator[Ask]:
        assert self._ahead is not None
        while count > 0 and (item := self._ahead()) is not None:
            is_known = item.nodeid in self._offered or item.nodeid in self._suspects
            ask = item.ask if isinstance(item, QuestionItem) else ahead_of(item)
            if ask is not None and not is_known and not _may_be_skipped(item):
                self._offered.add(item.nodeid)
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
                    rows, _ = read_rows(stage.log.path.parent / name for name in _lines(dead))
                    stage.known.update(rows)
            self._suspects = frozenset(_lines(suspects))

    def _pass_on_stop(self, session: pytest.Session) -> None:
        engine = self._engine
        if engine is not None and engine.stopped and not (session.shouldfail or session.shouldstop):
            if engine.was_told:
                session.shouldstop = engine.stopped
            else:
                session.shouldfail = engine.stopped


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


def _result_in_test(item: pytest.Item) -> QuestionResult | None:
    """Return what a test of the user's has recorded of its question."""
    handle = item.stash.get(HANDLE, None)
    return handle.result if handle is not None else None


def _may_be_skipped(item: pytest.Item) -> bool:
    """Tell whether somebody has put a skip mark on the item: then it is asked only when it is reached."""
    if isinstance(item, QuestionItem) and len(item.own_markers) == 1:
        return False
    return any(mark.name in ("skip", "skipif") for mark in item.iter_markers())


def _watch(seat: Seat) -> Callable[[], str | None] | None:
    """Return what tells a worker to stop: the controller's word, or its death."""
    if (link := seat.link) is not None:
        return lambda: link.stop
    if seat.parent_pid is None:
        return None
    path = seat.signals / STOP_FILE if seat.signals is not None else None

    def look() -> str | None:
        if os.getppid() != seat.parent_pid:
            return "the controller has died"
        try:
            return path.read_text(encoding="utf-8") or "told to stop" if path is not None else None
        except OSError:
            return None

    return look
