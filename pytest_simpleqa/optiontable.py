"""The table of options: what a user can say, on the command line and in ini files."""

from __future__ import annotations

from typing import Literal, NamedTuple

import pytest


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
    Spec(
        "answer_llm",
        "SPEC",
        "the model under test, as <alias>[:<model>] (azure:<deployment>, openai-responses:gpt-5, litellm:cohere/...); "
        "only on the command line",
        ini=False,
    ),
    Spec("judge_llm", "SPEC", "the judge, as <alias>[:<model>], or rules, match, includes, fuzzy_match, json_match"),
    Spec("answer_llm_param", "K=V", "request parameter for the answer model (V as JSON, else text); repeatable", True),
    Spec("judge_llm_param", "K=V", "request parameter for the judge (default temperature=0; K= drops it)", True),
    Spec("simpleqa_answer_prompt", "TEXT", "answer prompt, or file:PATH; holds {question} (default: just that)"),
    Spec("simpleqa_ask_confidence", None, "ask in the answer prompt for a stated percentage as well", is_flag=True),
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
    Spec("simpleqa_sentinels", "N", "show the judge N answers with known verdicts; one that fails decides no gate"),
    Spec("simpleqa_parse", "RULE", "how the judge's reply is read: strict (default) or paper"),
    Spec("simpleqa_progress_pct", "P", "a progress line every P percent (default 25, after 5 s; 0 = none)"),
    Spec("simpleqa_eval", "NAME", "an eval of a registry of OpenAI Evals, by name or alias; repeatable", True),
    Spec("simpleqa_eval_set", "NAME", "all evals of an eval set"),
    Spec("simpleqa_eval_param", "KEY=VALUE", "an argument of the evals, over their own (as JSON, else text)", True),
    Spec("simpleqa_registry_path", "DIR", "a registry of evals, before ~/.evals; repeatable", True, is_path=True),
    Spec("simpleqa_record", "FILE", "write a log of events as OpenAI Evals does, as results come", is_path=True),
    Spec("simpleqa_db", "URL", "also write results to a database: an URL of SQLAlchemy, or a file", is_path=True),
    Spec("simpleqa_env_file", "FILE", "a dotenv file with keys; what the shell has set wins", is_path=True),
)  # fmt: skip

NEEDS_MODEL = (
    "simpleqa_dataset",
    "simpleqa_eval",
    "simpleqa_eval_set",
    "simpleqa_gate",
    "simpleqa_baseline",
    "simpleqa_resume",
)
"""Options that say nothing without --answer-llm: on the command line alone they are an error."""


def is_asked_for(config: pytest.Config) -> bool:
    """Tell, at no cost, whether this session may have anything to do with us."""
    option = config.option
    if getattr(option, "help", False) or getattr(option, "version", 0):
        return False
    return any(getattr(option, name, None) is not None for name in ("answer_llm", *NEEDS_MODEL))


def refuse_loop(config: pytest.Config) -> None:
    """Raise pytest.UsageError where xdist's loop would put the questions again after every change of a file."""
    if getattr(config.option, "looponfail", False) and getattr(config.option, "answer_llm", None) is not None:
        raise pytest.UsageError(
            "--looponfail with --answer-llm would ask a model again at every change of a file; leave one of them out"
        )


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
