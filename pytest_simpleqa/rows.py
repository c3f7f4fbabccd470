"""What lies in a dataset file: CSV, TSV, JSON Lines or JSON, as rows of named cells that know their place."""

from __future__ import annotations

import ast
import contextlib
import csv
import hashlib
import io
import json
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .errors import DatasetError

Cells = Mapping[str, Any]
"""One row: column to cell. In CSV and TSV every cell is text."""

FORMATS = (".csv", ".tsv", ".jsonl", ".json")
"""Readable extensions; each may be followed by `.gz`."""

_GZIP_MAGIC = b"\x1f\x8b"
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class BadRowError(ValueError):
    """What is wrong with one row; whoever knows the place adds it."""


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file's rows, read one by one, and the hash of its bytes."""

    name: str
    """What errors call the file."""
    sha256: str
    unit: str
    """What a row is counted in: `row` (data rows), or `line` (lines of the file)."""
    rows: Iterator[tuple[int, Cells]]

    def place(self, number: int) -> str:
        """Return where a row stands, as errors begin."""
        return f"{self.name}, {self.unit} {number}"


def read_rows(path: Path, name: str, question_columns: AbstractSet[str]) -> RowFile:
    """Open the file `path`, called `name` in errors.

    `question_columns` are the columns by which the list of rows is known inside a JSON object.
    Raises DatasetError, also while the rows are read.
    """
    extension = _extension(path)
    if extension not in FORMATS:
        wanted = ", ".join(FORMATS)
        raise DatasetError(f"{name}: the format {extension!r} is unknown; {wanted} can be read, each also with .gz")
    data = _read_bytes(path, name)
    readers: dict[str, Callable[[str, str], Iterator[tuple[int, Cells]]]] = {
        ".csv": partial(_table, delimiter=","),
        ".tsv": partial(_table, delimiter="\t"),
        ".jsonl": _json_lines,
        ".json": partial(_json_array, question_columns=question_columns),
    }
    unit = "line" if extension == ".jsonl" else "row"
    return RowFile(name, hashlib.sha256(data).hexdigest(), unit, readers[extension](_decode(data, name), name))


def _extension(path: Path) -> str:
    name = path.name.casefold().removesuffix(".gz")
    return Path(name).suffix


