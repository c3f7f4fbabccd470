"""What a service's completion means: its JSON becomes a Reply, or a ModelError where nothing in it is usable."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import ModelError
from ..records import Reply
from .faults import as_model_error, complaint_of, error_in_success

_CUT_OFF = {"length", "max_tokens", "model_length"}
_FILTERED = {"content_filter", "sensitive", "safety", "recitation", "prohibited_content", "blocklist", "refusal"}
_THINK_TAG = re.compile(r"<(/?)(?:think(?:ing)?|thought|reasoning)\s*>", re.IGNORECASE)


def read_completion(body: Any, place: str = "the service") -> Reply:
    """Return the Reply in the parsed body of a chat completion.

    `place` heads the messages of errors (`HTTP 200 from api.example.com`). `finish_reason` is read
    before the text. Where the model calls tools, `extra["tool_calls"]` holds what it wants, and there need be no
    text. Raises ModelError: `unreadable` (no usable choice), `truncated`, `filtered`, `empty`, or the kind of the
    error object that a 200 may carry.
    """
    choice = _first_choice(body, place)
    finish_reason = _text_or_none(choice.get("finish_reason"))
    _check_finish(finish_reason, choice, place)
    message = choice.get("message")
    usage = body.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    tokens = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    content = _content_of(message) if isinstance(message, Mapping) else ""
    reply = partial(finished_reply, content, finish_reason, body.get("model"), tokens, place)
    if (reason := _reason(finish_reason)) in _CUT_OFF:
        raise cut_off(f"{place}: the reply was cut off at the token limit (finish_reason {reason})", reply)
    if not isinstance(message, Mapping):
        raise ModelError("unreadable", f"{place}: the reply's first choice has no message")
    if tools := message.get("tool_calls"):
        return replace(reply(may_be_empty=True), extra={"tool_calls": _plain_json(tools)})
    return reply()


def cut_off(message: str, reply: Callable[[], Reply]) -> ModelError:
    """Return the error of a reply that ends at the token limit, with what had come by then."""
    error = ModelError("truncated", message)
    with contextlib.suppress(ModelError):  # nothing had come, or nothing but thinking
        error.partial = reply()
    return error


def cut_thinking(text: str) -> tuple[str, bool]:
    """Return `text` without its think blocks, and whether one was left open.

    Tags are `<think>`, `<thinking>`, `<thought>` (Gemini) and `<reasoning>` (Bedrock) in any case. A closing tag
    without an opening one ends a block that began in the model's chat template: all before it is thinking, except
    where nothing follows a tag that merely repeats the end of a block. Outer blanks go only where something was cut.
    """
    if "<" not in text:
        return text, False
    kept: list[str] = []
    at, inside, seen, stale = 0, False, False, False
    for tag in _THINK_TAG.finditer(text):
        if not inside:
            stale = _keep(kept, text[at : tag.start()], stale)
        if tag[1] and not inside:
            stale = seen  # drops what is kept only if more follows
            if not seen:
                kept.clear()
        at, inside, seen = tag.end(), not tag[1], True
    if not seen:
        return text, False
    if not inside:
        _keep(kept, text[at:], stale)
    return "".join(kept).strip(), inside


def _keep(kept: list[str], piece: str, stale: bool) -> bool:
    """Append `piece`; where what was kept is stale and something follows, that goes. Returns what is still stale."""
    if stale and piece.strip():
        kept.clear()
        stale = False
    kept.append(piece)
    return stale


def plain_text(text: str) -> str:
    """Return `text` fit for UTF-8: pairs of surrogates joined, half ones replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _first_choice(body: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise ModelError("unreadable", f"{place}: the reply is JSON, but no object")
    error = error_in_success(body, place)
    if error is not None:
        raise error
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise ModelError("unreadable", f"{place}: the reply has no choices")
    first: Mapping[str, Any] = choices[0]
    error = error_in_success({"error": first.get("error")}, place)  # OpenRouter puts it there
    if error is not None:
        raise error
    return first


def _reason(finish_reason: str | None) -> str:
    return (finish_reason or "").lower().partition(":")[0]  # Gemini: `content_filter: RECITATION`


def _check_finish(finish_reason: str | None, choice: Mapping[str, Any], place: str) -> None:
    reason = _reason(finish_reason)
    if reason in _FILTERED:
        raise ModelError("filtered", f"{place}: the reply was withheld by a content filter (finish_reason {reason})")
    if reason == "error":
        raise as_model_error(complaint_of(choice), 500, place)


def _content_of(message: Mapping[str, Any]) -> str:
    text = _joined(message.get("content"))
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) and not text.strip() else text


def _joined(content: Any) -> str:
    """Return the text of a `content` field: a string, or a list of parts of which thinking is left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(part if isinstance(part, str) else part_text(part) for part in content)


def part_text(part: Any) -> str:
    """Return the text of one part of a message, its refusal, or nothing where it is thinking."""
    if not isinstance(part, Mapping):
        return ""
    value = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
    return value if isinstance(value, str) else ""


def finished_reply(
    content: str,
    finish_reason: str | None,
    model: Any,
    tokens: tuple[int, int],
    place: str,
    *,
    may_be_empty: bool = False,
) -> Reply:
    """Return the Reply of a text that came whole; raise ModelError where nothing is left without its thinking."""
    raw = plain_text(content)
    text, left_open = cut_thinking(raw)
    if left_open:
        raise ModelError("truncated", f"{place}: the reply ends inside its <think> block")
    if not text.strip() and not may_be_empty:
        raise ModelError("empty", f"{place}: the reply is empty" + (" after its <think> block" if raw.strip() else ""))
    return Reply(
        text=text,
        raw=None if raw == text else raw,
        finish_reason=finish_reason,
        model=_text_or_none(model),
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
    )


def _plain_json(value: Any) -> Any:
    """Return what JSON held, without half a surrogate pair in it."""
    return json.loads(plain_text(json.dumps(value, ensure_ascii=False)))


def _text_or_none(value: Any) -> str | None:
    return plain_text(value) if isinstance(value, str) else None


def count(value: Any) -> int:
    """Return a number of tokens as a service gave it, 0 where it is none."""
    return value if type(value) is int and value >= 0 else 0
