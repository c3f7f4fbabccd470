"""Where a spec leads: the environment's word on an alias, resolved to one address, key and model."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ..errors import SpecError
from ..secret import Secret
from .providers import AZURE_API_VERSION, PROVIDERS, Provider
from .settings import Settings, read_settings

_PREFIXES = ("SIMPLEQA_", "FLOWCRAFT_", "FLOWCRAFT_TEST_")
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_REGION = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]+)+", re.ASCII)
_OLLAMA_PORT = 11434
_BY_RESPONSES = "-responses"
"""Ends an alias that means a known provider's Responses API: `openai-responses`."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One address, key and model, ready to be asked."""

    alias: str
    provider: str
    base_url: str
    """With scheme, without a trailing slash; `/chat/completions` goes behind it."""
    model: str
    """On Azure the name of the deployment."""
    api_key: Secret = field(default=Secret(""))
    """Empty where the service wants none."""
    api_version: str | None = None
    """Azure only."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Request parameters that the connection brings along."""
    caps: Mapping[str, bool] = field(default_factory=dict)
    """What the model cannot take: `no_temperature`, `no_max_tokens`."""
    max_in_flight: int | None = None
    """The most requests at once in the whole run; None where there is no bound."""
    token: bool = False
    """Whether `api_key` is a bearer token where the provider would else want a key header (Azure)."""
    token_source: str | None = None
    """`python:package.module:attribute` that fetches a bearer token; there is no `api_key` then."""
    key_from: str | None = None
    """Where the key or token came from, for messages: a variable, or a key of the JSON in one."""
    api: str = "chat"
    """`chat` or `responses`: which of OpenAI's two APIs is asked there."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What else every request carries."""
    signed_for: str | None = None
    """The AWS region for which requests are signed in place of a key."""


def resolve_connection(spec: str, environment: Mapping[str, str], known: Collection[str] = ()) -> Connection:
    """Return the connection that `<alias>[:<model>]` names in `environment`.

    `SIMPLEQA_<ALIAS>`, `FLOWCRAFT_<ALIAS>` and `FLOWCRAFT_TEST_<ALIAS>` are looked up in this order
    for a JSON object; without one the alias must be a known provider. `known` are further aliases
    worth suggesting. Raises SpecError, naming the variable to set and never its value.
    """
    alias, _, model = (part.strip() for part in spec.strip().partition(":"))
    if not _ALIAS.fullmatch(alias):
        raise SpecError(f"model spec {_shown(spec)}: wanted <alias>[:<model>], as in openai:gpt-4o")
    found = _variable_of(alias, environment)
    settings = read_settings(found, Secret(environment[found])) if found else Settings()
    provider, api = _api_of(_provider_of(alias, settings, found, environment, known), settings)
    # A provider without a table entry is reached by its base_url alone, as OpenAI's API is.
    entry = PROVIDERS.get(provider, Provider(provider, None, needs_key=False))
    key, key_from = _key_of(entry, settings, environment, found)
    return Connection(
        alias=alias,
        provider=provider,
        base_url=_address_of(entry, settings, environment, found, api),
        model=model or _model_of(alias, settings, found),
        api_key=key,
        api_version=_version_of(entry, settings, environment),
        params=dict(settings.params),
        caps=dict(settings.caps),
        max_in_flight=settings.max_in_flight,
        token=bool(settings.token) or (key_from is not None and key_from == entry.token_variable),
        token_source=settings.token,
        key_from=key_from,
        api=api,
        headers=dict(settings.headers),
        signed_for=_region_of(entry, environment) if entry.signs and not key_from else None,
    )


def clean_base_url(url: str, where: str) -> str:
    """Return `url` without blanks, trailing slashes and a trailing `/chat/completions` or `/responses`.

    Raises SpecError, headed by `where` (the variable), for anything that is no http(s) address or
    that carries a user name or password. The value is not shown: it may hold a key.
    """
    wanted = f"{where}: the base URL is no http:// or https:// address with a host"
    try:
        parts = urlsplit("".join(url.split()))
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise SpecError(wanted) from None
    if parts.scheme not in ("http", "https") or not host:
        raise SpecError(wanted)
    if "@" in parts.netloc:
        raise SpecError(f"{where}: the base URL holds a user name or password; put the key into 'api_key'")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/responses").rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _variable_of(alias: str, environment: Mapping[str, str]) -> str | None:
    names = (prefix + alias.upper().replace("-", "_") for prefix in _PREFIXES)
    return next((name for name in names if environment.get(name, "").strip()), None)


def _provider_of(
    alias: str, settings: Settings, found: str | None, environment: Mapping[str, str], known: Collection[str]
) -> str:
    provider = (settings.provider or alias).strip().lower()
    if provider.removesuffix(_BY_RESPONSES) in PROVIDERS or settings.base_url:
        return provider
    if found:
        hint = _did_you_mean(provider, PROVIDERS)
        raise SpecError(
            f"{found}: the provider {provider!r} is not known{hint}; known are {', '.join(PROVIDERS)}; "
            "any other needs a 'base_url'"
        )
    variable = _PREFIXES[0] + alias.upper().replace("-", "_")
    hint = _did_you_mean(alias.lower(), {*PROVIDERS, *known, *_aliases_in(environment)})
    raise SpecError(
        f"the model alias {alias!r} is not known{hint}; set {variable} to JSON such as "
        '{"base_url": "https://host/v1", "api_key": "...", "model": "..."}'
        f", or use a known provider: {', '.join(PROVIDERS)}"
    )


