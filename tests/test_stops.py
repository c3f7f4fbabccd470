"""Tests of sessions that end early: failures, signals, dead workers, services that refuse."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .fake_server import Answer, FakeServer, error
from .quiz import Quiz, Session, patient

MODES = pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
ASK_FAKE = ("--answer-llm=fake:m", "--judge-llm=fake:judge")


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    return Quiz(pytester)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


def put_to(server: FakeServer, quiz: Quiz, *args: str) -> Session:
    """Put the dataset to the server, which answers and judges."""
    quiz.environment |= server.environment()
    return quiz.apart("--simpleqa-dataset=quiz.csv", *ASK_FAKE, *args)


# --- pytest's own stops ------------------------------------------------------------------------


@MODES
def test_x_ends_at_the_first_failure(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """-x ends with status 1 and an incomplete Report; no more is spent beyond it than may be in flight."""
    quiz.write("AB" + "A" * 60)
    quiz.file("delay.txt", "0.02")
    session = quiz.count("-x", "--simpleqa-concurrency=4", *mode)
    assert session.status == 1
    population, selected, done, complete = session.progress
    assert (population, selected, complete) == (62, 62, False)
    assert 2 <= done <= len(quiz.asked) <= 12
    assert session.report is not None
    assert session.report["exit_status"] == 1
    assert "stopping after 1 failures" in session.text


@MODES
def test_maxfail_counts_failures_of_all_workers(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """--maxfail ends the session at that many failures, whoever had them."""
    quiz.write("BA" * 40)
    quiz.file("delay.txt", "0.02")
    session = quiz.count("--maxfail=3", "--simpleqa-concurrency=2", *mode)
    assert session.status == 1
    assert not session.progress[3]
    assert len(quiz.asked) <= 20
    assert session.counts[1] >= 3


def test_x_keeps_what_was_finished_ahead(quiz: Quiz) -> None:
    """Questions that were finished ahead of a stop count in the Report: they are paid for."""
    quiz.write("BAAA")
    session = quiz.run("-x", "--simpleqa-concurrency=4")
    assert session.last == "1 incorrect"
    assert session.counts == (3, 1, 0, 0, 0)
    assert session.progress == (4, 4, 4, True)
    assert session.status == 1


@MODES
def test_pytest_exit_in_a_conftest(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """pytest.exit() in the reporting process ends the session with its status and a Report of what was finished."""
    quiz.write("A" * 40)
    quiz.file("delay.txt", "0.05")
    quiz.file(
        "conftest.py",
        "import pytest\n\nseen = []\n\n"
        "def pytest_simpleqa_result(result):\n"
        "    seen.append(result)\n"
        "    if len(seen) == 4:\n"
        "        pytest.exit('enough', returncode=7)\n",
    )
    session = quiz.count("--simpleqa-concurrency=2", *mode)
    assert session.status == 7
    assert session.report is not None
    assert 4 <= session.report["n"] < 40
    assert session.report["exit_status"] == 7
    assert len(quiz.asked) < 40


# --- signals -----------------------------------------------------------------------------------


def interrupt(quiz: Quiz, number: int, *args: str, group: bool = False) -> Session:
    """Start a slow run, send it a signal when some questions are done, and return how it ended."""
    quiz.write("A" * 100)
    quiz.file("delay.txt", "0.1")
    process = quiz.start(*quiz.counted("--simpleqa-concurrency=4", *args))
    deadline = time.monotonic() + 30
    while len(quiz.asked) < 10:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    (os.killpg if group else os.kill)(process.pid, number)
    return quiz.finish(process)


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("number", "args", "group"),
    [
        (signal.SIGINT, (), False),
        (signal.SIGTERM, (), False),
        (signal.SIGINT, ("-n2",), False),
        (signal.SIGINT, ("-n2",), True),
        (signal.SIGTERM, ("-n2",), False),
        (signal.SIGTERM, ("-n2",), True),
    ],
    ids=["int", "term", "int-n2", "int-group-n2", "term-n2", "term-group-n2"],
)
def test_a_signal_ends_the_run_with_its_report(quiz: Quiz, number: int, args: tuple[str, ...], group: bool) -> None:
    """Ctrl-C and SIGTERM end the run within 3 s with status 2 and a Report of what was finished."""
    session = interrupt(quiz, number, *args, group=group)
    assert session.status == 2, session.text + session.errors
    assert session.seconds < patient(3)
    assert session.report is not None, session.text
    assert session.report["exit_status"] == 2
    assert 6 <= session.report["n"] < 100
    assert not session.report["complete"]
    assert len(quiz.asked) < 60
    verdicts = {line["id"] for line in session.results if line["kind"] == "verdict"}
    assert len(verdicts) == session.report["n"]


# --- a worker that dies ------------------------------------------------------------------------


def test_a_killed_worker_loses_one_row(quiz: Quiz) -> None:
    """The question at which a worker dies is an error `worker_crash`; every other row is kept, asked once, and told."""
    quiz.write("A" * 30)
    quiz.file(
        "conftest.py",
        "import os\n\ndef pytest_runtest_setup(item):\n    if item.name == 'q0015':\n        os._exit(3)\n",
    )
    session = quiz.count("-n2", "--simpleqa-concurrency=4")
    assert session.status == 1
    assert session.counts == (29, 0, 0, 0, 1)
    assert session.progress == (30, 30, 30, True)
    assert session.report is not None
    [failed] = [sample for sample in session.report["samples"] if sample["verdict"] is None]
    assert (failed["id"], failed["error"]["kind"]) == ("q0015", "worker_crash")
    others = [line for line in quiz.asked if line != "Who did thing 15?"]
    assert len(others) - len(set(others)) <= 4


def test_an_answerer_that_ends_its_process_costs_its_own_row_alone(quiz: Quiz) -> None:
    """A question whose asking kills the worker is found out: one error, no other row lost, none asked a third time."""
    quiz.write("A" * 40)
    quiz.file("delay.txt", "0.01")
    source = (quiz.path / "answerer.py").read_text()
    poison = '    if "thing 15?" in prompt:\n        __import__("os")._exit(3)\n'
    quiz.file("answerer.py", source.replace("    return", f"{poison}    return"))
    session = quiz.count("-n2", "--simpleqa-concurrency=8")
    assert session.status == 1
    assert session.counts == (39, 0, 0, 0, 1)
    assert session.report is not None
    [failed] = [sample for sample in session.report["samples"] if sample["verdict"] is None]
    assert (failed["id"], failed["error"]["kind"]) == ("q0015", "worker_crash")
    assert max(quiz.asked.count(line) for line in quiz.asked) <= 2
    assert len(quiz.asked) <= 40 + 8  # what was in flight in its worker, both times


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_worker_killed_from_outside_costs_what_it_had_in_flight(quiz: Quiz) -> None:
    """After kill -9 of a worker no row is lost, and only what it had in flight is asked again."""
    quiz.write("A" * 40)
    quiz.file("delay.txt", "0.05")
    quiz.file(
        "conftest.py",
        "import os\nfrom pathlib import Path\n\n"
        "Path(f\"pid-{os.environ.get('PYTEST_XDIST_WORKER', '')}\").write_text(str(os.getpid()))\n",
    )
    process = quiz.start(*quiz.counted("-n2", "--simpleqa-concurrency=6"))
    deadline = time.monotonic() + 60
    while len(quiz.asked) < 12 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(int((quiz.path / "pid-gw0").read_text()), signal.SIGKILL)
    session = quiz.finish(process)
    assert session.counts == (40, 0, 0, 0, 0)
    assert session.progress == (40, 40, 40, True)
    assert len(quiz.asked) <= 40 + 3


# --- services ----------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (error(401, "Incorrect API key", code="invalid_api_key"), "401"),
        (error(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
        (error(404, "The model does not exist", code="model_not_found"), "404"),
    ],
    ids=["401", "quota", "404"],
)
def test_a_service_that_refuses_is_asked_once(
    quiz: Quiz, server: FakeServer, mode: tuple[str, ...], refusal: Answer, words: str
) -> None:
    """401, exhausted quota and 404 on every call: one request per worker, one message, status 1, at once."""
    quiz.write("A" * 60)
    server.script(lambda body, nth: refusal)
    session = put_to(server, quiz, *mode)
    assert session.status == 1
    assert len(server.requests) <= (2 if mode else 1)
    assert session.seconds < patient(10)
    stops = [line for line in session.lines if line.startswith("!") and words in line]
    assert len(stops) == 1, session.text
    assert session.counts[4] == len(server.requests)
    assert not session.progress[3]


def test_a_judge_that_refuses_stops_the_run(quiz: Quiz, server: FakeServer) -> None:
    """401 from the judge stops the run, and the answers so far are judge failures, not answer errors."""
    quiz.write("A" * 60)
    server.script(lambda body, nth: error(401, "Incorrect API key") if "judge" in body["model"] else None)
    session = put_to(server, quiz, "--simpleqa-concurrency=4")
    assert session.status == 1
    assert len(server.judgements) == 1
    assert session.counts[3:] == (1, 0)


@MODES
def test_a_dead_server_ends_the_run_by_itself(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """A server that refuses every connection ends the run within the deadline, with one message."""
    quiz.write("A" * 60)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    quiz.environment["SIMPLEQA_FAKE"] = json.dumps({"base_url": address, "api_key": "sk-fake-0123456789"})
    session = quiz.apart("--simpleqa-dataset=quiz.csv", *ASK_FAKE, "--simpleqa-timeout=2", *mode)
    assert session.status == 1
    assert session.seconds < patient(12)
    assert session.counts[4] <= 2 * 32
    assert not session.progress[3]
    assert sum(line.startswith("!") and "fake:m" in line for line in session.lines) == 1, session.text


def test_answer_errors_and_judge_failures_are_counted_apart(quiz: Quiz, server: FakeServer) -> None:
    """An answer that the filter refused is an error, a judge without a verdict a judge failure; the rest is judged."""

    def script(body: dict[str, object], nth: int) -> Answer | str | None:
        text = str(body["messages"])
        if "judge" in str(body["model"]):
            return "Honestly I am not sure" if "thing 2?" in text else "A"
        return error(400, "filtered", code="content_filter") if "thing 5?" in text else None

    server.script(script)
    session = put_to(server, quiz)
    assert session.counts == (4, 0, 0, 1, 1)
    assert session.status == 1
    assert session.report is not None
    kinds = {sample["id"]: sample["error"]["kind"] for sample in session.report["samples"] if sample["error"]}
    assert kinds["q0005"] == "filtered"
    assert set(kinds) == {"q0002", "q0005"}
    assert "1 judge failure, 1 error" in session.lines


def test_a_hanging_server_ends_within_the_deadline(quiz: Quiz, server: FakeServer) -> None:
    """Where no answer ever comes the run ends when the first deadlines have passed."""
    server.script(lambda body, nth: Answer("x", fault="hang"))
    session = put_to(server, quiz, "--simpleqa-timeout=1")
    assert session.status == 1
    assert session.seconds < patient(8)
    assert session.counts[0] == 0


def test_no_process_is_left_behind(quiz: Quiz, server: FakeServer) -> None:
    """When a worker's question hangs for ever, Ctrl-C still ends every process."""
    server.script(lambda body, nth: Answer("x", fault="hang"))
    quiz.environment |= server.environment()
    process = quiz.start("--simpleqa-dataset=quiz.csv", *ASK_FAKE, "-n2")
    deadline = time.monotonic() + 30
    while len(server.requests) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    session = quiz.finish(process)
    assert session.status == 2
    assert session.seconds < patient(4)
    deadline = time.monotonic() + patient(2)
    while _members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _members(process.pid)


def _members(group: int) -> list[Path]:
    """Return the live processes of a process group (Linux); zombies are not live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if its_group == str(group) and state != "Z":
            found.append(path)
    return found
