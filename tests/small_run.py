"""A small run for tests: three questions, a recording of answers and verdicts, and what a session left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# A session inside the test's process forgets what it has imported; these cannot be imported twice.
import aiohttp  # noqa: F401  see above
import pytest
import rapidfuzz  # noqa: F401  see above

import pytest_simpleqa.roles  # noqa: F401  likewise: else it is imported again for each session

QUESTIONS = """\
problem,answer,topic
What is one and one?,2,Maths
Capital of France?,Paris,Geography
Capital of Spain?,Madrid,Geography
"""
RECORDED = """\
problem,predicted,grade
What is one and one?,2,A
Capital of France?,Lyon,B
Capital of Spain?,I do not know,C
"""
ASKED = (
    "--simpleqa-dataset=questions.csv",
    "--answer-llm=replay:recorded.csv",
    "--judge-llm=replay:recorded.csv",
)
"""Arguments of a run that needs no service: one question correct, one incorrect, one not attempted."""


def write_files(folder: Path, **files: str) -> None:
    """Write the dataset and the recording into `folder`, and further `files` (`name__ext` becomes `name.ext`)."""
    named = {name.replace("__", "."): text for name, text in files.items()}
    for name, text in {"questions.csv": QUESTIONS, "recorded.csv": RECORDED, **named}.items():
        (folder / name).write_text(text, encoding="utf-8")


def many_questions(count: int) -> str:
    """Return the text of a dataset of `count` questions, with a verdict-less recording in the same rows."""
    rows = (f"Question {number}?,gold {number},said {number}\n" for number in range(1, count + 1))
    return "problem,answer,predicted\n" + "".join(rows)


def run_dirs(folder: Path) -> list[Path]:
    """Return the run directories below `folder`, the oldest first."""
    return sorted(path.parent for path in folder.glob("**/run.json"))


def report_of(folder: Path) -> dict[str, Any]:
    """Return the Report of the only run below `folder`."""
    (run_dir,) = run_dirs(folder)
    report: dict[str, Any] = json.loads((run_dir / "report.json").read_text(encoding="utf-8"))
    return report


def run_json_of(folder: Path) -> dict[str, Any]:
    """Return what `run.json` holds in the only run below `folder`."""
    (run_dir,) = run_dirs(folder)
    content: dict[str, Any] = json.loads((run_dir / "run.json").read_text(encoding="utf-8"))
    return content


def ids_of(report: dict[str, Any]) -> list[str]:
    """Return the ids of the Report's samples."""
    return [sample["id"] for sample in report["samples"]]


def error_line(result: pytest.RunResult) -> str:
    """Return the one line that a mistake gives on standard error; fail where there is more or a traceback."""
    lines = [line for line in result.errlines if line.strip()]
    said = "\n".join((*result.outlines, *lines))
    assert len(lines) == 1, said
    assert "Traceback" not in said
    assert "INTERNALERROR" not in said
    assert lines[0].startswith("ERROR: "), lines[0]
    return lines[0].removeprefix("ERROR: ")
