"""Sentinels in a session: what the Report and the gates make of them, bare and with workers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.cli import main

from .fake_server import FakeServer
from .quiz import Quiz, Session

BOTH = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["bare", "n2"])
GOLDS = (
    "Canberra",
    "Paris",
    "Lima",
    "Nairobi",
    "1873",
    "1950",
    "2011",
    "Jane Austen",
    "Bach",
    "Frida Kahlo",
    "42",
    "7.5 km",
)
GATE = "--simpleqa-gate=accuracy >= 0.3"

JUDGES = """
from pathlib import Path

HERE = Path(__file__).parent


def always_a(prompt):
    with (HERE / "judged.txt").open("a", encoding="utf-8") as file:
        file.write("x\\n")
    return "A"
"""
ANSWERS = """
from pathlib import Path


def answer(prompt):
    if (Path(__file__).parent / "broken").exists() and prompt.endswith(("1?", "2?")):
        raise ValueError("down")
    return "something"
"""
HOOK = """
def pytest_simpleqa_judge(question, predicted, config):
    return "incorrect"
"""


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    """Twelve questions: six answered rightly, five wrongly, one with nothing."""
    quiz = Quiz(pytester)
    said = [*GOLDS[:6], "", *(f"no idea of {gold}, but Zürich" for gold in ("a", "b", "c", "d", "e"))]
    for name, columns in (("quiz.csv", ("problem", "answer")), ("said.csv", ("problem", "predicted", "grade"))):
        with (quiz.path / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for number, (gold, predicted) in enumerate(zip(GOLDS, said, strict=True), start=1):
                row = {"problem": f"What is thing {number}?", "answer": gold, "predicted": predicted, "grade": "A"}
                writer.writerow([row[column] for column in columns])
    quiz.file("judges.py", JUDGES)
    return quiz


def session(quiz: Quiz, judge: str, *args: str, sentinels: int = 12) -> Session:
    """Put the questions to what was recorded."""
    more = [f"--simpleqa-sentinels={sentinels}"] if sentinels else []
    return quiz.pytest(
        "--simpleqa-dataset=quiz.csv", "--answer-llm=replay:said.csv", f"--judge-llm={judge}", *more, *args
    )


def sentinels(session: Session) -> dict[str, Any]:
    """Return what the Report says of the sentinels."""
    assert session.report is not None, session.text + session.errors
    found = session.report["sentinels"]
    assert isinstance(found, dict)
    return found


def outcomes(session: Session) -> dict[str, Any]:
    """Return what came of each sentinel, by the question it stood before."""
    assert session.report is not None
    return {row["id"]: row["extra"]["sentinel"] for row in session.report["samples"] if "extra" in row}


def gate(session: Session) -> dict[str, Any]:
    assert session.report is not None, session.text + session.errors
    (found,) = session.report["gates"]
    assert isinstance(found, dict)
    return found


@BOTH
def test_a_good_judge_passes(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """The rules pass all sentinels, on a blank answer's row too; verdicts and gate are those of a run without them."""
    plain = session(quiz, "rules", GATE, sentinels=0)
    tried = session(quiz, "rules", GATE, *workers)
    assert (plain.status, tried.status) == (0, 0), tried.text + tried.errors
    assert tried.counts == plain.counts
    assert tried.report is not None
    assert plain.report is not None
    assert "sentinels" not in plain.report
    assert tried.report["verdicts"] == plain.report["verdicts"]
    found = sentinels(tried)
    assert (found["n"], found["passed"], found["failed"], found["failures"]) == (12, 12, 0, 0)
    assert {kind: counts["n"] for kind, counts in found["by_kind"].items()} == {
        "abstention": 4,
        "gold": 4,
        "other_gold": 4,
    }
    assert len(outcomes(tried)) == 12
    assert "the judge passed all 12 sentinels" in tried.text


