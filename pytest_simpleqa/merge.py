"""Shards of one run, from several machines, become one run again."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from .errors import RunError
from .keptrun import KeptRun, find_path, run_folder
from .mergereports import NamedReport, merge_reports
from .pairing import rows_of, rows_of_report
from .records import Dataset, QuestionResult
from .report import Report
from .reportfile import read_report
from .resume import difference
from .rundisk import results_files, write_run_json
from .runfolder import RunFolder, build
from .runlog import Key
from .wording import many

_SELECTING = ("limit_questions", "sample", "seed", "topics")
"""Options that make the population; what they say must be the same in every shard."""


@dataclass(frozen=True)
class Shard:
    """One machine's part of the run."""

    folder: RunFolder
    recorded: Report | None

    @property
    def name(self) -> str:
        """The run directory's name."""
        return self.folder.path.name

    @property
    def share(self) -> tuple[int, int]:
        """Which of how many, from 1; (1, 1) is the whole run."""
        part, parts = self.folder.options.get("shard") or (1, 1)
        return part, parts


def merge(words: Sequence[str], base: Path, dataset: str | None = None) -> KeptRun:
    """Return the one run that the runs `words` are shards of.

    Its numbers are those of the run that was never parted. Shards may overlap where they agree; what a
    missing one should have asked is without a result. Raises SimpleQAError, naming what does not fit.
    """
    paths = [find_path(word, base) for word in words]
    if not all(map(run_folder, paths)):
        return _of_reports(paths)
    shards = _open(words, base)
    first = shards[0]
    for other in shards[1:]:
        _require_same(first, other)
    found = next(filter(None, (shard.folder.dataset(dataset, base) for shard in shards)), None)
    if found is None and all(shard.recorded for shard in shards):
        return _of_reports(paths)
    if found is None:
        raise RunError(
            f"{first.folder.content['dataset'].get('name')}, which was asked, is not here; add --dataset=FILE"
        )
    population = first.folder.population(found, shard=(1, 1))
    results, notes = _gather(shards, found)
    repeats = first.folder.options.get("repeats", 1)
    report = _build(shards, population, results, repeats)
    kept = tuple(
        results[question.id, repeat]
        for question in population
        for repeat in range(1, repeats + 1)
        if (question.id, repeat) in results
    )
    return KeptRun(
        report,
        tuple(rows_of(population.questions, results, repeats)),
        first.folder.path,
        report.model,
        report.judge,
        results=kept,
        notes=(*notes, *_missing(shards, population)),
    )


