"""Tests of what a question's verdict makes of its item, and of the session's exit status."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .quiz import Quiz, Session

EVERYTHING = "2 correct, 1 incorrect, 1 not attempted, 1 judge failure, 1 answer error"


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    return Quiz(pytester)


@pytest.mark.parametrize(
    "mode",
    [(), ("-n0",), ("-n2",), pytest.param(("-n8",), marks=pytest.mark.slow)],
    ids=["bare", "n0", "n2", "n8"],
)
def test_letters_words_counts_and_status_are_the_same_in_every_mode(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """Letters, the last line, the Report's counts and the exit status do not depend on how many processes answer."""
    session = quiz.run("--simpleqa-progress-pct=0", "-q", *mode)
    letters = next(line for line in session.lines if line.endswith("[100%]")).split()[0]
    assert sorted(letters) == sorted(".i-.?!")
    assert session.last == EVERYTHING
    assert session.counts == (2, 1, 1, 1, 1)
    assert session.progress == (6, 6, 6, True)
    assert session.status == 1
    assert session.report is not None
    assert session.report["exit_status"] == 1
    assert [sample["id"] for sample in session.report["samples"]] == [f"q000{n}" for n in range(1, 7)]


def test_bare_letters_stand_in_dataset_order(quiz: Quiz) -> None:
    """One letter a question, in the order of the dataset."""
    session = quiz.run("-q", "--simpleqa-progress-pct=0")
    assert any(line.startswith(".i-.?!") for line in session.lines)


@pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
def test_verbose_says_the_word_of_each_question(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """Under -v every question's line holds its node id and its word."""
    session = quiz.run("-v", *mode)
    words = ("correct", "incorrect", "not attempted", "correct", "judge failure", "answer error")
    for number, word in enumerate(words, start=1):
        node_id = f"quiz.csv::q000{number}"
        assert any(node_id in line and word in line.replace("incorrect", word) for line in session.lines), word


def test_verbose_lines_are_not_broken_by_progress_lines(quiz: Quiz) -> None:
    """A progress line comes after the question that caused it, on a line of its own."""
    session = quiz.run("-v", "--simpleqa-progress-pct=50")
    at = next(n for n, line in enumerate(session.lines) if line.startswith("50 %  3 of 6"))
    assert session.lines[at - 1].startswith("quiz.csv::q0003 not attempted")
    assert sum("q0003" in line for line in session.lines[:at]) == 1


def test_progress_lines_stand_alone_under_xdist(quiz: Quiz) -> None:
    """Under xdist no letter stands before a progress line."""
    session = quiz.run("-n2", "--simpleqa-progress-pct=25")
    progress = [line for line in session.lines if " of 6  " in line]
    assert [line.split()[0] for line in progress] == ["33", "50", "83"]


def test_a_run_of_a_few_seconds_tells_no_progress(quiz: Quiz) -> None:
    """A run that is over before anybody could read it shows no progress line, unless it was asked for."""
    assert not [line for line in quiz.run().lines if " of 6  " in line]
    assert [line for line in quiz.run("--simpleqa-progress-pct=25").lines if " of 6  " in line]


def ours(session: Session) -> list[str]:
    return [line for line in session.lines if line.strip() and not line.endswith("[100%]")]


def test_twice_quiet_prints_one_line_of_ours(quiz: Quiz) -> None:
    """Under -qq the run is one line beside pytest's letters."""
    session = quiz.run("-qq")
    assert session.counts == (2, 1, 1, 1, 1)
    assert len(ours(session)) == 1
    assert ours(session)[0].startswith("quiz.csv: 6 of 6 questions, accuracy .333")


@pytest.mark.parametrize(
    "option", ["--no-summary", "-pno:terminal", "-pno:cacheprovider", "-pno:xdist", "--tb=no", "-qqq"]
)
def test_what_is_shown_changes_neither_report_nor_status(quiz: Quiz, option: str) -> None:
    """Switching off the terminal, the cache, xdist or the summary leaves the Report and the exit status as they are."""
    session = quiz.run(option)
    assert session.counts == (2, 1, 1, 1, 1)
    assert session.progress == (6, 6, 6, True)
    assert session.status == 1
    assert session.errors == ""


def test_no_terminal_prints_nothing(quiz: Quiz) -> None:
    """Without a terminal reporter nothing is printed."""
    session = quiz.run("-pno:terminal")
    assert session.text.strip() == ""


def test_extra_summaries_print_no_section_per_question(quiz: Quiz) -> None:
    """-rA, --durations and a traceback style add no line per question: the summary names the wrong ones."""
    session = quiz.run("-rA", "--durations=3", "--tb=long", "--simpleqa-progress-pct=0")
    assert session.counts == (2, 1, 1, 1, 1)
    assert sum("q0002" in line and " call " not in line for line in session.lines) == 1
    assert not any("Traceback" in line for line in session.lines)


def test_wrong_answers_show_twenty_lines(quiz: Quiz) -> None:
    """Wrong answers print one line each, the first 20; the heading says how many there are."""
    quiz.write("B" * 25)
    session = quiz.run("-p", "no:randomly")
    assert "25 wrong answers, the first 20; the rest is in the Report" in session.text
    assert sum(line.startswith("quiz.csv::q00") for line in session.lines) == 20


HOSTILE = "nul \x00 esc \x1b[31mred end ]]> emoji \U0001f600 <b>&amp; bell \x07 half \ud83c"


@pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
def test_junit_file_survives_hostile_answers(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """A JUnit file with control characters, ]]> and emoji in answers parses, one case a question."""
    quiz.write("ABC?!", {2: HOSTILE, 4: HOSTILE})
    session = quiz.run("--junitxml=junit.xml", "-v", *mode)
    assert session.counts == (1, 1, 1, 1, 1)
    cases = {case.get("name"): case for case in ElementTree.parse(quiz.path / "junit.xml").iter("testcase")}
    assert sorted(filter(None, cases)) == [f"q000{n}" for n in range(1, 6)]
    assert {case.get("classname") for case in cases.values()} == {"quiz.csv"}
    failure = cases["q0002"].find("failure")
    assert failure is not None
    assert failure.text is not None
    assert failure.text.startswith("incorrect: ")
    # Older pytest takes an emoji for a character that XML cannot hold.
    assert "\U0001f600" in failure.text or pytest.version_tuple < (9, 0)
    assert cases["q0003"].find("skipped") is not None
    failed = sorted(case.get("name", "") for case in cases.values() if case.find("failure") is not None)
    assert failed == ["q0002", "q0004", "q0005"]
    raw = session.text + session.errors
    assert not any(character in raw for character in "\x00\x07\x1b")


@pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
def test_json_report_keeps_outcomes_and_holds_the_run(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """In pytest-json-report outcomes are pytest's own, verdicts stand in the metadata, the Reports under `simpleqa`."""
    session = quiz.run("--json-report", "--json-report-file=out.json", *mode)
    document = json.loads((quiz.path / "out.json").read_text())
    tests = {test["nodeid"]: test for test in document["tests"]}
    outcomes = ("passed", "failed", "skipped", "passed", "failed", "failed")
    statuses = ("correct", "incorrect", "not_attempted", "correct", "judge_failure", "error")
    for number, (outcome, status) in enumerate(zip(outcomes, statuses, strict=True), start=1):
        test = tests[f"quiz.csv::q000{number}"]
        verdict = status if number < 5 else None
        assert (test["outcome"], test["metadata"]["simpleqa"]) == (outcome, {"verdict": verdict, "status": status})
    assert {key: document["summary"][key] for key in ("passed", "failed", "skipped", "total")} == {
        "passed": 2,
        "failed": 3,
        "skipped": 1,
        "total": 6,
    }
    assert document["simpleqa"] == {"runs": [session.report]}
    assert document["exitcode"] == 1


@pytest.mark.parametrize(
    ("fail_on", "verdicts", "status"),
    [
        ("incorrect,not_attempted", "AC", 1),
        ("not_attempted", "AB", 0),
        ("none", "ABC", 0),
        ("none", "A?", 1),
        ("none", "A!", 1),
        ("incorrect", "AC", 0),
        ("incorrect", "AB", 1),
    ],
)
def test_fail_on_says_which_verdicts_fail(quiz: Quiz, fail_on: str, verdicts: str, status: int) -> None:
    """--simpleqa-fail-on decides which verdicts fail; judge failures and errors fail always."""
    quiz.write(verdicts)
    session = quiz.run(f"--simpleqa-fail-on={fail_on}")
    assert session.status == status
    assert session.report is not None
    assert session.report["exit_status"] == status


ORDINARY = "def test_good():\n    pass\n"
BROKEN = "def test_bad():\n    assert 1 == 2\n"


@pytest.mark.parametrize(
    ("verdicts", "tests", "mode", "status", "last"),
    [
        ("AC", ORDINARY, (), 0, "1 correct, 1 not attempted, 1 passed"),
        ("AC", ORDINARY, ("-n2",), 0, "1 correct, 1 not attempted, 1 passed"),
        ("AC", ORDINARY + BROKEN, (), 1, "1 correct, 1 not attempted, 1 failed, 1 passed"),
        ("AC", ORDINARY + BROKEN, ("-n2",), 1, "1 correct, 1 not attempted, 1 failed, 1 passed"),
        ("AB", ORDINARY, (), 1, "1 correct, 1 incorrect, 1 passed"),
    ],
)
def test_ordinary_tests_stand_beside(
    quiz: Quiz, verdicts: str, tests: str, mode: tuple[str, ...], status: int, last: str
) -> None:
    """Ordinary tests in the same session keep their own outcomes, and either side can fail the session."""
    quiz.write(verdicts)
    quiz.file("test_plain.py", tests)
    session = quiz.run("test_plain.py", *mode)
    assert session.status == status
    assert sorted(session.last.split(", ")) == sorted(last.split(", "))
    assert session.progress == (2, 2, 2, True)
    assert session.report is not None
    assert session.report["exit_status"] == status
    assert ("= FAILURES =" in session.text) == (BROKEN in tests)


@pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
def test_nothing_selected_is_five_and_leaves_no_run(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """A selection that matches no question ends with status 5; nothing is asked, no run directory is left."""
    session = quiz.count("-k", "nosuchtopic", *mode)
    assert session.status == 5
    assert quiz.asked == []
    assert list(quiz.path.glob(".simpleqa/*/")) == []


def test_all_not_attempted_is_zero(quiz: Quiz) -> None:
    """Questions that were not attempted are skips: alone they do not fail a session."""
    quiz.write("CC")
    session = quiz.run()
    assert (session.status, session.counts) == (0, (0, 0, 2, 0, 0))
    assert session.report is not None
    assert session.report["attempted_accuracy"] is None


def test_error_in_an_ordinary_test_file_keeps_pytests_status(quiz: Quiz) -> None:
    """A test file that cannot be imported interrupts the collection as always, before any question is asked."""
    quiz.file("test_broken.py", "import nosuchmodule\n")
    session = quiz.count("test_broken.py")
    assert (session.status, quiz.asked) == (2, [])
    assert session.report is None


def test_internal_error_is_three(quiz: Quiz) -> None:
    """An error in a conftest's hook is pytest's internal error, with the Report of what was finished."""
    quiz.file(
        "conftest.py",
        "def pytest_runtest_logfinish(nodeid):\n    assert not nodeid.endswith('q0003'), 'a bug in a plugin'\n",
    )
    session = quiz.run()
    assert session.status == 3
    assert session.report is not None
    assert session.report["exit_status"] == 3
    assert session.report["n"] >= 3


def test_a_failing_item_tells_its_reason_in_one_line(quiz: Quiz, tmp_path: Path) -> None:
    """The failure text of each item is one line that names the verdict or the failure."""
    session = quiz.run("--junitxml=junit.xml")
    texts = [failure.text or "" for failure in ElementTree.parse(quiz.path / "junit.xml").iter("failure")]
    assert session.status == 1
    assert [text.count("\n") for text in texts] == [0, 0, 0]
    starts = [text.partition(":")[0] for text in texts]
    assert starts[0] == "incorrect"
    assert starts[1].startswith("judge failure (")
    assert starts[2] == "answer error (missing)"
