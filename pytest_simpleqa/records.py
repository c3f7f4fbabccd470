"""The frozen values that travel through a run, and their JSON form both ways."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

Message = Mapping[str, str]
"""One chat message: `{"role": ..., "content": ...}`."""

Prompt = str | list[Message]
"""What a model completes: a text (sent as one user message) or chat messages."""


class Verdict(StrEnum):
    """What the judge found."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    NOT_ATTEMPTED = "not_attempted"
    RECORDED = "recorded"
    """A choice was kept that is neither right nor wrong (a model-graded eval without scores)."""

    def __repr__(self) -> str:  # short: a failing `assert` shows it
        return repr(self.value)


GRADED = (Verdict.CORRECT, Verdict.INCORRECT, Verdict.NOT_ATTEMPTED)
"""The verdicts on whether an answer is right: what a judge of questions gives, and what rates count."""


def text_hash(text: str) -> str:
    """Return the first 16 hex digits of SHA-256 over the NFC-normalised, outer-trimmed UTF-8 text."""
    normal = unicodedata.normalize("NFC", text).strip()
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Question:
    """One dataset row."""

    id: str
    """Unique in its dataset; ASCII letters, digits, `_` and `-` only."""
    problem: str
    """The question as it is asked."""
    answer: str
    """The gold answer, outer blanks trimmed."""
    topic: str | None = None
    answer_type: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False, hash=False)
    """Whatever else the row held; never needed for grading."""
    _fingerprint: str = field(default="", init=False, repr=False, compare=False)

    @property
    def question_hash(self) -> str:
        """Hash of the question's text: the same wherever the row stands."""
        return text_hash(self.problem)

    @property
    def gold_hash(self) -> str:
        """Hash of the gold answer's text."""
        return text_hash(self.answer)

    @property
    def fingerprint(self) -> str:
        """`question_hash-gold_hash`: what baselines, resume and replay pair by."""
        if not self._fingerprint:  # hashed once: it stands in every line of the run log
            object.__setattr__(self, "_fingerprint", f"{self.question_hash}-{self.gold_hash}")
        return self._fingerprint


@dataclass(frozen=True, slots=True)
class Dataset:
    """Questions in order, with the name and the hash of the file they came from."""

    name: str
    """The file's name (`simple_qa_test_set.csv`) or the known name (`sample`); never a path."""
    questions: tuple[Question, ...]
    sha256: str
    """Hash of the file's bytes as they lie on disk."""

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said to one prompt."""

    text: str
    """The reply without its `<think>` block."""
    raw: str | None = None
    """The reply as it came, where it differs from `text`."""
    finish_reason: str | None = None
    model: str | None = None
    """The model name that the service returned."""
    calls: int = 1
    """Requests sent for this reply, retries included; 0 for a recording."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float | None = None
    """Seconds of the successful request."""
    extra: Mapping[str, Any] | None = None
    """What else belongs to the reply (a trace, a confidence); plain JSON types."""
    notes: tuple[str, ...] = ()
    """What a reader should know of this reply: a dropped parameter, a capped text."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge made of one predicted answer: a verdict, or a failure that is not one."""

    verdict: Verdict | None
    reply: str | None = None
    """The judge's own words, where it has any."""
    error: Failure | None = None
    """Set when `verdict` is None."""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float | None = None
    model: str | None = None
    notes: tuple[str, ...] = ()
    extra: Mapping[str, Any] | None = None
    """What else belongs to the row (a choice, a score); plain JSON types; laid over what the answerer attached."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a row has no verdict."""

    kind: str
    message: str

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "message": self.message}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(str(data.get("kind", "unknown")), str(data.get("message", "")))


