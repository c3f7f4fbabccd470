"""What shows a service who asks: a key, or a token that is fetched and fetched again."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..errors import ModelError
from ..secret import Secret
from .importing import error_line
from .threads import DaemonThreads

_UNSAID_LIFE_S = 300.0
"""How long a token is used that does not say when it expires; what refreshes itself is cheap to ask again."""
_MARGIN_S = 120.0
"""So long before its end a token is fetched anew: a request on its way must not outlive it."""


class Credential(Protocol):
    """What puts the proof into a request's headers."""

    async def headers(self, url: str, body: bytes) -> Mapping[str, str]:
        """Return the headers that prove a POST of `body` to `url`; raise ModelError where there are none."""
        ...

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Return whether, after a 401 to the headers `refused`, there are others worth one more request."""
        ...

    def redact(self, text: str) -> str:
        """Return `text` with every secret masked."""
        ...

    def close(self) -> None:
        """Give back threads; nothing that is left behind keeps the process alive."""
        ...


class Key:
    """A key that stays the same; an empty one where the service wants none."""

    def __init__(self, secret: Secret, header: str = "Authorization", scheme: str = "Bearer ") -> None:
        self._secret = secret
        self._header = header
        self._scheme = scheme

    async def headers(self, url: str, body: bytes) -> Mapping[str, str]:
        return {self._header: f"{self._scheme}{self._secret.reveal()}"} if self._secret else {}

    async def renew(self, refused: Mapping[str, str]) -> bool:
        return False

    def redact(self, text: str) -> str:
        return self._secret.redact(text)

    def close(self) -> None: ...


class Token:
    """A bearer token that `fetch` gives, kept until shortly before its end and fetched anew after a 401.

    `fetch` is plain (called in a thread) or async, and returns the token, or something with `token` and
    `expires_on` (Unix time), as the credentials of azure-identity do; of a JWT the claim `exp` counts.
    """

    def __init__(self, name: str, fetch: Callable[[], Any]) -> None:
        self._name = name
        self._fetch = fetch
        self._threads = DaemonThreads(1)
        self._fetching: asyncio.Lock | None = None
        self._current: Secret | None = None
        self._earlier: Secret | None = None
        self._fresh_until = 0.0

    async def headers(self, url: str, body: bytes) -> Mapping[str, str]:
        while self._current is None or time.time() >= self._fresh_until:
            await self._replace(self._current)
        return {"Authorization": f"Bearer {self._current.reveal()}"}

    async def renew(self, refused: Mapping[str, str]) -> bool:
        sent = Secret(refused.get("Authorization", "").removeprefix("Bearer "))
        if self._current == sent:  # else another call has fetched one meanwhile
            await self._replace(sent)
        return self._current != sent

    def redact(self, text: str) -> str:
        for secret in (self._current, self._earlier):
            text = secret.redact(text) if secret else text
        return text

    def close(self) -> None:
        self._threads.close()
        self._fetching = None  # it belongs to the loop that ends

    async def _replace(self, stale: Secret | None) -> None:
        """Fetch a token in place of `stale`; of many calls that want it one fetches."""
        self._fetching = self._fetching or asyncio.Lock()
        async with self._fetching:
            is_current = self._current is not None and time.time() < self._fresh_until
            if self._current == stale or not is_current:
                token, until = await self._fetched()
                self._current, self._earlier, self._fresh_until = token, self._current, until

    async def _fetched(self) -> tuple[Secret, float]:
        """Return a token and until when it is used; raise ModelError for whatever the user's code raises."""
        try:
            return self._read(await self._call())
        except (ModelError, GeneratorExit):
            raise
        except BaseException as error:  # a login that is told to exit fails as any other
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise
            # Once one has come, a failure may pass; before that every request would fail as this one does.
            kind = "unauthorized" if self._current is None else "connection"
            message = self.redact(f"no token from {self._name}: {error_line(error)}")
            raise ModelError(kind, message) from None

    async def _call(self) -> Any:
        if inspect.iscoroutinefunction(self._fetch):
            return await self._fetch()
        value = await self._threads.run(self._fetch)
        return await value if inspect.isawaitable(value) else value

    def _read(self, value: Any) -> tuple[Secret, float]:
        """Return the token in what was fetched, and until when it is used."""
        text = getattr(value, "token", value)
        if not isinstance(text, str) or not text.strip() or not (text.isascii() and text.strip().isprintable()):
            found = "no token" if isinstance(text, str) else type(text).__name__
            raise ModelError("unauthorized", f"{self._name} returned {found}; wanted a token as text")
        text, now = text.strip(), time.time()
        expires = getattr(value, "expires_on", None) or _expiry_in(text)
        if not isinstance(expires, int | float):
            return Secret(text), now + _UNSAID_LIFE_S
        life = max(0.0, expires - now)
        return Secret(text), expires - min(_MARGIN_S, life / 10) if life else now + 1.0


def _expiry_in(token: str) -> float | None:
    """Return the `exp` of a JSON Web Token (RFC 7519, section 4.1.4), or None where it is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    expires = claims.get("exp") if isinstance(claims, dict) else None
    return expires if isinstance(expires, int | float) else None
