"""Reading recorded answers: a table, a Report, a run directory or nested JSON becomes a list of recorded rows."""

from __future__ import annotations

import csv
import difflib
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import SpecError
from ..paths import typed_path
from ..runlog import Row, in_order
from .columns import Recorded, column_name, recorded_rows

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".json")
_RUN_KINDS = ("answer", "verdict", "error")
_CSV_FIELD_CAP = 2**31 - 1


def read_recording(argument: str, base: Path) -> Recorded:
    """Return what `replay:ARGUMENT` recorded; `FILE#system` chooses where a file holds several systems.

    Relative paths count from `base`. Raises SpecError.
    """
    path, system = _find(argument, base)
    name = path.resolve().name + ("" if system is None else f"#{system}")
    if path.is_dir():
        return _from_run_dir(name, path)
    kind = _kind(path)
    if system is not None and kind != ".json":
        raise SpecError(f"replay:{argument}: {path.name} is a table and holds no systems; leave #{system} out")
    data = _read(path)
    digest = hashlib.sha256(data).hexdigest()
    text = _decode(path, data)
    if kind == ".json":
        records, left_out = _records_in(path.name, _parse(path.name, text), system)
        return recorded_rows(name, records, digest, left_out=left_out)
    if kind == ".jsonl":
        return _from_lines(name, text, digest)
    return recorded_rows(name, _read_table(path.name, text, "\t" if kind == ".tsv" else ","), digest)


# ---- files


def _find(argument: str, base: Path) -> tuple[Path, str | None]:
    whole = typed_path(argument, base)
    if argument and whole.exists():
        return whole, None
    file, mark, system = argument.rpartition("#")
    if mark and file and (path := typed_path(file, base)).exists():
        return path, system
    if not argument:
        raise SpecError("replay: wanted replay:FILE, a file of recorded answers, a Report or a run directory")
    missing = typed_path(file if mark else argument, base)
    names = [path.name for path in missing.parent.iterdir()] if missing.parent.is_dir() else []
    close = difflib.get_close_matches(missing.name, names)
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    raise SpecError(f"replay:{argument}: there is no file {missing}{hint}")


def _kind(path: Path) -> str:
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind not in _SUFFIXES:
        wanted = ", ".join(_SUFFIXES)
        raise SpecError(f"replay:{path.name}: the name ends in {kind or 'nothing'!r}; wanted {wanted} (each also .gz)")
    return kind


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SpecError(f"replay:{path.name}: cannot be read: {error.strerror}") from None


def _decode(path: Path, data: bytes) -> str:
    try:
        plain = gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise SpecError(f"replay:{path.name}: no whole gzip file: {error}") from None
    try:
        return plain.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = plain.count(b"\n", 0, error.start) + 1
        raise SpecError(f"replay:{path.name}, line {line}: byte {plain[error.start]:#x} is no UTF-8") from None


def _parse(name: str, text: str) -> Any:
    try:
        return _loads(text)
    except ValueError as error:
        raise SpecError(f"replay:{name}: no JSON: {error}") from None


def _read_table(name: str, text: str, delimiter: str) -> list[dict[str, Any]]:
    limit = csv.field_size_limit(_CSV_FIELD_CAP)  # a runaway answer is longer than csv's 128 KiB
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header = [column_name(cell) for cell in next(lines, [])]
        records: list[dict[str, Any]] = []
        for number, cells in enumerate((cells for cells in lines if cells), start=1):
            if len(cells) != len(header):
                raise SpecError(f"replay:{name}, row {number}: {len(cells)} cells; the header has {len(header)}")
            records.append(dict(zip(header, cells, strict=True)))
        return records
    except csv.Error as error:
        raise SpecError(f"replay:{name}, line {lines.line_num}: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _from_lines(name: str, text: str, digest: str) -> Recorded:
    lines, torn = _read_lines(text)
    if lines and _is_run_line(lines[0][1]):
        return recorded_rows(name, _merge_run_lines(line for _, line in lines), digest, _dropped(name, torn))
    # Of a table only the last line may be torn, by whoever wrote it and was killed.
    if torn and torn[0] <= (lines[-1][0] if lines else 0):
        raise SpecError(f"replay:{name}, line {torn[0]}: no JSON")
    records = [_as_record(name, f"line {number}", line) for number, line in lines]
    return recorded_rows(name, records, digest, _dropped(name, torn))


def _read_lines(text: str) -> tuple[list[tuple[int, Any]], list[int]]:
    """Return the JSON lines with their numbers, and the numbers of those that are none.

    Split at "\\n" alone: a text may hold U+2028.
    """
    lines: list[tuple[int, Any]] = []
    torn: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                lines.append((number, _loads(line)))
            except ValueError:
                torn.append(number)
    return lines, torn


def _dropped(name: str, torn: Iterable[int]) -> list[str]:
    return [f"{name}, line {number} is torn and was dropped" for number in torn]


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=lambda _: None)  # NaN has no place in our own strict JSON


