"""Questions that are not asked, with a reason: pytest's own skip mark, put on by `pytest_collection_modifyitems`.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm local --judge-llm rules -rs

A question that is skipped costs no call and has no row in the Report, which is then incomplete: a gate is undecided. To
leave questions out for good, name what you want with `--simpleqa-topic`, or make the dataset smaller.
"""

from __future__ import annotations

import pytest

from pytest_simpleqa.items import QuestionItem

REASONS = {"Video games": "our product knows nothing of video games"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip by topic; `item.ask.question` has the text, the answer type and the metadata as well."""
    for item in items:
        if isinstance(item, QuestionItem) and (reason := REASONS.get(item.ask.question.topic or "")):
            item.add_marker(pytest.mark.skip(reason=reason))
