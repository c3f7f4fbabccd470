"""Tests of the `simpleqa` fixture in whole sessions: items, results, Reports, and what is asked when."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pytest_simpleqa.models.recording import read_recording

from .fake_server import FakeServer, error
from .quiz import Quiz, Session
from .small_run import run_dirs

MODELS = ("--answer-llm=python:model:answer", "--judge-llm=rules")
MODEL = '''
from pathlib import Path

SAYS = {"Capital of France?": "Paris", "Capital of Spain?": "Lisbon", "Who wrote Hamlet?": "I don't know."}


def answer(prompt):
    """Answer, and note that it was asked."""
    with (Path(__file__).parent / "asked.txt").open("a", encoding="utf-8") as file:
        file.write(prompt + "\\n")
    if "fail" in prompt:
        raise RuntimeError("no luck today")
    return SAYS.get(prompt, "1969")
'''
FACTS = """\
problem,answer,topic,answer_type
Capital of France?,Paris,Geography,Place
Capital of Spain?,Madrid,Geography,Place
Who wrote Hamlet?,William Shakespeare,Art,Person
When did people land on the moon?,1969,History,Date
"""
TESTS = """\
import pytest


@pytest.mark.simpleqa_dataset("facts.csv")
def test_facts(simpleqa):
    assert simpleqa.grade(simpleqa.ask()).verdict == "correct"


@pytest.mark.simpleqa_dataset("facts.csv", topics=["Geography"])
@pytest.mark.parametrize("place", ["there", "here"])
def test_own(simpleqa, place):
    simpleqa.grade("Paris" if place == "here" else "Madrid")


@pytest.mark.parametrize("number", range(3))
def test_plain(number):
    assert number < 2
"""
HOW = pytest.mark.parametrize("how", [(), ("-n2",)], ids=["bare", "n2"])


class Suite:
    """A project with a dataset and a model that counts, and sessions in it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.path = pytester.path
        self.quiz = Quiz(pytester)
        self.write(model__py=MODEL, facts__csv=FACTS, pytest__ini="[pytest]\n")

    def write(self, **files: str) -> None:
        """Write files: `name__ext` becomes `name.ext`."""
        for name, text in files.items():
            (self.path / name.replace("__", ".")).write_text(text, encoding="utf-8")

    def run(self, *args: str, models: tuple[str, ...] = MODELS, apart: bool = False, **files: str) -> Session:
        """Run a session over the test files in the folder; in this process where nothing needs one of its own."""
        self.write(**files)
        paths = () if any("::" in arg or arg.endswith(".py") for arg in args) else ("test_facts.py",)
        run = self.quiz.apart if apart or self.quiz.environment else self.quiz.pytest
        return run(*paths, *models, *args)

    def asked(self) -> list[str]:
        """Return what the model was asked since the last call."""
        path = self.path / "asked.txt"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def reports(self) -> Mapping[str, Any]:
        """Return the newest Report of each run, by the run's name."""
        found = (json.loads((path / "report.json").read_text(encoding="utf-8")) for path in run_dirs(self.path))
        return {report["name"]: report for report in found}


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Suite:
    return Suite(pytester)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(latency=0.02) as running:
        yield running


def counts(report: Mapping[str, Any]) -> tuple[int, ...]:
    """Return population, selected, n; correct, incorrect, not attempted, judge failures, errors."""
    names = ("population", "selected", "n", "correct", "incorrect", "not_attempted", "judge_failures", "errors")
    return tuple(report[name] for name in names)


def verdicts(report: Mapping[str, Any]) -> list[str | None]:
    return [row[3] for row in report["verdicts"]]


# --- items and Reports -------------------------------------------------------------------------


@HOW
def test_fixture_tests_ordinary_tests_and_a_dataset_run_in_one_session(suite: Suite, how: tuple[str, ...]) -> None:
    """Every function is a run with a Report of its own beside the dataset's, and plain tests are what they are."""
    session = suite.run("--simpleqa-dataset=facts.csv", *how, test_facts__py=TESTS)
    assert session.status == 1
    assert session.last == "3 failed, 8 passed, 2 correct, 1 incorrect, 1 not attempted"
    reports = suite.reports()
    assert {name: counts(report) for name, report in reports.items()} == {
        "facts.csv": (4, 4, 4, 2, 1, 1, 0, 0),
        "test_facts.py::test_facts": (4, 4, 4, 2, 1, 1, 0, 0),
        "test_facts.py::test_own[there]": (2, 2, 2, 1, 1, 0, 0, 0),
        "test_facts.py::test_own[here]": (2, 2, 2, 1, 1, 0, 0, 0),
    }
    assert all(report["complete"] and report["dataset"] == "facts.csv" for report in reports.values())
    assert verdicts(reports["test_facts.py::test_own[there]"]) == ["incorrect", "correct"]
    assert Counter(suite.asked()) == dict.fromkeys([row.partition(",")[0] for row in FACTS.splitlines()[1:]], 2)
    assert (
        "4 runs: 12 questions to python:model:answer, judged by rules: at least 4 calls and up to 8 calls in tests"
        in " ".join(session.text.split())
    )


