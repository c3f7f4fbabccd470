"""Tests of the questions as test items: ids, keywords, markers, node ids, other plugins' hands on them."""

from __future__ import annotations

import pytest

from .quiz import Quiz

IDS = [f"quiz.csv::q000{number}" for number in range(1, 7)]
MODES = pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    return Quiz(pytester, "AAAAAA")


def collected(quiz: Quiz, *args: str) -> list[str]:
    """Return the node ids that a session would run."""
    session = quiz.run("--collect-only", "-q", *args)
    return [line for line in session.lines if "::" in line]


def test_ids_are_the_datasets_name_and_the_row(quiz: Quiz) -> None:
    """Node ids are `<dataset name>::q0001`, `q0002` ... in the order of the rows."""
    assert collected(quiz) == IDS


def test_a_rows_own_id_is_its_id(quiz: Quiz) -> None:
    """Where rows have ids of their own, these name the items."""
    quiz.file("quiz.csv", "id,problem,answer\nalpha-1,Who?,me\nbeta_2,What?,it\n")
    assert collected(quiz) == ["quiz.csv::alpha-1", "quiz.csv::beta_2"]


def test_a_dataset_outside_the_rootdir_has_the_same_ids(quiz: Quiz) -> None:
    """Wherever the file lies, a node id holds its name and no path."""
    quiz.file("elsewhere/deep/facts.csv", "problem,answer\nWho?,me\n")
    quiz.file("root/pytest.ini", "[pytest]\n")
    assert collected(quiz, "--simpleqa-dataset=elsewhere/deep/facts.csv", "--rootdir=root") == ["facts.csv::q0001"]


def test_repeats_have_ids_of_their_own(quiz: Quiz) -> None:
    """With --simpleqa-repeats each question stands K times, as `q0001-r1`, `q0001-r2`."""
    assert collected(quiz, "--simpleqa-repeats=2")[:3] == [
        "quiz.csv::q0001-r1",
        "quiz.csv::q0001-r2",
        "quiz.csv::q0002-r1",
    ]


def test_hostile_rows_have_plain_ids(quiz: Quiz) -> None:
    """Whatever a question's text holds, its id is made of letters, digits, `_` and `-`."""
    quiz.file("quiz.jsonl", '{"problem": "a::b [c] /d \\u0000 \\u2028", "answer": "x", "topic": "a::b"}\n')
    assert collected(quiz, "--simpleqa-dataset=quiz.jsonl") == ["quiz.jsonl::q0001"]


@pytest.mark.parametrize(
    ("option", "rows"),
    [
        ("-k=topic_art", [3, 6]),
        ("-k=art", [3, 6]),
        ("-k=topic_tv_shows", [1, 4]),
        ("-k=topic_中国文化", [2, 5]),
        ("-k=中国文化", [2, 5]),
        ("-k=type_date", [2, 4, 6]),
        ("-k=topic_art and type_person", [3]),
        ("-k=not topic_art and not type_date", [1, 5]),
        ("-k=q0004 or q0005", [4, 5]),
        ("-m=simpleqa", [1, 2, 3, 4, 5, 6]),
        ("-m=simpleqa(topic='Art')", [3, 6]),
        ("-m=simpleqa(topic='TV shows', answer_type='Date')", [4]),
        ("-m=simpleqa(topic='中国文化')", [2, 5]),
        ("-m=not simpleqa", []),
        ("--deselect=quiz.csv::q0002", [1, 3, 4, 5, 6]),
        ("--deselect=quiz.csv", []),
    ],
)
def test_keywords_markers_and_deselect_pick_questions(quiz: Quiz, option: str, rows: list[int]) -> None:
    """-k finds topic and type as words, -m by the marker's exact values, --deselect by node id."""
    assert collected(quiz, *option.split("=", 1)) == [f"quiz.csv::q000{row}" for row in rows]


def test_keywords_of_two_topics_do_not_mix(quiz: Quiz) -> None:
    """The exact keyword of a topic finds no question of another topic."""
    quiz.file("quiz.csv", "problem,answer,topic\nA?,a,Art\nB?,b,Art history\nC?,c,Martial art\n")
    assert collected(quiz, "-k", "topic_art and not topic_art_history") == ["quiz.csv::q0001"]


