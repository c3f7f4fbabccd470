"""Answers kept from run to run: the hook `pytest_simpleqa_wrap` asks the model nothing that it has answered before.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm local --judge-llm rules

The second time no answer is asked for: change the judge or its prompt, and only the judge costs anything. Answers lie
in the folder `.answers`, each under a hash of all that shapes it: model, address, parameters, prompt, and which asking
of the question it is. Only whole answers are kept; what failed is asked again. Delete the folder to start afresh, also
where another wrapper gives `complete` other request parameters: those are not part of the hash.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from pathlib import Path

import pytest

from pytest_simpleqa import Question, Reply
from pytest_simpleqa.models.protocol import Answerer
from pytest_simpleqa.models.wrapping import Inner, Wrapper
from pytest_simpleqa.records import Prompt

KEPT = ("text", "raw", "finish_reason", "model", "extra")


@pytest.hookimpl(trylast=True)
def pytest_simpleqa_wrap(answerer: Answerer, config: pytest.Config) -> Wrapper:
    """Put the cache nearest to the model, so that other wrappers' prompts are part of what it looks up."""
    return Cached(answerer, config.rootpath / ".answers")


class Cached:
    """Gives an answer that is kept, else asks for it and keeps it."""

    def __init__(self, answerer: Answerer, folder: Path) -> None:
        self._answerer = answerer
        self._folder = folder

    async def __call__(self, question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
        """Answer from the folder where that can be; files are small, and local."""
        path = self._folder / f"{self._key(prompt, repeat)}.json"
        with contextlib.suppress(OSError, ValueError, TypeError):  # not there, or no whole file
            return Reply(**json.loads(path.read_text(encoding="utf-8")), notes=("answer from the cache",))
        reply = await complete(prompt)
        self._keep(path, reply)
        return reply

    def _key(self, prompt: Prompt, repeat: int) -> str:
        model = {**self._answerer.describe(), "dropped_params": None}  # what a service refuses shows only in time
        text = json.dumps([model, prompt, repeat], sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def _keep(self, path: Path, reply: Reply) -> None:
        """Write the answer beside its place and move it there: others may read, and write the same, meanwhile."""
        self._folder.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self._folder, delete=False) as file:
            json.dump({name: getattr(reply, name) for name in KEPT}, file)
        Path(file.name).replace(path)
