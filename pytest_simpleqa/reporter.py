"""The process that reports: gathers results, tells how far the run is, writes the Report, sets the exit status."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import shutil
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from . import resume, terminal, wording
from .engine import Ask
from .errors import RunError
from .items import QuestionItem, wants_failed_of_none
from .judges.parse import parse_paper, parse_verdict
from .metrics import Counts
from .plan import Plan
from .records import Failure, QuestionResult, Verdict
from .report import Report, build_report, report_text, write_report
from .runevents import Event, done_event, progress_event, start_event
from .runlog import (
    DEAD_FILE,
    STOP_FILE,
    SUSPECTS_FILE,
    Hold,
    Key,
    Row,
    RunLog,
    create_run_dir,
    read_rows,
    read_run_json,
    results_files,
    write_run_json,
)

WORDS: Mapping[str, tuple[str, str, Mapping[str, bool]]] = {
    "correct": (".", "correct", {"green": True}),
    "incorrect": ("i", "incorrect", {"red": True}),
    "not_attempted": ("-", "not attempted", {"yellow": True}),
    "judge_failure": ("?", "judge failure", {"red": True, "bold": True}),
    "error": ("!", "answer error", {"red": True, "bold": True}),
}
"""What pytest shows of each status: letter, word (and category), colour; in the order of its last line."""


class SimpleQAWarning(UserWarning):
    """Something about a run that its user should know and that does not stop it."""


class Reporter:
    """Registered where pytest reports: in the controller under xdist, else in the only process."""

    def __init__(
        self,
        config: pytest.Config,
        plan: Plan,
        *,
        describe: Callable[[], tuple[Mapping[str, Any], Mapping[str, Any]]],
        calls_per_question: int,
        notices: Sequence[str] = (),
    ) -> None:
        self._config = config
        self._plan = plan
        self._describe = describe
        self._calls_per_question = calls_per_question
        self._notices = notices
        self.results: dict[Key, QuestionResult] = {}
        self._statuses: Counter[str] = Counter()
        self._limits: dict[str, int] = {}
        """By worker: pairs that may be in flight there now, fewer while a service says slow down."""
        self._selected = 0
        self._began = time.monotonic()
        self._started_at = datetime.now(UTC)
        self._next_pct = plan.options.progress_pct
        self._progress_is_due = False
        self._run_dir: Path | None = None
        self._hold: Hold | None = None
        self._torn: set[str] = set()
        self._log: RunLog | None = None
        self._report: Report | None = None
        self._session: pytest.Session | None = None
        self._interrupt: str | None = None
        self._old_handler: Any = None
        self.resumed = 0
        """How often the run has been resumed, this session included."""

    # --- start -----------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        self._seed_categories()
        option = self._config.option
        if not (option.collectonly or option.setuponly or option.setupplan):
            _ = self.run_dir  # made, or found to be resumed, before anything is asked

    @property
    def run_dir(self) -> Path:
        """The run's directory, made when it is first needed. Raises pytest.UsageError where it cannot be."""
        if self._run_dir is None:
            try:
                self._run_dir = self._resume() or self._create()
            except RunError as error:
                raise pytest.UsageError(str(error)) from None
        return self._run_dir

    def _create(self) -> Path:
        options = self._plan.options
        now = datetime.now().astimezone()
        run_dir = create_run_dir(options.run_dir, self._plan.name, _model_word(options.answer_llm or ""), now)
        self._hold = resume.hold(run_dir)
        write_run_json(run_dir, self._run_json())
        return run_dir

    def _resume(self) -> Path | None:
        """Return the run that --simpleqa-resume names, checked and free; None where a new one is to be made."""
        options = self._plan.options
        if options.resume is None:
            return None
        run_dir = resume.find_run(options.resume, options.run_dir, options.invocation_dir, self._run_json())
        if run_dir is None:
            return None
        resume.require_same(run_dir, self._run_json())
        self._hold = resume.hold(run_dir)
        old = read_run_json(run_dir)  # not sooner: another session may have gone on with it meanwhile
        for name in (STOP_FILE, DEAD_FILE, SUSPECTS_FILE):
            (run_dir / name).unlink(missing_ok=True)
        self.resumed = int(old.get("resumed", 0)) + 1
        write_run_json(run_dir, {**old, "resumed": self.resumed})
        return run_dir

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Announce the run before its first request (under xdist the workers collect, and `wire` tells us)."""
        if not session.testsfailed or self._config.option.continue_on_collection_errors:
            self.selected([item.nodeid for item in session.items if isinstance(item, QuestionItem)])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        self._watch_sigterm()

    def selected(self, node_ids: Sequence[str]) -> None:
        """Hear which questions pytest has selected; before any of them is asked."""
        self._selected = len(node_ids)
        if not node_ids and wants_failed_of_none(self._config, self._ask_of):
            line = f"{self._plan.name}: no question has failed last time, so none is asked"
            self._say(line, least_verbosity=-1)
        option = self._config.option
        if not node_ids or option.collectonly or option.setuponly or option.setupplan:
            return
        self._began = time.monotonic()
        options = self._plan.options
        answer, judge = options.answer_llm or "", options.judge_llm or ""
        calls = self._calls_per_question * self._selected
        self._say(wording.announcement(self._selected, answer, judge, calls), least_verbosity=-1)
        if options.answer_llm == options.judge_llm and self._calls_per_question == 2:
            self._say(f"warning: {answer} judges its own answers", least_verbosity=-1, yellow=True)
        for notice in self._notices:
            self._warn(notice)
        if self.resumed:
            self._read_rows()
        self._tell(start_event(self._plan.name, self._selected, answer, judge))

    # --- results ---------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        self._hear(report)
        yield
        if self._progress_is_due:  # not before: the terminal is to show the question's own letter first
            self._progress_is_due = False
            self._progress(len(self.results), self._selected)

    def _hear(self, report: pytest.TestReport) -> None:
        payload = report.__dict__.pop("simpleqa", None)
        if payload is not None:
            result = QuestionResult.from_json(json.loads(payload)) if isinstance(payload, str) else payload
            report.simpleqa_status = result.status  # type: ignore[attr-defined]  # for teststatus, here only
            self._limits[getattr(report, "worker_id", "")] = report.__dict__.pop("simpleqa_limit", 0)
            if self._is_remote(report):
                self._keep(result)
            self._take(result)
        elif str(report.when) == "???" and (ask := self._ask_of.get(report.nodeid)) is not None:
            crash = QuestionResult.for_question(
                ask.question, ask.repeat, error=Failure("worker_crash", "the worker that asked it died")
            )
            report.simpleqa_status = crash.status  # type: ignore[attr-defined]  # likewise
            self._keep(crash)
            self._take(crash)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, Mapping[str, bool]]] | None:
        status = getattr(report, "simpleqa_status", None)
        if status is not None:
            letter, word, markup = WORDS[status]
            return word, letter, (word, markup)
        if report.when == "call" and report.skipped and report.nodeid in self._ask_of:
            return "", "", ""  # a question that a stop has left unasked
        return None

    def _take(self, result: QuestionResult) -> None:
        self.results[result.id, result.repeat] = result
        self._statuses[result.status] += 1
        self._config.hook.pytest_simpleqa_result(result=result)
        done, total = len(self.results), self._selected
        step = self._plan.options.progress_pct
        if step and total and 100 * done >= self._next_pct * total:
            while 100 * done >= self._next_pct * total:
                self._next_pct += step
            self._progress_is_due = True

    def _progress(self, done: int, total: int) -> None:
        line = wording.progress_line(
            done,
            total,
            self._counts(),
            elapsed_s=time.monotonic() - self._began,
            in_flight=limit if (limit := sum(self._limits.values())) < self._plan.options.concurrency else 0,
            width=self._width,
        )
        if done < total:
            self._say(line, least_verbosity=0)
        self._tell(progress_event(self._plan.name, done, total, line))

    def _counts(self) -> Counts:
        return Counts.from_statuses(self._statuses.elements())

    # --- the end ---------------------------------------------------------------------------

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        # xdist raises its own Interrupted for any early end; only a worker's Ctrl-C is a real one.
        is_xdist = type(excinfo.value).__module__.partition(".")[0] == "xdist"
        if is_xdist and "keyboard-interrupt" not in str(excinfo.value):
            self._interrupt = "xdist"
        elif isinstance(excinfo.value, KeyboardInterrupt):
            self._interrupt = "user"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        report = self.finish(session)
        if report is not None and report.exit_status is not None:
            session.exitstatus = report.exit_status

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        """Put the Report into pytest-json-report's file, and pytest's own outcomes in place of our words."""
        if self._session is None or (report := self.finish(self._session)) is None:
            return
        json_report["simpleqa"] = {"runs": [json.loads(report_text(report))]}
        words = {word for _, word, _ in WORDS.values()}
        tests = json_report.get("tests", [])
        summary = json_report.get("summary", {})
        for test in tests:
            if test.get("outcome") in words:
                stage = test.get("call") or test.get("???") or {}
                test["outcome"] = stage.get("outcome", "failed")
        for word in words:
            summary.pop(word, None)
        for outcome, number in Counter(test["outcome"] for test in tests).items():
            summary[outcome] = number

    def finish(self, session: pytest.Session) -> Report | None:
        """Build and write the Report once, and return it; None where no question was reached."""
        if self._report is not None or self._run_dir is None:
            return self._report
        self._recover()
        self._restore_sigterm()
        if not self.results:
            self._drop_empty_run_dir()
            return None
        report = self._build(exit_status=self._exit_status(session))
        for path in filter(None, (self.run_dir / "report.json", self._plan.options.out)):
            try:
                write_report(report, path)
            except RunError as error:
                self._warn(str(error))
                report = replace(report, exit_status=report.exit_status or 1)
        self._report = report
        if self._log is not None:
            self._log.close()
        self._tell(done_event(report, wording.one_line(report)))
        self._config.hook.pytest_simpleqa_report(report=report)
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._report is None:
            return
        verbosity = self._config.get_verbosity()
        if verbosity > -2:
            terminalreporter.write_sep("=", "simpleqa")
        lines = terminal.summary_lines(
            self._report,
            width=self._width,
            colour=True,
            run_dir=_relative(self.run_dir),
            out=_relative(self._plan.options.out or self.run_dir / "report.json"),
            verbosity=verbosity,
            results=list(self._in_order()),
            resume=self._resume_command(),
        )
        terminalreporter.ensure_newline()
        for line in lines:
            for text, markup in line.spans:
                terminalreporter.write(text, **markup)
            terminalreporter.line("")

    def _resume_command(self) -> str:
        """Return what to type to go on with this run: the same command line, and its name."""
        args = [str(arg) for arg in self._config.invocation_params.args]
        kept = [arg for arg in args if not arg.startswith("--simpleqa-resume=")]
        if "--simpleqa-resume" in kept:
            place = kept.index("--simpleqa-resume")
            del kept[place : place + 2]
        return shlex.join(["pytest", *kept, f"--simpleqa-resume={self.run_dir.name}"])

    def pytest_unconfigure(self) -> None:
        self._restore_sigterm()
        if self._hold is not None:
            self._hold.release()
        if self._plan.options.out_stdout and self._report is not None:
            sys.stdout.write(report_text(self._report))
            sys.stdout.flush()

    def _build(self, exit_status: int) -> Report:
        options, plan = self._plan.options, self._plan
        answer, judge = self._describe()
        return build_report(
            dataset=plan.name,
            model=options.answer_llm or "",
            judge=options.judge_llm or "",
            started_at=self._started_at,
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
                "versions": _versions(),
            },
            resumed=self.resumed,
            other_parse=_strict if options.paper else parse_paper,
            exit_status=exit_status,
        )

    def _exit_status(self, session: pytest.Session) -> int:
        """Return the session's exit status: pytest's own, but for how xdist tells of an early end."""
        status = int(session.exitstatus)
        if self._interrupt == "user":
            return int(pytest.ExitCode.INTERRUPTED) if status == pytest.ExitCode.OK else status
        if self._interrupt == "xdist" and status == pytest.ExitCode.INTERRUPTED:
            return int(pytest.ExitCode.TESTS_FAILED)
        return status

    def _recover(self) -> None:
        """Count what was finished ahead of a stop: it stands in the run log though no item reported it."""
        if len(self.results) >= self._selected:
            return
        rows = self._read_rows()
        for _, ask in self._plan.asks():
            if ask.key not in self.results and (row := rows.get(ask.key)) is not None:
                result = row.result(*ask)
                if result is not None:
                    self.results[ask.key] = result

    def _read_rows(self) -> Mapping[Key, Row]:
        """Return what stands in the run log; warn of each line that a kill has torn, once."""
        rows, torn = read_rows(results_files(self.run_dir))
        for line in (line for line in torn if line not in self._torn):
            self._torn.add(line)
            self._warn(line)
        return rows

    def _in_order(self) -> Iterator[QuestionResult]:
        return (self.results[ask.key] for _, ask in self._plan.asks() if ask.key in self.results)

    # --- small parts -----------------------------------------------------------------------

    @cached_property
    def _ask_of(self) -> Mapping[str, Ask]:
        """What each node id asks: a row is never recovered by taking a node id apart."""
        return {self._plan.node_id(name): ask for name, ask in self._plan.asks()}

    @property
    def _terminal(self) -> pytest.TerminalReporter | None:
        plugin: pytest.TerminalReporter | None = self._config.pluginmanager.getplugin("terminalreporter")
        return plugin

    @property
    def _width(self) -> int:
        return max(40, self._terminal._tw.fullwidth) if self._terminal else 80

    def _say(self, line: str, least_verbosity: int, **markup: bool) -> None:
        reporter = self._terminal
        if reporter is not None and self._config.get_verbosity() >= least_verbosity:
            reporter.ensure_newline()
            if reporter._tw.width_of_current_line:  # letters that came from xdist: to the above they are no line
                reporter.line("")
            reporter.write_line(line, **markup)

    def _seed_categories(self) -> None:
        """Let pytest's last line name our categories in our order."""
        if self._terminal is not None:
            for _, word, _ in WORDS.values():
                self._terminal.stats.setdefault(word, [])

    def _tell(self, event: Event) -> None:
        try:
            self._config.hook.pytest_simpleqa_event(event=event)
        except Exception as error:  # a chat that is down must not cost the run
            self._warn(f"pytest_simpleqa_event failed at {event.kind}: {type(error).__name__}: {error}")

    def _warn(self, message: str) -> None:
        if self._terminal is not None:
            self._say(f"warning: {message}", least_verbosity=-1, yellow=True)
        else:
            with contextlib.suppress(SimpleQAWarning):
                warnings.warn(message, SimpleQAWarning, stacklevel=2)

    def _is_remote(self, report: pytest.TestReport) -> bool:
        node = getattr(report, "node", None)
        return node is not None and not node.gateway.spec.popen

    def _keep(self, result: QuestionResult) -> None:
        """Write a row that no local worker has written into the controller's own file."""
        ask = next(ask for _, ask in self._plan.asks() if ask.key == (result.id, result.repeat))
        try:
            self._log = self._log or RunLog(self.run_dir / "results.jsonl")
            self._log.whole(ask.question, result)
        except RunError as error:  # the row is in the Report all the same
            self._warn(str(error))

    def _drop_empty_run_dir(self) -> None:
        if self._run_dir is not None and not any(path.stat().st_size for path in results_files(self._run_dir)):
            shutil.rmtree(self._run_dir, ignore_errors=True)

    def _run_json(self) -> dict[str, Any]:
        options, plan = self._plan.options, self._plan
        answer, judge = self._describe()
        return {
            "v": 1,
            "dataset": {"name": plan.name, "sha256": plan.dataset.sha256, "questions": len(plan.dataset)},
            "answer": {"spec": options.answer_llm, **answer},
            "judge": {"spec": options.judge_llm, **judge},
            "answer_prompt": {"text": options.answer_prompt.text, "sha256": options.answer_prompt.sha256},
            "grade_prompt": {"text": options.grade_prompt.text, "sha256": options.grade_prompt.sha256},
            "options": options.options_json,
            "versions": _versions(),
            "started_at": self._started_at.isoformat(timespec="seconds"),
        }

    def _watch_sigterm(self) -> None:
        """Let SIGTERM end the session as Ctrl-C does, with its Report."""
        if self._old_handler is not None or os.name != "posix":
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            raise KeyboardInterrupt("SIGTERM")

        with contextlib.suppress(ValueError):  # not in the main thread
            self._old_handler = signal.signal(signal.SIGTERM, interrupt)

    def _restore_sigterm(self) -> None:
        if self._old_handler is not None:
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, self._old_handler)
            self._old_handler = None


def _strict(reply: str) -> Verdict | None:
    return parse_verdict(reply).verdict


def _model_word(spec: str) -> str:
    """Return what a run directory is named after: a spec, with no more than the name of a file in it."""
    return "-".join(filter(None, (spec.partition(":")[0], Path(spec.partition(":")[2]).name)))


def _versions() -> dict[str, str]:
    return {
        "pytest_simpleqa": version("pytest-simpleqa"),
        "pytest": pytest.__version__,
        "python": platform.python_version(),
    }


def _relative(path: Path) -> str:
    """Return `path` as the user would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