def test_ids_are_those_of_the_questions(suite: Suite) -> None:
    """A row's item has the question's id in brackets, behind other parameters, in classes too."""
    more = """
@pytest.mark.simpleqa_dataset("facts.csv", limit=1)
class TestAll:
    def test_it(self, simpleqa):
        pass
"""
    lines = suite.run("--collect-only", "-q", test_facts__py=TESTS + more).lines
    assert [line for line in lines if "::" in line and "plain" not in line] == [
        *(f"test_facts.py::test_facts[q000{number}]" for number in (1, 2, 3, 4)),
        *(f"test_facts.py::test_own[{place}-q000{number}]" for place in ("there", "here") for number in (1, 2)),
        "test_facts.py::TestAll::test_it[q0001]",
    ]


@pytest.mark.parametrize(
    "args", [("-k", "topic_art"), ("-m", "simpleqa(topic='Art')"), ("test_facts.py::test_facts[q0003]",)]
)
def test_questions_are_selected_as_elsewhere(suite: Suite, args: tuple[str, ...]) -> None:
    """Topics are found by -k and -m, an item by its id; the run is then told to be incomplete."""
    suite.run(*args, test_facts__py=TESTS)
    assert suite.asked() == ["Who wrote Hamlet?"]
    (report,) = suite.reports().values()
    assert counts(report)[:3] == (4, 1, 1)
    assert not report["complete"]


def test_last_failed_runs_the_failed_alone(suite: Suite) -> None:
    """--lf means of a fixture test what it means of any test."""
    suite.run(test_facts__py=TESTS)
    suite.asked()
    session = suite.run("--lf", "test_facts.py")
    assert session.last == "3 failed, 8 deselected"
    assert suite.asked() == ["Capital of Spain?", "Who wrote Hamlet?"]


def test_what_the_marker_does_not_say_is_as_on_the_command_line(suite: Suite) -> None:
    """Without a marker the rows are those of --simpleqa-dataset; a marker's limit takes the place of the option's."""
    tests = """\
import pytest

def test_all(simpleqa):
    simpleqa.grade("Paris")

@pytest.mark.simpleqa_dataset(limit=1)
def test_one(simpleqa):
    simpleqa.grade("Paris")
"""
    suite.run("--simpleqa-dataset=facts.csv", "--simpleqa-limit=3", "--simpleqa-repeats=2", test_facts__py=tests)
    reports = suite.reports()
    assert {name: report["n"] for name, report in reports.items()} == {
        "facts.csv": 6,
        "test_facts.py::test_all": 6,
        "test_facts.py::test_one": 2,
    }
    assert reports["test_facts.py::test_one"]["options"]["limit_questions"] == 1


def test_a_path_in_the_marker_counts_from_the_test_file(suite: Suite) -> None:
    """The same file is found whatever folder pytest is started in."""
    folder = suite.path / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "facts.csv").write_text(FACTS)
    (folder / "test_there.py").write_text(TESTS)
    (suite.path / "facts.csv").unlink()
    for how in ((), ("-n2",)):
        suite.run("deep/er/test_there.py", *how)
        assert len(suite.asked()) == 4
    assert counts(suite.reports()["deep/er/test_there.py::test_facts"])[:3] == (4, 4, 4)


# --- what a test gets --------------------------------------------------------------------------


def test_a_result_is_recorded_though_the_test_fails_afterwards(suite: Suite) -> None:
    """The test's own assertion decides the test, the judge the Report; a result that a fixture graded counts too."""
    tests = """\
import pytest
pytestmark = pytest.mark.simpleqa_dataset("facts.csv", limit=2)

def test_strict(simpleqa):
    simpleqa.grade(simpleqa.question.answer)
    assert False

@pytest.fixture
def graded(simpleqa):
    simpleqa.grade(simpleqa.question.answer)
    raise RuntimeError("set up too little")

def test_late(graded):
    pass
"""
    session = suite.run(test_facts__py=tests)
    assert session.status == 1
    assert session.last == "2 failed, 2 errors"
    assert [counts(report)[2:4] for report in suite.reports().values()] == [(2, 2), (2, 2)]


@HOW
def test_a_test_that_never_grades_has_no_row(suite: Suite, how: tuple[str, ...]) -> None:
    """Rows are those that were graded; a run in which none was leaves no Report and no directory."""
    tests = """\
import pytest
pytestmark = pytest.mark.simpleqa_dataset("facts.csv")

def test_some(simpleqa):
    if simpleqa.question.topic == "Art":
        simpleqa.grade("William Shakespeare")

def test_none(simpleqa):
    assert simpleqa.question.problem
    assert simpleqa.result is None
"""
    session = suite.run(*how, test_facts__py=tests)
    assert (session.status, session.last) == (0, "8 passed")
    assert {name: counts(report)[:4] for name, report in suite.reports().items()} == {
        "test_facts.py::test_some": (4, 4, 1, 1)
    }
    assert len(list((suite.path / ".simpleqa").glob("2*"))) == 1
    assert suite.asked() == []


