"""The Report's file: read with checks, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import RunError
from .report import Report
from .reportparts import require_parts


def read_report(path: Path) -> Report:
    """Return the Report in `path`. Raises RunError, in one line, for a file that is not there or is none."""
    try:
        data = json.loads(path.read_text("utf-8-sig"), parse_constant=_refuse_constant)
    except OSError as error:
        raise RunError(f"{path}: cannot read the Report: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: not a Report, which is strict JSON in UTF-8: {error}") from error
    try:
        report = Report.from_json(data)
        require_parts(data)
    except RunError as error:
        raise RunError(f"{path}: not a Report: {error}") from error
    return report


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def report_text(report: Report) -> str:
    """Return the document as strict JSON, one key a line, ending in a newline.

    What JSON or UTF-8 cannot carry never costs the Report: half a surrogate pair becomes U+FFFD, a
    number that is not finite null, a foreign object its text.
    """
    data = report.to_json()
    try:
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        text = json.dumps(_plain(data), indent=1, ensure_ascii=False, allow_nan=False)
    return _without_half_pairs(text) + "\n"


def _plain(value: Any) -> Any:
    """Return `value` in types that strict JSON has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _without_half_pairs(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # UTF-16 joins two halves that belong together; strict readers refuse an escaped lone one.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def require_writable(path: Path) -> None:
    """Raise RunError where no Report can be written to `path`; asked before a run: after it, it has been paid for."""
    if path.is_dir():
        raise RunError(f"{path}: cannot write the Report: it is a folder; wanted a file")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        raise RunError(f"{path}: cannot write the Report: {above} is no folder to write into")


def write_report(report: Report, path: Path) -> None:
    """Write the document to `path` whole or not at all, making missing folders. Raises RunError in one line.

    An older file stays as it is until the new one is safely on the disk.
    """
    data = report_text(report).encode("utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()  # a link keeps pointing where it does
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a pipe or a device cannot be replaced
        else:
            _replace(target, data)
    except OSError as error:
        raise RunError(f"{path}: cannot write the Report: {error.strerror or error}") from error


def _replace(target: Path, data: bytes) -> None:
    """Put a new file in the place of `target` in one step."""
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
