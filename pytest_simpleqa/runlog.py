"""The run log: the lines that keep every answer and verdict as they come, and what they say when read back."""

from __future__ import annotations

import heapq
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from .errors import RunError
from .records import Failure, Judgement, Question, QuestionResult, Reply, Usage, Verdict
from .rundisk import lock

Key = tuple[str, int]
"""What names one asking: `(question id, repeat)`."""

_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Log:
    """What keeps answers, verdicts and errors, one line per finding; where the lines go is a subclass's affair."""

    def write(self, line: Mapping[str, Any]) -> None:
        """Keep one line."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is open; a second time does nothing."""

    def answer(self, question: Question, repeat: int, reply: Reply, latency_s: float) -> None:
        """Keep an answer; before the judge is asked."""
        self.write({**_head("answer", question, repeat), "latency_s": round(latency_s, 4), **_said(reply)})

    def finished(
        self,
        question: Question,
        result: QuestionResult,
        extra: Mapping[str, Any] | None = None,
        graded: Reply | None = None,
    ) -> None:
        """Keep the verdict or the error, and what the judge attached; before anybody is told of the result.

        `graded` is what was judged where that is not the model's own answer, which stands in its own line.
        """
        line = _head("verdict" if result.verdict else "error", question, result.repeat)
        if result.verdict:
            line["verdict"] = result.verdict.value
        if result.error:
            line["error"] = result.error.to_json()
        line["judge_reply"] = result.judge_reply
        line["latency_s"] = result.latency_s
        line["usage"] = (result.judge_usage if result.predicted is not None else result.answer_usage).to_json()
        if graded is not None:
            line["graded"] = _said(graded)
        if result.notes:
            line["notes"] = list(result.notes)
        if extra:
            line["extra"] = dict(extra)
        self.write(line)

    def whole(self, question: Question, result: QuestionResult) -> None:
        """Keep a result that no log has: its answer, then its verdict or error."""
        if result.predicted is not None:
            used = result.answer_usage
            reply = Reply(
                result.predicted,
                raw=result.raw,
                model=used.model,
                calls=used.calls,
                prompt_tokens=used.prompt_tokens,
                completion_tokens=used.completion_tokens,
                latency_s=used.latency_s,
                extra=result.extra,
            )
            self.answer(question, result.repeat, reply, result.latency_s or 0.0)
        self.finished(question, result)


class RunLog(Log):
    """One `results*.jsonl`: one writer, one line per finding, each handed to the operating system at once.

    A line written here survives any kill of the process (not a power cut). It says when it was written, so that of
    several files the last word is known.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
            lock(self._file)
            if os.fstat(self._file).st_size:
                os.write(self._file, b"\n")  # what was torn by a kill must not swallow our first line
        except OSError as error:
            raise RunError(f"{path}: cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def write(self, line: Mapping[str, Any]) -> None:
        data = _ENCODE({**line, "time": round(time.time(), 3)}).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise RunError(f"{self.path}: cannot be written: {error.strerror}") from None


def _head(kind: str, question: Question, repeat: int) -> dict[str, Any]:
    return {"v": 1, "kind": kind, "id": question.id, "fingerprint": question.fingerprint, "repeat": repeat}


def _said(reply: Reply) -> dict[str, Any]:
    """Return a reply as it stands in a line; `_reply` reads it back."""
    said: dict[str, Any] = {"predicted": reply.text, "usage": usage_of(reply).to_json()}
    if reply.raw is not None:
        said["raw"] = reply.raw
    if reply.extra:
        said["extra"] = dict(reply.extra)
    if reply.notes:
        said["notes"] = list(reply.notes)
    return said


def _reply(said: Mapping[str, Any]) -> Reply:
    used = Usage.from_json(said.get("usage"))
    return Reply(
        said["predicted"],
        raw=said.get("raw"),
        model=used.model,
        calls=used.calls,
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        latency_s=used.latency_s,
        extra=said.get("extra"),
        notes=tuple(said.get("notes") or ()),
    )


@dataclass(slots=True)
class Row:
    """What a run's lines say of one asking: the last answer, and how it ended: a verdict or an error."""

    fingerprint: str
    answer: Mapping[str, Any] | None = None
    verdict: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    def take(self, line: Mapping[str, Any]) -> None:
        """Take in the next line: the last one of a kind holds, and so does the later one of verdict and error."""
        kind = line["kind"]
        if kind == "verdict":
            self.verdict, self.error = line, None
        elif kind == "error":
            self.error = line
            cause = line.get("error")
            if not isinstance(cause, Mapping) or cause.get("kind") != "worker_crash":
                self.verdict = None  # a crash takes nothing away: the worker may have written the verdict before
        elif kind == "answer":
            if self.error is not None and "graded" not in self.error:
                self.error = None  # that of an earlier session, which had no answer
            is_other = self.answer is not None and self.answer.get("predicted") != line.get("predicted")
            if is_other and self.verdict is not None and "graded" not in self.verdict:
                self.verdict = None  # that of the answer before
            self.answer = line

    @property
    def judged(self) -> Mapping[str, Any] | None:
        """What the verdict or the error is about: a text that a test has brought, or else the model's answer."""
        return (self.verdict or self.error or {}).get("graded") or self.answer

    def reply(self) -> Reply | None:
        """Return the kept answer of the model, or None."""
        return _reply(self.answer) if self.answer is not None else None

    def judgement_on(self, text: str) -> tuple[Judgement, float] | None:
        """Return the verdict with the row's seconds, where it is about `text`; else None."""
        end, judged = self.verdict, self.judged
        if end is None or judged is None or judged["predicted"] != text:
            return None
        used = Usage.from_json(end.get("usage"))
        verdict = Judgement(
            Verdict(end["verdict"]),
            reply=end.get("judge_reply"),
            calls=used.calls,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            latency_s=used.latency_s,
            model=used.model,
            notes=tuple(end.get("notes") or ()),
            extra=end.get("extra"),
        )
        return verdict, end.get("latency_s") or 0.0

    def result(self, question: Question, repeat: int) -> QuestionResult | None:
        """Return the finished result, or None where the row still has something to ask."""
        end = self.verdict or self.error
        if end is None:
            return None
        graded = _reply(end["graded"]) if "graded" in end else None
        reply = graded or self.reply()
        predicted = reply.text if reply else None
        if self.verdict is not None and reply is None:
            return None
        answer_usage = paid_for(self.reply(), graded) if reply else Usage.from_json(end.get("usage"))
        return QuestionResult.for_question(
            question,
            repeat,
            predicted=predicted,
            verdict=Verdict(end["verdict"]) if self.verdict else None,
            judge_reply=end.get("judge_reply"),
            error=Failure.from_json(end["error"]) if not self.verdict else None,
            latency_s=end.get("latency_s"),
            raw=reply.raw if reply else None,
            notes=tuple(end.get("notes") or ()),
            answer_usage=answer_usage,
            judge_usage=Usage.from_json(end.get("usage")) if reply else Usage(),
            extra=merged(reply.extra if reply else None, end.get("extra")),
        )


