"""What models and judges hand in, made fit to travel: of the right types, plain JSON, of bounded length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .errors import ModelError
from .records import Failure, Judgement, Reply, Verdict

MAX_ANSWER_CHARS = 100_000
"""A longer answer is kept only so far, with a mark and a note."""

_OPTIONAL_TEXT = (str, type(None))
_SPENT: Mapping[str, tuple[type, ...]] = {
    "calls": (int,),
    "prompt_tokens": (int,),
    "completion_tokens": (int,),
    "latency_s": (int, float, type(None)),
    "model": _OPTIONAL_TEXT,
    "notes": (tuple, list),
}
_REPLY = {"text": (str,), "raw": _OPTIONAL_TEXT, "extra": (Mapping, type(None)), **_SPENT}
_JUDGEMENT = {
    "verdict": (Verdict, type(None)),
    "reply": _OPTIONAL_TEXT,
    "error": (Failure, type(None)),
    "extra": (Mapping, type(None)),
    **_SPENT,
}


def take_reply(given: Reply) -> Reply:
    """Return what a model gave, capped; raise ModelError where it is no Reply that can be written down.

    Models of the user's hand in what they like, and one odd value must cost one row, not the run.
    """
    _require(given, Reply, _REPLY)
    _require_json(given, given.notes, given.latency_s, given.extra and dict(given.extra))
    return _capped(given)


def take_judgement(given: Judgement) -> Judgement:
    """Return what a judge gave; raise ModelError where it is no Judgement that can be written down."""
    _require(given, Judgement, _JUDGEMENT)
    if given.verdict is None and given.error is None:
        raise ModelError("exception", "the judge gave neither a verdict nor an error")
    _require_json(given, given.notes, given.latency_s, given.error and given.error.to_json(), dict(given.extra or {}))
    return given


def _require(given: object, kind: type, fields: Mapping[str, tuple[type, ...]]) -> None:
    if not isinstance(given, kind):
        raise ModelError("exception", f"found {type(given).__name__} where a {kind.__name__} was wanted")
    for name, types in fields.items():
        value = getattr(given, name)
        if not isinstance(value, types):
            wanted = " or ".join(each.__name__ for each in types)
            raise ModelError("exception", f"the {kind.__name__}'s `{name}` is {type(value).__name__}; wanted {wanted}")


def _require_json(given: object, *parts: Any) -> None:
    try:
        json.dumps(parts, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError("exception", f"the {type(given).__name__} holds what is no plain JSON: {error}") from None


def _capped(reply: Reply) -> Reply:
    cut = {
        name: text[:MAX_ANSWER_CHARS] + f" [... {len(text) - MAX_ANSWER_CHARS:,} more characters]"
        for name, text in (("text", reply.text), ("raw", reply.raw))
        if text is not None and len(text) > MAX_ANSWER_CHARS
    }
    if not cut:
        return reply
    note = f"answer of {len(reply.text):,} characters kept to {MAX_ANSWER_CHARS:,}"
    return replace(reply, **cut, notes=(*reply.notes, note))  # type: ignore[arg-type]  # names and types match
