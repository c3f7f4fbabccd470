"""Another prompt for each question: the hook `pytest_simpleqa_wrap` asks for the form that the answer is to have.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm local --judge-llm rules

A prompt that is the same for all questions needs no hook: `--simpleqa-answer-prompt` does it. Here it depends on the
question's answer type; it may as well depend on its topic, or on a column of your own (`question.metadata`).
"""

from __future__ import annotations

import pytest

from pytest_simpleqa import Question, Reply
from pytest_simpleqa.models.protocol import Answerer
from pytest_simpleqa.models.shapes import as_chat
from pytest_simpleqa.models.wrapping import Inner, Wrapper
from pytest_simpleqa.records import Prompt

FORMS = {
    "Number": "Answer with a number in figures.",
    "Date": "Answer with the date alone.",
    "Person": "Answer with the full name.",
}


def pytest_simpleqa_wrap(answerer: Answerer, config: pytest.Config) -> Wrapper:
    """Put this around whatever model answers."""
    return in_form


async def in_form(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
    """Say behind the prompt which form the answer is to have."""
    form = FORMS.get(question.answer_type or "", "Answer in one short sentence.")
    *before, last = as_chat(prompt)
    return await complete([*before, {**last, "content": f"{last['content']}\n{form}"}])
