"""The request parameters of one model: what goes out, and what the service has refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from ..errors import ModelError

_CAPPED = {"no_temperature": ("temperature",), "no_max_tokens": ("max_tokens", "max_completion_tokens")}
_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_UNSUPPORTED = re.compile(
    r"unsupported|not (?:be )?(?:supported|permitted|allowed|available|recogni[sz]ed|compatible)|unrecogni[sz]ed"
    r"|unknown|unexpected|deprecated|does ?n[o']t support|incompatible|cannot (?:both )?be (?:used|set|specified)"
    r"|extra (?:inputs?|fields?)|only the default|may only be|only \S+ is (?:allowed|supported)",
    re.IGNORECASE,
)
_OUT_OF_RANGE = re.compile(
    r"above_max|below_min|invalid_type|out_of_range"
    r"|out of range|too (?:large|small|high|low|long)|at (?:most|least)|(?:must|should) be|less than|greater than",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Parameters:
    """Request parameters as one model takes them."""

    model: str
    values: Mapping[str, Any]
    """What is sent now."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """What the service has refused, in order, each with a word on what stands in for it, or an empty one."""

    @classmethod
    def for_model(cls, model: str, values: Mapping[str, Any], caps: Mapping[str, bool]) -> Self:
        """Return `values` without those that are None or that `caps` rules out."""
        left_out = {name for cap, names in _CAPPED.items() if caps.get(cap) for name in names}
        kept = {name: value for name, value in values.items() if value is not None and name not in left_out}
        return cls(model, kept)

    @cached_property
    def head(self) -> bytes:
        """The request body up to the messages."""
        body = json.dumps({"model": self.model, **self.values})
        return f'{body[:-1]}, "messages": '.encode()

    @cached_property
    def dropped(self) -> tuple[str, ...]:
        """The refused names, each with what stands in for it."""
        return tuple(f"{name} ({what})" if what else name for name, what in self.refused.items())

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader of a reply should know."""
        return tuple(f"dropped parameter: {name}" for name in self.dropped)

    def without(self, name: str) -> Self:
        """Return the parameters without `name`.

        `max_tokens` and `max_completion_tokens` first stand in for each other.
        """
        values = {key: value for key, value in self.values.items() if key != name}
        other, what = _OTHER_NAME.get(name), ""
        if other and other not in values and other not in self.refused:
            values[other], what = self.values[name], f"sent as {other}"
        return type(self)(self.model, values, {**self.refused, name: what})

    def refused_by(self, error: ModelError) -> str | None:
        """Return the parameter that `error` says the service does not take, or None.

        A value out of range is the user's mistake and stays an error.
        """
        if error.kind != "bad_request" or error.status not in (400, 422):
            return None
        said = error.message
        if not _UNSUPPORTED.search(said) and _OUT_OF_RANGE.search(said):
            return None
        if error.param is not None:
            named = re.split(r"[.\[]", error.param.removeprefix("body."))[0]
            if named in self.values:
                return named
        if not _UNSUPPORTED.search(said):
            return None
        places = {name: re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", said) for name in self.values}
        found = {name: place.start() for name, place in places.items() if place}
        return min(found, key=found.__getitem__, default=None)
