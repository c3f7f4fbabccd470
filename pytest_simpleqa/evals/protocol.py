"""What an eval is to the rest of the house: questions, who answers, who judges, and what the results add up to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..judges.protocol import Judge
from ..models.protocol import Answerer, Model
from ..records import Dataset, Prompt, QuestionResult, Reply
from .data import Samples
from .registry import EvalSpec, Registry


@dataclass(frozen=True)
class Eval:
    """One eval, ready to be asked."""

    name: str
    """The full name, such as `coqa-match.dev.v0`."""
    dataset: Dataset
    """One question per sample; `Question.metadata["sample"]` is the sample as it stands in the data."""
    answerer: Answerer
    judge: Judge
    metrics: Callable[[Sequence[QuestionResult]], Mapping[str, float | int | None]]
    """What the results add up to, under the names that OpenAI Evals gives it."""
    grades_any_answer: bool = True
    """Whether the judge can grade what somebody else has answered."""
    samples: Samples | None = None
    """The samples as they were read, for another building of the same eval."""


@dataclass(frozen=True)
class Building:
    """What a template may need to make an eval."""

    models: tuple[Model, ...]
    """The models under test, in the order that they were named."""
    registry: Registry
    read: Callable[[str], Samples]
    """Reads the samples behind an address as it stands in the eval's `args`; raises DatasetError."""
    seed: int
    judge: Model | None = None
    """The judge model; None where none was named."""
    judge_params: Mapping[str, Any] = field(default_factory=dict)
    """Request parameters that the user gave for the judge."""
    base: Path = field(default_factory=Path.cwd)
    """The invocation directory: relative paths count from it, and it is importable."""
    limit: int = 0
    """How many samples are kept, from the first; 0 = all. `samples` are cut already."""


class Nobody:
    """Stands for a model where an eval is only looked at; `is_named` where the user has named one."""

    max_in_flight: int | None = None
    is_service = False

    def __init__(self, *, is_named: bool = False) -> None:
        self.is_named = is_named

    async def complete(self, prompt: Prompt) -> Reply:
        raise ModelError("missing", "there is no model; add --answer-llm SPEC", calls=0)

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {}


Template = Callable[[EvalSpec, Mapping[str, Any], Samples, Building], Eval]
"""Makes an eval of `(spec, args, samples, around)`; `args` are those of the registry under those of the user.

`samples` are those of `samples_jsonl`; empty where the eval names none. Raises SimpleQAError.
"""
