"""Gates in a session with several runs: each is decided on its runs, none is lost without a word.

All sessions run in a process of their own: PyYAML, which evals need, cannot be imported twice in one.
"""

from __future__ import annotations

import json

import pytest

from .quiz import Quiz
from .registries import an_eval, write_registry

BOTH = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["bare", "n2"])
EVALS = ("--simpleqa-registry-path=registry", "--simpleqa-eval=sums", "--simpleqa-eval=more")


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    """Ten questions, 3 of them right, and two evals of the same two samples, of which none is."""
    quiz = Quiz(pytester, "AAABBBBBCC")
    evals = {f"evals/{name}.yaml": an_eval(name, samples_jsonl="sums/samples.jsonl") for name in ("sums", "more")}
    write_registry(quiz.path / "registry", evals)
    quiz.file("answers.py", 'def answer(prompt):\n    return "2" if "thing 1?" in str(prompt) else "I do not know."\n')
    return quiz


def args(quiz: Quiz, *more: str) -> list[str]:
    return ["--simpleqa-dataset=quiz.csv", "--answer-llm=python:answers:answer", "--judge-llm=rules", *EVALS, *more]


@pytest.mark.parametrize("workers", [(), ("-n0",), ("-n2",)], ids=["bare", "n0", "n2"])
def test_each_run_answers_for_its_own_gates(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """A gate with a prefix is that run's, one without is everybody's, and one that fails fails the session."""
    gates = ("--simpleqa-gate=sums.dev.v0: accuracy >= 0", "--simpleqa-gate=accuracy <= 0.5")
    session = quiz.apart(*args(quiz, *gates, "--simpleqa-out={name}.json", *workers))
    assert session.status == 0, session.text + session.errors
    held = {
        name: [each["expression"] for each in json.loads((quiz.path / f"{name}.json").read_text())["gates"]]
        for name in ("quiz.csv", "sums.dev.v0", "more.dev.v0")
    }
    assert held == {
        "quiz.csv": ["accuracy <= 0.5"],
        "sums.dev.v0": ["sums.dev.v0: accuracy >= 0", "accuracy <= 0.5"],
        "more.dev.v0": ["accuracy <= 0.5"],
    }
    failing = quiz.apart(*args(quiz, *gates, "--simpleqa-gate=more.dev.v0: accuracy >= 0.1", *workers))
    assert failing.status == 1, failing.text + failing.errors


@BOTH
def test_a_gate_on_a_run_that_is_not_there_never_passes(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """A wrong name is refused before anything is asked; a test function that never came is undecided, with a line."""
    wrong = quiz.apart(*args(quiz, "--simpleqa-gate=sums: accuracy >= 0", "--simpleqa-gate=accuracy >= 0", *workers))
    assert wrong.status == 4, wrong.text
    assert "there is no run 'sums'" in wrong.errors
    lost = quiz.apart(*args(quiz, "--simpleqa-gate=test_x.py::test_facts: accuracy >= 0", *workers))
    assert lost.status == 6, lost.text + lost.errors
    assert "undecided: the session holds no run test_x.py::test_facts" in " ".join(lost.text.split())


@BOTH
def test_a_run_that_was_not_asked_leaves_only_its_own_gates_open(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """With one run picked its gates decide; a gate of a run that was left out is undecided, with a line."""
    own = quiz.apart(*args(quiz, "--simpleqa-gate=sums.dev.v0: accuracy >= 0", "sums.dev.v0", *workers))
    assert own.status == 0, own.text + own.errors
    every = quiz.apart(*args(quiz, "--simpleqa-gate=accuracy >= 0", "sums.dev.v0", *workers))
    assert every.status == 6, every.text + every.errors
    line = "gate accuracy >= 0: undecided: no question of quiz.csv, more.dev.v0 has a result; type 'sums.dev.v0: '"
    assert line in " ".join(every.text.split())


@BOTH
def test_a_baseline_that_was_one_of_the_runs_is_that_runs_alone(quiz: Quiz, workers: tuple[str, ...]) -> None:
    """Only the run that the baseline was is compared; a gate that would compare another one is refused."""
    quiz.apart(*args(quiz, "--simpleqa-out={name}.json"))
    old = ("--simpleqa-baseline=sums.dev.v0.json", "--simpleqa-out={name}.json")
    session = quiz.apart(*args(quiz, *old, "--simpleqa-gate=accuracy >= baseline", *workers))
    assert session.status == 0, session.text + session.errors
    found = {
        name: json.loads((quiz.path / f"{name}.json").read_text())
        for name in ("quiz.csv", "sums.dev.v0", "more.dev.v0")
    }
    assert [name for name, report in found.items() if report["comparison"]] == ["sums.dev.v0"]
    assert [name for name, report in found.items() if report["gates"]] == ["sums.dev.v0"]
    refused = quiz.apart(
        *args(
            quiz, *old, "--simpleqa-gate=more.dev.v0: accuracy >= baseline", "--simpleqa-gate=accuracy >= 0", *workers
        )
    )
    assert refused.status == 4, refused.text
    assert "the baseline sums.dev.v0.json is the run 'sums.dev.v0'" in refused.errors


def test_what_concerns_the_dataset_doubts_no_eval(quiz: Quiz) -> None:
    """Sentinels and stated confidences are the dataset's alone: an eval beside it is not held to them."""
    asked = ("--simpleqa-sentinels=3", "--simpleqa-ask-confidence", "--simpleqa-out={name}.json")
    session = quiz.apart(*args(quiz, *asked, "--simpleqa-gate=accuracy >= 0"))
    assert session.status == 0, session.text + session.errors
    known = json.loads((quiz.path / "quiz.csv.json").read_text())
    other = json.loads((quiz.path / "sums.dev.v0.json").read_text())
    assert {"sentinels", "calibration"} <= known.keys()
    assert not {"sentinels", "calibration"} & other.keys()
