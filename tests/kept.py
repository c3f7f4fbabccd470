"""Runs as sessions leave them behind: a dataset, and run directories written as letters, one a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.cli import main
from pytest_simpleqa.dataset import read_dataset, select
from pytest_simpleqa.records import Question, Usage
from pytest_simpleqa.reportbuild import build_report
from pytest_simpleqa.reportfile import write_report
from pytest_simpleqa.rundisk import create_run_dir, write_run_json
from pytest_simpleqa.runlog import RunLog

from .letters import results

STARTED = datetime(2026, 11, 30, 12, tzinfo=UTC)
TOPICS = ("Art", "Music", "")


def write_dataset(folder: Path, number: int, name: str = "small.csv") -> Path:
    """Write a dataset of `number` questions with topics."""
    rows = (f"Question {i}?,gold {i},{TOPICS[i % 3]}\n" for i in range(1, number + 1))
    (folder / name).write_text("problem,answer,topic\n" + "".join(rows), encoding="utf-8")
    return folder / name


def write_run(
    folder: Path,
    letters: str,
    *,
    shard: Sequence[int] = (1, 1),
    model: str = "new",
    said: Mapping[int, str] | None = None,
    report: bool = True,
    dataset: str = "small.csv",
    selected: int | None = None,
    repeats: int = 1,
    **content: Any,
) -> Path:
    """Write a run of the dataset in `folder` into its .simpleqa; `letters` are those of the whole, shards apart.

    `said` tells the answer of a row, by its number from 1.
    """
    whole = read_dataset(folder / dataset)
    answered = results(list(whole.questions), letters, repeats)
    population = select(whole, shard=(shard[0], shard[1]))
    options = {
        "limit_questions": 0,
        "max_samples": 4,
        "repeats": repeats,
        "parse": "strict",
        "include_topic_breakdown": True,
        "sample": 0,
        "seed": 0,
        "topics": [],
        "shard": list(shard),
    }
    run_dir = create_run_dir(folder / ".simpleqa", dataset, f"{model}{shard[0]}of{shard[1]}", STARTED)
    log = RunLog(run_dir / "results.jsonl")
    mine = {}
    for key, result in answered.items():
        question = next((each for each in population if each.id == key[0]), None)
        if question is not None:
            mine[key] = _written(log, question, result, (said or {}).get(int(key[0][1:])))
    log.close()
    known = {
        "v": 1,
        "dataset": {"name": whole.name, "sha256": whole.sha256, "questions": len(population)},
        "answer": {"spec": model, "provider": "mine", "model": model},
        "judge": {"spec": "rules", "provider": "rules", "model": "rules"},
        "answer_prompt": {"text": "{question}", "sha256": "1" * 64},
        "grade_prompt": {"text": "grade", "sha256": "2" * 64},
        "options": options,
        "versions": {"pytest_simpleqa": "0.1.0"},
        "started_at": STARTED.isoformat(),
        **content,
    }
    write_run_json(run_dir, known)
    if report:
        written = build_report(
            dataset=whole.name,
            model=model,
            judge="rules",
            started_at=STARTED,
            duration_s=2,
            population=population.questions,
            results=mine,
            selected=selected,
            repeats=repeats,
            max_samples=4,
            options=known["options"],
            provenance={
                "dataset_sha256": whole.sha256,
                "answer_prompt_sha256": "1" * 64,
                "grade_prompt_sha256": "2" * 64,
                "answer": {"provider": "mine", "model": model},
                "judge": {"provider": "rules", "model": "rules"},
                "versions": {"pytest_simpleqa": "0.1.0"},
            },
            other_parse=lambda _: None,
        )
        write_report(written, run_dir / "report.json")
    return run_dir


def _written(log: RunLog, question: Question, result: Any, said: str | None) -> Any:
    from dataclasses import replace

    spent = Usage(1, 10, int(question.id[1:]), 0.5, "mine-1") if result.predicted is not None else Usage(2)
    result = replace(result, answer_usage=spent, latency_s=0.5 if result.predicted is not None else None)
    if said is not None:
        result = replace(result, predicted=said)
    log.whole(question, result)
    return result


class Command:
    """The `simpleqa` command in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *args: object) -> tuple[int, str, str]:
        """Run it; return the exit status, what it said, and what it complained of."""
        status = main([str(arg) for arg in args])
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def error(self, *args: object) -> str:
        """Run it into a mistake; return the one line that tells of it."""
        status, out, err = self(*args)
        assert status == 4, out + err
        assert out == ""
        assert err.startswith("simpleqa: "), err
        assert err.count("\n") == 1, err
        return err.removeprefix("simpleqa: ").rstrip("\n")


def command(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command as typed in `folder`, on a screen of 80 columns."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    return Command(folder, capsys)
