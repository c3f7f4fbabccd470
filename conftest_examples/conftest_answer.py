"""Your own system answers: the hook `pytest_simpleqa_answer` as a plain function.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm hook --judge-llm rules

The system here looks a fact up and says "I don't know" where it has none: put your own in its place.
A plain function is called in threads, up to 32 at once; what it shares must bear that.
"""

from __future__ import annotations

import re

import pytest

from pytest_simpleqa import Question

FACTS = (
    ("the capital of France", "Paris"),
    ("the chemical symbol for gold", "Au"),
    ("the painter of the Mona Lisa", "Leonardo da Vinci"),
    ("the composer of the opera The Magic Flute", "Wolfgang Amadeus Mozart"),
)


def pytest_simpleqa_answer(question: Question, config: pytest.Config) -> str:
    """Answer with the fact that shares the most words with the question."""
    asked = _words(question.problem)
    fact, answer = max(FACTS, key=lambda fact: len(asked & _words(fact[0])))
    return answer if len(asked & _words(fact)) >= 2 else "I don't know."


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) - {"the", "of", "for", "a", "in", "is"}
