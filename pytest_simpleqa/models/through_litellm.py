"""`litellm:`: any provider that the litellm package knows, asked in this process."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from ..errors import ModelError, SpecError
from ..records import Prompt, Reply
from ..retry import parse_retry_after
from ..secret import Secret
from .connection import Connection
from .faults import Complaint, as_model_error, complaint_of, one_line
from .importing import error_line
from .parameters import Parameters, Tuning
from .reply import plain_text, read_completion
from .settings import RESERVED_PARAMS, check_params
from .shapes import as_chat

_OWNED = (*RESERVED_PARAMS, "num_retries", "max_retries", "fallbacks")
"""The retries are the engine's, and another model's answer is none of this one's."""
_KINDS = {
    "Timeout": "timeout",
    "APIConnectionError": "connection",
    "ContextWindowExceededError": "refused_request",
    "ContentPolicyViolationError": "filtered",
    "BudgetExceededError": "quota",
}
"""litellm's exceptions whose class says more than their status: https://docs.litellm.ai/docs/exception_mapping."""
_QUOTA = re.compile(r"insufficient_quota|billing_hard_limit|credit_balance|exceeded your current quota", re.IGNORECASE)
_SECRETIVE = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS", re.IGNORECASE)
_SHORTEST_SECRET = 12


class LitellmModel:
    """A model behind `litellm.acompletion`, with its retries off and its exceptions as ModelErrors.

    Each provider's key is read by litellm from its usual variable, unless the connection has one.
    """

    is_service = True

    def __init__(self, connection: Connection, params: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        if find_spec("litellm") is None:
            raise SpecError(f'{connection.alias}: litellm is not installed: pip install "pytest-simpleqa[litellm]"')
        if connection.api != "chat":
            raise SpecError(f"{connection.alias}: litellm chooses the API by itself; write litellm:<provider>/<model>")
        own = {**connection.params, **params}
        check_params(own, f"the parameters of {connection.alias}", _OWNED)
        self.connection = connection
        self.max_in_flight = connection.max_in_flight
        self._tuning = Tuning(connection.model, own, connection.caps)
        secrets = {value for name, value in environment.items() if _SECRETIVE.search(name)}
        self._secrets = [connection.api_key, *(Secret(value) for value in secrets if len(value) >= _SHORTEST_SECRET)]
        self._litellm = _import(environment)
        self._check()

    async def complete(self, prompt: Prompt) -> Reply:
        """Return the reply to `prompt`; raise ModelError where there is no usable one."""
        return await self.complete_with(prompt, {})

    async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        """Do as `complete` does, with `params` under the model's own; raises SpecError where one is unfit."""

        async def send(parameters: Parameters) -> Reply:
            return await self._ask(prompt, parameters.values)

        return await self._tuning.ask(self._tuning.kind_of(params, self._checked), send)

    async def close(self) -> None:
        """Close litellm's clients, which it keeps for the whole process."""
        await self._litellm.close_litellm_async_clients()

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of this model, without secrets."""
        own = self._tuning.own
        return {
            "provider": "litellm",
            "model": self.connection.model,
            "base_url_host": None,
            "params": dict(own.values),
            "dropped_params": list(own.dropped),
        }

    def _checked(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        check_params(params, f"the parameters of a call to {self.connection.alias}", _OWNED)
        return params

    async def _ask(self, prompt: Prompt, values: Mapping[str, Any]) -> Reply:
        place = f"litellm ({self.connection.model.partition('/')[0]})"
        try:
            said = await self._litellm.acompletion(
                model=self.connection.model,
                messages=as_chat(plain_text(prompt) if isinstance(prompt, str) else prompt),
                num_retries=0,
                max_retries=0,
                **self._address(),
                **values,
            )
            body = said.model_dump(mode="json", warnings=False)
        except Exception as error:
            # `from None`: the frames of litellm and its clients hold the key.
            raise self._model_error(error, place) from None
        reply = read_completion(body, place)
        raw = reply.raw and self._redacted(reply.raw)
        return replace(reply, text=self._redacted(reply.text), raw=raw)

    def _address(self) -> dict[str, Any]:
        """Return what the connection says itself; the rest is litellm's to find."""
        connection = self.connection
        given = {
            "api_key": connection.api_key.reveal(),
            "api_base": connection.base_url,
            "api_version": connection.api_version,
            "extra_headers": dict(connection.headers),
        }
        return {name: value for name, value in given.items() if value}

    def _check(self) -> None:
        """Raise SpecError where litellm does not know the provider, or the provider's key is not there."""
        connection, litellm = self.connection, self._litellm
        try:
            litellm.get_llm_provider(connection.model, api_base=connection.base_url or None)
            missing = litellm.validate_environment(connection.model)["missing_keys"]
        except Exception as error:
            raise SpecError(f"{connection.alias}:{connection.model}: {self._redacted(error_line(error))}") from None
        # Other variables that it lists may be replaced by a profile or a role of the machine.
        keys = [name for name in missing if name.endswith("_API_KEY")]
        if keys and not connection.api_key and not connection.base_url:
            raise SpecError(f"no key for {connection.alias}:{connection.model}: set {' or '.join(keys)}")

    def _model_error(self, error: Exception, place: str) -> ModelError:
        name, status = type(error).__name__, getattr(error, "status_code", None)
        message = one_line(self._redacted(str(getattr(error, "message", None) or error)))
        kind = "quota" if status in (402, 429) and _QUOTA.search(message) else _KINDS.get(name)
        if kind is not None:
            return ModelError(kind, f"{place}: {message}", status=status)
        if not isinstance(status, int):
            return ModelError("exception", f"{place}: {self._redacted(error_line(error))}")
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        wait = parse_retry_after(dict(headers), time.time(), status)
        said = complaint_of(getattr(error, "body", None))
        said = Complaint(message, said.words, param=said.param)
        return as_model_error(said, status, f"HTTP {status} by {place}", wait)

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = secret.redact(text)
        return plain_text(text)


def _import(environment: Mapping[str, str]) -> Any:
    """Return litellm, kept from fetching its price list, from reading a `.env` and from printing advice."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    for name, value in environment.items():  # of an env file: litellm looks here alone
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # under -W error its own would end the import half-way
        import litellm

        litellm.suppress_debug_info = True
        # Loads, while its warnings are off, what it would else load with the first question.
        litellm.completion(model="openai/none", messages=as_chat("?"), mock_response="!")
    return litellm
