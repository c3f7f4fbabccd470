"""Tests of runs in a SQL database; those on PostgreSQL start a server of their own."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.database import Database, Entry
from pytest_simpleqa.errors import OptionError
from pytest_simpleqa.openaievents import LoggedRun
from pytest_simpleqa.records import Failure, Question, QuestionResult, Usage, Verdict
from pytest_simpleqa.reportbuild import build_report
from pytest_simpleqa.secret import Secret, without_password
from tests.postgres import PASSWORD, Postgres, running_postgres
from tests.test_openaievents import logged

sa = pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")
FAILED: dict[str, Any] = {"predicted": None, "verdict": None, "error": Failure("timeout", "too late")}
TABLES = ("runs", "results", "events")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    execute(server.url, *(f"drop table if exists {table}" for table in TABLES))
    return server.url


def _engine(address: str) -> Any:
    return sa.create_engine(address.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)


def execute(address: str, *statements: str) -> None:
    with _engine(address).begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def rows(address: str, query: str) -> list[Any]:
    with _engine(address).connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(query))]


def opened(address: str, base: Path = Path()) -> Database:
    database = Database(Secret(address), base)
    database.open()
    return database


def result(number: int, repeat: int = 1, **values: Any) -> QuestionResult:
    given = {
        "predicted": f"said {number}",
        "verdict": Verdict.CORRECT,
        "answer_usage": Usage(1, 5, 3, 0.5, "m"),
        **values,
    }
    return QuestionResult.for_question(Question(f"q{number:04}", f"{number}?", "gold"), repeat, **given)


def entries(*results: QuestionResult, run: LoggedRun | None = None) -> list[Entry]:
    return [Entry(run or logged(), each) for each in results]


def written(address: str, *batches: list[Entry]) -> None:
    database = opened(address)
    for batch in batches:
        database.write(batch)
    database.close()


def test_a_run_its_rows_and_its_events_are_entered(address: str) -> None:
    """A batch enters the run, a row for each result and their events, numbered from 0 in each row."""
    written(address, entries(result(1), result(2, verdict=Verdict.INCORRECT), result(3, **FAILED)))
    assert rows(address, "select run_id, model_name, eval_name, judge, dataset from runs") == [
        ("run-1", '{"completions": ["openai:m"]}', "quiz.csv", "rules", "quiz.csv")
    ]
    found = "question_id, repeat, status, predicted, verdict, error_kind, answer_completion_tokens, answer_latency_s"
    assert rows(address, f"select {found} from results order by question_id") == [
        ("q0001", 1, "correct", "said 1", "correct", None, 3, 0.5),
        ("q0002", 1, "incorrect", "said 2", "incorrect", None, 3, 0.5),
        ("q0003", 1, "error", None, None, "timeout", 3, 0.5),
    ]
    assert rows(address, "select sample_id, event_id, type from events order by 1, 2") == [
        ("q0001", 0, "sampling"), ("q0001", 1, "match"), ("q0001", 2, "metrics"),
        ("q0002", 0, "sampling"), ("q0002", 1, "match"), ("q0002", 2, "metrics"),
        ("q0003", 0, "error"),
    ]  # fmt: skip
    ((data,),) = rows(address, "select data from events where sample_id = 'q0002' and type = 'match'")
    assert json.loads(data)["correct"] is False


def test_what_is_written_again_stands_once(address: str) -> None:
    """Another session, and another batch of one, change nothing of a row with a verdict and add nothing to it."""
    written(address, entries(result(1), result(2)))
    before = [rows(address, f"select * from {table} order by 1, 2, 3") for table in TABLES]
    written(address, entries(result(1), result(1)), entries(result(2)))
    assert [rows(address, f"select * from {table} order by 1, 2, 3") for table in TABLES] == before


def test_a_row_that_had_failed_is_replaced(address: str) -> None:
    """What had an error and now has a verdict stands there with the verdict and its events alone."""
    written(address, entries(result(1, verdict=None, error=Failure("unreadable", "?")), result(2, **FAILED)))
    written(address, entries(result(1, **FAILED), result(2)))
    assert rows(address, "select question_id, status from results order by 1") == [
        ("q0001", "error"), ("q0002", "correct"),
    ]  # fmt: skip
    assert rows(address, "select sample_id, type from events order by 1, event_id") == [
        ("q0001", "error"), ("q0002", "sampling"), ("q0002", "match"), ("q0002", "metrics"),
    ]  # fmt: skip


def test_repeats_and_runs_are_kept_apart(address: str) -> None:
    """Rows are told apart by run, question and repeat."""
    one, other = logged(repeats=2), logged("other.csv")
    object.__setattr__(other, "run_id", "run-2")
    written(address, entries(result(1), result(1, 2), run=one) + entries(result(1), run=other))
    assert rows(address, "select run_id, sample_id, repeat from results order by 1, 3") == [
        ("run-1", "q0001-r1", 1), ("run-1", "q0001-r2", 2), ("run-2", "q0001", 1),
    ]  # fmt: skip


def test_the_report_ends_its_run(address: str) -> None:
    """With the Report the run gets its counts, its rates and the final report."""
    row = result(1)
    report = build_report(
        dataset="quiz.csv", model="m", judge="j", started_at=datetime.now(UTC), duration_s=1.5,
        population=[Question("q0001", "1?", "gold")], results={("q0001", 1): row},
    )  # fmt: skip
    written(address, [*entries(row), Entry(logged(), report)])
    ((*figures, complete, final),) = rows(
        address, "select n, correct, errors, accuracy, duration_s, exit_status, complete, final_report from runs"
    )
    assert figures == [1, 1, 0, 1.0, 1.5, None]
    assert complete in (True, 1)
    assert json.loads(final)["accuracy"] == 1.0


def test_a_batch_that_fails_leaves_nothing_behind(address: str) -> None:
    """A batch is written whole or not at all, and can be written again when what was in its way is gone."""
    database = opened(address)
    database.write(entries(result(1)))
    execute(address, "alter table events rename to away")
    with pytest.raises(sa.exc.SQLAlchemyError):
        database.write(entries(result(2), result(3)))
    execute(address, "alter table away rename to events")
    assert rows(address, "select count(*) from results") == [(1,)]
    database.write(entries(result(2), result(3)))
    database.close()
    assert rows(address, "select count(*) from results") == [(3,)]


def test_any_text_can_be_stored(address: str) -> None:
    """What a database refuses, a NUL or half a surrogate pair, stands there as U+FFFD; all else as it is."""
    text = "nul \x00, half \ud83c, pair \U0001f600, café, 日本"
    written(address, entries(result(1, predicted=text, extra={"trace": text})))
    assert rows(address, "select predicted from results") == [("nul \ufffd, half \ufffd, pair \U0001f600, café, 日本",)]
    ((extra,),) = rows(address, "select extra from results")
    assert json.loads(extra)["trace"] == text


def test_tables_of_others_are_refused(address: str) -> None:
    """Where a table of that name is another one, that is told before anything is asked."""
    execute(address, "create table results (id integer)")
    with pytest.raises(OptionError, match="its table results is another one, without 'run_id'; name a database"):
        opened(address)
    execute(address, "drop table results")


def test_a_path_is_a_file_for_sqlite(tmp_path: Path) -> None:
    """An address that is no URL is a file, relative to the folder that the option counts from."""
    opened("runs.db", tmp_path).close()
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        assert {name for (name,) in connection.execute("select name from sqlite_master")} >= set(TABLES)
    connection.close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nowhere/runs.db", "nowhere/runs.db: wanted a file for SQLite in a folder that is there, or an URL"),
        ("postgresql://me:pl@nted:pw@@@:x/db", "wanted an URL as postgresql://USER:PASSWORD@HOST/DATABASE, or a path"),
        ("sqlite://", "what is in memory is gone at the end; wanted sqlite:///FILE"),
        ("snowflake://me:plnted@account/db", "snowflake://me:***@account/db: SQLAlchemy knows no 'snowflake'; install"),
        ("nosuch://me:plnted@h/db", "SQLAlchemy knows no 'nosuch'; install a package with its dialect"),
        ("oracle+oracledb://me:plnted@h/db", "the driver oracledb is not installed"),
        ("postgresql://me:plnted@127.0.0.1:1/db", "psycopg://me:***@127.0.0.1:1/db: cannot be written to: conn"),
        ("sqlite:////nowhere/at/all.db", "/nowhere/at/all.db: cannot be written to: unable to open database file"),
    ],
)  # fmt: skip
def test_a_wrong_address_is_one_line_without_its_password(address: str, message: str, tmp_path: Path) -> None:
    """A mistake in the address, a missing package and a database that is away are told in one line, no secret in it."""
    if "snowflake" in address:
        _skip_where_installed("snowflake.sqlalchemy")
    with pytest.raises(OptionError) as caught:
        opened(address, tmp_path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "plnted" not in str(caught.value)
    assert "pl@nted" not in str(caught.value)


def _skip_where_installed(module: str) -> None:
    try:
        __import__(module)
    except ImportError:
        return
    pytest.skip(f"{module} is installed")


def test_a_file_that_cannot_be_written_to_is_told_before(tmp_path: Path) -> None:
    """A database that is only readable is an error at once, though its tables are there."""
    opened("runs.db", tmp_path).close()
    readonly = f"sqlite:///file:{tmp_path / 'runs.db'}?mode=ro&uri=true"
    with pytest.raises(OptionError, match="cannot be written to: attempt to write a readonly database"):
        opened(readonly)


def test_a_file_that_is_no_database_is_told_before(tmp_path: Path) -> None:
    """A dataset in the place of a database is refused and left as it is."""
    path = tmp_path / "quiz.csv"
    path.write_text("problem,answer\n" * 100, encoding="utf-8")
    with pytest.raises(OptionError, match="cannot be written to: file is not a database"):
        opened("quiz.csv", tmp_path)
    assert path.read_text(encoding="utf-8") == "problem,answer\n" * 100


@pytest.mark.slow
def test_a_wrong_password_is_not_shown(postgres: Postgres) -> None:
    """What a server says of a wrong password is told without it."""
    with pytest.raises(OptionError) as caught:
        opened(postgres.url.replace("S3cret", "Wr0ng"))
    assert "password authentication failed" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Wr0ng" not in str(caught.value)


@pytest.mark.slow
def test_a_database_that_was_away_is_connected_to_again(postgres: Postgres) -> None:
    """After a server has been stopped and started again, the batch that failed is written, once."""
    execute(postgres.url, *(f"drop table if exists {table}" for table in TABLES))
    database = opened(postgres.url)
    database.write(entries(result(1)))
    postgres.stop()
    with pytest.raises(sa.exc.SQLAlchemyError) as caught:
        database.write(entries(result(2)))
    assert PASSWORD not in database.told(caught.value)
    postgres.start()
    database.write(entries(result(1), result(2)))
    database.close()
    assert rows(postgres.url, "select question_id from results order by 1") == [("q0001",), ("q0002",)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--simpleqa-db=postgresql://me:s3/cr@t@h:5/db", "--simpleqa-db=postgresql://me:***@h:5/db"),
        ("snowflake://me@h/db?token=abc&role=x", "snowflake://me@h/db?token=***&role=x"),
        ("sqlite:///runs.db", "sqlite:///runs.db"),
        ("--simpleqa-dataset=https://h:80/a@b.csv", "--simpleqa-dataset=https://h:80/a@b.csv"),
        ("--simpleqa-dataset=https://me:pw@h:80/a.csv", "--simpleqa-dataset=https://me:***@h:80/a.csv"),
        ("key=value", "key=value"),
    ],
)
def test_an_argument_is_shown_without_its_password(text: str, shown: str) -> None:
    """What is typed again to resume a run has no password in it, and is else as it was."""
    assert without_password(text) == shown


def test_nothing_is_imported_before_an_address_is_taken() -> None:
    """The module itself loads no SQLAlchemy."""
    code = "import sys, pytest_simpleqa.sinks; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
