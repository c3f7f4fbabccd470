"""One run as the process that reports knows it: its results so far, and the Report that they come to."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from . import wording
from .cast import Cast
from .errors import RunError
from .gates import Gates
from .metrics import Counts
from .plan import Plan
from .records import QuestionResult
from .report import Report
from .reportbuild import build_report
from .rundir import RunDir, versions
from .runlog import Key
from .stage import Ask


class Steps:
    """Tells when another step of so many percent is done."""

    def __init__(self, percent: float) -> None:
        self._percent = percent
        self._next = percent

    def reached(self, done: int, total: int) -> bool:
        """Tell whether a step has been completed since the last one that was told."""
        if not self._percent or not total or 100 * done < self._next * total:
            return False
        self._next = self._percent * (math.floor(100 * done / total / self._percent) + 1)
        return True


class Ledger:
    """One run's results; `warn` hears of what costs no row."""

    def __init__(
        self,
        plan: Plan,
        cast: Cast,
        gates: Gates,
        warn: Callable[[str], None],
        session: str = "",
        *,
        alone: bool = True,
    ) -> None:
        self.plan = plan
        self._warn = warn
        self.cast = cast
        self.gates = gates
        self.run_dir = RunDir(plan, cast.describe, warn, session, alone=alone)
        self.results: dict[Key, QuestionResult] = {}
        self._selected: set[Key] = set()
        self.passed_by: set[Key] = set()
        """Rows whose items have run and recorded nothing: what else stands in the run log of them does not count.

        That may be what was asked ahead for a test that skips, or the verdict of an earlier session.
        """
        self.verdicts: list[str] = []
        """What came of the gates that apply: `pass`, `fail`, `undecided`."""
        self.report: Report | None = None
        self._statuses: Counter[str] = Counter()
        self.calls = 0
        """The least number of calls that the selected rows take; of a test's run the most, as a rule."""
        self.known = 0
        """Selected rows that an earlier session has finished."""
        self.ahead = 0
        """Results of rows that pytest has not reached: finished in an earlier session, or ahead of a stop."""
        self.began = time.monotonic()
        self._ended: float | None = None
        """When the last of a test function's results came."""
        self._steps = Steps(plan.options.progress_pct)

    @property
    def selected(self) -> int:
        """How many rows pytest has selected."""
        return len(self._selected)

    @property
    def specs(self) -> tuple[str, str]:
        """How the user has named the answer model and the judge; an eval that grades by itself names its own rule."""
        judge = self.cast.judge
        named = self.plan.judge_spec(judge.describe() if judge is not None else {})
        return self.plan.options.answer_llm or "", named or ""

    @cached_property
    def ask_by_key(self) -> Mapping[Key, Ask]:
        """What each row asks."""
        return {ask.key: ask for _, ask in self.plan.asks()}

    def begin(self, selected: Sequence[Key]) -> None:
        """Take in which rows pytest has selected; before any of them is asked."""
        self._selected = set(selected)
        self.began = time.monotonic()
        is_resumed = selected and self.run_dir.is_open and self.run_dir.resumed
        rows = self.run_dir.read_rows() if is_resumed else {}  # also tells of torn lines before anything is asked
        mine = {key: rows[key] for key in selected if key in rows}
        finished = {key for key, row in mine.items() if row.verdict is not None}
        self.known = len(finished)
        # A test of the user's may bring another answer to grade this time.
        unfinished = selected if self.plan.in_tests else [key for key in selected if key not in finished]
        answered = [key for key in unfinished if key in mine and mine[key].reply() is not None]
        self.calls = self.cast.calls_for(unfinished, answered)

    def notices(self) -> Iterator[str]:
        """Yield what the user should know before the first request."""
        answer, judge = self.specs
        if answer == judge and self.cast.calls_per_question >= 2:
            yield f"{answer} judges its own answers"
        yield from self.cast.notices
        yield from self.gates.notices

    def take(self, result: QuestionResult, *, is_kept: bool) -> bool:
        """Enter a result, writing down what no process here has; tell whether a progress line is due."""
        key = result.id, result.repeat
        if not is_kept:
            self.run_dir.keep(self.ask_by_key[key], result)
        if self.plan.in_tests:  # other tests stand around its own: they are no time of this run
            self._ended = time.monotonic()
            self.began = self.began if self.results else self._ended - (result.latency_s or 0.0)
        self._selected.add(key)  # it is there already, unless somebody has added an item since
        if key in self.results:  # a test that was run again, or that graded two answers: the last one counts
            self._statuses[self.results[key].status] -= 1
        self.results[key] = result
        self._statuses[result.status] += 1
        return self._steps.reached(len(self.results), self.selected)

    @property
    def counts(self) -> Counts:
        """The results so far."""
        return Counts.from_statuses(self._statuses.elements())

    @property
    def is_empty(self) -> bool:
        """Whether no row was selected, reached or finished; of tests none counts that has not graded."""
        counts = self.results if self.plan.in_tests else self.results or self.selected
        return not self.run_dir.is_open or not counts

    def close(self, reasons: Sequence[str]) -> None:
        """Build the Report and decide the gates; `reasons` are causes to leave them undecided."""
        if self.run_dir.is_open and len(self.results) < self.selected:
            # What was finished ahead of a stop stands in the run log, beside what this session has left out.
            lacking = self._selected - self.results.keys() - self.passed_by
            found = self.run_dir.finished(ask for key, ask in self.ask_by_key.items() if key in lacking)
            self.results.update(found)
            self.ahead = len(found)
        if not self.is_empty:
            self.report = self._decided(self._build(), reasons)

    def in_order(self) -> Iterator[QuestionResult]:
        """Yield the results in dataset order."""
        return (self.results[key] for key in self.ask_by_key if key in self.results)

    def _build(self) -> Report:
        from .judges.parse import other_rule  # not before: its patterns take a while to compile

        options, plan = self.plan.options, self.plan
        answer, judge = self.cast.describe()
        return build_report(
            name=plan.name,
            dataset=plan.dataset.name,
            model=self.specs[0],
            judge=self.specs[1],
            started_at=self.run_dir.started_at,
            duration_s=(self._ended or time.monotonic()) - self.began,
            population=plan.dataset.questions,
            results=self.results,
            selected=self.selected,
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
                **plan.provenance,
            },
            resumed=self.run_dir.resumed,
            other_parse=None if plan.source else other_rule(paper=options.paper),
            metrics=self._metrics(),
        )

    def _metrics(self) -> Mapping[str, Any] | None:
        """Return what an eval makes of its results; where the user's code fails at it, that costs no row."""
        if self.cast.metrics is None:
            return None
        try:
            return self.cast.metrics(list(self.in_order()))
        except RunError as error:
            self._warn(str(error))
            return None

    def _decided(self, report: Report, reasons: Sequence[str]) -> Report:
        if not self.gates:
            return report
        from .pairing import rows_of

        rows = rows_of(self.plan.dataset.questions, self.results, self.plan.options.repeats)
        report = replace(report, comparison=self.gates.compare(rows))
        if not self.gates.expressions:
            return report
        decided = self.gates.decide(report, rows, reasons)
        self.verdicts = [gate.verdict for gate in decided]
        return replace(report, gates=tuple(gate.to_json() for gate in decided))


def announcement(ledgers: Sequence[Ledger]) -> str:
    """Return the line that stands before the first request of one run or of many."""
    specs = [ledger.specs for ledger in ledgers]
    judges = ", ".join(dict.fromkeys(judge for _, judge in specs))
    selected = sum(ledger.selected for ledger in ledgers)
    calls, in_tests = (
        sum(ledger.calls for ledger in ledgers if ledger.plan.in_tests is in_tests) for in_tests in (False, True)
    )
    known = sum(ledger.known for ledger in ledgers)
    return wording.announcement(selected, specs[0][0], judges, calls, in_tests, known)


def progress_line(ledgers: Sequence[Ledger], *, in_flight: int, width: int) -> str:
    """Return how far runs are together; `in_flight` is 0 where no service has slowed them down."""
    return wording.progress_line(
        sum(len(ledger.results) for ledger in ledgers),
        sum(ledger.selected for ledger in ledgers),
        sum((ledger.counts for ledger in ledgers), Counts()),
        elapsed_s=time.monotonic() - min(ledger.began for ledger in ledgers),
        resumed=sum(min(len(ledger.results), ledger.known) for ledger in ledgers),
        in_flight=in_flight,
        width=width,
    )
