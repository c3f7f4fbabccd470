"""A run in the words of OpenAI Evals' logs: its spec, what happened to each row, its final report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .prompts import Template
from .records import GRADED, Question, QuestionResult, Usage, Verdict
from .report import Report

EventData = tuple[str, Any]
"""Type and data of one event, such as `("match", {"correct": True, ...})`."""

_COUNTS = ("n", "correct", "incorrect", "not_attempted", "judge_failures", "errors", "recorded")
_RATES = ("accuracy", "attempted_accuracy", "abstention_rate", "hallucination_rate", "coverage", "f_score")


@dataclass(frozen=True)
class LoggedRun:
    """One run, as a log tells of it."""

    run_id: str
    """No other run anywhere has it; the same when the run is resumed."""
    name: str
    created_at: datetime
    """Aware."""
    content: Mapping[str, Any]
    """What run.json holds: what is asked, and of whom; no secrets."""
    prompt: Template | None = None
    """The answer prompt; None where an eval lays it out, and the question stands for it."""
    is_eval: bool = False
    """Whether it is an eval, whose samples OpenAI Evals counts from 0."""

    @property
    def completion_fns(self) -> list[str]:
        """The answer model's spec as typed."""
        return [str(self._part("answer").get("spec") or "")]

    @property
    def base_eval(self) -> str:
        return self.name.split(".")[0] if self.is_eval else self.name

    @property
    def split(self) -> str:
        """The middle of `<eval>.<split>.<version>`; empty for a dataset."""
        return [*self.name.split("."), ""][1] if self.is_eval else ""

    @property
    def run_config(self) -> dict[str, Any]:
        """What was asked for: the keys of OpenAI Evals but for the command line, and ours."""
        options, judge, dataset = self._part("options"), self._part("judge"), self._part("dataset")
        eval_spec = dataset.get("eval") or {}
        limit = options.get("limit_questions") or options.get("sample") or None
        return {
            "completion_fns": self.completion_fns,
            "eval_spec": {
                "key": self.name,
                "cls": eval_spec.get("class"),
                "args": eval_spec.get("args"),
                "dataset": dataset,
                "judge": judge.get("spec"),
            },
            "seed": options.get("seed"),
            "max_samples": limit,
            "initial_settings": {"visible": limit is None},
            "options": options,
            "versions": self._part("versions"),
        }

    def spec(self) -> dict[str, Any]:
        """Return what the first line of a log holds."""
        return {
            "completion_fns": self.completion_fns,
            "eval_name": self.name,
            "base_eval": self.base_eval,
            "split": self.split,
            "run_config": self.run_config,
            "created_by": "",
            "run_id": self.run_id,
            "created_at": str(self.created_at),
        }

    def sample_id(self, result: QuestionResult) -> str:
        """Return what names a row in the log; of an eval's `coqa.dev.v0::3` that is `coqa.dev.2`, as there."""
        word = f"{self.base_eval}.{self.split}.{int(result.id) - 1}" if self._is_counted(result) else result.id
        return f"{word}-r{result.repeat}" if self._part("options").get("repeats", 1) > 1 else word

    def events(self, result: QuestionResult) -> Iterator[EventData]:
        """Yield what happened to one row: as the eval's own code recorded it, else as OpenAI Evals' templates would."""
        extra = dict(result.extra or {})
        recorded = extra.pop("events", None)
        if isinstance(recorded, list):
            yield from ((str(event["type"]), event["data"]) for event in recorded)
        else:
            yield from self._told(result, extra)
        if result.error is not None:
            yield "error", {"type": result.error.kind, "message": result.error.message}

    def _told(self, result: QuestionResult, extra: Mapping[str, Any]) -> Iterator[EventData]:
        if result.predicted is not None:
            used = result.answer_usage
            sampling = {"prompt": self._asked(result), "sampled": [result.predicted], "model": used.model}
            yield "sampling", {**sampling, "usage": _usage(used)}
        if result.verdict in GRADED:
            yield "match", _match(result)
        figures = {key: value for key, value in extra.items() if key == "choice" or isinstance(value, int | float)}
        if result.verdict in GRADED:
            figures = {"accuracy": float(result.verdict is Verdict.CORRECT), **figures}
        if figures:
            yield "metrics", figures
        if others := {key: value for key, value in extra.items() if key not in figures}:
            yield "extra", others

    def _asked(self, result: QuestionResult) -> str:
        if self.prompt is None:
            return result.question
        return self.prompt.render(Question(result.id, result.question, result.gold))

    def _is_counted(self, result: QuestionResult) -> bool:
        return self.is_eval and result.id.isdecimal()

    def _part(self, name: str) -> Mapping[str, Any]:
        return self.content.get(name) or {}


def _match(result: QuestionResult) -> dict[str, Any]:
    match: dict[str, Any] = {
        "correct": result.verdict is Verdict.CORRECT,
        "expected": result.gold,
        "picked": result.predicted,
        "sampled": result.predicted,
        "verdict": result.verdict,
    }
    return match if result.judge_reply is None else {**match, "judge_reply": result.judge_reply}


def _usage(used: Usage) -> dict[str, int]:
    total = used.prompt_tokens + used.completion_tokens
    return {"prompt_tokens": used.prompt_tokens, "completion_tokens": used.completion_tokens, "total_tokens": total}


def final_report(report: Report) -> dict[str, Any]:
    """Return what the last line of a log holds: figures by name, an eval's own over ours.

    Tokens are the answer model's.
    """
    own = {name: getattr(report, name) for name in (*_RATES, *_COUNTS)}
    spent = report.usage.get("answer") or {}
    prompt, completion = spent.get("prompt_tokens") or 0, spent.get("completion_tokens") or 0
    usage = {
        "usage_prompt_tokens": prompt,
        "usage_completion_tokens": completion,
        "usage_total_tokens": prompt + completion,
    }
    return {**own, "complete": report.complete, **(usage if prompt + completion else {}), **(report.metrics or {})}
