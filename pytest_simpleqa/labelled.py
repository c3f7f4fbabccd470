"""Answers with labels to hold a judge against: a table with human verdicts, or an earlier run with its own."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .dataset import dataset_name
from .errors import DatasetError, RunError
from .keptrun import find_path, read_kept_run
from .models.columns import GOLD_COLUMNS, PREDICTED_COLUMNS, QUESTION_COLUMNS, column_name
from .records import GRADED, Question, Verdict
from .reportfile import read_report
from .rows import Cells, read_rows, text_of
from .wording import many

LABEL_COLUMNS = ("human_verdict", "human_label", "human", "acceptable", "label", "verdict", "grade")

_YES_NO = {
    **dict.fromkeys(("yes", "true", "1", "acceptable"), Verdict.CORRECT),
    **dict.fromkeys(("no", "false", "0", "unacceptable"), Verdict.INCORRECT),
}
_VERDICTS = {
    "a": Verdict.CORRECT,
    "b": Verdict.INCORRECT,
    "c": Verdict.NOT_ATTEMPTED,
    **{verdict.value.replace("_", " "): verdict for verdict in GRADED},
}


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """One predicted answer, and what the label says of it."""

    question: Question
    """With an id of its own in the file: several answers to one question are several rows."""
    predicted: str
    label: Verdict | None
    """None where the row has no label."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a labelled file holds."""

    name: str
    answers: tuple[LabelledAnswer, ...]
    is_yes_no: bool
    """The labels tell right from wrong alone, so an answer that is not attempted is not right."""
    notes: tuple[str, ...] = ()


def read_labelled(word: str, base: Path, *, column: str | None = None, dataset: str | None = None) -> Labelled:
    """Return the answers of a table or of an earlier run; `column` names that of the labels.

    A table without golds is its own reference: see `_with_golds`. Raises SimpleQAError.
    """
    path = find_path(word, base)
    if column is None and (path.is_dir() or _is_report(path)):
        return _from_run(word, base, dataset)
    name, unit, found = _read_rows(path)
    rows = [(number, {_plain(key): cell for key, cell in cells.items()}) for number, cells in found]
    if not rows:
        raise RunError(f"{name}: there is no row in it")
    columns = _Columns.of(name, tuple(dict.fromkeys(key for _, cells in rows for key in cells)), column)
    words = {number: _word(cells.get(columns.label)) for number, cells in rows}
    is_yes_no = any(word in _YES_NO for word in words.values())
    known = _YES_NO if is_yes_no else _VERDICTS
    answers, without = [], 0
    for ordinal, (number, cells) in enumerate(rows, start=1):
        if words[number] and words[number] not in known:
            wanted = "Yes or No" if is_yes_no else "A, B, C, the words of the verdicts, or Yes and No"
            raise RunError(f"{name}, {unit} {number}: the label is {cells[columns.label]!r}; wanted {wanted}")
        problem = text_of(cells.get(columns.question)) or ""
        if not problem.strip():
            raise RunError(f"{name}, {unit} {number}: the cell {columns.question!r} is empty")
        predicted = text_of(cells.get(columns.predicted))
        if predicted is None:
            without += 1
            continue
        gold = (text_of(cells.get(columns.gold)) or "").strip() if columns.gold else ""
        answers.append(LabelledAnswer(Question(f"q{ordinal:04}", problem, gold), predicted, known.get(words[number])))
    notes = [f"{many(without, 'row')} without an answer left out"] if without else []
    return _finished(Labelled(name, tuple(answers), is_yes_no, tuple(notes)))


def _read_rows(path: Path) -> tuple[str, str, list[tuple[int, Cells]]]:
    """Return the file's name, what its rows are counted in, and the rows. Raises DatasetError."""
    if (systems := _systems(path)) is not None:
        return path.name, "row", systems
    file = read_rows(path, path.name, frozenset(QUESTION_COLUMNS))
    try:
        return file.name, file.unit, list(file.rows)
    except DatasetError:
        if found := _unquoted(path):
            return file.name, "row", found
        raise


def _systems(path: Path) -> list[tuple[int, Cells]] | None:
    """Return the records of a JSON file that keeps several systems, the one behind `#`; None for any other file."""
    file, _, wanted = (str(path), "", "") if path.exists() else str(path).rpartition("#")
    try:
        content = json.loads(Path(file).read_text("utf-8-sig")) if file.endswith(".json") else None
    except (OSError, ValueError, RecursionError):
        return None
    systems = content.get("systems") if isinstance(content, dict) else None
    if not isinstance(systems, dict):
        return None
    name = wanted or (next(iter(systems)) if len(systems) == 1 else "")
    records = systems[name].get("records") if isinstance(systems.get(name), dict) else None
    if not isinstance(records, list):
        raise RunError(f"{path.name}: choose one of {', '.join(f'{Path(file).name}#{key}' for key in systems)}")
    return [(number, record) for number, record in enumerate(records, start=1) if isinstance(record, dict)]


