"""The judges that ask a model, apply the rules, or repeat a recording."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import ModelError
from ..models.protocol import Complete, Model
from ..models.replay import Recording
from ..prompts import Template
from ..records import Failure, Judgement, Prompt, Question, Verdict

# `parse` and `rules` are loaded by the first judgement: their patterns compile while the first answer is awaited.

MAX_JUDGED_CHARS = 20_000
"""A longer answer is shown to the judge only so far, with a mark, and noted in the Report."""
_LONG_ANSWER = 2_000


async def ask_judge(complete: Complete, prompt: Prompt, read: Callable[[str, str], Judgement]) -> Judgement:
    """Return what `read` makes of the judge's reply, asked once more where that has no verdict.

    `read` is given the reply without and with its `<think>` block; what it returns is completed by the reply
    itself and by what both requests cost. Raises ModelError.
    """
    calls = prompt_tokens = completion_tokens = 0
    for last in (False, True):
        try:
            reply = await complete(prompt)
        except ModelError as error:
            error.calls += calls
            raise
        calls += reply.calls
        prompt_tokens += reply.prompt_tokens
        completion_tokens += reply.completion_tokens
        said = reply.raw if reply.raw is not None else reply.text
        judgement = read(reply.text, said)
        if judgement.verdict is not None or last:
            break
    return replace(
        judgement,
        reply=said,
        calls=calls,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        latency_s=reply.latency_s,
        model=reply.model,
        notes=(*judgement.notes, *reply.notes),
    )


class ModelJudge:
    """Puts the grade prompt to a model and reads its reply; asks once more when it is no verdict."""

    def __init__(self, model: Model, template: Template, *, paper: bool = False) -> None:
        self.model: Model | None = model
        self._template = template
        self._paper = paper

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        shown, notes = as_shown(predicted)

        def read(text: str, said: str) -> Judgement:
            verdict, kind = _read(text, predicted, paper=self._paper)
            failure = None if verdict else Failure(kind, f"the judge gave no verdict twice: {said[:200]!r}")
            return Judgement(verdict, error=failure, notes=notes)

        return await ask_judge(complete, self._template.render(question, shown), read)

    async def close(self) -> None:
        if self.model is not None:
            await self.model.close()

    def describe(self) -> Mapping[str, Any]:
        assert self.model is not None
        return self.model.describe()


def _read(text: str, predicted: str, *, paper: bool) -> tuple[Verdict | None, str]:
    from .parse import parse_paper, parse_verdict

    if paper:
        return parse_paper(text), ""
    parsed = parse_verdict(text, predicted)
    return parsed.verdict, parsed.kind or ""


def as_shown(predicted: str) -> tuple[str, tuple[str, ...]]:
    """Return an answer as the judge is shown it, and the notes on what was cut."""
    if len(predicted) <= MAX_JUDGED_CHARS:
        return predicted, ()
    left_out = len(predicted) - MAX_JUDGED_CHARS
    note = f"the judge saw the first {MAX_JUDGED_CHARS:,} of {len(predicted):,} characters"
    return f"{predicted[:MAX_JUDGED_CHARS]} [... {left_out:,} more characters]", (note,)


class RulesJudge:
    """Grades by fixed rules, offline."""

    model: Model | None = None

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        from .rules import judge_by_rules

        if len(predicted) > _LONG_ANSWER:  # long texts take a while: leave the loop to others
            return Judgement(await asyncio.to_thread(judge_by_rules, question.problem, question.answer, predicted))
        return Judgement(judge_by_rules(question.problem, question.answer, predicted))

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "rules", "model": "rules", "base_url_host": None, "params": {}}


class ReplayJudge:
    """Gives the verdicts of a recording."""

    model: Model | None = None

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        verdict = self._recording.recorded_verdict(question, repeat)
        if verdict is None:
            raise ModelError("missing", f"{self._recording.name} has no verdict on this question", calls=0)
        row = self._recording.row(question, repeat)
        return Judgement(verdict, extra=row.judged if row else None)

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "replay", "model": self._recording.name, "base_url_host": None, "params": {}}


class FunctionJudge:
    """Gives what a function says: a verdict by name or letter, or None where it declines."""

    model: Model | None = None

    def __init__(self, name: str, function: Callable[[Question, str], Any]) -> None:
        self._name = name
        self._function = function

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        said = await self._function(question, predicted)
        if said is None:
            raise ModelError("declined", f"{self._name} gave no verdict")
        if isinstance(said, Judgement):
            return said
        if isinstance(said, Verdict):
            return Judgement(said)
        from .parse import parse_verdict

        parsed = parse_verdict(str(said))
        if parsed.verdict is None:
            raise ModelError(parsed.kind or "judge_unreadable", f"{self._name} gave no verdict: {str(said)[:200]!r}")
        return Judgement(parsed.verdict, reply=str(said))

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "hook", "model": self._name, "base_url_host": None, "params": {}}
