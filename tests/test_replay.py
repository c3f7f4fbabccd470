"""Promises of `models/replay.py`: which recorded row belongs to which question."""

from __future__ import annotations

import asyncio
import csv
import gzip
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError, SpecError
from pytest_simpleqa.models.protocol import Answerer
from pytest_simpleqa.models.replay import Recording, ReplayAnswerer
from pytest_simpleqa.records import Failure, Question, QuestionResult, Reply, Verdict
from pytest_simpleqa.runlog import RunLog

WHO = Question("q0001", "Who?", "Ann")
WHEN = Question("q0002", "When?", "1950")


def load(tmp_path: Path, content: str | Sequence[Any] | dict[str, Any], name: str = "") -> Recording:
    """Load a recording from a table's text, or from JSON values."""
    name = name or ("runs.csv" if isinstance(content, str) else "runs.json")
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / name).write_text(text, encoding="utf-8")
    return Recording.load(name, tmp_path)


def answer(recording: Recording, question: Question, repeat: int = 1) -> Reply:
    return asyncio.run(ReplayAnswerer(recording).answer(question, repeat))


def missing(recording: Recording, question: Question, repeat: int = 1) -> str:
    with pytest.raises(ModelError) as caught:
        answer(recording, question, repeat)
    assert caught.value.kind == "missing"
    return caught.value.message


def test_an_answer_costs_nothing(tmp_path: Path) -> None:
    """A recorded answer comes back with no call, and without a verdict where none was recorded."""
    recording = load(tmp_path, "question,answer,predicted\nWho?,Ann,It was Ann.\n")
    assert answer(recording, WHO) == Reply("It was Ann.", calls=0)
    assert recording.recorded_verdict(WHO) is None


def test_the_answerer_follows_the_protocol(tmp_path: Path) -> None:
    """A recording is no service, sets no bound, and describes itself without a path."""
    answerer = ReplayAnswerer(load(tmp_path, "question,predicted\nWho?,Ann\n"))
    assert isinstance(answerer, Answerer)
    assert (answerer.is_service, answerer.max_in_flight) == (False, None)
    described = answerer.describe()
    assert (described["provider"], described["model"], described["rows"]) == ("replay", "runs.csv", 1)
    assert str(tmp_path) not in str(described)
    asyncio.run(answerer.close())


def test_a_question_without_an_answer_is_missing(tmp_path: Path) -> None:
    """A question that the file does not know is an error that names the file, never an empty answer."""
    recording = load(tmp_path, "question,predicted\nWho?,Ann\n")
    assert missing(recording, WHEN) == "runs.csv has no answer to this question"


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    """An empty cell is an empty answer; JSON's null is none."""
    assert answer(load(tmp_path, "question,predicted\nWho?,\n"), WHO).text == ""
    recording = load(tmp_path, [{"question": "Who?", "predicted": None}])
    assert missing(recording, WHO) == "runs.json recorded no answer to this question"


def test_a_recorded_error_is_told_and_not_repeated(tmp_path: Path) -> None:
    """An error of the recorded run is `missing` here, so that nothing waits for a rate limit of long ago."""
    error = {"kind": "rate_limited", "message": "slow down"}
    recording = load(tmp_path, [{"question": "Who?", "predicted": None, "error": error}])
    assert missing(recording, WHO) == "runs.json recorded no answer to this question (rate_limited: slow down)"


def test_the_row_is_found_wherever_it_stands(tmp_path: Path) -> None:
    """Rows pair by text, trimmed and normalised, not by order."""
    recording = load(tmp_path, "question,predicted\nWhen?,1950\n Wh\u006f? ,Ann\n")
    recording.bind([WHO, WHEN])
    assert (answer(recording, WHO).text, answer(recording, WHEN).text) == ("Ann", "1950")


def test_twins_pair_by_occurrence(tmp_path: Path) -> None:
    """The k-th of equal rows gets the k-th recorded answer, in whatever order they are asked."""
    twin = Question("q0009", "Who?", "Ann")
    recording = load(tmp_path, "question,answer,predicted\nWho?,Ann,first\nWhen?,1950,x\nWho?,Ann,second\n")
    recording.bind([WHO, WHEN, twin])
    assert answer(recording, twin).text == "second"
    assert answer(recording, WHO).text == "first"


