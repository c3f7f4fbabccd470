"""OpenAI Evals' basic templates: a predicted answer beside its ideals, and the judge that compares them."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import SpecError
from ..models.protocol import Model
from ..records import Judgement, Question, Verdict
from .protocol import Complete

# Every comparison below gives what OpenAI Evals 3.0.1 gives, its oddities included: scores must compare.

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def match(predicted: str, ideals: Sequence[str]) -> str | None:
    """Return the first of the `ideals` that `predicted` begins with, letter by letter; None where there is none."""
    return next((ideal for ideal in ideals if predicted.startswith(ideal)), None)


def includes(predicted: str, ideals: Sequence[str], *, ignore_case: bool = False) -> bool:
    """Tell whether one of the `ideals` stands anywhere in `predicted`, inside a word too."""
    if ignore_case:
        predicted, ideals = predicted.lower(), [ideal.lower() for ideal in ideals]
    return any(ideal in predicted for ideal in ideals)


def normalised(text: str) -> str:
    """Return `text` in small letters without ASCII punctuation, English articles and spare blanks (as SQuAD does)."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def fuzzy_match(predicted: str, ideals: Sequence[str]) -> bool:
    """Tell whether `predicted` or one of the `ideals` contains the other, both normalised.

    Where one of the two normalises to nothing, both must.
    """
    said = normalised(predicted)
    return any(_is_within(said, normalised(ideal)) for ideal in ideals)


def _is_within(one: str, other: str) -> bool:
    return one in other or other in one if one and other else one == other


def token_f1(predicted: str, ideals: Sequence[str]) -> float:
    """Return the best F1 of `predicted` with one of the `ideals`, 0 to 1, over their normalised words."""
    said = normalised(predicted).split()
    return max((_f1(said, normalised(ideal).split()) for ideal in ideals), default=0.0)


def _f1(said: Sequence[str], wanted: Sequence[str]) -> float:
    shared = (Counter(said) & Counter(wanted)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(said), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def json_match(predicted: str, ideals: Sequence[str]) -> bool:
    """Tell whether `predicted` is JSON and equal in structure to one of the `ideals`, which are JSON texts.

    Order of keys and white space do not count; `null` equals nothing, not even `null`. Raises ValueError
    for an ideal that is no JSON.
    """
    wanted = [json.loads(ideal) for ideal in ideals]
    try:
        said = json.loads(predicted)
        return any(_same_json(said, each) for each in wanted)
    except (ValueError, RecursionError):
        return False


def _same_json(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_same_json(one.get(key), other.get(key)) for key in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same_json, one, other))
    return bool(one == other)


def is_json(text: str) -> bool:
    """Tell whether `text` is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class Finding(NamedTuple):
    """What a comparison found."""

    is_correct: bool
    extra: Mapping[str, Any] | None = None
    """What else belongs to the row: the ideal that was `picked`, the `f1_score`."""


Comparison = Callable[[str, Sequence[str]], Finding]
"""Compares a predicted answer with its ideals."""


def compare_match(predicted: str, ideals: Sequence[str]) -> Finding:
    picked = match(predicted, ideals)
    return Finding(False) if picked is None else Finding(True, {"picked": picked})


def compare_fuzzy(predicted: str, ideals: Sequence[str]) -> Finding:
    return Finding(fuzzy_match(predicted, ideals), {"f1_score": token_f1(predicted, ideals)})


def compare_json(predicted: str, ideals: Sequence[str]) -> Finding:
    return Finding(json_match(predicted, ideals))


def compare_includes(*, ignore_case: bool = False) -> Comparison:
    """Return the comparison that looks for an ideal inside the answer."""
    return lambda predicted, ideals: Finding(includes(predicted, ideals, ignore_case=ignore_case))


def compare_validity(predicted: str, ideals: Sequence[str]) -> Finding:
    """Look only whether the answer is JSON at all."""
    return Finding(is_json(predicted))


def ideals_of(question: Question) -> Sequence[str]:
    """Return the right answers to a row of any dataset: its gold, and what its `ideal` lists beside it."""
    listed = question.metadata.get("ideal")
    if isinstance(listed, list) and listed and all(isinstance(each, str) for each in listed):
        ideals = [each.strip() for each in listed]
        if ideals[0] == question.answer:  # else the gold is of another column
            return ideals
    return (question.answer,)


class BasicJudge:
    """Grades by one comparison, offline."""

    model: Model | None = None

    def __init__(
        self,
        name: str,
        compare: Comparison,
        ideals: Callable[[Question], Sequence[str]] = ideals_of,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self._name = name
        self._compare = compare
        self._ideals = ideals
        self._params = dict(params or {})

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        found = self._compare(predicted, self._ideals(question))
        return Judgement(Verdict.CORRECT if found.is_correct else Verdict.INCORRECT, extra=found.extra)

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {"provider": self._name, "model": self._name, "base_url_host": None, "params": self._params}


def basic_judge(name: str, params: Mapping[str, Any], questions: Sequence[Question]) -> BasicJudge:
    """Return the judge `match`, `includes`, `fuzzy_match` or `json_match` for a dataset. Raises SpecError."""
    own = {key: value for key, value in params.items() if key != "temperature" and value is not None}
    ignore_case = own.get("ignore_case", False) if name == "includes" else False
    known = {"ignore_case"} if name == "includes" else set()
    for key in own.keys() - known:
        raise SpecError(f"--judge-llm-param {key}={own[key]}: {name} takes {' and '.join(known) or 'no parameter'}")
    if not isinstance(ignore_case, bool):
        raise SpecError(f"--judge-llm-param ignore_case={ignore_case}: wanted true or false")
    if name == "json_match":
        _require_json_golds(questions)
    comparisons = {
        "match": compare_match,
        "includes": compare_includes(ignore_case=ignore_case),
        "fuzzy_match": compare_fuzzy,
        "json_match": compare_json,
    }
    return BasicJudge(name, comparisons[name], params=own)


def _require_json_golds(questions: Sequence[Question]) -> None:
    for question in questions:
        for ideal in ideals_of(question):
            if not is_json(ideal):
                raise SpecError(f"--judge-llm json_match: {question.id}: the gold answer {ideal[:60]!r} is not JSON")
