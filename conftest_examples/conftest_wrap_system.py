"""A system message before every prompt: the hook `pytest_simpleqa_wrap`.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm local --judge-llm rules

Without it no system message is sent. The message is the file `system.txt` where there is one, else the one below. Its
hash stands in the Report, so that a run is only resumed under the same message.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pytest_simpleqa import Question, Reply
from pytest_simpleqa.models.protocol import Answerer
from pytest_simpleqa.models.shapes import as_chat
from pytest_simpleqa.models.wrapping import Inner, Wrapper
from pytest_simpleqa.records import Prompt

SYSTEM = "Answer in one short sentence. If you are not sure, say that you do not know."


def pytest_simpleqa_wrap(answerer: Answerer, config: pytest.Config) -> Wrapper:
    """Put the message before the prompts of whatever model answers."""
    file = Path(__file__).with_name("system.txt")
    return WithSystem(file.read_text(encoding="utf-8") if file.exists() else SYSTEM)


class WithSystem:
    """Puts a system message before the prompt."""

    def __init__(self, message: str) -> None:
        self._message = message

    async def __call__(self, question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
        """Ask with the message first."""
        return await complete([{"role": "system", "content": self._message}, *as_chat(prompt)])

    def describe(self) -> dict[str, str]:
        """Tell one message from another."""
        return {"system_sha256": hashlib.sha256(self._message.encode("utf-8")).hexdigest()}