@dataclass(frozen=True, slots=True)
class Usage:
    """What one role (answer or judge) spent on one question."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float | None = None
    """Seconds of the successful request; None where there was none."""
    model: str | None = None
    """The model name that the service returned."""

    def __add__(self, other: Usage) -> Usage:
        """Return what both spent; seconds and model are those of `other`, where it has any."""
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.latency_s if other.latency_s is None else other.latency_s,
            other.model or self.model,
        )

    def to_json(self) -> list[Any]:
        return [self.calls, self.prompt_tokens, self.completion_tokens, self.latency_s, self.model]

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls(*data) if data else cls()


_REPR = 40
"""Characters of a text that a result shows of itself."""
_OF_THE_QUESTION = frozenset({"question", "gold", "topic", "answer_type", "fingerprint"})


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """Everything that one question produced.

    Exactly one of three holds: `verdict` is set; `error` is set and `predicted` is an answer (a
    judge failure); `error` is set and `predicted` is None (an answer error).
    """

    id: str
    question: str
    gold: str
    topic: str | None
    answer_type: str | None
    fingerprint: str
    repeat: int = 1
    predicted: str | None = None
    verdict: Verdict | None = None
    judge_reply: str | None = None
    error: Failure | None = None
    latency_s: float | None = None
    """Seconds from the question's first request to its last reply, waiting for a slot left out."""
    raw: str | None = None
    """The answer as it came, where it differs from `predicted` (a think block, a cap)."""
    notes: tuple[str, ...] = ()
    """What a reader should know of this row: capped texts, dropped parameters."""
    answer_usage: Usage = Usage()
    judge_usage: Usage = Usage()
    extra: Mapping[str, Any] | None = None
    """What the answerer attached (a trace, a confidence); plain JSON types."""

    def __repr__(self) -> str:  # short: a failing `assert` shows it
        said = "" if self.predicted is None else f", predicted {_short(self.predicted)}"
        why = f", {self.error.kind}: {_short(self.error.message)}" if self.error else ""
        return f"<{self.id} {self.status}: gold {_short(self.gold)}{said}{why}>"

    @property
    def is_judge_failure(self) -> bool:
        """The judge gave no usable verdict."""
        return self.verdict is None and self.predicted is not None

    @property
    def is_error(self) -> bool:
        """The answer model gave no usable answer."""
        return self.verdict is None and self.predicted is None

    @property
    def status(self) -> str:
        """`correct`, `incorrect`, `not_attempted`, `recorded`, `judge_failure` or `error`."""
        if self.verdict is not None:
            return self.verdict.value
        return "judge_failure" if self.predicted is not None else "error"

    @classmethod
    def for_question(cls, question: Question, repeat: int = 1, **values: Any) -> Self:
        """Make the result of `question` with `values` for the remaining fields."""
        return cls(
            id=question.id,
            question=question.problem,
            gold=question.answer,
            topic=question.topic,
            answer_type=question.answer_type,
            fingerprint=question.fingerprint,
            repeat=repeat,
            **values,
        )

    def to_sample(self) -> dict[str, Any]:
        """Return the row as it stands in `Report.samples`."""
        sample: dict[str, Any] = {
            "id": self.id,
            "topic": self.topic,
            "answer_type": self.answer_type,
            "question": self.question,
            "gold": self.gold,
            "predicted": self.predicted,
            "verdict": self.verdict.value if self.verdict else None,
            "fingerprint": self.fingerprint,
            "repeat": self.repeat,
            "judge_reply": self.judge_reply,
            "error": self.error.to_json() if self.error else None,
            "latency_s": self.latency_s,
        }
        if self.raw is not None:
            sample["raw"] = self.raw
        if self.notes:
            sample["notes"] = list(self.notes)
        if self.extra:
            sample["extra"] = dict(self.extra)
        return sample

    def to_json(self) -> dict[str, Any]:
        """Return the row in plain JSON types, losing nothing; `from_json` reads it back."""
        return {
            **self.to_sample(),
            "usage": [self.answer_usage.to_json(), self.judge_usage.to_json()],
        }

    def to_wire(self) -> dict[str, Any]:
        """Return what a process that knows the question has yet to learn; `from_wire` reads it back."""
        row = self.to_json()
        return {name: value for name, value in row.items() if value is not None and name not in _OF_THE_QUESTION}

    @classmethod
    def from_wire(cls, data: Mapping[str, Any], question: Question) -> Self:
        """Read what `to_wire` gave of a result of `question`."""
        own = {
            "question": question.problem,
            "gold": question.answer,
            "topic": question.topic,
            "answer_type": question.answer_type,
            "fingerprint": question.fingerprint,
        }
        return cls.from_json({**data, **own})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, or a row of `Report.samples`."""
        answer, judge = data.get("usage") or (None, None)
        verdict, error = data.get("verdict"), data.get("error")
        return cls(
            id=data["id"],
            question=data["question"],
            gold=data["gold"],
            topic=data.get("topic"),
            answer_type=data.get("answer_type"),
            fingerprint=data["fingerprint"],
            repeat=data.get("repeat", 1),
            predicted=data.get("predicted"),
            verdict=Verdict(verdict) if verdict else None,
            judge_reply=data.get("judge_reply"),
            error=Failure.from_json(error) if error else None,
            latency_s=data.get("latency_s"),
            raw=data.get("raw"),
            notes=tuple(data.get("notes") or ()),
            answer_usage=Usage.from_json(answer),
            judge_usage=Usage.from_json(judge),
            extra=data.get("extra"),
        )


def _short(text: str) -> str:
    return repr(text if len(text) <= _REPR else f"{text[: _REPR - 1]}…")
