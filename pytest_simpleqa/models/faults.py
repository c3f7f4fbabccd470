"""What a service's refusal means: HTTP status and error body become a ModelError."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import ModelError

MAX_MESSAGE_CHARS = 300

_QUOTA = {
    "insufficient_quota",
    "quota_exceeded",
    "credit_balance_exhausted",
    "credit_balance_too_low",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_funds",
    "account_deactivated",
    "arrearage",
    "payment_required",
}
_QUOTA_TEXT = re.compile(
    r"credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds)|limit: 0\b", re.IGNORECASE
)
_FILTERED = {
    "content_filter",
    "content_filtered",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "data_inspection_failed",
    "datainspectionfailed",
    "moderation_blocked",
    "invalid_prompt",
    "bio_policy",
    "misalignment_policy_violation",
}
_BAD_KEY = {"api_key_invalid", "unrecognizedclientexception", "expiredtokenexception"}
"""Gemini says it with 400, AWS with 403."""
_OVERFLOW = {"context_length_exceeded", "string_above_max_length", "request_too_large", "exceed_context_size_error"}
_OVERFLOW_TEXT = re.compile(
    r"context[ _-](?:length|window|size)|prompt is too long|input (?:is )?too long|too many (?:input )?tokens"
    r"|maximum (?:input|prompt|request) (?:length|size)|input (?:length|tokens?) (?:exceeds?|should be)",
    re.IGNORECASE,
)

_STATUS_OF_WORD = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "rate_limited": 429,
    "too_many_requests": 429,
    "resource_exhausted": 429,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "unauthenticated": 401,
    "unauthorized": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "forbidden": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "not_found": 404,
    "deploymentnotfound": 404,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "api_error": 500,
    "overloaded_error": 529,
    "overloaded": 529,
    "service_unavailable": 503,
    "unavailable": 503,
    "timeout": 504,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "bad_request": 400,
    "unsupported_parameter": 400,
    "unsupported_value": 400,
}
"""What services write in place of a number, where an error comes in a 200; the vaguest words stand last."""

_MINIMAX = {1002: 429, 1004: 401, 1008: 402, 1039: 413, 2013: 400, 2049: 401}
"""`base_resp.status_code` of MiniMax, whose errors come in a 200; 1026 and 1027 are its content filter."""

_KIND_OF_STATUS = {
    400: "bad_request",
    401: "unauthorized",
    402: "quota",
    403: "forbidden",
    404: "not_found",
    405: "not_found",
    407: "unauthorized",
    408: "server_error",
    409: "server_error",
    410: "not_found",
    413: "refused_request",
    425: "server_error",
    429: "rate_limited",
}


@dataclass(frozen=True, slots=True)
class Complaint:
    """What an error body says, whatever its shape."""

    message: str = ""
    words: frozenset[str] = field(default_factory=frozenset)
    """The machine-readable words (code, type, inner code), lower case."""
    status: int | None = None
    """The HTTP status that the body itself claims."""
    param: str | None = None
    """The request parameter that the body names."""
    retry_after: float | None = None
    """Seconds that the body asks us to wait."""


def read_error(status: int, body: str, where: str, retry_after: float | None = None) -> ModelError:
    """Return the ModelError for a reply with `status` and the text `body` from the host `where`."""
    try:
        said = complaint_of(json.loads(body))
    except (ValueError, RecursionError):
        said = Complaint(text_of_page(body))
    return as_model_error(said, status, f"HTTP {status} from {where}", retry_after)


def as_model_error(said: Complaint, status: int, place: str, retry_after: float | None = None) -> ModelError:
    """Return the ModelError of a complaint that came with `status`; its message is one line, headed by `place`."""
    message = one_line(said.message) or ", ".join(sorted(said.words)) or "no message"
    kind = _kind_of(status, said)
    wait = said.retry_after if retry_after is None else retry_after
    return ModelError(kind, f"{place}: {message}", status=status, retry_after=wait, param=said.param)


def error_in_success(body: Mapping[str, Any], place: str) -> ModelError | None:
    """Return the error that a 200 carries in its body, or None; its `error.code` counts as the status."""
    resp = body.get("base_resp")
    if isinstance(resp, Mapping) and resp.get("status_code") not in (None, 0) and not body.get("choices"):
        return _minimax_error(resp, place)
    if not body.get("error"):
        return None
    said = complaint_of(body)
    status = said.status or next((number for word, number in _STATUS_OF_WORD.items() if word in said.words), None)
    if status is None and not said.words & (_QUOTA | _FILTERED | _OVERFLOW):
        return ModelError("unreadable", f"{place}: {one_line(said.message) or 'an error without a message'}")
    return as_model_error(said, status or 400, place)


def complaint_of(data: Any) -> Complaint:
    """Return what the parsed error body `data` says; services differ in its shape."""
    if isinstance(data, list) and data:  # Gemini wraps the object in a list
        data = data[0]
    if not isinstance(data, Mapping):
        return Complaint(data if isinstance(data, str) else "")
    error = data.get("error")
    if isinstance(error, str):  # {"error": "model not found"}
        return Complaint(error, _words(data), _status_in(data))
    if isinstance(error, Mapping):
        data = error
    message, param = _message_and_param(data)
    return Complaint(message, _words(data), _status_in(data), param, _delay_in(data))


def one_line(text: str) -> str:
    """Return `text` on one line, blanks and control characters collapsed, at most 300 characters."""
    # Cut before the collapse too: an error page may be megabytes long.
    start = text[: 20 * MAX_MESSAGE_CHARS]
    line = " ".join("".join(char if char.isprintable() else " " for char in start).split())
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"


_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,500})", re.IGNORECASE)


def text_of_page(body: str) -> str:
    """Return what a body that is no JSON says: an error page's title, else its beginning."""
    body = body[:100_000]
    title = _TITLE.search(body)
    return title[1] if title else body


