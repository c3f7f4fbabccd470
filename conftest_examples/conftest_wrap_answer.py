"""The answer, processed before it is judged: the hook `pytest_simpleqa_wrap` asks for a marked answer and takes it out.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm local --judge-llm rules

Only what stands behind the last `Answer:` is judged; a reply without one is judged whole. The reply as it came stays in
the Report, as `raw`.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_simpleqa import Question, Reply
from pytest_simpleqa.models.protocol import Answerer
from pytest_simpleqa.models.shapes import as_chat
from pytest_simpleqa.models.wrapping import Inner, Wrapper
from pytest_simpleqa.records import Prompt

ASK = "Think aloud if you want to, and end with a line that begins with `Answer:`."
MARKED = re.compile(r"^\W*answer\W*:\W*(?P<answer>\w.*)$", re.IGNORECASE | re.MULTILINE)


def pytest_simpleqa_wrap(answerer: Answerer, config: pytest.Config) -> Wrapper:
    """Put this around whatever model answers."""
    return marked_answer


async def marked_answer(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
    """Return the marked answer alone."""
    *before, last = as_chat(prompt)
    reply = await complete([*before, {**last, "content": f"{last['content']}\n{ASK}"}])
    found = [match["answer"].strip() for match in MARKED.finditer(reply.text)]
    return replace(reply, text=found[-1], raw=reply.raw or reply.text) if found else reply