def write_merged(words: Sequence[str], base: Path, merged: KeptRun, folder: Path) -> None:
    """Write the shards as one run directory, all but its Report. Raises RunError where `folder` holds anything."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"--out {folder}: there is something already; wanted a new folder, or a name ending in .json")
    folder.mkdir(parents=True, exist_ok=True)
    shards = _open(words, base)
    files = [file for shard in shards for file in results_files(shard.folder.path)]
    for number, file in enumerate(files, start=1):
        shutil.copyfile(file, folder / f"results-{number:04}.jsonl")
    content, report = shards[0].folder.content, merged.report
    write_run_json(
        folder,
        {
            **{key: value for key, value in content.items() if key != "typed"},  # that was one shard's
            "run_id": uuid4().hex,  # another run than its first shard
            "dataset": {**content["dataset"], "questions": report.population // report.options.get("repeats", 1)},
            "options": dict(report.options),
            "started_at": report.started_at.isoformat(),
            "resumed": report.resumed,
        },
    )


def _of_reports(paths: Iterable[Path]) -> KeptRun:
    """Return the one run that Reports tell of; what is known of its rows is what their samples keep."""
    files = [path / "report.json" if path.is_dir() else path for path in paths]
    for file in files:
        if not file.is_file():
            raise RunError(f"{file.parent}: no run directory: it holds neither results*.jsonl nor report.json")
    # A folder's name says more than that its Report is called report.json.
    names = [file.resolve().parent.name if file.name == "report.json" else file.name for file in files]
    shards = [NamedReport(name, read_report(file)) for name, file in zip(names, files, strict=True)]
    report = merge_reports(shards)
    rows = tuple(rows_of_report(report))
    notes = ["merged from Reports alone, so the percentiles of the latencies are not known"]
    if lost := list(_lost(report, shards)):
        notes.append(f"the samples do not keep every row, so not known either: {', '.join(lost)}")
    if any(each.report.metrics for each in shards):
        notes.append(
            "an eval's figures are no sum of its shards' figures; --out=DIR and --simpleqa-resume=DIR have them anew"
        )
    return KeptRun(report, rows, files[0], report.model, report.judge, results=report.samples, notes=tuple(notes))


def _lost(report: Report, shards: Iterable[NamedReport]) -> Iterator[str]:
    """Yield what the Reports of shards tell and a merged one does not, whose samples keep too few rows for it."""
    if report.calibration is None and any(each.report.calibration for each in shards):
        yield "the calibration"
    if report.repeats is not None and len(report.samples) < report.n:
        yield "the intervals by topic and answer type"
        yield "the ids beside each question's consistency"


# -- fitting together -----------------------------------------------------------------------------


def _open(words: Iterable[str], base: Path) -> list[Shard]:
    """Return the shards in their own order, whatever order they were named in."""
    folders: dict[Path, RunFolder] = {}
    for word in words:
        path = find_path(word, base)
        folder = run_folder(path)
        if folder is None:
            raise RunError(f"{word}: no run directory; a merge needs run.json and results*.jsonl, which keep every row")
        folders.setdefault(folder.resolve(), RunFolder.open(folder))
    shards = [Shard(folder, folder.recorded()) for folder in folders.values()]
    return sorted(shards, key=lambda shard: (shard.share, shard.folder.started_at, shard.name))


def _require_same(first: Shard, other: Shard) -> None:
    what = difference(first.folder.content, other.folder.content)
    if what is not None:
        then, _, now = what.rpartition(" then, ")
        raise RunError(
            f"{other.name} is no shard of the run of {first.name}: {then} there, {now.removesuffix(' now')} here"
        )
    for key in _SELECTING:
        there, here = first.folder.options.get(key), other.folder.options.get(key)
        if there != here:
            raise RunError(f"{other.name} is no shard of the run of {first.name}: {key}: {there} there, {here} here")


def _gather(shards: Iterable[Shard], dataset: Dataset) -> tuple[dict[Key, QuestionResult], list[str]]:
    """Return the results of all shards, and what their readers should know. Raises RunError where two disagree."""
    results: dict[Key, QuestionResult] = {}
    found_in: dict[Key, str] = {}
    notes: list[str] = []
    for shard in shards:
        own, torn = shard.folder.results(shard.folder.population(dataset))
        notes += (f"{shard.name}: {line}" for line in torn)
        for key, result in own.items():
            other = results.setdefault(key, result)
            if (other.status, other.predicted) != (result.status, result.predicted):
                what = "another answer" if other.status == result.status else f"{other.status}, {result.status}"
                raise RunError(f"{found_in[key]} and {shard.name} disagree on {key[0]}: {what}")
            found_in.setdefault(key, shard.name)
    return results, notes


def _build(shards: Sequence[Shard], population: Dataset, results: Mapping[Key, QuestionResult], repeats: int) -> Report:
    first = shards[0].folder
    started_at = min(shard.folder.started_at for shard in shards)
    ended_at = max(
        shard.folder.started_at + timedelta(seconds=shard.recorded.duration_s if shard.recorded else 0)
        for shard in shards
    )
    left_out = sum(shard.recorded.population - shard.recorded.selected for shard in shards if shard.recorded)
    values: dict[str, Any] = {
        "started_at": started_at,
        "duration_s": (ended_at - started_at).total_seconds(),
        "selected": max(0, len(population) * repeats - left_out),
        "options": {**first.options, "shard": [1, 1]},
        "resumed": sum(shard.folder.resumed for shard in shards),
        "gates": (),
        "comparison": None,
        "exit_status": None,
    }
    recorded = next(filter(None, (shard.recorded for shard in shards)), None)
    return build(first, population, results, recorded=recorded, **values)


def _missing(shards: Sequence[Shard], population: Dataset) -> list[str]:
    """Return a phrase for each shard that is not there, of those that share the largest number of parts."""
    parts = max(shard.share[1] for shard in shards)
    if any(shard.share[1] != parts for shard in shards):
        return []
    there = {shard.share[0] for shard in shards}
    return [
        f"shard {part}/{parts} is missing: {many(len(population.questions[part - 1 :: parts]), 'question')}"
        for part in range(1, parts + 1)
        if part not in there
    ]
