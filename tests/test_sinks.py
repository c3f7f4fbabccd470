"""Tests of `--simpleqa-record` and `--simpleqa-db` in whole sessions."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml  # noqa: F401  see below

# A session inside the test's process forgets what it has imported; these must not be imported twice.
import pytest_simpleqa.roles  # noqa: F401  see above
from tests.postgres import PASSWORD, Postgres, running_postgres
from tests.quiz import RECORDED, Quiz, Session

sa = pytest.importorskip("sqlalchemy")
for name in ("psycopg", "sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.dialects.sqlite.pysqlite"):
    pytest.importorskip(name)

WORKERS = pytest.mark.parametrize("workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["bare", "n2"])
SINKS = ("--simpleqa-record=log.jsonl", "--simpleqa-db=runs.db")
BREAKING = """\
import sqlite3
from contextlib import closing

import pytest


def alter(statement):
    with closing(sqlite3.connect("runs.db", timeout=20)) as connection, connection:
        connection.execute(statement)


def pytest_simpleqa_event(event):
    if event.kind == "start":
        alter("alter table events rename to away")
"""
SOMETIMES_DOWN = """\
from pathlib import Path


def answer(prompt):
    if Path("down").exists() and prompt[-2] in "46":
        raise RuntimeError("down")
    return "I say " + prompt