def test_an_answer_is_asked_for_once_and_graded_once(suite: Suite) -> None:
    """What is asked or graded again is not paid again; what is graded last counts."""
    tests = """\
import pytest

@pytest.mark.simpleqa_dataset("facts.csv", limit=1)
def test_it(simpleqa):
    assert simpleqa.ask() == simpleqa.ask() == "Paris"
    first = simpleqa.grade("Lyon")
    assert first.verdict == "incorrect"
    assert simpleqa.grade("Lyon") is first
    result = simpleqa.grade(simpleqa.ask())
    assert simpleqa.result is result
    assert (result.id, result.predicted, result.answer_usage.calls) == ("q0001", "Paris", 1)
"""
    assert suite.run(test_facts__py=tests).status == 0
    assert suite.asked() == ["Capital of France?"]
    assert verdicts(suite.reports()["test_facts.py::test_it"]) == ["correct"]


def test_a_reply_keeps_what_belongs_to_it(suite: Suite) -> None:
    """A Reply in place of a text brings its tokens and what is attached; anything else is a TypeError in one line."""
    tests = """\
import pytest
from pytest_simpleqa.records import Reply

@pytest.mark.simpleqa_dataset("facts.csv", limit=1)
def test_it(simpleqa):
    for wrong in (None, 3, Reply("Paris", extra={"what": object()})):
        with pytest.raises(TypeError, match="^simpleqa.grade: wanted the answer as a text or a Reply: "):
            simpleqa.grade(wrong)
    simpleqa.grade(Reply("Paris", completion_tokens=7, extra={"sources": [1, 2]}))
"""
    assert suite.run(test_facts__py=tests).status == 0
    report = suite.reports()["test_facts.py::test_it"]
    assert report["samples"][0]["extra"] == {"sources": [1, 2]}
    assert report["usage"]["answer"]["completion_tokens"] == 7


def test_a_wrong_answer_type_is_shown_at_the_tests_own_line(suite: Suite) -> None:
    """No line of ours stands in the traceback of a test that grades no text, in a plain test or an async one."""
    tests = """\
import pytest

@pytest.mark.simpleqa_dataset("facts.csv", limit=1)
def test_plain(simpleqa):
    simpleqa.grade(42)

@pytest.mark.anyio
@pytest.mark.simpleqa_dataset("facts.csv", limit=1)
async def test_async(simpleqa):
    await simpleqa.agrade(42)

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""
    session = suite.run(test_facts__py=tests)
    assert session.status == 1
    assert (
        session.text.count("E       TypeError: simpleqa.grade: wanted the answer as a text or a Reply: found int") == 2
    )
    assert "fixtures.py" not in session.text
    assert "take_reply" not in session.text


@HOW
def test_an_answer_error_and_a_judge_failure_fail_in_one_line(suite: Suite, how: tuple[str, ...]) -> None:
    """Both are recorded as such, and fail the test with their reason and no traceback."""
    tests = """\
import pytest

@pytest.mark.simpleqa_dataset("bad.csv")
def test_it(simpleqa):
    simpleqa.grade(simpleqa.ask())
"""
    files = {
        "bad__csv": "problem,answer\nfail this?,x\nCapital of France?,Paris\n",
        "judge__py": "def judge(prompt):\n    return 'who knows'\n",
    }
    models = (MODELS[0], "--judge-llm=python:judge:judge")
    suite.write(**files)
    session = suite.run("--tb=short", *how, models=models, test_facts__py=tests)
    assert session.status == 1
    assert counts(suite.reports()["test_facts.py::test_it"]) == (2, 2, 2, 0, 0, 0, 1, 1)
    assert "Traceback" not in session.text + session.errors
    assert re.search(r"^answer error \(exception\): .*no luck today", session.text, re.MULTILINE)
    assert re.search(r"^judge failure \(\w+\): ", session.text, re.MULTILINE)
    assert "fixtures.py" not in session.text


@HOW
def test_a_service_that_refuses_stops_the_session(suite: Suite, server: FakeServer, how: tuple[str, ...]) -> None:
    """A 401 fails the test that met it, and no other test is run after it."""
    server.script(lambda body, nth: error(401, "bad key"))
    suite.quiz.environment |= server.environment()
    tests = TESTS.replace('"facts.csv")', '"many.csv")')
    many = "problem,answer\n" + "".join(f"Question {number}?,{number}\n" for number in range(60))
    session = suite.run(*how, models=("--answer-llm=fake:m", "--judge-llm=rules"), test_facts__py=tests, many__csv=many)
    assert session.status == 1
    assert "401" in session.text
    assert len(server.requests) <= 2
    assert "INTERNALERROR" not in session.text + session.errors


def test_async_tests_ask_and_grade(suite: Suite) -> None:
    """`aask` and `agrade` leave the test's own loop free; under anyio too."""
    tests = """\
import anyio
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.simpleqa_dataset("facts.csv")
async def test_it(simpleqa):
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0)
        result = await simpleqa.agrade(await simpleqa.aask())
    assert result.verdict == "correct"
"""
    session = suite.run("--tb=short", test_facts__py=tests)
    assert session.last == "2 failed, 2 passed"
    assert counts(suite.reports()["test_facts.py::test_it"]) == (4, 4, 4, 2, 1, 1, 0, 0)


