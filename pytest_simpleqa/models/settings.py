"""The JSON of a connection variable, checked: its keys and types, with errors that never show a value."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from ..errors import SpecError
from ..secret import Secret

_CAPS = ("no_temperature", "no_max_tokens")
_TEXTS = ("provider", "api", "api_key", "token", "model", "base_url", "api_version")
_APIS = ("chat", "responses")
_NOT_OURS = ("authorization", "api-key", "host", "content-type", "content-length")
"""Headers that a connection cannot set: the key and the body own them."""
RESERVED_PARAMS = ("model", "messages", "stream")
"""What a request parameter cannot set: the spec, the prompt and the way of reading own them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a connection variable may say; None and empty where it does not."""

    provider: str | None = None
    api: str | None = None
    """`chat` or `responses`."""
    api_key: str | None = field(default=None, repr=False)
    token: str | None = None
    """`python:package.module:attribute`: what fetches a bearer token; in place of a key."""
    model: str | None = None
    base_url: str | None = field(default=None, repr=False)
    api_version: str | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    """What else every request carries: a workspace, a guardrail."""
    params: dict[str, Any] = field(default_factory=dict)
    caps: dict[str, bool] = field(default_factory=dict)
    max_in_flight: int | None = None


def read_settings(variable: str, text: Secret) -> Settings:
    """Return the settings in the JSON `text` of `variable`; raise SpecError naming the key and what was wanted."""
    settings = _read(variable, text)
    _check_values(variable, settings)
    return _trimmed(settings)


def _read(variable: str, text: Secret) -> Settings:
    """Return the settings as they stand; no caller sees the plain values, whose locals a traceback may show."""
    # By hand, not by pydantic: loading that for eight keys costs each process 0.2 s before its first request.
    given = _object(variable, text.reveal().strip())
    names = [item.name for item in fields(Settings)]
    for key, value in given.items():
        if key not in names:
            hint = _hint(key, names)
            raise SpecError(f"{variable}: it has an unknown key{hint}; known are {', '.join(names)}")
        if value is not None and (wanted := _wanted(key, value)):
            raise SpecError(f"{variable}: {wanted}")
    return Settings(**{key: value for key, value in given.items() if value is not None})


def check_params(params: Mapping[str, Any], where: str, owned: Collection[str] = RESERVED_PARAMS) -> None:
    """Raise SpecError, headed by `where`, if a request parameter would replace the model, the prompt or the reading."""
    for name in owned:
        if name in params:
            raise SpecError(f"{where}: {name!r} cannot be set as a request parameter; the model stands in the spec")


def _object(variable: str, text: str) -> dict[str, Any]:
    """Return the JSON object in `text`; errors tell the place and never the text."""
    try:
        given = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        # `from None`: the cause would print the value.
        raise SpecError(f'{variable}: it is no JSON ({place}); wanted {{"api_key": "...", ...}}') from None
    except (ValueError, RecursionError):
        raise SpecError(f'{variable}: it is no JSON; wanted {{"api_key": "...", ...}}') from None
    if not isinstance(given, dict):
        raise SpecError(f'{variable}: wanted a JSON object such as {{"api_key": "...", "model": "..."}}')
    return given


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


def _wanted(key: str, value: Any) -> str | None:
    """Return what was wanted of `key`, where `value` is of another type."""
    if key in _TEXTS:
        return None if isinstance(value, str) else f"{key!r}: wanted text in quotes"
    if key == "max_in_flight":
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return None if is_whole else f"{key!r}: wanted a whole number"
    if not isinstance(value, dict):
        return f"{key!r}: wanted an object in braces"
    if key == "caps":
        odd = next((name for name, on in value.items() if not isinstance(on, bool)), None)
        return None if odd is None else f"'caps.{odd}': wanted true or false"
    if key == "headers":
        is_plain = all(isinstance(text, str) and (text + name).isprintable() for name, text in value.items())
        return None if is_plain else "'headers': wanted texts on one line"
    return None


def _check_values(variable: str, settings: Settings) -> None:
    if settings.api and settings.api not in _APIS:
        raise SpecError(f"{variable}: 'api': wanted {' or '.join(_APIS)}")
    if settings.token and not settings.token.startswith("python:"):
        raise SpecError(f"{variable}: 'token': wanted python:package.module:attribute, which fetches it, not the token")
    for name in settings.headers:
        if name.strip().lower() in _NOT_OURS:
            raise SpecError(f"{variable}: 'headers': {name!r} is set by 'api_key', 'token' and the request itself")
    for cap in settings.caps:
        if cap not in _CAPS:
            raise SpecError(f"{variable}: 'caps' has an unknown key{_hint(cap, _CAPS)}; known are {', '.join(_CAPS)}")
    if settings.max_in_flight is not None and settings.max_in_flight < 1:
        raise SpecError(f"{variable}: 'max_in_flight' must be a whole number from 1")
    check_params(settings.params, f"{variable}: 'params'")


def _trimmed(settings: Settings) -> Settings:
    """Return the settings with outer blanks gone, and empty texts as None."""
    texts: dict[str, Any] = {name: (getattr(settings, name) or "").strip() or None for name in _TEXTS}
    return replace(settings, **texts)


def _hint(key: str, names: tuple[str, ...] | list[str]) -> str:
    """Return the unknown `key` with its nearest match; one that resembles nothing may be a secret: not shown."""
    close = get_close_matches(key.lower(), names, n=1)
    return f" {key!r} (did you mean {close[0]!r}?)" if close else ""