"""
MENDING = """\


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    alter("alter table away rename to events")
"""


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    return Quiz(pytester)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


def query(quiz: Quiz, text: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(quiz.path / "runs.db")) as connection:
        return connection.execute(text).fetchall()


def lines(quiz: Quiz, name: str = "log.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (quiz.path / name).read_text(encoding="utf-8").splitlines()]


def events(quiz: Quiz) -> Counter[tuple[str, str]]:
    return Counter((line["sample_id"], line["type"]) for line in lines(quiz) if "type" in line)


def agree(quiz: Quiz, session: Session) -> None:
    """Assert that log and database hold what the Report counts, each row once."""
    assert session.report is not None
    names = ("n", "correct", "incorrect", "not_attempted", "judge_failures", "errors")
    counts = tuple(session.report[name] for name in names)
    statuses = ("correct", "incorrect", "not_attempted", "judge_failure", "error")
    sums = ", ".join(f"coalesce(sum(status = '{status}'), 0)" for status in statuses)
    assert query(quiz, f"select {', '.join(names)} from runs") == [counts]
    assert query(quiz, f"select count(*), {sums} from results") == [counts]
    told = events(quiz)
    assert set(told.values()) == {1}
    assert sorted(told) == sorted(query(quiz, "select sample_id, type from events"))
    correct = [line["data"]["correct"] for line in lines(quiz) if line.get("type") == "match"]
    assert Counter(correct) == Counter({True: counts[1], False: counts[2] + counts[3]})
    finals = [line["final_report"] for line in lines(quiz) if "final_report" in line]
    assert [tuple(final[name] for name in names) for final in finals] == [counts]


@WORKERS
def test_log_and_database_hold_what_the_report_counts(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """Every kind of row stands in both, once, and their sums are those of the Report."""
    session = quiz.run(*SINKS, *workers)
    assert session.counts == (1, 1, 2, 1, 1) or session.counts[0] == 2, session.text
    assert "warning" not in session.text
    agree(quiz, session)


def test_a_resumed_run_is_told_once(quiz: Quiz) -> None:
    """Resuming leaves rows with a verdict as they are, asks failed ones anew and replaces what was told of them."""
    quiz.write("ABAA?A")
    quiz.file("answerer.py", SOMETIMES_DOWN)
    quiz.file("down", "")
    first = quiz.count(*SINKS)
    assert first.counts == (2, 1, 0, 1, 2)
    agree(quiz, first)
    old = query(quiz, "select run_id, created_at from runs")
    kept = query(quiz, "select * from events where sample_id < 'q0003' order by 2, 3")
    (quiz.path / "down").unlink()
    quiz.count(*SINKS, "--simpleqa-resume=latest")
    assert first.run_dir is not None
    first.report = json.loads((first.run_dir / "report.json").read_text(encoding="utf-8"))
    assert first.counts == (4, 1, 0, 1, 0)
    agree(quiz, first)
    assert query(quiz, "select run_id, created_at from runs") == old
    assert query(quiz, "select * from events where sample_id < 'q0003' order by 2, 3") == kept


def test_rows_finished_ahead_of_a_stop_are_told(quiz: Quiz) -> None:
    """What was asked ahead of -x and stands in the Report alone stands in both as well."""
    quiz.write("BAAAAAAA")
    session = quiz.run(*SINKS, "-x")
    assert session.report is not None
    assert session.report["n"] > 1
    agree(quiz, session)


def test_a_log_is_named_after_its_run(quiz: Quiz) -> None:
    """`{name}` in the file's name becomes the run's."""
    quiz.run("--simpleqa-record=logs/{name}.jsonl")
    assert lines(quiz, "logs/quiz.csv.jsonl")[0]["spec"]["eval_name"] == "quiz.csv"


def test_several_runs_share_a_database_and_have_logs_of_their_own(quiz: Quiz) -> None:
    """Beside a dataset, an eval has a log of its own and its own rows, named as in OpenAI Evals; one log is refused."""
    quiz.file("registry/data/caps/samples.jsonl", '{"input": "Capital of France?", "ideal": "I say"}\n' * 2)
    quiz.file(
        "registry/evals/caps.yaml",
        "caps:\n  id: caps.dev.v0\ncaps.dev.v0:\n  class: evals.elsuite.basic.match:Match\n"
        "  args:\n    samples_jsonl: caps/samples.jsonl\n",
    )
    models = "--answer-llm=python:answerer:answer", "--judge-llm=rules"
    runs = *models, "--simpleqa-dataset=quiz.csv", "--simpleqa-registry-path=registry", "--simpleqa-eval=caps"
    refused = quiz.pytest(*SINKS, *runs)
    assert refused.status == 4
    assert "log.jsonl: this session holds 2 runs, each with a log of its own; put {name} into" in refused.errors
    quiz.pytest("--simpleqa-record={name}.jsonl", "--simpleqa-db=runs.db", *runs)
    found = query(quiz, "select eval_name, split, n from runs order by 1")
    assert found == [("caps.dev.v0", "dev", 2), ("quiz.csv", "", 6)]
    samples = [line["sample_id"] for line in lines(quiz, "caps.dev.v0.jsonl") if line.get("type") == "match"]
    assert sorted(samples) == ["caps.dev.0", "caps.dev.1"]
    final = lines(quiz, "caps.dev.v0.jsonl")[-1]["final_report"]
    assert (final["accuracy"], "boostrap_std" in final) == (1.0, True)
    spec = lines(quiz, "caps.dev.v0.jsonl")[0]["spec"]["run_config"]["eval_spec"]
    assert (spec["cls"], spec["args"]) == ("evals.elsuite.basic.match:Match", {"samples_jsonl": "caps/samples.jsonl"})
    assert lines(quiz, "quiz.csv.jsonl")[-1]["final_report"]["n"] == 6


def test_listing_questions_makes_neither(quiz: Quiz) -> None:
    """--collect-only writes no log and touches no database."""
    quiz.run(*SINKS, "--collect-only")
    assert not (quiz.path / "log.jsonl").exists()
    assert not (quiz.path / "runs.db").exists()


def test_paths_in_an_ini_file_count_from_it(quiz: Quiz) -> None:
    """Both options can stand in the ini file."""
    quiz.file("pytest.ini", "[pytest]\nsimpleqa_record = log.jsonl\nsimpleqa_db = runs.db\n")
    agree(quiz, quiz.run())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--simpleqa-record=quiz.csv", "quiz.csv: that file is no log of events"),
        ("--simpleqa-record=.", "cannot write the log of events: it is a folder"),
        ("--simpleqa-db=quiz.csv", "quiz.csv: cannot be written to: file is not a database"),
        ("--simpleqa-db=postgresql://me:plnted@127.0.0.1:1/db", "me:***@127.0.0.1:1/db: cannot be written to: "),
    ],
)
def test_what_cannot_be_written_to_is_told_before_anything_is_asked(quiz: Quiz, option: str, message: str) -> None:
    """A mistake is one line and exit status 4, no question asked, no secret shown."""
    session = quiz.count(option)
    assert session.status == 4
    (line,) = [line for line in session.errors.splitlines() if line.strip()]
    assert message in line
    assert "plnted" not in session.text + session.errors
    assert quiz.asked == []


def test_a_database_that_comes_back_has_everything(quiz: Quiz) -> None:
    """Rows that could not be written while the database was away are written at the end."""
    quiz.file("conftest.py", BREAKING + MENDING)
    session = quiz.run(*SINKS)
    assert session.status == 1
    agree(quiz, session)


def test_a_database_that_stays_away_costs_a_warning(quiz: Quiz, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends as it would, tells what is missing, and resuming it writes that."""
    monkeypatch.setattr("pytest_simpleqa.sinks.PATIENCE_S", 0.2)  # a person's patience, not a test's
    quiz.file("conftest.py", BREAKING)
    session = quiz.run(*SINKS)
    assert session.status == 1
    assert session.report is not None
    assert session.report["complete"]
    said = "cannot be written to: no such table: events; 7 rows are not there: resume the run with the same option"
    assert said in " ".join(session.text.split())
    assert query(quiz, "select count(*) from results") == [(0,)]
    quiz.file("conftest.py", "")
    quiz.run(*SINKS, "--simpleqa-resume=latest")
    agree(quiz, session)


