"""The options of one session, read once into one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .errors import OptionError
from .optiontable import NEEDS_MODEL, OPTIONS
from .paths import file_word
from .prompts import ANSWER_TEMPLATE, Template, grade_template
from .records import Verdict
from .said import Params, Said
from .secret import Secret, without_secrets


@dataclass(frozen=True)
class Options:
    """What the user asked for, checked."""

    answer_llm: str | None
    """None only under --collect-only."""
    judge_llm: str | None
    """Never None beside a dataset and an answer model; some evals need none."""
    judge_base: Path
    """What a relative path in the judge's spec counts from."""
    dataset: str | None
    """None where only evals, or tests of the user's, ask questions."""
    dataset_base: Path
    """What a relative dataset path counts from."""
    answer_params: Params
    judge_params: Params
    answer_prompt: Template
    grade_prompt: Template
    concurrency: int
    timeout: float
    """Seconds; 0 = none."""
    limit: int
    """0 = all; likewise `sample`."""
    sample: int
    seed: int
    is_seeded: bool
    """Whether the user has named the seed: evals have one of their own."""
    topics: tuple[str, ...]
    shard: tuple[int, int]
    repeats: int
    out: Path | None
    out_stdout: bool
    run_dir: Path
    resume: str | None
    max_samples: int
    topic_breakdown: bool
    gates: tuple[str, ...]
    baseline: Path | None
    max_failures: float
    """A fraction of the rows."""
    fail_on: frozenset[Verdict]
    fails_by_order: bool
    """Whether the user has said which verdicts fail, so that they do beside a gate too."""
    sentinels: int
    """Answers with a known verdict that the judge is shown; 0 = none."""
    paper: bool
    progress_pct: float
    tells_progress: bool
    """Whether the user has said so, so that a run of a few seconds tells of itself too."""
    evals: tuple[str, ...]
    """Names of evals, as typed; likewise `eval_set`."""
    eval_set: str | None
    eval_params: Params
    """Laid over the `args` of every eval."""
    registry_paths: tuple[Path, ...]
    record: Path | None
    """Where the log of events goes."""
    db: Secret | None
    """The database's address, as typed: it may hold a password."""
    db_base: Path
    """What a relative path in it counts from."""
    environment: Mapping[str, str] = field(repr=False)
    """The shell's variables over those of the dotenv file."""
    invocation_dir: Path = field(default_factory=Path.cwd)
    typed: tuple[str, ...] = ()
    """The command line's arguments, without passwords."""

    @classmethod
    def from_config(cls, config: pytest.Config) -> Options | None:
        """Return the options of this session, or None where the plugin has nothing to do.

        Raises OptionError for a mistake, in one line.
        """
        said = Said(config)
        if not _wanted(said):
            return None
        said.refuse_lost_ini_file()
        _refuse_where_only_evals_are_asked(said)
        source, base = said.path_text("simpleqa_dataset")
        answer_llm = said.text("answer_llm")
        judge_llm = said.text("judge_llm")
        if answer_llm is not None and judge_llm is None and source is not None:
            raise OptionError(
                "--judge-llm is missing: name a judge model as <alias>[:<model>], or 'rules' for a rough offline judge"
            )
        prompt = said.template("simpleqa_answer_prompt", Template(ANSWER_TEMPLATE), "question")
        return cls(
            answer_llm=answer_llm,
            judge_llm=judge_llm,
            judge_base=said.path_text("judge_llm")[1],
            dataset=source,
            dataset_base=base,
            answer_params=said.params("answer_llm_param", {}),
            judge_params=said.params("judge_llm_param", {"temperature": 0}),
            answer_prompt=prompt.asking_confidence() if said.flag("simpleqa_ask_confidence") else prompt,
            grade_prompt=said.template(
                "simpleqa_grade_prompt", grade_template(), "question", "target", "predicted_answer"
            ),
            concurrency=said.whole("simpleqa_concurrency", 32, least=1),
            timeout=said.number("simpleqa_timeout", 90.0),
            limit=said.whole("simpleqa_limit", 0, least=0),
            sample=said.whole("simpleqa_sample", 0, least=0),
            seed=said.whole("simpleqa_seed", 0),
            is_seeded=said.text("simpleqa_seed") is not None,
            topics=tuple(said.many("simpleqa_topic")),
            shard=said.shard("simpleqa_shard"),
            repeats=said.whole("simpleqa_repeats", 1, least=1),
            out=said.path("simpleqa_out"),
            out_stdout=said.text("simpleqa_out") == "-",
            run_dir=said.path("simpleqa_run_dir") or said.invocation_dir / ".simpleqa",
            resume=said.text("simpleqa_resume"),
            max_samples=said.whole("simpleqa_max_samples", 200, least=-1),
            topic_breakdown=not said.flag("no_simpleqa_topic_breakdown"),
            gates=(gates := tuple(said.many("simpleqa_gate"))),
            baseline=said.path("simpleqa_baseline"),
            max_failures=said.number("simpleqa_max_failures", 0.01, most=1.0),
            fail_on=said.verdicts("simpleqa_fail_on", frozenset() if gates else frozenset({Verdict.INCORRECT})),
            fails_by_order=said.text("simpleqa_fail_on") is not None,
            sentinels=said.whole("simpleqa_sentinels", 0, least=0),
            paper=said.choice("simpleqa_parse", ("strict", "paper")) == "paper",
            progress_pct=said.number("simpleqa_progress_pct", 25.0, most=100.0),
            tells_progress=said.text("simpleqa_progress_pct") is not None,
            evals=tuple(said.many("simpleqa_eval")),
            eval_set=said.text("simpleqa_eval_set"),
            eval_params=said.assignments("simpleqa_eval_param"),
            registry_paths=said.paths("simpleqa_registry_path"),
            record=said.path("simpleqa_record"),
            db=Secret(db[0]) if (db := said.path_text("simpleqa_db"))[0] else None,
            db_base=db[1],
            environment=said.environment("simpleqa_env_file"),
            invocation_dir=said.invocation_dir,
            typed=tuple(without_secrets(str(arg)) for arg in config.invocation_params.args),
        )

    def out_of(self, run: str) -> Path | None:
        """Return where the Report of a run is also to be written; None where nowhere."""
        return _named_after(run, self.out)

    def record_of(self, run: str) -> Path | None:
        """Return where the log of a run's events goes; None where nowhere."""
        return _named_after(run, self.record)

    @property
    def options_json(self) -> dict[str, Any]:
        """The options as they stand in the Report."""
        return {
            "concurrency": self.concurrency,
            "limit_questions": self.limit,
            "max_samples": self.max_samples,
            "per_question_timeout": self.timeout,
            "repeats": self.repeats,
            "parse": "paper" if self.paper else "strict",
            "include_topic_breakdown": self.topic_breakdown,
            "sample": self.sample,
            "seed": self.seed,
            "topics": list(self.topics),
            "shard": list(self.shard),
            "fail_on": sorted(self.fail_on),
            "ask_confidence": self.answer_prompt.asks_confidence,
            "sentinels": self.sentinels,
        }