def merged(answered: Mapping[str, Any] | None, judged: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what the answerer and the judge attached to one row; None where it is nothing."""
    return {**(answered or {}), **(judged or {})} or None


def usage_of(spent: Reply | Judgement) -> Usage:
    """Return what a reply or a judgement cost."""
    return Usage(spent.calls, spent.prompt_tokens, spent.completion_tokens, spent.latency_s, spent.model)


def paid_for(answer: Reply | None, graded: Reply | None) -> Usage:
    """Return what an answer cost, and what was graded in its place: both were paid."""
    if answer is None or graded is None:
        only = answer or graded
        return usage_of(only) if only is not None else Usage()
    return usage_of(answer) + usage_of(graded)


def in_order(files: Iterable[Iterable[Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of files in the order that they were written in: of one file as they stand, else by their times.

    Lines of a version that wrote no times come first.
    """
    return (line for _, line in heapq.merge(*map(_timed, files), key=itemgetter(0)))


def _timed(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[float, Mapping[str, Any]]]:
    latest = 0.0
    for line in lines:
        at = line.get("time")
        latest = max(latest, at) if isinstance(at, int | float) else latest
        yield latest, line


def read_rows(paths: Iterable[Path]) -> tuple[dict[Key, Row], list[str]]:
    """Return what the lines of `paths` say of each asking, and a warning per line that cannot be read.

    A file that is not there says nothing: its worker died before its first question.
    """
    warnings: list[str] = []
    files = [_lines_of(path, warnings) for path in paths]
    rows: dict[Key, Row] = {}
    for line in in_order(files):
        rows.setdefault((str(line["id"]), int(line["repeat"])), Row(line["fingerprint"])).take(line)
    return rows, warnings


def _lines_of(path: Path, warnings: list[str]) -> list[Mapping[str, Any]]:
    """Return the lines of a file that can be read; put a phrase for each other one into `warnings`."""
    lines = []
    # Split at "\n" alone: a text may hold U+2028, and JSON escapes what it must.
    for number, data in enumerate(_bytes_of(path).split(b"\n"), start=1):
        if not data.strip():
            continue
        try:
            line = json.loads(data)
            Row(line["fingerprint"]).take(line)  # raises where the line lacks what its kind must have
            _ = str(line["id"]), int(line["repeat"])
        except (ValueError, KeyError, TypeError):
            warnings.append(f"{path.name}, line {number} is torn and was dropped")
        else:
            lines.append(line)
    return lines


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
