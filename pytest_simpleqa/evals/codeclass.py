"""An eval that is a class of the user's, as OpenAI Evals has them: `run`, and `eval_sample` for each sample."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, NoReturn

from ..errors import ModelError, RunError, RunStopped, SimpleQAError, SpecError
from ..models.importing import error_line, where
from ..models.threads import DaemonThreads
from ..records import QuestionResult
from . import api
from .data import Samples, find_data
from .onecall import calls_twice
from .protocol import Building
from .recorder import Recorder, plain
from .registry import EvalSpec
from .sitting import CompletionFunction, Sitting, sample_id
from .standin import standing_in

_MANY = 1 << 16
"""Threads start as they are needed; how many run at once is the engine's business."""


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
        if calls_twice(self._eval.run, "eval_all_samples"):
            raise SpecError(
                f"{spec.name}: run of {spec.class_path} calls self.eval_all_samples more than once; wanted one call: "
                "make an eval of each, or one list of samples"
            )
        self.samples = self._samples()

    async def sit(self, sitting: Sitting, index: int) -> Any:
        def work() -> Any:
            with _reading(self._find), standing_in():
                return sitting.run(lambda: self._eval.eval_sample(self._raw[index], sitting.rng))

        return await self._threads.run(lambda: _called("eval_sample", work))

    def figures(self, results: Sequence[QuestionResult]) -> dict[str, float | int | None]:
        """Call `run` with the events of `results`; return the numbers in what it returns."""
        recorder = Recorder(self._spec.name)

        def replay(_: Any, samples: Sequence[Any], *__: Any, **___: Any) -> list[Any]:
            if recorder.events or len(samples) != len(self._raw):
                raise RuntimeError("eval_all_samples is called with other samples than before")
            return _replayed(self._spec.name, results, recorder)

        self._eval.eval_all_samples = replay
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
            with _reading(self._find), standing_in():
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


def _called(what: str, work: Callable[[], Any]) -> Any:
    """Call the user's code in a thread, where nothing but a ModelError may come out."""
    try:
        return work()
    except (ModelError, RunStopped, CancelledError):
        raise
    except BaseException as error:
        raise ModelError("exception", f"{what}: {error_line(error)}{where(error)}") from error


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


def numbers(report: Any) -> dict[str, float | int | None]:
    """Return the numbers in what `run` returned, those of nested mappings as `outer/inner`; a NaN is None."""
    found: dict[str, float | int | None] = {}
    for key, value in plain(report).items() if isinstance(report, Mapping) else ():
        if isinstance(value, Mapping):
            found.update({f"{key}/{inner}": each for inner, each in numbers(value).items()})
        elif value is None or isinstance(value, int | float):
            found[key] = int(value) if isinstance(value, bool) else value
    return found
