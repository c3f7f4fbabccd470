"""A run directory: what was asked, the lines that came of it, and the Report that follows from them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .dataset import DatasetWarning, read_dataset, select
from .download import PINNED, SAMPLE, fetch
from .errors import DatasetError, RunError
from .judges.parse import other_rule
from .records import Dataset, Question, QuestionResult
from .report import Report
from .reportbuild import build_report
from .reportfile import read_report
from .resume import resume_command
from .rundisk import read_run_json, results_files
from .runlog import Key, read_rows


@dataclass(frozen=True)
class RunFolder:
    """A run directory: what was asked, and the lines that came of it."""

    path: Path
    content: Mapping[str, Any]
    """Its `run.json`."""

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Return the run in `path`. Raises RunError where it is none."""
        content = read_run_json(path)
        for key in ("dataset", "answer", "judge", "answer_prompt", "grade_prompt", "options"):
            if not isinstance(content.get(key), dict):
                raise RunError(f"{path / 'run.json'}: '{key}' is missing; wanted a run of this pytest-simpleqa")
        return cls(path, content)

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that the run was started with."""
        options: Mapping[str, Any] = self.content["options"]
        return options

    @property
    def is_of_eval(self) -> bool:
        """Whether the questions were samples of an eval."""
        return "eval" in self.content["dataset"]

    @property
    def started_at(self) -> datetime:
        """When the run was started."""
        try:
            started = datetime.fromisoformat(str(self.content.get("started_at")))
        except ValueError:
            raise RunError(f"{self.path / 'run.json'}: 'started_at' is no time") from None
        return started if started.tzinfo else started.replace(tzinfo=UTC)

    @property
    def resumed(self) -> int:
        """How often the run was resumed."""
        return int(self.content.get("resumed", 0))

    @property
    def resume(self) -> str | None:
        """What to type to go on with the run; None where it does not say how it was begun."""
        typed = self.content.get("typed")
        is_whole = isinstance(typed, list) and all(isinstance(each, str) for each in typed)
        return resume_command(typed or [], self.path.resolve().name) if is_whole else None

    def recorded(self) -> Report | None:
        """Return the Report that the run's last session wrote; None where it was killed before."""
        path = self.path / "report.json"
        return read_report(path) if path.is_file() else None

    def dataset(self, source: str | None, base: Path) -> Dataset | None:
        """Return the whole dataset, from `source` or from where it usually lies; None where it is not found.

        Raises DatasetError where `source` cannot be read, RunError where it is not the run's.
        """
        name, sha256 = str(self.content["dataset"].get("name")), self.content["dataset"].get("sha256")
        if source is not None and self.is_of_eval:
            raise RunError(f"--dataset {source}: {self.path.name} has asked the samples of an eval; leave it out")
        if source is not None:
            found = read_quietly(fetch(source, base=base), name)
            if found.sha256 != sha256:
                raise RunError(
                    f"--dataset {source}: {self.path.name} was asked another file: sha256 {str(sha256)[:12]}… wanted, "
                    f"{found.sha256[:12]}… found"
                )
            return found
        for path in self._usual_places(name, base):
            try:
                found = read_quietly(path, name)
            except DatasetError:
                continue
            if found.sha256 == sha256:
                return found
        return None

    def _usual_places(self, name: str, base: Path) -> Iterable[Path]:
        if name == SAMPLE or name in PINNED:
            yield fetch(name, base=base)
        # A run directory lies in .simpleqa of the folder that the dataset's path counted from.
        for folder in dict.fromkeys((base, self.path.resolve().parent.parent, self.path.resolve().parent)):
            if (path := folder / name).is_file():
                yield path

    @property
    def finished(self) -> int:
        """How many rows have a verdict or an error among the lines."""
        return sum(bool(row.verdict or row.error) for row in read_rows(results_files(self.path))[0].values())

    def population(self, dataset: Dataset, shard: Sequence[int] | None = None) -> Dataset:
        """Return the questions of the run, or those of another of its shards (`(1, 1)`: of all)."""
        options = self.options
        part, parts = shard or options.get("shard") or (1, 1)
        return select(
            dataset,
            limit=options.get("limit_questions", 0),
            sample=options.get("sample", 0),
            seed=options.get("seed", 0),
            topics=options.get("topics", ()),
            shard=(part, parts),
        )

    def results(self, population: Iterable[Question]) -> tuple[dict[Key, QuestionResult], list[str]]:
        """Return what the lines say of `population`, by question id and repeat, and a phrase for each torn line."""
        rows, torn = read_rows(results_files(self.path))
        repeats = self.options.get("repeats", 1)
        keys = [(question, repeat) for question in population for repeat in range(1, repeats + 1)]
        found = {
            (question.id, repeat): result
            for question, repeat in keys
            if (row := rows.get((question.id, repeat))) is not None
            and row.fingerprint == question.fingerprint
            and (result := row.result(question, repeat)) is not None
        }
        return found, torn


def build(
    folder: RunFolder,
    population: Dataset,
    results: Mapping[Key, QuestionResult],
    *,
    recorded: Report | None,
    **values: Any,
) -> Report:
    """Return the Report of a run from its lines; what only its last session knew comes from the `recorded` one.

    `values` are those of `build_report` that differ from what the run says of itself.
    """
    options, content = folder.options, folder.content
    known: dict[str, Any] = {
        "name": recorded.name if recorded else population.name,
        "dataset": population.name,
        "model": str(content["answer"].get("spec")),
        "judge": str(content["judge"].get("spec")),
        "started_at": folder.started_at,
        "duration_s": recorded.duration_s if recorded else 0.0,
        "selected": recorded.selected if recorded else None,
        "options": options,
        "provenance": recorded.provenance if recorded else _provenance(content),
        "resumed": folder.resumed,
        "gates": recorded.gates if recorded else (),
        "comparison": recorded.comparison if recorded else None,
        "exit_status": recorded.exit_status if recorded else None,
    }
    return build_report(
        **{**known, **values},
        population=population.questions,
        results=results,
        repeats=options.get("repeats", 1),
        max_samples=options.get("max_samples", 200),
        topic_breakdown=options.get("include_topic_breakdown", True),
        other_parse=other_rule(paper=options.get("parse") == "paper"),
    )


def _provenance(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what run.json says of where the numbers come from."""
    return {
        "dataset_sha256": content["dataset"].get("sha256"),
        "answer_prompt_sha256": content["answer_prompt"].get("sha256"),
        "grade_prompt_sha256": content["grade_prompt"].get("sha256"),
        **{role: {key: value for key, value in content[role].items() if key != "spec"} for role in ("answer", "judge")},
        "versions": content.get("versions") or {},
    }


def read_quietly(path: Path, name: str) -> Dataset:
    """Read a dataset whose twins were told of when the run was asked. Raises DatasetError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)
        return read_dataset(path, name)
