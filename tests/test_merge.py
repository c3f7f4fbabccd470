"""Shards of one run become one run again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.calibration import calibration
from pytest_simpleqa.errors import RunError
from pytest_simpleqa.mergereports import NamedReport, merge_reports
from pytest_simpleqa.reportfile import read_report, write_report

from .kept import Command, command, write_dataset, write_run
from .letters import run
from .quiz import Quiz

LETTERS = "ABCA?!AB"


@pytest.fixture
def simpleqa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    write_dataset(tmp_path, len(LETTERS))
    return command(tmp_path, monkeypatch, capsys)


def shards(folder: Path, parts: int = 3, letters: str = LETTERS, **values: Any) -> list[Path]:
    """Write a run in parts."""
    return [write_run(folder, letters, shard=(part, parts), **values) for part in range(1, parts + 1)]


def numbers(path: Path, *without: str) -> str:
    """Return a Report's text without what differs between any two runs."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for key in ("started_at", "duration_ms", "exit_status", *without):
        del content[key]
    for sample in content["samples"]:
        del sample["latency_s"]
    return json.dumps(content, indent=1)


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_shards_are_the_whole_run(simpleqa: Command, tmp_path: Path, parts: int, repeats: int) -> None:
    """Merged run directories, named in any order, give the unsharded run's Report byte for byte."""
    letters = (LETTERS * repeats)[: len(LETTERS) * repeats]
    whole = write_run(tmp_path, letters, repeats=repeats)
    simpleqa("report", whole)  # built from lines, as the merged one is
    found = shards(tmp_path, parts, letters, repeats=repeats)
    status, _, err = simpleqa("merge", *reversed(found), "--out", "merged.json")
    assert (status, err) == (0, "")
    assert numbers(tmp_path / "merged.json") == numbers(whole / "report.json")


def test_a_merged_folder_is_a_run(simpleqa: Command, tmp_path: Path) -> None:
    """Written into a folder, the merged run is reported and compared as any other."""
    whole = write_run(tmp_path, LETTERS)
    simpleqa("report", whole)
    simpleqa("merge", *shards(tmp_path), "--out", "merged")
    simpleqa("report", "merged")
    assert numbers(tmp_path / "merged" / "report.json") == numbers(whole / "report.json")
    assert "right answers: 0 won, 0 lost" in simpleqa("compare", whole, "merged")[1]
    assert "there is something already" in simpleqa.error("merge", *shards(tmp_path), "--out", "merged")


def test_sessions_shards_are_the_whole_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What three pytest sessions asked is, merged, what one session asks."""
    quiz = Quiz(pytester, "ABCA?!AB")
    parts = [quiz.run(f"--simpleqa-shard={part}/3").run_dir for part in (1, 2, 3)]
    whole = quiz.run().run_dir
    assert whole is not None
    capsys.readouterr()
    simpleqa = command(pytester.path, monkeypatch, capsys)
    assert simpleqa("merge", *parts, "--out", "merged.json")[0] == 0
    assert numbers(pytester.path / "merged.json", "usage") == numbers(whole / "report.json", "usage")


def test_a_missing_shard_leaves_the_run_incomplete(simpleqa: Command, tmp_path: Path) -> None:
    """What the missing machine should have asked is without a result; no gate passes on the rest."""
    first, _, third = shards(tmp_path)
    status, out, err = simpleqa("merge", first, third, "--gate", "accuracy >= 0.1")
    assert status == 6
    assert "incomplete: 5 of 8 questions have a result" in out
    assert err == "simpleqa: note: shard 2/3 is missing: 3 questions\n"


def test_a_killed_shard_counts_for_what_it_has(simpleqa: Command, tmp_path: Path) -> None:
    """A shard without a Report is read from its lines."""
    first, second, _ = shards(tmp_path)
    third = write_run(tmp_path, "ABCA?.AB", shard=(3, 3), report=False)
    assert "incomplete: 7 of 8 questions" in simpleqa("merge", first, second, third)[1]


def test_questions_that_a_shard_left_out_are_not_selected(simpleqa: Command, tmp_path: Path) -> None:
    """What pytest's own selection left out of a shard is left out of the whole."""
    found = shards(tmp_path, 2)[:1]
    found.append(write_run(tmp_path, "A.CA?!AB", shard=(2, 2), selected=3))
    status, out, _ = simpleqa("merge", *found, "--gate", "accuracy >= 0.1")
    assert status == 6
    assert "7 of 8 questions have a result, 1 not selected" in out


def test_overlapping_rows_must_agree(simpleqa: Command, tmp_path: Path) -> None:
    """A row in two shards counts once where both say the same, and is refused where they do not."""
    found = shards(tmp_path, 2)
    whole = write_run(tmp_path, LETTERS)
    assert re.search("all questions +8 ", simpleqa("merge", *found, whole, found[0])[1])
    other = write_run(tmp_path, "BBCA?!AB", model="new", shard=(1, 4))
    message = simpleqa.error("merge", *found, other)
    assert "disagree on q0001: correct, incorrect" in message
    said = write_run(tmp_path, LETTERS, model="new", shard=(1, 8), said={1: "another text"})
    assert "disagree on q0001: another answer" in simpleqa.error("merge", *found, said)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model": "other"}, 'answer spec: "new" there, "other" here'),
        ({"grade_prompt": {"text": "else", "sha256": "3" * 64}}, 'grade_prompt text: "grade" there, "else" here'),
        ({"judge": {"spec": "rules", "params": {"temperature": 1}}}, "is no shard of the run of"),
        ({"dataset": "longer.csv"}, 'dataset name: "small.csv" there, "longer.csv" here'),
    ],
)
def test_other_runs_are_refused(simpleqa: Command, tmp_path: Path, values: dict[str, Any], said: str) -> None:
    """Another dataset, model, prompt or parameter makes no shard; the difference is named."""
    write_dataset(tmp_path, len(LETTERS), "longer.csv")
    first = write_run(tmp_path, LETTERS, shard=(1, 2))
    second = write_run(tmp_path, LETTERS, shard=(2, 2), **values)
    assert said in simpleqa.error("merge", first, second)


