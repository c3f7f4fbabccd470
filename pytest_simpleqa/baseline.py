"""An earlier run to compare with, read from whatever it left behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import RunError, SpecError
from .models.columns import Recorded
from .models.recording import read_recording
from .pairing import ComparedRow, rows_of_report
from .paths import typed_path
from .report import wrappers_in
from .reportfile import read_report
from .rundisk import read_run_json, results_files


@dataclass(frozen=True, slots=True)
class Baseline:
    """An earlier run."""

    name: str
    """The file's or folder's name; never a path."""
    rows: tuple[ComparedRow, ...]
    model: str | None = None
    """The answer model's spec as it was typed; None where nobody wrote it down."""
    judge: str | None = None
    dataset: str | None = None
    run: str | None = None
    """The run's name in its session, where it is another one than the dataset's."""
    wrapped_by: tuple[Mapping[str, Any], ...] = ()
    """What stood around the answer model, the outermost first."""
    warnings: tuple[str, ...] = ()

    @property
    def owner(self) -> str | None:
        """Which run of a session with several is compared with it; None where nobody wrote that down."""
        return self.run or self.dataset


def read_baseline(path: str | Path, base: Path | None = None) -> Baseline:
    """Return the run in `path`: a Report, a run directory, a results file, or a recording with verdicts.

    A relative path counts from `base`. Raises RunError in one line.
    """
    argument, base = str(path), Path.cwd() if base is None else base
    file = typed_path(argument, base)
    # The lines of a run directory are never older than its Report, and keep every answer.
    if (file / "report.json").is_file() and not results_files(file):
        return _from_report(file / "report.json", file.resolve().name)
    if file.suffix.lower() == ".json" and _is_report(file):
        return _from_report(file, file.name)
    try:
        recorded = read_recording(argument, base)
    except SpecError as error:
        raise RunError(f"baseline {str(error).removeprefix('replay:')}") from None
    return _from_recording(recorded, _run_json(file))


def _is_report(path: Path) -> bool:
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False  # whoever reads it next says what is wrong
    return isinstance(content, dict) and "schema_version" in content


def _from_report(path: Path, name: str) -> Baseline:
    report = read_report(path)
    return Baseline(
        name,
        tuple(rows_of_report(report)),
        report.model,
        report.judge,
        report.dataset,
        report.name,
        report.wrapped_by,
    )


def _run_json(path: Path) -> Mapping[str, Any]:
    """Return what `run.json` says beside results of ours, nothing elsewhere."""
    folder = path if path.is_dir() else path.parent
    if path != folder and not path.name.startswith("results"):
        return {}
    try:
        return read_run_json(folder)
    except RunError:
        return {}


def _from_recording(recorded: Recorded, run: Mapping[str, Any]) -> Baseline:
    if not any(row.verdict for row in recorded.rows):
        raise RunError(
            f"baseline {recorded.name}: it holds no verdicts; wanted a column 'verdict' or 'grade', "
            f"or grade it first: --answer-llm=replay:{recorded.name}"
        )
    rows = tuple(
        ComparedRow(
            row.question_hash,
            row.gold_hash,
            row.repeat,
            row.verdict,
            # Our own lines tell an answer whose verdict is still to come; elsewhere none has come.
            finished=row.id is None or row.verdict is not None or row.error is not None,
            id=row.id,
            question=row.question,
            gold=row.gold,
            predicted=row.predicted,
        )
        for row in recorded.rows
    )
    warnings = [*recorded.warnings]
    if recorded.left_out:
        warnings.append(f"{recorded.name} keeps {len(rows):,} rows and leaves {recorded.left_out:,} out")
    return Baseline(
        recorded.name,
        rows,
        model=_named(run, "answer", "spec"),
        judge=_named(run, "judge", "spec"),
        dataset=_named(run, "dataset", "name"),
        run=str(run["run"]) if "run" in run else None,
        wrapped_by=wrappers_in(run.get("answer")),
        warnings=tuple(warnings),
    )


def _named(run: Mapping[str, Any], key: str, name: str) -> str | None:
    part = run.get(key)
    return str(part[name]) if isinstance(part, dict) and name in part else None
