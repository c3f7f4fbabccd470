"""Gates in a session: what decides the exit status, and what is said of it."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

from .quiz import Quiz, Session

PARTS = [
    ("-x", "--simpleqa-fail-on=incorrect", "--simpleqa-concurrency=1"),
    ("-k", "q0001"),
    ("quiz.csv::q0002",),
]
BOTH = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["bare", "n2"])


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    """Ten questions: 3 correct, 5 incorrect, 2 not attempted."""
    return Quiz(pytester, "AAABBBBBCC")


def gate(session: Session) -> dict[str, Any]:
    """Return the only gate of the session's Report."""
    assert session.report is not None, session.text + session.errors
    (found,) = session.report["gates"]
    assert isinstance(found, dict)
    return found


def gate_line(session: Session) -> str:
    """Return what the summary says of the gates, unfolded."""
    return " ".join(session.text.partition("\ngate ")[2].partition("\n\n")[0].split())


@BOTH
def test_a_gate_that_is_met_passes_the_session(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """With a gate the questions only record: wrong answers pass their items, and the gate alone decides."""
    session = quiz.run("--simpleqa-gate=accuracy >= 0.3", *workers)
    assert session.status == 0, session.text + session.errors
    assert gate(session)["verdict"] == "pass"
    assert gate(session)["value"] == gate(session)["bound"] == pytest.approx(0.3)
    assert session.last == "3 correct, 5 incorrect, 2 not attempted"
    assert "accuracy >= 0.3: pass" in gate_line(session)
    assert session.report is not None
    assert session.report["exit_status"] == 0


@BOTH
def test_a_gate_that_is_missed_fails_the_session(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """A gate below its bound is exit status 1."""
    session = quiz.run("--simpleqa-gate=accuracy >= 0.31", *workers)
    assert session.status == 1
    assert gate(session)["verdict"] == "fail"


@BOTH
@pytest.mark.parametrize("extra", PARTS)
def test_no_gate_passes_on_a_part_of_the_run(quiz: Quiz, workers: tuple[str, ...], extra: tuple[str, ...]) -> None:
    """After -x, -k or node ids a gate that the finished rows would meet is not passed."""
    session = quiz.run("--simpleqa-gate=accuracy >= 0.01", *extra, *workers)
    assert session.status == (1 if "-x" in extra else 6), session.text
    assert gate(session)["verdict"] == "undecided"
    assert "of 10 rows" in gate(session)["reason"]


@BOTH
def test_an_empty_selection_is_never_0(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """A selection that matches nothing leaves the gate undecided and says so."""
    session = quiz.run("--simpleqa-gate=accuracy >= 0", "-k", "nosuchtopic", *workers)
    assert session.status == 6
    assert "undecided: no question was asked" in session.text


def test_failures_above_the_limit_leave_a_gate_undecided(pytester: pytest.Pytester) -> None:
    """Two errors in ten are above the default of 0.01: exit status 6, and the reason counts them."""
    session = Quiz(pytester, "AAABBBBB!!").run("--simpleqa-gate=accuracy >= 0.2")
    assert session.status == 6
    assert gate(session)["reason"].startswith("failures 2 of 10 are above 0.01")


def test_failures_within_the_limit_count_against_the_gate(pytester: pytest.Pytester) -> None:
    """Of 3 correct, 5 incorrect and 2 errors accuracy is .3, coverage .8 and F .3333; a gate on accuracy uses .3."""
    quiz = Quiz(pytester, "AAABBBBB!!")
    session = quiz.run("--simpleqa-gate=accuracy >= 0.3", "--simpleqa-max-failures=0.2")
    assert session.status == 0, session.text
    assert session.report is not None
    assert session.report["coverage"] == pytest.approx(0.8)
    assert session.report["f_score"] == pytest.approx(1 / 3)
    assert gate(session)["value"] == pytest.approx(0.3)
    worst = quiz.run("--simpleqa-gate=hallucination_rate <= 0.6", "--simpleqa-max-failures=0.2")
    assert (gate(worst)["value"], gate(worst)["bound"]) == (pytest.approx(0.5), pytest.approx(0.7))
    assert worst.status != 0


def test_an_ordinary_failure_outweighs_a_gate(quiz: Quiz) -> None:
    """A test of the same session that fails is exit status 1, whatever the gate says."""
    quiz.file("test_plain.py", "def test_plain():\n    assert 0\n")
    assert quiz.run("test_plain.py", "--simpleqa-gate=accuracy >= 0.3").status == 1
    assert quiz.run("test_plain.py", "--simpleqa-gate=accuracy >= 0.3", "-k", "plain or q0001").status == 1


def test_verdicts_fail_beside_a_gate_only_by_order(quiz: Quiz) -> None:
    """--simpleqa-fail-on said explicitly fails the session though the gate passes."""
    session = quiz.run("--simpleqa-gate=accuracy >= 0.3", "--simpleqa-fail-on=incorrect")
    assert (session.status, gate(session)["verdict"]) == (1, "pass")


@BOTH
def test_a_baseline_is_compared_on_the_same_questions(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """Against itself a run has no flips and passes; against a better one it fails; both stand in the Report."""
    first = quiz.run()
    assert first.run_dir is not None
    baseline = f"--simpleqa-baseline={first.run_dir}"
    same = quiz.run("--simpleqa-gate=accuracy >= baseline", baseline, *workers)
    assert same.status == 0, same.text + same.errors
    assert same.report is not None
    assert sum(same.report["comparison"]["flips"].values()) == 0
    quiz.write("BBBBBBBBCC")
    worse = quiz.run("--simpleqa-gate=accuracy >= baseline + 0.2", baseline, *workers)
    assert worse.status == 1, worse.text
    assert worse.report is not None
    assert worse.report["comparison"]["flips"]["correct_to_incorrect"] == 3


def test_a_baseline_alone_gates_nothing(quiz: Quiz) -> None:
    """Without a gate a baseline adds the comparison, and the items decide as ever."""
    first = quiz.run("--simpleqa-out=first.json")
    session = quiz.run("--simpleqa-baseline=first.json")
    assert (first.status, session.status) == (1, 1)
    assert session.report is not None
    assert session.report["comparison"]["questions"] == 10
    assert session.report["gates"] == []


def test_gates_stand_in_ini_files_as_a_list(quiz: Quiz) -> None:
    """The ini key simpleqa_gate holds one gate a line; each is decided and the worst counts."""
    quiz.file("pytest.ini", "[pytest]\nsimpleqa_gate =\n    accuracy >= 0.1\n    hallucination_rate <= 0.4\n")
    session = quiz.run()
    assert session.status == 1
    assert session.report is not None
    assert [each["verdict"] for each in session.report["gates"]] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("--simpleqa-gate=accuracy => 0.4", "column 10"),
        ("--simpleqa-gate=accuracy >= 40", "fraction"),
        ("--simpleqa-gate=accuracy >= 40%", "fraction"),
        ("--simpleqa-gate=acuracy >= 0.4", "accuracy"),
        ("--simpleqa-gate=accuracy >= baseline", "--simpleqa-baseline"),
        ("--simpleqa-gate=topic[TV show].accuracy >= 0.1", "did you mean 'TV shows'?"),
        ("--simpleqa-baseline=nothing.json", "nothing.json"),
        ("--simpleqa-max-failures=2", "from 0 to 1"),
    ],
)
def test_a_gate_that_cannot_be_read_is_one_line(quiz: Quiz, said: str, told: str) -> None:
    """A mistake in a gate, a baseline or a limit is exit status 4 in one line, before anything is asked."""
    session = quiz.count(said)
    assert session.status == 4
    lines = [line for line in session.errors.splitlines() if line]
    assert len(lines) == 1, lines
    assert told in lines[0]
    assert quiz.asked == []


@pytest.mark.parametrize("said", ["--simpleqa-gate=accuracy >= 0.4", "--simpleqa-baseline=recorded.jsonl"])
def test_a_gate_without_a_model_is_a_mistake(quiz: Quiz, said: str) -> None:
    """A gate or a baseline on the command line without --answer-llm is exit status 4."""
    session = quiz.pytest(said)
    assert session.status == 4
    assert "--answer-llm" in session.errors


def test_ctrl_c_leaves_the_gate_undecided(quiz: Quiz) -> None:
    """After Ctrl-C the gate line says undecided and the exit status is 2."""
    quiz.write("A" * 60)
    quiz.file("delay.txt", "0.2")
    process = quiz.start(*quiz.counted("--simpleqa-gate=accuracy >= 0.1", "--simpleqa-concurrency=2"))
    deadline = time.monotonic() + 60
    while len(quiz.asked) < 6 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    session = quiz.finish(process)
    assert session.status == 2, session.text + session.errors
    assert gate(session)["verdict"] == "undecided"
    assert "interrupted" in gate(session)["reason"]


def test_the_report_of_a_gated_session_is_strict_json(quiz: Quiz) -> None:
    """Gates and comparison are plain JSON in the file that --simpleqa-out names."""
    quiz.run("--simpleqa-out=first.json")
    quiz.run(
        "--simpleqa-gate=f_score >= baseline - 0.1", "--simpleqa-baseline=first.json", "--simpleqa-out=second.json"
    )
    text = (quiz.path / "second.json").read_text(encoding="utf-8")
    report = json.loads(text, parse_constant=lambda word: pytest.fail(word))
    assert report["gates"][0]["verdict"] == "pass"


@BOTH
def test_no_gate_hides_a_failure_that_is_not_a_question(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """A test module that cannot be imported, or a setup that breaks, fails the session though the gate passes."""
    quiz.file("test_bad.py", "import nothing_of_that_name\n")
    broken = quiz.run("test_bad.py", "--continue-on-collection-errors", "--simpleqa-gate=accuracy >= 0.1", *workers)
    assert broken.status == 1, broken.text
    (quiz.path / "test_bad.py").unlink()
    quiz.file("conftest.py", "def pytest_runtest_setup(item):\n    assert item.name != 'q0002'\n")
    setup = quiz.run("--simpleqa-gate=accuracy >= 0.1", *workers)
    assert setup.status == 1, setup.text


def test_a_gate_needs_questions_in_common(quiz: Quiz) -> None:
    """A baseline that shares less than half of the questions leaves its gate undecided."""
    quiz.run("--simpleqa-out=first.json")
    text = (quiz.path / "quiz.csv").read_text(encoding="utf-8")
    lines = text.splitlines()
    changed = [line.replace("person", "another") for line in lines[4:]]
    quiz.file("quiz.csv", "\n".join([*lines[:4], *changed]) + "\n")
    session = quiz.run(
        "--simpleqa-gate=accuracy >= baseline", "--simpleqa-baseline=first.json", "--simpleqa-max-failures=1"
    )
    assert session.status == 6, session.text
    assert "3 of 10 questions" in gate(session)["reason"]
