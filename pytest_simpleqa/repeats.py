"""Questions asked several times: how often the answers agree, and what that leaves of the certainty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from .intervals import z_of
from .metrics import Interval
from .pairing import METRICS, ComparedRow, by_question, measure

_Z = z_of(0.95)


def clustered_intervals(rows: Iterable[ComparedRow]) -> dict[str, Interval | None]:
    """Return the 95 % interval of every metric, `f_score` too, with the repeats of a question as one.

    Without repeats, those of the shares of rows are Wilson's.
    """
    finished = [row for row in rows if row.finished]
    return {metric: measure(metric, finished, _Z)[1] for metric in METRICS}


def consistency(rows: Iterable[ComparedRow]) -> dict[str, Any]:
    """Return how the repeats of each question agree, in plain JSON types; rates are None without a question.

    A question's consistency is the share of its most frequent verdict among its rows with a result; a
    failure agrees with nothing. `ever_correct` and `always_correct` are shares of questions.
    """
    rows = [row for row in rows if row.finished]
    questions = list(by_question(rows).values())
    shares = [_most_frequent(askings) / len(askings) for askings in questions]
    right = [sum(row.verdict == "correct" for row in askings) for askings in questions]
    value, interval = measure("accuracy", rows, _Z)
    return {
        "questions": len(questions),
        "repeats": max(map(len, questions), default=0),
        "consistency": _mean(shares),
        "unanimous": _mean([share == 1 for share in shares]),
        "ever_correct": _mean([number > 0 for number in right]),
        "always_correct": _mean([number == len(askings) for number, askings in zip(right, questions, strict=True)]),
        "accuracy": value,
        "accuracy_interval": [round(end, 4) for end in interval] if interval else None,
        "per_question": [
            {
                "id": askings[0].id,
                "question_hash": askings[0].question_hash,
                "asked": len(askings),
                "correct": number,
                "consistency": share,
            }
            for askings, number, share in zip(questions, right, shares, strict=True)
        ],
    }


def _most_frequent(askings: Iterable[ComparedRow]) -> int:
    return max(Counter(row.verdict for row in askings if row.verdict).values(), default=0)


def _mean(values: list[float] | list[bool]) -> float | None:
    return sum(values) / len(values) if values else None
