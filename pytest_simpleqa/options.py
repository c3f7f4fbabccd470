"""The options: one table of what a user can say, read once into one frozen value."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from .errors import OptionError
from .paths import typed_path
from .prompts import ANSWER_TEMPLATE, Template, grade_template
from .records import Verdict
from .secret import Environment

Params = Mapping[str, Any]


class Spec(NamedTuple):
    """One option: its flag is `--` and the name with dashes, its ini key the name."""

    name: str
    metavar: str | None
    help: str
    many: bool = False
    ini: bool = True
    is_path: bool = False
    is_flag: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def ini_type(self) -> Literal["bool", "linelist", "string"]:
        if self.is_flag:
            return "bool"
        return "linelist" if self.many else "string"


OPTIONS = (
    Spec(
        "simpleqa_dataset",
        "SOURCE",
        "the questions: a .csv, .tsv, .jsonl or .json file (each also .gz), an https:// URL, 'sample' or 'simpleqa'",
        is_path=True,
    ),
    Spec("answer_llm", "SPEC", "the model under test, as <alias>[:<model>]; only on the command line", ini=False),
    Spec("judge_llm", "SPEC", "the judge, as <alias>[:<model>]; 'rules' judges offline"),
    Spec("answer_llm_param", "K=V", "request parameter for the answer model (V as JSON, else text); repeatable", True),
    Spec("judge_llm_param", "K=V", "request parameter for the judge (default temperature=0; K= drops it)", True),
    Spec("simpleqa_answer_prompt", "TEXT", "answer prompt, or file:PATH; holds {question} (default: just that)"),
    Spec("simpleqa_grade_prompt", "TEXT", "grade prompt, or file:PATH; holds {question}, {target}, {predicted_answer}"),
    Spec("simpleqa_concurrency", "N", "answer+judge pairs in flight in the whole run (default 32)"),
    Spec("simpleqa_timeout", "SECONDS", "deadline of one question, from its first request (default 90; 0 = none)"),
    Spec("simpleqa_limit", "N", "only the first N questions"),
    Spec("simpleqa_sample", "N", "only N questions drawn at random, the same in every process"),
    Spec("simpleqa_seed", "S", "seed of --simpleqa-sample (default 0)"),
    Spec("simpleqa_topic", "NAME", "only this topic (exact, any case); repeatable", True),
    Spec("simpleqa_shard", "I/N", "only the I-th of N disjoint shares"),
    Spec("simpleqa_repeats", "K", "put each question K times (default 1)"),
    Spec("simpleqa_out", "FILE", "also write the Report here; '-' = standard output after the session", is_path=True),
    Spec("simpleqa_run_dir", "DIR", "where runs are kept (default .simpleqa)", is_path=True),
    Spec("simpleqa_resume", "RUN", "go on with a run: its directory, 'latest' or 'auto'; not in ini files", ini=False),
    Spec("simpleqa_max_samples", "N", "rows kept in the Report's samples (default 200; -1 = all)"),
    Spec("no_simpleqa_topic_breakdown", None, "leave per_topic out of the Report and the summary", is_flag=True),
    Spec("simpleqa_gate", "EXPR", "what the run must reach, such as 'accuracy >= 0.4'; repeatable", True),
    Spec("simpleqa_baseline", "FILE", "an earlier Report or run that gates compare with", is_path=True),
    Spec("simpleqa_max_failures", "RATE", "share of failed rows that leaves a gate undecided (default 0.01)"),
    Spec("simpleqa_fail_on", "LIST", "verdicts that fail: incorrect,not_attempted, or none as with a gate"),
    Spec("simpleqa_parse", "RULE", "how the judge's reply is read: strict (default) or paper"),
    Spec("simpleqa_progress_pct", "P", "a progress line every P percent (default 25; 0 = none)"),
    Spec("simpleqa_env_file", "FILE", "a dotenv file with keys; what the shell has set wins", is_path=True),
)  # fmt: skip

NEEDS_MODEL = ("simpleqa_dataset", "simpleqa_gate", "simpleqa_baseline", "simpleqa_resume")
"""Options that say nothing without --answer-llm: on the command line alone they are an error."""


def is_asked_for(config: pytest.Config) -> bool:
    """Tell, at no cost, whether this session may have anything to do with us."""
    option = config.option
    if getattr(option, "help", False) or getattr(option, "version", 0):
        return False
    return any(getattr(option, name, None) is not None for name in ("answer_llm", *NEEDS_MODEL))


def add_options(parser: pytest.Parser) -> None:
    """Register every option and its ini key."""
    group = parser.getgroup("simpleqa", "factuality benchmarks as test items")
    for spec in OPTIONS:
        text = spec.help.replace("%", "%%")
        if spec.is_flag:
            group.addoption(spec.flag, dest=spec.name, action="store_true", default=None, help=text)
        else:
            action = "append" if spec.many else "store"
            group.addoption(spec.flag, dest=spec.name, metavar=spec.metavar, action=action, default=None, help=text)
        if spec.ini:
            parser.addini(spec.name, spec.help, type=spec.ini_type, default=None)


@dataclass(frozen=True)
class Options:
    """What the user asked for, checked."""

    answer_llm: str | None
    """None only under --collect-only."""
    judge_llm: str | None
    judge_base: Path
    """What a relative path in the judge's spec counts from."""
    dataset: str
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
    paper: bool
    progress_pct: float
    environment: Mapping[str, str] = field(repr=False)
    """The shell's variables over those of the dotenv file."""
    invocation_dir: Path = field(default_factory=Path.cwd)

    @classmethod
    def from_config(cls, config: pytest.Config) -> Options | None:
        """Return the options of this session, or None where the plugin has nothing to do.

        Raises OptionError for a mistake, in one line.
        """
        said = _Said(config)
        if not _wanted(said):
            return None
        said.refuse_lost_ini_file()
        source, base = said.path_text("simpleqa_dataset")
        if source is None:
            raise OptionError(
                "--answer-llm needs a dataset: add --simpleqa-dataset=FILE, =sample (shipped) or =simpleqa (official)"
            )
        answer_llm = said.text("answer_llm")
        judge_llm = said.text("judge_llm")
        if answer_llm is not None and judge_llm is None:
            raise OptionError(
                "--judge-llm is missing: name a judge model as <alias>[:<model>], or 'rules' for a rough offline judge"
            )
        return cls(
            answer_llm=answer_llm,
            judge_llm=judge_llm,
            judge_base=said.path_text("judge_llm")[1],
            dataset=source,
            dataset_base=base,
            answer_params=said.params("answer_llm_param", {}),
            judge_params=said.params("judge_llm_param", {"temperature": 0}),
            answer_prompt=said.template("simpleqa_answer_prompt", Template(ANSWER_TEMPLATE), "question"),
            grade_prompt=said.template(
                "simpleqa_grade_prompt", grade_template(), "question", "target", "predicted_answer"
            ),
            concurrency=said.whole("simpleqa_concurrency", 32, least=1),
            timeout=said.number("simpleqa_timeout", 90.0),
            limit=said.whole("simpleqa_limit", 0, least=0),
            sample=said.whole("simpleqa_sample", 0, least=0),
            seed=said.whole("simpleqa_seed", 0),
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
            paper=said.choice("simpleqa_parse", ("strict", "paper")) == "paper",
            progress_pct=said.number("simpleqa_progress_pct", 25.0, most=100.0),
            environment=said.environment("simpleqa_env_file"),
            invocation_dir=said.invocation_dir,
        )

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
        }


