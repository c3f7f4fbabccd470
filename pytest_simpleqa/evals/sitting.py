"""One sample in the hands of the user's code: its completions are asked on our loop, its events kept."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextvars import ContextVar
from typing import Any

from ..errors import ModelError
from ..models.protocol import Model
from ..models.shapes import as_text
from ..records import Prompt, Question, Reply
from ..retry import Action, action_for
from ..rows import BadRowError
from .asking import SampleAnswerer, checked_prompt
from .recorder import Recorder, plain

Kept = list[tuple[str, Reply]]
"""What a sample has been answered so far, in order, each with what was asked: not asked again after a fault."""

_current: ContextVar[Sitting | None] = ContextVar("simpleqa_sitting", default=None)


class Sitting:
    """One sample, from its first completion to its last; made on the loop that the models are asked on."""

    def __init__(self, sample_id: str, seed: int, question: Question, repeat: int, kept: Kept) -> None:
        self.recorder = Recorder(sample_id)
        self.rng = random.Random(f"{sample_id}:{seed}".encode())  # as OpenAI Evals seeds it
        self.sample_id = sample_id
        self._question = question
        self._repeat = repeat
        self._kept = kept
        self._again = list(kept)
        self._replies: list[Reply] = []
        self.new_calls = 0
        """Requests that this sitting has sent, failed ones included."""
        self.fault: ModelError | None = None
        """What a service failed to give, and no code of the user's may pass over."""
        self._loop = asyncio.get_running_loop()
        self._pending: set[Future[list[Reply]]] = set()
        self._is_over = False

    def run(self, work: Callable[[], Any]) -> Any:
        """Return what `work` returns in this thread, with this sitting as the one that asks and records."""
        token = _current.set(self)
        try:
            with self.recorder.as_default_recorder(self.sample_id):
                return work()
        finally:
            _current.reset(token)

    def end(self) -> None:
        """Let nothing be asked any more: the sample is done, or its time is up."""
        self._is_over = True
        for future in self._pending:
            future.cancel()

    async def ask(self, model: Model, prompt: Any, params: Mapping[str, Any]) -> Reply:
        """Return the reply of `model`; raises ModelError."""
        asked = _checked(prompt)
        key = f"{id(model)} {asked!r} {sorted(params.items())!r}"
        if self._again and self._again[0][0] == key:
            reply = self._again.pop(0)[1]
        else:
            self._again.clear()  # the code goes another way than the last time
            del self._kept[len(self._replies) :]
            reply = await self._ask(model, asked, params)
            self._kept.append((key, reply))
        self._replies.append(reply)
        return reply

    async def _ask(self, model: Model, asked: Prompt, params: Mapping[str, Any]) -> Reply:
        answerer = SampleAnswerer(model, lambda _: asked, params)
        try:
            reply = await answerer.answer(self._question, self._repeat)
        except ModelError as error:
            self.new_calls += error.calls
            if action_for(error.kind) is not Action.ROW:
                self.fault = error
            raise
        self.new_calls += reply.calls
        return reply

    def wait_for(self, model: Model, prompt: Any, params: Mapping[str, Any], number: int) -> list[Reply]:
        """Return so many replies of `model` to a thread that waits for them; raises ModelError."""
        if self._is_over:
            raise CancelledError("the sample is over")

        async def ask_all() -> list[Reply]:
            return [await self.ask(model, prompt, params) for _ in range(number)]

        future = asyncio.run_coroutine_threadsafe(ask_all(), self._loop)
        self._pending.add(future)
        try:
            return future.result()
        finally:
            self._pending.discard(future)

    def reply(self, text: str, returned: Any, extra: Mapping[str, Any]) -> Reply:
        """Return what the sample came to as one reply, with what all its completions cost and all its events."""
        replies = self._replies
        latencies = [reply.latency_s for reply in replies if reply.latency_s is not None]
        events = [{"type": event.type, "data": plain(event.data)} for event in self.recorder.events]
        return Reply(
            text,
            finish_reason=replies[-1].finish_reason if replies else None,
            model=replies[-1].model if replies else None,
            calls=self.new_calls,
            prompt_tokens=sum(reply.prompt_tokens for reply in replies),
            completion_tokens=sum(reply.completion_tokens for reply in replies),
            latency_s=sum(latencies) if latencies else None,
            extra={"events": events, **({} if returned is None else {"returned": plain(returned)}), **extra},
            notes=tuple(dict.fromkeys(note for reply in replies for note in reply.notes)),
        )


class Completions:
    """What a completion function returns, under OpenAI Evals' name for it."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)

    def get_completions(self) -> list[str]:
        return self._texts


class CompletionFunction:
    """A model under test as code of the user's calls it: `completion_fn(prompt, temperature=0, max_tokens=1)`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.model = str(model.describe().get("model"))
        """The model's name."""

    def __call__(self, prompt: Any, **kwargs: Any) -> Completions:
        sitting = _current.get()
        if sitting is None:
            raise RuntimeError("a completion is asked for outside eval_sample, or in a thread that eval_sample began")
        number = kwargs.pop("n", None) or 1
        params = {key: value for key, value in kwargs.items() if value is not None}
        replies = sitting.wait_for(self._model, prompt, params, number)
        texts = [reply.text for reply in replies]
        usage = {
            "prompt_tokens": sum(reply.prompt_tokens for reply in replies),
            "completion_tokens": sum(reply.completion_tokens for reply in replies),
        }
        sitting.recorder.record_sampling(
            prompt=_checked(prompt), sampled=texts, model=replies[-1].model or self.model, usage=usage
        )
        return Completions(texts)


def _checked(prompt: Any) -> Prompt:
    """Return a prompt as code of the user's gives it: text, messages, or OpenAI Evals' object around one of them."""
    formatted = getattr(prompt, "to_formatted_prompt", None)
    return checked_prompt(formatted() if callable(formatted) else prompt, "prompt")


def shown(value: Any) -> str:
    """Return a prompt or whatever stands for one as text for people."""
    if isinstance(value, str):
        return value
    try:
        return as_text(checked_prompt(value), turn=False).strip()
    except BadRowError:
        return json.dumps(plain(value), ensure_ascii=False)


def sample_id(name: str, index: int) -> str:
    """Return what OpenAI Evals calls the sample of that index, from 0: `<eval>.<split>.<index>`."""
    return ".".join([*name.split(".")[:2], str(index)])
