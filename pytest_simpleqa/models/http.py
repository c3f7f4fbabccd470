"""One chat endpoint over one pooled HTTP client: a prompt goes out, a Reply or a ModelError comes back."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from ..errors import ModelError
from ..records import Prompt, Reply
from ..retry import parse_retry_after
from .connection import Connection
from .faults import one_line, read_error, text_of_page
from .parameters import Parameters
from .reply import plain_text, read_completion
from .settings import check_params

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

MAX_BODY_BYTES = 16 * 1024 * 1024
"""A longer reply counts as `truncated`: two million characters fit, a runaway stream does not fill the memory."""

_MAX_ERROR_BYTES = 256 * 1024
_CONNECT_TIMEOUT_S = 15.0


class HttpModel:
    """A model behind an OpenAI-compatible chat endpoint; Azure's addresses too.

    `params` go over those of the connection; a parameter whose value is None is left out. The
    client is opened by the first `complete`, on the loop that runs it, and asks as often at once as
    it is called: the engine bounds that, and puts the deadline around it.
    """

    is_service = True

    def __init__(self, connection: Connection, params: Mapping[str, Any]) -> None:
        check_params(params, f"the parameters of {connection.alias}")
        self.connection = connection
        self.max_in_flight = connection.max_in_flight
        self.url = chat_url(connection)
        self.host = urlsplit(self.url).netloc
        self._secret = connection.api_key
        self._own = {**connection.params, **params}
        self._parameters = {"": Parameters.for_model(connection.model, self._own, connection.caps)}
        """By what a call gives beside its prompt, as JSON: each such set learns by itself what is refused."""
        self._client: aiohttp.ClientSession | None = None
        self._target: URL | None = None
        self._options: dict[str, Any] = {}

    async def complete(self, prompt: Prompt) -> Reply:
        """Return the reply to `prompt`; raise ModelError where there is no usable one.

        One request, and one more for each request parameter that the service refuses for the first
        time. Messages and texts hold neither the key nor half a surrogate pair.
        """
        return await self._complete(prompt, "")

    async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        """Do as `complete` does, with `params` under the model's own; raises SpecError where one is unfit."""
        kind = json.dumps(params, sort_keys=True, default=repr) if params else ""
        if kind not in self._parameters:
            check_params(params, f"the parameters of a call to {self.connection.alias}")
            both = {**params, **self._own}
            self._parameters[kind] = Parameters.for_model(self.connection.model, both, self.connection.caps)
        return await self._complete(prompt, kind)

    async def _complete(self, prompt: Prompt, kind: str) -> Reply:
        messages = _messages(prompt)
        calls = 0
        while True:
            calls += 1
            parameters = self._parameters[kind]
            started = time.perf_counter()
            try:
                reply = await self._ask(parameters.head + messages)
            except ModelError as error:
                if self._adapt(error, parameters, kind):
                    continue
                error.calls = calls
                raise
            return self._finish(reply, parameters.notes, calls, time.perf_counter() - started)

    async def close(self) -> None:
        """Close the client; called once, on the loop that `complete` ran on."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of this model, without secrets."""
        connection, parameters = self.connection, self._parameters[""]
        described = {
            "provider": connection.provider,
            "model": connection.model,
            "base_url_host": self.host,
            "params": dict(parameters.values),
            "dropped_params": list(parameters.dropped),
        }
        if connection.api_version and connection.provider == "azure":
            described["api_version"] = connection.api_version
        redacted: dict[str, Any] = json.loads(self._secret.redact(json.dumps(described)))
        return redacted

    def _adapt(self, error: ModelError, sent: Parameters, kind: str) -> bool:
        """Leave out the parameter that `error` refuses; return whether another request is worth it."""
        name = sent.refused_by(error)
        if name is None:
            return False
        # Another call may have met the same refusal while this one was under way.
        if name in self._parameters[kind].values:
            self._parameters[kind] = self._parameters[kind].without(name)
        return True

    def _finish(self, reply: Reply, notes: tuple[str, ...], calls: int, latency_s: float) -> Reply:
        redact = self._secret.redact
        return replace(
            reply,
            text=redact(reply.text),
            raw=reply.raw and redact(reply.raw),
            model=reply.model and redact(reply.model),
            finish_reason=reply.finish_reason and redact(reply.finish_reason),
            calls=calls,
            latency_s=latency_s,
            notes=notes,
        )

    async def _ask(self, body: bytes) -> Reply:
        try:
            status, text = await self._post(body)
            return read_completion(_parsed(text, status, self.host), f"HTTP {status} from {self.host}")
        except ModelError as error:
            # Again, for a key that only the reply's decoding has put together; every message leaves through here.
            error.message = plain_text(self._secret.redact(error.message))
            error.args = (error.message,)
            raise

    async def _post(self, body: bytes) -> tuple[int, str]:
        """Return status and text of a reply below 300; raise ModelError for all else."""
        import aiohttp

        client = self._client or self._open()
        assert self._target is not None
        try:
            async with client.post(self._target, data=body, allow_redirects=False, **self._options) as response:
                status = response.status
                data, whole = await _read(response, MAX_BODY_BYTES if status < 300 else _MAX_ERROR_BYTES)
                if status >= 300:
                    raise self._error(status, data, response.headers)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # ValueError: a host that no name server could know. `from None`: aiohttp's frames hold the key.
            raise self._connection_error(error) from None
        if not whole:
            raise ModelError("truncated", f"HTTP {status} from {self.host}: the reply passes {MAX_BODY_BYTES} bytes")
        return status, self._as_text(data)

    def _error(self, status: int, data: bytes, headers: Mapping[str, str]) -> ModelError:
        if 300 <= status < 400:
            # Not followed: the key would go to whatever host the reply names.
            target = urlsplit(self._secret.redact(headers.get("Location", "")))
            to = f"to {target.netloc}{target.path}" if target.netloc else "elsewhere"
            message = one_line(f"HTTP {status} from {self.host}: it redirects {to}; set the base URL to the final one")
            return ModelError("not_found", message, status=status)
        retry_after = parse_retry_after(headers, time.time(), status)
        return read_error(status, self._as_text(data), self.host, retry_after)

    def _as_text(self, data: bytes) -> str:
        # Masked before anything is cut short: half a key would not be found again.
        return self._secret.redact(data.decode("utf-8", "replace"))

    def _connection_error(self, error: Exception) -> ModelError:
        import aiohttp

        if isinstance(error, aiohttp.ClientHttpProxyError):
            return read_error(error.status, self._secret.redact(error.message), f"the proxy before {self.host}")
        said = one_line(self._secret.redact(str(error)))
        name = type(error).__name__
        return ModelError("connection", f"no reply from {self.host}: {name}" + (f": {said}" if said else ""))

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp
        from yarl import URL

        self._target = URL(self.url, encoded=True)
        # No headers of the session's own: aiohttp would show those, the key among them, to a proxy.
        self._options = _request_options(self.connection, self.url)
        self._client = aiohttp.ClientSession(
            # The engine bounds what is in flight; a smaller pool would only make its requests wait.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        )
        return self._client


def chat_url(connection: Connection) -> str:
    """Return the full address of the chat endpoint; a query in the base URL is kept."""
    scheme, netloc, path, query, _ = urlsplit(connection.base_url)
    if connection.provider == "azure" and not path.endswith("/openai/v1"):
        if "/deployments/" not in path:
            path = f"{path.removesuffix('/openai')}/openai/deployments/{quote(connection.model, safe='')}"
        query = urlencode({"api-version": connection.api_version or "", **dict(parse_qsl(query))})
    return urlunsplit((scheme, netloc, f"{path}/chat/completions", query, ""))


def _headers(connection: Connection) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "pytest-simpleqa"}
    key = connection.api_key.reveal()
    if key and connection.provider == "azure" and not connection.token:
        headers["api-key"] = key
    elif key:
        headers["Authorization"] = f"Bearer {key}"
    return headers


