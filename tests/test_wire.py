"""Tests of questions under xdist: shares of the concurrency, every way of distribution, nothing asked twice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

from .fake_server import FakeServer
from .quiz import Quiz, Session

ASK_FAKE = ("--simpleqa-dataset=quiz.csv", "--answer-llm=fake:m", "--judge-llm=fake:judge")


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    return Quiz(pytester)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(latency=0.03) as running:
        yield running


def put_to(server: FakeServer, quiz: Quiz, *args: str) -> Session:
    """Put the dataset to the server, which answers and judges."""
    quiz.environment |= server.environment()
    return quiz.apart(*ASK_FAKE, "-q", *args)


@pytest.mark.parametrize(
    ("concurrency", "mode"),
    [(3, ()), (3, ("-n2",)), (1, ("-n2",)), (5, ("-n2", "--dist=loadfile"))],
    ids=["bare", "n2", "one-n2", "loadfile"],
)
def test_pairs_in_flight_never_pass_the_concurrency(
    quiz: Quiz, server: FakeServer, concurrency: int, mode: tuple[str, ...]
) -> None:
    """The workers' shares add up to the concurrency: the server sees that many at once, never more."""
    quiz.write("B" * 40)
    session = put_to(server, quiz, f"--simpleqa-concurrency={concurrency}", *mode)
    assert session.counts == (0, 40, 0, 0, 0)
    assert server.max_in_flight == concurrency
    assert len(server.answers) == len(server.judgements) == 40
    assert server.duplicates == {}


@pytest.mark.slow
def test_eight_workers_share_three(quiz: Quiz, server: FakeServer) -> None:
    """With fewer pairs than workers only so many workers get questions, and ordinary tests still run on all."""
    quiz.write("B" * 40)
    quiz.file("test_plain.py", "import pytest\n\n@pytest.mark.parametrize('n', range(24))\ndef test_n(n):\n    pass\n")
    session = put_to(server, quiz, "--simpleqa-concurrency=3", "-n8", "test_plain.py")
    assert session.counts == (0, 40, 0, 0, 0)
    assert server.max_in_flight == 3
    assert server.duplicates == {}
    assert session.run_dir is not None
    assert len(list(session.run_dir.glob("results*.jsonl"))) <= 3
    assert "24 passed" in session.last


def test_both_workers_answer(quiz: Quiz) -> None:
    """With enough in flight every worker gets its part, and each writes a file of results of its own."""
    quiz.write("A" * 40)
    quiz.file("delay.txt", "0.01")
    session = quiz.count("-n2", "--simpleqa-concurrency=4")
    assert session.counts == (40, 0, 0, 0, 0)
    assert session.run_dir is not None
    names = sorted(path.name for path in session.run_dir.glob("results*.jsonl"))
    assert names == ["results-gw0.jsonl", "results-gw1.jsonl"]
    assert len(quiz.asked) == len(set(quiz.asked)) == 40


def test_few_questions_are_dealt_fairly(quiz: Quiz) -> None:
    """Of a few questions each worker gets as many as the other."""
    quiz.write("A" * 10)
    session = quiz.count("-n2", "--simpleqa-concurrency=2")
    assert session.counts == (10, 0, 0, 0, 0)
    assert session.run_dir is not None
    texts = [path.read_text() for path in sorted(session.run_dir.glob("results*.jsonl"))]
    assert [text.count('"kind":"verdict"') for text in texts] == [5, 5]


@pytest.mark.parametrize("dist", ["load", "worksteal", "loadfile", "loadscope", "loadgroup"])
def test_every_way_of_distribution_gives_the_same(quiz: Quiz, dist: str) -> None:
    """Whatever --dist says, each question is asked once and the Report is the same."""
    quiz.write("ABC?!A" * 5)
    quiz.file("test_plain.py", "def test_one():\n    pass\n\n\ndef test_two():\n    pass\n")
    session = quiz.count("-n2", f"--dist={dist}", "test_plain.py")
    assert session.counts == (10, 5, 5, 10, 0)  # `answerer` answers what the recording leaves out
    assert session.progress == (30, 30, 30, True)
    assert len(quiz.asked) == len(set(quiz.asked)) == 30
    assert session.report is not None
    assert [sample["id"] for sample in session.report["samples"]] == [f"q{n:04}" for n in range(1, 31)]
    assert "2 passed" in session.last
    assert session.status == 1


