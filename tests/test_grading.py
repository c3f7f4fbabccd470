"""The grading prompt: placeholders, chat messages and how the judge is told to answer."""

from __future__ import annotations

import pytest

from pytest_simpleqa.errors import SpecError
from pytest_simpleqa.evals.grading import INSTRUCTIONS, GradingPrompt, as_filled, filled
from pytest_simpleqa.records import Message

CHAT: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Two and two?"}]


def test_what_is_filled_in_is_never_read_again() -> None:
    """A completion with placeholders or braces in it stands as it is."""
    values = {"completion": "{ideal} and {{this}}", "ideal": "four"}
    assert filled("{completion}; {ideal}; {{n}}; {", values) == "{ideal} and {{this}}; four; {n}; {"


def test_chat_messages_are_filled_in_a_line_each() -> None:
    """A chat input reads like a conversation inside a prompt, without a turn left open; a list as Python shows it."""
    assert as_filled(CHAT) == "Be brief.\nUser: Two and two?\n"
    assert as_filled(CHAT[1:]) == "Two and two?"
    assert as_filled(["a", "b"]) == "['a', 'b']"


@pytest.mark.parametrize("eval_type", INSTRUCTIONS)
def test_the_instruction_stands_below_and_names_the_choices(eval_type: str) -> None:
    """Every way of answering names all choices, at the end of the last message; the spec stays as it was."""
    prompt = GradingPrompt.of(
        [{"role": "system", "content": "Judge."}, {"role": "user", "content": "{completion}?"}], "x"
    )
    for _ in range(2):
        told = prompt.instructed(eval_type, ("Yes", "No")).filled({"completion": "c"}, "", "")
        assert isinstance(told, list)
        assert told[0]["content"] == "Judge."
        assert told[1]["content"].startswith("c?\n\n")
        assert told[1]["content"].count('"Yes" or "No"') == 1


def test_a_text_stays_a_text() -> None:
    """A prompt that is one text is put as one, and knows its placeholders."""
    prompt = GradingPrompt.of("{input} {{x}} {completion}", "x")
    assert prompt.names == {"input", "completion"}
    assert prompt.filled({"input": "1", "completion": "2"}, "", "") == "1 {x} 2"


def test_a_prompt_may_talk_on() -> None:
    """With `out_message` the judge is asked inside the conversation that it judges."""
    prompt = GradingPrompt.of("Was that funny?", "x", talks_on=True)
    messages = prompt.filled({}, CHAT, "Four.")
    assert isinstance(messages, list)
    assert [message["content"] for message in messages] == ["Be brief.", "Two and two?", "Four.", "Was that funny?"]


def test_what_is_no_prompt_is_told() -> None:
    """Anything but a text or messages is one line."""
    with pytest.raises(SpecError, match="spec: 'prompt' is NoneType; wanted a text or a list of chat messages"):
        GradingPrompt.of(None, "spec")
