"""The names of OpenAI Evals for code of the user's: what `import evals` finds where that package is not installed."""

from __future__ import annotations

import csv
import json
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..judges.basic import fuzzy_match as _fuzzy_match
from ..judges.basic import normalised as normalize
from ..judges.basic import token_f1
from ..models.shapes import as_text
from .figures import (
    compute_averaged_f_score,
    compute_f_score,
    compute_matthew_corr,
    compute_precision,
    compute_recall,
    get_accuracy,
    get_bootstrap_accuracy_std,
    get_confusion_matrix,
)
from .recorder import Event, Recorder, default_recorder
from .recorder import Recorder as RecorderBase
from .registry import Registry

__all__ = [
    "ChatCompletionPrompt",
    "CompletionFn",
    "CompletionPrompt",
    "CompletionResult",
    "Eval",
    "Event",
    "Recorder",
    "RecorderBase",
    "Registry",
    "SolverEval",
    "compute_averaged_f_score",
    "compute_f_score",
    "compute_matthew_corr",
    "compute_precision",
    "compute_recall",
    "default_recorder",
    "get_accuracy",
    "get_bootstrap_accuracy_std",
    "get_confusion_matrix",
    "get_json",
    "get_jsonl",
    "normalize",
    "record_and_check_match",
]

MODULES = (
    "evals",
    "evals.api",
    "evals.data",
    "evals.elsuite",
    "evals.elsuite.utils",
    "evals.eval",
    "evals.metrics",
    "evals.prompt",
    "evals.prompt.base",
    "evals.record",
    "evals.registry",
)
"""The modules of that package that this one stands for, all of them."""

data_finder: ContextVar[Callable[[str], Path] | None] = ContextVar("simpleqa_data_finder", default=None)
"""From an address as an eval names it to a file; None outside an eval."""


def __getattr__(name: str) -> Any:
    if any(name in module.split(".")[1:] for module in MODULES):
        return sys.modules[__name__]
    if name.startswith("record_") and hasattr(Recorder, name):
        return lambda *args, **kwargs: getattr(default_recorder(), name)(*args, **kwargs)
    raise AttributeError(f"module {__name__} has no {name!r}")


# --- completion functions ------------------------------------------------------------------


class CompletionResult(ABC):
    """What a completion function returns."""

    @abstractmethod
    def get_completions(self) -> list[str]: ...


@runtime_checkable
class CompletionFn(Protocol):
    """Completes a prompt: a text or chat messages."""

    def __call__(self, prompt: Any, **kwargs: Any) -> CompletionResult: ...


def is_chat_prompt(prompt: Any) -> bool:
    return isinstance(prompt, list) and all(isinstance(message, dict) for message in prompt)


def chat_prompt_to_text_prompt(prompt: Any, for_completion: bool = True) -> str:
    """Return chat messages as one text, with the assistant's turn at its end."""
    text = as_text(prompt)
    return text if for_completion or len(prompt) == 1 else text.removesuffix("Assistant:")


def text_prompt_to_chat_prompt(prompt: str, role: str = "system") -> list[dict[str, str]]:
    return [{"role": role, "content": prompt}]


class CompletionPrompt:
    """A prompt for those that want text."""

    def __init__(self, raw_prompt: Any) -> None:
        self.raw_prompt = raw_prompt

    def to_formatted_prompt(self) -> Any:
        return chat_prompt_to_text_prompt(self.raw_prompt) if is_chat_prompt(self.raw_prompt) else self.raw_prompt


class ChatCompletionPrompt(CompletionPrompt):
    """A prompt for those that want chat messages."""

    def to_formatted_prompt(self) -> Any:
        return self.raw_prompt if is_chat_prompt(self.raw_prompt) else text_prompt_to_chat_prompt(self.raw_prompt)


# --- matching ------------------------------------------------------------------------------


