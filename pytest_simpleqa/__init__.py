"""Factuality benchmarks as pytest items: every question is a test, a judge model grades every answer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dataset import load_dataset
    from .errors import ModelError, RunStopped, SimpleQAError
    from .judges.parse import parse_verdict
    from .library import RunCutShort, arun, run
    from .prompts import Template
    from .records import Dataset, Judgement, Question, QuestionResult, Reply, Verdict
    from .report import Report, TopicReport
    from .runevents import Event

__all__ = [
    "Dataset",
    "Event",
    "Judgement",
    "ModelError",
    "Question",
    "QuestionResult",
    "Reply",
    "Report",
    "RunCutShort",
    "RunStopped",
    "SimpleQAError",
    "Template",
    "TopicReport",
    "Verdict",
    "arun",
    "load_dataset",
    "parse_verdict",
    "run",
]

_HOMES = {
    "dataset": ("load_dataset",),
    "errors": ("ModelError", "RunStopped", "SimpleQAError"),
    "judges.parse": ("parse_verdict",),
    "library": ("RunCutShort", "arun", "run"),
    "prompts": ("Template",),
    "records": ("Dataset", "Judgement", "Question", "QuestionResult", "Reply", "Verdict"),
    "report": ("Report", "TopicReport"),
    "runevents": ("Event",),
}
"""Where the public names live; loaded at their first use, since every pytest run imports this package."""


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
