"""Datasets: rows of a file become questions with stable ids, and a selection of them the population."""

from __future__ import annotations

import difflib
import os
import random
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from .download import dataset_name, fetch
from .errors import DatasetError
from .records import Dataset, Question
from .rows import BadRowError, Cells, RowFile, kind_of, listing, load_mapping, read_rows, text_of

__all__ = ["DatasetWarning", "dataset_name", "fetch", "load_dataset", "read_dataset", "select", "slug"]

# Accepted column names, any case. Where a file has several for one field, the first in this order is taken
# and the others stay in the metadata: `answer` before `target`, never a model's `predicted_answer`.
_ALIASES = {
    "id": ("id",),
    "problem": ("problem", "question", "input"),
    "answer": ("answer", "target", "gold", "true_answer", "ideal"),
    "topic": ("topic", "primary_category", "category"),
    "answer_type": ("answer_type",),
    "metadata": ("metadata",),
}
_UNSPECIFIED = "(unspecified)"
_LONGEST_ID = 80


class DatasetWarning(UserWarning):
    """A dataset that can be used has something that its owner should know."""


def load_dataset(source: str | Path) -> Dataset:
    """Fetch and read `source`: a file, an `https://` URL, `sample` or `simpleqa`; raises DatasetError."""
    text = os.fspath(source)
    return read_dataset(fetch(text, base=Path.cwd()), dataset_name(text))


def read_dataset(path: Path, name: str | None = None) -> Dataset:
    """Read a local file as the dataset `name` (default: the file's name).

    Raises DatasetError for a file, header or row that cannot be read, and issues one DatasetWarning
    where a row stands twice.
    """
    file = read_rows(path, name or dataset_name(path.name), frozenset(_ALIASES["problem"]))
    ids = _Ids()
    questions, numbers = [], []
    for ordinal, (number, cells) in enumerate(file.rows, 1):
        try:
            questions.append(_question(ordinal, cells, ids))
        except BadRowError as error:
            raise DatasetError(f"{file.place(number)}: {error}") from None
        numbers.append(number)
    if not questions:
        raise DatasetError(f"{file.name}: the file holds no questions")
    _warn_of_twins(file, questions, numbers)
    return Dataset(name=file.name, questions=tuple(questions), sha256=file.sha256)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which column of a row holds which field."""

    problem: str
    answer: str
    id: str | None
    topic: str | None
    answer_type: str | None
    metadata: str | None
    others: tuple[str, ...]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, columns: tuple[str, ...]) -> _Layout:
        """Find the fields among `columns`; raises BadRowError where question or gold has none."""
        plain: dict[str, str] = {}
        for column in columns:
            plain.setdefault(column.strip().casefold(), column)
        found = {
            field: next((plain[alias] for alias in aliases if alias in plain), None)
            for field, aliases in _ALIASES.items()
        }
        problem, answer = found.pop("problem"), found.pop("answer")
        if problem is None or answer is None:
            raise BadRowError(
                f"no column holds {'the question' if problem is None else 'the gold answer'}; "
                f"found {listing(columns) or 'none'}; accepted, any case: {', '.join(_ALIASES['problem'])} "
                f"for the question and {', '.join(_ALIASES['answer'])} for the gold answer"
            )
        taken = {problem, answer, *found.values()}
        others = tuple(column for column in columns if column not in taken)
        return cls(problem=problem, answer=answer, **found, others=others)


def _question(ordinal: int, cells: Cells, ids: _Ids) -> Question:
    """Make the question of one row, the `ordinal`-th of its file; raises BadRowError."""
    layout = _Layout.of(tuple(cells))
    metadata = _metadata(layout.metadata, cells)
    metadata.update((column, cells[column]) for column in layout.others)
    topic = _label(cells[layout.topic]) if layout.topic else None
    answer_type = _label(cells[layout.answer_type]) if layout.answer_type else None
    own_id = text_of(cells[layout.id]) if layout.id else None
    return Question(
        id=ids.take(own_id, ordinal),
        problem=_problem(layout.problem, cells[layout.problem], metadata),
        answer=_gold(layout.answer, cells[layout.answer], metadata),
        topic=topic or _label(metadata.pop("topic", None)),
        answer_type=answer_type or _label(metadata.pop("answer_type", None)),
        metadata=metadata,
    )


def _metadata(column: str | None, cells: Cells) -> dict[str, Any]:
    """Return what the metadata cell holds, as a dict that the row may add to."""
    cell = cells[column] if column else None
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return {}
    try:
        return dict(load_mapping(cell))
    except BadRowError as error:
        raise BadRowError(f"the cell {column!r}: {error}") from None


def _problem(column: str, cell: Any, metadata: dict[str, Any]) -> str:
    """Return the question's text; of chat messages the last one of the user, the list kept as metadata `input`."""
    if isinstance(cell, list):
        metadata["input"] = cell
        cell = _last_message(cell)
    return _text(column, cell, "a question")