@BOTH
def test_a_judge_that_fails_decides_no_gate(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """A judge that always says A leaves a gate that it would pass undecided, with what it failed as the reason."""
    tried = session(quiz, "python:judges:always_a", GATE, *workers)
    assert tried.status == 6, tried.text + tried.errors
    assert gate(tried)["verdict"] == "undecided"
    assert "the judge failed 8 of 12 sentinels (" in gate(tried)["reason"]
    for phrase in ("abstention graded correct 4", "other gold graded correct 4"):
        assert phrase in gate(tried)["reason"]
    found = sentinels(tried)
    assert (found["passed"], found["failed"], found["allowed"]) == (4, 8, 2)
    assert {check["verdict"] for check in found["failed_checks"]} == {"correct"}


def test_without_a_gate_the_summary_warns(quiz: Quiz) -> None:
    """Without a gate a failing judge is a warning, also under -qq, and the exit status is what the verdicts say."""
    tried = session(quiz, "python:judges:always_a")
    assert tried.status == 0, tried.text
    assert "the judge failed 8 of 12 sentinels (" in tried.text
    assert "do not trust" in " ".join(tried.text.split())
    brief = session(quiz, "python:judges:always_a", "-qq")
    assert "the judge failed 8 of 12 sentinels" in brief.text


@BOTH
def test_the_draw_follows_the_seed(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """The seed decides which questions have a sentinel and which, in every process the same; another gives others."""
    first, same = (session(quiz, "rules", *more, sentinels=5) for more in ((), workers))
    other = session(quiz, "rules", "--simpleqa-seed=1", sentinels=5)
    assert sentinels(first)["n"] == 5
    assert outcomes(first) == outcomes(same)
    assert outcomes(first) != outcomes(other)


def test_a_hook_is_tried_as_well(quiz: Quiz) -> None:
    """A conftest that judges sees sentinels like answers, and is found out."""
    quiz.file("conftest.py", HOOK)
    tried = session(quiz, "hook", GATE)
    assert tried.status == 6, tried.text + tried.errors
    assert sentinels(tried)["failed"] == 8


def test_a_recording_cannot_be_tried(quiz: Quiz) -> None:
    """A replay judge is refused in one line, whether the number stands on the command line or in the ini file."""
    for typed in (12, 0):
        refused = session(quiz, "replay:said.csv", sentinels=typed)
        assert refused.status == 4
        (line,) = [line for line in refused.errors.splitlines() if line]
        assert line.startswith("ERROR: --simpleqa-sentinels 12: a recording has no verdict on answers"), line
        quiz.file("pytest.ini", "[pytest]\nsimpleqa_sentinels = 12\n")
    assert session(quiz, "replay:said.csv", "--simpleqa-sentinels=0", sentinels=0).status == 0


def test_the_announcement_counts_them(quiz: Quiz, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls announced are those of the answers, the judgements and the sentinels among the selected questions."""
    with FakeServer() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        args = (
            "--simpleqa-dataset=quiz.csv",
            "--answer-llm=fake:m",
            "--judge-llm=fake:judge",
            "--simpleqa-sentinels=5",
        )
        assert "12 questions to fake:m, judged by fake:judge: at least 29 calls" in quiz.pytest(*args).text
        assert len(server.judgements) == 17
        part = quiz.pytest(*args, "quiz.csv::q0001", "quiz.csv::q0002").text
        assert len(server.requests) == 29 + int(part.partition("at least ")[2].split()[0])


def test_a_script_of_a_judge_is_found_out(quiz: Quiz, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that says A to everything is asked in the same words throughout, and decides no gate."""
    with FakeServer() as server:
        server.script(lambda body, nth: "A" if "judge" in body["model"] else None)
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        tried = session(quiz, "fake:judge", GATE)
        assert tried.status == 6, tried.text
        assert {frozenset(request.body) for request in server.judgements} == {frozenset(server.judgements[0].body)}
        assert len({request.prompt.partition("Question:")[0] for request in server.judgements}) == 1


# -- afterwards -----------------------------------------------------------------------------------


@BOTH
def test_a_resumed_run_keeps_its_sentinels(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """What a finished row's sentinel came to is kept; only before what is judged anew there is a new one."""
    quiz.file("answers.py", ANSWERS)
    quiz.file("broken", "")
    models = ("--answer-llm=python:answers:answer", "--judge-llm=python:judges:always_a")
    args = ("--simpleqa-dataset=quiz.csv", *models, "--simpleqa-sentinels=12", *workers)
    first = quiz.pytest(*args)
    assert sentinels(first)["n"] == 8  # 1, 2, 11 and 12 have no answer, so nobody judges them
    (quiz.path / "broken").unlink()
    quiz.pytest(*args, "--simpleqa-resume=latest", "--simpleqa-out=out.json")
    report = json.loads((quiz.path / "out.json").read_text(encoding="utf-8"))
    assert report["sentinels"]["n"] == 12
    assert report["sentinels"]["failed"] == 8
    assert len((quiz.path / "judged.txt").read_text().splitlines()) == 24


def test_a_report_is_made_again_from_the_lines(
    quiz: Quiz, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`simpleqa report` finds the same in the run's own lines, and decides a gate as the session would have."""
    tried = session(quiz, "python:judges:always_a")
    assert tried.run_dir is not None
    (tried.run_dir / "report.json").unlink()
    monkeypatch.chdir(quiz.path)
    assert main(["report", str(tried.run_dir), "--gate", "accuracy >= 0.3"]) == 6
    assert "the judge failed 8 of 12 sentinels" in " ".join(capsys.readouterr().out.split())
    again = json.loads((tried.run_dir / "report.json").read_text(encoding="utf-8"))
    assert again["sentinels"] == sentinels(tried)


def test_shards_are_counted_together(
    quiz: Quiz, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A merged run has the sentinels of all its shards, from run directories and from Reports alone."""
    shards = [session(quiz, "python:judges:always_a", f"--simpleqa-shard={i}/2", sentinels=3) for i in (1, 2)]
    monkeypatch.chdir(quiz.path)
    folders = [str(shard.run_dir) for shard in shards]
    reports = []
    for number, shard in enumerate(shards):
        reports.append(f"shard{number}.json")
        quiz.file(reports[-1], json.dumps(shard.report))
    for words in (folders, reports):
        assert main(["merge", *words, "--out", "all.json", "--gate", "accuracy >= 0.3"]) == 6
        merged = json.loads(Path("all.json").read_text(encoding="utf-8"))
        assert (merged["sentinels"]["n"], merged["sentinels"]["failed"]) == (6, 4)
    capsys.readouterr()


def test_a_replayed_run_brings_none_along(quiz: Quiz) -> None:
    """Answers taken from a Report with sentinels come without what another judge made of those."""
    tried = session(quiz, "python:judges:always_a", "--simpleqa-out=first.json")
    assert outcomes(tried)
    again = quiz.pytest("--simpleqa-dataset=quiz.csv", "--answer-llm=replay:first.json", "--judge-llm=rules")
    assert outcomes(again) == {}
    assert again.report is not None
    assert "sentinels" not in again.report
