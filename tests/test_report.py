"""The Report: written and read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import RunError
from pytest_simpleqa.records import Verdict
from pytest_simpleqa.report import Report
from pytest_simpleqa.reportfile import read_report, report_text, write_report

from .example_run import QUESTIONS, by_key, graded, make

# -- the contract ---------------------------------------------------------------------------------


def test_example_goes_through_unchanged(shared_data: Path) -> None:
    """The example Report is read and written back byte for byte."""
    path = shared_data / "report.example.json"
    assert report_text(read_report(path)).strip() == path.read_text("utf-8").strip()


def test_recorded_rows_stand_where_there_are_any() -> None:
    """A Report of recorded rows says how many, reads back equal, and has no rates; others have no such key."""
    results = by_key(*(graded(question, Verdict.RECORDED, extra={"choice": "A"}) for question in QUESTIONS))
    report = make(results)
    document = report.to_json()
    assert (document["recorded"], document["accuracy"], document["coverage"]) == (len(QUESTIONS), None, None)
    assert document["verdicts"][0][3] == document["samples"][0]["verdict"] == "recorded"
    assert Report.from_json(json.loads(report_text(report))) == report
    assert "recorded" not in make().to_json()


def test_report_is_read_by_attributes() -> None:
    """A library user reads rates, topics and samples as attributes."""
    report = make()
    assert (report.n, report.accuracy, report.attempted_accuracy, report.coverage) == (5, 0.2, 0.5, 0.6)
    assert report.per_topic is not None
    assert report.per_topic["Art"].accuracy == 1.0
    assert report.per_topic["Music"].attempted_accuracy is None
    assert [sample.predicted for sample in report.samples[:2]] == ["Leonardo da Vinci", "Sydney"]
    assert report.duration_s == 91.234


def test_report_survives_its_json() -> None:
    """A Report read back from its JSON gives the same JSON."""
    report = make(provenance={"dataset_sha256": "00"}, comparison={"baseline": "old.json"}, resumed=2)
    assert Report.from_json(report.to_json()).to_json() == report.to_json()


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


# -- writing --------------------------------------------------------------------------------------


def test_any_text_is_written_and_read_back(tmp_path: Path) -> None:
    """Half a surrogate pair becomes U+FFFD, everything else comes back as it was, in valid UTF-8."""
    text = "half \ud83c pair, café, 日本, \x00\x1b[31m \u2028 </script> 🎉"
    path = tmp_path / "report.json"
    write_report(make(by_key(graded(QUESTIONS[0], Verdict.CORRECT, text))), path)
    assert read_report(path).samples[0].predicted == text.replace("\ud83c", "\ufffd")
    assert "café, 日本" in path.read_bytes().decode("utf-8")


def test_halves_that_belong_together_are_joined(tmp_path: Path) -> None:
    """Two halves of a pair side by side are the character that they make."""
    path = tmp_path / "report.json"
    write_report(make(by_key(graded(QUESTIONS[0], Verdict.CORRECT, "\ud83c\udf89"))), path)
    assert read_report(path).samples[0].predicted == "🎉"


def test_foreign_values_never_cost_the_report() -> None:
    """What JSON has no word for is written as null or as its text; the document stays strict."""
    strange = {"temperature": float("nan"), "path": Path("x"), 1: {"a"}, "deep": [float("inf"), True, 2]}
    document = json.loads(report_text(make(options=strange)), parse_constant=pytest.fail)
    assert document["options"] == {"temperature": None, "path": "x", "1": ["a"], "deep": [None, True, 2]}


def test_missing_folders_are_made(tmp_path: Path) -> None:
    """The Report's folder is made where it is missing, and nothing but the Report lies in it."""
    path = tmp_path / "a" / "b" / "report.json"
    write_report(make(), path)
    assert names(path.parent) == ["report.json"]


def test_failed_write_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up while writing leaves the old Report, no litter, and one line."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "fsync", full)  # patched: no portable way to fill a disk
    with pytest.raises(RunError, match=r"report\.json: cannot write the Report: No space left on device$"):
        write_report(make(), path)
    assert path.read_text(encoding="utf-8") == "old"
    assert names(tmp_path) == ["report.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_devices_are_written_to_not_replaced() -> None:
    """A device is written in place, and what it says is told in one line."""
    write_report(make(), Path(os.devnull))
    with pytest.raises(RunError, match="No space left"):
        write_report(make(), Path("/dev/full"))
    assert not Path("/dev/full").is_file()


def test_links_keep_pointing(tmp_path: Path) -> None:
    """A link to a Report stays a link; the file behind it is replaced."""
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    write_report(make(), link)
    assert link.is_symlink()
    assert read_report(target).n == 5


def test_unusable_place_is_one_line(tmp_path: Path) -> None:
    """A folder in the place of the Report, or a file in the place of its folder, is one line."""
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "report.json"):
        with pytest.raises(RunError, match="cannot write the Report") as caught:
            write_report(make(), path)
        assert "\n" not in str(caught.value)


# -- reading --------------------------------------------------------------------------------------


def without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.__delitem__(key)


def having(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("schema_version"), "'schema_version' is missing"),
        (having(schema_version=2), "'schema_version' is 2; this pytest-simpleqa reads 1"),
        (without("correct"), "'correct' is missing"),
        (having(n=6), r"\[1, 1, 1, 1, 1\] and do not add up to 'n' 6"),
        (having(errors=-1, n=3), "do not add up"),
        (having(n=True), "'n' is True, which is not a whole number"),
        (having(population=4), "'population' 4 does not hold"),
        (having(started_at="yesterday"), "'started_at' cannot be read"),
        (having(samples=[{"id": "q1"}]), "'samples' cannot be read: KeyError: 'question'"),
        (having(verdicts=[["a", "b", 1, "right"]]), "'verdicts' cannot be read"),
        (having(per_topic={"Art": 3}), "found int where an object was wanted"),
        (having(judge="x" * 10, model=["long"] * 20), "'model' is .{39}…, which is not a text"),
    ],
)
def test_wrong_documents_are_told_in_one_line(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    """What is no Report is refused in one line with the file, the key and the value."""
    document = make().to_json()
    change(document)
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(RunError, match=message) as caught:
        read_report(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "strict JSON"),
        (b"[]", "found list where an object was wanted"),
        (b"null", "an object was wanted"),
        (b'{"n": NaN}', "NaN is no JSON number"),
        (b"\xff\xfe", "strict JSON in UTF-8"),
        (b'{"n": 1', "strict JSON"),
        (b"[" * 100_000, "strict JSON"),
    ],
)
def test_broken_files_are_told_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    """A file that is cut, empty or not JSON is refused in one line."""
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(RunError, match=message):
        read_report(path)


def test_missing_file_is_told_in_one_line(tmp_path: Path) -> None:
    """A Report that is not there is named."""
    with pytest.raises(RunError, match=r"gone\.json: cannot read the Report: No such file"):
        read_report(tmp_path / "gone.json")


def test_gates_are_added_afterwards() -> None:
    """The decision is put into a finished Report by replacing fields."""
    decided = replace(make(), gates=({"expression": "accuracy >= 0.1", "verdict": "pass"},), exit_status=0)
    assert decided.to_json()["gates"][0]["verdict"] == "pass"
    assert decided.accuracy == 0.2