@pytest.mark.parametrize(
    ("picked", "rows"),
    [
        (["quiz.csv::q0002"], [2]),
        (["quiz.csv::q0005", "quiz.csv::q0002"], [2, 5]),
        (["quiz.csv"], [1, 2, 3, 4, 5, 6]),
        (["quiz.csv", "quiz.csv::q0002"], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_pasted_node_ids_run_those_questions(quiz: Quiz, picked: list[str], rows: list[int]) -> None:
    """Node ids of the dataset run those questions alone, in dataset order; the collector's own id runs all."""
    quiz.file("test_plain.py", "def test_plain():\n    pass\n")
    assert collected(quiz, *picked) == [f"quiz.csv::q000{row}" for row in rows]


@MODES
def test_pasted_node_ids_beside_ordinary_tests(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """Node ids of a dataset in another folder and of ordinary tests run together, and nothing else does."""
    (quiz.path / "data").mkdir()
    (quiz.path / "quiz.csv").rename(quiz.path / "data" / "quiz.csv")
    quiz.file("test_plain.py", "def test_one():\n    pass\n\n\ndef test_two():\n    assert 0\n")
    args = quiz.counted("quiz.csv::q0002", "quiz.csv::q0003", "test_plain.py::test_one", *mode)
    session = quiz.pytest(*args, "--simpleqa-dataset=data/quiz.csv")
    assert session.last == "1 passed, 2 correct"
    assert sorted(quiz.asked) == ["Who did thing 2?", "Who did thing 3?"]
    assert session.progress == (6, 2, 2, False)
    assert session.status == 0


def test_without_arguments_only_the_dataset_is_collected(quiz: Quiz) -> None:
    """Without positional arguments neither test files nor testpaths are collected."""
    quiz.file("test_plain.py", "def test_plain():\n    pass\n")
    quiz.file("pytest.ini", "[pytest]\ntestpaths = .\n")
    assert collected(quiz) == IDS


def test_with_ordinary_paths_both_are_collected(quiz: Quiz) -> None:
    """With a path both the tests there and the dataset are collected."""
    quiz.file("checks/test_plain.py", "def test_plain():\n    pass\n")
    assert sorted(collected(quiz, "checks")) == ["checks/test_plain.py::test_plain", *IDS]


def test_an_id_of_the_dataset_beside_a_path_picks_that_question(quiz: Quiz) -> None:
    """Beside a path, a question's id still picks that question alone."""
    quiz.file("checks/test_plain.py", "def test_plain():\n    pass\n")
    assert sorted(collected(quiz, "checks", IDS[3])) == ["checks/test_plain.py::test_plain", IDS[3]]


def test_collect_only_needs_no_model_and_leaves_nothing(quiz: Quiz) -> None:
    """--collect-only lists the questions without a model, asks nothing and writes no run."""
    session = quiz.pytest("--simpleqa-dataset=quiz.csv", "--collect-only", "-n2")
    assert session.status == 0
    assert sum("q000" in line for line in session.lines) == 6
    assert not (quiz.path / ".simpleqa").exists()


@pytest.mark.parametrize("option", ["--collect-only", "--setup-only", "--setup-plan"])
def test_looking_asks_nothing(quiz: Quiz, option: str) -> None:
    """Options that only look never ask a question."""
    session = quiz.count(option)
    assert (session.status, quiz.asked, session.report) == (0, [], None)
    assert list(quiz.path.glob(".simpleqa/*/")) == []


SKIPPER = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in ("q0002", "q0005"):
            item.add_marker(pytest.mark.{mark})
"""


@pytest.mark.parametrize(
    ("mark", "mode"),
    [
        ("skip(reason='not today')", ()),
        ("skipif(True, reason='not today')", ()),
        ("skip(reason='not today')", ("-n2",)),
    ],
)
def test_a_skipped_question_is_never_asked(quiz: Quiz, mark: str, mode: tuple[str, ...]) -> None:
    """A question that a conftest has marked to be skipped is not asked, not even ahead."""
    quiz.file("conftest.py", SKIPPER.format(mark=mark))
    session = quiz.count(*mode)
    assert sorted(quiz.asked) == [f"Who did thing {number}?" for number in (1, 3, 4, 6)]
    assert session.last == "2 skipped, 4 correct"
    assert session.progress == (6, 6, 4, False)
    assert session.status == 0


@pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
@pytest.mark.parametrize("fails", ["pytest.skip('not today')", "raise RuntimeError('no')"])
def test_a_plugin_that_fails_at_setup_keeps_the_question_from_counting(
    quiz: Quiz, fails: str, mode: tuple[str, ...]
) -> None:
    """A plugin that is no conftest skips or fails a question at setup: it is not called, and has no result."""
    hook = f"def pytest_runtest_setup(item):\n    if item.name == 'q0002':\n        {fails}\n"
    quiz.file("early.py", f"import pytest\n\n\n{hook}")
    session = quiz.apart("-p", "early", *quiz.args(*mode))
    assert session.progress == (6, 6, 5, False), session.text
    assert session.status == int("raise" in fails)


def test_a_conftest_may_reorder_and_drop_items(quiz: Quiz) -> None:
    """Questions run in the order that a conftest gives them; the Report stays in dataset order."""
    quiz.file("conftest.py", "def pytest_collection_modifyitems(items):\n    items[:] = items[:0:-1]\n")
    session = quiz.count("--simpleqa-concurrency=1", "-v")
    assert quiz.asked == [f"Who did thing {number}?" for number in (6, 5, 4, 3, 2)]
    assert session.report is not None
    assert [sample["id"] for sample in session.report["samples"]] == [f"q000{n}" for n in range(2, 7)]
    assert session.progress == (6, 5, 5, False)


def test_fixtures_of_the_whole_session_stay_out(quiz: Quiz) -> None:
    """Autouse fixtures of a project's conftest do not run around questions, and do no harm."""
    quiz.file(
        "conftest.py", "import pytest\n\n@pytest.fixture(autouse=True)\ndef loud():\n    assert False\n    yield\n"
    )
    session = quiz.run()
    assert (session.status, session.counts) == (0, (6, 0, 0, 0, 0))
