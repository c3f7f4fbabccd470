"""Tests of tokens: when they are fetched, how long they are kept, and what is said where there is none."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError
from pytest_simpleqa.models.credentials import Token


def jwt(seconds: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + seconds}).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{claims}.sig"


def sequence(*values: Any) -> Callable[[], Any]:
    waiting = list(values)

    def fetch() -> Any:
        value = waiting.pop(0)
        if isinstance(value, BaseException):
            raise value
        return value

    return fetch


class Locked:
    """Looks like a credential's token, and is none."""

    @property
    def token(self) -> str:
        raise RuntimeError("locked")


async def tokens_of(fetch: Callable[[], Any], times: int) -> list[str]:
    token = Token("python:m:f", fetch)
    try:
        return [(await token.headers("u", b""))["Authorization"].removeprefix("Bearer ") for _ in range(times)]
    finally:
        token.close()


def test_a_token_is_kept_until_shortly_before_its_end() -> None:
    """Its own `exp`, or the `expires_on` beside it, says when; one that says nothing is kept some minutes."""
    spent, fresh_jwt = jwt(-5), jwt(3600)
    assert asyncio.run(tokens_of(sequence(fresh_jwt, "b"), 3)) == [fresh_jwt] * 3
    assert asyncio.run(tokens_of(sequence(spent, spent), 1)) == [spent]
    fresh = SimpleNamespace(token="a", expires_on=int(time.time()) + 3600)
    assert asyncio.run(tokens_of(sequence(fresh, "b"), 3)) == ["a", "a", "a"]
    assert asyncio.run(tokens_of(sequence("plain", "b"), 3)) == ["plain"] * 3


def test_many_calls_fetch_one_token() -> None:
    """Calls that want a token at the same time wait for one fetch."""
    token = Token("python:m:f", sequence("one"))

    async def many() -> set[str]:
        proofs = await asyncio.gather(*(token.headers("u", b"") for _ in range(50)))
        token.close()
        return {proof["Authorization"] for proof in proofs}

    assert asyncio.run(many()) == {"Bearer one"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "NoneType"),
        ("  ", "no token"),
        ("a\nb", "no token"),
        (ValueError("no login"), "ValueError: no login"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError(), "CancelledError"),
        (Locked(), "RuntimeError: locked"),
    ],
)
def test_a_fetch_that_gives_nothing_is_told(value: Any, words: str) -> None:
    """The function is named; the first failure stops the run, as a refused key does."""
    with pytest.raises(ModelError, match=words) as caught:
        asyncio.run(tokens_of(sequence(value), 1))
    assert caught.value.kind == "unauthorized"
    assert "python:m:f" in caught.value.message


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_an_async_fetch_that_wants_to_end_the_process_is_told(error: BaseException) -> None:
    """What an async function raises is the fault of the token, whatever it is."""

    async def fetch() -> str:
        raise error

    with pytest.raises(ModelError, match=type(error).__name__) as caught:
        asyncio.run(tokens_of(fetch, 1))
    assert caught.value.kind == "unauthorized"


def test_a_failure_to_refresh_may_pass() -> None:
    """Once a token has come, a later fetch that fails is a fault of the connection, which is tried again."""
    spent = SimpleNamespace(token="planted-1", expires_on=time.time() - 5)
    token = Token("python:m:f", sequence(spent, ValueError("busy: planted-1"), "two"))

    async def calls() -> str:
        await token.headers("u", b"")
        token._fresh_until = 0.0  # as a minute later
        with pytest.raises(ModelError, match=r"busy: \*\*\*") as caught:
            await token.headers("u", b"")
        assert caught.value.kind == "connection"
        proof = await token.headers("u", b"")
        token.close()
        return proof["Authorization"]

    assert asyncio.run(calls()) == "Bearer two"
