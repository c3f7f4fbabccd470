"""A run that was kept: read back from its directory, its Report or a recording, with all that is known of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from .baseline import Baseline, read_baseline
from .download import dataset_name, fetch
from .errors import DatasetError, RunError
from .intervals import intervals_of
from .metrics import Counts
from .pairing import ComparedRow, rows_of, rows_of_report
from .paths import typed_path
from .records import Question, QuestionResult
from .report import Report
from .reportfile import read_report
from .resume import newest_run
from .rundisk import results_files
from .runfolder import RunFolder, build, read_quietly

RUNS = ".simpleqa"
"""Where runs are kept, from the working directory."""


@dataclass(frozen=True)
class KeptRun:
    """A run as its Report tells it, and row by row."""

    report: Report
    rows: tuple[ComparedRow, ...]
    """Of the population, in dataset order."""
    path: Path
    model: str | None
    """Who answered and who judged, where anybody wrote it down."""
    judge: str | None
    is_rebuilt: bool = False
    """The Report was built again from the run's lines."""
    is_stale: bool = False
    """The Report's gates and exit status were decided on other verdicts."""
    results: tuple[QuestionResult, ...] = ()
    """Whatever is kept whole, in dataset order."""
    resume: str | None = None
    """What to type to go on with it; None where nobody wrote that down."""
    notes: tuple[str, ...] = ()
    """What its reader should know, a phrase each."""

    @property
    def as_baseline(self) -> Baseline:
        """The same, to compare others with."""
        report, name = self.report, self.path.resolve().name
        return Baseline(name, self.rows, self.model, self.judge, report.dataset, report.name, report.wrapped_by)


# -- finding --------------------------------------------------------------------------------------


def run_folder(path: Path) -> Path | None:
    """Return the run directory that `path` is, or whose Report it is; None for anything else."""
    folder = path if path.is_dir() else path.parent
    is_part = path.is_dir() or path.name == "report.json"
    return folder if is_part and (folder / "run.json").is_file() and results_files(folder) else None


def find_path(word: str, base: Path) -> Path:
    """Return the path that `word` means: `latest`, a path, or the name of a run in .simpleqa. Raises RunError."""
    if word == "latest":
        return newest_run(base / RUNS)
    path = typed_path(word, base)
    for each in (path, base / RUNS / word):
        if each.exists():
            return each
    if path.name.rpartition("#")[0] and path.with_name(path.name.rpartition("#")[0]).exists():
        return path  # FILE#system, one of several in a file
    raise RunError(f"{word}: there is no such file, and no run of that name in {RUNS}")


def read_kept_run(word: str, base: Path, dataset: str | None = None) -> KeptRun:
    """Return the run that `word` means: a run directory, its name in .simpleqa or `latest`, a Report, or a recording.

    `dataset` is the source of its questions, which are otherwise looked for. Raises SimpleQAError.
    """
    path = find_path(word, base)
    folder = run_folder(path)
    if folder is not None:
        return _from_folder(RunFolder.open(folder), dataset, base)
    if path.is_dir() and (path / "report.json").is_file():
        path /= "report.json"
    try:
        report = read_report(path) if path.suffix == ".json" else None
    except RunError:
        report = None  # another JSON: a recording, or whoever reads it next says what is wrong
    if report is not None:
        rows = tuple(rows_of_report(report))
        return KeptRun(report, rows, path, report.model, report.judge, results=report.samples)
    return _from_recording(path, dataset, base)


def _not_here(folder: RunFolder) -> str:
    """Return why a Report cannot be built of the run's lines, and what to do."""
    if folder.is_of_eval:
        return "an eval's samples are not read here; go on with the run, by --simpleqa-resume"
    return f"{folder.content['dataset'].get('name')} is not here; add --dataset=FILE"


def _from_folder(folder: RunFolder, source: str | None, base: Path) -> KeptRun:
    recorded = folder.recorded()
    dataset = folder.dataset(source, base)
    if dataset is None:
        if recorded is None:
            raise RunError(f"{folder.path}: there is no report.json, and {_not_here(folder)}")
        if folder.finished != recorded.n:
            raise RunError(f"{folder.path}: report.json is older than the run's lines, and {_not_here(folder)}")
        name = folder.content["dataset"].get("name")
        note = f"{name} is not here, so the Report is as it was written; --dataset=FILE builds it again"
        notes = () if folder.is_of_eval else (note,)
        rows = tuple(rows_of_report(recorded))
        names = recorded.model, recorded.judge
        return KeptRun(recorded, rows, folder.path, *names, results=recorded.samples, resume=folder.resume, notes=notes)
    population = folder.population(dataset)
    results, torn = folder.results(population)
    report = build(folder, population, results, recorded=recorded)
    rows = tuple(rows_of(population.questions, results, folder.options.get("repeats", 1)))
    is_stale = recorded is not None and _grounds(recorded) != _grounds(report)
    names = report.model, report.judge
    return KeptRun(
        report, rows, folder.path, *names, True, is_stale, tuple(results.values()), folder.resume, tuple(torn)
    )


def _grounds(report: Report) -> tuple[object, ...]:
    """Return what gates are decided on."""
    return report.verdicts, report.sentinels


def _from_recording(path: Path, source: str | None, base: Path) -> KeptRun:
    """Return a recording with verdicts as a run; its Report has no more than the counts."""
    try:
        found = read_baseline(path)
    except RunError as error:  # which takes it for a baseline
        raise RunError(str(error).removeprefix("baseline ")) from None
    rows = _with_texts(found.rows, _texts(path, source, base))
    counts = Counts.from_statuses(_status(row) for row in rows if row.finished)
    report = Report(
        name=found.dataset or found.name,
        dataset=found.dataset or found.name,
        model=found.model or f"replay:{found.name}",
        judge=found.judge or f"replay:{found.name}",
        started_at=datetime.fromtimestamp(int(_file_of(path).stat().st_mtime), UTC),
        duration_ms=0,
        population=len(rows),
        selected=len(rows),
        **asdict(counts),
        intervals=intervals_of(counts),
        per_topic=None,
        per_answer_type=None,
        samples=(),
        verdicts=tuple((row.question_hash, row.gold_hash or "", row.repeat, row.verdict) for row in rows),
    )
    return KeptRun(report, rows, path, found.model, found.judge, notes=found.warnings)


def _status(row: ComparedRow) -> str:
    if row.verdict is not None:
        return row.verdict.value
    return "error" if row.predicted is None else "judge_failure"


def _file_of(path: Path) -> Path:
    return path if path.exists() else path.with_name(path.name.rpartition("#")[0])


def _texts(path: Path, source: str | None, base: Path) -> Mapping[str, Question]:
    """Return the questions behind a recording by their hash: of `source`, else of the recording itself."""
    if source is not None:
        dataset = read_quietly(fetch(source, base=base), dataset_name(source))
        return {question.question_hash: question for question in dataset}
    try:
        dataset = read_quietly(path, path.name)
    except DatasetError:
        return {}
    return {question.question_hash: question for question in dataset}


def _with_texts(rows: Iterable[ComparedRow], texts: Mapping[str, Question]) -> tuple[ComparedRow, ...]:
    return tuple(
        replace(
            row,
            id=row.id or asked.id,
            question=row.question or asked.problem,
            gold=row.gold or asked.answer,
            topic=row.topic or asked.topic,
            answer_type=row.answer_type or asked.answer_type,
        )
        if (asked := texts.get(row.question_hash))
        else row
        for row in rows
    )
