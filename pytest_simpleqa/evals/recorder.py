"""What an eval written in code tells of a sample: events, and the recorder that keeps them."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

_sample: ContextVar[str | None] = ContextVar("simpleqa_sample", default=None)
_recorder: ContextVar[Recorder | None] = ContextVar("simpleqa_recorder", default=None)
_OUTSIDE = "something is recorded outside a sample: record in eval_sample, in the thread that it runs in"


@dataclass(frozen=True)
class Event:
    """One thing that was recorded; the fields are those of OpenAI Evals."""

    run_id: str
    event_id: int
    sample_id: str
    type: str
    data: Any
    created_by: str
    created_at: str


class Recorder:
    """Keeps events in memory; has the methods that evals written for OpenAI Evals call."""

    def __init__(self, run_id: str) -> None:
        self.run_spec = None
        self._run_id = run_id
        self._events: list[Event] = []
        self._paused: set[str] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def as_default_recorder(self, sample_id: str) -> Iterator[None]:
        """Make this the recorder that `record_match` and its like write to, in this thread."""
        with contextlib.ExitStack() as stack:
            for variable, value in ((_sample, sample_id), (_recorder, self), (_of_the_real_package(), self)):
                if variable is not None:
                    stack.callback(variable.reset, variable.set(value))  # type: ignore[arg-type] # each its own type
            yield

    def current_sample_id(self) -> str | None:
        return _sample.get()

    def pause(self) -> None:
        """Take no event of the current sample until `unpause`."""
        self._paused.add(self._sample_of(None))

    def unpause(self) -> None:
        self._paused.discard(self._sample_of(None))

    def is_paused(self, sample_id: str | None = None) -> bool:
        return self._sample_of(sample_id) in self._paused

    def get_events(self, type: str) -> Sequence[Event]:  # noqa: A002 - the name is that of OpenAI Evals
        return [event for event in self._events if event.type == type]

    def get_metrics(self) -> list[Any]:
        return [event.data for event in self.get_events("metrics")]

    def get_scores(self, key: str) -> list[Any]:
        return [data[key] for data in self.get_metrics()]

    @property
    def events(self) -> Sequence[Event]:
        """All events, in the order that they came."""
        return tuple(self._events)

    def record_event(self, type: str, data: Any = None, sample_id: str | None = None) -> None:  # noqa: A002 - likewise
        sample_id = self._sample_of(sample_id)
        if sample_id in self._paused:
            return
        with self._lock:
            now = str(datetime.now(UTC))
            self._events.append(Event(self._run_id, len(self._events), sample_id, type, data, "", now))

    def record_match(
        self, correct: bool, *, expected: Any = None, picked: Any = None, sample_id: str | None = None, **extra: Any
    ) -> None:
        if not isinstance(correct, bool):
            raise TypeError(f"record_match: correct is {type(correct).__name__} {correct!r}; wanted True or False")
        if isinstance(expected, list) and len(expected) == 1:
            expected = expected[0]
        self.record_event("match", {"correct": correct, "expected": expected, "picked": picked, **extra}, sample_id)

    def record_sampling(self, prompt: Any, sampled: Any, sample_id: str | None = None, **extra: Any) -> None:
        self.record_event("sampling", {"prompt": prompt, "sampled": sampled, **extra}, sample_id)

    def record_embedding(self, prompt: Any, embedding_type: Any, sample_id: str | None = None, **extra: Any) -> None:
        self.record_event("embedding", {"prompt": prompt, "embedding_type": embedding_type, **extra}, sample_id)

    def record_function_call(
        self, name: Any, arguments: Any, return_value: Any, sample_id: str | None = None, **extra: Any
    ) -> None:
        data = {"name": name, "arguments": arguments, "return_value": return_value, **extra}
        self.record_event("function_call", data, sample_id)

    def record_cond_logp(
        self, prompt: Any, completion: Any, logp: Any, sample_id: str | None = None, **extra: Any
    ) -> None:
        self.record_event("cond_logp", {"prompt": prompt, "completion": completion, "logp": logp, **extra}, sample_id)

    def record_pick_option(
        self, prompt: Any, options: Any, picked: Any, sample_id: str | None = None, **extra: Any
    ) -> None:
        self.record_event("pick_option", {"prompt": prompt, "options": options, "picked": picked, **extra}, sample_id)

    def record_raw(self, data: Any) -> None:
        self.record_event("raw_sample", data)

    def record_metrics(self, **kwargs: Any) -> None:
        self.record_event("metrics", kwargs)

    def record_error(self, msg: str, error: Exception | None = None, **kwargs: Any) -> None:
        self.record_event("error", {"type": type(error).__name__, "message": str(error or msg), **kwargs})

    def record_extra(self, data: Any, sample_id: str | None = None) -> None:
        self.record_event("extra", data, sample_id)

    def record_final_report(self, final_report: Any) -> None:
        """Take no notice: what `run` returns is the report."""

    def flush_events(self) -> None:
        """Do nothing: the events stand in the run log with their row."""

    def _sample_of(self, given: str | None) -> str:
        sample_id = given or _sample.get()
        if sample_id is None:
            raise RuntimeError(_OUTSIDE)
        return sample_id


class _Deaf(Recorder):
    """Takes no event: for code that records where there is no sample."""

    def record_event(self, type: str, data: Any = None, sample_id: str | None = None) -> None: ...  # noqa: A002 - as above


_DEAF = _Deaf("")


def default_recorder() -> Recorder:
    """Return the recorder of the sample that runs in this thread; raise RuntimeError outside of one."""
    recorder = _recorder.get()
    if recorder is None:
        raise RuntimeError(_OUTSIDE)
    return recorder


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Let code of the user's record into the void."""
    with _DEAF.as_default_recorder("none"):
        yield


def _of_the_real_package() -> ContextVar[Any] | None:
    """Return the variable that the real `evals` looks its recorder up in; None where it is not loaded."""
    variable = getattr(sys.modules.get("evals.record"), "_default_recorder", None)
    return variable if isinstance(variable, ContextVar) else None


def plain(value: Any) -> Any:
    """Return `value` in JSON's types, as near as they come: what a run log and a worker's message can hold."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in (value if isinstance(value, list | tuple) else sorted(value, key=repr))]
    if isinstance(value, PurePath):
        return value.as_posix()
    for method in ("model_dump", "tolist"):  # pydantic; numpy's scalars and arrays
        if callable(call := getattr(value, method, None)):
            return plain(call())
    return f"<{type(value).__name__}>"
