"""What a person can do about a refusal: words to put behind the service's own."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ..errors import ModelError
from .connection import Connection

_WRONG_API = re.compile(
    r"only (?:supported|available) in v1/responses|not support the '?/?(?:openai)?/v1/chat/completions",
    re.IGNORECASE,
)
"""OpenAI and Bedrock, of models that the Responses API alone serves."""
_WRONG_VERSION = re.compile(r"api[ -]?version", re.IGNORECASE)


def with_advice(error: ModelError, connection: Connection, url: str) -> ModelError:
    """Return `error` with what to set or look at behind its message, where that is known."""
    hint = _hint(error, connection, url)
    if hint:
        error.message = f"{error.message.rstrip('.')}; {hint}"
        error.args = (error.message,)
    return error


def _hint(error: ModelError, connection: Connection, url: str) -> str:
    if error.kind in ("unauthorized", "forbidden"):
        return _about_the_key(connection)
    if error.kind not in ("not_found", "bad_request"):
        return ""
    if connection.api == "chat" and _WRONG_API.search(error.message):
        return f"ask it by the Responses API: {_responses_spec(connection)}"
    if connection.provider == "azure" and _WRONG_VERSION.search(error.message):
        return f"the API version is {connection.api_version}: set OPENAI_API_VERSION to a later date, or to v1"
    if error.kind == "bad_request":
        return ""
    if connection.provider == "azure":
        return _about_the_deployment(error, connection)
    return "" if "model" in error.message.lower() else f"asked was {urlsplit(url).path}: is the base URL right?"


def _about_the_key(connection: Connection) -> str:
    if connection.token_source and connection.key_from:
        return f"the token came from {connection.key_from}: is it for this service, and this service's audience?"
    if connection.token and connection.key_from:
        return f"the token in {connection.key_from} may have expired: set a new one, or a 'token' that is fetched"
    if connection.signed_for:
        return f"signed was with AWS credentials for {connection.signed_for}"
    return f"the key came from {connection.key_from}" if connection.key_from else ""


def _about_the_deployment(error: ModelError, connection: Connection) -> str:
    if "deployment" in error.message.lower():
        return f"on Azure the model is the name of a deployment, and {connection.model!r} is none of this resource"
    return f"look at the endpoint, the deployment {connection.model!r} and the API version {connection.api_version}"


def _responses_spec(connection: Connection) -> str:
    if connection.alias == connection.provider:
        return f"{connection.alias}-responses:{connection.model}"
    return f'add "api": "responses" to the connection {connection.alias}'
