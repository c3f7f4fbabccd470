"""The run directory on disk: made, held by one session, and its `run.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from .errors import RunError
from .paths import file_word

try:
    import fcntl
except ImportError:  # Windows: two writers of one run are then not told apart
    fcntl = None  # type: ignore[assignment]  # the module or nothing

STOP_FILE = "stop"
"""In a session's folder: written by the controller, read by workers; holds the reason."""
DEAD_FILE = "dead"
"""In a session's folder: names the files of results whose writers have died, one a line."""
SUSPECTS_FILE = "suspects"
"""In a session's folder: names the items one of which has killed its worker, one a line."""
RUNS_FILE = "runs.json"
"""In a session's folder: the runs of test functions, as every worker has collected them."""
RUN_DIRS_FILE = "run_dirs.json"
"""In a session's folder: the directories of those runs, as the controller has made them."""


def put_json(path: Path, content: Any) -> None:
    """Write `content` for another process to read: whole, or not at all."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(path)


def lock(file: int) -> bool:
    """Mark a file as being written until this process ends, however it ends; tell whether it was free."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # a file system without locks
    return True


class Hold:
    """A run directory in the hands of this session, until `release` or the end of the process, however it ends."""

    def __init__(self, run_dir: Path) -> None:
        try:
            self._directory = os.open(run_dir, os.O_RDONLY)
        except OSError:  # Windows opens no directory
            self._directory = -1

    def take(self) -> bool:
        """Take the directory; tell whether no other session holds it."""
        return self._directory < 0 or lock(self._directory)

    def release(self) -> None:
        """Let another session have it; a second time does nothing."""
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1


def is_being_written(path: Path) -> bool:
    """Tell whether a living process has the results file `path` open for writing."""
    file = os.open(path, os.O_RDONLY)
    try:
        return not lock(file)
    finally:
        os.close(file)


def results_files(run_dir: Path) -> list[Path]:
    """Return the files of results in `run_dir`, in a fixed order."""
    return sorted(run_dir.glob("results*.jsonl"))


def create_run_dir(base: Path, dataset: str, model: str, now: datetime) -> Path:
    """Make and return `<base>/<time>-<dataset>-<model>/`; `base` ignores itself in git.

    Raises RunError where it cannot be made.
    """
    name = "-".join([now.strftime("%Y%m%dT%H%M%S"), file_word(dataset), file_word(model)])
    try:
        base.mkdir(parents=True, exist_ok=True)
        ignore = base / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        for suffix in ["", *(f".{n}" for n in range(2, 1000))]:
            try:
                (base / f"{name}{suffix}").mkdir()
            except FileExistsError:
                continue
            return base / f"{name}{suffix}"
    except OSError as error:
        raise RunError(f"--simpleqa-run-dir {base}: cannot be written: {error.strerror}") from None
    raise RunError(f"--simpleqa-run-dir {base}: a thousand runs in one second")


def write_run_json(run_dir: Path, content: Mapping[str, Any]) -> None:
    """Write `run.json`: what was asked, and of whom; no secrets."""
    path = run_dir / "run.json"
    temporary = run_dir / "run.json.tmp"
    try:
        # A model of the user's may describe itself in types that JSON has not.
        text = json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False, default=str)
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}") from None
    except (TypeError, ValueError) as error:
        raise RunError(f"{path}: cannot be written as JSON: {error}") from None


def read_run_json(run_dir: Path) -> dict[str, Any]:
    """Return what `run.json` holds; raise RunError where it is missing or no JSON object."""
    path = run_dir / "run.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{run_dir}: not a run directory (there is no run.json)") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise RunError(f"{path}: wanted a JSON object")
    return content
