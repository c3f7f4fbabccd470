"""Tests of workers on other machines: socket servers on this one, each in a folder and an environment of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_simpleqa.errors import OptionError
from pytest_simpleqa.machines import Link, is_here, require_same

from .fake_server import FakeServer
from .quiz import Quiz, Session, patient

SERVED = ("quiz.csv", "test_rag.py", "recorded.jsonl", "answerer.py", "delay.txt")
ASK_FAKE = ("--answer-llm=fake:m", "--judge-llm=fake:judge")


@dataclass
class Machine:
    """A socket server as another machine would run it."""

    folder: Path
    process: subprocess.Popen[bytes]
    port: int

    @classmethod
    def start(cls, folder: Path, environment: Mapping[str, str]) -> Machine:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "SIMPLEQA_", "COV_"))}
        said = folder / "said.txt"
        with said.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-u", "-W", "ignore", "-m", "execnet.script.socketserver", "127.0.0.1:0"],
                cwd=folder,
                env={**kept, "PYTHONUTF8": "1", **environment},
                stdout=file,
                stderr=file,
            )
        deadline = time.monotonic() + patient(30)
        while (found := re.search(r"', (\d+)\)", said.read_text())) is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return cls(folder, process, int(found.group(1)))

    @property
    def tx(self) -> str:
        return f"--tx=socket=127.0.0.1:{self.port}//chdir={self.folder}"

    @property
    def asked(self) -> list[str]:
        path = self.folder / "asked.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Machines:
    """Two machines, and sessions over them from the folder of the quiz."""

    quiz: Quiz
    folder: Path
    all: list[Machine]

    def open(self, number: int = 2, environment: Mapping[str, str] | None = None) -> None:
        """Start machines that have what the quiz's folder has."""
        for name in range(number):
            folder = self.folder / f"m{name}"
            folder.mkdir()
            for file in SERVED:
                if (self.quiz.path / file).exists():
                    shutil.copy(self.quiz.path / file, folder / file)
            self.all.append(Machine.start(folder, environment or {}))

    @property
    def tx(self) -> list[str]:
        return ["-d", *(machine.tx for machine in self.all)]

    @property
    def asked(self) -> list[str]:
        return [prompt for machine in self.all for prompt in machine.asked]

    def wait_for(self, count: int, process: subprocess.Popen[str], of: Callable[[], list[str]] | None = None) -> None:
        """Wait until so many questions have been asked."""
        deadline = time.monotonic() + patient(30)
        while len((of or (lambda: self.asked))()) < count:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    return Quiz(pytester)


