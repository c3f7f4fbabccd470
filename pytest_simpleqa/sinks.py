"""Where results go besides the run directory: logs of events and a database, told by the hooks as anybody is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from functools import cached_property

import pytest

from .backlog import Backlog
from .database import Database, Entry
from .errors import OptionError, RunError
from .eventlog import EventLog, require_log_place
from .ledger import Ledger
from .openaievents import LoggedRun, final_report
from .options import Options
from .records import QuestionResult
from .report import Report
from .rundisk import read_run_json
from .runlog import Key

Warn = Callable[[str], None]
PATIENCE_S = 10.0
"""How long a database that is away is tried at the end."""


def register(config: pytest.Config, options: Options, ledgers: Sequence[Ledger], warn: Warn) -> None:
    """Register the sinks that the options name, each tried before anything is paid. Raises SimpleQAError."""
    if options.answer_llm is None or config.option.collectonly:
        return
    if options.record is not None:
        config.pluginmanager.register(LogSink(options, ledgers, warn), "simpleqa-record")
    if options.db is not None:
        database = Database(options.db, options.db_base)
        database.open()
        config.pluginmanager.register(DatabaseSink(database, ledgers, warn), "simpleqa-db")


class Told:
    """One run, and which of its results a sink has been told."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.keys: set[Key] = set()

    @cached_property
    def run(self) -> LoggedRun:
        """The run as its directory has it: its id stays when it is resumed."""
        home, plan = self.ledger.run_dir.path, self.ledger.plan
        content = read_run_json(home)
        is_eval = plan.source is not None
        return LoggedRun(
            run_id=str(content.get("run_id") or home.name),
            name=plan.name,
            created_at=datetime.fromisoformat(content["started_at"]),
            content=content,
            prompt=None if is_eval else plan.options.answer_prompt,
            is_eval=is_eval,
        )

    def rest(self) -> Sequence[QuestionResult]:
        """Return the results that came by no hook: what was finished ahead of a stop stands in the run log alone."""
        return [result for key, result in self.ledger.results.items() if key not in self.keys]


class Runs:
    """The session's runs by name, each with what has been told of it; looked up when a run is first heard of."""

    def __init__(self, ledgers: Sequence[Ledger]) -> None:
        self._ledgers = ledgers
        self._told: dict[str, Told] = {}

    def __getitem__(self, name: str) -> Told:
        if name not in self._told:
            self._told[name] = Told(next(ledger for ledger in self._ledgers if ledger.plan.name == name))
        return self._told[name]


class LogSink:
    """Keeps one log of events for each run."""

    def __init__(self, options: Options, ledgers: Sequence[Ledger], warn: Warn) -> None:
        self._record_of = options.record_of
        self._runs = Runs(ledgers)
        paths = [path for ledger in ledgers if (path := options.record_of(ledger.plan.name)) is not None]
        if len(set(paths)) < len(paths):
            raise OptionError(
                f"--simpleqa-record={options.record}: this session holds {len(paths)} runs, each with a log of its "
                "own; put {name} into the file's name"
            )
        for path in paths:
            require_log_place(path)
        self._logs: dict[str, EventLog] = {}
        self._warn = warn
        self._is_broken = False

    @pytest.hookimpl
    def pytest_simpleqa_result(self, result: QuestionResult, run: str) -> None:
        told = self._runs[run]
        told.keys.add((result.id, result.repeat))
        self._do(lambda: self._log(run).add(result))

    @pytest.hookimpl
    def pytest_simpleqa_report(self, report: Report) -> None:
        for result in self._runs[report.name].rest():
            self.pytest_simpleqa_result(result, report.name)
        self._do(lambda: self._log(report.name).finish(final_report(report)))

    @pytest.hookimpl
    def pytest_unconfigure(self) -> None:
        for log in self._logs.values():
            log.close()

    def _log(self, run: str) -> EventLog:
        if run not in self._logs:
            path = self._record_of(run)
            assert path is not None
            self._logs[run] = EventLog(path, self._runs[run].run)
        return self._logs[run]

    def _do(self, work: Callable[[], None]) -> None:
        """Write, until a write fails: the run goes on without its log."""
        if self._is_broken:
            return
        try:
            work()
        except RunError as error:
            self._is_broken = True
            self._warn(f"{error}; the run goes on, and resuming it with the same option completes the log")


class DatabaseSink:
    """Hands everything to the thread that writes to the database."""

    def __init__(self, database: Database, ledgers: Sequence[Ledger], warn: Warn) -> None:
        self._database = database
        self._backlog = Backlog(database.write)
        self._runs = Runs(ledgers)
        self._warn = warn

    @pytest.hookimpl
    def pytest_simpleqa_result(self, result: QuestionResult, run: str) -> None:
        told = self._runs[run]
        told.keys.add((result.id, result.repeat))
        self._backlog.put(Entry(told.run, result))
        if (error := self._backlog.trouble()) is not None:
            self._warn(f"{self._failed(error)}; the run goes on, and it is tried again")

    @pytest.hookimpl
    def pytest_simpleqa_report(self, report: Report) -> None:
        for result in self._runs[report.name].rest():
            self.pytest_simpleqa_result(result, report.name)
        self._backlog.put(Entry(self._runs[report.name].run, report))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """Write what is left, behind the Reports and before the summary."""
        yield
        left = self._backlog.close(PATIENCE_S)
        if left and self._backlog.fault is not None:
            again = "resume the run with the same option to write them"
            self._warn(f"{self._failed(self._backlog.fault)}; {left:,} rows are not there: {again}")

    @pytest.hookimpl
    def pytest_unconfigure(self) -> None:
        self._database.close()

    def _failed(self, error: Exception) -> str:
        return f"--simpleqa-db {self._database.shown}: cannot be written to: {self._database.told(error)}"
