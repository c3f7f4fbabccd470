"""The judge of a model-graded eval: it puts a prompt to a model and reads the choice that the reply makes."""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..judges.judge import as_shown, ask_judge
from ..judges.protocol import Complete
from ..models.protocol import Model, complete_with
from ..records import Failure, Judgement, Prompt, Question, Reply, Verdict
from .choices import INVALID, read_choice
from .data import Sample
from .grading import GradingPrompt, as_filled, filled
from .submissions import completions_in


@dataclass(frozen=True)
class Grading:
    """How the answers of one eval are graded."""

    name: str
    """The model-graded spec."""
    prompt: GradingPrompt
    choices: tuple[str, ...]
    scores: Mapping[str, float] | None
    """None where a choice is neither right nor wrong."""
    reads_from_end: bool
    """The choice stands behind the reasons for it."""
    match_fn: str
    pairs: Mapping[str, str]
    """From the sample's key of a prompt to the placeholder of its completion."""
    output_template: str
    n: int
    """Completions of one prompt."""
    args: Mapping[str, str]
    """What fills placeholders in every prompt alike."""
    is_meta: bool
    """The judge is on trial: each sample holds the right choice."""

    def verdict(self, choice: str) -> Verdict:
        """Return what a choice means: the highest score is correct."""
        if self.scores is None:
            return Verdict.RECORDED
        return Verdict.CORRECT if self.scores[choice] == max(self.scores.values()) else Verdict.INCORRECT

    def found(self, choice: str, sample: Sample) -> Mapping[str, Any]:
        """Return what is kept of a choice."""
        return {
            "choice": choice,
            **({} if self.scores is None else {"score": self.scores[choice]}),
            **({"metascore": choice == sample["choice"]} if self.is_meta else {}),
        }

    def values(self, sample: Sample, completions: Mapping[str, str]) -> dict[str, str]:
        """Return what fills the placeholders: the spec's own, over the sample, over the completions."""
        shown = {key: as_filled(value) for key, value in sample.items()}
        return {**completions, **shown, **self.args, "n": str(self.n)}

    def joined(self, completions: Sequence[str]) -> str:
        """Return several completions of one prompt as one text; of a single one, that one."""
        if self.n == 1:
            return completions[0]
        parts = (
            filled(self.output_template, {**numbered(i), "output": each, "n": str(self.n)})
            for i, each in enumerate(completions)
        )
        return "".join(parts).strip()


def numbered(i: int) -> dict[str, str]:
    """Return what an output template may call the completion `i`, from 0."""
    return {"i": str(i + 1), "i_abc": string.ascii_lowercase[i % 26], "i_ABC": string.ascii_uppercase[i % 26]}


class ChoiceJudge:
    """Puts the grading prompt to a model and reads the choice that its reply makes."""

    def __init__(self, grading: Grading, model: Model | None, params: Mapping[str, Any]) -> None:
        self.model: Model | None = Tuned(model, params) if model is not None and params else model
        self.grading = grading

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        grading, sample = self.grading, question.metadata["sample"]
        completions = completions_in(predicted, grading.pairs, sample)
        cut = {key: as_shown(text) for key, text in completions.items()}
        values = grading.values(sample, {key: text for key, (text, _) in cut.items()})
        notes = tuple(note for _, notes in cut.values() for note in notes)
        asked, answered = next(iter(grading.pairs.items()))
        prompt = grading.prompt.filled(values, sample.get(asked, ""), values.get(answered, ""))
        judged = "\n".join(values.get(key, "") for key in grading.pairs.values())

        def read(text: str, said: str) -> Judgement:
            found = read_choice(
                text,
                grading.choices,
                from_end=grading.reads_from_end,
                match_fn=grading.match_fn,
                judged=judged,
            )
            if found.choice is None:
                error = Failure(str(found.kind), f"the judge made no choice twice: {said[:200]!r}")
                return Judgement(None, error=error, notes=notes, extra={"choice": INVALID})
            kept = grading.found(found.choice, sample)
            return Judgement(grading.verdict(found.choice), notes=notes, extra=kept)

        return await ask_judge(complete, prompt, read)

    async def close(self) -> None:
        if self.model is not None:
            await self.model.close()

    def describe(self) -> Mapping[str, Any]:
        """Return what the judge model says of itself, and what tells one way of grading from another."""
        grading = self.grading
        told = {
            "modelgraded_spec": grading.name,
            "prompt_sha256": hashlib.sha256(json.dumps(grading.prompt.messages).encode("ascii")).hexdigest(),
            "choices": list(grading.choices),
            "scores": grading.scores and dict(grading.scores),
            "match_fn": grading.match_fn,
            "n": grading.n,
            "args": dict(grading.args),
        }
        return {**(self.model.describe() if self.model else {}), "grading": told}


class Tuned:
    """A model whose requests carry parameters of the eval, under those that the user gave."""

    def __init__(self, model: Model, params: Mapping[str, Any]) -> None:
        self.inner = model
        self.max_in_flight = model.max_in_flight
        self.is_service = model.is_service
        self._params = params

    async def complete(self, prompt: Prompt) -> Reply:
        return await complete_with(self.inner, prompt, self._params)

    async def close(self) -> None:
        await self.inner.close()

    def describe(self) -> Mapping[str, Any]:
        described = self.inner.describe()
        return {**described, "params": {**self._params, **described.get("params", {})}}
