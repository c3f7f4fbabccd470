"""Going on with an earlier run: which one, whether it is the same run, and whether anybody still writes it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import RunError
from .runlog import Hold, is_being_written, read_run_json, results_files

WAIT_S = 20.0
"""How long a session waits for another one to let go of a run."""
_SAME = ("dataset", "answer", "judge", "answer_prompt", "grade_prompt")
"""Parts of run.json that a run and its resumption share."""
_TIED_TO_A_SESSION = ("dropped_params", "questions")


def find_run(word: str, base: Path, cwd: Path, content: Mapping[str, Any]) -> Path | None:
    """Return the run directory that `--simpleqa-resume WORD` means; None where `auto` finds none.

    `latest` is the newest run in `base`, whatever it asked; `auto` the newest unfinished one that asked
    the same as `content` (a run.json of this session); else WORD is a run's directory or its name in
    `base`. Raises RunError where there is no such run.
    """
    if word == "auto":
        same = (run for run in _newest_first(base) if difference(read_run_json(run), content) is None)
        return next((run for run in same if not _is_complete(run)), None)
    if word == "latest":
        newest = next(_newest_first(base), None)
        if newest is None:
            raise RunError(f"--simpleqa-resume latest: there is no run in {base}")
        return newest
    for path in (cwd / word, base / word):
        with contextlib.suppress(OSError):  # a name that the system will not even look at
            if (path / "run.json").is_file():
                return path
    raise RunError(f"--simpleqa-resume {word}: no run of that name in {base}, and no run directory at that path")


def find_run_of_several(word: str, base: Path, cwd: Path, content: Mapping[str, Any]) -> Path | None:
    """Return the directory of one run of a session that `--simpleqa-resume WORD` means; None where it begins anew.

    A session with several runs is gone on with as a whole: `latest` is the newest that held this run, `auto` the
    newest that asked the same and left any run unfinished; any other WORD names one of its runs.
    """
    runs = [(path, read_run_json(path)) for path in _newest_first(base)]
    if word == "auto":
        open_sessions = {old.get("session") for path, old in runs if not _is_complete(path)}
        same = (path for path, old in runs if old.get("session") in open_sessions and difference(old, content) is None)
        return next((path for path in same if _is_of(path, content)), None)
    if word == "latest":
        if not runs:
            raise RunError(f"--simpleqa-resume latest: there is no run in {base}")
        return next((path for path, old in runs if old.get("run") == content["run"]), None)
    named = find_run(word, base, cwd, content)
    assert named is not None
    session = read_run_json(named).get("session")
    siblings = (path for path, old in runs if path == named or (session and old.get("session") == session))
    return next((path for path in siblings if _is_of(path, content)), None)


def _is_of(run_dir: Path, content: Mapping[str, Any]) -> bool:
    return bool(read_run_json(run_dir).get("run") == content["run"])


def difference(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    options: Sequence[str] = ("parse", "repeats"),
    words: tuple[str, str] = ("then", "now"),
) -> str | None:
    """Return the first difference that makes two run.json two runs, as `answer model: 'a' then, 'b' now`."""
    was, is_now = words
    for part in _SAME:
        then, now = dict(old.get(part) or {}), dict(new.get(part) or {})
        for key in [*now, *(key for key in then if key not in now)]:
            if key not in _TIED_TO_A_SESSION and then.get(key) != now.get(key):
                return f"{part} {key}: {_short(then.get(key))} {was}, {_short(now.get(key))} {is_now}"
    for key in options:
        before, after = (old.get("options") or {}).get(key), (new.get("options") or {}).get(key)
        if before != after:
            return f"{key}: {_short(before)} {was}, {_short(after)} {is_now}"
    return None


def require_same(run_dir: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run.json of `run_dir`; raise RunError, naming the difference, where it asked something else."""
    old = read_run_json(run_dir)
    if (what := difference(old, content)) is not None:
        raise RunError(
            f"--simpleqa-resume {run_dir.name}: that run is another one: {what}; run without --simpleqa-resume to "
            "start afresh"
        )
    return old


def hold(run_dir: Path, seconds: float | None = None) -> Hold:
    """Take `run_dir` into this session's hands, alone; raise RunError where others have it for `seconds` (20).

    Others are a session that holds it, and the workers of one that was killed, which write to their end.
    """
    mine = Hold(run_dir)
    deadline = time.monotonic() + (WAIT_S if seconds is None else seconds)
    while not mine.take() or any(is_being_written(path) for path in results_files(run_dir)):
        if time.monotonic() > deadline:
            mine.release()
            raise RunError(f"{run_dir}: another process is still writing this run; stop it, or wait for its end")
        time.sleep(0.1)
    return mine


def _newest_first(base: Path) -> Iterator[Path]:
    runs = []
    for path in base.glob("*/run.json"):
        try:
            started = str(read_run_json(path.parent).get("started_at", ""))
        except RunError:
            continue  # a run killed at its very start is no run to go on with
        runs.append((started, path.parent.name, path.parent))
    return (path for _, _, path in sorted(runs, reverse=True))


def _is_complete(run_dir: Path) -> bool:
    try:
        report = json.loads((run_dir / "report.json").read_text(encoding="utf-8"))
        return bool(report["complete"]) and not report["judge_failures"] and not report["errors"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