@pytest.fixture
def machines(quiz: Quiz, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    opened = Machines(quiz, tmp_path_factory.mktemp("far"), [])
    yield opened
    for machine in opened.all:
        machine.kill()


def require_no_traceback(session: Session) -> None:
    text = session.text + session.errors
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


def told_of(session: Session) -> dict[str, Any]:
    """Return what a Report says of the questions, without the clock."""
    report = session.report
    assert report is not None
    timed = {"started_at", "duration_ms", "usage", "provenance"}
    told = {key: value for key, value in report.items() if key not in timed}
    told["samples"] = [
        {key: value for key, value in sample.items() if key != "latency_s"} for sample in told["samples"]
    ]
    told["calls"] = {role: used["calls"] for role, used in report["usage"].items() if used}
    return told


# --- a whole run -------------------------------------------------------------------------------


def test_two_machines_give_the_report_of_one(quiz: Quiz, machines: Machines) -> None:
    """400 questions over two machines give the Report of a local run, number for number, each asked once."""
    quiz.write("ABCA?!ABBA" * 40)
    here = quiz.run("--simpleqa-max-samples=-1")
    machines.open()
    far = quiz.apart(*quiz.args(*machines.tx, "--simpleqa-max-samples=-1"))
    assert far.progress == (400, 400, 400, True)
    assert told_of(far) == told_of(here)
    assert far.status == here.status == 1
    ends = Counter(line["id"] for line in far.results if line["kind"] in ("verdict", "error"))
    assert set(ends.values()) == {1}
    assert far.run_dir is not None
    assert sorted(path.name for path in far.run_dir.glob("results*")) == ["results-gw0.jsonl", "results-gw1.jsonl"]


def test_both_machines_answer(quiz: Quiz, machines: Machines) -> None:
    """Each machine asks with its own code; the controller asks nothing."""
    quiz.write("A" * 40)
    quiz.file("delay.txt", "0.01")
    machines.open()
    session = quiz.apart(*quiz.counted(*machines.tx, "--simpleqa-concurrency=4"))
    assert session.counts == (40, 0, 0, 0, 0)
    assert quiz.asked == []
    assert all(len(machine.asked) >= 10 for machine in machines.all)
    assert len(set(machines.asked)) == len(machines.asked) == 40


@pytest.mark.slow
def test_workers_behind_a_proxy_are_far_too(quiz: Quiz, machines: Machines) -> None:
    """Processes that a proxy starts (`3*popen//via=`) share nothing with this machine, and all get questions."""
    quiz.write("A" * 60)
    quiz.file("delay.txt", "0.01")
    machines.open(1)
    far = machines.all[0]
    proxy = f"--px=id=far//socket=127.0.0.1:{far.port}//chdir={far.folder}"
    args = ("-d", proxy, f"--tx=3*popen//via=far//chdir={far.folder}", "--simpleqa-concurrency=6")
    session = quiz.apart(*quiz.counted(*args))
    assert session.counts == (60, 0, 0, 0, 0)
    assert len(set(far.asked)) == len(far.asked) == 60
    assert session.run_dir is not None
    assert len(list(session.run_dir.glob("results-gw*.jsonl"))) == 3


# --- machines that are lost --------------------------------------------------------------------


def test_a_lost_machine_costs_no_row(quiz: Quiz, machines: Machines) -> None:
    """When one of two machines dies half-way, the other asks the rest; asked twice is what it was just about."""
    quiz.write("AB" * 50)
    quiz.file("delay.txt", "0.05")
    machines.open()
    process = quiz.start(*quiz.counted(*machines.tx, "--simpleqa-concurrency=8"))
    machines.wait_for(20, process, lambda: machines.all[1].asked)
    machines.all[1].kill()
    session = quiz.finish(process)
    require_no_traceback(session)
    assert session.progress == (100, 100, 100, True)
    assert session.counts == (50, 50, 0, 0, 0)
    assert f"socket=127.0.0.1:{machines.all[1].port} is lost" in session.text
    assert len(machines.asked) <= 100 + 2 * 4 + 2


def test_the_last_machine_lost_ends_the_run(quiz: Quiz, machines: Machines) -> None:
    """With no machine left the session ends with status 1, an incomplete Report and the command that goes on."""
    quiz.write("A" * 60)
    quiz.file("delay.txt", "0.05")
    machines.open(1)
    process = quiz.start(*quiz.counted(*machines.tx, "--simpleqa-concurrency=4"))
    machines.wait_for(16, process)
    machines.all[0].kill()
    session = quiz.finish(process)
    require_no_traceback(session)
    assert session.status == 1
    assert "no worker is left" in session.text
    assert session.report is not None
    assert 0 < session.report["n"] < 60
    assert not session.report["complete"]
    assert "--simpleqa-resume=" in session.text


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_nothing_is_asked_twice_after_ctrl_c(quiz: Quiz, machines: Machines) -> None:
    """Ctrl-C stops the other machines at once, what they have answered is kept, and going on asks none of it again."""
    quiz.write("A" * 120)
    quiz.file("delay.txt", "0.1")
    machines.open()
    args = quiz.counted(*machines.tx, "--simpleqa-concurrency=8")
    process = quiz.start(*args)
    machines.wait_for(24, process)
    os.kill(process.pid, signal.SIGINT)
    broken = quiz.finish(process)
    assert broken.status == 2
    assert broken.report is not None
    count = len(machines.asked)
    assert count < 110  # a busy machine takes its time, but it did stop
    assert broken.report["n"] == count
    quiz.apart(*args, "--simpleqa-resume=latest")
    assert broken.run_dir is not None
    report = json.loads((broken.run_dir / "report.json").read_text(encoding="utf-8"))
    assert (report["n"], report["correct"], report["complete"]) == (120, 120, True)
    assert len(set(machines.asked)) == len(machines.asked) == 120


def test_x_stops_the_other_machines(quiz: Quiz, machines: Machines) -> None:
    """-x stops all machines at the first failure, whichever had it."""
    quiz.write("AB" + "A" * 100)
    quiz.file("delay.txt", "0.05")
    machines.open()
    session = quiz.apart(*quiz.counted(*machines.tx, "-x", "--simpleqa-concurrency=4"))
    assert session.status == 1
    assert not session.progress[3]
    assert len(machines.asked) < 30


# --- machines that are not as they should be ---------------------------------------------------


def drop_dataset(folder: Path) -> None:
    (folder / "quiz.csv").unlink()


def change_gold(folder: Path) -> None:
    text = (folder / "quiz.csv").read_text(encoding="utf-8")
    (folder / "quiz.csv").write_text(text.replace("person 3", "person 33"), encoding="utf-8")


def change_seed(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\nsimpleqa_seed = 3\n", encoding="utf-8")


def drop_answerer(folder: Path) -> None:
    (folder / "answerer.py").unlink()


def change_answerer(folder: Path) -> None:
    with (folder / "answerer.py").open("a", encoding="utf-8") as file:
        file.write("# mended here alone\n")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (drop_dataset, "there is no file 'quiz.csv' in"),
        (change_gold, "; copy the file there"),
        (change_seed, "it would not ask the same as this machine: seed: 0 on this machine, 3 there"),
        (drop_answerer, "python:answerer:answer"),
        (change_answerer, "answerer.py: not the same code as on this machine; copy it there"),
    ],
)
def test_another_machine_must_ask_the_same(
    quiz: Quiz, machines: Machines, spoil: Callable[[Path], None], told: str
) -> None:
    """A machine with another dataset, option or model, or without them, is refused in one line; nothing is asked."""
    machines.open()
    spoil(machines.all[1].folder)
    session = quiz.apart(*quiz.counted(*machines.tx))
    assert session.status == 4
    require_no_traceback(session)
    (line,) = [line for line in session.errors.splitlines() if line.strip()]
    assert line.startswith(f"ERROR: socket=127.0.0.1:{machines.all[1].port}: ")
    assert told in line
    assert machines.asked == []
    assert session.report is None
    assert list(quiz.path.glob(".simpleqa/*/")) == []