def test_tests_of_pytest_asyncio_ask_and_grade(suite: Suite) -> None:
    """The same under pytest-asyncio, where that is installed."""
    pytest.importorskip("pytest_asyncio")
    tests = """\
import pytest

@pytest.mark.asyncio
@pytest.mark.simpleqa_dataset("facts.csv")
async def test_it(simpleqa):
    assert (await simpleqa.agrade(await simpleqa.aask())).verdict == "correct"
"""
    assert suite.run(test_facts__py=tests).last == "2 failed, 2 passed"


# --- asked once, whoever asks ------------------------------------------------------------------

SLOW_MODEL = MODEL.replace("import Path\n", "import Path\nimport time\n").replace(
    '    if "fail"', '    time.sleep(0.3)\n    if "fail"'
)


def test_overlapping_calls_are_one(suite: Suite) -> None:
    """Tasks and threads that ask at once get one answer that was paid once; two texts get a verdict each."""
    tests = """\
import asyncio
import threading
import pytest
pytestmark = [pytest.mark.anyio, pytest.mark.simpleqa_dataset("facts.csv", limit=1)]

@pytest.fixture
def anyio_backend():
    return "asyncio"

async def test_tasks(simpleqa):
    both = asyncio.gather(simpleqa.aask(), simpleqa.aask())
    assert await asyncio.wait_for(both, 10) == ["Paris", "Paris"]
    graded = await asyncio.wait_for(asyncio.gather(simpleqa.agrade("Paris"), simpleqa.agrade("Rome")), 10)
    assert [each.verdict for each in graded] == ["correct", "incorrect"]

def test_threads(simpleqa):
    said = []
    threads = [threading.Thread(target=lambda: said.append(simpleqa.ask()), daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert said == ["Paris"] * 3

async def test_cancelled(simpleqa):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(simpleqa.aask(), 0.05)
    assert (await simpleqa.agrade(await simpleqa.aask())).verdict == "correct"
"""
    session = suite.run(model__py=SLOW_MODEL, test_facts__py=tests)
    assert session.last == "3 passed"
    assert suite.asked() == ["Capital of France?"] * 3


def test_a_call_that_is_given_up_keeps_no_process_alive(suite: Suite) -> None:
    """A session ends, and its process, while an answer that no test waits for any more is still out."""
    tests = """\
import asyncio
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.simpleqa_dataset("facts.csv", limit=1)
async def test_cancelled(simpleqa):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(simpleqa.aask(), 0.1)
"""
    model = MODEL.replace("def answer", "import asyncio\n\nasync def answer").replace(
        '    if "fail"', '    await asyncio.sleep(600)\n    if "fail"'
    )
    session = suite.run(apart=True, model__py=model, test_facts__py=tests)
    assert (session.status, session.last) == (0, "1 passed")
    assert "the session has ended" not in session.text
    assert session.seconds < 30


def test_a_test_that_was_broken_off_pays_nothing_twice(suite: Suite) -> None:
    """A rerun of a test that its own time-out has broken off takes the answer that the first try has asked for."""
    tests = """\
import signal
import pytest

def break_off(number, frame):
    raise TimeoutError

@pytest.mark.simpleqa_dataset("facts.csv", limit=1)
def test_it(simpleqa):
    signal.signal(signal.SIGALRM, break_off)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(TimeoutError):
        simpleqa.ask()
    assert simpleqa.grade(simpleqa.ask()).verdict == "correct"
"""
    session = suite.run(apart=True, model__py=SLOW_MODEL, test_facts__py=tests)
    assert session.last == "1 passed"
    assert suite.asked() == ["Capital of France?"]


@HOW
def test_what_a_test_waits_for_goes_before_what_is_asked_ahead(suite: Suite, how: tuple[str, ...]) -> None:
    """A verdict is given while answers that were asked ahead still wait for their turn."""
    many = "problem,answer\n" + "".join(f"Question {number}?,1969\n" for number in range(40))
    tests = """\
from pathlib import Path
import pytest

@pytest.mark.simpleqa_dataset("facts.csv", ask_ahead=True)
def test_it(simpleqa):
    simpleqa.grade(simpleqa.ask())
    with Path("seen.txt").open("a") as file:
        file.write(str(len(Path("asked.txt").read_text().splitlines())) + "\\n")
"""
    model = SLOW_MODEL.replace("0.3", "0.03")
    suite.run("--simpleqa-concurrency=2", *how, model__py=model, facts__csv=many, test_facts__py=tests)
    seen = (suite.path / "seen.txt").read_text().splitlines()
    assert int(seen[0]) < 12
    assert len(suite.asked()) == 40


# --- what the run log keeps --------------------------------------------------------------------


def test_the_answer_stays_the_models_own(suite: Suite) -> None:
    """A test that grades a text of its own about the answer gets the same answer again when the run goes on."""
    tests = """\
import pytest

@pytest.mark.simpleqa_dataset("facts.csv", limit=2)
def test_it(simpleqa):
    result = simpleqa.grade("The answer: " + simpleqa.ask())
    assert result.predicted in ("The answer: Paris", "The answer: Lisbon")
    assert result.answer_usage.calls == 1
"""
    for how in ((), ("--simpleqa-resume=latest",)):
        session = suite.run(*how, test_facts__py=tests)
        assert session.last == "2 passed"
        report = suite.reports()["test_facts.py::test_it"]
        assert [row["predicted"] for row in report["samples"]] == ["The answer: Paris", "The answer: Lisbon"]
        assert report["usage"]["answer"]["calls"] == 2
    assert len(suite.asked()) == 2


