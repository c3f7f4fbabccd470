"""The prompt of a model-graded eval: its placeholders, filled in one pass, and how the judge is told to answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import SpecError
from ..models.shapes import as_chat, as_text
from ..records import Message, Prompt

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")

INSTRUCTIONS: Mapping[str, str] = {
    "classify": (
        "Reply with nothing but the one choice that is right, out of {choices}: no quotes, no punctuation, "
        "not a word beside it."
    ),
    "classify_cot": (
        "Write the one choice that is right, out of {choices}, alone on the first line, without quotes or "
        "punctuation. Below it, on lines of their own, give your reasons step by step."
    ),
    "cot_classify": (
        "Think it through in writing first, step by step, and do not name a choice before you are done. Then write "
        "the one choice that is right, out of {choices}, alone on a line, without quotes or punctuation. Close with "
        "a last line that holds that same choice and nothing else.\n\nSteps:"
    ),
    "cot_classify_jp": (
        "まず、判断に至る考えを順を追って書いてください。考え終わるまでは選択肢を挙げないでください。"
        "次に、{choices} の中から正しいものを一つだけ選び、引用符や句読点を付けずに独立した一行に書いてください。"
        "最後の行には、同じ選択肢だけをもう一度書いてください。\n\n考え："
    ),
}
"""What stands below a grading prompt, by `eval_type`; `{choices}` are named there."""


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return `template` with its placeholders replaced in one pass; `{{` and `}}` are braces.

    What is filled in is never read again, and any other brace stays as it is.
    """

    def value(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else values[match[1]]

    return _PLACEHOLDER.sub(value, template)


def placeholders(template: str) -> Iterator[str]:
    """Yield the names that a template asks for."""
    return (match[1] for match in _PLACEHOLDER.finditer(template) if match[1] is not None)


def is_chat(value: Any) -> bool:
    """Tell whether a value is a list of chat messages."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and {"role", "content"} <= each.keys() for each in value)
    )


def as_filled(value: Any) -> str:
    """Return a value as it is filled in: chat messages a line each, whatever else is no text as Python shows it."""
    if is_chat(value):
        return as_text(value, turn=False)
    return value if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class GradingPrompt:
    """What the judge is asked, before anything is filled in."""

    messages: tuple[Message, ...]
    is_text: bool
    """One text rather than chat messages."""
    talks_on: bool = False
    """It goes on in the conversation with the tested model, whose answer it calls the last one (`out_message`)."""

    @classmethod
    def of(cls, given: Any, place: str, *, talks_on: bool = False) -> GradingPrompt:
        """Return the `prompt` of a spec, a text or chat messages; `place` begins errors. Raises SpecError."""
        if not (isinstance(given, str) or is_chat(given)):
            raise SpecError(f"{place}: 'prompt' is {type(given).__name__}; wanted a text or a list of chat messages")
        messages = tuple({key: str(value) for key, value in message.items()} for message in as_chat(given))
        return cls(messages, isinstance(given, str), talks_on)

    @property
    def names(self) -> frozenset[str]:
        """The placeholders in it."""
        return frozenset(name for message in self.messages for name in placeholders(message["content"]))

    def instructed(self, eval_type: str, choices: Sequence[str]) -> GradingPrompt:
        """Return the prompt with the instruction of `eval_type` below its last message."""
        *before, last = self.messages
        named = " or ".join(f'"{choice}"' for choice in choices)
        told = filled(INSTRUCTIONS[eval_type], {"choices": named})
        last = {**last, "content": f"{last['content']}\n\n{told}"}
        return GradingPrompt((*before, last), self.is_text, self.talks_on)

    def filled(self, values: Mapping[str, str], asked: Prompt, answered: str) -> Prompt:
        """Return what is put to the judge; `asked` and `answered` are what a conversation goes on from."""
        messages = [{**message, "content": filled(message["content"], values)} for message in self.messages]
        if self.talks_on:
            return [*as_chat(asked), {"role": "assistant", "content": answered}, *messages]
        return messages[0]["content"] if self.is_text else list(messages)
