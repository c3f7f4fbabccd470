"""Models that are LangChain runnables: chat models, plain language models and chains."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import ModelError, RunStopped
from ..records import Prompt, Reply
from ..retry import parse_retry_after
from .faults import read_error
from .importing import error_line
from .reply import read_completion
from .shapes import as_chat, as_text

_ANSWER_KEYS = ("answer", "output", "result", "text")
"""Where a chain that returns a mapping has its answer; the first that is there."""


def is_runnable(target: object) -> bool:
    """Tell whether `target` is a LangChain runnable, by what it can do: the package need not be there."""
    return all(callable(getattr(type(target), name, None)) for name in ("invoke", "ainvoke", "abatch"))


class RunnableModel:
    """A model that is a LangChain runnable: a language model gets chat messages, a chain one text."""

    max_in_flight: int | None = None
    is_service = True

    def __init__(self, name: str, runnable: Any) -> None:
        self._name = name
        self._runnable = runnable
        self._wants_chat = hasattr(_first(runnable), "agenerate_prompt")

    async def complete(self, prompt: Prompt) -> Reply:
        """Return what the runnable says; what it raises becomes a ModelError, by its HTTP status where it has one."""
        shaped = [dict(message) for message in as_chat(prompt)] if self._wants_chat else as_text(prompt)
        started = time.perf_counter()
        try:
            said = await self._runnable.ainvoke(shaped)
        except (ModelError, RunStopped):
            raise
        except Exception as error:
            raise _model_error(error) from error
        return replace(self._reply(said), latency_s=time.perf_counter() - started)

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of this model."""
        return {"provider": "langchain", "model": self._name, "base_url_host": None, "params": {}}

    def _reply(self, said: Any) -> Reply:
        """Read what a runnable returned, as a service's completion is read."""
        about = getattr(said, "response_metadata", None) or {}
        used = getattr(said, "usage_metadata", None) or {}
        return read_completion(
            {
                "choices": [
                    {
                        "message": {"content": self._content(said)},
                        "finish_reason": about.get("finish_reason") or about.get("stop_reason"),
                    }
                ],
                "model": about.get("model_name") or about.get("model"),
                "usage": {
                    "prompt_tokens": used.get("input_tokens"),
                    "completion_tokens": used.get("output_tokens"),
                },
            },
            self._name,
        )

    def _content(self, said: Any) -> Any:
        if isinstance(said, Mapping):
            said = next((said[key] for key in _ANSWER_KEYS if key in said), said)
        content = getattr(said, "content", said)
        if not isinstance(content, str | list):
            wanted = f"a text, a message, or a mapping with one of {', '.join(_ANSWER_KEYS)}"
            raise ModelError("exception", f"{self._name} returned {type(said).__name__}; wanted {wanted}")
        return content


def _first(runnable: Any) -> Any:
    """Return what a prompt meets first: behind bindings, at the head of a chain."""
    while True:
        inner = getattr(runnable, "bound", None) or getattr(runnable, "first", None)
        if inner is None:
            return runnable
        runnable = inner


def _model_error(error: Exception) -> ModelError:
    """Return the ModelError of what a runnable raised; the services' own packages tell the HTTP status."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return ModelError("exception", error_line(error))
    headers = dict(getattr(getattr(error, "response", None), "headers", None) or {})
    return read_error(status, str(error), "the service", parse_retry_after(headers, time.time(), status))
