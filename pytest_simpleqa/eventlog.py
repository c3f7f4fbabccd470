"""The log of one run's events as OpenAI Evals writes it: a line of JSON each, added to as results come."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .errors import RunError
from .openaievents import EventData, LoggedRun
from .records import QuestionResult

_ENCODE = json.JSONEncoder(separators=(", ", ": "), allow_nan=False).encode


class EventLog:
    """The file of one run; one writer.

    A row's lines are handed to the operating system at once, so that a kill costs the end of the last row. A log
    of the same run is gone on with: what it tells of a row is not told again, but for rows that had failed.
    """

    def __init__(self, path: Path, run: LoggedRun) -> None:
        """Open `path`, taking the place of a log of another run. Raises RunError."""
        self.path = path
        self._run = run
        try:
            kept = _kept(path, run.run_id)
            self._told = set(kept.samples)
            self._next_id = kept.next_id
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.is_file():
                _replace(path, [_line({"spec": run.spec()}), *kept.lines])
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise RunError(f"{path}: cannot write the log of events: {error.strerror}") from None

    def add(self, result: QuestionResult) -> None:
        """Tell of one row, once. Raises RunError."""
        sample_id = self._run.sample_id(result)
        if sample_id not in self._told:
            self._told.add(sample_id)
            self._write(b"".join(self._event(sample_id, event) for event in self._run.events(result)))

    def finish(self, final: Mapping[str, Any]) -> None:
        """Write the last line. Raises RunError."""
        self._write(_line({"final_report": dict(final), "run_id": self._run.run_id}))

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _event(self, sample_id: str, event: EventData) -> bytes:
        kind, data = event
        line = {
            "run_id": self._run.run_id,
            "event_id": self._next_id,
            "sample_id": sample_id,
            "type": kind,
            "data": data,
            "created_by": "",
            "created_at": str(datetime.now(UTC)),
        }
        self._next_id += 1
        return _line(line)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise RunError(f"{self.path}: cannot write the log of events: {error.strerror}") from None


def require_log_place(path: Path) -> None:
    """Raise RunError where no log can be written to `path`, or where something else is; before anything is asked."""
    if path.is_dir():
        raise RunError(f"{path}: cannot write the log of events: it is a folder; wanted a file")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        raise RunError(f"{path}: cannot write the log of events: {above} is no folder to write into")
    if path.is_file() and path.stat().st_size and _spec_of(path) is None:
        raise RunError(f"{path}: that file is no log of events, which would take its place; name another")


@dataclass
class _Kept:
    """What of an earlier session's log stands."""

    lines: list[bytes] = field(default_factory=list)
    samples: set[str] = field(default_factory=set)
    next_id: int = 0


def _kept(path: Path, run_id: str) -> _Kept:
    """Return what stays of the log in `path`, where it is one of this run.

    Rows with an error go, since resuming asks them again, and so does the last row, whose end a kill may have taken.
    """
    spec = _spec_of(path) if path.is_file() else None
    if spec is None or spec.get("run_id") != run_id:
        return _Kept()
    events = list(_events_in(path))
    gone = {event["sample_id"] for _, event in events if event["type"] == "error"}
    gone |= {event["sample_id"] for _, event in events[-1:]}
    kept = _Kept(next_id=1 + max((event["event_id"] for _, event in events), default=-1))
    for line, event in events:
        if event["sample_id"] not in gone:
            kept.lines.append(line)
            kept.samples.add(event["sample_id"])
    return kept


def _events_in(path: Path) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """Yield the whole lines that hold an event."""
    for line in path.read_bytes().split(b"\n"):
        event = _object(line)
        if event is not None and {"sample_id", "type", "event_id"} <= event.keys():
            yield line + b"\n", event


def _spec_of(path: Path) -> Mapping[str, Any] | None:
    """Return the spec in the first line; None where the file is no log of events."""
    with path.open("rb") as file:
        first = _object(file.readline())
    spec = (first or {}).get("spec")
    return spec if isinstance(spec, dict) else None


def _object(line: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _line(content: Mapping[str, Any]) -> bytes:
    return _ENCODE(content).encode("ascii") + b"\n"


def _replace(path: Path, lines: list[bytes]) -> None:
    """Put a new file in the place of `path` in one step: a kill leaves the old one or the new one."""
    target = path.resolve()
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fresh.write_bytes(b"".join(lines))
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
