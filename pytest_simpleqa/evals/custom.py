"""Evals in code of the user's, sample by sample: a class as OpenAI Evals has them, or one function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..errors import ModelError, SpecError
from ..models.protocol import Model
from ..records import Judgement, Question, QuestionResult, Reply, Verdict
from .codeclass import CodeClass
from .codefunction import CodeFunction
from .data import Samples, eval_dataset
from .protocol import Building, Eval
from .recorder import Event, plain
from .registry import EvalSpec
from .sitting import Kept, Sitting, sample_id, shown
from .standin import load_class

_PROMPT_KEYS = ("input", "problem", "question", "prompt", "query", "text")
_IDEAL_KEYS = ("ideal", "answer", "target", "expected", "label", "gold")
"""Where a sample has its prompt and its ideal, for people to read; the first that is there."""


class Code(Protocol):
    """The user's code, as the answerer sees it."""

    samples: Samples

    async def sit(self, sitting: Sitting, index: int) -> Any:
        """Run the code on the sample of that index; return what it returns."""
        ...

    def figures(self, results: Sequence[QuestionResult]) -> dict[str, float | int | None]:
        """Return what the results add up to; raises RunError."""
        ...

    def close(self) -> None: ...


def make(spec: EvalSpec, args: Mapping[str, Any], samples: Samples, around: Building) -> Eval:
    """Make an eval of what `class:` names: a class with `eval_sample` and `run`, or a function of a sample.

    Raises SpecError where it cannot be imported or made, in one line.
    """
    target = load_class(spec.class_path, (around.base, spec.registry_dir))
    code: Code
    if inspect.isclass(target):
        code = CodeClass(spec, target, args, around)
    elif callable(target):
        code = CodeFunction(spec, target, args, samples, around)
    else:
        raise SpecError(
            f"{spec.name}: class {spec.class_path} is {type(target).__name__}; wanted a class or a function"
        )
    kept = code.samples.first(around.limit) if around.limit else code.samples
    answerer = CodeAnswerer(spec, args, code, around)
    questions = eval_dataset(spec.name, kept, _texts)
    return Eval(spec.name, questions, answerer, CodeJudge(answerer), code.figures, grades_any_answer=False)


class CodeAnswerer:
    """Runs the user's code on one sample; what it recorded travels in the reply's `extra`."""

    asks_by_itself = True
    """Nobody else can change what is asked."""

    def __init__(self, spec: EvalSpec, args: Mapping[str, Any], code: Code, around: Building) -> None:
        self.models = around.models
        bounds = [model.max_in_flight for model in self.models if model.max_in_flight is not None]
        self.max_in_flight = min(bounds, default=None)
        self.is_service = any(model.is_service for model in self.models)
        self.found: dict[tuple[str, int], tuple[Sequence[Event], Any]] = {}
        """What came of the samples that the judge has not seen yet: events, and what the code returned."""
        self._spec = spec
        self._about = {"class": spec.class_path, "args": plain(args), "seed": around.seed}
        self._code = code
        self._seed = around.seed
        self._kept: dict[tuple[str, int], Kept] = {}

    async def answer(self, question: Question, repeat: int) -> Reply:
        """Return what was said last; raises ModelError, also for whatever the code raises."""
        key, index = (question.id, repeat), int(question.id) - 1
        kept = self._kept.setdefault(key, [])
        sitting = Sitting(sample_id(self._spec.name, index), self._seed, question, repeat, kept)
        try:
            returned = await self._code.sit(sitting, index)
        except ModelError as error:
            raise _with_calls(sitting.fault or error, sitting) from error
        finally:
            sitting.end()
        if sitting.fault is not None:  # the code went on without what a service failed to give
            raise _with_calls(sitting.fault, sitting)
        del self._kept[key]
        self.found[key] = (sitting.recorder.events, returned)
        judged = isinstance(returned, Judgement)
        text = _predicted(sitting.recorder.events, None if judged else returned)
        return sitting.reply(text, None if judged else returned, (returned.extra or {}) if judged else {})

    async def close(self) -> None:
        self._code.close()
        for model in {id(model): model for model in self.models}.values():
            await model.close()

    def describe(self) -> Mapping[str, Any]:
        """Return what the model says of itself, with the code that asks it."""
        told = [dict(model.describe()) for model in self.models]
        return {**(told[0] if told else {}), **self._about, **({"models": told} if told[1:] else {})}


def _with_calls(error: ModelError, sitting: Sitting) -> ModelError:
    error.calls = sitting.new_calls
    return error


class CodeJudge:
    """Gives the verdict that the user's code recorded."""

    model: Model | None = None

    def __init__(self, answerer: CodeAnswerer) -> None:
        self._answerer = answerer

    async def judge(self, question: Question, predicted: str, complete: Any, repeat: int = 1) -> Judgement:
        """Return correct where all matches are, recorded where there is none to be right or wrong by."""
        found = self._answerer.found
        if (question.id, repeat) not in found:  # a kill has come between answer and verdict: both once more
            await self._answerer.answer(question, repeat)
        events, returned = found.pop((question.id, repeat))
        if isinstance(returned, Judgement):
            return returned
        matches = [bool(event.data["correct"]) for event in events if event.type == "match"]
        if not matches:
            return Judgement(Verdict.RECORDED)
        return Judgement(Verdict.CORRECT if all(matches) else Verdict.INCORRECT)

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "evals", "model": self._answerer.describe()["class"], "base_url_host": None, "params": {}}


def _predicted(events: Sequence[Event], returned: Any) -> str:
    """Return what stands as the answer: what was said, else picked, else whatever was recorded."""
    said = [text for event in events for text in _said(event)]
    if said:
        picked = next((event.data["picked"] for event in events if event.type == "match" and event.data["picked"]), "")
        return said[-1] if said[-1].strip() else shown(picked)
    return shown(events[-1].data) if events else shown("(nothing was asked)" if returned is None else returned)


def _said(event: Event) -> list[str]:
    sampled = event.data.get("sampled") if isinstance(event.data, Mapping) else None
    return [text for text in (sampled if isinstance(sampled, list) else [sampled]) if isinstance(text, str)]


def _texts(sample: Mapping[str, Any]) -> tuple[str, str]:
    """Return what people read as the question and the gold."""
    problem = next((sample[key] for key in _PROMPT_KEYS if sample.get(key)), sample)
    ideal = next((sample[key] for key in _IDEAL_KEYS if sample.get(key) not in (None, "", [])), "")
    ideals = ideal if isinstance(ideal, list) else [ideal]
    return shown(problem), " | ".join(shown(each) for each in ideals).strip()
