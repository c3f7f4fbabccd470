"""The request parameters of one model: what goes out, and what the service has refused."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from ..errors import ModelError
from ..records import Reply

_CAPPED = {
    "no_temperature": ("temperature",),
    "no_max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens"),
}
_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_UNSUPPORTED = re.compile(
    r"unsupported|not (?:be )?(?:supported|permitted|allowed|available|recogni[sz]ed|compatible)|unrecogni[sz]ed"
    r"|unknown|unexpected|deprecated|does ?n[o']t support|incompatible|cannot (?:both )?be (?:used|set|specified)"
    r"|extra (?:inputs?|fields?)|only the default|may only be|only \S+ is (?:allowed|supported)",
    re.IGNORECASE,
)
_OUT_OF_RANGE = re.compile(
    r"above_max|below_min|invalid_type|out_of_range"
    r"|out of range|too (?:large|small|high|low|long)|at (?:most|least)|(?:must|should) be|less than|greater than"
    r"|below (?:the )?min|above (?:the )?max|expected a value",
    re.IGNORECASE,
)
_OTHER_VALUES = re.compile(r"supported values (?:are|include)|(?:expected|must be) one of", re.IGNORECASE)
"""Said of a parameter that is taken, with another value: `reasoning.effort` must not silently be the default."""


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
        """The request body up to the prompt."""
        body = json.dumps({"model": self.model, **self.values})
        return f"{body[:-1]}, ".encode()

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
        if _OTHER_VALUES.search(said):
            return None
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


class Tuning:
    """The request parameters of one model over all its calls, which learn from what the service refuses.

    Each set of parameters that calls give beside their prompts learns by itself.
    """

    def __init__(self, model: str, own: Mapping[str, Any], caps: Mapping[str, bool]) -> None:
        self._model = model
        self._own = own
        self._caps = caps
        self._sets = {"": Parameters.for_model(model, own, caps)}

    @property
    def own(self) -> Parameters:
        """What calls send that give no parameters."""
        return self._sets[""]

    def kind_of(self, params: Mapping[str, Any], check: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> str:
        """Return the name of the set of calls that give `params`, which lie under the model's own.

        A set that is new is first put through `check`, which may raise SpecError, and gives back what is sent.
        """
        kind = json.dumps(params, sort_keys=True, default=repr) if params else ""
        if kind not in self._sets:
            self._sets[kind] = Parameters.for_model(self._model, {**check(params), **self._own}, self._caps)
        return kind

    async def ask(self, kind: str, send: Callable[[Parameters], Awaitable[Reply]]) -> Reply:
        """Return the reply to `send`, called once more for each parameter that is refused for the first time."""
        calls = 0
        while True:
            sent = self._sets[kind]
            started = time.perf_counter()
            try:
                reply = await send(sent)
            except ModelError as error:
                calls += error.calls
                if self._adapt(error, sent, kind):
                    continue
                error.calls = calls
                if error.partial is not None:
                    latency_s = time.perf_counter() - started
                    error.partial = replace(error.partial, calls=calls, latency_s=latency_s, notes=sent.notes)
                raise
            latency_s = time.perf_counter() - started
            return replace(reply, calls=calls + reply.calls, latency_s=latency_s, notes=sent.notes)

    def _adapt(self, error: ModelError, sent: Parameters, kind: str) -> bool:
        """Leave out the parameter that `error` refuses; return whether another request is worth it."""
        name = sent.refused_by(error)
        if name is None:
            return False
        # Another call may have met the same refusal while this one was under way.
        if name in self._sets[kind].values:
            self._sets[kind] = self._sets[kind].without(name)
        return True