def _wanted(said: _Said) -> bool:
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
        return said.typed("simpleqa_dataset")
    raise OptionError(
        f"{typed[0].flag} needs a model: add --answer-llm=<alias>[:<model>] (and --judge-llm), or --collect-only to "
        "list the questions"
    )


class _Said:
    """What stands on the command line, else in the ini file; each reader checks its value."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.invocation_dir = config.invocation_params.dir
        self._specs = {spec.name: spec for spec in OPTIONS}
        self._typed = _expanded(config.invocation_params.args, self.invocation_dir)

    def typed(self, name: str) -> bool:
        """Tell whether the option stands on the command line itself, not in addopts."""
        flag = self._specs[name].flag
        return any(arg == flag or arg.startswith(f"{flag}=") for arg in self._typed)

    def value(self, name: str) -> tuple[Any, str]:
        """Return the raw value (None where nothing was said) and where it was said."""
        spec = self._specs[name]
        given = self.config.getoption(name, None)
        if given is not None:
            return given, spec.flag
        if spec.ini:
            given = self.config.getini(name)
            if given not in (None, "", []):
                return given, f"ini key {name}"
        return None, spec.flag

    def text(self, name: str) -> str | None:
        given, where = self.value(name)
        if given is not None and not given.strip():
            raise OptionError(f"{where}: the value is empty")
        return None if given is None else given.strip()

    def many(self, name: str) -> list[str]:
        return list(self.value(name)[0] or [])

    def flag(self, name: str) -> bool:
        return bool(self.value(name)[0])

    def path_text(self, name: str) -> tuple[str | None, Path]:
        """Return the text, and the folder that a relative path in it counts from."""
        text = self.text(name)
        from_ini = self.value(name)[1].startswith("ini")
        if from_ini and self.config.inipath is not None:
            return text, self.config.inipath.parent
        return text, self.invocation_dir

    def path(self, name: str) -> Path | None:
        text, base = self.path_text(name)
        return None if text is None or text == "-" else typed_path(text, base)

    def whole(self, name: str, default: int, least: int | None = None) -> int:
        text = self.text(name)
        if text is None:
            return default
        wanted = "a whole number" + ("" if least is None else f" of at least {least}")
        try:
            value = int(text)
        except ValueError:
            raise self._wrong(name, text, wanted) from None
        if least is not None and value < least:
            raise self._wrong(name, text, wanted)
        return value

    def number(self, name: str, default: float, most: float = math.inf) -> float:
        text = self.text(name)
        if text is None:
            return default
        wanted = "a number of at least 0" if most == math.inf else f"a number from 0 to {most:g}"
        try:
            value = float(text)
        except ValueError:
            raise self._wrong(name, text, wanted) from None
        if not 0 <= value <= most or not math.isfinite(value):
            raise self._wrong(name, text, wanted)
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str:
        text = self.text(name)
        if text is None:
            return choices[0]
        if text not in choices:
            raise self._wrong(name, text, " or ".join(choices))
        return text

    def verdicts(self, name: str, default: frozenset[Verdict]) -> frozenset[Verdict]:
        text = self.text(name)
        if text is None:
            return default
        allowed = (Verdict.INCORRECT.value, Verdict.NOT_ATTEMPTED.value)
        words = [word.strip() for word in text.split(",")]
        if words == ["none"]:
            return frozenset()
        if not set(words) <= set(allowed):
            raise self._wrong(name, text, f"a list of {', '.join(allowed)}, or none")
        return frozenset(Verdict(word) for word in words)

    def shard(self, name: str) -> tuple[int, int]:
        text = self.text(name)
        if text is None:
            return 1, 1
        first, _, count = text.partition("/")
        if not (first.isascii() and first.isdigit() and count.isascii() and count.isdigit()) or not (
            1 <= int(first) <= int(count)
        ):
            raise self._wrong(name, text, "I/N with I from 1 to N, such as 2/8")
        return int(first), int(count)

    def params(self, name: str, defaults: Params) -> Params:
        params = dict(defaults)
        for text in self.many(name):
            key, equals, value = text.partition("=")
            if not equals or not key.strip().isidentifier():
                raise self._wrong(name, text, "NAME=VALUE, such as temperature=0")
            if key.strip() in ("model", "messages", "stream"):
                raise OptionError(f"{self.value(name)[1]} {text!r}: {key.strip()} is set by the run itself")
            # None leaves a parameter out, the connection's own default included.
            params[key.strip()] = None if value == "" else _json_or_text(value)
        return params

    def template(self, name: str, default: Template, *needed: str) -> Template:
        text, base = self.path_text(name)
        if text is None:
            return default
        where = self.value(name)[1]
        raw: str = self.value(name)[0]
        if text.startswith("file:"):
            path = typed_path(text.removeprefix("file:"), base)
            try:
                raw = path.read_bytes().decode("utf-8-sig")
            except OSError as error:
                raise OptionError(f"{where}: {path} cannot be read: {error.strerror}") from None
            except UnicodeDecodeError:
                raise OptionError(f"{where}: {path} is not UTF-8 text") from None
        template = Template(raw)
        template.require(where, *needed)
        return template

    def environment(self, name: str) -> Mapping[str, str]:
        path = self.path(name)
        if path is None:
            return Environment(os.environ)
        if not path.is_file():
            raise OptionError(f"{self.value(name)[1]}: {path}: no such file")
        from dotenv import dotenv_values

        try:
            kept = dotenv_values(path, encoding="utf-8", interpolate=False)
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"{self.value(name)[1]}: {path} cannot be read: {type(error).__name__}") from None
        return Environment({**{key: value for key, value in kept.items() if value is not None}, **os.environ})

    def refuse_lost_ini_file(self) -> None:
        """Refuse to go on where pytest took an option's path for a test path and so missed the ini file.

        pytest looks for its rootdir from every existing path among the arguments, an option's value
        after a space included.
        """
        if self.config.inipath is not None:
            return
        spaced = self._spaced_path()
        found = spaced and _ini_file_above(self.invocation_dir)
        if found and spaced:
            flag, value = spaced
            raise OptionError(
                f"{flag} {value}: pytest takes a path after a space for a test path and so missed {found}; "
                f"write {flag}={value}"
            )

    def _spaced_path(self) -> tuple[str, str] | None:
        flags = {spec.flag for spec in OPTIONS if spec.is_path}
        for flag, value in zip(self._typed, self._typed[1:], strict=False):
            if flag in flags and (self.invocation_dir / value).exists():
                return flag, value
        return None

    def _wrong(self, name: str, text: str, wanted: str) -> OptionError:
        shown = text if len(text) <= 80 else text[:79] + "…"
        return OptionError(f"{self.value(name)[1]} {shown!r}: wanted {wanted}")


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value, parse_constant=_refuse_constant)
    except ValueError:
        return value


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


def _expanded(args: Sequence[Any], base: Path) -> list[str]:
    """Return the arguments with those of an @file, which pytest reads one a line."""
    expanded: list[str] = []
    for arg in map(str, args):
        if arg.startswith("@") and (base / arg[1:]).is_file():
            expanded += (base / arg[1:]).read_text(encoding="utf-8", errors="replace").splitlines()
        else:
            expanded.append(arg)
    return expanded


_INI_FILES: Mapping[str, Callable[[str], bool]] = {
    "pytest.toml": lambda text: True,
    ".pytest.toml": lambda text: True,
    "pytest.ini": lambda text: True,
    ".pytest.ini": lambda text: True,
    "pyproject.toml": lambda text: "[tool.pytest" in text,
    "tox.ini": lambda text: "[pytest]" in text,
    "setup.cfg": lambda text: "[tool:pytest]" in text,
}


def _ini_file_above(folder: Path) -> Path | None:
    for parent in (folder, *folder.parents):
        for name, holds in _INI_FILES.items():
            path = parent / name
            if path.is_file() and holds(path.read_text(encoding="utf-8", errors="replace")):
                return path
    return None
