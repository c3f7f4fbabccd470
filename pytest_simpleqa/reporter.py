"""The process that reports: gathers results, writes the Reports, sets the exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from . import jsonreport, wording
from .ending import Ending
from .errors import OptionError, RunError, SimpleQAError
from .fixtureruns import FixtureRun, FixtureRuns
from .gates import Gates
from .items import QuestionItem, RefusedEval, wants_failed_of_none
from .ledger import Ledger
from .options import Options
from .payload import PackedPayload, Payload
from .plan import Plan
from .progress import Progress
from .records import Failure, QuestionResult
from .report import Report
from .reportfile import report_text, write_report
from .runevents import Event, done_event
from .runlog import Key
from .screen import Screen, status_word
from .stage import Ask
from .summary import show_summary


class Reporter:
    """Registered where pytest reports: in the controller under xdist, else in the only process."""

    def __init__(
        self,
        config: pytest.Config,
        options: Options,
        ledgers: Sequence[Ledger],
        gates: Gates,
        screen: Screen,
        notices: Sequence[str] = (),
        *,
        in_tests: FixtureRuns,
        open_ledger: Callable[[Plan], Ledger],
    ) -> None:
        self._config = config
        self._options = options
        self._gates = gates
        self._screen = screen
        self._notices = notices
        self._in_tests = in_tests
        self._open_ledger = open_ledger
        self._ending = Ending()
        self.ledgers = {ledger.plan.name: ledger for ledger in ledgers}
        self._progress = Progress(config, options, self.ledgers, screen, self._tell)
        self._tested: Mapping[str, tuple[str, Key]] = {}
        """The run and the row of each item of a test function."""
        self._own_failures = 0
        self._is_finished = False
        self._session: pytest.Session | None = None

    # --- start -----------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        self._screen.seed_categories()
        if self._asks:  # the directories are made, or found to be resumed, before anything is asked
            for ledger in self.ledgers.values():
                _ = ledger.run_dir.path

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Announce the runs before the first request (under xdist the workers collect, and `wire` tells us)."""
        self._in_tests.require_sound()
        if not session.testsfailed or self._config.option.continue_on_collection_errors:
            mine = [item.nodeid for item in session.items if isinstance(item, QuestionItem)]
            self.selected(mine, self._in_tests.among(session.items))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        self._ending.watch_sigterm()

    def selected(self, node_ids: Sequence[str], in_tests: Sequence[FixtureRun] = ()) -> None:
        """Hear which questions pytest has selected, and which runs of test functions; before any of them is asked."""
        mine = frozenset(node_ids)
        for run in in_tests if self._asks else ():
            self._join(run.plan)
        for notice in self._notices if mine else ():
            self._screen.warn(notice)
        selected: dict[str, list[Key]] = {name: [] for name in self.ledgers}
        for ask in (self._ask_of[each] for each in mine):
            selected[ask.run].append(ask.key)
        selected |= {run.plan.name: list(run.items.values()) for run in in_tests}
        self._tested = {node_id: (run.plan.name, key) for run in in_tests for node_id, key in run.items.items()}
        for ledger in self.ledgers.values():
            ledger.begin(selected[ledger.plan.name])
            self._tell_of_none_failed(ledger)
        if self._asks:
            self._progress.begin()

    def _join(self, plan: Plan) -> None:
        """Open the ledger of a test function's run, and its directory. Raises pytest.UsageError."""
        try:
            self._require_own_files(plan.name)
            self.ledgers[plan.name] = self._open_ledger(plan)
        except SimpleQAError as error:
            raise pytest.UsageError(wording.visible(str(error))) from None
        _ = self.ledgers[plan.name].run_dir.path

    def _require_own_files(self, name: str) -> None:
        """Raise OptionError where two runs of this session would write one file."""
        options = self._options
        for flag, path_of in (("--simpleqa-out", options.out_of), ("--simpleqa-record", options.record_of)):
            other = next((other for other in self.ledgers if path_of(other) == path_of(name) is not None), None)
            if other is not None:
                raise OptionError(
                    f"{flag}={path_of(name)}: {name} and {other} would write the same file; put {{name}} into its name"
                )

    def _tell_of_none_failed(self, ledger: Ledger) -> None:
        mine = (node_id for node_id in self._ask_of if ledger.plan.holds(node_id))
        if not ledger.selected and wants_failed_of_none(self._config, mine):
            line = f"{ledger.plan.name}: no question has failed last time, so none is asked"
            self._screen.say(line, least_verbosity=-1)

    # --- results ---------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        carried = hasattr(report, "simpleqa")
        self._hear(report)
        yield
        if carried:
            self._progress.tell()  # not before: the terminal is to show the question's own letter first
        if report.when != "call" and report.passed and report.nodeid in self._ask_of:
            self._screen.let_go(report)

    def _hear(self, report: pytest.TestReport) -> None:
        carried = report.__dict__.pop("simpleqa", None)
        if carried is not None:
            payload = carried if isinstance(carried, Payload) else self._opened(carried)
            self._progress.hear_limit(getattr(report, "worker_id", ""), payload.limit)
            ledger = self.ledgers[payload.run]
            if ledger.plan.in_tests:  # the test passes or fails as its own assertions say
                self._enter(ledger, payload.result, is_kept=True)
            else:
                self._take(report, ledger, payload.result, is_kept=True)
        elif str(report.when) == "???" and (ask := self._ask_of.get(report.nodeid)) is not None:
            self._hear_crash(report, ask)
        elif _records_nothing(report) and (place := self._place_of(report.nodeid)) is not None:
            run, key = place
            self.ledgers[run].passed_by.add(key)

    def _hear_crash(self, report: pytest.TestReport, ask: Ask) -> None:
        """Take in that a worker died at a question: an error, unless the question had been reported already."""
        ledger = self.ledgers[ask.run]
        if ask.key in ledger.results:
            report.outcome, report.longrepr = "passed", None  # it died between the report and the next question
            report.simpleqa_status = None  # type: ignore[attr-defined]  # for teststatus, in this process only
            return
        died = Failure("worker_crash", "the worker that asked it died")
        self._take(report, ledger, QuestionResult.for_question(ask.question, ask.repeat, error=died), is_kept=False)

    def _opened(self, text: str) -> Payload:
        packed = PackedPayload.read(text)
        return packed.opened(self.ledgers[packed.run].ask_by_key[packed.key].question)

    def _take(self, report: pytest.TestReport, ledger: Ledger, result: QuestionResult, *, is_kept: bool) -> None:
        report.simpleqa_status = result.status  # type: ignore[attr-defined]  # for teststatus, in this process only
        self._own_failures += report.failed
        self._enter(ledger, result, is_kept=is_kept)

    def _enter(self, ledger: Ledger, result: QuestionResult, *, is_kept: bool) -> None:
        if ledger.take(result, is_kept=is_kept):
            self._progress.is_due(ledger)
        self._config.hook.pytest_simpleqa_result(result=result, run=ledger.plan.name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, Mapping[str, bool]]] | None:
        if hasattr(report, "simpleqa_status"):
            return ("", "", "") if report.simpleqa_status is None else status_word(report.simpleqa_status)
        if report.when == "call" and report.skipped and report.nodeid in self._ask_of:
            return "", "", ""  # a question that a stop has left unasked
        return None

    # --- the end ---------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._ending.hear_interrupt(excinfo.value)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        reports = self.finish(session)
        if not self.ledgers and self._asks:
            self._screen.say(
                "no question was asked: add --simpleqa-dataset=FILE or --simpleqa-eval=NAME, or a test that takes the "
                "simpleqa fixture",
                least_verbosity=-1,
                red=True,
            )
        self._tell_of_refused(session)
        if reports:
            session.exitstatus = max(report.exit_status or 0 for report in reports)
        elif self._gates.expressions and not self._config.option.collectonly:
            self._screen.say("gates: undecided: no question was asked", least_verbosity=-1, red=True)
            session.exitstatus = self._ending.gated_status(session, (), own_failures=0, questions_fail=False)

    def _tell_of_refused(self, session: pytest.Session) -> None:
        """Tell under --collect-only which evals cannot be run, which the others say by failing."""
        if self._config.option.collectonly:
            for item in (each for each in getattr(session, "items", ()) if isinstance(each, RefusedEval)):
                self._screen.warn(f"cannot be run: {item.reason}")
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        if self._session is not None and (reports := self.finish(self._session)):
            jsonreport.put_into(json_report, reports)

    def finish(self, session: pytest.Session) -> list[Report]:
        """Build and write every run's Report once, and return them; none of a run of which no question was reached."""
        if not self._is_finished:
            self._is_finished = True
            reasons = ["interrupted"] if self._ending.was_interrupted else []
            for ledger in self.ledgers.values():
                ledger.gates = self._gates.for_run(ledger.plan.name, self.ledgers)  # all runs are known by now
                ledger.close(reasons)
            status = self._status(session)
            for ledger in self._reported:
                self._publish(ledger, status)
        return [ledger.report for ledger in self._reported if ledger.report is not None]

    @property
    def _reported(self) -> list[Ledger]:
        return [ledger for ledger in self.ledgers.values() if ledger.report is not None]

    @property
    def _of_items(self) -> list[Ledger]:
        """Those of whose questions each is an item that its verdict may fail."""
        return [ledger for ledger in self._reported if not ledger.plan.in_tests]

    def _status(self, session: pytest.Session) -> int:
        """Return the exit status of the session: the gates of every run decide it together."""
        if not self._gates.expressions:
            return self._ending.status(session)
        fails = self._options.fail_on if self._options.fails_by_order else frozenset()
        verdicts = [verdict for ledger in self._reported for verdict in ledger.verdicts]
        return self._ending.gated_status(
            session,
            [*verdicts, "undecided"] if self._left_open else verdicts,
            own_failures=self._own_failures,
            questions_fail=any(each.verdict in fails for led in self._of_items for each in led.results.values()),
        )

    @property
    def _left_open(self) -> list[str]:
        """A line for each gate that stands in no Report."""
        return self._gates.left_open({name: ledger.report is not None for name, ledger in self.ledgers.items()})

    def _publish(self, ledger: Ledger, status: int) -> None:
        """Write a run's Report and tell of it."""
        assert ledger.report is not None
        ledger.report = report = replace(ledger.report, exit_status=status)
        for path in filter(None, (ledger.run_dir.path / "report.json", self._out(ledger))):
            try:
                write_report(report, path)
            except RunError as error:
                self._screen.warn(str(error))
                ledger.report = report = replace(report, exit_status=status or int(pytest.ExitCode.TESTS_FAILED))
        self._tell(done_event(report, wording.one_line(report)))
        self._call_hook("pytest_simpleqa_report", report=report)

    def _out(self, ledger: Ledger) -> Path | None:
        """Return where the user wants a run's Report."""
        return self._options.out_of(ledger.plan.name)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        show_summary(terminalreporter, self._screen, self._reported, self._left_open)

    def pytest_unconfigure(self) -> None:
        self._ending.restore_signals()
        for ledger in self.ledgers.values():
            ledger.run_dir.close()
            if self._options.out_stdout and ledger.report is not None:
                _write_utf8(report_text(ledger.report))

    # --- small parts -----------------------------------------------------------------------

    @property
    def _asks(self) -> bool:
        """Whether this session asks questions at all."""
        option = self._config.option
        return not (option.collectonly or option.setuponly or option.setupplan)

    @cached_property
    def _ask_of(self) -> Mapping[str, Ask]:
        """What each node id asks: a row is never recovered by taking a node id apart."""
        plans = [ledger.plan for ledger in self.ledgers.values() if not ledger.plan.in_tests]
        return {plan.node_id(name): ask for plan in plans for name, ask in plan.asks()}

    def _place_of(self, node_id: str) -> tuple[str, Key] | None:
        """Return the run and the row of an item that has one."""
        ask = self._ask_of.get(node_id)
        return (ask.run, ask.key) if ask is not None else self._tested.get(node_id)

    def _tell(self, event: Event) -> None:
        self._call_hook("pytest_simpleqa_event", f" at {event.kind}", event=event)

    def _call_hook(self, name: str, when: str = "", **values: Any) -> None:
        """Call a hook that only listens: what fails in it (a chat that is down) must not cost the run."""
        try:
            getattr(self._config.hook, name)(**values)
        except pytest.exit.Exception:
            raise
        except Exception as error:
            self._screen.warn(f"{name} failed{when}: {type(error).__name__}: {error}")


def _records_nothing(report: pytest.TestReport) -> bool:
    """Tell whether a report without a result is an item's last word: what a stop has left unasked has had none."""
    has_ended = report.when == "call" or (report.when == "setup" and not report.passed)
    return has_ended and not hasattr(report, "simpleqa_unasked")


def _write_utf8(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's own encoding is."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(text.encode("utf-8"))
    else:
        sys.stdout.write(text)
    sys.stdout.flush()
