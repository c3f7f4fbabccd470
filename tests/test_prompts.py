"""The templates: known placeholders, one pass, nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pytest_simpleqa.errors import OptionError
from pytest_simpleqa.prompts import ANSWER_TEMPLATE, Template, grade_template
from pytest_simpleqa.records import Question

HOSTILE = Question("q1", "{target} {0} {} {{predicted_answer}}", "{question} \\1 $target %s")


def test_each_placeholder_is_replaced_wherever_it_stands() -> None:
    """Question, target and predicted answer are put in as often as they are named."""
    text = Template("{question}/{target}/{predicted_answer}/{question}").render(Question("q", "Q", "G"), "P")
    assert text == "Q/G/P/Q"


def test_inserted_text_is_never_read_again() -> None:
    """Braces, backslashes and percent signs of a question, a gold or an answer stay as they are."""
    text = Template("[{question}] [{target}] [{predicted_answer}]").render(HOSTILE, "{question}")
    assert text == "[{target} {0} {} {{predicted_answer}}] [{question} \\1 $target %s] [{question}]"


@pytest.mark.parametrize(
    "text", ['{"json": {"a": 1}}', "{}", "{0}", "{Question}", "{ question }", "{question", "{answer}", "{{}}", "%s {"]
)
def test_other_braces_stay(text: str) -> None:
    """Only the three known names between single braces are placeholders."""
    assert Template(text).render(HOSTILE, "P") == text
    assert Template(text).placeholders == frozenset()


def test_the_default_answer_prompt_is_exactly_the_question() -> None:
    """Without an own prompt a model is sent the question's text and nothing else."""
    assert Template(ANSWER_TEMPLATE).render(Question("q", " Who?\n", "x")) == " Who?\n"


def test_a_missing_placeholder_is_named() -> None:
    """The error names the option, what is missing and what is needed."""
    with pytest.raises(OptionError) as caught:
        Template("Grade {question}").require("--simpleqa-grade-prompt", "question", "target", "predicted_answer")
    assert str(caught.value) == (
        "--simpleqa-grade-prompt: the prompt lacks {target} and {predicted_answer}; it needs {question}, {target}, "
        "{predicted_answer}"
    )
    Template("{question}").require("--simpleqa-answer-prompt", "question")


def test_the_hash_is_of_the_utf8_text() -> None:
    """Provenance can be checked with any tool; half a surrogate pair does not break it."""
    assert Template("Q: {question} é").sha256 == hashlib.sha256("Q: {question} é".encode()).hexdigest()
    assert len(Template("\ud83c").sha256) == 64


def test_the_built_in_grade_prompt_is_the_shared_one(shared_data: Path) -> None:
    """It is byte for byte the prompt that the contract fixes, and holds all three placeholders."""
    assert grade_template().text.encode() == (shared_data / "grade_prompt.txt").read_bytes()
    assert grade_template().placeholders == {"question", "target", "predicted_answer"}