def _kind_of(status: int, said: Complaint) -> str:
    if said.words & _QUOTA or (status in (400, 403, 429) and _QUOTA_TEXT.search(said.message)):
        return "quota"
    if said.words & _FILTERED:
        return "filtered"
    if said.words & _BAD_KEY:
        return "unauthorized"
    if status in (400, 413, 422) and (said.words & _OVERFLOW or _OVERFLOW_TEXT.search(said.message)):
        return "refused_request"
    if 300 <= status < 400:
        return "not_found"
    return _KIND_OF_STATUS.get(status) or ("server_error" if status >= 500 else "bad_request")


def _minimax_error(resp: Mapping[str, Any], place: str) -> ModelError:
    code, message = resp["status_code"], str(resp.get("status_msg") or "")
    words = frozenset({"content_filter"}) if code in (1026, 1027) else frozenset()
    status = _MINIMAX.get(code, 500) if isinstance(code, int) else 500
    return as_model_error(Complaint(message, words), status, place)


def _message_and_param(data: Mapping[str, Any]) -> tuple[str, str | None]:
    param = data.get("param")
    message = data.get("message") or data.get("Message") or data.get("detail") or data.get("msg") or ""
    if isinstance(message, Mapping):  # Mistral puts FastAPI's detail under `message`
        message = message.get("detail") or json.dumps(message)
    if isinstance(message, list):  # FastAPI: [{"loc": ["body", "temperature"], "msg": "..."}]
        first = next((item for item in message if isinstance(item, Mapping)), {})
        loc = [str(part) for part in first.get("loc") or () if part != "body"]
        message, param = str(first.get("msg") or message), ".".join(loc) or param
        message = f"{param}: {message}" if param else message
    return str(message), param if isinstance(param, str) and param else None


def _words(data: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(word.lower() for word in _raw_words(data))


def _raw_words(data: Mapping[str, Any]) -> Iterator[str]:
    for key in ("code", "type", "__type", "status", "reason"):
        value = data.get(key)
        if isinstance(value, str) and not value.isdigit():
            yield value
    inner = data.get("innererror") or data.get("inner_error")
    if isinstance(inner, Mapping):  # Azure: the reason stands one level deeper
        yield from _raw_words(inner)
    metadata = data.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("reasons"):  # OpenRouter: flagged by moderation
        yield "content_filter"
    for detail in _details(data):
        if isinstance(detail.get("reason"), str):  # google.rpc.ErrorInfo
            yield detail["reason"]
        if "PerDay" in json.dumps(detail.get("violations")):  # google.rpc.QuotaFailure: no minute's wait helps
            yield "quota_exceeded"


def _details(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the typed details of an error of Google's."""
    details = data.get("details")
    return [each for each in details if isinstance(each, Mapping)] if isinstance(details, list) else []


def _delay_in(data: Mapping[str, Any]) -> float | None:
    """Return the seconds of a google.rpc.RetryInfo, `{"retryDelay": "34.07s"}`."""
    delays = (re.fullmatch(r"(\d{1,6}(?:\.\d{1,9})?)s", str(each.get("retryDelay"))) for each in _details(data))
    return next((float(delay[1]) for delay in delays if delay), None)


def _status_in(data: Mapping[str, Any]) -> int | None:
    for key in ("code", "status", "status_code"):
        value = data.get(key)
        text = str(value) if isinstance(value, int | str) else ""
        if len(text) == 3 and text.isascii() and text.isdigit() and text >= "400":
            return int(text)
    return None
