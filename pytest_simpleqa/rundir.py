"""The run's directory as this session has it: made or gone on with, held, written to, and read back at the end."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from . import resume
from .errors import RunError
from .plan import Plan
from .records import QuestionResult
from .rundisk import Hold, create_run_dir, read_run_json, results_files, write_run_json
from .runlog import Key, Row, RunLog, read_rows
from .stage import Ask

Described = tuple[Mapping[str, Any], Mapping[str, Any]]
"""What the Report says of the answer model and of the judge."""


class RunDir:
    """One run's directory, from its first moment to its last.

    `warn` hears of what costs no row. `session` names the session, whose runs are resumed together; `alone` says that
    it was to hold this one and no other.
    """

    def __init__(
        self,
        plan: Plan,
        describe: Callable[[], Described],
        warn: Callable[[str], None],
        session: str = "",
        *,
        alone: bool = True,
    ) -> None:
        self._plan = plan
        self._describe = describe
        self._warn = warn
        self._session = session
        self._alone = alone
        self._path: Path | None = None
        self._hold: Hold | None = None
        self._log: RunLog | None = None
        self._torn: set[str] = set()
        self.started_at = datetime.now(UTC)
        self.resumed = 0
        """How often the run has been resumed, this session included."""

    @property
    def is_open(self) -> bool:
        """Whether there is a directory."""
        return self._path is not None

    @property
    def path(self) -> Path:
        """The directory, made when it is first needed. Raises pytest.UsageError where it cannot be."""
        if self._path is None:
            try:
                self._path = self._go_on() or self._create()
            except RunError as error:
                raise pytest.UsageError(str(error)) from None
        return self._path

    def keep(self, ask: Ask, result: QuestionResult) -> None:
        """Write a row that no local worker has written into the controller's own file."""
        try:
            self._log = self._log or RunLog(self.path / "results.jsonl")
            self._log.whole(ask.question, result)
        except RunError as error:  # the row is in the Report all the same
            self._warn(str(error))

    def read_rows(self) -> Mapping[Key, Row]:
        """Return what stands in the run log; warn of each line that a kill has torn, once."""
        rows, torn = read_rows(results_files(self.path))
        for line in (line for line in torn if line not in self._torn):
            self._torn.add(line)
            self._warn(line)
        return rows

    def finished(self, asks: Iterable[Ask]) -> dict[Key, QuestionResult]:
        """Return the results of `asks` that stand in the run log."""
        rows = self.read_rows()
        found = (
            (ask.key, row.result(ask.question, ask.repeat)) for ask in asks if (row := rows.get(ask.key)) is not None
        )
        return {key: result for key, result in found if result is not None}

    def close(self) -> None:
        """Let go of the directory; where nothing was asked, take it away."""
        if self._log is not None:
            self._log.close()
        if self._hold is not None:
            self._hold.release()
        if self._path is not None and not self._holds_anything(self._path):
            shutil.rmtree(self._path, ignore_errors=True)

    @staticmethod
    def _holds_anything(path: Path) -> bool:
        return (path / "report.json").exists() or any(file.stat().st_size for file in results_files(path))

    @cached_property
    def content(self) -> dict[str, Any]:
        """What `run.json` holds of this session: what is asked, and of whom; no secrets."""
        options, plan = self._plan.options, self._plan
        answer, judge = self._describe()
        return {
            "v": 1,
            "run": plan.name,
            "run_id": uuid4().hex,
            **({"session": self._session} if self._session else {}),
            "dataset": {
                "name": plan.dataset.name,
                "sha256": plan.dataset.sha256,
                "questions": len(plan.dataset),
                **plan.provenance,
            },
            "answer": {"spec": options.answer_llm, **answer},
            "judge": {"spec": plan.judge_spec(judge), **judge},
            "answer_prompt": {"text": options.answer_prompt.text, "sha256": options.answer_prompt.sha256},
            "grade_prompt": {"text": options.grade_prompt.text, "sha256": options.grade_prompt.sha256},
            "options": options.options_json,
            "typed": list(options.typed),
            "versions": versions(),
            "started_at": self.started_at.isoformat(timespec="seconds"),
        }

    def _create(self) -> Path:
        options = self._plan.options
        now = datetime.now().astimezone()
        run_dir = create_run_dir(options.run_dir, self._plan.name, _model_word(options.answer_llm or ""), now)
        self._hold = resume.hold(run_dir)
        write_run_json(run_dir, self.content)
        return run_dir

    def _go_on(self) -> Path | None:
        """Return the run that --simpleqa-resume names, checked and free; None where a new one is to be made."""
        options = self._plan.options
        if options.resume is None:
            return None
        run_dir = resume.find_run(
            options.resume, options.run_dir, options.invocation_dir, self.content, alone=self._alone
        )
        if run_dir is None:
            return None
        resume.require_same(run_dir, self.content)
        self._hold = resume.hold(run_dir)
        old = read_run_json(run_dir)  # not sooner: another session may have gone on with it meanwhile
        self.resumed = int(old.get("resumed", 0)) + 1
        session = {"session": self._session, "earlier_session": old.get("session")} if self._session else {}
        write_run_json(run_dir, {**old, **session, "typed": self.content["typed"], "resumed": self.resumed})
        return run_dir


def versions() -> dict[str, str]:
    """Return the versions that the Report's provenance names."""
    return {
        "pytest_simpleqa": version("pytest-simpleqa"),
        "pytest": pytest.__version__,
        "python": platform.python_version(),
    }


def _model_word(spec: str) -> str:
    """Return what a run directory is named after: a spec, with no more than the name of a file in it."""
    return "-".join(filter(None, (spec.partition(":")[0], Path(spec.partition(":")[2]).name)))
