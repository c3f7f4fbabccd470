"""Your own system answers: the hook `pytest_simpleqa_answer` as an async function, with a trace of each answer.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm hook --judge-llm rules

An async function runs on the loop of the run, many calls at once: await your clients, never block. What it puts
into `Reply.extra` (plain JSON types) stands beside the answer in the Report's samples.
"""

from __future__ import annotations

import asyncio

import pytest

from pytest_simpleqa import ModelError, Question, Reply

PAGES = {
    "France": "Paris is the capital of France.",
    "Australia": "Canberra is the capital of Australia.",
    "Mona Lisa": "Leonardo da Vinci painted the Mona Lisa.",
}


async def pytest_simpleqa_answer(question: Question, config: pytest.Config) -> Reply:
    """Search, then answer from the page that was found."""
    if question.topic == "Video games":
        raise ModelError("declined", "no source on video games")  # an error of this row; the others go on
    found = await search(question.problem)
    if found is None:
        return Reply("I don't know.", extra={"sources": []})
    return Reply(PAGES[found], extra={"sources": [found]})


async def search(text: str) -> str | None:
    """Return the name of a page on what `text` is about; stands for a call to your retrieval."""
    await asyncio.sleep(0.01)
    return next((name for name in PAGES if name in text), None)
