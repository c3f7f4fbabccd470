"""The gates of one session: which run each of them is held to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_simpleqa.baseline import Baseline
from pytest_simpleqa.errors import OptionError
from pytest_simpleqa.gate import parse_gate
from pytest_simpleqa.gates import Gates
from pytest_simpleqa.records import Question
from tests.letters import questions

FACTS = "tests/test_x.py::test_facts"
RUNS = {"quiz.csv": questions(2, "aa"), "sums.dev.v0": questions(2)}
OLD = Baseline("old.json", (), dataset="quiz.csv", run="quiz.csv")


def gates(*texts: str, baseline: Baseline | None = None) -> Gates:
    return Gates(tuple(map(parse_gate, texts)), baseline, 0.01)


def of(run: str, found: Gates, runs: dict[str, list[Question]] = RUNS) -> list[str]:
    return [gate.text for gate in found.for_run(run, runs).expressions]


def test_a_gate_holds_for_every_run_or_for_the_one_it_names() -> None:
    """Without a prefix a gate is on every run; the prefix is a dataset, an eval's full name or a test function's id."""
    found = gates("accuracy >= .1", "sums.dev.v0: accuracy >= .2", f"{FACTS}: accuracy >= .3")
    assert of("quiz.csv", found) == ["accuracy >= .1"]
    assert of("sums.dev.v0", found) == ["accuracy >= .1", "sums.dev.v0: accuracy >= .2"]
    assert of(FACTS, found) == ["accuracy >= .1", f"{FACTS}: accuracy >= .3"]


def test_a_baseline_that_was_one_of_the_runs_is_that_runs_alone() -> None:
    """What is compared with it goes by the run's name, else by the dataset's; a stranger is everybody's."""
    found = gates("accuracy >= baseline", "accuracy >= .1", baseline=OLD)
    assert of("quiz.csv", found) == ["accuracy >= baseline", "accuracy >= .1"]
    assert of("sums.dev.v0", found) == ["accuracy >= .1"]
    assert found.for_run("sums.dev.v0", RUNS).baseline is None
    facts = replace(found, baseline=replace(OLD, run=FACTS))
    runs = {**RUNS, FACTS: []}
    assert [name for name in runs if "accuracy >= baseline" in of(name, facts, runs)] == [FACTS]
    stranger = replace(found, baseline=replace(OLD, run=None, dataset=None))
    assert "accuracy >= baseline" in of("sums.dev.v0", stranger)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nosuch: accuracy >= .1", "there is no run 'nosuch'; there are quiz.csv, sums.dev.v0"),
        ("sums.dev: accuracy >= .1", "did you mean 'sums.dev.v0'?"),
        ("sums.dev.v0: accuracy >= baseline", "the baseline old.json is the run 'quiz.csv'"),
        ("topic[a].accuracy >= .1", "no question of sums.dev.v0 has the topic 'a'"),
        ("quiz.csv: topic[b].accuracy >= .1", "no question of quiz.csv has the topic 'b'; there are a, c"),
    ],
)
def test_a_gate_that_no_run_could_decide_is_a_mistake(text: str, told: str) -> None:
    """A run that is not there, another run's baseline and a slice that a run does not have are told in one line."""
    with pytest.raises(OptionError) as caught:
        gates(text, "accuracy >= .1", baseline=OLD).require_runs({**RUNS, "quiz.csv": questions(2, "ac")})
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_dataset_without_topics_says_so() -> None:
    """A gate on a topic of a dataset that has none is told in these words."""
    bare = tuple(replace(each, topic=None) for each in questions(2, "ac"))
    with pytest.raises(OptionError, match=r"no question has the topic 'a'; this dataset has no topics$"):
        gates("topic[a].accuracy >= .1").require_runs({"quiz.csv": bare})


REMEDY = "type 'quiz.csv: ' before the gate for that run alone"


def test_a_test_function_may_come_later() -> None:
    """A node id is no mistake while tests are not collected; where none comes, its gate is told to be open."""
    found = gates(f"{FACTS}: accuracy >= .1", "quiz.csv: topic[a].accuracy >= .1", "accuracy >= 0")
    found.require_runs(RUNS)
    assert found.left_open({"quiz.csv": True, "sums.dev.v0": True, FACTS: True}) == []
    assert found.left_open({"quiz.csv": True, "sums.dev.v0": False}) == [
        f"gate {FACTS}: accuracy >= .1: undecided: the session holds no run {FACTS}",
        f"gate accuracy >= 0: undecided: no question of sums.dev.v0 has a result; {REMEDY}",
    ]
    (line,) = gates("accuracy >= 0").left_open({"a": False, "b": False})
    assert line == "gate accuracy >= 0: undecided: no question of a, b has a result"
