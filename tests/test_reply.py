"""Tests of reading a completion: text, think blocks, finish reasons, and what is unusable."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError
from pytest_simpleqa.models.reply import cut_thinking, plain_text, read_completion

from .fake_server import completion


def failure(body: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        read_completion(body)
    return caught.value


def test_a_completion_becomes_a_reply() -> None:
    """Text, finish reason, returned model and tokens are taken over; raw only where it differs."""
    reply = read_completion(completion("Paris", model="m-2026"))
    assert (reply.text, reply.raw, reply.finish_reason, reply.model) == ("Paris", None, "stop", "m-2026")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.calls) == (11, 3, 1)


def test_text_stays_as_it_came() -> None:
    """Outer blanks and odd characters of an answer are the answer's."""
    assert read_completion(completion("  a\x00b\n")).text == "  a\x00b\n"


@pytest.mark.parametrize(
    ("text", "rest", "left_open"),
    [
        ("<think>1987? or 1999?</think>1987", "1987", False),
        ("<THINK>a</Think>\n\n b ", "b", False),
        ("<thinking>a</thinking >b", "b", False),
        ("a <think>x</think> b <think>y</think> c", "a  b  c", False),
        ("the reasoning</think>\n1987", "1987", False),
        ("<think>a</think>1987</think>", "1987", False),
        ("<think>a <think>b</think> c</think> 1987", "1987", False),
        ("<think>a", "", True),
        ("1987 <think>or", "1987", True),
        ("<think>only</think>", "", False),
        ("a < b, <thin>k</thin>", "a < b, <thin>k</thin>", False),
        ("no tag", "no tag", False),
    ],
)
def test_think_blocks_are_cut(text: str, rest: str, left_open: bool) -> None:
    """What a model thinks is not what it answers, whatever the tags look like."""
    assert cut_thinking(text) == (rest, left_open)


