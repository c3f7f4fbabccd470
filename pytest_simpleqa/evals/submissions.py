"""The completions that a model-graded eval grades: asked of one or several models, or found in the sample."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ModelError
from ..intake import MAX_ANSWER_CHARS
from ..models.protocol import Model
from ..records import Prompt, Question, Reply
from .asking import SampleAnswerer, checked_prompt
from .data import Sample
from .grading import as_filled

Joined = Callable[[Sequence[str]], str]
"""Makes one text of the completions of one prompt."""


class SampleCompletions:
    """Answers every prompt of a sample, each by all the models in turn; what a sample answers itself is not asked.

    The answer is that text; of several prompts a JSON object of all, which `completions_in` reads again.
    """

    asks_by_itself = True
    """Nobody else can change what is asked."""

    def __init__(
        self,
        models: Sequence[Model],
        pairs: Mapping[str, str],
        joined: Joined,
        params: Mapping[str, Any],
        *,
        prompts: int,
    ) -> None:
        """`params` are sent under those that the user gave the models; `prompts` is how many a sample has to ask."""
        self.models = models
        self._pairs = pairs
        self._joined = joined
        self._params = params
        bounds = [model.max_in_flight for model in models if model.max_in_flight is not None]
        self.max_in_flight = min(bounds, default=None)
        self.is_service = bool(prompts) and any(model.is_service for model in models)
        self.calls_each = prompts * sum(model.is_service for model in models)
        self._kept: dict[tuple[str, int], list[Reply]] = {}

    async def answer(self, question: Question, repeat: int) -> Reply:
        sample: Sample = question.metadata["sample"]
        missing = _missing(self._pairs, sample)
        if not missing:
            return Reply(_visible("\n\n".join(as_filled(sample[key]) for key in self._pairs.values())), calls=0)
        # Asked again after a fault, the question goes on behind the last completion that arrived.
        replies = self._kept.setdefault((question.id, repeat), [])
        wanted = [(asked, model) for asked in missing for model in self.models]
        for asked, model in wanted[len(replies) :]:
            replies.append(await _ask(model, sample[asked], self._params, question, repeat))
        del self._kept[question.id, repeat]
        number = len(self.models)
        texts = [
            self._joined([reply.text for reply in replies[start : start + number]])
            for start in range(0, len(replies), number)
        ]
        return _summed(replies, texts, list(missing.values()))

    async def close(self) -> None:
        for model in {id(model): model for model in self.models}.values():
            await model.close()

    def describe(self) -> Mapping[str, Any]:
        """Return what the first model says of itself; of several models, what the others do beside it."""
        told = [
            SampleAnswerer(model, lambda _: "", self._params).describe()
            for model in {id(model): model for model in self.models}.values()
        ]
        return {**told[0], "completions": len(self.models), **({"models": told} if len(told) > 1 else {})}


class NobodyAnswers:
    """Stands where an eval is only looked at: there is no answer model."""

    max_in_flight: int | None = None
    is_service = False

    async def answer(self, question: Question, repeat: int) -> Reply:
        raise ModelError("missing", "there is no answer model; add --answer-llm SPEC", calls=0)

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {}


def completions_in(predicted: str, pairs: Mapping[str, str], sample: Sample) -> dict[str, str]:
    """Return the completions that an answer holds, by placeholder; those of the sample stand there.

    Raises ModelError where an answer that is to hold several was cut.
    """
    missing = list(_missing(pairs, sample).values())
    if len(missing) < 2:
        return dict.fromkeys(missing, predicted)
    try:
        found = json.loads(predicted)
        return {key: str(found[key]) for key in missing}
    except (ValueError, KeyError, TypeError):
        raise ModelError("unreadable", f"the answer does not hold {' and '.join(missing)}", calls=0) from None


def _visible(text: str) -> str:
    """Return a completion of the sample, which is graded even where it is blank: a blank answer would not be."""
    return text if text.strip() else repr(text)


def _missing(pairs: Mapping[str, str], sample: Sample) -> dict[str, str]:
    return {asked: completion for asked, completion in pairs.items() if completion not in sample}


async def _ask(model: Model, prompt: Any, params: Mapping[str, Any], question: Question, repeat: int) -> Reply:
    checked: Prompt = checked_prompt(prompt)
    return await SampleAnswerer(model, lambda _: checked, params).answer(question, repeat)


def _summed(replies: Sequence[Reply], texts: Sequence[str], names: Sequence[str]) -> Reply:
    """Return several replies as one, with what all of them cost."""
    if len(replies) == 1:
        return replies[0]
    latencies = [reply.latency_s for reply in replies if reply.latency_s is not None]
    return Reply(
        texts[0] if len(texts) == 1 else _together(names, texts),
        finish_reason=replies[-1].finish_reason,
        model=replies[-1].model,
        calls=sum(reply.calls for reply in replies),
        prompt_tokens=sum(reply.prompt_tokens for reply in replies),
        completion_tokens=sum(reply.completion_tokens for reply in replies),
        latency_s=sum(latencies) if latencies else None,
        notes=tuple(dict.fromkeys(note for reply in replies for note in reply.notes)),
    )


def _together(names: Sequence[str], texts: Sequence[str]) -> str:
    """Return several texts as a JSON object, none so long that the whole would be cut."""
    room = MAX_ANSWER_CHARS
    while True:
        cut = {name: _cut(text, room) for name, text in zip(names, texts, strict=True)}
        if len(together := json.dumps(cut, ensure_ascii=False, indent=1)) <= MAX_ANSWER_CHARS:
            return together
        room //= 2


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room]} [... {len(text) - room:,} more characters]"
