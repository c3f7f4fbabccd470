"""An eval that is one function of the user's: from a sample to what came of it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError, RunStopped, SpecError
from ..models.importing import error_line, where
from ..models.protocol import Model
from ..records import Judgement, QuestionResult, Verdict
from .data import Samples
from .protocol import Building
from .registry import EvalSpec
from .sitting import Sitting
from .standin import standing_in


@dataclass(frozen=True)
class Asker:
    """The model as a function of the user's gets it: `await model(prompt, temperature=0)` gives the text."""

    sitting: Sitting
    model: Model

    async def __call__(self, prompt: Any, **params: Any) -> str:
        """Return the reply's text to a prompt, text or chat messages; raises ModelError."""
        reply = await self.sitting.ask(self.model, prompt, params)
        self.sitting.recorder.record_sampling(prompt, [reply.text], self.sitting.sample_id, model=reply.model)
        return reply.text


class CodeFunction:
    """An async function `(sample, model, **args)` that returns what came of the sample.

    True or False is correct or incorrect, a number a score, a mapping several numbers by name, a Verdict itself,
    and a Judgement stands as it is.
    """

    def __init__(
        self, spec: EvalSpec, target: Callable[..., Any], args: Mapping[str, Any], samples: Samples, around: Building
    ) -> None:
        if not inspect.iscoroutinefunction(target):
            raise SpecError(
                f"{spec.name}: {spec.class_path} is no async function; wanted async def check(sample, model)"
            )
        if not samples:
            raise SpecError(f"{spec.name}: its args name no samples_jsonl, the samples for {spec.class_path}")
        if not around.models:
            raise SpecError(f"{spec.name}: {spec.class_path} has no model to ask")
        self.samples = samples
        self._target = target
        self._args = {key: value for key, value in args.items() if key != "samples_jsonl"}
        self._models = around.models
        self._name = spec.name
        try:
            inspect.signature(target).bind({}, None, **self._args)
        except TypeError as error:
            raise SpecError(f"{spec.name}: {spec.class_path} cannot be called with (sample, model): {error}") from None

    async def sit(self, sitting: Sitting, index: int) -> Any:
        askers = [Asker(sitting, model) for model in self._models]
        try:
            with standing_in():
                returned = await self._target(self.samples[index], askers[0], **self._args)
        except (ModelError, RunStopped):
            raise
        except Exception as error:
            raise ModelError("exception", f"{error_line(error)}{where(error)}") from error
        if isinstance(returned, Judgement | Verdict):
            return returned if isinstance(returned, Judgement) else Judgement(returned)
        _record(sitting, returned)
        return None

    def figures(self, results: Sequence[QuestionResult]) -> dict[str, float | int | None]:
        """Return the accuracy over right and wrong, and the mean of every number that was returned."""
        judged = [result.verdict is Verdict.CORRECT for result in results if result.verdict in _RIGHT_OR_WRONG]
        values: dict[str, list[float]] = {"accuracy": [float(correct) for correct in judged]} if judged else {}
        for result in results:
            for event in (result.extra or {}).get("events", ()):
                for key, value in event["data"].items() if event["type"] == "metrics" else ():
                    values.setdefault(key, []).append(value)
        return {key: math.fsum(each) / len(each) for key, each in values.items()}

    def close(self) -> None: ...


_RIGHT_OR_WRONG = (Verdict.CORRECT, Verdict.INCORRECT)


def _record(sitting: Sitting, returned: Any) -> None:
    """Record what a function returned, as an eval in a class would have."""
    recorder, sample = sitting.recorder, sitting.sample_id
    if isinstance(returned, bool):
        recorder.record_match(returned, sample_id=sample)
    elif _is_number(returned):
        recorder.record_event("metrics", {"score": returned}, sample)
    elif isinstance(returned, Mapping) and all(map(_is_number, returned.values())):
        recorder.record_event("metrics", dict(returned), sample)
    else:
        wanted = "True or False, a number, a mapping of numbers, a Verdict or a Judgement"
        raise ModelError("exception", f"the eval's function returned {type(returned).__name__}; wanted {wanted}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
