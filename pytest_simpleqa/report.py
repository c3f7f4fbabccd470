"""The Report: the JSON document that a run leaves behind, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, TypeVar

from .errors import RunError
from .metrics import INTERVAL_RATES, Counts, Interval, Rates
from .records import QuestionResult, Verdict
from .reportparts import shown

SCHEMA_VERSION = 1
UNSPECIFIED = "(unspecified)"
"""The group of the rows without a topic or an answer type."""

_COUNTS = ("n", "correct", "incorrect", "not_attempted", "judge_failures", "errors")
_SOMETIMES = "recorded"
"""A count that stands in the document only where it is more than 0: most runs have no such row."""
_RATES = (*INTERVAL_RATES, "coverage", "f_score")
_DIGITS = 4
"""Decimals of an interval's ends: more would claim a precision that an interval does not have."""
_WHERE_THERE = ("repeats", "calibration", "sentinels", "metrics")
"""Parts that stand in the document only where the run has them."""

Intervals = Mapping[str, Interval | None]
"""The 95 % interval of a rate, by its name; None for a rate that is None."""


class Measured(Rates):
    """Rates with the intervals that were found for them."""

    __slots__ = ()

    intervals: Intervals

    def interval(self, rate: str) -> Interval | None:
        """Return the 95 % interval of `rate`: the one that was found, else Wilson's."""
        return self.intervals[rate] if rate in self.intervals else super().interval(rate)


