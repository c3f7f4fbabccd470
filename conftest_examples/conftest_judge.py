"""Your own rules grade: the hook `pytest_simpleqa_judge`.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm local --judge-llm hook

This judge wants the gold answer itself and nothing around it. It may be an async function, too, and may return a
text that holds a verdict, such as another model's reply; `None` leaves a question to other plugins. It never sees
an empty answer: that one is not attempted.
"""

from __future__ import annotations

import pytest

from pytest_simpleqa import Question, Verdict


def pytest_simpleqa_judge(question: Question, predicted: str, config: pytest.Config) -> Verdict:
    """Grade by equality, whatever the case, the blanks and a full stop at the end."""
    said = _plain(predicted)
    if said in {"i don't know", "unknown"}:
        return Verdict.NOT_ATTEMPTED
    return Verdict.CORRECT if said == _plain(question.answer) else Verdict.INCORRECT


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split()).rstrip(".")
