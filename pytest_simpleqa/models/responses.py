"""What a reply of the Responses API means: its JSON becomes a Reply, or a ModelError where nothing in it is usable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ..errors import ModelError
from ..records import Reply
from .faults import complaint_of, error_in_success, one_line
from .reply import count, cut_off, finished_reply, part_text


def read_response(body: Any, place: str = "the service") -> Reply:
    """Return the Reply in the parsed body of a response object.

    The answer is the text and refusals of its `message` items; `reasoning` items and commentary before a
    final answer are left out. `status` is read before the text. Raises ModelError as `read_completion` does.
    Source of the fields: https://platform.openai.com/docs/api-reference/responses/object.
    """
    if not isinstance(body, Mapping):
        raise ModelError("unreadable", f"{place}: the reply is JSON, but no object")
    error = error_in_success(body, place)
    if error is not None:
        raise error
    if not isinstance(body.get("output"), list):
        raise ModelError("unreadable", f"{place}: the reply has no output; does this address speak the Responses API?")
    status = body.get("status")
    _check_status(status, body, place)
    usage = body.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    reply = partial(
        finished_reply,
        _text_of(body["output"]),
        status if isinstance(status, str) else None,
        body.get("model"),
        (count(usage.get("input_tokens")), count(usage.get("output_tokens"))),
        place,
    )
    if status == "incomplete":
        raise _incomplete(body, reply, place)
    return reply()


def _check_status(status: Any, body: Mapping[str, Any], place: str) -> None:
    if status in (None, "completed", "incomplete"):
        return
    if status == "failed":
        raise ModelError("server_error", f"{place}: the reply failed: {complaint_of(body).message or 'no message'}")
    raise ModelError("unreadable", f"{place}: the reply is not there yet (status {one_line(str(status))})")


def _incomplete(body: Mapping[str, Any], reply: Callable[[], Reply], place: str) -> ModelError:
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if reason == "content_filter":
        return ModelError("filtered", f"{place}: the reply was withheld by a content filter")
    why = f"(incomplete: {one_line(str(reason))})"
    if reason == "max_output_tokens":
        return cut_off(f"{place}: the reply was cut off at the token limit {why}", reply)
    return ModelError("truncated", f"{place}: the reply was cut off {why}")


def _text_of(output: list[Any]) -> str:
    messages = [item for item in output if isinstance(item, Mapping) and item.get("type") == "message"]
    final = [item for item in messages if item.get("phase") != "commentary"] or messages
    return "".join(part_text(part) for item in final for part in _parts(item))


def _parts(item: Mapping[str, Any]) -> Iterator[Any]:
    content = item.get("content")
    return iter(content if isinstance(content, list) else ())
