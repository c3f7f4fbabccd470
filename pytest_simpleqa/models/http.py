"""One endpoint over one pooled HTTP client: a prompt goes out, a Reply or a ModelError comes back."""

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
from .advice import with_advice
from .apis import APIS
from .connection import Connection
from .credentials import Credential, Key
from .faults import one_line, read_error, text_of_page
from .parameters import Parameters, Tuning
from .providers import AZURE_V1
from .reply import plain_text
from .settings import check_params

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

MAX_BODY_BYTES = 16 * 1024 * 1024
"""A longer reply counts as `truncated`: two million characters fit, a runaway stream does not fill the memory."""

_MAX_ERROR_BYTES = 256 * 1024
_CONNECT_TIMEOUT_S = 15.0


class HttpModel:
    """A model behind an endpoint for chat completions or responses, as OpenAI's; Azure's addresses too.

    `params` go over those of the connection; a parameter whose value is None is left out. `credential` stands in
    for the connection's key. The
    client is opened by the first `complete`, on the loop that runs it, and asks as often at once as
    it is called: the engine bounds that, and puts the deadline around it.
    """

    is_service = True

    def __init__(self, connection: Connection, params: Mapping[str, Any], credential: Credential | None = None) -> None:
        self._api = APIS[connection.api]
        own = {**connection.params, **params}
        check_params(own, f"the parameters of {connection.alias}", self._api.owned)
        self.connection = connection
        self.max_in_flight = connection.max_in_flight
        self.url = endpoint_of(connection)
        self.host = urlsplit(self.url).netloc
        self._credential = credential or _key_of(connection)
        sent = {**self._api.defaults, **self._api.named(own)}
        self._tuning = Tuning(connection.model, sent, connection.caps)
        self._client: aiohttp.ClientSession | None = None
        self._target: URL | None = None
        self._headers: Mapping[str, str] = {}
        self._options: dict[str, Any] = {}

    async def complete(self, prompt: Prompt) -> Reply:
        """Return the reply to `prompt`; raise ModelError where there is no usable one.

        One request, and one more for each request parameter that the service refuses for the first
        time. Messages and texts hold neither the key nor half a surrogate pair.
        """
        return await self.complete_with(prompt, {})

    async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        """Do as `complete` does, with `params` under the model's own; raises SpecError where one is unfit."""
        tail = self._api.tail(prompt)

        async def send(parameters: Parameters) -> Reply:
            return await self._ask(parameters.head + tail)

        return await self._tuning.ask(self._tuning.kind_of(params, self._checked), send)

    async def close(self) -> None:
        """Close the client; called once, on the loop that `complete` ran on."""
        self._credential.close()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of this model, without secrets."""
        connection, parameters = self.connection, self._tuning.own
        described = {
            "provider": connection.provider,
            "model": connection.model,
            "base_url_host": self.host,
            "params": dict(parameters.values),
            "dropped_params": list(parameters.dropped),
        }
        if connection.api_version and connection.provider == "azure":
            described["api_version"] = connection.api_version
        if connection.api != "chat":
            described["api"] = connection.api
        redacted: dict[str, Any] = json.loads(self._credential.redact(json.dumps(described)))
        return redacted

    def _checked(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        check_params(params, f"the parameters of a call to {self.connection.alias}", self._api.owned)
        return self._api.named(params)

    async def _ask(self, body: bytes) -> Reply:
        """Return the reply to one request; to two where the first met a token that had run out."""
        try:
            proof = await self._credential.headers(self.url, body)
            try:
                reply = await self._exchange(body, proof)
            except ModelError as error:
                if error.kind != "unauthorized" or not await self._credential.renew(proof):
                    raise
                proof = await self._credential.headers(self.url, body)
                reply = replace(await self._exchange(body, proof), calls=2)
        except ModelError as error:
            # Again, for a key that only the reply's decoding has put together; every message leaves through here.
            error.message = plain_text(self._credential.redact(error.message))
            error.args = (error.message,)
            error.partial = error.partial and self._redacted(error.partial)
            raise
        return self._redacted(reply)

    def _redacted(self, reply: Reply) -> Reply:
        redact = self._credential.redact
        return replace(
            reply,
            text=redact(reply.text),
            raw=reply.raw and redact(reply.raw),
            model=reply.model and redact(reply.model),
            finish_reason=reply.finish_reason and redact(reply.finish_reason),
            extra=reply.extra and json.loads(redact(json.dumps(dict(reply.extra)))),
        )

    async def _exchange(self, body: bytes, proof: Mapping[str, str]) -> Reply:
        try:
            status, text = await self._post(body, proof)
            return self._api.read(_parsed(text, status, self.host), f"HTTP {status} from {self.host}")
        except ModelError as error:
            raise with_advice(error, self.connection, self.url) from None

    async def _post(self, body: bytes, proof: Mapping[str, str]) -> tuple[int, str]:
        """Return status and text of a reply below 300; raise ModelError for all else."""
        import aiohttp

        client = self._client or self._open()
        assert self._target is not None
        headers = {**self._headers, **proof}
        try:
            async with client.post(
                self._target, data=body, headers=headers, allow_redirects=False, **self._options
            ) as response:
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
            target = urlsplit(self._credential.redact(headers.get("Location", "")))
            to = f"to {target.netloc}{target.path}" if target.netloc else "elsewhere"
            message = one_line(f"HTTP {status} from {self.host}: it redirects {to}; set the base URL to the final one")
            return ModelError("not_found", message, status=status)
        retry_after = parse_retry_after(headers, time.time(), status)
        return read_error(status, self._as_text(data), self.host, retry_after)

    def _as_text(self, data: bytes) -> str:
        # Masked before anything is cut short: half a key would not be found again.
        return self._credential.redact(data.decode("utf-8", "replace"))

    def _connection_error(self, error: Exception) -> ModelError:
        import aiohttp

        if isinstance(error, aiohttp.ClientHttpProxyError):
            return read_error(error.status, self._credential.redact(error.message), f"the proxy before {self.host}")
        said = one_line(self._credential.redact(str(error)))
        name = type(error).__name__
        return ModelError("connection", f"no reply from {self.host}: {name}" + (f": {said}" if said else ""))

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp
        from yarl import URL

        self._target = URL(self.url, encoded=True)
        # No headers of the session's own: aiohttp would show those, the key among them, to a proxy.
        self._headers, self._options = _request_options(self.connection, self.url)
        self._client = aiohttp.ClientSession(
            # The engine bounds what is in flight; a smaller pool would only make its requests wait.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        )
        return self._client


def endpoint_of(connection: Connection) -> str:
    """Return the full address that is asked; a query in the base URL is kept."""
    scheme, netloc, path, query, _ = urlsplit(connection.base_url)
    if connection.provider == "azure":
        path, query = _azure(connection, path, query)
    return urlunsplit((scheme, netloc, f"{path}{APIS[connection.api].path}", query, ""))


def _azure(connection: Connection, path: str, query: str) -> tuple[str, str]:
    """Return path and query of an Azure endpoint: the v1 API, or a deployment of a dated API version.

    https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle: v1 wants no date, takes the deployment
    for the model, and alone has a stable Responses API.
    """
    version = connection.api_version or ""
    is_v1 = path.endswith("/openai/v1")
    if is_v1 or version in AZURE_V1 or connection.api == "responses":
        before = path.partition("/openai")[0]
        preview = "api-version=preview" if version == "preview" else ""
        return f"{before}/openai/v1", query or preview
    if "/deployments/" not in path:
        path = f"{path.removesuffix('/openai')}/openai/deployments/{quote(connection.model, safe='')}"
    return path, urlencode({"api-version": version, **dict(parse_qsl(query))})


def _key_of(connection: Connection) -> Key:
    if connection.provider == "azure" and not connection.token:
        return Key(connection.api_key, "api-key", "")
    return Key(connection.api_key)


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


def _request_options(connection: Connection, url: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the headers of every request, and aiohttp's arguments for the proxy where there is one."""
    own = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "pytest-simpleqa"}
    headers = {**own, **connection.headers}
    found = _proxy_for(url)
    if found is None:
        return headers, {}
    proxy, wanted = found
    if url.startswith("https:"):
        return headers, {"proxy": proxy, "proxy_headers": wanted}  # it sees no more than CONNECT
    return {**headers, **wanted}, {"proxy": proxy}


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
