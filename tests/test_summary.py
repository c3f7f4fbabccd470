"""Tests of what stands at the end of a session that holds several runs: one table, and nothing lost."""

from __future__ import annotations

import json
import shlex

import pytest

from .small_run import run_dirs
from .test_fixtures import HOW, MODEL, Suite

TESTS = """\
import pytest

pytestmark = pytest.mark.simpleqa_dataset("facts.csv")


def test_a(simpleqa):
    simpleqa.grade(simpleqa.ask())


def test_b(simpleqa):
    simpleqa.grade(simpleqa.ask())


def test_c(simpleqa):
    simpleqa.grade(simpleqa.ask())


@pytest.mark.skip
def test_d(simpleqa):
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Suite:
    made = Suite(pytester)
    made.write(test_facts__py=TESTS)
    return made


@HOW
def test_a_run_without_a_result_hides_no_gate(suite: Suite, how: tuple[str, ...]) -> None:
    """With one of four runs skipped, the others have their table, and every gate is told: failed and undecided."""
    session = suite.run("--simpleqa-gate=accuracy >= 0.9", *how)
    assert session.status == 1
    text = " ".join(session.text.split())
    assert "4 runs: 16 questions to python:model:answer, judged by rules: up to 16 calls" in text
    for name in "abc":
        assert f"test_facts.py::test_{name}: gate accuracy >= 0.9: fail" in text
    open_gate = "gate accuracy >= 0.9: undecided: no question of test_facts.py::test_d has a result; "
    assert f"{open_gate}type 'test_facts.py::test_a: ' before the gate for that run alone" in text
    assert text.index("= simpleqa =") < text.index(open_gate)
    brief = suite.run("--simpleqa-gate=accuracy >= 0.9", "-qq", *how)
    assert any(line.endswith("3 gates fail, 1 gate undecided") for line in brief.lines)


def test_several_runs_are_one_table_and_pages_under_v(suite: Suite) -> None:
    """Two runs are told in one table; -v shows a page for each before it; one run is a page."""
    for args, sections in (((), 1), (("-v",), 3)):
        session = suite.run("-k", "test_a or test_b", *args)
        assert session.text.count("= simpleqa =") == sections
        assert any(line.startswith("all runs ") for line in session.lines)
    alone = suite.run("-k", "test_a")
    assert alone.text.count("= simpleqa =") == 1
    assert not any(line.startswith("all runs ") for line in alone.lines)


def test_the_printed_command_goes_on_with_all_runs_of_a_session(suite: Suite) -> None:
    """After another run in between, the command still goes on with the session that it was printed for."""
    stop = (
        "import os\nimport pytest\n\n\ndef pytest_simpleqa_result(result, run):\n"
        "    if run == 'facts.csv' and 'STOP' in os.environ:\n        pytest.exit('enough')\n"
    )
    slow = "import os, time\n" + MODEL.replace("    if ", "    time.sleep(0.4 * ('STOP' in os.environ))\n    if ", 1)
    suite.write(conftest__py=stop, model__py=slow)
    suite.quiz.environment["STOP"] = "1"
    first = suite.run("test_facts.py", "--simpleqa-dataset=facts.csv", "--simpleqa-concurrency=1", "-k", "not test_d")
    (line,) = (line for line in first.lines if line.startswith("go on with: "))
    words = shlex.split(line.removeprefix("go on with: "))
    del suite.quiz.environment["STOP"]
    suite.run("-k", "test_c", "--simpleqa-limit=1")
    mine = set(run_dirs(suite.path))
    suite.asked()
    suite.quiz.apart(*words[1:])
    assert set(run_dirs(suite.path)) == mine
    assert 0 < len(suite.asked()) <= 3
    kept = json.loads((suite.path / ".simpleqa" / words[-1].partition("=")[2] / "report.json").read_text())
    assert kept["complete"]