def test_another_selection_is_refused(simpleqa: Command, tmp_path: Path) -> None:
    """Shards of the first 4 questions and of all do not make one population."""
    first, second = shards(tmp_path, 2)
    content = json.loads((second / "run.json").read_text(encoding="utf-8"))
    content["options"]["limit_questions"] = 4
    (second / "run.json").write_text(json.dumps(content), encoding="utf-8")
    assert "limit_questions: 0 there, 4 here" in simpleqa.error("merge", first, second)


def test_reports_alone_are_merged(simpleqa: Command, tmp_path: Path) -> None:
    """Where only Reports were kept, all numbers but the latencies are still those of the whole run."""
    whole = write_run(tmp_path, LETTERS)
    simpleqa("report", whole)
    names = []
    for number, folder in enumerate(shards(tmp_path)):
        simpleqa("report", folder)
        names.append(f"part{number}.json")
        (folder / "report.json").rename(tmp_path / names[-1])
    status, _, err = simpleqa("merge", *reversed(names), "--out", "merged.json")
    assert status == 0
    assert "percentiles of the latencies are not known" in err
    assert numbers(tmp_path / "merged.json", "usage") == numbers(whole / "report.json", "usage")


def test_a_calibration_that_no_longer_follows_is_told_of(simpleqa: Command, tmp_path: Path) -> None:
    """Where Reports with a calibration keep only some of their rows, the merged one has none, and says so."""
    for part, letters in ((1, "AAB"), (2, "BBA")):
        report, _ = run(letters, max_samples=1, options={"shard": [part, 2], "max_samples": 1})
        write_report(replace(report, calibration=calibration([], asked=True)), tmp_path / f"part{part}.json")
    status, _, err = simpleqa("merge", "part1.json", "part2.json", "--out", "merged.json")
    assert status == 0, err
    assert "so not known either: the calibration\n" in err
    assert "calibration" not in json.loads((tmp_path / "merged.json").read_text(encoding="utf-8"))


def test_intervals_by_topic_that_no_longer_follow_are_told_of(simpleqa: Command, tmp_path: Path) -> None:
    """Where Reports of repeated questions keep only some of their rows, a merge says what it cannot know."""
    for part, letters in ((1, "AABBAB"), (2, "BBABBB")):
        report, _ = run(letters, repeats=2, max_samples=1, options={"shard": [part, 2], "repeats": 2, "max_samples": 1})
        write_report(report, tmp_path / f"part{part}.json")
    status, _, err = simpleqa("merge", "part1.json", "part2.json", "--out", "merged.json")
    assert status == 0, err
    assert "so not known either: the intervals by topic and answer type, the ids beside" in err
    merged = json.loads((tmp_path / "merged.json").read_text(encoding="utf-8"))
    assert "intervals" not in merged["per_topic"]["(unspecified)"]
    assert merged["repeats"]["questions"] == 6


def test_without_the_dataset_reports_are_merged(simpleqa: Command, tmp_path: Path) -> None:
    """Run directories whose dataset is gone are merged by their Reports; without these it is asked for."""
    found = shards(tmp_path)
    (tmp_path / "small.csv").unlink()
    assert re.search("all questions +8 ", simpleqa("merge", *found)[1])
    for folder in found:
        (folder / "report.json").unlink()
    assert "small.csv, which was asked, is not here; add --dataset=FILE" in simpleqa.error("merge", *found)


def test_reports_must_be_all_shards_of_one_run(simpleqa: Command, tmp_path: Path) -> None:
    """Of Reports alone a missing shard cannot be told from none, so it is refused; likewise a stranger."""
    first, second, third = (
        NamedReport(str(number), read_report(folder / "report.json"))
        for number, folder in enumerate(shards(tmp_path), start=1)
    )
    stranger = read_report(write_run(tmp_path, LETTERS, shard=(2, 3), model="other") / "report.json")
    changed = read_report(write_run(tmp_path, "A" * 8, shard=(2, 3)) / "report.json")
    with pytest.raises(RunError, match="missing are the shards 2/3"):
        merge_reports([first, third])
    with pytest.raises(RunError, match='model: "new" there, "other" here'):
        merge_reports([first, NamedReport("x", stranger), third])
    with pytest.raises(RunError, match=r"2 and x disagree on question [0-9a-f]{16}: incorrect, correct"):
        merge_reports([first, second, NamedReport("x", changed), third])


def test_a_folder_that_is_no_run_is_told(simpleqa: Command, tmp_path: Path) -> None:
    """What holds neither lines nor a Report is no shard."""
    (tmp_path / "empty").mkdir()
    assert "it holds neither results*.jsonl nor report.json" in simpleqa.error("merge", "empty")
