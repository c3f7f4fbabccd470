"""Secrets: nothing shows them but `reveal`."""

from __future__ import annotations

import html
import json
import pickle
import re
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from pytest_simpleqa.secret import MASK, Environment, Secret, without_secrets

KEY = "sk-planted-0123456789"


@dataclass
class Holder:
    """Something with a key in it."""

    key: Secret


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        "{}".format,
        "{!r:>40}".format,
        lambda secret: f"{secret}",
        lambda secret: "%s %r" % (secret, secret),  # noqa: UP031 - the old way must be safe as well
        lambda secret: repr([secret, {"key": secret}, (secret,)]),
        lambda secret: repr(Holder(secret)),
        lambda secret: json.dumps(secret, default=str),
        lambda secret: json.dumps(secret, default=repr),
        lambda secret: repr(ValueError(secret)),
    ],
)
def test_no_way_of_printing_shows_it(show: Callable[[Any], str]) -> None:
    """Whatever turns a secret into text turns it into a mask."""
    assert KEY not in show(Secret(KEY))


def test_a_traceback_does_not_show_it() -> None:
    """An exception that carries a secret is safe to print, with locals too."""
    key = Secret(KEY)
    try:
        raise ValueError(key)
    except ValueError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    assert KEY not in "".join(shown.format())
    assert key.reveal() == KEY


def test_it_is_neither_pickled_nor_copied_into_text() -> None:
    """A secret crosses processes by the environment alone."""
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Secret(KEY))
    with pytest.raises(TypeError):
        json.dumps(Secret(KEY))


def test_foreign_text_is_masked_everywhere() -> None:
    """Each occurrence in what a service says is cut out; other text stays."""
    assert Secret(KEY).redact(f"bad key {KEY}, I said {KEY}!") == f"bad key {MASK}, I said {MASK}!"
    assert Secret(KEY).redact("fine") == "fine"


HARD = "ab+c/d==&'%\\\"<>-efg+h/0123456789+/xyz"


@pytest.mark.parametrize(
    "written",
    [
        lambda key: key,
        json.dumps,
        lambda key: json.dumps(key).replace("/", "\\/"),
        lambda key: json.dumps(json.dumps(key).replace("/", "\\/")),
        lambda key: json.dumps(key).replace("+", "\\u002B").replace("&", "\\u0026"),
        lambda key: "".join(char if char.isalnum() else f"\\u{ord(char):04x}" for char in key),
        quote,
        lambda key: quote(key, safe=""),
        lambda key: re.sub("%..", lambda code: code[0].lower(), quote(key, safe="")),
        lambda key: quote(quote(key, safe=""), safe=""),
        html.escape,
        lambda key: html.escape(html.escape(key)),
        lambda key: html.escape(key).replace("+", "&#43;").replace("/", "&#x2F;").replace("=", "&equals;"),
        ascii,
        lambda key: repr(key.encode()),
    ],
)
@pytest.mark.parametrize("key", [HARD, "Zm9v+YmFy/YmF6cXV4/0123+abc==", KEY])
def test_no_way_of_escaping_hides_it(key: str, written: Callable[[str], str]) -> None:
    """JSON of any service, a URL, a page: what stands for the secret is masked, and nothing beside it."""
    said = Secret(key).redact(f"<{written(key)}>")
    assert said.strip("<>\"'b\\") == MASK


@pytest.mark.parametrize("key", ["Zm9v+YmFy/YmF6cXV4/0123+abc==", KEY])
def test_a_secret_that_is_cut_short_is_masked(key: str) -> None:
    """Nine characters of its beginning are too many to show, plain or escaped; eight are shared by many keys."""
    escaped = key.replace("+", "\\u002B").replace("/", "\\/").replace("-", "\\u002d")
    for text in (key, escaped):
        for length in range(1, len(text)):
            said = Secret(key).redact(f"bad key {text[:length]}")
            assert len(said) <= len("bad key ") + 8 * 6, said
    assert Secret(key).redact(f"bad key {key[:9]}…") == f"bad key {MASK}…"
    assert Secret(key).redact(key[:8]) == key[:8]


def test_a_text_without_it_costs_next_to_nothing() -> None:
    """A megabyte that holds no part of the secret, or only parts, is looked through in linear time."""
    began = time.perf_counter()
    for text in ("x\\n%2B&amp;" * 100_000, "planted" * 150_000, KEY * 5_000, "sk-plant" * 100_000):
        Secret(KEY).redact(text)
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("value", ["", "x", "abc"])
def test_a_key_that_is_no_key_masks_nothing(value: str) -> None:
    """A placeholder such as `x` would else blot out the text."""
    assert Secret(value).redact("abc xyz") == "abc xyz"


def test_secrets_compare_by_value() -> None:
    """Equal keys are equal, empty ones false, and none equals its text."""
    assert Secret(KEY) == Secret(KEY) != Secret("other")
    assert Secret(KEY) != KEY
    assert len({Secret(KEY), Secret(KEY)}) == 1
    assert (bool(Secret("")), bool(Secret(KEY))) == (False, True)


def test_an_environment_is_read_but_not_shown() -> None:
    """Variables are found by name, and their values stand in no text about the mapping."""
    environment = Environment({"OPENAI_API_KEY": KEY})
    assert (environment["OPENAI_API_KEY"], environment.get("NONE"), list(environment)) == (
        KEY,
        None,
        ["OPENAI_API_KEY"],
    )
    assert KEY not in f"{environment} {environment!r}"


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("--answer-llm-param=api_key=sk-1", "--answer-llm-param=api_key=***"),
        ("API_KEY=sk-1", "API_KEY=***"),
        ("access_token=abc def", "access_token=***"),
        ("max_tokens=100", "max_tokens=100"),
        ("--simpleqa-db=postgresql://me:word@host/db", "--simpleqa-db=postgresql://me:***@host/db"),
        ("--simpleqa-gate=accuracy >= 0.4", "--simpleqa-gate=accuracy >= 0.4"),
    ],
)
def test_an_argument_is_kept_without_its_secrets(typed: str, shown: str) -> None:
    """What is written down of a command line has no password and no key in it, and is else as it was."""
    assert without_secrets(typed) == shown
