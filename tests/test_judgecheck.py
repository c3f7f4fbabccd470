"""Holding a judge against labels."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from pytest_simpleqa.agreement import JudgeErrors, Rated, agreement, kappa
from pytest_simpleqa.errors import RunError
from pytest_simpleqa.labelled import read_labelled
from pytest_simpleqa.metrics import wilson

from .kept import Command, command, write_dataset, write_run


@pytest.fixture
def simpleqa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command(tmp_path, monkeypatch, capsys)


def table(**cells: int) -> list[Rated]:
    """Make rows; `ab=3` are three with the label a that the judge called b."""
    return [Rated(words[0], words[1]) for words, number in cells.items() for _ in range(number)]


# -- the numbers ----------------------------------------------------------------------------------


def test_kappa_is_that_of_the_books() -> None:
    """Agreement beyond chance, with the large-sample error of Fleiss, Cohen and Everitt in closed form."""
    rows = table(aa=20, ab=5, ba=10, bb=15)
    found = kappa(rows)
    assert found is not None
    assert found.value == pytest.approx(0.4)
    shares = {"aa": 0.4, "ab": 0.1, "ba": 0.2, "bb": 0.3}
    label, judge, chance = {"a": 0.5, "b": 0.5}, {"a": 0.6, "b": 0.4}, 0.5
    same = sum(p * (1 - (label[w[0]] + judge[w[0]]) * 0.6) ** 2 for w, p in shares.items() if w[0] == w[1])
    other = 0.36 * sum(p * (judge[w[0]] + label[w[1]]) ** 2 for w, p in shares.items() if w[0] != w[1])
    variance = (same + other - (0.4 - chance * 0.6) ** 2) / (50 * (1 - chance) ** 2)
    reach = 1.959964 * variance**0.5
    assert found.interval == pytest.approx((0.4 - reach, 0.4 + reach), abs=1e-6)


def test_kappa_needs_two_classes() -> None:
    """Where all are in one class, or nothing was labelled, there is no chance to be beyond."""
    assert kappa(table(aa=9)) is None
    assert kappa([]) is None


def test_agreement_has_wilsons_interval() -> None:
    """Rows of different questions are independent trials."""
    found = agreement(table(aa=40, ab=5, bb=5))
    assert found is not None
    assert found.value == 0.9
    assert found.interval == pytest.approx(wilson(45, 50), abs=1e-6)


def test_answers_to_one_question_are_not_independent() -> None:
    """Ten answers to each of ten questions make no hundred trials: the intervals are wider."""
    alone = [Rated("a", "ab"[i % 10 > 7], f"{i}") for i in range(50)] + [
        Rated("b", "b", f"{i}") for i in range(50, 100)
    ]
    together = [row._replace(question=str(number % 10)) for number, row in enumerate(alone)]
    for figure in (agreement, kappa):
        narrow, wide = figure(alone), figure(together)
        assert narrow is not None
        assert wide is not None
        assert narrow.value == wide.value
        assert narrow.interval[1] - narrow.interval[0] < wide.interval[1] - wide.interval[0]


def test_a_judge_failure_agrees_with_nothing() -> None:
    """A failure stays in every denominator and is no call for right."""
    rows = [Rated("a", "a"), Rated("a", "failed"), Rated("b", "failed"), Rated("b", "b")]
    found = agreement(rows)
    assert found is not None
    assert found.value == 0.5
    assert JudgeErrors.of(rows, "a") == JudgeErrors(right=2, right_called_right=1, wrong=2, wrong_called_wrong=2)


def test_an_accuracy_is_corrected_for_the_judges_errors() -> None:
    """A judge that misses a tenth of the right and lets a fifth of the wrong pass shows .41 for .3."""
    found = JudgeErrors(100, 90, 100, 80).corrected(410, 1000)
    assert found is not None
    assert found.value == pytest.approx(0.3)
    assert found.interval[0] < 0.3 < found.interval[1]


def test_a_judge_that_tells_nothing_corrects_nothing() -> None:
    """Where right and wrong are called right alike, or one was never seen, no accuracy follows."""
    assert JudgeErrors(10, 5, 10, 5).corrected(5, 10) is None
    assert JudgeErrors(10, 9, 0, 0).corrected(5, 10) is None
    assert JudgeErrors(10, 9, 10, 9).corrected(0, 0) is None


def test_corrected_intervals_cover() -> None:
    """Over many judges and runs the 95 % interval of the corrected accuracy holds the true one about so often."""
    rng, covered, trials = random.Random(7), 0, 300

    def passing(share: float, n: int) -> int:
        return sum(rng.random() < share for _ in range(n))

    for _ in range(trials):
        errors = JudgeErrors(100, passing(0.9, 100), 100, passing(0.85, 100))
        found = errors.corrected(passing(0.4 * 0.9 + 0.6 * 0.15, 300), 300)
        assert found is not None
        covered += found.interval[0] <= 0.4 <= found.interval[1]
    assert 0.92 <= covered / trials <= 0.98


# -- labelled files -------------------------------------------------------------------------------


def test_a_table_of_grades_is_read(tmp_path: Path) -> None:
    """Questions, golds, answers and grades are found by their columns; a row without a grade stays unlabelled."""
    text = "problem,target,predicted_answer,grade\nWho?,me,I,A\nWhen?,1999,2000,Incorrect\nWhere?,here,,\n"
    (tmp_path / "run.csv").write_text(text, encoding="utf-8")
    found = read_labelled("run.csv", tmp_path)
    assert [each.label for each in found.answers] == ["correct", "incorrect", None]
    assert [each.question.answer for each in found.answers] == ["me", "1999", "here"]
    assert not found.is_yes_no


def test_without_golds_accepted_answers_are_golds(tmp_path: Path) -> None:
    """An answer is held against the shortest other one that people accept, never against itself."""
    text = "Question\tModel answer\tAcceptable?\nWho?\tAda Lovelace\tYes\nWho?\tAda\tYes\nWho?\tBob\tNo\nWhy?\tx\tYes\n"
    (tmp_path / "people.tsv").write_text(text, encoding="utf-8")
    found = read_labelled("people.tsv", tmp_path)
    assert [each.question.answer for each in found.answers] == ["Ada", "Ada Lovelace", "Ada"]
    assert found.is_yes_no
    assert "1 row without such a one left out" in found.notes[0]


def test_a_tsv_may_hold_quotes_as_text(tmp_path: Path) -> None:
    """Tables of many tools do not quote: a quotation mark at a cell's start is part of the answer."""
    text = 'question\tgold\tpredicted\tlabel\nWho?\tx\t"Her" song\tA\nWho else?\ty\t"His\tB\n'
    (tmp_path / "people.tsv").write_text(text, encoding="utf-8")
    assert [each.predicted for each in read_labelled("people.tsv", tmp_path).answers] == ['"Her" song', '"His']


