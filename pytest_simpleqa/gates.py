"""The gates of one session: what the run must reach, and what it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from .baseline import Baseline, read_baseline
from .comparison import compare
from .decision import GateResult, decide_all
from .errors import OptionError
from .gate import Gate, parse_gate
from .pairing import ComparedRow
from .report import Report


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
        gates = tuple(parse_gate(text) for text in texts)
        needing = next((gate for gate in gates if gate.against_baseline), None)
        if needing is not None and baseline is None:
            raise OptionError(f"--simpleqa-gate {needing.text!r}: there is no baseline; add --simpleqa-baseline=FILE")
        return cls(gates, None if baseline is None else read_baseline(baseline), max_failures)

    def decide(self, report: Report, rows: Sequence[ComparedRow], reasons: Sequence[str]) -> list[GateResult]:
        """Decide the gates that apply to a run; `reasons` are further causes to leave them undecided."""
        return decide_all(
            self.expressions,
            report,
            rows,
            baseline=self.baseline,
            max_failures=self.max_failures,
            reasons=reasons,
        )

    def compare(self, report: Report, rows: Sequence[ComparedRow]) -> dict[str, Any] | None:
        """Return what stands in `Report.comparison`; None without a baseline."""
        return None if self.baseline is None else compare(rows, self.baseline).to_json()
