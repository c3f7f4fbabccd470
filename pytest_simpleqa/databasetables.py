"""The tables of a database of runs, and what stands in a row of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .openaievents import LoggedRun, final_report
from .records import QuestionResult, Usage
from .report import Report

if TYPE_CHECKING:
    import sqlalchemy as sa

Values = dict[str, Any]
_COUNTS = ("n", "correct", "incorrect", "not_attempted", "judge_failures", "errors", "recorded")
_RATES = ("accuracy", "attempted_accuracy", "abstention_rate", "hallucination_rate", "coverage", "f_score")


@dataclass(frozen=True)
class Tables:
    """`runs` and `events` have the columns that OpenAI Evals gives its tables, `runs` and `results` ours."""

    metadata: sa.MetaData
    runs: sa.Table
    results: sa.Table
    events: sa.Table

    @property
    def all(self) -> tuple[sa.Table, ...]:
        return self.runs, self.results, self.events

    @classmethod
    def make(cls) -> Tables:
        import sqlalchemy as sa

        metadata = sa.MetaData()
        key, text, number, real = sa.String(), sa.Text(), sa.BigInteger(), sa.Float(53)

        def columns(kind: Any, *names: str) -> list[sa.Column[Any]]:
            return [sa.Column(name, kind) for name in names]

        runs = sa.Table(
            "runs",
            metadata,
            sa.Column("run_id", key, primary_key=True),
            *columns(text, "model_name", "eval_name", "base_eval", "split", "run_config", "settings", "created_by"),
            sa.Column("created_at", sa.DateTime(timezone=True)),
            *columns(text, "final_report", "judge", "dataset"),
            *columns(number, "population", "selected", *_COUNTS),
            sa.Column("complete", sa.Boolean()),
            *columns(real, *_RATES, "duration_s"),
            *columns(number, "resumed", "exit_status"),
        )
        results = sa.Table(
            "results",
            metadata,
            sa.Column("run_id", key, primary_key=True),
            sa.Column("question_id", key, primary_key=True),
            sa.Column("repeat", sa.Integer(), primary_key=True, autoincrement=False),
            *columns(text, "sample_id", "question", "gold", "topic", "answer_type", "fingerprint", "status"),
            *columns(
                text, "predicted", "verdict", "judge_reply", "error_kind", "error_message", "raw", "notes", "extra"
            ),
            sa.Column("latency_s", real),
            *(column for role in ("answer", "judge") for column in _usage_columns(role, text, number, real)),
        )
        events = sa.Table(
            "events",
            metadata,
            sa.Column("run_id", key, primary_key=True),
            sa.Column("sample_id", key, primary_key=True),
            sa.Column("event_id", sa.Integer(), primary_key=True, autoincrement=False),
            *columns(text, "type", "data", "created_by"),
            sa.Column("created_at", sa.DateTime(timezone=True)),
        )
        return cls(metadata, runs, results, events)


def _usage_columns(role: str, text: Any, number: Any, real: Any) -> list[sa.Column[Any]]:
    import sqlalchemy as sa

    kinds = {"calls": number, "prompt_tokens": number, "completion_tokens": number, "latency_s": real, "model": text}
    return [sa.Column(f"{role}_{name}", kind) for name, kind in kinds.items()]


def run_values(run: LoggedRun) -> Values:
    config = run.run_config
    return {
        "run_id": run.run_id,
        "model_name": _json({"completions": run.completion_fns}),
        "eval_name": run.name,
        "base_eval": run.base_eval,
        "split": run.split,
        "run_config": _json(config),
        "settings": _json(config["initial_settings"]),
        "created_by": "",
        "created_at": run.created_at.astimezone(UTC),
        "judge": config["eval_spec"]["judge"],
        "dataset": config["eval_spec"]["dataset"].get("name"),
    }


def report_values(report: Report) -> Values:
    names = ("population", "selected", *_COUNTS, "complete", *_RATES, "duration_s", "resumed", "exit_status")
    return {**{name: getattr(report, name) for name in names}, "final_report": _json(final_report(report))}


def result_values(run: LoggedRun, result: QuestionResult) -> Values:
    error = result.error
    texts = {
        "question": result.question,
        "gold": result.gold,
        "topic": result.topic,
        "answer_type": result.answer_type,
        "predicted": result.predicted,
        "judge_reply": result.judge_reply,
        "error_message": error.message if error else None,
        "raw": result.raw,
    }
    return {
        "run_id": run.run_id,
        "question_id": result.id,
        "repeat": result.repeat,
        "sample_id": run.sample_id(result),
        "fingerprint": result.fingerprint,
        "status": result.status,
        "verdict": result.verdict and result.verdict.value,
        "error_kind": error.kind if error else None,
        "notes": _json(list(result.notes)) if result.notes else None,
        "extra": _json(dict(result.extra)) if result.extra else None,
        "latency_s": result.latency_s,
        **{name: _storable(text) for name, text in texts.items()},
        **_usage_values("answer", result.answer_usage),
        **_usage_values("judge", result.judge_usage),
    }


def _usage_values(role: str, used: Usage) -> Values:
    return {
        f"{role}_calls": used.calls,
        f"{role}_prompt_tokens": used.prompt_tokens,
        f"{role}_completion_tokens": used.completion_tokens,
        f"{role}_latency_s": used.latency_s,
        f"{role}_model": used.model,
    }


def event_values(run: LoggedRun, result: QuestionResult) -> Iterator[Values]:
    """Yield a row's events, counted from 0: they have the same ids whenever they are written."""
    now, sample_id = datetime.now(UTC), run.sample_id(result)
    for number, (kind, data) in enumerate(run.events(result)):
        yield {
            "run_id": run.run_id,
            "sample_id": sample_id,
            "event_id": number,
            "type": kind,
            "data": _json(data),
            "created_by": "",
            "created_at": now,
        }


_json = json.JSONEncoder(ensure_ascii=True, default=str).encode


def _storable(text: str | None) -> str | None:
    """Return `text` without what databases refuse: a NUL (PostgreSQL) and half a surrogate pair become U+FFFD."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
