"""The process that reports: gathers results, tells how far the run is, writes the Report, sets the exit status."""

from __future__ import annotations

import json
import math
import shlex
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from . import jsonreport, terminal, wording
from .cast import Cast
from .ending import Ending
from .engine import Ask
from .errors import RunError
from .gates import Gates
from .items import QuestionItem, wants_failed_of_none
from .metrics import Counts
from .plan import Plan
from .records import Failure, QuestionResult, Verdict
from .report import Report
from .reportbuild import build_report
from .reportfile import report_text, write_report
from .rundir import RunDir, versions
from .runevents import Event, done_event, progress_event, start_event
from .runlog import Key
from .screen import Screen, status_word


class Reporter:
    """Registered where pytest reports: in the controller under xdist, else in the only process."""

    def __init__(self, config: pytest.Config, plan: Plan, cast: Cast, gates: Gates) -> None:
        self._config = config
        self._plan = plan
        self._cast = cast
        self._gates = gates
        self._screen = Screen(config)
        self._ending = Ending()
        self.run_dir = RunDir(plan, cast.describe, self._screen.warn)
        self.results: dict[Key, QuestionResult] = {}
        self._statuses: Counter[str] = Counter()
        self._limits: dict[str, int] = {}
        """By worker: pairs that may be in flight there now, fewer while a service says slow down."""
        self._selected = 0
        self._known = 0
        """Rows that an earlier session of this run had finished."""
        self._began = time.monotonic()
        self._next_pct = plan.options.progress_pct
        self._progress_is_due = False
        self._own_failures = 0
        self._skipped: set[Key] = set()
        """Questions that a hook has skipped: no result of theirs counts, though one may have been asked ahead."""
        self._report: Report | None = None
        self._session: pytest.Session | None = None

    # --- start -----------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        self._screen.seed_categories()
        if self._asks:
            _ = self.run_dir.path  # made, or found to be resumed, before anything is asked

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Announce the run before its first request (under xdist the workers collect, and `wire` tells us)."""
        if not session.testsfailed or self._config.option.continue_on_collection_errors:
            self.selected([item.nodeid for item in session.items if isinstance(item, QuestionItem)])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        self._ending.watch_sigterm()

    def selected(self, node_ids: Sequence[str]) -> None:
        """Hear which questions pytest has selected; before any of them is asked."""
        self._selected = len(set(node_ids))
        name = self._plan.name
        if not node_ids and wants_failed_of_none(self._config, self._ask_of):
            self._screen.say(f"{name}: no question has failed last time, so none is asked", least_verbosity=-1)
        if not node_ids or not self._asks:
            return
        self._began = time.monotonic()
        answer, judge = self._specs
        calls = self._cast.calls_per_question
        asked = [self._ask_of[node_id].key for node_id in set(node_ids)]
        self._screen.say(
            wording.announcement(self._selected, answer, judge, self._cast.calls_for(asked)), least_verbosity=-1
        )
        if answer == judge and calls == 2:
            self._screen.warn(f"{answer} judges its own answers")
        for notice in (*self._cast.notices, *self._gates.notices):
            self._screen.warn(notice)
        if self.run_dir.resumed:
            rows = self.run_dir.read_rows()  # also tells of torn lines before anything is asked
            self._known = sum(row.verdict is not None for row in rows.values())
        self._tell(start_event(name, self._selected, answer, judge))

    # --- results ---------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        self._hear(report)
        yield
        if self._progress_is_due:  # not before: the terminal is to show the question's own letter first
            self._progress_is_due = False
            self._progress(len(self.results), self._selected)
        if report.when != "call" and report.passed and report.nodeid.startswith(self._plan.node_id("")):
            self._screen.let_go(report)

    def _hear(self, report: pytest.TestReport) -> None:
        payload = report.__dict__.pop("simpleqa", None)
        if payload is not None:
            result = self._unpacked(payload) if isinstance(payload, str) else payload
            self._limits[getattr(report, "worker_id", "")] = report.__dict__.pop("simpleqa_limit", 0)
            self._take(report, result, is_kept=not _is_remote(report))
        elif str(report.when) == "???" and (ask := self._ask_of.get(report.nodeid)) is not None:
            self._hear_crash(report, ask)
        elif report.skipped and report.when == "setup" and (ask := self._ask_of.get(report.nodeid)) is not None:
            self._skipped.add(ask.key)

    def _hear_crash(self, report: pytest.TestReport, ask: Ask) -> None:
        """Take in that a worker died at a question: an error, unless the question had been reported already."""
        if ask.key in self.results:
            report.outcome, report.longrepr = "passed", None  # it died between the report and the next question
            report.simpleqa_status = None  # type: ignore[attr-defined]  # for teststatus, in this process only
            return
        died = Failure("worker_crash", "the worker that asked it died")
        self._take(report, QuestionResult.for_question(ask.question, ask.repeat, error=died), is_kept=False)

    def _unpacked(self, payload: str) -> QuestionResult:
        data = json.loads(payload)
        return QuestionResult.from_wire(data, self._ask_by_key[data["id"], data["repeat"]].question)

    def _take(self, report: pytest.TestReport, result: QuestionResult, *, is_kept: bool) -> None:
        report.simpleqa_status = result.status  # type: ignore[attr-defined]  # for teststatus, in this process only
        key = result.id, result.repeat
        if not is_kept:
            self.run_dir.keep(self._ask_by_key[key], result)
        self._own_failures += report.failed
        self.results[key] = result
        self._statuses[result.status] += 1
        self._config.hook.pytest_simpleqa_result(result=result)
        done, total = len(self.results), self._selected
        step = self._plan.options.progress_pct
        if step and total and 100 * done >= self._next_pct * total:
            self._next_pct = step * (math.floor(100 * done / total / step) + 1)
            self._progress_is_due = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, Mapping[str, bool]]] | None:
        if hasattr(report, "simpleqa_status"):
            return ("", "", "") if report.simpleqa_status is None else status_word(report.simpleqa_status)
        if report.when == "call" and report.skipped and report.nodeid in self._ask_of:
            return "", "", ""  # a question that a stop has left unasked
        return None

    def _progress(self, done: int, total: int) -> None:
        limit = sum(self._limits.values())
        line = wording.progress_line(
            done,
            total,
            Counts.from_statuses(self._statuses.elements()),
            elapsed_s=time.monotonic() - self._began,
            resumed=min(done, self._known),
            in_flight=limit if limit < self._plan.options.concurrency else 0,
            width=self._screen.width,
        )
        if done < total:
            self._screen.say(line, least_verbosity=0)
        self._tell(progress_event(self._plan.name, done, total, line))

    # --- the end ---------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._ending.hear_interrupt(excinfo.value)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        report = self.finish(session)
        if report is not None and report.exit_status is not None:
            session.exitstatus = report.exit_status
        elif report is None and self._gates.expressions and not self._config.option.collectonly:
            self._screen.say("gates: undecided: no question was asked", least_verbosity=-1, red=True)
            session.exitstatus = self._ending.gated_status(session, (), own_failures=0, questions_fail=False)

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        report = self.finish(self._session) if self._session is not None else None
        if report is not None:
            jsonreport.put_into(json_report, report)

    def finish(self, session: pytest.Session) -> Report | None:
        """Build and write the Report once, and return it; None where no question was reached."""
        if self._report is not None or not self.run_dir.is_open:
            return self._report
        if len(self.results) < self._selected:  # what was finished ahead of a stop stands in the run log
            known = self.results.keys() | self._skipped
            self.results.update(self.run_dir.finished(ask for key, ask in self._ask_by_key.items() if key not in known))
        if not self.results and not self._selected:
            return None
        report = self._decided(self._build(), session)
        for path in filter(None, (self.run_dir.path / "report.json", self._plan.options.out)):
            try:
                write_report(report, path)
            except RunError as error:
                self._screen.warn(str(error))
                report = replace(report, exit_status=report.exit_status or int(pytest.ExitCode.TESTS_FAILED))
        self._report = report
        self._tell(done_event(report, wording.one_line(report)))
        self._call_hook("pytest_simpleqa_report", report=report)
        return report

    def _build(self) -> Report:
        from .judges.parse import parse_paper  # not before: its patterns take a while to compile

        options, plan = self._plan.options, self._plan
        answer, judge = self._cast.describe()
        return build_report(
            dataset=plan.name,
            model=self._specs[0],
            judge=self._specs[1],
            started_at=self.run_dir.started_at,
            duration_s=time.monotonic() - self._began,
            population=plan.dataset.questions,
            results=self.results,
            selected=self._selected,
            repeats=options.repeats,
            max_samples=options.max_samples,
            topic_breakdown=options.topic_breakdown,
            options=options.options_json,
            provenance={
                "dataset_sha256": plan.dataset.sha256,
                "answer_prompt_sha256": options.answer_prompt.sha256,
                "grade_prompt_sha256": options.grade_prompt.sha256,
                "answer": dict(answer),
                "judge": dict(judge),
                "versions": versions(),
            },
            resumed=self.run_dir.resumed,
            other_parse=_strict if options.paper else parse_paper,
        )

    def _decided(self, report: Report, session: pytest.Session) -> Report:
        """Return `report` with its gates decided and the exit status that follows."""
        if not self._gates:
            return replace(report, exit_status=self._ending.status(session))
        from .pairing import rows_of

        rows = rows_of(self._plan.dataset.questions, self.results, self._plan.options.repeats)
        report = replace(report, comparison=self._gates.compare(rows))
        if not self._gates.expressions:
            return replace(report, exit_status=self._ending.status(session))
        reasons = ["interrupted"] if self._ending.was_interrupted else []
        decided = self._gates.decide(report, rows, reasons)
        fails = self._plan.options.fail_on if self._plan.options.fails_by_order else frozenset()
        status = self._ending.gated_status(
            session,
            [gate.verdict for gate in decided],
            own_failures=self._own_failures,
            questions_fail=any(result.verdict in fails for result in self.results.values()),
        )
        return replace(report, gates=tuple(gate.to_json() for gate in decided), exit_status=status)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._report is None:
            return
        verbosity = self._config.get_verbosity()
        if verbosity > -2:
            terminalreporter.write_sep("=", "simpleqa")
        written = self._plan.options.out or self.run_dir.path / "report.json"
        self._screen.show(
            terminal.summary_lines(
                self._report,
                width=self._screen.width,
                colour=True,
                run_dir=_relative(self.run_dir.path),
                out=_relative(written),
                verbosity=verbosity,
                results=list(self._in_order()),
                resume=self._resume_command() if self._report.n < self._report.selected else None,
            )
        )

    def _resume_command(self) -> str:
        """Return what to type to go on with this run: the same command line, and its name."""
        args = [str(arg) for arg in self._config.invocation_params.args]
        kept = [arg for arg in args if not arg.startswith("--simpleqa-resume=")]
        if "--simpleqa-resume" in kept:
            place = kept.index("--simpleqa-resume")
            del kept[place : place + 2]
        return shlex.join(["pytest", *kept, f"--simpleqa-resume={self.run_dir.path.name}"])

    def pytest_unconfigure(self) -> None:
        self._ending.restore_signals()
        self.run_dir.close()
        if self._plan.options.out_stdout and self._report is not None:
            _write_utf8(report_text(self._report))

    # --- small parts -----------------------------------------------------------------------

    @property
    def _asks(self) -> bool:
        """Whether this session asks questions at all."""
        option = self._config.option
        return not (option.collectonly or option.setuponly or option.setupplan)

    @property
    def _specs(self) -> tuple[str, str]:
        options = self._plan.options
        return options.answer_llm or "", options.judge_llm or ""

    @cached_property
    def _ask_of(self) -> Mapping[str, Ask]:
        """What each node id asks: a row is never recovered by taking a node id apart."""
        return {self._plan.node_id(name): ask for name, ask in self._plan.asks()}

    @cached_property
    def _ask_by_key(self) -> Mapping[Key, Ask]:
        return {ask.key: ask for ask in self._ask_of.values()}

    def _in_order(self) -> Iterator[QuestionResult]:
        return (self.results[key] for key in self._ask_by_key if key in self.results)

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


def _write_utf8(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's own encoding is."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(text.encode("utf-8"))
    else:
        sys.stdout.write(text)
    sys.stdout.flush()


def _is_remote(report: pytest.TestReport) -> bool:
    """Tell whether the report came from another machine, whose run log we do not see."""
    node = getattr(report, "node", None)
    return node is not None and not node.gateway.spec.popen


def _strict(reply: str) -> Verdict | None:
    from .judges.parse import parse_verdict

    return parse_verdict(reply).verdict


def _relative(path: Path) -> str:
    """Return `path` as the user would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