def test_a_twin_too_many_is_missing(tmp_path: Path) -> None:
    """An answer is given to one row: a twin without its own is an error that says so."""
    twin = Question("q0009", "Who?", "Ann")
    recording = load(tmp_path, "question,predicted\nWho?,Ann\n")
    recording.bind([WHO, twin])
    assert missing(recording, twin) == "runs.csv has fewer answers to this question than it is asked times"


def test_equal_golds_pair_first(tmp_path: Path) -> None:
    """Of rows with the same question those with the same gold belong together."""
    other = Question("q0009", "Who?", "Bob")
    recording = load(tmp_path, "question,answer,predicted\nWho?,Bob,b\nWho?,Ann,a\n")
    recording.bind([WHO, other])
    assert (answer(recording, WHO).text, answer(recording, other).text) == ("a", "b")


def test_a_changed_gold_keeps_the_answer_and_loses_the_verdict(tmp_path: Path) -> None:
    """The answer does not depend on the gold, the verdict does."""
    recording = load(tmp_path, "question,answer,predicted,grade\nWho?,Bob,Ann,B\n")
    assert answer(recording, WHO).text == "Ann"
    assert recording.gold_changed(WHO)
    assert recording.recorded_verdict(WHO) is None
    assert recording.row(WHO) is not None


def test_without_golds_nothing_has_changed(tmp_path: Path) -> None:
    """A recording without golds gives its verdicts as they are."""
    recording = load(tmp_path, "question,predicted,grade\nWho?,Ann,A\n")
    assert not recording.gold_changed(WHO)
    assert recording.recorded_verdict(WHO) is Verdict.CORRECT
    assert not recording.gold_changed(WHEN)


def test_verdicts_are_required_of_a_judge(tmp_path: Path) -> None:
    """A file without verdicts cannot judge, which is said before anything is asked."""
    load(tmp_path, "question,predicted,grade\nWho?,Ann,A\n").require_verdicts()
    with pytest.raises(
        SpecError, match=r"^replay:runs\.csv: no column of verdicts .*; found question, predicted; accepted"
    ):
        load(tmp_path, "question,predicted\nWho?,Ann\n").require_verdicts()
    with pytest.raises(SpecError, match="the column 'label' holds no verdict; wanted A, B, C"):
        load(tmp_path, "question,predicted,label\nWho?,Ann,train\n").require_verdicts()


def test_repeats_pair_by_repeat(tmp_path: Path) -> None:
    """A run with repeats gives each its own answer; one without gives the same to all."""
    rows = [{"id": "q0001", "repeat": r, "question": "Who?", "predicted": f"answer {r}"} for r in (1, 2)]
    recording = load(tmp_path, rows)
    assert (answer(recording, WHO, 1).text, answer(recording, WHO, 2).text) == ("answer 1", "answer 2")
    assert "no answer" in missing(recording, WHO, 3) or "fewer answers" in missing(recording, WHO, 3)
    single = load(tmp_path, "question,predicted\nWho?,Ann\n")
    assert answer(single, WHO, 3).text == "Ann"


def test_twins_with_ids_pair_by_id(tmp_path: Path) -> None:
    """Twins of one dataset get their own answers again, whichever worker wrote first."""
    twin = Question("q0009", "Who?", "Ann")
    rows = [
        {"id": "q0009", "repeat": 1, "question": "Who?", "gold": "Ann", "predicted": "nine"},
        {"id": "q0001", "repeat": 1, "question": "Who?", "gold": "Ann", "predicted": "one"},
    ]
    recording = load(tmp_path, rows)
    recording.bind([WHO, twin])
    assert (answer(recording, WHO).text, answer(recording, twin).text) == ("one", "nine")


def test_several_datasets_share_a_recording(tmp_path: Path) -> None:
    """Datasets that use the same ids for other questions do not disturb each other."""
    recording = load(tmp_path, "question,predicted\nWho?,Ann\nWhen?,1950\n")
    recording.bind([WHO])
    recording.bind([Question("q0001", "When?", "1950")])
    assert answer(recording, WHO).text == "Ann"