def test_a_recording_of_a_run_has_the_verdicts_of_its_report(suite: Suite) -> None:
    """Graded twice, gone on with, with a worker and without: the log says last what the Report says."""
    tests = """\
import os
import pytest

@pytest.mark.simpleqa_dataset("facts.csv")
def test_it(simpleqa):
    first, last = os.environ.get("GRADES", "gold bad").split()
    texts = {"gold": simpleqa.question.answer, "bad": "Oslo"}
    simpleqa.grade(texts[first])
    simpleqa.grade(texts[last])
"""
    sessions = [((), "gold bad"), (("--simpleqa-resume=latest",), "gold bad")]
    sessions += [(("-n1", "--simpleqa-resume=latest"), "bad gold"), (("--simpleqa-resume=latest",), "gold bad")]
    for how, grades in sessions:
        suite.quiz.environment["GRADES"] = grades
        suite.run(*how, test_facts__py=tests)
        report = suite.reports()["test_facts.py::test_it"]
        said = "correct" if grades.endswith("gold") else "incorrect"
        assert verdicts(report) == [said] * 4
        replayed = read_recording(str(run_dirs(suite.path)[-1]), suite.path)
        assert [row.verdict for row in replayed.rows] == [said] * 4


# --- when nothing is asked ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "reason"),
    [
        ((), "no model is named: add --answer-llm=<alias>[:<model>] and --judge-llm"),
        (("--judge-llm=rules",), "no model is named"),
        (MODELS[:1], "no judge is named: add --judge-llm"),
    ],
)
def test_without_a_model_a_function_is_one_skip(suite: Suite, models: tuple[str, ...], reason: str) -> None:
    """A function is skipped once, not once a row, and the reason says what to type; no dataset is read."""
    tests = TESTS.replace("facts.csv", "nowhere.csv").partition('@pytest.mark.parametrize("number"')[0]
    session = suite.run("-rs", "-v", models=models, test_facts__py=tests)
    assert (session.status, session.last) == (0, "3 skipped")
    assert f"SKIPPED [1] test_facts.py:4: simpleqa: {reason}" in session.text
    # Before pytest 9 the id of what stands for the rows is part of the name.
    assert re.search(r"test_facts\.py::test_facts(\[simpleqa\])? SKIPPED", session.text)
    assert not (suite.path / ".simpleqa").exists()


def test_without_a_dataset_a_function_is_one_skip(suite: Suite) -> None:
    """Where neither a marker nor the command line names a dataset, the reason names both."""
    session = suite.run("-rs", test_facts__py="def test_it(simpleqa):\n    pass\n")
    assert "no dataset is named: add --simpleqa-dataset, or the marker simpleqa_dataset(source)" in session.text
    assert session.last == "1 skipped"


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("'nowhere.csv'", "there is no file 'nowhere.csv' in"),
        ("'facts.csv', topics=['Arts']", "facts.csv has no topic 'Arts' (did you mean 'Art'?)"),
        ("'facts.csv', limit='3'", "limit='3': wanted a whole number, 0 for all"),
        ("3", "source=3: wanted a file, an https:// URL or a known name"),
        ("'facts.csv', repeats=3", "got an unexpected keyword argument 'repeats'"),
        ("'facts.csv', topics=[1]", "topics=[1]: wanted a name, or a list of names"),
        ("'facts.csv', topics=5", "topics=5: wanted a name, or a list of names"),
        ("'broken.csv'", "broken.csv, row 2: the cell 'answer' is empty"),
    ],
)
def test_a_mistake_in_the_marker_is_one_line(suite: Suite, mark: str, message: str) -> None:
    """The session ends with exit status 4 before anything is asked, and one line names the function."""
    files = {
        "broken__csv": "problem,answer\nCapital of France?,Paris\nCapital of Spain?,\n",
        "test_facts__py": f"import pytest\n\n@pytest.mark.simpleqa_dataset({mark})\ndef test_it(simpleqa):\n    pass\n",
        "test_more__py": "def test_more(simpleqa):\n    simpleqa.grade(simpleqa.ask())\n",
    }
    suite.write(**files)
    session = suite.run("test_facts.py", "test_more.py", "--simpleqa-dataset=facts.csv")
    assert session.status == 4
    (line,) = [line for line in session.errors.splitlines() if line.strip()]
    assert line.startswith("ERROR: test_facts.py::test_it: ")
    assert message in line
    assert "Traceback" not in session.text
    assert "exception occurred" not in session.text
    assert suite.asked() == []


