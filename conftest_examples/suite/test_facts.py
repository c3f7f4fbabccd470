"""Ordinary tests and two that put the questions of a dataset: the model alone, and what is built around it."""

from collections.abc import Callable

import pytest

from pytest_simpleqa.fixtures import SimpleQA

pytestmark = pytest.mark.simpleqa_dataset("capitals.csv")


@pytest.fixture(scope="module")
def look_up() -> Callable[[str], str | None]:
    """Stand for a stack of yours: it knows two capitals."""
    known = {"France": "Paris", "Norway": "Oslo"}
    return lambda question: next((city for country, city in known.items() if country in question), None)


def test_model(simpleqa: SimpleQA) -> None:
    """The model alone must not claim what is wrong; "I don't know" will do."""
    result = simpleqa.grade(simpleqa.ask())
    assert result.verdict != "incorrect", result.predicted


def test_stack(simpleqa: SimpleQA, look_up: Callable[[str], str | None]) -> None:
    """With the stack around it every capital that the stack knows is right."""
    found = look_up(simpleqa.question.problem)
    result = simpleqa.grade(found or "I don't know.")
    assert found is None or result.verdict == "correct"


@pytest.mark.parametrize("country", ["France", "Norway"])
def test_look_up(look_up: Callable[[str], str | None], country: str) -> None:
    """An ordinary test beside them."""
    assert look_up(f"What is the capital of {country}?")