def _unquoted(path: Path) -> list[tuple[int, Cells]]:
    """Return the rows of a TSV whose quotes are text, as many tools write it; none where that cannot be."""
    if path.suffix.lower() != ".tsv":
        return []
    lines = [line.split("\t") for line in path.read_text("utf-8-sig").replace("\r\n", "\n").split("\n") if line]
    header = lines[0]
    if any(len(line) != len(header) for line in lines):
        return []
    return [(number, dict(zip(header, line, strict=True))) for number, line in enumerate(lines[1:], start=1)]


# -- columns --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Columns:
    question: str
    gold: str | None
    predicted: str
    label: str

    @classmethod
    def of(cls, name: str, found: Sequence[str], label: str | None) -> _Columns:
        """Find the fields among the columns. Raises RunError, naming what was found."""

        def first(accepted: Iterable[str]) -> str | None:
            return next((column for column in accepted if column in found), None)

        predicted, gold = first(PREDICTED_COLUMNS), first(GOLD_COLUMNS)
        if predicted is None and "answer" in found:  # the model's, where the gold has a column of its own
            predicted, gold = "answer", first(GOLD_COLUMNS[1:])
        labels = (_plain(label),) if label else LABEL_COLUMNS
        fields = {
            "questions": (first(QUESTION_COLUMNS), QUESTION_COLUMNS),
            "predicted answers": (predicted, PREDICTED_COLUMNS),
            "labels": (first(labels), labels),
        }
        for what, (column, accepted) in fields.items():
            if column is None:
                hint = "; or name it with --label-column" if what == "labels" and not label else ""
                raise RunError(
                    f"{name}: no column of {what}; found {', '.join(found)}; accepted are {', '.join(accepted)}{hint}"
                )
        return cls(str(fields["questions"][0]), gold, str(predicted), str(fields["labels"][0]))


def _plain(column: str) -> str:
    return column_name(column).rstrip("?")


def _word(cell: Any) -> str:
    """Return a label's word, `not attempted` however it is written."""
    return " ".join((text_of(cell) or "").casefold().replace("_", " ").replace("-", " ").split())


# -- golds ----------------------------------------------------------------------------------------


def _finished(labelled: Labelled) -> Labelled:
    answers = [each for each in labelled.answers if each.question.answer]
    left_out = len(labelled.answers) - len(answers)
    if not answers:
        return _with_golds(labelled)
    notes = (f"{many(left_out, 'row')} without a gold left out",) if left_out else ()
    return replace(labelled, answers=tuple(answers), notes=(*labelled.notes, *notes))


def _with_golds(labelled: Labelled) -> Labelled:
    """Hold each answer against the shortest of the other answers to its question that are labelled as correct."""
    accepted: dict[str, list[LabelledAnswer]] = defaultdict(list)
    for each in labelled.answers:
        if each.label == Verdict.CORRECT and each.predicted.strip():
            accepted[each.question.question_hash].append(each)
    answers = []
    for each in labelled.answers:
        others = (other for other in accepted[each.question.question_hash] if other is not each)
        gold = min(others, key=lambda other: len(other.predicted), default=None)
        if gold is not None:
            answers.append(replace(each, question=replace(each.question, answer=gold.predicted.strip())))
    if not answers:
        raise RunError(f"{labelled.name}: no column of golds; accepted are {', '.join(GOLD_COLUMNS)}")
    left_out = len(labelled.answers) - len(answers)
    note = "there are no golds: each answer is held against the shortest other one that the labels accept"
    without = f"; {many(left_out, 'row')} without such a one left out" if left_out else ""
    return replace(labelled, answers=tuple(answers), notes=(*labelled.notes, note + without))


# -- an earlier run -------------------------------------------------------------------------------


def _is_report(path: Path) -> bool:
    try:
        return path.suffix == ".json" and bool(read_report(path))
    except RunError:
        return False


def _from_run(word: str, base: Path, dataset: str | None) -> Labelled:
    kept = read_kept_run(word, base, dataset)
    results = [result for result in kept.results if result.predicted is not None]
    if not results:
        raise RunError(f"{word}: it keeps no answers; run with --simpleqa-max-samples=-1, or give its run directory")
    notes = list(kept.notes)
    if len(kept.results) < kept.report.n:
        notes.append(f"the Report keeps {len(kept.results):,} of its {kept.report.n:,} rows")
    answers = tuple(
        LabelledAnswer(
            Question(f"q{number:04}", result.question, result.gold),
            result.predicted or "",
            result.verdict if result.verdict in GRADED else None,
        )
        for number, result in enumerate(results, start=1)
    )
    return Labelled(dataset_name(kept.path.name), answers, is_yes_no=False, notes=tuple(notes))