@pytest.mark.parametrize("more", [(), ("-n2",), ("--collect-only",), ("--continue-on-collection-errors",)])
def test_a_broken_dataset_in_a_marker_ends_the_session_however_it_runs(suite: Suite, more: tuple[str, ...]) -> None:
    """Bare, under xdist and while only collecting: one line, exit status 4, and nothing asked or left behind."""
    broken = "problem,answer\nCapital of Spain?,\n"
    session = suite.run(*more, facts__csv=broken, test_facts__py=TESTS)
    assert session.status == 4
    assert session.errors.count("facts.csv, row 1: the cell 'answer' is empty") == 1, session.errors
    assert "the cell 'answer'" not in session.text
    assert "INTERNALERROR" not in session.text
    assert suite.asked() == []
    assert run_dirs(suite.path) == []


def test_a_fixture_of_that_name_of_the_users_is_left_alone(suite: Suite) -> None:
    """A `simpleqa` in a conftest is theirs; one that builds on ours gets every row."""
    tests = """\
import pytest

@pytest.fixture
def simpleqa():
    return 3

def test_theirs(simpleqa):
    assert simpleqa == 3

@pytest.mark.simpleqa_dataset("facts.csv")
class TestOurs:
    @pytest.fixture
    def simpleqa(self, simpleqa):
        return 4

    def test_it(self, simpleqa):
        assert simpleqa == 4
"""
    assert suite.run(test_facts__py=tests).last == "2 passed"


def test_taking_the_fixture_by_name_is_told(suite: Suite) -> None:
    """A test that asks for it while it runs has no row: one line says what to do."""
    tests = "def test_it(request):\n    request.getfixturevalue('simpleqa')\n"
    session = suite.run("--tb=short", test_facts__py=tests)
    assert "simpleqa: take it as an argument of the test: each row of the dataset is an item" in session.text


# --- stopping and going on ---------------------------------------------------------------------


@HOW
def test_going_on_asks_and_judges_nothing_twice(suite: Suite, server: FakeServer, how: tuple[str, ...]) -> None:
    """--simpleqa-resume takes up each run of the session; an answer that has changed is judged anew."""
    suite.quiz.environment |= server.environment()
    models = ("--answer-llm=fake:m", "--judge-llm=fake:judge")
    args = ("--simpleqa-dataset=facts.csv", *how)
    suite.run(*args, models=models, test_facts__py=TESTS)
    before = suite.reports()
    assert len(server.answers) == 8
    assert len(server.judgements) == 12
    changed = TESTS.replace('else "Madrid"', 'else "Oslo"')
    words = ("latest",) if how else ("latest", run_dirs(suite.path)[-1].name)
    for word in words:
        suite.run(*args, f"--simpleqa-resume={word}", models=models, test_facts__py=changed)
    assert len(server.answers) == 8
    assert len(server.judgements) == 14
    after = suite.reports()
    assert {name: report["resumed"] for name, report in after.items()} == dict.fromkeys(before, len(words))
    assert len(run_dirs(suite.path)) == 4


@pytest.mark.parametrize("word", ["latest", "auto"])
def test_a_session_that_broke_off_is_finished(suite: Suite, word: str) -> None:
    """After Ctrl-C the Reports hold what was graded; going on does the rest, of the dataset and of the tests."""
    (suite.path / "stop").touch()
    tests = TESTS.replace(
        "    assert simpleqa.grade",
        "    if simpleqa.question.id == 'q0003' and __import__('os').path.exists('stop'):\n"
        "        raise KeyboardInterrupt\n    assert simpleqa.grade",
    )
    args = ("--simpleqa-dataset=facts.csv",)
    session = suite.run(*args, apart=True, test_facts__py=tests)
    assert session.status == 2
    assert counts(suite.reports()["test_facts.py::test_facts"])[:3] == (4, 4, 2)
    assert suite.asked() == ["Capital of France?", "Capital of Spain?"]
    (suite.path / "stop").unlink()
    suite.run(*args, f"--simpleqa-resume={word}")
    assert Counter(suite.asked())["Capital of France?"] == 1  # the dataset's own run
    assert len(suite.asked()) == 0
    assert all(report["complete"] for report in suite.reports().values())


def test_x_stops_at_the_first_failing_test(suite: Suite) -> None:
    """Under -x nothing is asked behind the test that fails, and the Report says that the run is not whole."""
    session = suite.run("-x", test_facts__py=TESTS)
    assert session.last == "1 failed, 1 passed"
    assert suite.asked() == ["Capital of France?", "Capital of Spain?"]
    assert counts(suite.reports()["test_facts.py::test_facts"])[:3] == (4, 4, 2)


# --- gates and files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        (["test_facts.py::test_own[here]: accuracy >= 0.5"], 0),
        (["test_facts.py::test_own[here]: accuracy >= 0.6"], 1),
        (["accuracy >= 0.5", "test_facts.py::test_own[there]: accuracy <= 0.5"], 0),
        (["test_facts.py::test_elsewhere: accuracy >= 0.5"], 6),
    ],
)
@HOW
def test_a_gate_holds_every_run_or_the_named_one(
    suite: Suite, gates: list[str], status: int, how: tuple[str, ...]
) -> None:
    """A node id before a gate names a function's run; without one every run is held to it."""
    args = (f"--simpleqa-gate={gate}" for gate in gates)
    assert suite.run("-k", "own", *args, *how, test_facts__py=TESTS).status == status


