"""A prompt's two shapes, text and chat messages, and the way from one to the other."""

from __future__ import annotations

from ..records import Message, Prompt

_SPEAKERS = {"system": "", "example_user": "User: ", "example_assistant": "Assistant: "}
"""How a rendered chat names who speaks, where it is not the role itself; few-shot examples have names."""


def as_text(prompt: Prompt, *, turn: bool = True) -> str:
    """Return `prompt` as one text, rendered as OpenAI Evals does: a lone message is its content.

    Of several each is a line behind its speaker, those of the system without one, and the assistant's `turn`
    stands at the end.
    """
    if isinstance(prompt, str):
        return prompt
    if len(prompt) == 1:
        return prompt[0]["content"]
    lines = [f"{_speaker(message)}{message['content']}\n" for message in prompt]
    return "".join([*lines, "Assistant:"] if turn else lines).lstrip()


def as_chat(prompt: Prompt) -> list[Message]:
    """Return `prompt` as chat messages: a text is one user message."""
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)


def _speaker(message: Message) -> str:
    name = message.get("name") or message["role"]
    return _SPEAKERS.get(name, f"{name.capitalize()}: ")