def _read_bytes(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{name}: the file cannot be read ({error.strerror})") from None


def _decode(data: bytes, name: str) -> str:
    """Return the text of a file, unpacked if it is packed: a server may have unpacked a `.gz` already."""
    if data.startswith(_GZIP_MAGIC):
        import gzip

        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise DatasetError(f"{name}: the gzip data are damaged or cut off; get the file again") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind a byte-order mark, in its own copy of the bytes.
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise DatasetError(f"{name}, line {line}: the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8") from None


def _table(text: str, name: str, delimiter: str) -> Iterator[tuple[int, Cells]]:
    """Yield the data rows of a CSV or TSV text, counted from 1."""
    # The limit holds for the whole process: only ever raised, so that nobody's reader breaks.
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    lines = _counted_cells(text, name, delimiter)
    _, header = next(lines, (0, []))
    columns = [column.strip() for column in header]
    for twice in {column for column in columns if column and columns.count(column) > 1}:
        raise DatasetError(f"{name}: the column {twice!r} stands twice in the header")
    for number, cells in lines:
        if len(cells) != len(columns):
            raise DatasetError(
                f"{name}, row {number}: {_count(len(cells), 'cell')} found, {len(columns)} wanted as in the header"
            )
        yield number, dict(zip(columns, cells, strict=True))


def _counted_cells(text: str, name: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the header as number 0, then every row that is not blank."""
    # strict: a stray quote is an error and not, as otherwise, a cell that swallows the rest of the file.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number = 0
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield number, cells
                number += 1
    except csv.Error as error:
        place = f"row {number}" if number else "header"
        raise DatasetError(
            f"{name}, {place} (ends in line {reader.line_num}): the quotes do not fit ({error}); "
            'a quote inside a quoted cell is written ""'
        ) from None


def _json_lines(text: str, name: str) -> Iterator[tuple[int, Cells]]:
    """Yield the objects of a JSON Lines text with their line numbers."""
    # Only "\n" ends a record: splitlines() would cut at U+2028 and U+0085 inside a text.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, _object(load_json(line))
            except BadRowError as error:
                raise DatasetError(f"{name}, line {number}: {error}") from None


def _json_array(text: str, name: str, question_columns: AbstractSet[str]) -> Iterator[tuple[int, Cells]]:
    """Yield the objects of a JSON array, or of the one list of questions inside a JSON object."""
    if not text.strip():
        return
    try:
        document = load_json(text)
    except BadRowError as error:
        hint = "; a file with one object a line is named .jsonl" if "Extra data" in str(error) else ""
        raise DatasetError(f"{name}: {error}{hint}") from None
    rows = _question_list(document, name, question_columns) if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise DatasetError(f"{name}: {kind_of(rows)} found, an array of objects wanted")
    for number, row in enumerate(rows, 1):
        try:
            yield number, _object(row)
        except BadRowError as error:
            raise DatasetError(f"{name}, row {number}: {error}") from None


def _question_list(document: Cells, name: str, question_columns: AbstractSet[str]) -> Any:
    """Return the list of rows inside `document`: the one that has questions, else the only one."""
    lists = {key: value for key, value in document.items() if isinstance(value, list)}
    asking = [rows for rows in lists.values() if rows and _has_column(rows[0], question_columns)]
    for candidates in (asking, list(lists.values())):
        if len(candidates) == 1:
            return candidates[0]
    raise DatasetError(
        f"{name}: an object with {_count(len(asking), 'list')} of questions found, an array of objects or an "
        f"object with one such list wanted; its keys are {listing(document)}"
    )


def _has_column(row: Any, columns: AbstractSet[str]) -> bool:
    return isinstance(row, dict) and any(key.strip().casefold() in columns for key in row)


def _object(value: Any) -> Cells:
    if not isinstance(value, dict):
        raise BadRowError(f"{kind_of(value)} found, an object wanted")
    return value


class ExactFloat(float):
    """A number that remembers how the file wrote it, for where it is an answer."""

    text: str


def _exact_float(text: str) -> float:
    value = float(text)
    if repr(value) == text:
        return value
    exact = ExactFloat(value)
    exact.text = text
    return exact


# NaN and Infinity are no JSON: what wrote them meant "missing". Raw control characters are let in.
_DECODER = json.JSONDecoder(parse_float=_exact_float, parse_constant=lambda _: None, strict=False)


def load_json(text: str) -> Any:
    """Parse one JSON text, half surrogate pairs replaced by U+FFFD; raises BadRowError."""
    try:
        value = _DECODER.decode(text)
        return scrub(value) if _ESCAPED_SURROGATE.search(text) else value
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise BadRowError(f"not JSON ({error.msg} at {at})") from None
    except RecursionError:
        raise BadRowError("the JSON is nested too deeply") from None
    except ValueError:  # Python refuses to convert integers of more than 4,300 digits
        raise BadRowError("the JSON holds a number with too many digits") from None


def load_mapping(cell: Any) -> dict[str, Any]:
    """Return the object that a cell is, or holds as JSON or as a Python literal; raises BadRowError."""
    value = _parse(cell) if isinstance(cell, str) else cell
    if not isinstance(value, dict):
        raise BadRowError(f"{kind_of(value)} found, a JSON object or a Python dict wanted")
    return value


def _parse(cell: str) -> Any:
    try:
        return load_json(cell)
    except BadRowError:
        return _load_literal(cell)


def _load_literal(cell: str) -> Any:
    if (
        '"' not in cell and "\\" not in cell
    ):  # then the quotes alone part a simple literal from JSON, at a tenth of the time
        with contextlib.suppress(BadRowError):
            return load_json(cell.replace("'", '"'))
    try:
        with warnings.catch_warnings():  # an odd escape such as "\d" in somebody's URL is no concern of ours
            warnings.simplefilter("ignore")
            value = ast.literal_eval(cell.strip())
        return scrub(value) if _ESCAPED_SURROGATE.search(cell) else value
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BadRowError("neither JSON nor a Python literal") from None


def scrub(value: Any) -> Any:
    """Replace half surrogate pairs, which no file can hold, by U+FFFD in all texts of a JSON value."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {scrub(key): scrub(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(scrub(item) for item in value)
    return value


def text_of(value: Any) -> str | None:
    """Return a text as it is, a number or boolean as its JSON text, and None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, ExactFloat):
        return value.text
    return json.dumps(value) if isinstance(value, bool | int | float) else None


def listing(names: Any, most: int = 12) -> str:
    """Return names for an error: quoted, shortened, and not without end."""
    shown = [repr(name if len(name) <= 40 else name[:39] + "…") for name in names]
    more = [f"{len(shown) - most} more"] if len(shown) > most else []
    return ", ".join(shown[:most] + more)


def kind_of(value: Any) -> str:
    """Name the JSON type of a value."""
    kinds = ((bool, "a boolean"), (int | float, "a number"), (str, "a text"), (list, "an array"), (dict, "an object"))
    return next((word for kind, word in kinds if isinstance(value, kind)), "null" if value is None else "a value")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
