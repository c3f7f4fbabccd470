"""Who answers and who judges in one run, and what follows from it: bounds, calls, local servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .judges.protocol import Judge
from .models.protocol import Answerer
from .models.spec import LocalModel, PromptAnswerer


@dataclass(frozen=True)
class Cast:
    """Who answers and who judges; resolved before anything is asked, to see that they can be."""

    answerer: Answerer | None = None
    judge: Judge | None = None
    """Both None under --collect-only."""

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """The most requests at once to the answer model and to the judge model, in the whole run."""
        judge_model = self.judge.model if self.judge else None
        return (
            self.answerer.max_in_flight if self.answerer else None,
            judge_model.max_in_flight if judge_model else None,
        )

    @property
    def calls_per_question(self) -> int:
        """The least number of calls that a question takes."""
        judge_model = self.judge.model if self.judge else None
        return int(bool(self.answerer and self.answerer.is_service)) + int(bool(judge_model and judge_model.is_service))

    @property
    def local_paths(self) -> tuple[Path, ...]:
        """The model files that the embedded server is to serve."""
        answering = self.answerer.model if isinstance(self.answerer, PromptAnswerer) else None
        models = (answering, self.judge.model if self.judge else None)
        return tuple({model.path: None for model in models if isinstance(model, LocalModel)})

    def describe(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return what run.json and the Report say of both; no secrets."""
        return (
            self.answerer.describe() if self.answerer else {},
            self.judge.describe() if self.judge else {},
        )
