"""What a call report carries of a question, and how it crosses from a worker."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .records import Question, QuestionResult


@dataclass(frozen=True, slots=True)
class Payload:
    """One question's result, on the report of its item."""

    run: str
    result: QuestionResult
    limit: int = 0
    """Pairs that may be in flight now in the process that asked."""

    def packed(self) -> str:
        """Return it as one ASCII text: half a surrogate pair or an odd type would end an xdist worker."""
        return json.dumps({"run": self.run, "limit": self.limit, "result": self.result.to_wire()})


@dataclass(frozen=True, slots=True)
class PackedPayload:
    """A payload on this side of the wire, its question yet to be found."""

    run: str
    limit: int
    row: dict[str, Any]

    @classmethod
    def read(cls, text: str) -> PackedPayload:
        """Read what `Payload.packed` gave."""
        data = json.loads(text)
        return cls(data["run"], data["limit"], data["result"])

    @property
    def key(self) -> tuple[str, int]:
        return self.row["id"], self.row["repeat"]

    def opened(self, question: Question) -> Payload:
        """Return the payload, its question put back."""
        return Payload(self.run, QuestionResult.from_wire(self.row, question), self.limit)
