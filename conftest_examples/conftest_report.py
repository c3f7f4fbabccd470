"""A Markdown summary for the CI's page: the hook `pytest_simpleqa_report`.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm local --judge-llm rules

In GitHub Actions the table is added to the job's summary, elsewhere to `summary.md`. What a model said may hold
pipes, line ends, HTML or links: it is shown as text, and acts as none of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_simpleqa import Report

WRONG_SHOWN = 10
LONGEST_CELL = 200


def pytest_simpleqa_report(report: Report) -> None:
    """Add the summary of a run to the page."""
    page = Path(os.environ.get("GITHUB_STEP_SUMMARY") or "summary.md")
    with page.open("a", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"### {_cell(report.name)}: {_cell(report.model)}, judged by {_cell(report.judge)}"
    yield ""
    yield "| topic | n | correct | incorrect | not attempted | attempted accuracy |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, row in {"all questions": report, **(report.per_topic or {})}.items():
        counts = f"{row.n} | {row.correct} | {row.incorrect} | {row.not_attempted}"
        yield f"| {_cell(name)} | {counts} | {_rate(row.attempted_accuracy)} |"
    wrong = [sample for sample in report.samples if sample.verdict == "incorrect"][:WRONG_SHOWN]
    if wrong:
        yield ""
        yield "| question | gold | predicted |"
        yield "| --- | --- | --- |"
        for sample in wrong:
            yield f"| {_cell(sample.question)} | {_cell(sample.gold)} | {_cell(sample.predicted or '')} |"
    yield ""


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _cell(text: str) -> str:
    """Return `text` as one cell in which only letters, digits and blanks stand for themselves."""
    line = " ".join(text[:LONGEST_CELL].split())
    return "".join(char if char.isalnum() or char == " " else f"&#{ord(char)};" for char in line)
