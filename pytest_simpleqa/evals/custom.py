"""Evals in code of the user's, sample by sample: a class as OpenAI Evals has them, or one function."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from ..errors import ModelError, RunError, RunStopped, SimpleQAError, SpecError
from ..models.importing import error_line, where
from ..models.protocol import Model
from ..models.threads import DaemonThreads
from ..records import Judgement, Question, QuestionResult, Reply, Verdict
from . import api
from .data import Samples, eval_dataset, find_data
from .protocol import Building, Eval
from .recorder import Event, Recorder, plain
from .registry import EvalSpec
from .sitting import CompletionFunction, Kept, Sitting, shown
from .standin import load_class

_PROMPT_KEYS = ("input", "problem", "question", "prompt", "query", "text")
_IDEAL_KEYS = ("ideal", "answer", "target", "expected", "label", "gold")
"""Where a sample has its prompt and its ideal, for people to read; the first that is there."""
_MANY = 1 << 16
"""Threads start as they are needed; how many run at once is the engine's business."""

Figures = dict[str, float | int | None]


class Code(Protocol):
    """The user's code, as the answerer sees it."""

    samples: Samples

    async def sit(self, sitting: Sitting, index: int) -> Any:
        """Run the code on the sample of that index; return what it returns."""
        ...

    def figures(self, results: Sequence[QuestionResult]) -> Figures:
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
    return Eval(spec.name, eval_dataset(spec.name, kept, _texts), answerer, CodeJudge(answerer), code.figures)


class CodeAnswerer:
    """Runs the user's code on one sample; what it recorded travels in the reply's `extra`."""

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


# --- a class -------------------------------------------------------------------------------


class _SamplesFound(BaseException):
    """Leaves `run` when it has given its samples; nothing that a user's `except` should catch."""


class CodeClass:
    """A class with `eval_sample(sample, rng)` and `run(recorder)`.

    `run` is called twice: before anything is asked, up to the point where it gives its samples to
    `eval_all_samples`, and after all items, when that returns what `eval_sample` returned of each.
    """

    def __init__(self, spec: EvalSpec, target: type, args: Mapping[str, Any], around: Building) -> None:
        self._spec = spec
        self._threads = DaemonThreads(_MANY)
        self._find = functools.partial(
            find_data, registries=(spec.registry_dir, *around.registry.dirs), base=around.base
        )
        self._raw: Sequence[Any] = ()
        self._eval = self._made(target, args, around)
        self.samples = self._samples()

    async def sit(self, sitting: Sitting, index: int) -> Any:
        def work() -> Any:
            with _reading(self._find):
                return sitting.run(lambda: self._eval.eval_sample(self._raw[index], sitting.rng))

        return await self._threads.run(lambda: _called("eval_sample", work))

    def figures(self, results: Sequence[QuestionResult]) -> Figures:
        """Call `run` with the events of `results`; return the numbers in what it returns."""
        recorder = Recorder(self._spec.name)
        self._eval.eval_all_samples = lambda *_, **__: _replayed(self._spec.name, results, recorder)
        return numbers(self._guarded("run", lambda: self._eval.run(recorder), RunError))

    def close(self) -> None:
        self._threads.close()

    def _made(self, target: type, args: Mapping[str, Any], around: Building) -> Any:
        values = {
            "completion_fns": [CompletionFunction(model) for model in around.models],
            "eval_registry_path": self._spec.registry_dir,
            "seed": around.seed,
            "name": self._spec.name,
            "registry": around.registry,
            **args,
        }
        made = self._guarded("making it", lambda: target(**values))
        for method in ("eval_sample", "run"):
            if not callable(getattr(made, method, None)):
                raise SpecError(f"{self._spec.name}: class {self._spec.class_path} has no method {method}")
        return made

    def _samples(self) -> Samples:
        def found(recorder: Any, samples: Sequence[Any], *_: Any, **__: Any) -> NoReturn:
            self._raw = list(samples)
            raise _SamplesFound

        self._eval.eval_all_samples = found
        try:
            self._guarded("run", lambda: self._eval.run(Recorder(self._spec.name)))
        except _SamplesFound:
            return _as_samples(self._spec, self._raw)
        raise SpecError(
            f"{self._spec.name}: run of {self._spec.class_path} did not call self.eval_all_samples(recorder, samples), "
            "by which it is run sample by sample"
        )

    def _guarded(self, what: str, call: Callable[[], Any], kind: type[SimpleQAError] = SpecError) -> Any:
        """Return what `call` into the user's code returns; raise an error of one line where it raises."""
        try:
            with _reading(self._find):
                return call()
        except SimpleQAError:
            raise
        except (Exception, SystemExit) as error:
            told = f"{error_line(error)}{where(error)}"
            raise kind(f"{self._spec.name}: {what} of {self._spec.class_path} failed: {told}") from error


