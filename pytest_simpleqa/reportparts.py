"""The inner parts of a Report, as its readers need them: a document from outside is held against these shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import RunError

Shape = Any
"""A type; `{key: shape}`, `[shape]` of any length, `(shape, shape)` of this length; one of the below."""


@dataclass(frozen=True, slots=True)
class Each:
    """An object of any keys, whose values have one shape."""

    shape: Shape


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value that may be null; with `missing` its key need not be there."""

    shape: Shape
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Unless:
    """A value whose key need not be there."""

    shape: Shape


_NUMBER = int | float
_TEXT, _RATE = str | None, int | float | None
_ENDS = (_NUMBER, _NUMBER)
_WORDS: Mapping[Any, str] = {
    int: "a whole number",
    str: "a text",
    _NUMBER: "a number",
    _RATE: "a number or null",
    _TEXT: "a text or null",
}
_SHARES = ("unanimous", "right_at_least_once", "right_always")
_STATUSES = ("correct", "incorrect", "not_attempted", "failed")
_FLIPS = ("incorrect_to_correct", "not_attempted_to_correct", "correct_to_incorrect", "correct_to_not_attempted")
_DIFFERENCE = dict.fromkeys(("baseline", "value", "difference"), _NUMBER) | {"interval": _ENDS}
_SAID = {"verdict": _TEXT, "predicted": _TEXT}

PARTS: Mapping[str, Shape] = {
    "samples": [
        {
            **dict.fromkeys(("id", "question", "gold", "fingerprint"), str),
            **dict.fromkeys(("topic", "answer_type", "predicted"), Unless(_TEXT)),
            "repeat": Unless(int),
            "error": Maybe({"kind": str, "message": str}, missing=True),
            "extra": Maybe(Each(object), missing=True),
        }
    ],
    "options": {"repeats": Unless(int), "max_samples": Unless(int), "shard": Maybe((int, int), missing=True)},
    "usage": Each(
        {
            **dict.fromkeys(("calls", "prompt_tokens", "completion_tokens"), Unless(int)),
            "latency_s": Maybe({"p50": _NUMBER, "p95": _NUMBER}, missing=True),
        }
    ),
    "provenance": {"paper_parse_differs": Maybe(int, missing=True)},
    "repeats": Maybe(
        {
            "k": int,
            **dict.fromkeys(("consistency", *_SHARES), _RATE),
            "intervals": dict.fromkeys(_SHARES, Maybe(_ENDS)),
        }
    ),
    "calibration": Maybe(
        {
            **dict.fromkeys(("n", "no_confidence", "out_of_range"), int),
            **dict.fromkeys(("confidence", "accuracy", "ece", "brier", "auroc"), _RATE),
            "curve": [dict.fromkeys(("threshold", "coverage", "accuracy"), _NUMBER)],
        }
    ),
    "sentinels": Maybe(
        {
            **dict.fromkeys(("n", "failed", "allowed"), int),
            "by_kind": Each({"n": int, "failed": int}),
            "failed_checks": [{"kind": str, "verdict": _TEXT}],
        }
    ),
    "gates": [
        {
            **dict.fromkeys(("expression", "verdict", "reason"), Unless(_TEXT)),
            **dict.fromkeys(("value", "bound"), Unless(_RATE)),
            "level": Unless(_NUMBER),
            "interval": Maybe(_ENDS, missing=True),
        }
    ],
    "comparison": Maybe(
        {
            "baseline": str,
            **dict.fromkeys(("model", "judge"), _TEXT),
            **dict.fromkeys(("questions", "rows", "only_here", "only_there", "changed_gold", "regressed"), int),
            "metrics": Each(Maybe(_DIFFERENCE)),
            "mcnemar": {"gained": int, "lost": int, "p": _RATE},
            "flips": dict.fromkeys(_FLIPS, int),
            "transitions": dict.fromkeys(_STATUSES, dict.fromkeys(_STATUSES, int)),
            "topics": [{"topic": str, "questions": int, **_DIFFERENCE}],
            "regressions": [{**dict.fromkeys(("id", "question", "gold"), _TEXT), "before": _SAID, "now": _SAID}],
        }
    ),
}


def require_parts(document: Mapping[str, Any]) -> None:
    """Raise RunError, naming the place, where a part of a Report has not the shape that its readers rely on."""
    for key, shape in PARTS.items():
        _require(document.get(key), shape, key)


def _require(value: Any, shape: Shape, place: str) -> None:
    if isinstance(shape, Unless) or (isinstance(shape, Maybe) and value is not None):
        _require(value, shape.shape, place)
    elif isinstance(shape, Maybe):
        return
    elif isinstance(shape, (dict, Each)):
        _require_object(value, shape, place)
    elif isinstance(shape, (list, tuple)):
        _require_list(value, shape, place)
    elif not isinstance(value, shape) or (isinstance(value, bool) and shape is not object):
        raise RunError(f"'{place}' is {shown(value)}, which is not {_WORDS.get(shape, 'what belongs there')}")


def _require_object(value: Any, shape: dict[str, Shape] | Each, place: str) -> None:
    if not isinstance(value, dict):
        raise RunError(f"'{place}' is {shown(value)}, which is not an object")
    inner = dict.fromkeys(value, shape.shape) if isinstance(shape, Each) else shape
    for key, each in inner.items():
        if key in value:
            _require(value[key], each, f"{place}.{key}")
        elif not (isinstance(each, Unless) or (isinstance(each, Maybe) and each.missing)):
            raise RunError(f"the key '{place}.{key}' is missing")


def _require_list(value: Any, shape: list[Shape] | tuple[Shape, ...], place: str) -> None:
    if not isinstance(value, list) or (isinstance(shape, tuple) and len(value) != len(shape)):
        wanted = "a list" if isinstance(shape, list) else f"a list of {len(shape)}"
        raise RunError(f"'{place}' is {shown(value)}, which is not {wanted}")
    for number, each in enumerate(value):
        _require(each, shape[0], f"{place}[{number}]")


def shown(value: object) -> str:
    """Return a value as an error shows it."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
