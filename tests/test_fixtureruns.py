"""Tests of the runs of test functions as values: what a marker chooses, and what crosses to another process."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_simpleqa.errors import OptionError
from pytest_simpleqa.fixtureruns import Choice, FixtureRun, FixtureRuns
from pytest_simpleqa.options import Options
from pytest_simpleqa.plan import Plan

from .small_run import write_files


@pytest.fixture
def options(tmp_path: Path, pytester: pytest.Pytester) -> Options:
    """Options of a session that asks, in a folder with three questions."""
    write_files(tmp_path)
    config = pytester.parseconfig("--answer-llm=replay:recorded.csv", "--judge-llm=rules")
    found = Options.from_config(config)
    assert found is not None
    return found


def mark(*args: object, **kwargs: object) -> pytest.Mark:
    return pytest.mark.simpleqa_dataset(*args, **kwargs).mark


def test_a_marker_is_read_by_place_and_by_name() -> None:
    """Source, limit, topics and ask_ahead; one topic may stand alone, and a path object is a path."""
    assert Choice.of(mark("a.csv", 3, "Art"), "tests") == Choice("a.csv", "tests", 3, ("Art",))
    assert Choice.of(mark(Path("a.csv"), topics=["Art", "History"], ask_ahead=True), ".") == Choice(
        "a.csv", ".", None, ("Art", "History"), True
    )
    assert Choice.of(None, "tests") == Choice()


def test_an_unknown_argument_is_refused() -> None:
    """The message is Python's own, without the name of our function."""
    with pytest.raises(
        OptionError, match=r"^the marker simpleqa_dataset: got an unexpected keyword argument 'sample'$"
    ):
        Choice.of(mark("a.csv", sample=3), ".")


def test_one_choice_is_one_set_of_questions(tmp_path: Path, options: Options) -> None:
    """Functions that choose the same share the questions, and with them who answers and who judges."""
    runs = FixtureRuns(tmp_path, options, None)
    whole = runs.plan_of(Choice("questions.csv"))
    assert runs.plan_of(Choice("questions.csv", ask_ahead=True)) is whole
    part = runs.plan_of(Choice("questions.csv", limit=1))
    assert (len(whole.dataset), len(part.dataset)) == (3, 1)
    assert part.rows is whole.rows
    assert part.options.options_json["limit_questions"] == 1


def test_the_dataset_of_the_command_line_is_shared(tmp_path: Path, options: Options) -> None:
    """Without a source in the marker the questions are the very ones that the command line has named."""
    own = Plan.of_dataset(replace(options, dataset="questions.csv", dataset_base=tmp_path))
    runs = FixtureRuns(tmp_path, own.options, own)
    assert runs.plan_of(Choice()) is own
    assert len(runs.plan_of(Choice(topics=("Maths",))).dataset) == 1


def test_a_run_crosses_to_another_process(tmp_path: Path, options: Options) -> None:
    """What a worker tells is plain JSON, and the controller reads the same run out of it."""
    runs, others = FixtureRuns(tmp_path, options, None), FixtureRuns(tmp_path, options, None)
    choice = Choice("questions.csv", topics=("Geography",))
    plan = replace(runs.plan_of(choice), name="test_x.py::test_it", in_tests=True)
    sent = FixtureRun(plan, choice, {"test_x.py::test_it[q0002]": ("q0002", 1)})
    found = others.read(json.loads(json.dumps(sent.to_json())))
    assert (found.plan.name, found.choice, found.items) == (sent.plan.name, choice, sent.items)
    assert found.plan.dataset == plan.dataset
    assert found.plan.in_tests


@pytest.mark.parametrize(
    ("name", "node_id"), [("t.py::test_it", "t.py::test_it[q0001]"), ("t.py::test_it[a]", "t.py::test_it[a-q0001]")]
)
def test_a_run_knows_the_node_ids_of_its_items(tmp_path: Path, options: Options, name: str, node_id: str) -> None:
    """Other parameters stand before the row's own id: what the summary prints can be pasted."""
    plan = replace(FixtureRuns(tmp_path, options, None).plan_of(Choice("questions.csv")), name=name, in_tests=True)
    assert plan.node_id("q0001") == node_id