@dataclass(frozen=True, slots=True)
class TopicReport(Measured, Counts):
    """The counts and rates of one topic (or one answer type)."""

    intervals: Intervals = field(default_factory=dict)
    """Of the four rates; empty in the Report of an earlier version."""

    def to_json(self) -> dict[str, Any]:
        """Return counts, rates and intervals in plain JSON types."""
        known = {"intervals": _intervals_to_json(self.intervals)} if self.intervals else {}
        return {**_counts(self), **_values(self, INTERVAL_RATES), **known}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read counts and intervals; the rates follow from the counts. Raises RunError."""
        return cls(**_read_counts(data), intervals=_read_intervals(data))


Groups = Mapping[str, TopicReport]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Measured):
    """One run, counted. Rates and `complete` follow from the counts and are stored nowhere else."""

    name: str
    """The run: the dataset's name, a fixture test function or an eval."""
    dataset: str
    """The dataset file's name."""
    model: str
    """The answer model's spec as typed."""
    judge: str
    """The judge's spec as typed."""
    started_at: datetime
    """Aware; whole seconds."""
    duration_ms: int
    population: int
    """Rows after limit, sample, topics and shard; a question asked K times is K rows."""
    selected: int
    """Rows after pytest's own selection."""
    n: int
    correct: int
    incorrect: int
    not_attempted: int
    judge_failures: int
    errors: int
    recorded: int = 0
    intervals: Intervals
    """Of the four rates and of `f_score`; clustered by question where it was asked several times."""
    per_topic: Groups | None
    """By topic; None where the breakdown is off."""
    per_answer_type: Groups | None
    repeats: Mapping[str, Any] | None = None
    """How the repeats of a question agree; None where each was asked once."""
    calibration: Mapping[str, Any] | None = None
    """How often answers are right beside what they claim; None where none carries a confidence."""
    sentinels: Mapping[str, Any] | None = None
    """What the judge made of its sentinels; None where it was shown none."""
    metrics: Mapping[str, Any] | None = None
    """What an eval of a registry makes of its results, under the names of OpenAI Evals; None for a dataset."""
    samples: tuple[QuestionResult, ...]
    """The first results, in dataset order."""
    verdicts: tuple[tuple[str, str, int, Verdict | None], ...]
    """Question hash, gold hash, repeat, verdict: every row of the population in dataset order."""
    options: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    """For `answer` and `judge`: `calls, prompt_tokens, completion_tokens, latency_s` (p50, p95, max; or None)."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    resumed: int = 0
    """How often the run was resumed."""
    gates: tuple[Mapping[str, Any], ...] = ()
    comparison: Mapping[str, Any] | None = None
    exit_status: int | None = None
    """None where no session ended with one (library use)."""

    def __post_init__(self) -> None:
        self._check_sum()
        assert self.n <= self.selected <= self.population, f"{self.n} of {self.selected} of {self.population} rows"

    @property
    def complete(self) -> bool:
        """Every row of the population was selected and has a result."""
        return self.population == self.selected == self.n

    @property
    def wrapped_by(self) -> tuple[Mapping[str, Any], ...]:
        """What stood around the answer model, the outermost first, as it tells of itself: `name`, and what else."""
        return wrappers_in(self.provenance.get("answer"))

    @property
    def duration_s(self) -> float:
        """Seconds from the session's start to its end."""
        return self.duration_ms / 1000

    def to_json(self) -> dict[str, Any]:
        """Return the document in plain JSON types; `from_json` reads it back."""
        return {
            "schema_version": SCHEMA_VERSION,
            **_values(self, ("name", "dataset", "model", "judge")),
            "started_at": self.started_at.isoformat(),
            **_values(self, ("duration_ms", "population", "selected", "complete")),
            **_counts(self),
            **_values(self, _RATES),
            "intervals": _intervals_to_json(self.intervals),
            "per_topic": _groups_to_json(self.per_topic),
            "per_answer_type": _groups_to_json(self.per_answer_type),
            **{key: dict(part) for key in _WHERE_THERE if (part := getattr(self, key)) is not None},
            "samples": [result.to_sample() for result in self.samples],
            "verdicts": [[*row[:3], row[3].value if row[3] else None] for row in self.verdicts],
            **{key: dict(getattr(self, key)) for key in ("options", "usage", "provenance")},
            "resumed": self.resumed,
            "gates": [dict(gate) for gate in self.gates],
            "comparison": None if self.comparison is None else dict(self.comparison),
            "exit_status": self.exit_status,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave. Raises RunError, naming the key, for what is no Report."""
        version = _get(data, "schema_version", int)
        if version != SCHEMA_VERSION:
            raise RunError(f"'schema_version' is {version}; this pytest-simpleqa reads {SCHEMA_VERSION}")
        counts = _read_counts(data)
        population, selected = _get(data, "population", int), _get(data, "selected", int)
        if not counts["n"] <= selected <= population:
            raise RunError(f"'n' {counts['n']} <= 'selected' {selected} <= 'population' {population} does not hold")
        return cls(
            name=_get(data, "name", str),
            dataset=_get(data, "dataset", str),
            model=_get(data, "model", str),
            judge=_get(data, "judge", str),
            started_at=_convert("started_at", datetime.fromisoformat, _get(data, "started_at", str)),
            duration_ms=_get(data, "duration_ms", int),
            population=population,
            selected=selected,
            **counts,
            intervals=_read_intervals(data),
            per_topic=_groups_from_json(_get(data, "per_topic", dict, None)),
            per_answer_type=_groups_from_json(_get(data, "per_answer_type", dict, None)),
            **{key: _get(data, key, dict, None) for key in _WHERE_THERE},
            samples=_convert("samples", _read_samples, _get(data, "samples", list)),
            verdicts=_convert("verdicts", _read_verdicts, _get(data, "verdicts", list)),
            options=_get(data, "options", dict),
            usage=_get(data, "usage", dict),
            provenance=_get(data, "provenance", dict),
            resumed=_get(data, "resumed", int),
            gates=tuple(_get(data, "gates", list)),
            comparison=_get(data, "comparison", dict, None),
            exit_status=_get(data, "exit_status", int, None),
        )


def wrappers_in(described: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the wrappers in what an answer model says of itself, in a Report or in run.json."""
    wrappers = described.get("wrapped_by") if isinstance(described, Mapping) else None
    known = wrappers if isinstance(wrappers, (list, tuple)) else ()
    return tuple(each for each in known if isinstance(each, Mapping))


def _intervals_to_json(intervals: Intervals) -> dict[str, list[float] | None]:
    return {rate: [round(end, _DIGITS) for end in ends] if ends else None for rate, ends in intervals.items()}


def _values(source: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def _counts(rows: Rates) -> dict[str, Any]:
    return _values(rows, (*_COUNTS, _SOMETIMES) if rows.recorded else _COUNTS)


def _groups_to_json(groups: Groups | None) -> dict[str, Any] | None:
    return None if groups is None else {name: group.to_json() for name, group in groups.items()}


# -- reading --------------------------------------------------------------------------------------

_WORDS = {int: "a whole number", str: "a text", dict: "an object", list: "a list"}
_REQUIRED: Any = object()
_T = TypeVar("_T")


def _get(data: Mapping[str, Any], key: str, kind: type, default: Any = _REQUIRED) -> Any:
    """Return `data[key]`, checked to be of `kind`, or `default` where it is missing or null."""
    if not isinstance(data, Mapping):
        raise RunError(f"found {type(data).__name__} where an object was wanted")
    value = data.get(key)
    if value is None and default is not _REQUIRED:
        return default
    if key not in data:
        raise RunError(f"the key '{key}' is missing")
    # bool is an int to Python, but not to the document.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RunError(f"'{key}' is {shown(value)}, which is not {_WORDS[kind]}")
    return value


def _read_counts(data: Mapping[str, Any]) -> dict[str, Any]:
    counts: dict[str, int] = {key: _get(data, key, int) for key in _COUNTS}
    if recorded := _get(data, _SOMETIMES, int, 0):
        counts[_SOMETIMES] = recorded
    total, *parts = counts.values()
    if min(parts) < 0 or sum(parts) != total:
        raise RunError(f"{', '.join([*counts][1:])} are {parts} and do not add up to 'n' {total}")
    return counts


def _read_intervals(data: Mapping[str, Any]) -> Intervals:
    found = _get(data, "intervals", dict, {})
    return {str(rate): _convert("intervals", _read_ends, ends) for rate, ends in found.items()}


def _read_ends(ends: Any) -> Interval | None:
    if ends is None:
        return None
    low, high = ends
    return float(low), float(high)


def _groups_from_json(data: Mapping[str, Any] | None) -> Groups | None:
    return None if data is None else {name: TopicReport.from_json(group) for name, group in data.items()}


def _convert(key: str, read: Callable[[Any], _T], value: Any) -> _T:
    """Return `read(value)`; what it cannot take becomes a RunError naming `key`."""
    try:
        return read(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"'{key}' cannot be read: {type(error).__name__}: {error}") from error


def _read_samples(rows: list[Any]) -> tuple[QuestionResult, ...]:
    return tuple(QuestionResult.from_json(row) for row in rows)


def _read_verdicts(rows: list[Any]) -> tuple[tuple[str, str, int, Verdict | None], ...]:
    return tuple((str(q), str(gold), int(repeat), Verdict(word) if word else None) for q, gold, repeat, word in rows)