def record_and_check_match(
    prompt: Any,
    sampled: str,
    expected: str | list[str] | tuple[str, ...],
    separator: Callable[[str], bool] | None = None,
    options: Sequence[str] | None = None,
) -> str | None:
    """Record whether `sampled` begins with what was expected; return the option that it begins with, or None.

    Where `separator` is given it must hold of the character behind the option.
    """
    wanted = [expected] if isinstance(expected, str) else list(expected)
    offered = list(options) if options is not None else wanted

    def begins_with(option: str) -> bool:
        rest = sampled[len(option) :]
        return sampled.startswith(option) and (separator is None or not rest or separator(rest[0]))

    picked = next(filter(begins_with, offered), None)
    default_recorder().record_match(picked in wanted, expected=wanted, picked=picked, sampled=sampled, options=offered)
    return picked


def fuzzy_match(one: str, other: str) -> bool:
    """Tell whether one of two normalised texts holds the other."""
    return _fuzzy_match(one, [other])


def f1_score(prediction: str, answers: list[str]) -> float:
    """Return the best F1 of the words of `prediction` against one of `answers`."""
    return token_f1(prediction, answers)


# --- data ----------------------------------------------------------------------------------


def get_jsonl(path: str | Path) -> list[Any]:
    """Return the values of a file of JSON lines, gzip or not; of a folder those of all such files in it."""
    return list(iter_jsonls([path]))


def get_jsonls(paths: Sequence[str | Path], line_limit: int | None = None) -> list[Any]:
    return list(iter_jsonls(paths, line_limit))


def iter_jsonls(paths: Any, line_limit: int | None = None) -> Iterator[Any]:
    each = [paths] if isinstance(paths, str | Path) else list(paths)
    return islice((value for path in each for file in _files(_found(path)) for value in _values(file)), line_limit)


def get_json(path: str | Path) -> Any:
    return json.loads(_text(_found(path)))


def get_lines(path: str | Path) -> list[str]:
    return _text(_found(path)).splitlines(keepends=True)


def get_csv(path: str | Path, fieldnames: Sequence[str] | None = None) -> list[dict[str, Any]]:
    return list(csv.DictReader(_text(_found(path)).splitlines(keepends=True), fieldnames=fieldnames))


def _found(path: str | Path) -> Path:
    find = data_finder.get()
    return find(str(path)) if find is not None else Path(path)


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]


def _text(path: Path) -> str:
    import gzip

    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")


def _values(path: Path) -> Iterator[Any]:
    for number, line in enumerate(_text(path).split("\n"), 1):  # a text may hold U+2028, which ends no line
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: no JSON ({error})") from None


# --- evals ---------------------------------------------------------------------------------


class Eval(ABC):
    """An eval in code: `run` gives samples to `eval_all_samples`, and `eval_sample` is called with each."""

    def __init__(
        self,
        completion_fns: Sequence[Any],
        eval_registry_path: Path,
        seed: int = 20220722,
        name: str = "no_name_eval.default",
        registry: Any = None,
        samples_jsonl: str | None = None,
    ) -> None:
        if "." not in name:
            raise ValueError(f"the eval's name {name!r} has no split; wanted <eval>.<split>, as in arithmetic.dev")
        self.completion_fns = list(completion_fns)
        self.eval_registry_path = eval_registry_path
        self.seed = seed
        self.name = name
        self.registry = registry
        self.samples_jsonl = samples_jsonl

    @property
    def completion_fn(self) -> Any:
        """The model under test."""
        return self.completion_fns[0]

    @abstractmethod
    def eval_sample(self, sample: Any, rng: random.Random) -> Any:
        """Ask what is to be asked of one sample, and record what came of it."""

    @abstractmethod
    def run(self, recorder: Recorder) -> Any:
        """Give the samples to `eval_all_samples`; return the figures that the events add up to."""

    def eval_all_samples(self, recorder: Recorder, samples: Sequence[Any], *_: Any, **__: Any) -> list[Any]:
        """Have every sample evaluated; return what `eval_sample` returned of each, in order."""
        raise RuntimeError("eval_all_samples: this eval was not made by a run of pytest-simpleqa")

    def get_samples(self) -> list[Any]:
        """Return the samples behind `samples_jsonl`."""
        if self.samples_jsonl is None:
            raise ValueError("get_samples: the eval's args name no samples_jsonl")
        return get_jsonl(self.samples_jsonl)


class SolverEval(Eval):
    """An eval over a solver, which plays several turns."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("a SolverEval needs a solver; solvers are not run here")
