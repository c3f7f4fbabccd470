"""The hook `pytest_simpleqa_wrap` in whole sessions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_run import QUESTIONS, error_line, report_of, write_files

ASKED = ("--simpleqa-dataset=questions.csv", "--answer-llm=python:model:answer", "--judge-llm=rules")
MODEL = '''
def answer(prompt):
    """Give the prompt back, so that the Report shows what was asked."""
    return prompt
'''
AROUND = """
async def {name}(question, prompt, complete, repeat):
    reply = await complete(f"{{prompt}} {name}")
    return f"{{reply.text}} {name}"

def pytest_simpleqa_wrap(answerer, config):
    return {name}
"""
CASES = [(), ("-n0",), ("-n2",)]


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with three questions and a model that says what it is asked."""
    write_files(pytester.path, questions__csv=QUESTIONS, model__py=MODEL)
    return pytester


def run(folder: pytest.Pytester, conftest: str, *more: str) -> tuple[pytest.RunResult, dict[str, Any]]:
    """Run with `conftest`; return the result and the Report."""
    folder.makeconftest(conftest)
    result = folder.runpytest_subprocess(*ASKED, "-W", "error", *more)
    return result, report_of(folder.path)


@pytest.mark.parametrize("more", CASES, ids=["bare", "n0", "n2"])
def test_conftests_stand_around_plugins(folder: pytest.Pytester, more: tuple[str, ...]) -> None:
    """The conftest's wrapper is the outermost, in every process alike, and run.json and Report name both."""
    folder.makepyfile(helper=AROUND.format(name="inner"))
    _, report = run(folder, AROUND.format(name="outer"), "-p", "helper", *more)
    assert [row["predicted"] for row in report["samples"]] == [
        f"{row['question']} outer inner inner outer" for row in report["samples"]
    ]
    names = [each["name"] for each in report["provenance"]["answer"]["wrapped_by"]]
    assert names == ["conftest:outer", "helper:inner"]


def test_none_wraps_nothing(folder: pytest.Pytester) -> None:
    """A hook that returns None leaves the run as one without it."""
    _, report = run(folder, "def pytest_simpleqa_wrap(answerer, config): return None\n")
    assert report["samples"][0]["predicted"] == report["samples"][0]["question"]
    assert "wrapped_by" not in report["provenance"]["answer"]


def test_what_may_pass_is_tried_again_as_a_whole(folder: pytest.Pytester) -> None:
    """The engine owns the retries: it calls the wrapper again, and a row that fails for good costs no other."""
    conftest = """
from pytest_simpleqa import ModelError
tries = {}

async def flaky(question, prompt, complete, repeat):
    tries[question.id] = tries.get(question.id, 0) + 1
    reply = await complete(prompt)
    if question.id == "q0002" and tries[question.id] < 3:
        raise ModelError("server_error", "not yet", status=503)
    if question.id == "q0003":
        raise KeyError("nothing there")
    return reply

def pytest_simpleqa_wrap(answerer, config):
    return flaky
"""
    _, report = run(folder, conftest)
    one, two, three = report["samples"]
    assert (one["error"], two["error"]) == (None, None)
    assert three["error"] == {
        "kind": "exception",
        "message": "conftest:flaky: KeyError: 'nothing there' (conftest.py, line 10)",
    }
    assert report["usage"]["answer"]["calls"] == 1 + 3 + 1


@pytest.mark.parametrize("more", CASES, ids=["bare", "n0", "n2"])
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "raise RuntimeError('no index')",
            "the hook pytest_simpleqa_wrap failed: RuntimeError: no index (conftest.py, line 1)",
        ),
        ("return lambda *a: 'x'", "the hook pytest_simpleqa_wrap returned a plain function; wanted an async function*"),
    ],
)
def test_a_mistake_is_one_line(folder: pytest.Pytester, body: str, told: str, more: tuple[str, ...]) -> None:
    """A hook that fails, or returns no wrapper, is exit 4 before anything is asked."""
    folder.makeconftest(f"def pytest_simpleqa_wrap(answerer, config): {body}\n")
    result = folder.runpytest_subprocess(*ASKED, *more)
    assert result.ret == 4
    line = error_line(result)
    assert line == told or line.startswith(told.removesuffix("*"))


def test_nothing_is_wrapped_where_nothing_is_asked(folder: pytest.Pytester) -> None:
    """Under --collect-only the hook is not called."""
    folder.makeconftest("def pytest_simpleqa_wrap(answerer, config): raise RuntimeError\n")
    assert folder.runpytest_subprocess(*ASKED, "--collect-only", "-q").ret == 0


TIMED_OUT = """
import asyncio
import time

def pytest_simpleqa_wrap(answerer, config):
    async def patient(question, prompt, complete, repeat):
        while question.id == "q0003":
            try:
                BLOCK
            except asyncio.CancelledError:
                pass
        return await complete(prompt)
    return patient
"""


@pytest.mark.parametrize("more", CASES[::2], ids=["bare", "n2"])
def test_a_wrapper_that_swallows_its_cancellation_costs_its_row(folder: pytest.Pytester, more: tuple[str, ...]) -> None:
    """The deadline gives the row up as a timeout, the session ends, and so does the process."""
    conftest = TIMED_OUT.replace("BLOCK", "await asyncio.sleep(30)")
    result, report = run(folder, conftest, "--simpleqa-timeout=1", "--simpleqa-concurrency=2", *more)
    assert (report["n"], report["errors"], report["complete"]) == (3, 1, True)
    assert report["samples"][2]["error"]["kind"] == "timeout"
    assert "never retrieved" not in result.stderr.str()
    assert "destroyed" not in result.stderr.str()
    assert result.duration < 20