def test_thinking_is_cut_and_kept(tmp_path: Path) -> None:
    """A recorded think block is cut, the raw text kept; an unclosed one means truncated."""
    reply = answer(load(tmp_path, "question,predicted\nWho?,<think>Bob?</think>Ann\n"), WHO)
    assert (reply.text, reply.raw) == ("Ann", "<think>Bob?</think>Ann")
    with pytest.raises(ModelError) as caught:
        answer(load(tmp_path, "question,predicted\nWho?,<think>Bob?\n"), WHO)
    assert caught.value.kind == "truncated"


def test_a_confidence_comes_along(tmp_path: Path) -> None:
    """A confidence column goes into the reply's extras, as a number."""
    recording = load(tmp_path, "question,predicted,trustworthiness_score\nWho?,Ann,0.75\nWhen?,1950,n/a\n")
    assert answer(recording, WHO).extra == {"confidence": 0.75}
    assert answer(recording, WHEN).extra is None


def test_our_own_report_replays(tmp_path: Path) -> None:
    """A Report's samples give answers, verdicts and extras back; rows that it left out are named as such."""
    results = [
        QuestionResult.for_question(WHO, predicted="Ann", verdict=Verdict.CORRECT, extra={"confidence": 0.5}),
        QuestionResult.for_question(WHEN, error=Failure("timeout", "90 s")),
    ]
    recording = load(tmp_path, {"n": 9, "samples": [result.to_sample() for result in results]}, "report.json")
    assert answer(recording, WHO).extra == {"confidence": 0.5}
    assert recording.recorded_verdict(WHO) is Verdict.CORRECT
    assert missing(recording, WHEN).endswith("(timeout: 90 s)")
    assert missing(recording, Question("q0003", "Where?", "Here")) == (
        "report.json has no answer to this question (it keeps 2 rows and leaves 7 out: replay its run directory)"
    )


def test_our_own_run_directory_replays(tmp_path: Path) -> None:
    """What the run log wrote gives answers and verdicts back."""
    log = RunLog(tmp_path / "results.jsonl")
    log.answer(WHO, 1, Reply("Ann", raw="<think>x</think>Ann"), 0.5)
    log.finished(WHO, QuestionResult.for_question(WHO, predicted="Ann", verdict=Verdict.CORRECT, judge_reply="A"))
    log.finished(WHEN, QuestionResult.for_question(WHEN, error=Failure("timeout", "90 s")))
    log.close()
    recording = Recording.load(".", tmp_path)
    assert answer(recording, WHO) == Reply("Ann", raw="<think>x</think>Ann", calls=0)
    assert recording.recorded_verdict(WHO) is Verdict.CORRECT
    assert missing(recording, WHEN).endswith("(timeout: 90 s)")


def test_a_whole_real_run_replays(shared_data: Path) -> None:
    """A published run of 4,326 rows gives back its published counts, and loads in well under a second."""
    path = shared_data / "runs" / "gpt-4o-2024-11-20.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        questions = [Question(f"q{n:04}", r["problem"], r["target"]) for n, r in enumerate(csv.DictReader(file), 1)]
    started = time.perf_counter()
    recording = Recording.load(str(path), shared_data)
    recording.bind(questions)
    assert time.perf_counter() - started < 2  # 0.1 s on an idle machine
    counts = Counter(recording.recorded_verdict(question) for question in questions)
    assert counts == {Verdict.CORRECT: 1345, Verdict.INCORRECT: 2904, Verdict.NOT_ATTEMPTED: 77}


def test_real_answers_with_confidence_replay(shared_data: Path) -> None:
    """The recorded English answers pair with every row of the official dataset."""
    recording = Recording.load("runs/gpt-4o-predictions-with-confidence.csv.gz", shared_data)
    with (shared_data / "simple_qa_test_set.csv").open(encoding="utf-8-sig", newline="") as file:
        questions = [
            Question(f"q{n:04}", r["problem"], r["answer"].strip()) for n, r in enumerate(csv.DictReader(file))
        ]
    recording.bind(questions)
    rows = [recording.row(question) for question in questions]
    assert all(row is not None and row.predicted and row.extra for row in rows)
    assert not any(recording.gold_changed(question) for question in questions)
    with pytest.raises(SpecError, match="no column of verdicts"):
        recording.require_verdicts()