def _as_record(name: str, place: str, record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise SpecError(f"replay:{name}, {place}: wanted a JSON object, found {type(record).__name__}")
    return {column_name(key): value for key, value in record.items()}


def _records_in(name: str, content: Any, system: str | None) -> tuple[list[dict[str, Any]], int]:
    """Return the records of a JSON document, and how many rows its run had beyond them."""
    systems = content.get("systems") if isinstance(content, dict) else None
    if isinstance(systems, dict) and systems:
        content = _choose(name, systems, system)
    elif system is not None:
        raise SpecError(f"replay:{name} holds no systems; leave #{system} out")
    n = 0
    if isinstance(content, dict):
        found = next((key for key in ("samples", "records", "rows") if isinstance(content.get(key), list)), None)
        if found is None:
            keys = ", ".join(map(str, content)) or "nothing"
            raise SpecError(f"replay:{name}: found the keys {keys}; wanted a list of rows, `samples` or `records`")
        n = content["n"] if type(content.get("n")) is int else 0
        content = content[found]
    if not isinstance(content, list):
        raise SpecError(f"replay:{name}: wanted a list of rows, found {type(content).__name__}")
    records = [_as_record(name, f"row {number}", row) for number, row in enumerate(content, start=1)]
    return records, max(0, n - len(records))


def _choose(name: str, systems: Mapping[str, Any], system: str | None) -> Any:
    if system is None and len(systems) == 1:
        return next(iter(systems.values()))
    if system is None or system not in systems:
        found = "holds several systems" if system is None else f"holds no system {system!r}"
        choices = ", ".join(f"replay:{name}#{key}" for key in systems)
        raise SpecError(f"replay:{name} {found}; choose one of {choices}")
    return systems[system]


# ---- our own run directories


def _from_run_dir(name: str, path: Path) -> Recorded:
    files = sorted(path.glob("results*.jsonl"))
    if not files:
        raise SpecError(f"replay:{name}: a folder without results*.jsonl is no run directory")
    found: list[list[Any]] = []
    warnings: list[str] = []
    for file in files:
        lines, torn = _read_lines(_read(file).decode("utf-8", "replace"))  # a kill may tear a character, too
        found.append([line for _, line in lines if _is_run_line(line)])
        warnings += _dropped(file.name, torn)
    return recorded_rows(name, _merge_run_lines(in_order(found)), None, warnings)


def _is_run_line(line: Any) -> bool:
    return isinstance(line, dict) and line.get("kind") in _RUN_KINDS and isinstance(line.get("fingerprint"), str)


def _merge_run_lines(lines: Iterable[Any]) -> list[dict[str, Any]]:
    """Return one record per asking: the last line of a kind wins.

    What was predicted is what was judged: the model's answer, or a text that a test has had judged in its place.
    Workers write as they finish, so the order is that of the ids: the same from whatever run.
    """
    askings: dict[tuple[str, Any], Row] = {}
    for line in lines:
        if _is_run_line(line):
            askings.setdefault((str(line.get("id")), line.get("repeat", 1)), Row(line["fingerprint"])).take(line)
    records = []
    for (row_id, repeat), row in sorted(askings.items(), key=lambda asking: asking[0][0]):
        said, verdict, error = row.judged or {}, row.verdict or {}, row.error or {}
        records.append(
            {
                "id": row_id,
                "repeat": repeat,
                "fingerprint": row.fingerprint,
                "predicted": said.get("predicted"),
                "raw": said.get("raw"),
                "extra": said.get("extra"),
                "verdict": verdict.get("verdict"),
                "judged": verdict.get("extra"),
                "judge_reply": (verdict or error).get("judge_reply"),
                "error": None if verdict else error.get("error"),
            }
        )
    return records
