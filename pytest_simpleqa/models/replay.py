"""Answers recorded earlier, given again: which recorded row belongs to which question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ModelError, SpecError
from ..records import Question, Reply, Verdict
from .columns import VERDICT_COLUMNS, Recorded, RecordedRow
from .recording import read_recording
from .reply import cut_thinking

_Hashes = tuple[str, str | None]


@dataclass(slots=True)
class _Slot:
    """The recorded askings of one dataset row, by repeat."""

    question_hash: str
    gold_hash: str | None
    id: str | None = None
    repeats: dict[int, RecordedRow] = field(default_factory=dict)


class Recording:
    """Recorded answers, and their verdicts where there are any, paired with questions.

    Rows pair by fingerprint, then by question alone (a changed gold; or a recording without golds);
    twins by occurrence, which `bind` counts in the dataset's order.
    """

    def __init__(self, recorded: Recorded) -> None:
        self.name = recorded.name
        self.has_verdicts = any(row.verdict for row in recorded.rows)
        self.warnings = recorded.warnings
        self._recorded = recorded
        self._by_question: dict[str, list[_Slot]] = defaultdict(list)
        for slot in _slots(recorded.rows):
            self._by_question[slot.question_hash].append(slot)
        self._repeated = any(row.repeat > 1 for row in recorded.rows)
        self._bound: dict[tuple[str, str], _Slot | None] = {}

    @classmethod
    def load(cls, argument: str, base: Path) -> Recording:
        """Return the recording behind `replay:ARGUMENT`, a path from `base`. Raises SpecError."""
        return cls(read_recording(argument, base))

    def bind(self, questions: Sequence[Question]) -> None:
        """Pair with a dataset's questions, all of them and in its order; may be called for several datasets."""
        same_question: dict[str, list[Question]] = defaultdict(list)
        for question in questions:
            same_question[question.question_hash].append(question)
        for question_hash, twins in same_question.items():
            for twin, slot in zip(twins, _pair(twins, self._by_question.get(question_hash, ())), strict=True):
                self._bound[twin.id, twin.fingerprint] = slot

    def row(self, question: Question, repeat: int = 1) -> RecordedRow | None:
        """Return what was recorded of this asking; a recording without repeats serves every repeat."""
        slot = self._slot(question)
        if slot is None:
            return None
        return slot.repeats.get(repeat if self._repeated else 1)

    def gold_changed(self, question: Question) -> bool:
        """Tell whether the answer was recorded for another gold, so that its verdict says nothing now."""
        slot = self._slot(question)
        return slot is not None and slot.gold_hash not in (None, question.gold_hash)

    def recorded_verdict(self, question: Question, repeat: int = 1) -> Verdict | None:
        """Return the recorded verdict; None where there is none, or where the gold has changed since."""
        row = self.row(question, repeat)
        return None if row is None or self.gold_changed(question) else row.verdict

    def require_pairs(self) -> None:
        """Raise SpecError where questions were bound and not one of them was recorded."""
        if self._bound and not any(self._bound.values()):
            raise SpecError(
                f"replay:{self.name}: none of its {len(self._recorded.rows):,} rows answers a question of this dataset"
            )

    def require_verdicts(self) -> None:
        """Raise SpecError unless verdicts were recorded: what a judge needs."""
        if self.has_verdicts:
            return
        start = f"replay:{self.name}: "
        column = self._recorded.verdict_column
        if column:
            raise SpecError(f"{start}the column '{column}' holds no verdict; wanted A, B, C or the words")
        found, accepted = ", ".join(self._recorded.columns), ", ".join(VERDICT_COLUMNS)
        raise SpecError(f"{start}no column of verdicts to judge by; found {found}; accepted are {accepted}")

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of the recording."""
        return {
            "provider": "replay",
            "model": self.name,
            "base_url_host": None,
            "params": {},
            "rows": len(self._recorded.rows),
            "sha256": self._recorded.sha256,
        }

    def missing(self, question: Question, row: RecordedRow | None) -> str:
        """Return why there is no answer to `question`, in one line."""
        if row is not None:
            return f"{self.name} recorded no answer to this question" + (f" ({row.error})" if row.error else "")
        if question.question_hash in self._by_question:
            return f"{self.name} has fewer answers to this question than it is asked times"
        left_out = self._recorded.left_out
        hint = f" (it keeps {len(self._recorded.rows)} rows and leaves {left_out} out: replay its run directory)"
        return f"{self.name} has no answer to this question" + (hint if left_out else "")

    def _slot(self, question: Question) -> _Slot | None:
        key = question.id, question.fingerprint
        if key not in self._bound:
            self.bind([question])  # asked outside of a dataset: the first of its twins
        return self._bound[key]


class ReplayAnswerer:
    """Answers from a recording."""

    max_in_flight: int | None = None
    is_service = False

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    async def answer(self, question: Question, repeat: int) -> Reply:
        """Return the recorded answer, an empty one too; raise ModelError `missing` where there is none."""
        row = self.recording.row(question, repeat)
        if row is None or row.predicted is None:
            raise ModelError("missing", self.recording.missing(question, row), calls=0)
        text, left_open = cut_thinking(row.predicted)
        if left_open:
            message = f"{self.recording.name}: the recorded answer ends inside its <think> block"
            raise ModelError("truncated", message, calls=0)
        raw = row.raw if row.raw is not None else row.predicted
        return Reply(text, raw=None if raw == text else raw, calls=0, extra=row.extra)

    async def close(self) -> None:
        """Nothing is open."""

    def describe(self) -> Mapping[str, Any]:
        """Return what the Report says of the recording."""
        return self.recording.describe()


def _slots(rows: Iterable[RecordedRow]) -> Iterable[_Slot]:
    """Return the rows as slots in recorded order; repeats of one id share a slot."""
    named: dict[tuple[str, _Hashes], _Slot] = {}
    slots = []
    for row in rows:
        hashes = row.question_hash, row.gold_hash
        slot = named.get((row.id, hashes)) if row.id is not None else None
        if slot is None or row.repeat in slot.repeats:
            slot = _Slot(*hashes, row.id)
            slots.append(slot)
            if row.id is not None:
                named[row.id, hashes] = slot
        slot.repeats[row.repeat] = row
    return slots


def _pair(twins: Sequence[Question], slots: Sequence[_Slot]) -> list[_Slot | None]:
    """Return the slot of each of the questions, which all have the same text.

    The same row of the same dataset comes first, then equal golds, then whatever is left; each in order.
    """
    free = list(slots)
    paired: list[_Slot | None] = [None] * len(twins)
    fits: list[Callable[[Question, _Slot], bool]] = [
        lambda twin, slot: slot.gold_hash == twin.gold_hash and slot.id == twin.id,
        lambda twin, slot: slot.gold_hash == twin.gold_hash,
        lambda twin, slot: True,
    ]
    for fit in fits:
        for index, twin in enumerate(twins):
            if paired[index] is None:
                paired[index] = _take(free, partial(fit, twin))
    return paired


def _take(free: list[_Slot], fit: Callable[[_Slot], bool]) -> _Slot | None:
    found = next((index for index, slot in enumerate(free) if fit(slot)), None)
    return None if found is None else free.pop(found)
