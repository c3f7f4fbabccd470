"""OpenAI Evals' basic templates as evals: what each asks, with which parameters, how it compares, what it adds up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..errors import DatasetError, OptionError
from ..judges.basic import (
    BasicJudge,
    compare_fuzzy,
    compare_includes,
    compare_json,
    compare_match,
    compare_validity,
    is_json,
)
from ..models.shapes import as_text
from ..records import Message, Prompt, Question, QuestionResult
from ..rows import BadRowError, kind_of
from .arguments import Arguments
from .asking import SampleAnswerer, checked_prompt, only_model
from .data import Sample, Samples, eval_dataset
from .protocol import Building, Eval
from .registry import EvalSpec
from .scores import Scores, accuracy, accuracy_with_f1, accuracy_with_spread

Args = Mapping[str, Any]
_GREEDY: Args = {"temperature": 0}


def match(spec: EvalSpec, args: Args, samples: Samples, around: Building) -> Eval:
    """Make an eval whose answers must begin with an ideal, after `num_few_shot` examples of `few_shot_jsonl`."""
    given = Arguments(spec, args, "samples_jsonl", "max_tokens", "num_few_shot", "few_shot_jsonl")
    given.number("max_tokens")  # OpenAI Evals takes it here and sends it to no model
    examples = _examples(spec, given, samples, around)
    shots = [message for example in examples for message in example["sample"]]
    about = {"few_shot": {"examples": len(examples), "sha256": examples.sha256}} if shots else None
    answerer = _answerer(spec, around, _GREEDY, partial(_with_shots, shots=shots) if shots else _prompt, about)
    return _eval(spec, samples, answerer, BasicJudge("match", compare_match, _ideals), accuracy_with_spread)


def includes(spec: EvalSpec, args: Args, samples: Samples, around: Building) -> Eval:
    """Make an eval whose answers must have an ideal in them, with `ignore_case` in any case."""
    given = Arguments(spec, args, "samples_jsonl", "ignore_case")
    ignore_case = given.flag("ignore_case")
    params = {"ignore_case": True} if ignore_case else None
    judge = BasicJudge("includes", compare_includes(ignore_case=ignore_case), _ideals, params)
    return _eval(spec, samples, _answerer(spec, around, {}), judge, accuracy_with_spread)


def fuzzy_match(spec: EvalSpec, args: Args, samples: Samples, around: Building) -> Eval:
    """Make an eval whose answers, of up to `max_tokens`, and ideals contain each other, both normalised."""
    given = Arguments(spec, args, "samples_jsonl", "max_tokens")
    answerer = _answerer(spec, around, {**_GREEDY, "max_tokens": given.number("max_tokens", 100)})
    return _eval(spec, samples, answerer, BasicJudge("fuzzy_match", compare_fuzzy, _ideals), accuracy_with_f1)


def json_match(spec: EvalSpec, args: Args, samples: Samples, around: Building) -> Eval:
    """Make an eval whose answers, of up to `max_tokens`, must be the JSON of an ideal."""
    given = Arguments(spec, args, "samples_jsonl", "max_tokens")
    answerer = _answerer(spec, around, {**_GREEDY, "max_tokens": given.number("max_tokens", 512)})
    judge = BasicJudge("json_match", compare_json, _ideals)
    return _eval(spec, samples, answerer, judge, accuracy, _check_json_sample)


def json_validator(spec: EvalSpec, args: Args, samples: Samples, around: Building) -> Eval:
    """Make an eval whose answers must be JSON of any kind; its samples need no ideal."""
    Arguments(spec, args, "samples_jsonl")
    judge = BasicJudge("json_validator", compare_validity, _ideals)
    return _eval(spec, samples, _answerer(spec, around, _GREEDY), judge, accuracy_with_spread, _check_input)


def _eval(
    spec: EvalSpec,
    samples: Samples,
    answerer: SampleAnswerer,
    judge: BasicJudge,
    scores: Callable[[Sequence[QuestionResult]], Scores],
    check: Callable[[Sample], None] | None = None,
) -> Eval:
    """Make an eval of samples that stand `check`; raises DatasetError."""
    _check(samples, check or _check_sample)
    return Eval(spec.name, eval_dataset(spec.name, samples, _texts), answerer, judge, scores)


def _answerer(
    spec: EvalSpec,
    around: Building,
    params: Args,
    prompt: Callable[[Question], Prompt] | None = None,
    about: Args | None = None,
) -> SampleAnswerer:
    return SampleAnswerer(only_model(spec.name, around.models), prompt or _prompt, params, about)


# -- samples ---------------------------------------------------------------------------------------


def _check(samples: Samples, check: Callable[[Sample], None]) -> None:
    """Raise DatasetError, with the place, for the first sample that `check` refuses by a BadRowError."""
    for index, sample in enumerate(samples):
        try:
            check(sample)
        except BadRowError as error:
            raise DatasetError(f"{samples.place(index)}: {error}") from None


def _check_input(sample: Sample) -> None:
    checked_prompt(sample["input"])


def _check_sample(sample: Sample) -> None:
    _check_input(sample)
    for ideal in listed(sample["ideal"]):
        if not isinstance(ideal, str):
            raise BadRowError(f"{kind_of(ideal)} found at 'ideal', a text or a list of texts was wanted")


def _check_json_sample(sample: Sample) -> None:
    _check_sample(sample)
    for ideal in listed(sample["ideal"]):
        if not is_json(ideal):
            raise BadRowError(f"the ideal {ideal[:60]!r} is not JSON")


def listed(ideal: Any) -> list[Any]:
    """Return a sample's ideals as a list, also where it has but one."""
    return ideal if isinstance(ideal, list) else [ideal]


def _ideals(question: Question) -> list[str]:
    return listed(question.metadata["sample"].get("ideal", []))


def _texts(sample: Sample) -> tuple[str, str]:
    problem = as_text(sample["input"], turn=False).rstrip("\n")
    return problem, " | ".join(map(str, listed(sample.get("ideal", [])))).strip()


def _prompt(question: Question) -> Prompt:
    prompt: Prompt = question.metadata["sample"]["input"]
    return prompt


# -- few-shot examples -----------------------------------------------------------------------------


def _examples(spec: EvalSpec, given: Arguments, samples: Samples, around: Building) -> Samples:
    """Return the first `num_few_shot` examples; raises SimpleQAError."""
    count = given.number("num_few_shot")
    if not count:
        return Samples()
    address = given.text("few_shot_jsonl")
    if not address:
        raise OptionError(f"{spec.name}: num_few_shot={count}: the argument few_shot_jsonl is missing")
    examples = around.read(address).first(count)
    examples.require("sample")
    _check(examples, _check_example)
    _check(samples, _check_chat)
    return examples


def _check_example(example: Sample) -> None:
    if isinstance(checked_prompt(example["sample"], "sample"), str):
        raise BadRowError("a text found at 'sample', chat messages were wanted")


def _check_chat(sample: Sample) -> None:
    if not isinstance(sample["input"], list):
        raise BadRowError(f"{kind_of(sample['input'])} found at 'input', chat messages were wanted: there are examples")


def _with_shots(question: Question, shots: list[Message]) -> Prompt:
    """Return a sample's messages with the examples before the last one."""
    messages = question.metadata["sample"]["input"]
    return [*messages[:-1], *shots, *messages[-1:]]
