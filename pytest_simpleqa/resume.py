"""Going on with an earlier run: which one, whether it is the same run, and whether anybody still writes it."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import RunError
from .rundisk import Hold, is_being_written, read_run_json, results_files

WAIT_S = 20.0
"""How long a session waits for another one to let go of a run."""
_SAME = ("dataset", "answer", "judge", "answer_prompt", "grade_prompt")
"""Parts of run.json that a run and its resumption share."""
_SHA256 = re.compile("[0-9a-f]{64}").fullmatch
_TIED_TO_A_SESSION = ("dropped_params", "questions")


def find_run(word: str, base: Path, cwd: Path, content: Mapping[str, Any], *, alone: bool = True) -> Path | None:
    """Return the run directory that `--simpleqa-resume WORD` means for the run that `content` (a run.json) begins.

    A session with several runs is gone on with as a whole: `latest` and the name of a run mean this run in the
    session of the newest, or of that one; `auto` means it in the newest session that asked the same and left any run
    unfinished. None where it begins anew. The run that is meant is another one than this where the session is to hold
    this `alone`: what it asked is then told. Raises RunError where there is no such run.
    """
    runs = [(path, read_run_json(path)) for path in _newest_first(base)]
    if word == "auto":
        unfinished = {word for path, old in runs if not _is_complete(path) for word in _sessions_of(path, old)}
        same = (each for each in runs if _sessions_of(*each) & unfinished and difference(each[1], content) is None)
        return next((path for path, old in same if _is_of(old, content)), None)
    named = _newest(runs, base) if word == "latest" else _named(word, base, cwd)
    sessions = _sessions_of(*named)
    family = [named, *(each for each in runs if _sessions_of(*each) & sessions)]
    own = next((path for path, old in family if _is_of(old, content)), None)
    if own is not None or alone:
        return own or named[0]
    return next((path for path, old in runs if _is_of(old, content)), None) if word == "latest" else None


def newest_run(base: Path) -> Path:
    """Return the directory of the newest run in `base`. Raises RunError where there is none."""
    newest = next(_newest_first(base), None)
    if newest is None:
        raise RunError(f"latest: there is no run in {base}")
    return newest


_Run = tuple[Path, Mapping[str, Any]]


def _newest(runs: Sequence[_Run], base: Path) -> _Run:
    if not runs:
        raise RunError(f"--simpleqa-resume latest: there is no run in {base}")
    return runs[0]


def _named(word: str, base: Path, cwd: Path) -> _Run:
    for path in (cwd / word, base / word):
        with contextlib.suppress(OSError):  # a name that the system will not even look at
            if (path / "run.json").is_file():
                return path, read_run_json(path)
    raise RunError(f"--simpleqa-resume {word}: no run of that name in {base}, and no run directory at that path")


def _sessions_of(path: Path, content: Mapping[str, Any]) -> set[str]:
    """Return what names the session that a run belongs to, and the one that it was gone on with from.

    Runs of one session are gone on with one after another: those whose turn has not come yet still name the earlier
    session alone. Without a session a run is one by itself.
    """
    return {str(content.get("session") or path), str(content.get("earlier_session") or path)}


def _is_of(old: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    return bool("run" not in old or old["run"] == content.get("run", old["run"]))


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
    if not _is_of(old, new):
        return f"run: {_short(old['run'])} {was}, {_short(new['run'])} {is_now}"
    return None


def require_same(run_dir: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run.json of `run_dir`; raise RunError, naming the difference, where it asked something else."""
    old = read_run_json(run_dir)
    if (what := difference(old, content)) is not None:
        raise RunError(
            f"--simpleqa-resume {run_dir.name}: that run is another one: {what}; --simpleqa-resume=auto goes on with "
            "the newest unfinished run that asked the same, or starts afresh"
        )
    return old


def resume_command(typed: Sequence[str], run: str) -> str:
    """Return what to type to go on with a run: its session's command line, as typed, and the run's name."""
    kept = [arg for arg in typed if not arg.startswith("--simpleqa-resume=")]
    if "--simpleqa-resume" in kept:
        place = kept.index("--simpleqa-resume")
        del kept[place : place + 2]
    return shlex.join(["pytest", *kept, f"--simpleqa-resume={run}"])


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
    if isinstance(value, str) and _SHA256(value):
        return value[:8]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
