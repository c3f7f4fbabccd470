"""The two APIs that a prompt can go to, chat completions and responses: their paths, words and readers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..records import Message, Prompt, Reply
from .reply import plain_text, read_completion
from .responses import read_response


@dataclass(frozen=True, slots=True)
class Api:
    """How a prompt is put, and its reply read."""

    path: str
    """What stands behind the base URL."""
    prompt_fields: Callable[[Prompt], Mapping[str, Any]]
    """The fields of the request that hold the prompt."""
    read: Callable[[Any, str], Reply]
    """Reads the parsed body of a 200; the text heads the messages of its errors."""
    owned: tuple[str, ...]
    """Fields of the request that no request parameter may set."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Request parameters that have another name here, `a.b` being `b` within `a`."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Request parameters that are sent where the user says nothing of them."""

    def named(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return request parameters under the names that they have here; a parameter's own name wins."""
        found = {name: value for name, value in params.items() if name not in self.names}
        for name, value in params.items():
            outer, _, inner = self.names.get(name, "").partition(".")
            if inner and value is not None and isinstance(found.get(outer, {}), dict):
                found[outer] = {inner: value, **found.get(outer, {})}
            elif outer:
                found.setdefault(outer, value)
        return found

    def tail(self, prompt: Prompt) -> bytes:
        """Return the end of the request body, which holds `prompt`."""
        return json.dumps(self.prompt_fields(prompt))[1:].encode("ascii")


def _as_messages(prompt: Prompt) -> Mapping[str, Any]:
    return {"messages": [{"role": "user", "content": plain_text(prompt)}] if isinstance(prompt, str) else prompt}


def _as_input(prompt: Prompt) -> Mapping[str, Any]:
    """Return `input`, and `instructions` where the prompt begins with messages of the system."""
    if isinstance(prompt, str):
        return {"input": plain_text(prompt)}
    leading = _leading_system(prompt)
    if not leading or leading == len(prompt):
        return {"input": prompt}
    instructions = "\n\n".join(message["content"] for message in prompt[:leading])
    return {"instructions": instructions, "input": prompt[leading:]}


def _leading_system(messages: list[Message]) -> int:
    """Return how many messages at the beginning are the system's."""
    plain = (index for index, message in enumerate(messages) if message["role"] not in ("system", "developer"))
    return next(plain, len(messages))


CHAT = Api("/chat/completions", _as_messages, read_completion, ("model", "messages", "stream"))

RESPONSES = Api(
    "/responses",
    _as_input,
    read_response,
    ("model", "messages", "input", "instructions", "stream", "background"),
    {
        "max_tokens": "max_output_tokens",
        "max_completion_tokens": "max_output_tokens",
        "reasoning_effort": "reasoning.effort",
        "verbosity": "text.verbosity",
    },
    # Unlike chat completions, responses are kept by the service unless it is told not to:
    # https://platform.openai.com/docs/api-reference/responses/create, `store`.
    {"store": False},
)

APIS = {"chat": CHAT, "responses": RESPONSES}
