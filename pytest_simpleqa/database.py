"""Runs in a SQL database, through SQLAlchemy: three tables, written to in one transaction a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .databaseaddress import engine_for
from .databasetables import Tables, event_values, report_values, result_values, run_values
from .errors import OptionError
from .openaievents import LoggedRun
from .records import QuestionResult
from .report import Report
from .secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

Key = tuple[str, int]
"""`(question id, repeat)`: with the run's id what names a row."""


@dataclass(frozen=True)
class Entry:
    """One thing to write: that a run has ended with `content`, a Report, or what came of one row."""

    run: LoggedRun
    content: QuestionResult | Report


class Database:
    """One database; `open` looks at it, `write` writes a batch whole or not at all.

    What is written twice stands there once. A row that has a verdict there is left alone: no resuming changes it.
    """

    def __init__(self, address: Secret, base: Path) -> None:
        """Take the address as the user gave it: an URL of SQLAlchemy, or a path from `base`. Raises OptionError."""
        self._engine, self.shown, self._secrets = engine_for(address.reveal(), base)
        self._known: dict[str, dict[Key, bool]] = {}
        """By run: the rows that stand there, and whether with a verdict."""

    def open(self) -> None:
        """Make the tables that are missing, and see that they can be written to. Raises OptionError in one line."""
        tables = self._tables
        try:
            with self._faults(), self._engine.connect() as connection:
                tables.metadata.create_all(connection)
                for table in tables.all:
                    self._require_columns(connection, table)
                connection.commit()
                connection.execute(tables.runs.insert(), {"run_id": "", "eval_name": ""})
                connection.rollback()
        finally:
            self._engine.dispose()  # the batches are written in another thread

    def write(self, entries: Sequence[Entry]) -> None:
        """Write a batch in one transaction. Raises what the database raises; then nothing of it stands."""
        runs = {entry.run.run_id: entry.run for entry in entries}
        try:
            with self._engine.begin() as connection:
                for run_id, run in runs.items():
                    mine = [entry for entry in entries if entry.run.run_id == run_id]
                    self._write_run(connection, run, mine)
        except BaseException:
            self._known.clear()  # what of it stands is the database's to say
            raise

    def told(self, error: BaseException) -> str:
        """Return what went wrong in one line, without passwords and without the rows."""
        text = str(getattr(error, "orig", None) or error) or type(error).__name__
        for secret in self._secrets:
            text = secret.redact(text)
        return "; ".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))

    def close(self) -> None:
        """Let go of the connection."""
        self._engine.dispose()

    # --- writing ---------------------------------------------------------------------------

    def _write_run(self, connection: sa.Connection, run: LoggedRun, entries: Sequence[Entry]) -> None:
        known = self._known.get(run.run_id)
        if known is None:
            known = self._known[run.run_id] = self._begin(connection, run)
        results = [entry.content for entry in entries if isinstance(entry.content, QuestionResult)]
        fresh = {(each.id, each.repeat): each for each in results if not known.get((each.id, each.repeat))}
        self._delete(connection, run, [(key, result) for key, result in fresh.items() if key in known])
        self._insert(connection, run, fresh.values())
        known.update({key: result.verdict is not None for key, result in fresh.items()})
        for entry in entries:
            if isinstance(entry.content, Report):
                self._end(connection, run, entry.content)

    def _begin(self, connection: sa.Connection, run: LoggedRun) -> dict[Key, bool]:
        """Enter the run where it is not there, and return its rows that are."""
        tables = self._tables
        of_run = tables.runs.c.run_id == run.run_id
        if connection.execute(tables.runs.select().where(of_run)).first() is None:
            connection.execute(tables.runs.insert(), run_values(run))
            return {}
        found = tables.results.select().where(tables.results.c.run_id == run.run_id)
        columns = tables.results.c
        rows = connection.execute(found.with_only_columns(columns.question_id, columns.repeat, columns.verdict))
        return {(str(row.question_id), int(row.repeat)): row.verdict is not None for row in rows}

    def _delete(self, connection: sa.Connection, run: LoggedRun, rows: Sequence[tuple[Key, QuestionResult]]) -> None:
        """Take away rows that have failed, which now come again."""
        results, events = self._tables.results, self._tables.events
        for key, result in rows:
            at = results.c.run_id == run.run_id, results.c.question_id == key[0], results.c.repeat == key[1]
            connection.execute(results.delete().where(*at))
            of_row = events.c.run_id == run.run_id, events.c.sample_id == run.sample_id(result)
            connection.execute(events.delete().where(*of_row))

    def _insert(self, connection: sa.Connection, run: LoggedRun, results: Iterable[QuestionResult]) -> None:
        rows = [result_values(run, result) for result in results]
        events = [event for result in results for event in event_values(run, result)]
        if rows:
            connection.execute(self._tables.results.insert(), rows)
        if events:
            connection.execute(self._tables.events.insert(), events)

    def _end(self, connection: sa.Connection, run: LoggedRun, report: Report) -> None:
        runs = self._tables.runs
        connection.execute(runs.update().where(runs.c.run_id == run.run_id), report_values(report))

    # --- looking ---------------------------------------------------------------------------

    def _require_columns(self, connection: sa.Connection, table: sa.Table) -> None:
        import sqlalchemy as sa

        there = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
        if missing := [column.name for column in table.columns if column.name not in there]:
            raise OptionError(
                f"--simpleqa-db {self.shown}: its table {table.name} is another one, without {missing[0]!r}; name a "
                "database or a schema of its own"
            )

    @contextmanager
    def _faults(self) -> Iterator[None]:
        import sqlalchemy as sa

        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            raise OptionError(f"--simpleqa-db {self.shown}: cannot be written to: {self.told(error)}") from None

    @cached_property
    def _tables(self) -> Tables:
        return Tables.make()
