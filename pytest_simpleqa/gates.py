"""The gates of one session: what the run must reach, and what it is compared with."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .errors import OptionError
from .records import Question
from .report import UNSPECIFIED, Report

if TYPE_CHECKING:  # a session without gates loads nothing of them
    from .baseline import Baseline
    from .decision import GateResult
    from .gate import Gate
    from .pairing import ComparedRow


@dataclass(frozen=True)
class Gates:
    """Gates and the baseline, read before anything is asked."""

    expressions: tuple[Gate, ...]
    baseline: Baseline | None
    max_failures: float
    """Share of failed rows above which no gate is decided."""

    @classmethod
    def of(cls, texts: Sequence[str], baseline: Path | None, max_failures: float) -> Self:
        """Parse the gates and read the baseline. Raises SimpleQAError in one line."""
        if not texts and baseline is None:
            return cls((), None, max_failures)
        from .baseline import read_baseline
        from .gate import parse_gate

        gates = tuple(parse_gate(text) for text in texts)
        needing = next((gate for gate in gates if gate.against_baseline), None)
        if needing is not None and baseline is None:
            raise OptionError(f"--simpleqa-gate {needing.text!r}: there is no baseline; add --simpleqa-baseline=FILE")
        return cls(gates, None if baseline is None else read_baseline(baseline), max_failures)

    def __bool__(self) -> bool:
        return bool(self.expressions) or self.baseline is not None

    def require_runs(self, runs: Mapping[str, Sequence[Question]]) -> None:
        """Raise OptionError where a gate could never be decided on the `runs`, which have these questions, by name.

        That is one on a run that is not there (a node id may be that of a test function, which is not known yet),
        one against another run's baseline, or one on a slice that a run does not have.
        """
        from difflib import get_close_matches

        for gate in self.expressions:
            if gate.run is not None and gate.run not in runs and "::" not in gate.run:
                close = get_close_matches(gate.run, runs, n=1)
                hint = f" (did you mean {close[0]!r}?)" if close else f"; there are {', '.join(runs)}"
                raise OptionError(f"--simpleqa-gate {gate.text!r}: there is no run {gate.run!r}{hint}")
            if gate.run in runs and gate.run is not None and gate not in self.for_run(gate.run, runs).expressions:
                assert self.baseline is not None
                raise OptionError(
                    f"--simpleqa-gate {gate.text!r}: the baseline {self.baseline.name} is the run "
                    f"{self.baseline.owner!r}; only that one is compared with it"
                )
        for name, questions in runs.items():
            self.for_run(name, runs)._require_slices(questions, name if len(runs) > 1 else None)

    def _require_slices(self, questions: Sequence[Question], name: str | None) -> None:
        """Raise OptionError where a gate names a topic or an answer type that no question of the run has."""
        if not any(gate.slice for gate in self.expressions):
            return
        from difflib import get_close_matches

        from .pairing import rows_of

        rows = rows_of(questions, {})
        for gate in self.expressions:
            if gate.slice is not None and not any(gate.holds_row(row) for row in rows):
                known = sorted({gate.slice.name_in(row) for row in rows})
                close = get_close_matches(gate.slice.name, known, n=1)
                kind = gate.slice.kind.replace("_", " ")
                there = f"this dataset has no {kind}s" if known == [UNSPECIFIED] else f"there are {', '.join(known)}"
                hint = f" (did you mean {close[0]!r}?)" if close else f"; {there}"
                where = f" of {name}" if name is not None else ""
                alone = "; type 'NAME: ' before the gate for one run alone" if name is not None and not gate.run else ""
                raise OptionError(
                    f"--simpleqa-gate {gate.text!r}: no question{where} has the {kind} {gate.slice.name!r}{hint}{alone}"
                )

    def for_run(self, name: str, names: Container[str] = ()) -> Gates:
        """Return the gates that apply to the run `name` of a session that holds the runs `names`.

        Those without a prefix, and those with its own. A baseline that was another of these runs is that run's alone.
        """
        baseline = self.baseline
        if baseline is not None and baseline.owner != name and baseline.owner in names:
            baseline = None
        ours = [gate for gate in self.expressions if gate.applies_to(name)]
        if self.baseline is not baseline:
            ours = [gate for gate in ours if not gate.against_baseline]
        return replace(self, expressions=tuple(ours), baseline=baseline)

    def left_open(self, runs: Mapping[str, bool]) -> list[str]:
        """Return a line for each gate that lacks a Report to stand in; `runs` tells by name which have one."""
        reasons = ((gate.text, self._why_open(gate, runs)) for gate in self.expressions)
        return [f"gate {text}: undecided: {why}" for text, why in reasons if why]

    def _why_open(self, gate: Gate, runs: Mapping[str, bool]) -> str | None:
        if gate.run is not None and gate.run not in runs:
            return f"the session holds no run {gate.run}"
        mine = [name for name in runs if gate in self.for_run(name, runs).expressions]
        if gate.run is not None and not mine and self.baseline is not None:
            return f"the baseline is the run {self.baseline.owner}"
        lacking = [name for name in mine if not runs[name]]
        if not lacking:
            return None
        other = next((name for name in mine if runs[name]), None)
        remedy = f"; type '{other}: ' before the gate for that run alone" if other is not None else ""
        return f"no question of {', '.join(lacking)} has a result{remedy}"

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know of the baseline: lines and rows that could not be read."""
        return self.baseline.warnings if self.baseline else ()

    def decide(self, report: Report, rows: Sequence[ComparedRow], reasons: Sequence[str]) -> list[GateResult]:
        """Decide the gates that apply to a run; `reasons` are further causes to leave them undecided."""
        from .decision import decide_all

        return decide_all(
            self.expressions,
            report,
            rows,
            baseline=self.baseline,
            max_failures=self.max_failures,
            reasons=reasons,
        )

    def compare(self, rows: Sequence[ComparedRow]) -> dict[str, Any] | None:
        """Return what stands in `Report.comparison`; None without a baseline."""
        if self.baseline is None:
            return None
        from .comparison import compare

        return compare(rows, self.baseline).to_json()