def _api_of(provider: str, settings: Settings) -> tuple[str, str]:
    """Return the provider and which of the two APIs is meant: `openai-responses` is OpenAI's second one."""
    name = provider.removesuffix(_BY_RESPONSES)
    if name != provider and name in PROVIDERS:
        return name, settings.api or "responses"
    return provider, settings.api or "chat"


def _aliases_in(environment: Mapping[str, str]) -> set[str]:
    """Return the aliases that have a JSON object in the environment."""
    return {
        name.removeprefix(prefix).lower()
        for name, value in environment.items()
        for prefix in _PREFIXES
        if name.startswith(prefix) and value.lstrip().startswith("{")
    }


def _did_you_mean(word: str, among: Collection[str]) -> str:
    close = get_close_matches(word, sorted(among), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _model_of(alias: str, settings: Settings, found: str | None) -> str:
    if settings.model:
        return settings.model
    example = {"openai": "openai:gpt-4o", "azure": "azure:<deployment>", "qwen": "qwen:qwen-max"}
    where = f", or add a 'model' to {found}" if found else ""
    raise SpecError(
        f"the model spec {alias!r} names no model: write {example.get(alias.lower(), f'{alias}:<model>')}{where}"
    )


def _key_of(
    entry: Provider, settings: Settings, environment: Mapping[str, str], found: str | None
) -> tuple[Secret, str | None]:
    """Return the key and where it came from; an empty key where a token is fetched, or none is wanted."""
    if settings.token:
        return Secret(""), f"{found}: 'token' ({settings.token})"
    if settings.api_key:
        where = f"{found}: 'api_key'"
        return _checked_key(settings.api_key, where), where
    variables = ((entry.token_variable,) if entry.token_variable else ()) + entry.key_variables
    for variable in variables:
        value = environment.get(variable, "").strip()
        if value:
            return _checked_key(value, variable), variable
    if entry.signs and find_spec("botocore"):
        return Secret(""), None
    if entry.needs_key:
        also = f", or put an 'api_key' into {found}" if found else ""
        also += ', or pip install "pytest-simpleqa[bedrock]" to sign with AWS credentials' if entry.signs else ""
        raise SpecError(f"no key for {entry.name}: set {' or '.join(entry.key_variables)}{also}")
    return Secret(""), None


def _checked_key(value: str, where: str) -> Secret:
    # A header cannot carry line ends or other alphabets; the client would fail with the key in its message.
    if not value.isascii() or not value.isprintable():
        raise SpecError(f"{where} holds a character that cannot stand in a key (a line end, a quote mark, an accent?)")
    return Secret(value)


def _address_of(
    entry: Provider, settings: Settings, environment: Mapping[str, str], found: str | None, api: str
) -> str:
    if settings.base_url:
        return clean_base_url(settings.base_url, f"{found}: 'base_url'")
    override = environment.get(entry.url_variable, "").strip() if entry.url_variable else ""
    if override and entry.url_variable:
        return _overridden(entry, override, entry.url_variable)
    if not entry.needs_address:
        return ""
    known = (entry.responses_url if api == "responses" else None) or entry.base_url
    if known and entry.region_variables:
        return known.replace("{region}", _region_of(entry, environment))
    if known:
        return known
    also = f", or put a 'base_url' into {found}" if found else ""
    raise SpecError(f"no address for {entry.name}: set {entry.url_variable}{also}")


def _region_of(entry: Provider, environment: Mapping[str, str]) -> str:
    values = (environment.get(name, "").strip() for name in entry.region_variables)
    region = next((value for value in values if value), None)
    if region is None:
        raise SpecError(f"no region for {entry.name}: set {' or '.join(entry.region_variables)}, as in us-east-1")
    if not _REGION.fullmatch(region):
        raise SpecError(f"{' or '.join(entry.region_variables)}: {region!r} is no region; wanted one as us-east-1")
    return region


def _overridden(entry: Provider, url: str, variable: str) -> str:
    """Return a local server's address from its variable, which often holds a bare host (`0.0.0.0:11434`)."""
    if entry.needs_key:
        return clean_base_url(url, variable)
    bare = "://" not in url
    parts = urlsplit(clean_base_url(f"http://{url}" if bare else url, variable))
    netloc = parts.netloc
    if entry.name == "ollama" and bare and parts.port is None:
        netloc = f"{netloc}:{_OLLAMA_PORT}"
    if parts.hostname == "0.0.0.0":  # noqa: S104  what a server listens on is no address to call
        netloc = netloc.replace("0.0.0.0", "127.0.0.1", 1)  # noqa: S104  likewise
    return urlunsplit(parts._replace(netloc=netloc, path=parts.path or "/v1"))


def _version_of(entry: Provider, settings: Settings, environment: Mapping[str, str]) -> str | None:
    if entry.version_variable is None:
        return settings.api_version
    return settings.api_version or environment.get(entry.version_variable, "").strip() or AZURE_API_VERSION


def _shown(spec: str) -> str:
    return repr(spec if len(spec) <= 80 else spec[:79] + "…")
