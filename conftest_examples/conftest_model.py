"""A model alias of your own, `house:<model>`: the hook `pytest_simpleqa_model`.

Copy this file into an empty folder as `conftest.py`, put the address of an OpenAI-compatible server into HOUSE_URL
(and its key, if it wants one, into HOUSE_KEY), and type there:

    HOUSE_URL=http://127.0.0.1:11434/v1 pytest --simpleqa-dataset=sample --answer-llm house:large --judge-llm rules

An alias that is only an address, a key and parameters needs no hook: SIMPLEQA_HOUSE with JSON does it. This one
also puts a system message before every prompt. For a model that is no such server, return any object with
`complete`, `close`, `describe`, `max_in_flight` and `is_service`; `pytest_simpleqa.testing.FakeModel` is one.
"""

from __future__ import annotations

import os

import pytest

from pytest_simpleqa import Reply
from pytest_simpleqa.errors import SpecError
from pytest_simpleqa.models.connection import Connection, clean_base_url
from pytest_simpleqa.models.http import HttpModel
from pytest_simpleqa.models.protocol import Model
from pytest_simpleqa.records import Prompt
from pytest_simpleqa.secret import Secret

SYSTEM = "Answer in one short sentence. If you are not sure, say that you do not know."


def pytest_simpleqa_model(spec: str, config: pytest.Config) -> Model | None:
    """Return the model behind `house:<model>`, and leave every other spec to others."""
    alias, _, model = spec.partition(":")
    if alias != "house":
        return None
    url = os.environ.get("HOUSE_URL")
    if not url:
        raise SpecError(f"{spec}: no address; set HOUSE_URL to the base URL of the server")
    connection = Connection(
        alias="house",
        provider="house",
        base_url=clean_base_url(url, "HOUSE_URL"),
        model=model or "large",
        api_key=Secret(os.environ.get("HOUSE_KEY", "")),
        max_in_flight=8,
    )
    return HouseModel(connection, {"temperature": 0})


class HouseModel(HttpModel):
    """A model behind an OpenAI-compatible server that always gets our system message."""

    async def complete(self, prompt: Prompt) -> Reply:
        """Put the system message before the prompt."""
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return await super().complete([{"role": "system", "content": SYSTEM}, *messages])