def _named_after(run: str, path: Path | None) -> Path | None:
    """Return `path` with the run's name in the place of `{name}`."""
    if path is None or "{name}" not in path.name:
        return path
    return path.with_name(path.name.replace("{name}", file_word(run, most=150)))


_OF_DATASETS = (
    "simpleqa_answer_prompt",
    "simpleqa_ask_confidence",
    "simpleqa_grade_prompt",
    "simpleqa_parse",
    "simpleqa_sentinels",
)
"""Options that concern the questions of a dataset: an eval has prompts, and a judge, of its own."""


def _refuse_where_only_evals_are_asked(said: Said) -> None:
    """Raise OptionError for an option that would do nothing; where tests are named, they may have questions."""
    has_evals = bool(said.many("simpleqa_eval")) or said.text("simpleqa_eval_set") is not None
    names_tests = said.config.args_source is pytest.Config.ArgsSource.ARGS
    if not has_evals or names_tests or said.text("simpleqa_dataset") is not None:
        return
    for spec in OPTIONS:
        if spec.name in _OF_DATASETS and said.typed(spec.name):
            raise OptionError(
                f"{spec.flag} concerns the questions of a dataset, and only evals are asked, which have prompts and a "
                "judge of their own; leave it out"
            )


def _wanted(said: Said) -> bool:
    """Tell whether this session asks questions (or collects them), refusing what would ask by accident."""
    if said.text("answer_llm") is not None:
        if not said.typed("answer_llm"):
            raise OptionError(
                "--answer-llm stands in addopts or PYTEST_ADDOPTS: it costs money, so it is taken from the command "
                "line only; remove it there and type it"
            )
        return True
    typed = [spec for spec in OPTIONS if spec.name in NEEDS_MODEL and said.typed(spec.name)]
    if not typed:
        return False
    if said.config.getoption("collectonly"):
        return any(said.typed(name) for name in ("simpleqa_dataset", "simpleqa_eval", "simpleqa_eval_set"))
    raise OptionError(
        f"{typed[0].flag} needs a model: add --answer-llm=<alias>[:<model>] (and --judge-llm), or --collect-only to "
        "list the questions"
    )
