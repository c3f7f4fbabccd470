"""Reading an earlier run from whatever it left behind."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from pytest_simpleqa.baseline import read_baseline
from pytest_simpleqa.errors import RunError
from pytest_simpleqa.pairing import pair
from pytest_simpleqa.records import Reply, Verdict
from pytest_simpleqa.reportfile import write_report
from pytest_simpleqa.rundisk import write_run_json
from pytest_simpleqa.runlog import RunLog

from .letters import questions, results, run


def make_run_dir(folder: Path, letters: str, repeats: int = 1) -> Path:
    """Write a run directory as a session leaves it behind, without a Report."""
    folder.mkdir()
    asked = questions(len(letters) // repeats)
    log = RunLog(folder / "results-gw0.jsonl")
    for question in asked:
        for (row_id, repeat), result in results(asked, letters, repeats).items():
            if row_id == question.id:
                assert result.repeat == repeat
                log.whole(question, result)
    log.close()
    write_run_json(
        folder,
        {"dataset": {"name": "small.csv"}, "answer": {"spec": "mine:small-1"}, "judge": {"spec": "rules"}},
    )
    return folder


def test_a_report_is_read_with_all_its_rows(tmp_path: Path) -> None:
    """Its verdicts cover all rows, whatever its samples keep."""
    report, rows = run("AABC?!", max_samples=2)
    write_report(report, tmp_path / "last month.json")
    found = read_baseline(tmp_path / "last month.json")
    assert (found.name, found.model, found.judge, found.dataset) == ("last month.json", "new", "rules", "small.csv")
    assert [row.status for row in found.rows] == [row.status for row in rows]
    assert len(pair(rows, found.rows).pairs) == 6


def test_a_run_directory_is_read(tmp_path: Path) -> None:
    """Its lines give verdicts, failures and answers; run.json gives the names."""
    found = read_baseline(make_run_dir(tmp_path / "run", "ABC?!"))
    assert (found.name, found.model, found.judge, found.dataset) == ("run", "mine:small-1", "rules", "small.csv")
    assert [row.status for row in found.rows] == ["correct", "incorrect", "not_attempted", "failed", "failed"]
    assert found.rows[1].predicted == "said B"
    _, rows = run("AAAAA")
    assert [each.before[0].status for each in pair(rows, found.rows).pairs] == [row.status for row in found.rows]


def test_what_stood_around_the_model_is_read(tmp_path: Path) -> None:
    """Wrappers come from the Report, or from run.json; a session's name for the run likewise."""
    around = [{"name": "rag:Sources", "sources": 3}]
    folder = make_run_dir(tmp_path / "run", "ABC")
    content = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    answer = {**content["answer"], "wrapped_by": around}
    write_run_json(folder, {**content, "answer": answer, "run": "test_x.py::test_facts"})
    write_report(run("AB", provenance={"answer": answer}, name="test_x.py::test_facts")[0], tmp_path / "report.json")
    for path in (folder, tmp_path / "report.json"):
        found = read_baseline(path)
        assert list(found.wrapped_by) == around
        assert (found.owner, found.dataset) == ("test_x.py::test_facts", "small.csv")


def test_lines_win_over_an_older_report(tmp_path: Path) -> None:
    """A run that was resumed and killed left a Report that is older than its lines."""
    folder = make_run_dir(tmp_path / "run", "AAA")
    write_report(run("A..")[0], folder / "report.json")
    assert [row.status for row in read_baseline(folder).rows] == ["correct"] * 3


def test_a_report_alone_stands_for_its_folder(tmp_path: Path) -> None:
    """A folder that kept its Report and no lines is read by the Report."""
    (tmp_path / "kept").mkdir()
    write_report(run("AB")[0], tmp_path / "kept" / "report.json")
    found = read_baseline(tmp_path / "kept")
    assert (found.name, len(found.rows)) == ("kept", 2)


def test_a_results_file_is_read(tmp_path: Path) -> None:
    """One results file is a baseline by itself, named by the run.json beside it."""
    found = read_baseline(make_run_dir(tmp_path / "run", "AB") / "results-gw0.jsonl")
    assert (found.name, found.model, len(found.rows)) == ("results-gw0.jsonl", "mine:small-1", 2)


def test_answers_without_a_verdict_yet_are_unfinished(tmp_path: Path) -> None:
    """An answer whose judge had not spoken when the run died is no failure."""
    folder = make_run_dir(tmp_path / "run", "A.")
    log = RunLog(folder / "results-gw1.jsonl")
    log.answer(questions(2)[1], 1, Reply("said something"), 0.1)
    log.close()
    assert [row.status for row in read_baseline(folder).rows] == ["correct", None]


def test_repeats_are_read(tmp_path: Path) -> None:
    """The repeats of a question stay its own."""
    found = read_baseline(make_run_dir(tmp_path / "run", "ABCA", repeats=2))
    (first, second) = pair(run("AAAA", repeats=2)[1], found.rows).pairs
    assert [row.status for row in first.before] == ["correct", "incorrect"]
    assert [row.status for row in second.before] == ["not_attempted", "correct"]


def test_a_recorded_table_is_read(tmp_path: Path) -> None:
    """Anybody's table of answers and verdicts is a baseline; a verdict that cannot be read is a failure."""
    path = tmp_path / "theirs.csv"
    path.write_text("problem,target,predicted_answer,grade\nWho?,X,X,A\nWhen?,1,2,B\nWhy?,z,z,D\n", encoding="utf-8")
    found = read_baseline("theirs.csv", tmp_path)
    assert (found.name, found.model) == ("theirs.csv", None)
    assert [row.status for row in found.rows] == ["correct", "incorrect", "failed"]


def test_real_runs_are_read(shared_data: Path) -> None:
    """The recorded runs hold the same questions in different order, and pair completely."""
    runs = shared_data / "runs"
    large = read_baseline(runs / "gpt-4o-2024-11-20.csv.gz")
    small = read_baseline(runs / "gpt-4o-mini-2024-07-18.csv.gz")
    assert Counter(row.verdict for row in large.rows) == {
        Verdict.CORRECT: 1345,
        Verdict.INCORRECT: 2904,
        Verdict.NOT_ATTEMPTED: 77,
    }
    assert [row.question_hash for row in large.rows] != [row.question_hash for row in small.rows]
    pairing = pair(large.rows, small.rows)
    assert (len(pairing.pairs), pairing.differences) == (4326, [])


def test_one_of_several_systems_is_read(shared_data: Path) -> None:
    """A file of several systems is read with the system's name behind `#`."""
    runs = shared_data / "runs"
    found = read_baseline("simpleqa_2026-07-04_13-07-09_n30.json#baseline_tavily", runs)
    assert Counter(str(row.status) for row in found.rows) == {"correct": 23, "incorrect": 5, "not_attempted": 2}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.json", None, "baseline gone.json: there is no file"),
        ("table.csv", "problem,target,predicted_answer\nWho?,X,X\n", "baseline table.csv: it holds no verdicts"),
        ("table.csv", "a,b\n1,2\n", "baseline table.csv: no column of predicted answers"),
        ("broken.json", "{", "baseline broken.json: no JSON"),
        ("report.json", json.dumps({"schema_version": 1}), "report.json: not a Report: the key "),
        ("notes.txt", "x", "baseline notes.txt: the name ends in"),
    ],
)
def test_what_is_no_baseline_is_told_in_a_line(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    """A file that is missing, broken or without verdicts is named with what is wrong."""
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(RunError) as caught:
        read_baseline(name, tmp_path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "replay:" not in str(caught.value).split("--answer-llm")[0]
