"""The Report: built, written, read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import RunError
from pytest_simpleqa.records import Failure, Question, QuestionResult, Usage, Verdict
from pytest_simpleqa.report import UNSPECIFIED, Report, TopicReport
from pytest_simpleqa.reportbuild import build_report
from pytest_simpleqa.reportfile import read_report, report_text, write_report

STARTED = datetime(2026, 11, 30, 12, tzinfo=UTC)
Results = dict[tuple[str, int], QuestionResult]

QUESTIONS = [
    Question("q0001", "Who painted the Mona Lisa?", "Leonardo da Vinci", "Art", "Person"),
    Question("q0002", "What is the capital of Australia?", "Canberra", "Geography", "Place"),
    Question("q0003", "In which year did the Berlin Wall fall?", "1989", "History", "Date"),
    Question("q0004", "How many strings does a violin have?", "4", "Music", "Number"),
    Question("q0005", "How many players of one team are on a football pitch?", "11", "Sports", "Number"),
]


def graded(question: Question, verdict: Verdict | None, predicted: str | None = "x", **values: Any) -> QuestionResult:
    return QuestionResult.for_question(question, verdict=verdict, predicted=predicted, **values)


def by_key(*results: QuestionResult) -> Results:
    return {(result.id, result.repeat): result for result in results}


def example_results() -> Results:
    used = {"answer_usage": Usage(1, 16, 8, 1.1), "judge_usage": Usage(1, 820, 2, 0.4), "latency_s": 1.2}
    slow = {**used, "answer_usage": Usage(1, 16, 8, 1.4), "judge_usage": Usage(2, 1640, 3, 0.5)}
    unread = Failure("judge_unreadable", "the judge gave no verdict twice: 'Hard to say.'")
    late = Failure("timeout", "no answer within 90 s (3 tries)")
    one, two, three, four, five = QUESTIONS
    return by_key(
        graded(five, None, None, error=late, answer_usage=Usage(3, 16, 8)),
        graded(four, None, "Four.", judge_reply="Hard to say.", error=unread, **slow),
        graded(three, Verdict.NOT_ATTEMPTED, "I am not sure.", judge_reply="C", **used),
        graded(two, Verdict.INCORRECT, "Sydney", judge_reply="B", **used),
        graded(one, Verdict.CORRECT, "Leonardo da Vinci", judge_reply="A", **used),
    )


def first_letter(reply: str) -> Verdict:
    words = {"A": Verdict.CORRECT, "B": Verdict.INCORRECT}
    return words.get(reply[:1], Verdict.NOT_ATTEMPTED)


def make(results: Results | None = None, **values: Any) -> Report:
    given: dict[str, Any] = {
        "dataset": "example.csv",
        "model": "mine:small-1",
        "judge": "mine:large-1",
        "started_at": STARTED,
        "duration_s": 91.234,
        "population": QUESTIONS,
        "results": example_results() if results is None else results,
    }
    return build_report(**{**given, **values})


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


def test_example_is_what_its_rows_build(shared_data: Path) -> None:
    """The rows of the example Report build the example Report: every key, in its order."""
    example = json.loads((shared_data / "report.example.json").read_text("utf-8"))
    known = {key: value for key, value in example["provenance"].items() if key != "paper_parse_differs"}
    report = make(
        options=example["options"],
        provenance=known,
        other_parse=first_letter,
        gates=example["gates"],
        exit_status=6,
    )
    assert json.dumps(report.to_json()) == json.dumps(example)


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


# -- building -------------------------------------------------------------------------------------


def test_complete_needs_every_row() -> None:
    """A Report is complete when population, selection and results are the same rows."""
    first = by_key(graded(QUESTIONS[0], Verdict.CORRECT))
    assert make().complete
    left_out = make(first, selected=1)
    assert (left_out.population, left_out.selected, left_out.n, left_out.complete) == (5, 1, 1, False)
    stopped = make(first, selected=3)
    assert (stopped.population, stopped.selected, stopped.n, stopped.complete) == (5, 3, 1, False)


def test_rows_ahead_of_a_stop_count() -> None:
    """Results beyond the selection widen it instead of breaking the sum."""
    report = make(selected=2)
    assert (report.selected, report.n) == (5, 5)


def test_nothing_measured_is_still_a_report() -> None:
    """A run without a result has rates of null, no topics, and a verdict of null for every row."""
    document = make({}).to_json()
    assert (document["n"], document["accuracy"], document["f_score"]) == (0, None, None)
    assert document["intervals"]["accuracy"] is None
    assert document["per_topic"] == {}
    assert document["usage"]["answer"] == {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "latency_s": None}
    assert [row[3] for row in document["verdicts"]] == [None] * 5
    json.dumps(document, allow_nan=False)


def test_rows_without_a_topic_come_last() -> None:
    """Groups are sorted by name; rows without one are `(unspecified)`, behind all others."""
    rows = [Question(f"q{i}", f"{i}?", "x", topic) for i, topic in enumerate(["Zoo", None, "Art", "电影"])]
    report = make(by_key(*(graded(row, Verdict.CORRECT) for row in rows)), population=rows)
    assert report.per_topic is not None
    assert list(report.per_topic) == ["Art", "Zoo", "电影", UNSPECIFIED]
    assert report.per_answer_type == {UNSPECIFIED: TopicReport(n=4, correct=4)}


def test_breakdown_can_be_left_out() -> None:
    """Without the breakdown both groupings are null."""
    document = make(topic_breakdown=False).to_json()
    assert (document["per_topic"], document["per_answer_type"]) == (None, None)


@pytest.mark.parametrize(("kept", "ids"), [(0, []), (2, ["q0001", "q0002"]), (-1, [q.id for q in QUESTIONS])])
def test_samples_follow_the_dataset(kept: int, ids: list[str]) -> None:
    """Samples stand in dataset order whatever order results came in; -1 keeps all, 0 none; verdicts stay whole."""
    report = make(max_samples=kept)
    assert [sample.id for sample in report.samples] == ids
    assert len(report.verdicts) == 5


def test_repeats_are_rows() -> None:
    """A question asked twice is two rows, side by side."""
    one, two = QUESTIONS[:2]
    results = by_key(graded(two, Verdict.INCORRECT, repeat=1), graded(one, Verdict.CORRECT, repeat=2))
    report = make(results, population=[one, two], repeats=2)
    assert (report.population, report.n, report.complete) == (4, 2, False)
    assert [(row[2], row[3]) for row in report.verdicts] == [(1, None), (2, "correct"), (1, "incorrect"), (2, None)]


def test_foreign_results_are_left_out() -> None:
    """A result of no row of the population is not counted."""
    stray = graded(Question("q9999", "?", "x"), Verdict.CORRECT)
    assert make(by_key(stray)).n == 0


def test_latencies_are_values_that_were_measured() -> None:
    """Percentiles are by nearest rank, over the requests that have a latency."""
    rows = [Question(f"q{i}", f"{i}?", "x") for i in range(21)]
    results = [graded(q, Verdict.CORRECT, answer_usage=Usage(2, 3, 4, float(i) or None)) for i, q in enumerate(rows)]
    usage = make(by_key(*results), population=rows).usage
    assert usage["answer"] == {
        "calls": 42,
        "prompt_tokens": 63,
        "completion_tokens": 84,
        "latency_s": {"p50": 10.0, "p95": 19.0, "max": 20.0},
    }
    assert usage["judge"]["latency_s"] is None


def test_returned_model_names_are_kept() -> None:
    """The names that services gave back stand beside the ones that were asked for."""
    results = by_key(graded(QUESTIONS[0], Verdict.CORRECT, answer_usage=Usage(1, model="small-1-0613")))
    report = make(results, provenance={"answer": {"model": "small-1"}})
    assert report.provenance["answer"] == {"model": "small-1", "returned_models": ["small-1-0613"]}
    assert report.provenance["paper_parse_differs"] is None


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
