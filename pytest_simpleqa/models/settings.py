"""The JSON of a connection variable, checked: its keys and types, with errors that never show a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, ClassVar

from ..errors import SpecError
from ..secret import Secret

_CAPS = ("no_temperature", "no_max_tokens")
_WANTED = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "dict_type": "an object in braces",
    "dataclass_type": "an object in braces",
}
RESERVED_PARAMS = ("model", "messages", "stream")
"""What a request parameter cannot set: the spec, the prompt and the way of reading own them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a connection variable may say; None and empty where it does not."""

    # Read by pydantic: unknown keys and values of another type are mistakes.
    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid", "strict": True}

    provider: str | None = None
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    base_url: str | None = field(default=None, repr=False)
    api_version: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    caps: dict[str, bool] = field(default_factory=dict)
    max_in_flight: int | None = None


def read_settings(variable: str, text: Secret) -> Settings:
    """Return the settings in the JSON `text` of `variable`; raise SpecError naming the key and what was wanted."""
    from pydantic import TypeAdapter, ValidationError

    try:
        settings = TypeAdapter(Settings).validate_json(text.reveal().strip())
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        # `from None`: the cause would print the value.
        raise SpecError(f"{variable}: {_complaint(first['type'], first['loc'], first['msg'])}") from None
    _check_values(variable, settings)
    return _trimmed(settings)


def check_params(params: Mapping[str, Any], where: str) -> None:
    """Raise SpecError, headed by `where`, if a request parameter would replace the model, the prompt or the reading."""
    for name in RESERVED_PARAMS:
        if name in params:
            raise SpecError(f"{where}: {name!r} cannot be set as a request parameter; the model stands in the spec")


def _check_values(variable: str, settings: Settings) -> None:
    for cap in settings.caps:
        if cap not in _CAPS:
            raise SpecError(f"{variable}: 'caps' has an unknown key{_hint(cap, _CAPS)}; known are {', '.join(_CAPS)}")
    if settings.max_in_flight is not None and settings.max_in_flight < 1:
        raise SpecError(f"{variable}: 'max_in_flight' must be a whole number from 1")
    check_params(settings.params, f"{variable}: 'params'")


def _trimmed(settings: Settings) -> Settings:
    """Return the settings with outer blanks gone, and empty texts as None."""
    names = ("provider", "api_key", "model", "base_url", "api_version")
    texts: dict[str, Any] = {name: (getattr(settings, name) or "").strip() or None for name in names}
    return replace(settings, **texts)


def _complaint(kind: str, loc: tuple[int | str, ...], message: str) -> str:
    if kind == "json_invalid":
        position = re.search(r"line \d+ column \d+", message)
        return "it is no JSON" + (f" ({position[0]})" if position else "") + '; wanted {"api_key": "...", ...}'
    if not loc:
        return 'wanted a JSON object such as {"api_key": "...", "model": "..."}'
    key = str(loc[0])
    if kind == "unexpected_keyword_argument":
        names = [item.name for item in fields(Settings)]
        return f"it has an unknown key{_hint(key, names)}; known are {', '.join(names)}"
    return f"{'.'.join(map(str, loc))!r}: wanted {_WANTED.get(kind, 'another type')}"


def _hint(key: str, names: tuple[str, ...] | list[str]) -> str:
    """Return the unknown `key` with its nearest match; one that resembles nothing may be a secret: not shown."""
    close = get_close_matches(key.lower(), names, n=1)
    return f" {key!r} (did you mean {close[0]!r}?)" if close else ""