def _last_message(messages: list[Any]) -> Any:
    """Return the content of the user's last message, else of the last one; text parts are joined."""
    known = [message for message in messages if isinstance(message, dict)]
    asked = [message for message in known if message.get("role") == "user"] or known
    content = asked[-1].get("content") if asked else None
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content


def _gold(column: str, cell: Any, metadata: dict[str, Any]) -> str:
    """Return the gold answer, outer blanks trimmed; of a list the first, all of them kept as metadata `ideal`."""
    if isinstance(cell, list):
        metadata["ideal"] = cell
        cell = cell[0] if cell else None
    return _text(column, cell, "a gold answer").strip()


def _text(column: str, cell: Any, wanted: str) -> str:
    """Return the text of a cell that must have one; raises BadRowError."""
    text = text_of(cell)
    if text is None or not text.strip():
        found = f"holds {kind_of(cell)}" if text is None and cell else "is empty"
        raise BadRowError(f"the cell {column!r} {found}; {wanted} was wanted")
    return text


def _label(value: Any) -> str | None:
    """Return a topic or answer type, None where it is missing or blank."""
    return (text_of(value) or "").strip() or None


class _Ids:
    """Gives every row an id of its own: the row's, made safe, else by its number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._copies: dict[str, int] = {}

    def take(self, own: str | None, ordinal: int) -> str:
        """Return `own` or `q0001`...; where it is taken, with the suffix `-2`, `-3` and so on."""
        wanted = re.sub(r"[^A-Za-z0-9_-]", "_", (own or "").strip())[:_LONGEST_ID] or f"q{ordinal:04d}"
        candidate = wanted
        while candidate in self._taken:
            self._copies[wanted] = self._copies.get(wanted, 1) + 1
            candidate = f"{wanted}-{self._copies[wanted]}"
        self._taken.add(candidate)
        return candidate


def _warn_of_twins(file: RowFile, questions: list[Question], numbers: list[int]) -> None:
    """Warn once if a question stands twice with the same gold."""
    first: dict[tuple[str, str], int] = {}
    twins = []
    for number, question in zip(numbers, questions, strict=True):
        earlier = first.setdefault((question.problem.strip(), question.answer), number)
        if earlier != number:
            twins.append((number, earlier))
    if twins:
        number, earlier = twins[0]
        message = (
            f"{file.place(number)}: the same question and gold as in {file.unit} {earlier}; twins in all: "
            f"{len(twins):,}; each is asked, under an id of its own"
        )
        warnings.warn(message, DatasetWarning, stacklevel=3)


def select(
    dataset: Dataset,
    *,
    limit: int = 0,
    sample: int = 0,
    seed: int = 0,
    topics: Collection[str] = (),
    shard: tuple[int, int] = (1, 1),
) -> Dataset:
    """Return the population: of the `topics` a seeded `sample`, of that the first `limit`, of those the shard I of N.

    Dataset order, name and hash stay; 0 means all. The same in every process. Raises DatasetError.
    """
    part, parts = shard
    if not 1 <= part <= parts:
        raise DatasetError(f"shard {part}/{parts} found, I/N with 1 <= I <= N wanted")
    if limit < 0 or sample < 0:
        raise DatasetError(f"limit {limit} and sample {sample} found, 0 (all) or more wanted")
    questions = _of_topics(dataset, topics) if topics else list(dataset.questions)
    if 0 < sample < len(questions):
        questions = [questions[index] for index in sorted(random.Random(seed).sample(range(len(questions)), sample))]
    return replace(dataset, questions=tuple(questions[: limit or None][part - 1 :: parts]))


def _of_topics(dataset: Dataset, topics: Iterable[str]) -> list[Question]:
    """Return the questions of the named topics, any case; `(unspecified)` are those without one."""
    present = {_plain(question.topic): question.topic or _UNSPECIFIED for question in reversed(dataset.questions)}
    wanted = {_plain(topic): topic for topic in topics}
    for plain, topic in wanted.items():
        if plain not in present:
            near = difflib.get_close_matches(plain, present, n=1)
            hint = f" (did you mean {present[near[0]]!r}?)" if near else ""
            raise DatasetError(
                f"{dataset.name} has no topic {topic!r}{hint}; it has {listing(sorted(present.values()), most=20)}"
            )
    return [question for question in dataset.questions if _plain(question.topic) in wanted]


def _plain(topic: str | None) -> str:
    return unicodedata.normalize("NFC", topic or _UNSPECIFIED).strip().casefold()


def slug(text: str) -> str:
    """Return a label as a keyword for `-k`: `TV shows` gives `tv_shows`; letters of all scripts are kept."""
    return re.sub(r"\W+", "_", unicodedata.normalize("NFC", text).casefold()).strip("_")