def test_an_ordinary_failure_is_not_the_gates_to_excuse(suite: Suite) -> None:
    """A fixture test that fails is an ordinary test that failed: exit 1, though the gate passes."""
    session = suite.run("-k", "test_facts", "--simpleqa-gate=accuracy >= 0.1", test_facts__py=TESTS)
    assert session.status == 1


@HOW
def test_reports_of_several_runs_need_a_name(suite: Suite, how: tuple[str, ...]) -> None:
    """One file for several Reports is exit 4 before anything is asked."""
    session = suite.run("--simpleqa-out=out.json", *how, test_facts__py=TESTS)
    assert session.status == 4
    assert "would write the same file; put {name} into its name" in session.errors
    assert suite.asked() == []


def test_reports_of_several_runs_go_to_their_own_files(suite: Suite) -> None:
    """{name} in --simpleqa-out is the run's; a session with one run needs none."""
    suite.run("--simpleqa-out=out-{name}.json", test_facts__py=TESTS)
    names = sorted(path.name for path in suite.path.glob("out-*"))
    assert names == [f"out-test_facts.py_{name}.json" for name in ("test_facts", "test_own_here", "test_own_there")]
    alone = suite.run("--simpleqa-out=out.json", "test_facts.py::test_facts")
    assert alone.status == 1
    assert json.loads((suite.path / "out.json").read_text())["name"] == "test_facts.py::test_facts"


def test_verdicts_stand_in_the_json_report(suite: Suite) -> None:
    """pytest-json-report gets every run, and in each test's metadata its verdict; outcomes are the tests' own."""
    suite.run("--json-report", "--json-report-file=tests.json", test_facts__py=TESTS)
    content = json.loads((suite.path / "tests.json").read_text(encoding="utf-8"))
    assert [run["name"] for run in content["simpleqa"]["runs"]] == [
        f"test_facts.py::{name}" for name in ("test_facts", "test_own[there]", "test_own[here]")
    ]
    found = {test["nodeid"]: (test["outcome"], test.get("metadata")) for test in content["tests"]}
    assert found["test_facts.py::test_facts[q0002]"] == (
        "failed",
        {"simpleqa": {"verdict": "incorrect", "status": "incorrect"}},
    )
    assert found["test_facts.py::test_plain[0]"] == ("passed", None)


# --- what is asked ahead -----------------------------------------------------------------------

SLOW = """\
import time
from pathlib import Path
import pytest

@pytest.mark.simpleqa_dataset("facts.csv", ask_ahead={ahead})
def test_it(simpleqa):
    answer = simpleqa.ask()
    time.sleep(0.3)
    asked = Path("asked.txt").read_text().splitlines()
    with Path("seen.txt").open("a") as file:
        file.write(str(len(asked)) + "\\n")
    simpleqa.grade(answer)
"""


@pytest.mark.parametrize(("ahead", "seen"), [(True, ["4"] * 4), (False, ["1", "2", "3", "4"])])
def test_answers_are_asked_ahead_where_the_marker_says_so(suite: Suite, ahead: bool, seen: list[str]) -> None:
    """`ask_ahead=True` asks the answers of the following rows while a test runs; else each is asked by its test."""
    suite.run(test_facts__py=SLOW.format(ahead=ahead))
    assert (suite.path / "seen.txt").read_text().splitlines() == seen
    assert len(suite.asked()) == 4
    assert counts(suite.reports()["test_facts.py::test_it"])[2:6] == (4, 2, 1, 1)


def test_workers_ask_ahead_what_they_are_dealt(suite: Suite) -> None:
    """Under -n each worker asks ahead its own share, and nothing is asked twice."""
    many = "problem,answer\n" + "".join(f"Question {number}?,1969\n" for number in range(20))
    tests = SLOW.format(ahead=True).replace("0.3", "0.05")
    suite.run("-n2", test_facts__py=tests, facts__csv=many)
    seen = [int(line) for line in (suite.path / "seen.txt").read_text().splitlines()]
    asked = suite.asked()
    assert len(asked) == len(set(asked)) == 20
    assert min(seen) > 6
    assert counts(suite.reports()["test_facts.py::test_it"])[2:4] == (20, 20)


def test_skipped_rows_are_not_asked_ahead(suite: Suite) -> None:
    """What a conftest skips costs nothing."""
    conftest = """\
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if "topic_geography" in item.extra_keyword_matches:
            item.add_marker(pytest.mark.skip)
"""
    suite.run(conftest__py=conftest, test_facts__py=SLOW.format(ahead=True))
    assert suite.asked() == ["Who wrote Hamlet?", "When did people land on the moon?"]