@contextmanager
def _reading(find: Callable[[str], Any]) -> Iterator[None]:
    """Let `evals.get_jsonl` look where the eval's data lie."""
    token = api.data_finder.set(find)
    try:
        yield
    finally:
        api.data_finder.reset(token)


def _replayed(name: str, results: Sequence[QuestionResult], recorder: Recorder) -> list[Any]:
    """Record again what the samples recorded; return what each of them returned."""
    told = [(result, result.extra) for result in results if result.extra and "events" in result.extra]
    for result, extra in told:
        for event in extra["events"]:
            recorder.record_event(event["type"], event["data"], sample_id(name, int(result.id) - 1))
    return [extra.get("returned") for _, extra in told]


# --- a function ----------------------------------------------------------------------------


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
            returned = await self._target(self.samples[index], askers[0], **self._args)
        except (ModelError, RunStopped):
            raise
        except Exception as error:
            raise ModelError("exception", f"{error_line(error)}{where(error)}") from error
        if isinstance(returned, Judgement | Verdict):
            return returned if isinstance(returned, Judgement) else Judgement(returned)
        _record(sitting, returned)
        return None

    def figures(self, results: Sequence[QuestionResult]) -> Figures:
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


# --- both ----------------------------------------------------------------------------------


def sample_id(name: str, index: int) -> str:
    """Return what OpenAI Evals calls the sample of that index, from 0: `<eval>.<split>.<index>`."""
    return ".".join([*name.split(".")[:2], str(index)])


def numbers(report: Any) -> Figures:
    """Return the numbers in what `run` returned, those of nested mappings as `outer/inner`; a NaN is None."""
    found: Figures = {}
    for key, value in plain(report).items() if isinstance(report, Mapping) else ():
        if isinstance(value, Mapping):
            found.update({f"{key}/{inner}": each for inner, each in numbers(value).items()})
        elif value is None or isinstance(value, int | float):
            found[key] = int(value) if isinstance(value, bool) else value
    return found


def _called(what: str, work: Callable[[], Any]) -> Any:
    """Call the user's code in a thread, where nothing but a ModelError may come out."""
    try:
        return work()
    except (ModelError, RunStopped, CancelledError):
        raise
    except BaseException as error:
        raise ModelError("exception", f"{what}: {error_line(error)}{where(error)}") from error


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


def _as_samples(spec: EvalSpec, raw: Sequence[Any]) -> Samples:
    """Return the samples of a class, whatever they are, as rows of JSON types."""
    rows = [plain(sample) for sample in raw]
    if not rows:
        raise SpecError(f"{spec.name}: run of {spec.class_path} gives no samples to self.eval_all_samples")
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    named = [(f"{spec.name}, sample {number}", _as_row(row)) for number, row in enumerate(rows, 1)]
    return Samples(named, spec.name, digest)


def _as_row(row: Any) -> dict[str, Any]:
    return row if isinstance(row, dict) else {"sample": row}


def _texts(sample: Mapping[str, Any]) -> tuple[str, str]:
    """Return what people read as the question and the gold."""
    problem = next((sample[key] for key in _PROMPT_KEYS if sample.get(key)), sample)
    ideal = next((sample[key] for key in _IDEAL_KEYS if sample.get(key) not in (None, "", [])), "")
    ideals = ideal if isinstance(ideal, list) else [ideal]
    return shown(problem), " | ".join(shown(each) for each in ideals).strip()