def test_one_of_several_systems_is_read(tmp_path: Path) -> None:
    """A file of several systems is asked for one of them; a file of one needs no choice."""
    records = [{"question": "Who?", "target": "me", "prediction": "I", "grade": "CORRECT"}]
    systems = {"a": {"records": records}, "b": {"records": [*records, *records]}}
    (tmp_path / "two.json").write_text(json.dumps({"systems": systems}), encoding="utf-8")
    (tmp_path / "one.json").write_text(json.dumps({"systems": {"a": systems["a"]}}), encoding="utf-8")
    assert len(read_labelled("one.json", tmp_path).answers) == 1
    assert len(read_labelled("two.json#b", tmp_path).answers) == 2
    with pytest.raises(RunError, match=r"choose one of two\.json#a, two\.json#b"):
        read_labelled("two.json", tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("problem,gold\nWho?,me\n", "no column of predicted answers; found problem, gold"),
        ("problem,gold,predicted\nWho?,me,I\n", "no column of labels; found .*name it with --label-column"),
        ("problem,gold,predicted,label\nWho?,me,I,perhaps\n", "row 1: the label is 'perhaps'; wanted A, B, C"),
        ("problem,gold,predicted,label\nWho?,me,I,yes\nWho?,me,I,A\n", "row 2: the label is 'A'; wanted Yes or No"),
        ("problem,gold,predicted,label\n ,me,I,yes\n", "row 1: the cell 'problem' is empty"),
        ("problem,predicted,label\nWho?,I,no\n", "no column of golds"),
        ("problem,gold,predicted,label\n", "there is no row in it"),
    ],
)
def test_what_is_no_labelled_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    """A missing column or an unknown label is told with the place and what was wanted."""
    (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=said):
        read_labelled("bad.csv", tmp_path)


# -- the command ----------------------------------------------------------------------------------