@pytest.mark.parametrize("piece", ["<think>", "</think>", "<think>a</think>", "x</think> ", "<think ", "<"])
def test_cutting_is_linear(piece: str) -> None:
    """Half a million hostile characters take no noticeable time."""
    started = time.perf_counter()
    cut_thinking(piece * (500_000 // len(piece)))
    assert time.perf_counter() - started < 2


def test_the_raw_text_is_kept_beside_the_cut_one() -> None:
    """A think block leaves the answer and stays in `raw`."""
    reply = read_completion(completion("<think>x</think>1987"))
    assert (reply.text, reply.raw) == ("1987", "<think>x</think>1987")


@pytest.mark.parametrize(
    ("text", "kind"),
    [("<think>x", "truncated"), ("<think>x</think> ", "empty"), ("", "empty"), (" \n", "empty"), (None, "empty")],
)
def test_a_reply_without_an_answer_is_an_error(text: str | None, kind: str) -> None:
    """An open think block means truncated; nothing but thinking, or nothing at all, means empty."""
    assert failure(completion(text)).kind == kind


@pytest.mark.parametrize(
    ("finish_reason", "kind"),
    [("length", "truncated"), ("max_tokens", "truncated"), ("content_filter", "filtered"), ("error", "server_error")],
)
def test_the_finish_reason_is_read_before_the_text(finish_reason: str, kind: str) -> None:
    """A text that was cut off or withheld is no answer, however good it looks."""
    assert failure(completion("A", finish_reason=finish_reason)).kind == kind


@pytest.mark.parametrize(
    ("content", "partial"), [("Paris is", "Paris is"), ("<think>x</think>Pa", "Pa"), ("<think>x", None), ("", None)]
)
def test_a_cut_keeps_what_had_come(content: str, partial: str | None) -> None:
    """Whoever set the limit may use what came before it, without the thinking; nothing is no answer."""
    found = failure(completion(content, finish_reason="length")).partial
    assert (found and found.text) == partial


@pytest.mark.parametrize("finish_reason", [None, "stop", "eos", "tool_calls", "STOP"])
def test_other_finish_reasons_are_fine(finish_reason: str | None) -> None:
    """Services invent words; only those that mean a cut or a filter matter."""
    assert read_completion(completion("A", finish_reason=finish_reason)).text == "A"


def test_a_refusal_field_is_the_answer() -> None:
    """A refusal is something the model said, so that the judge can call it not attempted."""
    assert read_completion(completion(None, refusal="I can't help with that.")).text == "I can't help with that."
    assert read_completion(completion("Paris", refusal=None)).text == "Paris"


def test_tool_calls_need_no_text() -> None:
    """What tools a model calls stands beside its text, which may be empty; text that JSON cannot hold is mended."""
    calls = [{"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"query": "\\ud83c"}'}}]
    reply = read_completion(completion(None, finish_reason="tool_calls", tool_calls=calls))
    assert (reply.text, reply.extra, reply.prompt_tokens) == ("", {"tool_calls": calls}, 11)
    assert read_completion(completion("Let me see.", tool_calls=calls)).text == "Let me see."
    odd = read_completion(completion(None, tool_calls=[{"id": "\ud83c"}])).extra
    assert odd == {"tool_calls": [{"id": "\ufffd"}]}
    assert failure(completion(None, tool_calls=[])).kind == "empty"


def test_reasoning_fields_are_no_answer() -> None:
    """`reasoning_content` beside an empty content does not stand in for it."""
    assert failure(completion("", reasoning_content="Paris, surely")).kind == "empty"
    assert read_completion(completion("Rome", reasoning="Paris?")).raw is None


def test_a_list_of_parts_is_joined() -> None:
    """Text parts make the answer; thinking parts are left out."""
    parts: Any = [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "Pa"}, "ris", 3, None]
    assert read_completion(completion(parts)).text == "Paris"
    assert read_completion(completion([{"type": "refusal", "refusal": "No."}])).text == "No."  # type: ignore[arg-type]  # parts, as some services send them


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "text",
        3,
        {},
        {"choices": None},
        {"choices": []},
        {"choices": ["x"]},
        {"choices": [{}]},
        {"choices": [{"message": "x"}]},
        {"choices": {"0": {}}},
        {"error": {"message": "odd"}},
        {"error": "odd"},
    ],
)
def test_an_unusable_success_is_unreadable(body: Any) -> None:
    """A 200 with nothing to read in it is an error that may pass, never an empty answer."""
    assert failure(body).kind == "unreadable"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "slow"}, "rate_limited"),
        ({"code": "429", "message": "slow"}, "rate_limited"),
        ({"code": 502, "message": "bad"}, "server_error"),
        ({"code": 401, "message": "key"}, "unauthorized"),
        ({"code": 402, "message": "money"}, "quota"),
        ({"code": "insufficient_quota", "message": "money"}, "quota"),
        ({"type": "overloaded_error", "message": "busy"}, "server_error"),
        ({"type": "invalid_request_error", "code": "model_not_found", "message": "?"}, "not_found"),
        ({"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}, "filtered"),
    ],
)
def test_an_error_object_in_a_success_counts_as_its_code(error: dict[str, Any], kind: str) -> None:
    """Gateways that report errors with status 200, at the top or in the choice, are understood."""
    assert failure({"error": error}).kind == kind
    assert failure({"choices": [{"error": error, "message": {"content": ""}}]}).kind == kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1002, "rate_limited"),
        (1004, "unauthorized"),
        (1008, "quota"),
        (1027, "filtered"),
        (2013, "bad_request"),
        (1000, "server_error"),
        ("?", "server_error"),
    ],
)
def test_minimax_errors_are_understood(code: Any, kind: str) -> None:
    """`base_resp` is MiniMax's way to say what went wrong in a 200."""
    assert failure({"choices": None, "base_resp": {"status_code": code, "status_msg": "why"}}).kind == kind
    assert read_completion({**completion("A"), "base_resp": {"status_code": 0}}).text == "A"


@pytest.mark.parametrize(
    "usage", [None, [], {}, {"prompt_tokens": None, "completion_tokens": "3"}, {"prompt_tokens": -1}]
)
def test_odd_usage_counts_as_zero(usage: Any) -> None:
    """Missing or malformed token counts never cost an answer."""
    reply = read_completion({**completion("A"), "usage": usage})
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("half \ud83c pair", "half � pair"),
        ("\udf89", "�"),
        ("\ud83c\udf89", "🎉"),
        ("café 日本 🎉", "café 日本 🎉"),
        ("a\x00\x1b[31m", "a\x00\x1b[31m"),
    ],
)
def test_text_can_be_written_as_utf8(text: str, plain: str) -> None:
    """Half a surrogate pair becomes U+FFFD, two halves become their character, all else stays."""
    assert plain_text(text) == plain
    plain_text(text).encode("utf-8")


def test_surrogates_are_made_safe_at_the_source() -> None:
    """Text, raw text and model name of a reply can all be encoded."""
    reply = read_completion(completion("<think>\ud800</think>\ud83c", model="m\ud800"))
    assert (reply.text, reply.raw, reply.model) == ("�", "<think>�</think>�", "m�")
