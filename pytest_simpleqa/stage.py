"""What the engine is given: a question to be put, and the run's part of it, with who answers and who judges."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .judges.protocol import Judge
from .models.protocol import Answerer
from .records import Question, Reply
from .runlog import Key, Log, Row

Place = tuple[str, str, int, str, str | None]
"""What names one piece of work in the engine: `(run, question id, repeat, part, text to be judged)`."""


class Ask(NamedTuple):
    """One question to be put once; `repeat` counts from 1."""

    question: Question
    repeat: int = 1
    run: str = ""
    """The run that it belongs to: the name of its stage."""
    part: Literal["pair", "answer", "verdict"] = "pair"
    """What is wanted: an answer and its verdict, or one of them."""
    reply: Reply | None = None
    """The answer that is to be judged, where only a verdict is wanted."""

    @property
    def key(self) -> Key:
        return self.question.id, self.repeat

    @property
    def place(self) -> Place:
        return self.run, self.question.id, self.repeat, self.part, None if self.reply is None else self.reply.text


@dataclass(frozen=True)
class Stage:
    """One run's part of the engine: who answers, who judges, and what is kept and known of its rows."""

    answerer: Answerer
    judge: Judge
    timeout: float
    """Seconds that one question may spend; 0 = any."""
    names: tuple[str, str] = ("the answer model", "the judge")
    """How messages call both; stages that name the same one share what is learnt of it."""
    answer_limit: int | None = None
    """Requests at once to the answer model; None where it sets no bound."""
    judge_limit: int | None = None
    log: Log | None = None
    known: dict[Key, Row] = field(default_factory=dict)
    """Rows of the run log: what is finished is not asked again."""
    answered: dict[Key, tuple[Reply, float]] = field(default_factory=dict)
    """Answers that stand in the log and wait for somebody to want a verdict; with the seconds spent."""
    turns: defaultdict[Key, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """One verdict at a time on the texts that a test brings: what is graded last ends the log."""
