"""Tests of the retry table, the back-off and the parser of waiting times."""

from __future__ import annotations

import re
from email.utils import formatdate
from random import Random

import pytest

from pytest_simpleqa.errors import ModelError
from pytest_simpleqa.retry import MAX_WAIT_S, Action, action_for, backoff, parse_retry_after

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        ("timeout", Action.RETRY),
        ("connection", Action.RETRY),
        ("rate_limited", Action.RETRY),
        ("server_error", Action.RETRY),
        ("unreadable", Action.RETRY),
        ("empty", Action.RETRY),
        ("truncated", Action.ROW),
        ("filtered", Action.ROW),
        ("refused_request", Action.ROW),
        ("not_found", Action.STOP_IF_NOTHING_WORKED),
        ("forbidden", Action.STOP_IF_NOTHING_WORKED),
        ("bad_request", Action.STOP_IF_NOTHING_WORKED),
        ("unauthorized", Action.STOP),
        ("quota", Action.STOP),
        ("never heard of", Action.ROW),
    ],
)
def test_each_kind_has_its_action(kind: str, action: Action) -> None:
    """What may pass is tried again, what cannot pass stops the run, all else is the row's own."""
    assert action_for(kind) is action


def test_the_table_of_the_docs_is_the_table_of_the_code() -> None:
    """Every kind that ModelError documents stands in the retry table, in the group it is documented in."""
    groups = {
        "tried again": Action.RETRY,
        "row's own": Action.ROW,
        "nothing has worked yet": Action.STOP_IF_NOTHING_WORKED,
        "at once": Action.STOP,
    }
    lines = [line for line in (ModelError.__doc__ or "").splitlines() if re.match(r" +\w+( \w+)* {4,}", line)]
    assert len(lines) == 4
    for line in lines:
        kinds, meaning = re.split(r" {4,}", line.strip())
        wanted = next(action for words, action in groups.items() if words in meaning)
        assert {action_for(kind) for kind in kinds.split()} == {wanted}


def test_backoff_doubles_with_full_jitter_up_to_a_cap() -> None:
    """Waits are spread evenly from 0 to a bound that starts at 1 s, doubles, and ends at 30 s."""
    for attempt, bound in [(1, 1.0), (2, 2.0), (5, 16.0), (6, 30.0), (1000, 30.0)]:
        random = Random(7)
        waits = [backoff(attempt, random) for _ in range(400)]
        assert 0 <= min(waits) < 0.1 * bound
        assert 0.9 * bound < max(waits) <= bound
        assert sum(waits) / 400 == pytest.approx(bound / 2, rel=0.15)


def test_backoff_is_decided_by_the_generator() -> None:
    """The same generator gives the same wait, so that a run can be repeated."""
    assert backoff(3, Random(1)) == backoff(3, Random(1))


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": ".5"}, 0.5),
        ({"Retry-After": "20s"}, 20.0),
        ({"Retry-After": "9999999"}, MAX_WAIT_S),
        ({"Retry-After-Ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "Retry-After": "7"}, 0.25),
        ({"retry-after-ms": "soon", "Retry-After": "7"}, 7.0),
        ({"Retry-After": formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"Retry-After": formatdate(NOW - 30, usegmt=True)}, 0.0),
        ({"Retry-After": formatdate(NOW + 9999, usegmt=True)}, MAX_WAIT_S),
        ({"Retry-After": "Sunday, 06-Nov-94 08:49:37 GMT"}, 0.0),
        ({"Retry-After": "Sun Nov  6 08:49:37 1994"}, 0.0),
    ],
)
def test_every_form_of_retry_after_is_read(headers: dict[str, str], wait: float) -> None:
    """Milliseconds, seconds, fractions, units and dates are understood, in any case, and capped."""
    assert parse_retry_after(headers, NOW) == pytest.approx(wait)


@pytest.mark.parametrize(
    "text", ["", "-1", "-0.5", "nan", "inf", "-inf", "1e3", "1_000", "soon", "١٢", "0x10", "32 Foo 2026", "9" * 400]
)
def test_a_retry_after_that_says_nothing_is_none(text: str) -> None:
    """Garbage, negative, infinite and huge values are no waiting time."""
    assert parse_retry_after({"Retry-After": text, "retry-after-ms": text}, NOW, 429) is None


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"x-ratelimit-reset-requests": "1s"}, 1.0),
        ({"X-RateLimit-Reset-Tokens": "6m0s"}, MAX_WAIT_S),
        ({"x-ratelimit-reset-tokens": "1m2.5s"}, 62.5),
        ({"x-ratelimit-reset-tokens": "12ms"}, 0.012),
        ({"x-ratelimit-reset-requests": "90s", "x-ratelimit-reset-tokens": "3s"}, 3.0),
        (
            {
                "x-ratelimit-reset-requests": "90s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "3s",
            },
            90.0,
        ),
        ({"x-ratelimit-reset-requests": "90s", "Retry-After": "4"}, 4.0),
        ({"x-ratelimit-reset-requests": "soon"}, None),
    ],
)
def test_rate_limit_headers_stand_in_on_a_429(headers: dict[str, str], wait: float | None) -> None:
    """Without Retry-After a 429 waits for the exhausted limit, else for the earliest reset."""
    assert parse_retry_after(headers, NOW, 429) == wait


def test_rate_limit_headers_of_other_replies_are_no_request_to_wait() -> None:
    """Services send them with every reply: only a 429 makes them a waiting time."""
    headers = {"x-ratelimit-reset-requests": "90s"}
    assert parse_retry_after(headers, NOW) is None
    assert parse_retry_after(headers, NOW, 500) is None
