"""Each result as it arrives: the hook `pytest_simpleqa_result` collects the wrong answers for a second look.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm local --judge-llm rules

The wrong answers are added to `wrong.jsonl` while the run goes on. The hook is called in the process that reports,
under `-n` too, so that nothing needs a lock; results come in the order in which they arrive.
"""

from __future__ import annotations

import json
from pathlib import Path

from pytest_simpleqa import QuestionResult, Verdict


def pytest_simpleqa_result(result: QuestionResult) -> None:
    """Keep a wrong answer."""
    if result.verdict is not Verdict.INCORRECT:
        return
    row = {"id": result.id, "question": result.question, "gold": result.gold, "predicted": result.predicted}
    with Path("wrong.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
