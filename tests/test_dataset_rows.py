"""Promises of `rows`: the rows of every file format, cut where the format cuts them."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from pytest_simpleqa.errors import DatasetError
from pytest_simpleqa.rows import Cells, read_rows

ROW = {"problem": "Who?", "answer": "Me"}


def rows_of(path: Path, data: bytes | str) -> list[tuple[int, Cells]]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(read_rows(path, path.name, {"problem"}).rows)


def error_of(path: Path, data: bytes | str) -> str:
    with pytest.raises(DatasetError) as caught:
        rows_of(path, data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("extension", "text"),
    [
        (".csv", "problem,answer\nWho?,Me\n"),
        (".tsv", "problem\tanswer\r\nWho?\tMe\r\n"),
        (".jsonl", json.dumps(ROW) + "\n"),
        (".json", json.dumps([ROW])),
        (".json", json.dumps({"version": 1, "data": [ROW]})),
        (".json", json.dumps({"samples": [ROW], "gates": [{"metric": "accuracy"}], "verdicts": [["a", "b"]]})),
    ],
)
def test_each_format_plain_packed_and_with_a_mark(tmp_path: Path, extension: str, text: str) -> None:
    """Every format gives the same row: plain, with a byte-order mark, gzipped, and gzipped in name only."""
    mark = b"\xef\xbb\xbf" + text.encode()
    assert rows_of(tmp_path / f"a{extension}", text) == [(1, ROW)]
    assert rows_of(tmp_path / f"b{extension.upper()}", mark) == [(1, ROW)]
    assert rows_of(tmp_path / f"c{extension}.gz", gzip.compress(mark)) == [(1, ROW)]
    assert rows_of(tmp_path / f"d{extension}.gz", text) == [(1, ROW)]


def test_an_unknown_format_lists_the_known(tmp_path: Path) -> None:
    """A file with another extension is refused with the list of those that can be read."""
    message = error_of(tmp_path / "a.parquet", "")
    assert message == (
        "a.parquet: the format '.parquet' is unknown; .csv, .tsv, .jsonl, .json can be read, each also with .gz"
    )


def test_csv_keeps_newlines_and_quotes(tmp_path: Path) -> None:
    """A quoted cell keeps its newline, quotes and delimiters, behind a byte-order mark too."""
    text = '\ufeffproblem,answer\n"line one\nline ""two""","a, b"\n'
    assert rows_of(tmp_path / "a.csv", text) == [(1, {"problem": 'line one\nline "two"', "answer": "a, b"})]


def test_csv_cells_may_be_huge_and_odd(tmp_path: Path) -> None:
    """A cell beyond the csv module's usual limit and one with a NUL are read, and the limit is never lowered."""
    before = csv.field_size_limit()
    huge = "x" * 200_000
    assert rows_of(tmp_path / "a.csv", f"problem,answer\n{huge},\0\u2028\n")[0][1] == {
        "problem": huge,
        "answer": "\0\u2028",
    }
    assert csv.field_size_limit() >= before


@pytest.mark.parametrize(("row", "found"), [("Who?", "1 cell"), ("Who?,Me,too", "3 cells")])
def test_csv_with_another_number_of_cells(tmp_path: Path, row: str, found: str) -> None:
    """A row with too few or too many cells names file, row and both counts."""
    message = error_of(tmp_path / "a.csv", f"problem,answer\nWhat?,It\n\n{row}\n")
    assert message == f"a.csv, row 2: {found} found, 2 wanted as in the header"


@pytest.mark.parametrize("row", ['"Who?" he said,Me', '"never closed,Me'])
def test_csv_with_stray_quotes(tmp_path: Path, row: str) -> None:
    """A stray quote is an error, not a cell that loses its quotes or swallows the rest of the file."""
    assert error_of(tmp_path / "a.csv", f"problem,answer\nWhat?,It\n{row}\n").startswith(
        "a.csv, row 2 (ends in line 3)"
    )


def test_csv_with_a_column_twice(tmp_path: Path) -> None:
    """Two columns of one name are an error: one of them would be lost."""
    assert error_of(tmp_path / "a.csv", "problem,answer,answer\na,b,c\n") == (
        "a.csv: the column 'answer' stands twice in the header"
    )


def test_jsonl_is_cut_at_newlines_only(tmp_path: Path) -> None:
    """U+2028, U+2029 and U+0085 inside a text do not end a record; blank lines count as lines."""
    text = json.dumps({"problem": "a\u2028b\u2029c\x85d"}, ensure_ascii=False)
    assert rows_of(tmp_path / "a.jsonl", f"\n{text}\r\n \n{text}") == [
        (2, {"problem": "a\u2028b\u2029c\x85d"}),
        (4, {"problem": "a\u2028b\u2029c\x85d"}),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"a": 1}\n[1]\n', "a.jsonl, line 2: an array found, an object wanted"),
        ("a.jsonl", "{}\n{'a': 1}", "a.jsonl, line 2: not JSON (Expecting property name enclosed in double quotes"),
        ("a.jsonl", "[" * 200_000, "a.jsonl, line 1: the JSON is nested too deeply"),
        ("a.jsonl", "1" * 5_000, "a.jsonl, line 1: the JSON holds a number with too many digits"),
        ("a.json", "[{}, null]", "a.json, row 2: null found, an object wanted"),
        ("a.json", '"text"', "a.json: a text found, an array of objects wanted"),
        ("a.json", "{}\n{}", "a.json: not JSON (Extra data at line 2, column 1); a file with one object a line"),
        ("a.json", '{"a": 1}', "a.json: an object with 0 lists of questions found, an array of objects or an object"),
        (
            "a.json",
            '{"a": [{"Problem": 1}], "b": [{"problem": 2}]}',
            "a.json: an object with 2 lists of questions found, an array of objects or an object with one such list",
        ),
    ],
)
def test_json_that_holds_no_rows(tmp_path: Path, name: str, text: str, message: str) -> None:
    """JSON that is broken or of another shape is one line with the place, what was found and what was wanted."""
    assert error_of(tmp_path / name, text).startswith(message)


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    """A byte that cannot be decoded is named with its line, never replaced."""
    message = error_of(tmp_path / "a.csv", b"\xef\xbb\xbfproblem,answer\nWho?,Caf\xe9\n")
    assert message == "a.csv, line 2: the byte 0xe9 is not UTF-8; save the file as UTF-8"


def test_gzip_that_is_cut_off(tmp_path: Path) -> None:
    """A gzip file that is damaged or cut off is an error in one line."""
    packed = gzip.compress(b"problem,answer\nWho?,Me\n" * 100)
    for data in (packed[:-12], packed[:20] + b"\xff" * 40):
        assert error_of(tmp_path / "a.csv.gz", data).startswith("a.csv.gz: the gzip data are damaged")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A path that cannot be opened is an error in one line."""
    with pytest.raises(DatasetError, match=r"^gone.csv: the file cannot be read \(No such file"):
        read_rows(tmp_path / "gone.csv", "gone.csv", {"problem"})