def test_a_machine_that_cannot_be_reached_is_named(quiz: Quiz, machines: Machines) -> None:
    """A machine where nobody listens is one line and exit 4."""
    machines.open()
    machines.all[1].kill()
    session = quiz.apart(*quiz.counted(*machines.tx))
    assert session.status == 4
    require_no_traceback(session)
    assert f"--tx socket=127.0.0.1:{machines.all[1].port}: no worker can be started there: " in session.errors


def test_a_test_file_behind_the_options_says_what_to_do(quiz: Quiz, machines: Machines) -> None:
    """A path of its own on the command line, which xdist would copy, is refused with the way to name tests."""
    machines.open(1)
    quiz.file("test_o.py", "def test_o(): pass\n")
    session = quiz.apart(*quiz.counted(*machines.tx, "test_o.py"))
    assert session.status == 4
    require_no_traceback(session)
    assert "xdist takes test_o.py on the command line for a path to copy; name tests by `testpaths`" in session.errors


def test_a_machine_without_the_plugin_is_named(quiz: Quiz, machines: Machines) -> None:
    """A worker that ends before it has collected ends the session, where xdist would start it again for ever."""
    machines.open(1, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    session = quiz.apart(*quiz.counted(*machines.tx))
    assert session.status == 4
    assert f"socket=127.0.0.1:{machines.all[0].port}: it ended before it had collected" in session.errors
    assert "is pytest-simpleqa installed there?" in session.errors


IN_A_TEST = """
import pytest

@pytest.mark.simpleqa_dataset("quiz.csv")
def test_answers(simpleqa):
    simpleqa.grade(simpleqa.ask())
"""


def test_fixture_tests_run_on_other_machines(quiz: Quiz, machines: Machines) -> None:
    """Tests that take the simpleqa fixture are spread over the machines, each with the same dataset or none at all."""
    quiz.write("A" * 20)
    quiz.file("test_rag.py", IN_A_TEST)
    machines.open()
    args = (*machines.tx, "--answer-llm=python:answerer:answer", "--judge-llm=replay:recorded.jsonl")
    session = quiz.apart(*args)
    assert session.counts == (20, 0, 0, 0, 0)
    assert len(set(machines.asked)) == len(machines.asked) == 20
    change_gold(machines.all[1].folder)
    session = quiz.apart(*args)
    assert session.status == 4
    require_no_traceback(session)
    assert f"ERROR: socket=127.0.0.1:{machines.all[1].port}: test_rag.py::test_answers has another dataset" in (
        session.errors
    )
    assert len(machines.asked) == 20


# --- keys --------------------------------------------------------------------------------------


def test_keys_do_not_travel(quiz: Quiz, machines: Machines) -> None:
    """A machine asks with the key of its own environment; the controller sends none, and none comes back."""
    quiz.file(
        "conftest.py",
        "import pytest\n\n@pytest.hookimpl(trylast=True)\ndef pytest_configure_node(node):\n"
        "    with open('sent.txt', 'a') as file:\n        print(node.workerinput, file=file)\n",
    )
    with FakeServer() as server:
        far = server.environment(api_key="sk-far-9876543210")
        machines.open(environment=far)
        quiz.environment |= server.environment(api_key="sk-near-0123456789")
        session = quiz.apart("--simpleqa-dataset=quiz.csv", *ASK_FAKE, *machines.tx)
        keys = {request.headers["authorization"] for request in server.requests}
    assert session.counts == (0, 6, 0, 0, 0)
    assert keys == {"Bearer sk-far-9876543210"}
    sent = (quiz.path / "sent.txt").read_text(encoding="utf-8")
    assert sent.count("'simpleqa'") == 2
    written = [path.read_text(encoding="utf-8") for path in quiz.path.rglob("*.json*")]
    for text in (sent, session.text, session.errors, *written):
        assert "sk-near" not in text
        assert "sk-far" not in text


def test_a_machine_without_a_key_is_refused(quiz: Quiz, machines: Machines) -> None:
    """A key that is missing there is told with the machine's name and the variable, before anything is asked."""
    machines.open(1)
    with FakeServer() as server:
        quiz.environment |= server.environment()
        session = quiz.apart("--simpleqa-dataset=quiz.csv", *ASK_FAKE, *machines.tx)
        assert server.requests == []
    assert session.status == 4
    assert f"ERROR: socket=127.0.0.1:{machines.all[0].port}: " in session.errors
    assert "SIMPLEQA_FAKE" in session.errors


# --- small parts -------------------------------------------------------------------------------


class Channel:
    """A channel that keeps what is sent until it is closed."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.is_closed = False
        self.hear: Callable[[str | None], None] = lambda said: None

    def setcallback(self, hear: Callable[[str | None], None], endmarker: None) -> None:
        self.hear = hear

    def send(self, text: str) -> None:
        if self.is_closed:
            raise OSError("closed")
        self.sent.append(text)


def link_over(channel: Channel, rows: str = '{"rows": {}}') -> Link:
    return Link({"link": channel, "rows": rows})


def test_orders_are_heard() -> None:
    """A stop and suspects reach the worker; a lost connection is a stop as well, and the first reason stays."""
    channel = Channel()
    link = link_over(channel)
    channel.hear('{"suspects": ["quiz.csv::q0001"]}')
    assert link.stop is None
    assert link.suspects == {"quiz.csv::q0001"}
    channel.hear('{"stop": "interrupted"}')
    channel.hear(None)
    assert link.stop == "interrupted"
    channel = Channel()
    link = link_over(channel)
    channel.hear(None)
    assert link.stop == "the connection to the controller is lost"


def test_rows_are_heard_once() -> None:
    """What stands in the run logs is given by run, each part once."""
    row = {"fingerprint": "f", "answer": None, "verdict": {"verdict": "correct"}, "error": None}
    link = link_over(Channel(), json.dumps({"rows": {"quiz.csv": [["q0001", 1, row]]}}))
    ((run, rows),) = link.heard_rows()
    assert run == "quiz.csv"
    assert rows["q0001", 1].verdict == {"verdict": "correct"}
    assert list(link.heard_rows()) == []


def test_lines_wait_for_the_thread_that_sends() -> None:
    """Lines of the run log are sent when pytest's own thread says so, in order; none is lost on a closed channel."""
    channel = Channel()
    link = link_over(channel)
    log = link.log("quiz.csv")
    log.write({"id": "q0001"})
    log.write({"id": "half \ud83c"})
    assert channel.sent == []
    link.send()
    assert [json.loads(text) for text in channel.sent] == [
        ["quiz.csv", {"id": "q0001"}],
        ["quiz.csv", {"id": "half \ud83c"}],
    ]
    assert all(text.isascii() for text in channel.sent)
    channel.is_closed = True
    log.write({"id": "q0003"})
    link.send()
    channel.is_closed = False
    log.close()
    assert len(channel.sent) == 3


@pytest.mark.parametrize(
    ("spec", "here"),
    [({"popen": True}, True), ({"popen": True, "via": "far"}, False), ({"socket": "127.0.0.1:1"}, False)],
)
def test_what_is_behind_a_proxy_is_not_here(spec: dict[str, Any], here: bool) -> None:
    """Only a process that this one has started shares its files."""
    gateway = SimpleNamespace(spec=SimpleNamespace(**{"popen": False, "via": None, **spec}))
    assert is_here(SimpleNamespace(gateway=gateway)) is here


def test_another_version_is_refused() -> None:
    """The controller and a worker must have the same version of the plugin: it is named on both sides."""
    with pytest.raises(OptionError, match=r"it has pytest-simpleqa \S+, this machine 99; install the same"):
        require_same({"version": "99", "contents": "{}"}, {}, {})


def test_hashes_are_told_short() -> None:
    """A dataset that differs is told by eight digits of either hash, and by what to do."""
    told, mine = ({"quiz.csv": {"dataset": {"sha256": digit * 64}, "options": {}}} for digit in "1a")
    with pytest.raises(OptionError) as caught:
        require_same({"version": version("pytest-simpleqa"), "contents": json.dumps(told), "code": {}}, mine, {})
    assert str(caught.value) == (
        "it would not ask the same as this machine: dataset sha256: 11111111 on this machine, aaaaaaaa there; "
        "copy the file there"
    )
