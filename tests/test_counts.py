"""Tests of what a Report counts, for any selection, skip, stop and resume, held against an account of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from .quiz import Quiz, Session
from .small_run import run_dirs

FACTS = "problem,answer,topic\n" + "".join(
    f"What is number {number}?,{number},{'Art' if number < 4 else 'Science'}\n" for number in range(1, 7)
)
MODEL = '''
def answer(prompt):
    """Answer, but number 5 wrongly."""
    number = prompt.split()[-1].strip("?")
    return "none" if number == "5" else number
'''
TESTS = """\
import json
from pathlib import Path

import pytest

TODAY = json.loads((Path(__file__).parent / "today.json").read_text())


@pytest.mark.simpleqa_dataset("facts.csv", ask_ahead=AHEAD)
def test_it(simpleqa):
    if TODAY["skip"] == "body" and simpleqa.question.id in TODAY["rows"]:
        pytest.skip("not today")
    result = simpleqa.grade(simpleqa.ask())
    assert TODAY["stop"] != "-x" or result.verdict == "correct"
"""
CONFTEST = """\
import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TODAY = json.loads((HERE / "today.json").read_text())


def note(*what):
    with (HERE / "account.txt").open("a") as file:
        file.write(json.dumps(what) + "\\n")


def is_named(item):
    return any(f"{row}]" in item.name or item.name == row for row in TODAY["rows"])


def pytest_collection_modifyitems(items):
    for item in items:
        if TODAY["skip"] == "mark" and is_named(item):
            item.add_marker(pytest.mark.skip)


def pytest_runtest_setup(item):
    if TODAY["stop"] == "Ctrl-C" and "q0005" in item.name:
        raise KeyboardInterrupt
    if TODAY["skip"] == "hook" and is_named(item):
        pytest.skip("not today")
    if TODAY["skip"] == "setup" and is_named(item):
        raise RuntimeError("set up too little")


def pytest_collection_finish(session):
    for item in session.items:
        note("selected", item.nodeid)


def pytest_runtest_logreport(report):
    if report.when == "call" or not report.passed and report.when == "setup":
        note("ended", report.nodeid)


def pytest_simpleqa_result(result, run):
    note("recorded", run, result.id)
