"""Tests of the log of one run's events."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import RunError
from pytest_simpleqa.eventlog import EventLog, require_log_place
from pytest_simpleqa.records import Failure, Question, QuestionResult, Verdict
from tests.test_openaievents import logged

RUN = logged()


def row(number: int, **values: Any) -> QuestionResult:
    given = {"predicted": "said", "verdict": Verdict.CORRECT, **values}
    return QuestionResult.for_question(Question(f"q{number:04}", f"{number}?", "gold"), **given)


FAILED: dict[str, Any] = {"predicted": None, "verdict": None, "error": Failure("timeout", "too late")}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def events(path: Path) -> Counter[tuple[str, str]]:
    return Counter((line["sample_id"], line["type"]) for line in lines(path) if "type" in line)


def write(path: Path, *rows: QuestionResult, run: Any = RUN, final: bool = True) -> None:
    log = EventLog(path, run)
    for each in rows:
        log.add(each)
    if final:
        log.finish({"accuracy": 1.0})
    log.close()


def test_a_log_is_laid_out_as_openai_evals_does(tmp_path: Path) -> None:
    """First the spec, then numbered events of each row, last the final report; every line is an object of JSON."""
    path = tmp_path / "below" / "log.jsonl"
    write(path, row(1), row(2, **FAILED))
    spec, *told, final = lines(path)
    assert spec == {"spec": RUN.spec()}
    assert final == {"final_report": {"accuracy": 1.0}, "run_id": "run-1"}
    assert [list(event) for event in told] == [
        ["run_id", "event_id", "sample_id", "type", "data", "created_by", "created_at"]
    ] * len(told)
    assert [event["event_id"] for event in told] == [0, 1, 2, 3]
    assert [event["type"] for event in told] == ["sampling", "match", "metrics", "error"]


def test_a_row_is_told_at_once_and_once(tmp_path: Path) -> None:
    """A row stands in the file as soon as it is added, and a second time adds nothing."""
    path = tmp_path / "log.jsonl"
    log = EventLog(path, RUN)
    log.add(row(1))
    before = path.read_bytes()
    log.add(row(1))
    assert path.read_bytes() == before
    assert len(events(path)) == 3
    log.close()
    log.close()


def test_any_text_can_be_told(tmp_path: Path) -> None:
    """Half a surrogate pair, a NUL and U+2028 cost no line."""
    path = tmp_path / "log.jsonl"
    text = "half \ud83c, nul \x00, line \u2028 end"
    write(path, row(1, predicted=text))
    assert lines(path)[1]["data"]["sampled"] == [text]


@pytest.mark.parametrize("cut", [0, 1, 40, 400, 700])
def test_a_killed_log_is_gone_on_with(tmp_path: Path, cut: int) -> None:
    """After a kill at any point the same rows are told again and no event stands twice; ids go on."""
    path = tmp_path / "log.jsonl"
    write(path, row(1), row(2), row(3), final=False)
    path.write_bytes(path.read_bytes()[: -cut or None])
    write(path, *(row(number) for number in range(1, 6)))
    assert set(events(path).values()) == {1}
    assert len(events(path)) == 15
    ids = [line["event_id"] for line in lines(path) if "type" in line]
    assert ids == sorted(set(ids))
    assert [list(line) for line in lines(path) if "final_report" in line] == [["final_report", "run_id"]]


def test_what_had_failed_is_told_anew(tmp_path: Path) -> None:
    """A row that had an error and now has a verdict has no error left; a finished log gets its new last line."""
    path = tmp_path / "log.jsonl"
    write(path, row(1), row(2, **FAILED), row(3))
    first = lines(path)[1]
    write(path, row(1), row(2), row(3))
    assert ("q0002", "error") not in events(path)
    assert events(path)["q0002", "match"] == 1
    assert lines(path)[1] == first
    assert sum("final_report" in line for line in lines(path)) == 1


def test_a_log_of_another_run_makes_way(tmp_path: Path) -> None:
    """A file with another run's log is replaced whole."""
    path = tmp_path / "log.jsonl"
    write(path, row(1), row(2))
    other = logged("other.csv")
    object.__setattr__(other, "run_id", "run-2")
    write(path, row(7), run=other)
    assert {line["run_id"] for line in lines(path)[1:]} == {"run-2"}
    assert {sample for sample, _ in events(path)} == {"q0007"}


def test_what_is_no_log_is_left_alone(tmp_path: Path) -> None:
    """A dataset, a folder or a place that cannot be written to is refused before anything is asked."""
    dataset = tmp_path / "quiz.csv"
    dataset.write_text("problem,answer\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"quiz\.csv: that file is no log of events"):
        require_log_place(dataset)
    with pytest.raises(RunError, match="it is a folder; wanted a file"):
        require_log_place(tmp_path)
    with pytest.raises(RunError, match="is no folder to write into"):
        require_log_place(dataset / "log.jsonl")
    (tmp_path / "empty.jsonl").touch()
    require_log_place(tmp_path / "empty.jsonl")
    write(tmp_path / "log.jsonl", row(1))
    require_log_place(tmp_path / "log.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_one_line() -> None:
    """What the system refuses to write is a RunError that names the file."""
    with pytest.raises(RunError, match=r"/dev/full: cannot write the log of events: No space left"):
        write(Path("/dev/full"), row(1))
