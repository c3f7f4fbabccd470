"""Promises of `models/recording.py` and `models/columns.py`: what files of recorded answers mean."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import SpecError
from pytest_simpleqa.models.columns import Recorded, RecordedRow
from pytest_simpleqa.models.recording import read_recording
from pytest_simpleqa.records import Question, Verdict, text_hash


def read(tmp_path: Path, text: str | bytes, name: str = "runs.csv", argument: str = "") -> Recorded:
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_recording(argument or name, tmp_path)


def only_row(recorded: Recorded) -> RecordedRow:
    (row,) = recorded.rows
    return row


def error_of(tmp_path: Path, text: str | bytes, name: str = "runs.csv", argument: str = "") -> str:
    with pytest.raises(SpecError) as caught:
        read(tmp_path, text, name, argument)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def run_line(kind: str, row_id: str = "q0001", repeat: int = 1, **values: Any) -> str:
    question = Question(row_id, "Who?", "Ann")
    line = {"v": 1, "kind": kind, "id": row_id, "fingerprint": question.fingerprint, "repeat": repeat, **values}
    return json.dumps(line) + "\n"


@pytest.mark.parametrize(
    "column", ["predicted", "Predicted Answer", "prediction", "response", "completion", "model-answer", "OUTPUT"]
)
def test_the_answer_column_has_many_names(tmp_path: Path, column: str) -> None:
    """A predicted-like column is found under each of its names, in any case."""
    row = only_row(read(tmp_path, f"problem,answer,{column}\nWho?,Ann,Bob\n"))
    assert row == RecordedRow(text_hash("Who?"), text_hash("Ann"), "Bob", question="Who?", gold="Ann")


def test_answer_is_the_models_where_the_gold_is_elsewhere(tmp_path: Path) -> None:
    """A column `answer` is taken for the model's only where nothing else is and the gold has its own column."""
    row = only_row(read(tmp_path, "question,target,answer\nWho?,Ann,Bob\n"))
    assert (row.predicted, row.gold_hash) == ("Bob", text_hash("Ann"))
    assert "no column of predicted answers; found question, answer; accepted are predicted" in error_of(
        tmp_path, "question,answer\nWho?,Ann\n"
    )