"""


@dataclass
class Suite:
    """A dataset of six rows, put as it is or by a test, and an account of what its sessions did."""

    quiz: Quiz
    kind: str
    """`dataset`, `tests`, or `ahead` for tests whose answers are asked ahead."""

    def __post_init__(self) -> None:
        self.path = self.quiz.path
        files = {"facts.csv": FACTS, "model.py": MODEL, "conftest.py": CONFTEST, "pytest.ini": "[pytest]\n"}
        if self.kind != "dataset":
            files["test_it.py"] = TESTS.replace("AHEAD", str(self.kind == "ahead"))
        for name, text in files.items():
            self.quiz.file(name, text)

    def node_id(self, row: str) -> str:
        return f"facts.csv::{row}" if self.kind == "dataset" else f"test_it.py::test_it[{row}]"

    def run(self, *args: str, skip: str = "", rows: Iterable[str] = (), stop: str = "", apart: bool = False) -> Session:
        """Run a session whose conftest skips `rows` that way and stops at row 5 that way."""
        (self.path / "account.txt").unlink(missing_ok=True)
        self.quiz.file("today.json", json.dumps({"skip": skip, "rows": list(rows), "stop": stop}))
        given = ("--simpleqa-dataset=facts.csv",) if self.kind == "dataset" else ()
        if not any("::" in arg and not arg.startswith("-") for arg in args) and self.kind != "dataset":
            given = ("test_it.py",)
        run = self.quiz.apart if apart else self.quiz.pytest
        return run(*given, "--answer-llm=python:model:answer", "--judge-llm=match", *args)

    @property
    def account(self) -> dict[str, set[str]]:
        """What the conftest has seen: node ids by what became of them, and ids of recorded results."""
        found: dict[str, set[str]] = {"selected": set(), "ended": set(), "recorded": set()}
        for line in (self.path / "account.txt").read_text().splitlines():
            what, *rest = json.loads(line)
            found[what].add(rest[-1])
        return found

    def expected(self) -> tuple[set[str], set[str]]:
        """Return the ids of the rows that are selected, and of those that have a result."""
        account, ids = self.account, [f"q000{number}" for number in range(1, 7)]
        selected = {row for row in ids if self.node_id(row) in account["selected"]}
        ended = {row for row in ids if self.node_id(row) in account["ended"]}
        return selected, account["recorded"] | ((self.logged() & selected) - ended)

    def logged(self) -> set[str]:
        """Return the ids of the rows of which a verdict or an error stands in the run log."""
        files = [file for path in run_dirs(self.path) for file in path.glob("results*.jsonl")]
        lines = [json.loads(line) for file in files for line in file.read_text().split("\n") if line]
        return {line["id"] for line in lines if line["kind"] in ("verdict", "error")}

    def report(self) -> dict[str, Any]:
        return json.loads((run_dirs(self.path)[-1] / "report.json").read_text())  # type: ignore[no-any-return]  # JSON


SELECTIONS = {
    "all": (),
    "-k": ("-k", "topic_science"),
    "-m": ("-m", "simpleqa(topic='Science')"),
    "--deselect": ("--deselect",),
    "ids": ("::",),
}
CASES = [
    # selection, skipped how, which rows, stopped how
    ("all", "", (), ""),
    ("all", "hook", ("q0004",), ""),
    ("all", "mark", ("q0006",), ""),
    ("all", "body", ("q0001", "q0006"), ""),
    ("all", "setup", ("q0006",), ""),
    ("all", "", (), "-x"),
    ("all", "hook", ("q0002",), "-x"),
    ("-k", "", (), ""),
    ("-k", "hook", ("q0004",), ""),
    ("-k", "body", ("q0004", "q0005"), ""),
    ("-k", "mark", ("q0004", "q0005", "q0006"), ""),
    ("-k", "", (), "-x"),
    ("-k", "body", ("q0004",), "-x"),
    ("-m", "body", ("q0004",), ""),
    ("-m", "mark", ("q0004",), "-x"),
    ("--deselect", "hook", ("q0006",), ""),
    ("--deselect", "body", ("q0004",), "-x"),
    ("ids", "", (), ""),
    ("ids", "body", ("q0004",), ""),
]
IN_PROCESSES = [
    ("all", "", (), "Ctrl-C", ()),
    ("-k", "hook", ("q0004",), "Ctrl-C", ()),
    ("ids", "body", ("q0004",), "Ctrl-C", ()),
    ("all", "body", ("q0006",), "", ("-n2",)),
    ("-k", "body", ("q0004",), "", ("-n2",)),
    ("-k", "hook", ("q0004",), "-x", ("-n2",)),
]
"""Likewise, and how the session is run."""


def arguments(suite: Suite, selection: str) -> tuple[str, ...]:
    if selection == "--deselect":
        return tuple(f"--deselect={suite.node_id(f'q000{number}')}" for number in (1, 2, 3))
    if selection == "ids":
        return tuple(suite.node_id(f"q000{number}") for number in (4, 5))
    return SELECTIONS[selection]


@pytest.fixture(params=["dataset", "tests", "ahead"])
def suite(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> Suite:
    return Suite(Quiz(pytester), request.param)


def check(suite: Suite, case: tuple[str, str, tuple[str, ...], str], resumed: bool, how: tuple[str, ...]) -> None:
    selection, skip, rows, stop = case
    if resumed:
        assert suite.run("--simpleqa-concurrency=2").report is not None
    args = [*arguments(suite, selection), *how, "--simpleqa-gate=accuracy >= 0.1", "--simpleqa-max-failures=0.5"]
    if stop == "-x":
        args += ["-x", "--simpleqa-fail-on=incorrect"]
    if resumed:
        args.append("--simpleqa-resume=latest")
    session = suite.run(*args, skip=skip, rows=rows, stop=stop, apart=stop == "Ctrl-C")
    selected, finished = suite.expected()
    if not finished and suite.kind != "dataset":  # a run of tests none of which has graded has no Report
        assert session.status == (2 if stop == "Ctrl-C" else 6)
        return
    report = suite.report()
    told = f"{session.text}\n{session.errors}"
    assert (report["population"], report["selected"], report["n"]) == (6, len(selected), len(finished)), told
    assert report["complete"] == (len(finished) == 6)
    incorrect = int("q0005" in finished)
    assert (report["correct"], report["incorrect"]) == (len(finished) - incorrect, incorrect)
    assert {sample["id"] for sample in report["samples"]} == finished
    assert [verdict is not None for *_, verdict in report["verdicts"]] == [f"q000{i}" in finished for i in range(1, 7)]
    assert [gate["verdict"] for gate in report["gates"]] == [
        "pass" if report["complete"] and stop != "Ctrl-C" else "undecided"
    ]
    assert session.status == report["exit_status"] == _status(suite, skip, stop, report["complete"]), told


def _status(suite: Suite, skip: str, stop: str, complete: bool) -> int:
    """Return the exit status that this session is to have."""
    if stop == "Ctrl-C":
        return 2
    if stop == "-x" or skip == "setup":
        return 1
    return 0 if complete else 6


@pytest.mark.parametrize("resumed", [False, True], ids=["fresh", "resumed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(filter(None, (case[0], case[1], *case[2], case[3]))))
def test_a_report_counts_what_was_selected_and_has_a_result(
    suite: Suite, case: tuple[str, str, tuple[str, ...], str], resumed: bool
) -> None:
    """Selected, n, every count, the gate and the exit status are those of the account that a conftest kept."""
    if suite.kind == "dataset" and case[1] == "body":
        pytest.skip("a question of the dataset has no body")
    check(suite, case, resumed, ())


@pytest.mark.slow
@pytest.mark.parametrize("resumed", [False, True], ids=["fresh", "resumed"])
@pytest.mark.parametrize("case", IN_PROCESSES, ids=lambda case: "-".join(filter(None, (*case[:2], case[3], *case[4]))))
def test_with_workers_and_after_ctrl_c_a_report_counts_the_same(
    suite: Suite, case: tuple[str, str, tuple[str, ...], str, tuple[str, ...]], resumed: bool
) -> None:
    """The same holds under xdist and where a user interrupts."""
    if suite.kind == "dataset" and case[1] == "body":
        pytest.skip("a question of the dataset has no body")
    check(suite, case[:4], resumed, case[4])