def test_a_log_that_cannot_be_written_on_costs_a_warning(quiz: Quiz) -> None:
    """Where the disk is full, the run goes on without its log, and says so once."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no full device here")
    session = quiz.run("--simpleqa-record=/dev/full")
    assert session.status == 1
    assert session.report is not None
    assert session.report["complete"]
    assert session.text.count("/dev/full: cannot write the log of events: No space left") == 1


@pytest.mark.slow
@pytest.mark.skipif("sys.platform == 'win32'", reason="kills a process group")
@WORKERS
def test_a_killed_run_is_gone_on_with(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """After kill -9 half-way and a resumption no row and no event stands twice, and the sums are the Report's."""
    quiz.write("AB" * 120)
    quiz.file("delay.txt", "0.1")
    process = quiz.start(*quiz.counted(*SINKS, "--simpleqa-concurrency=4", *workers))
    deadline = time.monotonic() + 60
    while len(quiz.asked) < 60 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    quiz.file("delay.txt", "0")
    session = quiz.apart(*quiz.counted(*SINKS, "--simpleqa-resume=latest", *workers))
    (run_dir,) = (path.parent for path in quiz.path.glob(".simpleqa/*/run.json"))
    session.report = json.loads((run_dir / "report.json").read_text(encoding="utf-8"))
    assert session.progress == (240, 240, 240, True)
    agree(quiz, session)


@pytest.mark.slow
@WORKERS
def test_a_session_on_postgresql_shows_no_password(quiz: Quiz, workers: tuple[str, ...], postgres: Postgres) -> None:
    """A run into PostgreSQL ends with the Report's sums there, and its password stands in no output and no file."""
    quiz.write("ABAAAA?!" * 40)
    quiz.file("delay.txt", "0.02")
    sinks = "--simpleqa-record=log.jsonl", f"--simpleqa-db={postgres.url}", "--simpleqa-concurrency=2"
    session = quiz.apart(*quiz.counted(*sinks, "-x", *workers))
    assert session.report is not None
    kept = [path for path in quiz.path.rglob("*") if path.is_file()]
    shown = session.text + session.errors + "".join(path.read_text(encoding="utf-8") for path in kept)
    assert "resume=" in session.text
    for part in (PASSWORD, "S3cret"):
        assert part not in shown
    run_id = lines(quiz)[0]["spec"]["run_id"]
    engine = sa.create_engine(postgres.url.replace("://", "+psycopg://"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        count = connection.execute(sa.text("select count(*) from results where run_id = :id"), {"id": run_id}).scalar()
    assert count == session.report["n"]


def test_the_judge_may_be_a_recording(quiz: Quiz) -> None:
    """What the log says of an answer is what was recorded."""
    quiz.write("A", {1: "said so"})
    quiz.pytest(*quiz.args("--simpleqa-record=log.jsonl", answer=RECORDED))
    (sampling,) = [line["data"] for line in lines(quiz) if line.get("type") == "sampling"]
    assert (sampling["prompt"], sampling["sampled"]) == ("Who did thing 1?", ["said so"])
