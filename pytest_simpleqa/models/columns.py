"""What the columns of a recording mean: records with cells become recorded rows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import SpecError
from ..records import Verdict, text_hash
from ..trust import SENTINEL
from .reply import plain_text

QUESTION_COLUMNS = ("problem", "question", "input", "prompt")
GOLD_COLUMNS = ("answer", "target", "gold", "true_answer", "ideal")
PREDICTED_COLUMNS = (
    "predicted",
    "predicted_answer",
    "prediction",
    "response",
    "completion",
    "model_answer",
    "output",
)
VERDICT_COLUMNS = ("verdict", "grade", "label")
CONFIDENCE_COLUMNS = ("confidence", "trustworthiness_score")

_VERDICTS = {
    "a": Verdict.CORRECT,
    "b": Verdict.INCORRECT,
    "c": Verdict.NOT_ATTEMPTED,
    "correct": Verdict.CORRECT,
    "incorrect": Verdict.INCORRECT,
    "not attempted": Verdict.NOT_ATTEMPTED,
    "recorded": Verdict.RECORDED,
}


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One recorded asking."""

    question_hash: str
    gold_hash: str | None
    """None where the recording holds no golds."""
    predicted: str | None
    """None where no answer was recorded."""
    raw: str | None = None
    verdict: Verdict | None = None
    judge_reply: str | None = None
    """The judge's own words, or the verdict's cell where it could not be read."""
    error: str | None = None
    """`kind: message` of a row that has no answer or no verdict."""
    extra: Mapping[str, Any] | None = None
    """What was attached to the answer; `confidence` from a column of its own."""
    judged: Mapping[str, Any] | None = None
    """What was attached to the verdict, where the two are told apart: in a run directory."""
    id: str | None = None
    """Set together with `repeat`, by our own files."""
    repeat: int = 1
    question: str | None = None
    """The texts of question and gold, where the recording has them."""
    gold: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a file held."""

    name: str
    """The file's name, with `#system` where one was chosen; never a path."""
    rows: tuple[RecordedRow, ...]
    columns: tuple[str, ...]
    verdict_column: str | None
    sha256: str | None
    """Hash of the file's bytes; None for a run directory."""
    warnings: tuple[str, ...] = ()
    left_out: int = 0
    """Rows that the recorded run had and this file does not keep."""


@dataclass(frozen=True, slots=True)
class _Columns:
    question: str | None
    gold: str | None
    predicted: str
    verdict: str | None
    confidence: str | None
    has_fingerprints: bool
    has_repeats: bool


def recorded_rows(
    name: str,
    records: list[dict[str, Any]],
    sha256: str | None,
    warnings: Iterable[str] = (),
    left_out: int = 0,
) -> Recorded:
    """Return `records` (cells by column, as JSON has them) as rows. Raises SpecError, naming what was found."""
    if not records:
        raise SpecError(f"replay:{name}: there is no row in it")
    names = tuple(dict.fromkeys(key for record in records for key in record))
    columns = _columns(name, names)
    rows = tuple(_row(name, number, record, columns) for number, record in enumerate(records, start=1))
    return Recorded(name, rows, names, columns.verdict, sha256, tuple(warnings), left_out)


def _columns(name: str, names: tuple[str, ...]) -> _Columns:
    def first(accepted: tuple[str, ...]) -> str | None:
        return next((column for column in accepted if column in names), None)

    question, predicted, gold = first(QUESTION_COLUMNS), first(PREDICTED_COLUMNS), first(GOLD_COLUMNS)
    if predicted is None and "answer" in names:  # `answer` is the model's where the gold has a column of its own
        gold = first(GOLD_COLUMNS[1:])
        predicted = "answer" if gold else None
    has_fingerprints = "fingerprint" in names
    if predicted is None:
        raise SpecError(_lacks(name, "predicted answers", PREDICTED_COLUMNS, names))
    if question is None and not has_fingerprints:
        raise SpecError(_lacks(name, "questions", QUESTION_COLUMNS, names))
    has_repeats = {"id", "repeat"} <= set(names)
    return _Columns(
        question, gold, predicted, first(VERDICT_COLUMNS), first(CONFIDENCE_COLUMNS), has_fingerprints, has_repeats
    )


def _lacks(name: str, what: str, accepted: tuple[str, ...], found: tuple[str, ...]) -> str:
    return f"replay:{name}: no column of {what}; found {', '.join(found)}; accepted are {', '.join(accepted)}"


def _row(name: str, number: int, record: Mapping[str, Any], columns: _Columns) -> RecordedRow:
    question = _text(record.get(columns.question)) if columns.question else None
    gold = _text(record.get(columns.gold)) if columns.gold else None
    question_hash, gold_hash = _hashes(name, number, record, columns, question, gold)
    verdict_cell = _text(record.get(columns.verdict)) if columns.verdict else None
    verdict = _VERDICTS.get(_verdict_word(verdict_cell or ""))
    error = record.get("error")
    return RecordedRow(
        question_hash,
        gold_hash,
        _text(record.get(columns.predicted)),
        raw=_text(record.get("raw")),
        verdict=verdict,
        judge_reply=_text(record.get("judge_reply")) or verdict_cell or None,
        error=f"{error.get('kind')}: {error.get('message')}" if isinstance(error, dict) else None,
        extra=_extra(record, columns),
        judged=_kept(record.get("judged")) or None,
        id=str(record.get("id")) if columns.has_repeats else None,
        repeat=_repeat(name, number, record) if columns.has_repeats else 1,
        question=question,
        gold=gold,
    )


def _hashes(
    name: str, number: int, record: Mapping[str, Any], columns: _Columns, question: str | None, gold: str | None
) -> tuple[str, str | None]:
    fingerprint = record.get("fingerprint")
    if isinstance(fingerprint, str) and fingerprint.count("-") == 1:
        question_hash, _, gold_hash = fingerprint.partition("-")
        return question_hash, gold_hash
    if question is None or not question.strip():
        raise SpecError(f"replay:{name}, row {number}: the cell {columns.question or 'fingerprint'!r} is empty")
    return text_hash(question), None if gold is None else text_hash(gold)


def _repeat(name: str, number: int, record: Mapping[str, Any]) -> int:
    try:
        return int(record.get("repeat") or 1)
    except (TypeError, ValueError):
        raise SpecError(f"replay:{name}, row {number}: the cell 'repeat' is no whole number") from None


def _extra(record: Mapping[str, Any], columns: _Columns) -> dict[str, Any] | None:
    kept = _kept(record.get("extra"))
    if columns.confidence is not None:
        try:
            confidence = float(record.get(columns.confidence, ""))
        except (TypeError, ValueError):
            confidence = math.nan
        if math.isfinite(confidence):
            kept["confidence"] = confidence
    return kept or None


def _kept(extra: Any) -> dict[str, Any]:
    """Return what was attached, but for what tells of the judge of then."""
    return {key: value for key, value in extra.items() if key != SENTINEL} if isinstance(extra, dict) else {}


def column_name(cell: str) -> str:
    """Return a header cell as our tables name it: `Predicted Answer` is `predicted_answer`."""
    return "_".join(cell.strip().lower().replace("-", " ").split())


def _verdict_word(cell: str) -> str:
    return " ".join(cell.lower().replace("_", " ").replace("-", " ").split())


def _text(value: Any) -> str | None:
    """Return a cell as text: text stays text, other JSON values are written as JSON, null is None."""
    if value is None:
        return None
    return plain_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
