"""The process that answers: collects the questions, asks ahead, and hands each item its own result."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from typing import Any

import pytest

from .cast import Cast
from .engine import ENDED
from .errors import RunStopped, SimpleQAError
from .fixtureruns import FixtureRuns
from .fixtures import HANDLE
from .fixtures import PLUGIN as FIXTURE_RUNS
from .items import QuestionCollector, QuestionItem, RefusedCollector, wants_failed_of_none
from .lookahead import LookAhead, Upcoming
from .models.embedded import Embedded
from .models.spec import split_spec, split_specs
from .options import Options
from .payload import Payload
from .plan import Plan, Planned
from .protocol import PlainProtocol, is_plain
from .records import QuestionResult, Reply
from .seat import Seat
from .stage import Ask
from .surroundings import start_servers

_COLLECT_EVERY = 50_000
"""New objects between two collections while questions run: what hundreds of requests hold is garbage of no cycle."""

_UNASKED: pytest.StashKey[bool] = pytest.StashKey()
"""Marks an item that a stop has left without a result."""


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
        self._embedded = embedded
        self._ahead = LookAhead(config, runs, in_tests, seat, cast, upcoming)
        self._thresholds = gc.get_threshold()
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
        with self._skipping(item):
            result = self._ahead.reach(item, item.ask).result(item.ask)
            self._ahead.send()
            return result

    def put(self, item: pytest.Item, ask: Ask) -> Reply | QuestionResult:
        """Return what comes of a question that a test puts; what has been asked ahead is there already."""
        with self._skipping(item):
            return self._ahead.put(item, ask).reply(ask)

    @contextlib.contextmanager
    def _skipping(self, item: pytest.Item) -> Iterator[None]:
        """Skip the item where its question is not asked any more, and let the session end then."""
        session = item.session
        try:
            yield
        except RunStopped as stop:
            item.stash[_UNASKED] = True
            pytest.skip(f"not asked: {stop}")
        except SimpleQAError as error:  # a disk that is full, once for the whole run
            item.stash[_UNASKED] = True
            session.shouldfail = session.shouldfail or str(error)
            pytest.skip(f"not asked: {error}")
        finally:
            self._pass_on_stop(session)

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        self._ahead.pass_by(item)
        if not isinstance(item, QuestionItem):
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
        if _UNASKED in item.stash:
            report.simpleqa_unasked = True  # type: ignore[attr-defined]  # extra attributes travel
        if call.when == "call" and isinstance(item, QuestionItem) and item.result is not None:
            item.mark_report(report)
            self._attach(report, item.ask.run, item.result)
        elif (handle := item.stash.get(HANDLE, None)) is not None and (result := handle.news()) is not None:
            self._ahead.send()
            self._attach(report, handle.run, result)
        return report

    def _attach(self, report: pytest.TestReport, run: str, result: QuestionResult) -> None:
        """Let the report carry a result to the process that reports."""
        payload = Payload(run, result, self._ahead.limit)
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
        self._ahead.close()
        self._embedded.stop()
        gc.set_threshold(*self._thresholds)

    def _pass_on_stop(self, session: pytest.Session) -> None:
        engine = self._ahead.engine
        if engine is None or engine.stopped == ENDED:  # a test's own thread, behind the end
            return
        if engine.stopped and not (session.shouldfail or session.shouldstop):
            if engine.was_told:
                session.shouldstop = engine.stopped
            else:
                session.shouldfail = engine.stopped


def _result_in_test(item: pytest.Item) -> QuestionResult | None:
    """Return what a test of the user's has recorded of its question."""
    handle = item.stash.get(HANDLE, None)
    return handle.result if handle is not None else None
