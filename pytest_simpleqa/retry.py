"""When a failed request is worth another one, and how long to wait before it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from enum import Enum
from random import Random

MAX_WAIT_S = 120.0
"""No service makes a question wait longer than this, whatever its headers say."""

_FIRST_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 30.0


class Action(Enum):
    """What a failure means for the row and for the run."""

    RETRY = "retry"
    """May pass: try again inside the question's deadline."""
    ROW = "row"
    """This row's own: no second request, the run goes on."""
    STOP_IF_NOTHING_WORKED = "stop_if_nothing_worked"
    """The row's own once something has succeeded; before that the run is set up wrongly."""
    STOP = "stop"
    """No further request can succeed: one message in place of thousands of failures."""


_ACTIONS = {
    **dict.fromkeys(("timeout", "connection", "rate_limited", "server_error", "unreadable", "empty"), Action.RETRY),
    **dict.fromkeys(("truncated", "filtered", "refused_request", "declined", "exception", "missing"), Action.ROW),
    **dict.fromkeys(("not_found", "forbidden", "bad_request"), Action.STOP_IF_NOTHING_WORKED),
    **dict.fromkeys(("unauthorized", "quota"), Action.STOP),
}


def action_for(kind: str) -> Action:
    """Return what a `ModelError.kind` asks for; a kind that is not in the table is the row's own."""
    return _ACTIONS.get(kind, Action.ROW)


def backoff(attempt: int, random: Random) -> float:
    """Return the seconds to wait after failure number `attempt` (from 1): exponential with full jitter, at most 30.

    The mean is 0.5 s after the first failure and doubles with each further one. Full jitter, because
    the requests that failed together must not come back together.
    """
    exponent = min(max(attempt, 1) - 1, 10)
    return random.uniform(0.0, min(_MAX_BACKOFF_S, _FIRST_BACKOFF_S * 2**exponent))


def parse_retry_after(headers: Mapping[str, str], now: float, status: int | None = None) -> float | None:
    """Return the seconds that the service asks us to wait, from 0 to 120, or None where it does not say.

    `now` is Unix time, for the HTTP-date form. Without `retry-after-ms` and `Retry-After` the
    `x-ratelimit-reset-*` headers count, but only where `status` is 429: on other replies they
    merely describe the quota.
    """
    found = {name.lower(): value.strip() for name, value in headers.items()}
    wait = _milliseconds(found.get("retry-after-ms", ""))
    if wait is None:
        wait = _seconds_or_date(found.get("retry-after", ""), now)
    if wait is None and status == 429:
        wait = _rate_limit_reset(found)
    return None if wait is None else min(wait, MAX_WAIT_S)


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{0,15})?|\.\d{1,15}", re.ASCII)
_DURATION = re.compile(rf"(?:(?:{_NUMBER.pattern})(?:ms|[smhd]))+", re.ASCII)
_DURATION_PART = re.compile(rf"({_NUMBER.pattern})(ms|[smhd])", re.ASCII)


def _duration(text: str) -> float | None:
    """Return the seconds of `20`, `1.5`, `12ms` or `6m0s`; None for anything else, signs and infinities included."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if _DURATION.fullmatch(text):
        return math.fsum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(text))
    return None


def _milliseconds(text: str) -> float | None:
    return float(text) / 1000 if _NUMBER.fullmatch(text) else None


def _seconds_or_date(text: str, now: float) -> float | None:
    seconds = _duration(text)
    if seconds is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _rate_limit_reset(headers: Mapping[str, str]) -> float | None:
    """Return when the exhausted limit is free again; where none says it is exhausted, the earliest reset."""
    exhausted: list[float] = []
    others: list[float] = []
    for what in ("requests", "tokens"):
        wait = _duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        if wait is not None:
            (exhausted if headers.get(f"x-ratelimit-remaining-{what}") == "0" else others).append(wait)
    return max(exhausted, default=min(others, default=None))