@pytest.mark.parametrize(
    ("cell", "verdict"),
    [
        ("A", Verdict.CORRECT),
        (" b ", Verdict.INCORRECT),
        ("c", Verdict.NOT_ATTEMPTED),
        ("CORRECT", Verdict.CORRECT),
        ("Incorrect", Verdict.INCORRECT),
        ("NOT_ATTEMPTED", Verdict.NOT_ATTEMPTED),
        ("not attempted", Verdict.NOT_ATTEMPTED),
        ("not-attempted", Verdict.NOT_ATTEMPTED),
        ("partially correct", None),
        ("D", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("column", ["grade", "verdict", "Label"])
def test_a_verdict_is_a_letter_or_a_word(tmp_path: Path, column: str, cell: str, verdict: Verdict | None) -> None:
    """Verdicts are whole letters or words in any case; another cell is none and is kept as the judge's words."""
    row = only_row(read(tmp_path, f"question,predicted,{column}\nWho?,Ann,{cell}\n"))
    assert row.verdict is verdict
    assert row.judge_reply == (cell or None)


def test_text_stays_text(tmp_path: Path) -> None:
    """`None`, `0042` and quoted line ends are text, and a byte-order mark belongs to nobody."""
    text = '\ufeffquestion,predicted\nA?,None\nB?,0042\n"C\nD?","line one\nline ""two"""\n'
    assert [row.predicted for row in read(tmp_path, text).rows] == ["None", "0042", 'line one\nline "two"']
    rows = read(
        tmp_path, '[{"question": "A?", "predicted": 42}, {"question": "B?", "predicted": ["x"]}]', "r.json"
    ).rows
    assert [row.predicted for row in rows] == ["42", '["x"]']


def test_the_same_rows_from_every_kind_of_file(tmp_path: Path) -> None:
    """CSV, TSV, JSON Lines and JSON, plain and gzipped, hold the same rows."""
    record = {"question": "Who?", "predicted": "Ann\u2028Bob"}
    texts = {
        "a.csv": "question,predicted\nWho?,Ann\u2028Bob\n",
        "a.tsv": "question\tpredicted\nWho?\tAnn\u2028Bob\n",
        "a.jsonl": json.dumps(record, ensure_ascii=False) + "\n",
        "a.json": json.dumps([record]),
        "b.json": json.dumps({"records": [record]}),
    }
    for name, text in texts.items():
        assert only_row(read(tmp_path, text, name)).predicted == "Ann\u2028Bob"
        packed = read(tmp_path, gzip.compress(text.encode()), f"{name}.gz")
        assert only_row(packed).predicted == "Ann\u2028Bob"
        assert packed.sha256 == hashlib.sha256((tmp_path / f"{name}.gz").read_bytes()).hexdigest()
        assert packed.name == f"{name}.gz"


def test_a_runaway_answer_is_read(tmp_path: Path) -> None:
    """A cell above csv's own limit is read, and the limit is as before."""
    limit = csv.field_size_limit()
    assert len(only_row(read(tmp_path, f"question,predicted\nWho?,{'x' * 200_000}\n")).predicted or "") == 200_000
    assert csv.field_size_limit() == limit


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    """A lone surrogate in JSON becomes U+FFFD."""
    assert (
        only_row(read(tmp_path, '[{"question": "Who?", "predicted": "half \\ud83c"}]', "a.json")).predicted
        == "half \ufffd"
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "predicted\nAnn\n", "no column of questions; found predicted; accepted are problem, question"),
        ("a.csv", "question,predicted\n", "there is no row in it"),
        ("a.csv", "", "there is no row in it"),
        ("a.csv", "question,predicted\nWho?,Ann\nWhen?\n", "row 2: 1 cells; the header has 2"),
        ("a.csv", "question,predicted\nWho?,Ann\n ,x\n", "row 2: the cell 'question' is empty"),
        ("a.csv", 'question,predicted\nWho?,"open\n', "a.csv, line 2: unexpected end of data"),
        ("a.csv", b"question,predicted\nWho?,caf\xe9\n", "a.csv, line 2: byte 0xe9 is no UTF-8"),
        ("a.csv.gz", "plain", "no whole gzip file"),
        ("a.json", "[1]", "row 1: wanted a JSON object, found int"),
        ("a.json", "3", "wanted a list of rows, found int"),
        ("a.json", "{", "no JSON"),
        ("a.json", '{"x": 1}', "found the keys x; wanted a list of rows, `samples` or `records`"),
        ("a.jsonl", '{"question": "A?"\n{"question": "B?", "predicted": "x"}\n', "line 1: no JSON"),
        ("a.jsonl", "[]\n", "line 1: wanted a JSON object, found list"),
        ("a.txt", "x", "the name ends in '.txt'; wanted .csv, .tsv, .jsonl, .json (each also .gz)"),
        ("a.json", '[{"id": "x", "repeat": "y", "question": "A?", "predicted": ""}]', "row 1: the cell 'repeat'"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    """What cannot be read is one line with file, place, what was found and what is accepted."""
    found = error_of(tmp_path, text, name)
    assert found.startswith(f"replay:{name}")
    assert message in found


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    """A file that is not there is an error with the place looked at and what is close."""
    (tmp_path / "answers.csv").touch()
    with pytest.raises(
        SpecError, match=re.escape(f"there is no file {tmp_path / 'answer.csv'}; did you mean answers.csv?")
    ):
        read_recording("answer.csv", tmp_path)
    with pytest.raises(SpecError, match="wanted replay:FILE"):
        read_recording("", tmp_path)


def test_one_of_several_systems_is_chosen(tmp_path: Path) -> None:
    """A file of several systems wants `#system`; of one system it needs none."""
    records = {"records": [{"question": "Who?", "target": "Ann", "prediction": "Bob", "grade": "INCORRECT"}]}
    two = json.dumps({"systems": {"one": records, "two": records}})
    assert error_of(tmp_path, two, "a.json") == (
        "replay:a.json holds several systems; choose one of replay:a.json#one, replay:a.json#two"
    )
    assert "holds no system 'x'" in error_of(tmp_path, two, "a.json", "a.json#x")
    chosen = read(tmp_path, two, "a.json", "a.json#two")
    assert (chosen.name, only_row(chosen).verdict) == ("a.json#two", Verdict.INCORRECT)
    assert read(tmp_path, json.dumps({"systems": {"one": records}}), "a.json").name == "a.json"
    assert "holds no systems" in error_of(tmp_path, json.dumps([{}]), "a.json", "a.json#x")
    assert "holds no systems" in error_of(tmp_path, "question,predicted\n", "a.csv", "a.csv#x")


def test_a_name_may_hold_the_mark(tmp_path: Path) -> None:
    """A file whose own name holds `#` is found."""
    assert read(tmp_path, "question,predicted\nWho?,Ann\n", "a#b.csv").name == "a#b.csv"


def test_real_files_of_several_systems(shared_data: Path) -> None:
    """The public runs on thirty questions are read, one system each."""
    runs = shared_data / "runs"
    recorded = read_recording("simpleqa_2026-07-04_13-07-09_n30.json#baseline_tavily", runs)
    assert len(recorded.rows) == 30
    assert sum(row.verdict is Verdict.CORRECT for row in recorded.rows) == 23
    with pytest.raises(SpecError, match=r"#baseline_tavily, .*#gptr_deep_agent"):
        read_recording("simpleqa_2026-07-04_13-07-09_n30.json", runs)


def test_the_example_report_is_read(shared_data: Path) -> None:
    """A Report in its binding form is read: each of its samples is a row."""
    recorded = read_recording("report.example.json", shared_data)
    assert [row.verdict for row in recorded.rows].count(None) == 2
    assert recorded.left_out == 0
    assert {row.repeat for row in recorded.rows} == {1}


def test_a_run_directory_is_read(tmp_path: Path) -> None:
    """Lines of all workers' files make one row an asking; the last line of a kind wins; torn lines are told."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "results-gw0.jsonl").write_text(
        run_line("error", error={"kind": "timeout", "message": "90 s"})
        + run_line("answer", predicted="Bob")
        + '{"v": 1, "kind": "ans\n'
        + run_line("answer", predicted="Ann", raw="<think>x</think>Ann", extra={"confidence": 0.5})
        + run_line("answer", "q0003", predicted="unjudged"),
        encoding="utf-8",
    )
    (run / "results-gw1.jsonl").write_text(
        run_line("verdict", verdict="correct", judge_reply="A")
        + run_line("error", "q0002", error={"kind": "empty", "message": "nothing"})
        + run_line("verdict", "q0003")[:20],
        encoding="utf-8",
    )
    recorded = read_recording("run", tmp_path)
    hashes = text_hash("Who?"), text_hash("Ann")
    assert recorded.rows == (
        RecordedRow(
            *hashes,
            "Ann",
            raw="<think>x</think>Ann",
            verdict=Verdict.CORRECT,
            judge_reply="A",
            extra={"confidence": 0.5},
            id="q0001",
        ),
        RecordedRow(*hashes, None, error="empty: nothing", id="q0002"),
        RecordedRow(*hashes, "unjudged", id="q0003"),
    )
    assert recorded.warnings == (
        "results-gw0.jsonl, line 3 is torn and was dropped",
        "results-gw1.jsonl, line 3 is torn and was dropped",
    )
    assert (recorded.name, recorded.sha256) == ("run", None)
    assert read_recording(".", run).name == "run"


def test_one_results_file_is_read(tmp_path: Path) -> None:
    """A file of a run directory may be named alone."""
    text = run_line("answer", predicted="Ann", repeat=2) + run_line("verdict", verdict="correct", repeat=2)
    row = only_row(read(tmp_path, text, "results.jsonl"))
    assert (row.predicted, row.verdict, row.repeat) == ("Ann", Verdict.CORRECT, 2)


def test_another_folder_is_no_run(tmp_path: Path) -> None:
    """A folder without result lines is refused."""
    (tmp_path / "other").mkdir()
    with pytest.raises(SpecError, match=r"replay:other: a folder without results\*\.jsonl is no run directory"):
        read_recording("other", tmp_path)


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    """The last line of a JSON Lines file may be torn: it is dropped and told."""
    recorded = read(tmp_path, '{"question": "A?", "predicted": "x"}\n{"question": "B', "a.jsonl")
    assert len(recorded.rows) == 1
    assert recorded.warnings == ("a.jsonl, line 2 is torn and was dropped",)