def test_a_judge_is_checked(simpleqa: Command, tmp_path: Path) -> None:
    """The matrix, agreement, kappa, the judge's errors and the disagreements are told on 80 columns."""
    rows = [("Paris", "Paris", "A"), ("Rome", "Lyon", "B"), ("1999", "in 1999", "A"), ("Oslo", "Oslo", "B")]
    lines = "".join(f"Question {i}?,{gold},{said},{label}\n" for i, (gold, said, label) in enumerate(rows))
    (tmp_path / "run.csv").write_text(f"problem,gold,predicted,grade\n{lines}", encoding="utf-8")
    status, out, err = simpleqa("judge-check", "run.csv", "--judge-llm", "rules")
    assert status == 0
    assert err == "4 answers of run.csv to rules\n"
    assert "correct                      2              0              0" in out
    assert "incorrect                    1              1              0" in out
    assert "agreement            .750" in out
    assert "Cohen's kappa        .500" in out
    assert "wrong called right   .500               1 of 2" in out
    assert "q0004 incorrect, judged correct:  Question 3?  gold: Oslo  predicted: Oslo" in out
    assert all(len(line) <= 80 for line in out.split("\n"))


def test_an_earlier_run_holds_labels(simpleqa: Command, tmp_path: Path) -> None:
    """The verdicts of a run are labels for another judge; its errors leave nothing to judge."""
    write_dataset(tmp_path, 5)
    folder = write_run(tmp_path, "AB!?R", said={1: "gold 1", 2: "rubbish"})
    status, out, _ = simpleqa("judge-check", folder, "--judge-llm", "rules")
    assert status == 0
    assert "4 answers judged by rules, 2 of them labelled" in out
    assert "agreement            1.00" in out


def test_other_runs_are_corrected(simpleqa: Command, tmp_path: Path) -> None:
    """With `--correct` the accuracy of a run that this judge graded is told as it would be without its errors."""
    write_dataset(tmp_path, 4)
    rows = "".join(f"Question {i}?,gold {i},{'gold' if i % 5 else 'no'} {i},{'AB'[i % 2]}\n" for i in range(40))
    (tmp_path / "people.csv").write_text(f"problem,gold,predicted,grade\n{rows}", encoding="utf-8")
    folder = write_run(tmp_path, "AABB")
    out = simpleqa("judge-check", "people.csv", "--judge-llm", "replay:people.csv", "--correct", folder)[1]
    assert ".500               2 of 4\n  corrected          .500" in out


def test_a_judge_without_verdicts_is_told(simpleqa: Command, tmp_path: Path) -> None:
    """Judge failures are a column of their own and count as no agreement."""
    (tmp_path / "dumb_judge.py").write_text("def judge(prompt):\n    return 'dunno'\n", encoding="utf-8")
    (tmp_path / "run.csv").write_text("problem,gold,predicted,grade\nWho?,me,I,A\nWho?,me,you,B\n", encoding="utf-8")
    status, out, _ = simpleqa("judge-check", "run.csv", "--judge-llm", "python:dumb_judge:judge")
    assert status == 0
    assert "failed" in out
    assert "agreement            .000" in out


def test_a_judge_that_is_not_there_is_told(simpleqa: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing key, a bad parameter or a file without any label exits 4 before anything is asked."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "run.csv").write_text("problem,gold,predicted,grade\nWho?,me,I,\n", encoding="utf-8")
    (tmp_path / "labelled.csv").write_text("problem,gold,predicted,grade\nWho?,me,I,A\n", encoding="utf-8")
    assert "OPENAI_API_KEY" in simpleqa.error("judge-check", "labelled.csv", "--judge-llm", "openai:small")
    message = simpleqa.error("judge-check", "run.csv", "--judge-llm", "rules", "--judge-llm-param", "x")
    assert "wanted NAME=VALUE" in message
    assert "run.csv: no answer that is to be judged has a label" in simpleqa.error(
        "judge-check", "run.csv", "--judge-llm", "rules"
    )


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("runs/gpt-4o-2024-11-20.csv.gz", ("agreement            .956", "Cohen's kappa        .901")),
        ("runs/gpt-4o-mini-2024-07-18.csv.gz", ("agreement            .971", "Cohen's kappa        .828")),
        ("labels/NQ301_human.tsv", ("agreement            .704", "wrong called right   .038")),
    ],
)
def test_the_rules_on_real_labels(simpleqa: Command, shared_data: Path, name: str, figures: tuple[str, ...]) -> None:
    """What is said of the rules judge in public holds on the files that it is said of."""
    out = simpleqa("judge-check", shared_data / name, "--judge-llm", "rules")[1]
    assert all(figure in out for figure in figures), out