def test_ordinary_tests_are_spread_over_the_workers(quiz: Quiz) -> None:
    """Ordinary tests beside the dataset run on all workers, each once, before or beside the questions."""
    quiz.write("A" * 10)
    quiz.file(
        "test_plain.py",
        "import os\nimport time\n\nimport pytest\n\n"
        "@pytest.mark.parametrize('n', range(12))\n"
        "def test_n(n):\n"
        "    time.sleep(0.02)\n"
        "    with open('where.txt', 'a') as file:\n"
        "        file.write(f\"{n} {os.environ['PYTEST_XDIST_WORKER']}\\n\")\n",
    )
    session = quiz.count("-n2", "test_plain.py")
    ran = [line.split() for line in (quiz.path / "where.txt").read_text().splitlines()]
    assert sorted(int(number) for number, _ in ran) == list(range(12))
    assert {worker for _, worker in ran} == {"gw0", "gw1"}
    assert sorted(session.last.split(", ")) == ["10 correct", "12 passed"]


def test_sampling_is_the_same_in_every_process(quiz: Quiz) -> None:
    """A seeded sample of the rows is the same bare and in all workers."""
    quiz.write("A" * 50)
    asked = []
    for mode in ((), ("-n2",)):
        session = quiz.count("--simpleqa-sample=7", *mode)
        assert session.progress == (7, 7, 7, True)
        assert session.report is not None
        asked.append([sample["id"] for sample in session.report["samples"]])
    assert asked[0] == asked[1]
    assert len(quiz.asked) == 14


def test_hostile_answers_cross_the_process(quiz: Quiz) -> None:
    """Half a surrogate pair, NUL and a megabyte of text in answers come through a worker whole."""
    text = "half \ud83c nul \x00 esc \x1b end"
    quiz.write("AAB", {1: text, 2: "x" * 200_000})
    session = quiz.run("-n2")
    assert session.counts == (2, 1, 0, 0, 0)
    assert session.report is not None
    first, second, _ = session.report["samples"]
    assert first["predicted"].encode("utf-16", "surrogatepass").decode("utf-16", "replace") == text.replace(
        "\ud83c", "�"
    )
    assert 100_000 < len(second["predicted"]) < 100_100
    assert any("200,000 characters" in note for note in second["notes"])


def test_looponfail_is_refused(quiz: Quiz) -> None:
    """--looponfail, which would ask again at every change of a file, is one line and exit 4; nothing is asked."""
    session = quiz.apart(*quiz.counted("-f"))
    assert session.status == 4
    assert "ERROR: --looponfail with --answer-llm would ask" in session.errors
    assert "Traceback" not in session.errors
    assert quiz.asked == []


def test_a_maximal_number_of_restarts_is_pytests_affair(quiz: Quiz) -> None:
    """When a worker that has died may not be replaced, the rest is told and the Report says what is missing."""
    quiz.write("A" * 20)
    quiz.file(
        "conftest.py",
        "import os\n\ndef pytest_runtest_setup(item):\n    if item.name == 'q0003':\n        os._exit(3)\n",
    )
    session = quiz.run("-n1", "--max-worker-restart=0")
    assert session.status == 1
    assert session.report is not None
    assert session.report["exit_status"] == session.status
    assert session.report["n"] >= 3


def test_a_run_directory_has_one_writer_per_file(quiz: Quiz) -> None:
    """No line of results is torn or doubled when two workers and the controller write."""
    quiz.write("ABC?!" * 10)
    session = quiz.run("-n2")
    ends = [line["id"] for line in session.results if line["kind"] in ("verdict", "error")]
    assert sorted(ends) == [f"q{n:04}" for n in range(1, 51)]
    assert all(re.fullmatch(r"results(-gw\d)?\.jsonl", path.name) for path in _files(session))


def _files(session: Session) -> list[os.DirEntry[str]]:
    assert session.run_dir is not None
    with os.scandir(session.run_dir) as entries:
        return [entry for entry in entries if entry.name.startswith("results")]
