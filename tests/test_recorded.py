"""Tests of choices that are neither right nor wrong, in a session: they pass, and are there for the next one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CONFTEST = """
from pytest_simpleqa import Judgement, Verdict

def pytest_simpleqa_answer(question):
    with open("asked", "a") as file:
        file.write(question.id + "\\n")
    return "an answer"

def pytest_simpleqa_judge(question, predicted):
    return Judgement(Verdict.RECORDED, extra={"choice": "B"})
"""
RUN = ("--simpleqa-dataset=sample", "--simpleqa-limit=3", "--answer-llm=hook", "--judge-llm=hook")


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    pytester.makeconftest(CONFTEST)
    return pytester.path


@pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
def test_recorded_questions_pass(pytester: pytest.Pytester, folder: Path, mode: tuple[str, ...]) -> None:
    """They have the letter and the word of their own, no rate, and a session of them ends with 0."""
    result = pytester.runpytest_subprocess(*RUN, "--simpleqa-out=report.json", *mode)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*3 recorded in*"])
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert (report["n"], report["recorded"], report["accuracy"]) == (3, 3, None)
    assert {(row["verdict"], row["extra"]["choice"]) for row in report["samples"]} == {("recorded", "B")}


def test_a_recorded_question_is_done(pytester: pytest.Pytester, folder: Path) -> None:
    """A session that goes on with the run asks none of them again, and gives back what was kept."""
    pytester.runpytest_subprocess(*RUN)
    result = pytester.runpytest_subprocess(*RUN, "--simpleqa-resume=latest", "--simpleqa-out=report.json")
    assert result.ret == 0
    assert len((folder / "asked").read_text(encoding="utf-8").split()) == 3
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert (report["recorded"], report["samples"][0]["extra"]) == (3, {"choice": "B"})


def test_no_gate_is_decided_on_recorded_questions(pytester: pytest.Pytester, folder: Path) -> None:
    """A bound on a rate that does not exist is undecided: exit status 6, never 0."""
    result = pytester.runpytest_subprocess(*RUN, "--simpleqa-gate=accuracy >= 0")
    assert result.ret == 6
    result.stdout.fnmatch_lines(["*undecided*accuracy has no row to count*"])
