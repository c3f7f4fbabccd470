"""Who answers and who judges in one run, and what follows from it: bounds, calls, local servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import OptionError
from .judges.judge import ModelJudge
from .judges.protocol import Judge
from .judges.sentinels import SentinelJudge
from .judges.spec import resolve_judge
from .models.callables import callable_model
from .models.protocol import Answerer, Model
from .models.replay import ReplayAnswerer
from .models.spec import LocalModel, Params, PromptAnswerer, Surroundings, resolve_answerer
from .models.stated import stating
from .models.wrapping import unwrapped, wrapped
from .prompts import Template
from .records import QuestionResult
from .runlog import Key


@dataclass(frozen=True)
class Cast:
    """Who answers and who judges; resolved before anything is asked, to see that they can be."""

    answerer: Answerer | None = None
    judge: Judge | None = None
    """Both None under --collect-only."""
    metrics: Callable[[Sequence[QuestionResult]], Mapping[str, Any]] | None = None
    """What an eval of a registry makes of its results; None for a dataset."""

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
        return _least_calls(self.answerer) + _least_calls(self.judge.model if self.judge else None)

    def calls_for(self, rows: Collection[Key], answered: Collection[Key] = ()) -> int:
        """Return the least number of calls that these rows take, those for the judge's sentinels included.

        The `answered` ones of them are only judged.
        """
        calls = self.calls_per_question * len(rows) - _least_calls(self.answerer) * len(answered)
        judge = self.judge
        if isinstance(judge, SentinelJudge) and judge.model is not None and judge.model.is_service:
            calls += sum(key in judge.sentinels for key in rows)
        return calls

    @property
    def local_paths(self) -> tuple[Path, ...]:
        """The model files that the embedded server is to serve."""
        askers = (unwrapped(self.answerer), self.judge)
        return tuple(
            {model.path: None for asker in askers for model in _models_of(asker) if isinstance(model, LocalModel)}
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know before the run begins: torn lines of a recording."""
        inner = unwrapped(self.answerer)
        return tuple(inner.recording.warnings) if isinstance(inner, ReplayAnswerer) else ()

    def describe(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return what run.json and the Report say of both; no secrets."""
        return (
            self.answerer.describe() if self.answerer else {},
            self.judge.describe() if self.judge else {},
        )


def _least_calls(asker: Answerer | Model | None) -> int:
    """Return how many requests to a service one asking takes at least: more where `calls_each` says so."""
    if asker is None or not asker.is_service:
        return 0
    counted = asker if hasattr(asker, "calls_each") else getattr(asker, "model", None)
    return int(getattr(counted, "calls_each", 1))


def _models_of(asker: object) -> Iterator[Model]:
    """Yield the models that an answerer, a judge or a model puts prompts to, and those that they do."""
    several = getattr(asker, "models", None)
    for model in (getattr(asker, "model", None), *(several if isinstance(several, tuple) else ())):
        if isinstance(model, Model):
            yield model
            yield from _models_of(model)


@dataclass(frozen=True)
class Casting:
    """Makes an answerer and a judge of what a script gave."""

    around: Surroundings
    threads: int
    """As many plain calls at once as pairs may be in flight."""
    home: asyncio.AbstractEventLoop | None
    """The loop that async callables belong to; None where they have none yet."""

    def answerer(self, given: Any, params: Params, template: Template, wrappers: Sequence[Any] = ()) -> Answerer:
        """Return what answers: a spec, an answerer, a model or a callable, in its wrappers. Raises SimpleQAError."""
        inner = self._unwrapped(given, params, template)
        return stating(wrapped(inner, wrappers, template, "wrap holds"), template)

    def judge(self, given: Any, params: Params, template: Template, parse: str) -> Judge:
        """Return what judges: a spec, a judge, a judge model or a callable. Raises SimpleQAError."""
        paper = parse == "paper"
        if isinstance(given, str):
            return resolve_judge(given, params, template, self.around, paper=paper)
        if isinstance(given, Judge):
            return given
        return ModelJudge(self._model("judge", given, params), template, paper=paper)

    def _unwrapped(self, given: Any, params: Params, template: Template) -> Answerer:
        if isinstance(given, str):
            return resolve_answerer(given, params, template, self.around)
        if not isinstance(given, Answerer):
            return PromptAnswerer(self._model("answer", given, params), template)
        if template.asks_confidence:
            raise OptionError(f"ask_confidence: {type(given).__name__} is sent no prompt that asks; wanted a model")
        return given

    def _model(self, role: str, given: Any, params: Params) -> Model:
        if isinstance(given, Model):
            return given
        if not callable(given):
            raise OptionError(f"{role}={given!r}: wanted a spec, a model object or a callable (prompt) -> str")
        name = f"{given.__module__}:{getattr(given, '__qualname__', type(given).__qualname__)}"
        return callable_model(name, given, params, self.threads, self.home)
