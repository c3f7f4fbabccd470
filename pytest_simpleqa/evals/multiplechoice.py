"""The multiple-choice template: choices in an order of their own for each sample, and the letter of the right one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any, NamedTuple

from ..errors import DatasetError
from ..judges.basic import BasicJudge, compare_match
from ..records import Dataset, Prompt, Question
from ..rows import kind_of
from .arguments import Arguments
from .asking import SampleAnswerer, only_model
from .data import Sample, Samples
from .protocol import Building, Eval
from .registry import EvalSpec
from .scores import accuracy

_INSTRUCTION = "Reply with nothing but the letter in front of the right choice."

_LAYOUTS = (("question", "answers", "label"), ("ctx", "endings", "label"), ("question", "choices", "answer"))
"""What question, choices and the number of the right one, from 0, are called: here, in HellaSwag, in MMLU."""


class Choice(NamedTuple):
    """One sample: a question, its choices, and which of them is right, from 0."""

    question: str
    choices: Sequence[str]
    right: int


def multiple_choice(spec: EvalSpec, args: Mapping[str, Any], samples: Samples, around: Building) -> Eval:
    """Make an eval of the samples behind `dataset`, asked after `instructions`; raises SimpleQAError.

    As in OpenAI Evals, the choices are shuffled by a random generator that is seeded with the sample's name,
    its number from 0, and the seed of the run.
    """
    given = Arguments(spec, args, "dataset", "instructions")
    instructions = given.text("instructions")
    base = ".".join(spec.name.split(".")[:2])
    questions = [
        _question(index, sample, _choice(samples, index, sample), instructions, f"{base}.{index}:{around.seed}")
        for index, sample in enumerate(samples)
    ]
    return Eval(
        name=spec.name,
        dataset=Dataset(spec.name, tuple(questions), samples.sha256),
        answerer=SampleAnswerer(only_model(spec.name, around.models), _prompt, {"temperature": 0, "max_tokens": 1}),
        judge=BasicJudge("MultipleChoice", compare_match, lambda question: [question.answer]),
        metrics=accuracy,
    )


def _choice(samples: Samples, index: int, sample: Sample) -> Choice:
    """Return what a sample asks, in whichever layout; raises DatasetError."""
    place = samples.place(index)
    layout = next((names for names in _LAYOUTS if all(name in sample for name in names)), None)
    if layout is None:
        raise DatasetError(f"{place}: found {', '.join(sample)}; {', '.join(_LAYOUTS[0])} were wanted")
    question, choices, right = (sample[name] for name in layout)
    if not isinstance(question, str) or not isinstance(choices, list) or not all(isinstance(c, str) for c in choices):
        raise DatasetError(f"{place}: {layout[0]!r} must be a text and {layout[1]!r} a list of texts")
    if isinstance(right, str) and right.isdecimal():  # HellaSwag's labels are texts
        right = int(right)
    if type(right) is not int or not 0 <= right < len(choices) <= len(ascii_uppercase):
        found = repr(right) if isinstance(right, int | str) else kind_of(right)
        raise DatasetError(f"{place}: {found} found at {layout[2]!r}, one of {len(choices)} choices from 0 was wanted")
    return Choice(question, choices, right)


def _question(index: int, sample: Sample, choice: Choice, instructions: str, seed: str) -> Question:
    order = list(range(len(choice.choices)))
    random.Random(seed.encode()).shuffle(order)
    listing = "\n".join(f"{letter}) {choice.choices[at]}" for letter, at in zip(ascii_uppercase, order, strict=False))
    return Question(
        id=str(index + 1),
        problem=f"{instructions}\n{_INSTRUCTION}\n\n{choice.question}\n{listing}",
        answer=ascii_uppercase[order.index(choice.right)],
        metadata={"sample": sample},
    )


def _prompt(question: Question) -> Prompt:
    return question.problem