@HOW
@pytest.mark.parametrize("over", ["return", "pytest.skip()", "skipped at setup"])
def test_what_is_over_is_not_asked_ahead(suite: Suite, how: tuple[str, ...], over: str) -> None:
    """Rows whose tests have passed without a question are not asked for, and the look-ahead stays as far as it was."""
    many = "problem,answer,topic\n" + "".join(
        f"Question {number}?,1969,{'Late' if number >= 700 else 'Early'}\n" for number in range(800)
    )
    tests = """\
import pytest

@pytest.mark.simpleqa_dataset("many.csv", ask_ahead=True)
def test_it(simpleqa):
    if simpleqa.question.topic == "Early":
        OVER
    simpleqa.grade(simpleqa.ask())
"""
    conftest = """\
import pytest

def pytest_runtest_setup(item):
    if "early" in item.extra_keyword_matches:
        pytest.skip("not today")
"""
    suite.write(conftest__py=conftest if "setup" in over else "", many__csv=many)
    suite.run("-q", *how, test_facts__py=tests.replace("OVER", "assert 0" if "setup" in over else over))
    asked = suite.asked()
    assert len(asked) == len(set(asked))
    assert [line for line in asked if int(line.split()[1].strip("?")) < 700] == []
    assert len(asked) == 100


def test_a_dataset_question_that_a_hook_has_skipped_is_not_asked_later(suite: Suite) -> None:
    """What was skipped beyond the reach of the look-ahead is never asked, and holds no place of it."""
    many = "problem,answer\n" + "".join(f"Question {number}?,1969\n" for number in range(700))
    conftest = """\
import pytest

def pytest_runtest_setup(item):
    if 2 < int(item.name[1:]) <= 690:
        pytest.skip("not today")
"""
    suite.write(conftest__py=conftest, many__csv=many)
    suite.quiz.pytest("--simpleqa-dataset=many.csv", *MODELS, "-q")
    asked = sorted(int(line.split()[1].strip("?")) for line in suite.asked())
    assert asked[-10:] == [*range(690, 700)]
    assert asked[:-10] == [*range(257)]


@HOW
def test_a_skipped_tests_question_is_no_result(suite: Suite, how: tuple[str, ...]) -> None:
    """What was asked ahead for a test that skips counts for nothing, an answer error neither."""
    tests = """\
import pytest

@pytest.mark.simpleqa_dataset("some.csv", ask_ahead=True)
def test_it(simpleqa):
    if simpleqa.question.problem.startswith("fail"):
        pytest.skip("not today")
    simpleqa.grade(simpleqa.ask())
"""
    some = "problem,answer\n" + "".join(f"{'fail' if number == 3 else 'When'} {number}?,1969\n" for number in range(6))
    session = suite.run("--simpleqa-gate=accuracy >= 0.5", *how, test_facts__py=tests, some__csv=some)
    report = suite.reports()["test_facts.py::test_it"]
    assert counts(report) == (6, 6, 5, 5, 0, 0, 0, 0)
    assert not report["complete"]
    assert session.status == 6


@pytest.mark.parametrize("mark", ["skip", "skipif(True, reason='no')", "xfail(run=False)"])
def test_what_a_mark_keeps_from_running_is_not_asked_ahead(suite: Suite, mark: str) -> None:
    """A skip mark, or an xfail that is not to be run, costs nothing."""
    tests = f"""\
import pytest

@pytest.mark.simpleqa_dataset("facts.csv", limit=1, ask_ahead=True)
def test_first(simpleqa):
    simpleqa.grade(simpleqa.ask())

@pytest.mark.{mark}
@pytest.mark.simpleqa_dataset("facts.csv", ask_ahead=True)
def test_it(simpleqa):
    simpleqa.grade(simpleqa.ask())
"""
    suite.run(test_facts__py=tests)
    assert suite.asked() == ["Capital of France?"]


def test_fixture_tests_keep_to_the_concurrency(suite: Suite, server: FakeServer) -> None:
    """With fewer in flight than there are workers, no more tests than that ask at once."""
    suite.quiz.environment |= server.environment()
    models = ("--answer-llm=fake:m", "--judge-llm=fake:judge")
    suite.run("-n3", "--simpleqa-concurrency=1", models=models, test_facts__py=TESTS)
    assert server.max_in_flight == 1
    assert len(server.answers) == 4


def test_the_dataset_is_read_once_in_a_process(suite: Suite) -> None:
    """However many functions name a file, it is opened once."""
    conftest = """\
import sys

def hook(event, args):
    if event == "open" and str(args[0]).endswith("facts.csv"):
        with open("opened.txt", "a") as file:
            file.write("x")

sys.addaudithook(hook)
"""
    suite.run(apart=True, conftest__py=conftest, test_facts__py=TESTS + TESTS.replace("test_", "test_other_"))
    assert len(suite.reports()) == 6
    once = len((suite.path / "opened.txt").read_text())
    (suite.path / "opened.txt").unlink()
    one = TESTS.partition('@pytest.mark.simpleqa_dataset("facts.csv", topics')[0]
    suite.run(apart=True, test_facts__py=one)
    assert len((suite.path / "opened.txt").read_text()) == once


def test_handles_are_told_by_their_run(suite: Suite) -> None:
    """The handle's repr names run and question: pytest shows it beside a failing assertion."""
    tests = TESTS.replace("    assert simpleqa.grade", "    print(repr(simpleqa))\n    assert simpleqa.grade")
    session = suite.run("-k", "test_facts", test_facts__py=tests)
    assert "<SimpleQA test_facts.py::test_facts q0002>" in session.text
