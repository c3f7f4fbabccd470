"""What happens in a run, told as events that a chat webhook can post as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from .report import Report


@dataclass(frozen=True, slots=True)
class Event:
    """One thing worth telling: `kind` is `start`, `qa_progress` or `done`."""

    kind: str
    time: str
    """RFC 3339, UTC."""
    title: str
    body: str
    fields: Mapping[str, str]
    """Every value is a string."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def start_event(dataset: str, n_questions: int, answer: str, judge: str) -> Event:
    """Tell that a run begins; fields `dataset, n_qs, answer, judge`."""
    fields = {"dataset": dataset, "n_qs": str(n_questions), "answer": answer, "judge": judge}
    return _event("start", f"{dataset}: {n_questions:,} questions", f"{answer}, judged by {judge}", fields)


def progress_event(dataset: str, done: int, total: int, line: str) -> Event:
    """Tell how far a run is; fields `done, total, pct`."""
    fields = {"done": str(done), "total": str(total), "pct": f"{100 * done // total}"}
    return _event("qa_progress", f"{dataset}: {fields['pct']} %", line, fields)


def done_event(report: Report, line: str) -> Event:
    """Tell how a run ended; fields are the rates as fractions, `judge_failures` and `duration` in seconds."""
    rates = ("accuracy", "attempted_accuracy", "abstention_rate", "hallucination_rate")
    fields = {name: _number(getattr(report, name)) for name in rates}
    fields |= {"judge_failures": str(report.judge_failures), "duration": f"{report.duration_ms / 1000:.1f}"}
    return _event("done", f"{report.name}: done", line, fields)


def _event(kind: str, title: str, body: str, fields: Mapping[str, str]) -> Event:
    return Event(kind, datetime.now(UTC).isoformat(timespec="seconds"), title, body, fields)


def _number(value: float | None) -> str:
    return "null" if value is None else f"{value:.4f}"