def _proxy_for(url: str) -> tuple[URL, dict[str, str]] | None:
    """Return the proxy for `url` by the usual variables, and the headers that it wants; None for this machine.

    Looked up once for each client: aiohttp's own `trust_env` does it again for every request.
    """
    from urllib.request import getproxies, proxy_bypass

    from yarl import URL

    parts = urlsplit(url)
    host, proxies = parts.hostname or "", getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    is_loopback = host in ("localhost", "::1") or host.startswith("127.")
    if not proxy or is_loopback or proxy_bypass(host):
        return None
    address = URL(proxy if "://" in proxy else f"http://{proxy}")
    if not address.user:
        return address, {}
    login = base64.b64encode(f"{address.user}:{address.password or ''}".encode()).decode("ascii")
    return address.with_user(None), {"Proxy-Authorization": f"Basic {login}"}


def _request_options(connection: Connection, url: str) -> dict[str, Any]:
    """Return aiohttp's arguments for every request: headers, and the proxy where there is one."""
    headers = _headers(connection)
    found = _proxy_for(url)
    if found is None:
        return {"headers": headers}
    proxy, wanted = found
    if url.startswith("https:"):
        return {"headers": headers, "proxy": proxy, "proxy_headers": wanted}  # it sees no more than CONNECT
    return {"headers": {**headers, **wanted}, "proxy": proxy}


def _messages(prompt: Prompt) -> bytes:
    """Return the end of the request body that holds `prompt`."""
    messages = [{"role": "user", "content": plain_text(prompt)}] if isinstance(prompt, str) else prompt
    return b"%b}" % json.dumps(messages).encode("ascii")


def _parsed(text: str, status: int, host: str) -> Any:
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        start = one_line(text_of_page(text[:2000]))[:120]
        raise ModelError("unreadable", f"HTTP {status} from {host}: the reply is no whole JSON: {start}") from None


async def _read(response: aiohttp.ClientResponse, limit: int) -> tuple[bytes, bool]:
    """Return the body, and whether it is whole: reading ends behind `limit` bytes."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            response.close()
            return b"".join(chunks)[:limit], False
    return b"".join(chunks), True
