"""Tests of pytest's own selection over questions: last failed first, the cache, and what a Report says of it."""

from __future__ import annotations

import pytest

from .quiz import Quiz

MODES = pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
NONE_FAILED = "quiz.csv: no question has failed last time, so none is asked"


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    return Quiz(pytester, "ABCAB")


@MODES
def test_last_failed_asks_exactly_the_failed(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """--lf asks the questions that failed last time and no other, and the Report says what was left out."""
    quiz.run()
    session = quiz.count("--lf", *mode)
    assert sorted(quiz.asked) == ["Who did thing 2?", "Who did thing 5?"]
    assert session.progress == (5, 2, 2, False)
    assert session.status == 1
    assert NONE_FAILED not in session.text


def test_failed_first_asks_them_first(quiz: Quiz) -> None:
    """--ff runs the failed questions first, then the others."""
    quiz.run()
    session = quiz.count("--ff", "--simpleqa-concurrency=1")
    assert [line.split()[-1] for line in quiz.asked] == ["2?", "5?", "1?", "3?", "4?"]
    assert session.progress == (5, 5, 5, True)


@pytest.mark.parametrize(("option", "mode"), [("--lf", ()), ("--ff", ()), ("--lf", ("-n2",))])
def test_with_none_failed_nothing_is_asked(quiz: Quiz, option: str, mode: tuple[str, ...]) -> None:
    """--lf and --ff with no failed question in the cache select none, say so, and never pay for everything again."""
    session = quiz.count(option, *mode)
    assert (session.status, quiz.asked) == (5, [])
    assert session.lines.count(NONE_FAILED) == 1
    assert list(quiz.path.glob(".simpleqa/*/")) == []


def test_failures_of_ordinary_tests_are_not_the_datasets(quiz: Quiz) -> None:
    """With failures of other tests alone in the cache, --lf runs those and asks no question."""
    quiz.file("test_plain.py", "def test_bad():\n    assert 0\n\n\ndef test_good():\n    pass\n")
    quiz.write("AAAAA")
    quiz.run("test_plain.py")
    session = quiz.count("--lf", "test_plain.py")
    assert (session.status, quiz.asked) == (1, [])
    assert "1 failed" in session.last
    assert NONE_FAILED in session.lines


def test_without_the_cache_last_failed_is_unknown_to_pytest(quiz: Quiz) -> None:
    """With the cache plugin off a whole run works as ever."""
    session = quiz.run("-pno:cacheprovider")
    assert session.counts == (2, 2, 1, 0, 0)


def test_last_failed_none_option_asks_nothing_either(quiz: Quiz) -> None:
    """--lf with --lfnf=all still pays for nothing where no question has failed."""
    session = quiz.count("--lf", "--lfnf=all")
    assert (session.status, quiz.asked) == (5, [])


def test_stepwise_goes_on_behind_the_failure(quiz: Quiz) -> None:
    """--stepwise stops at the first failed question and starts there next time."""
    first = quiz.run("--stepwise", "--simpleqa-concurrency=1")
    second = quiz.run("--stepwise", "--simpleqa-concurrency=1", "--stepwise-skip")
    assert first.last.startswith("1 correct, 1 incorrect")
    assert "1 deselected" in second.last
    assert second.last.endswith("1 correct, 2 incorrect, 1 not attempted")


@MODES
def test_keyword_selection_is_counted(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """Questions that -k leaves out stay in the population, are not asked, and make the run incomplete."""
    session = quiz.count("-k", "topic_art or topic_tv_shows", *mode)
    assert [line.split()[-1] for line in sorted(quiz.asked)] == ["1?", "3?", "4?"]
    assert session.progress == (5, 3, 3, False)
    assert session.report is not None
    assert session.report["selected"] == 3
    assert sum(verdict is None for *_, verdict in session.report["verdicts"]) == 2
    assert "incomplete: 3 of 5 questions have a result, 2 not selected" in session.lines


def test_an_id_behind_the_files_path_is_one_too(quiz: Quiz) -> None:
    """`./quiz.csv::q0002` runs the question that `quiz.csv::q0002` runs."""
    assert quiz.run("./quiz.csv::q0002").progress[1] == 1
    assert quiz.run(f"{quiz.path / 'quiz.csv'}::q0002").progress[1] == 1
