"""Questions asked several times: how often the answers agree, and what that leaves of the certainty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .metrics import INTERVAL_RATES, Z_95, Interval, wilson
from .pairing import ComparedRow, by_question, measure


def clustered_intervals(rows: Iterable[ComparedRow]) -> dict[str, Interval | None]:
    """Return the 95 % intervals of the four rates and of `f_score`, with the repeats of a question as one.

    Without repeats they are those of `intervals_of`.
    """
    finished = [row for row in rows if row.finished]
    return {metric: measure(metric, finished, Z_95)[1] for metric in (*INTERVAL_RATES, "f_score")}


def consistency(rows: Iterable[ComparedRow], repeats: int) -> dict[str, Any]:
    """Return how the `repeats` of each question agree, in plain JSON types; shares are None without a question.

    A question's consistency is the share of its most frequent verdict among its rows with a result; a
    failure agrees with nothing. The other shares are of questions, with Wilson's 95 % intervals.
    `per_question` lists `[id, rows with a result, correct among them, consistency]`.
    """
    questions = list(by_question(row for row in rows if row.finished).values())
    shares = [_most_frequent(askings) / len(askings) for askings in questions]
    right = [sum(row.verdict == "correct" for row in askings) for askings in questions]
    counts = {
        "unanimous": sum(share == 1 for share in shares),
        "right_at_least_once": sum(number > 0 for number in right),
        "right_always": sum(number == len(askings) for number, askings in zip(right, questions, strict=True)),
    }
    total = len(questions)
    return {
        "k": repeats,
        "questions": total,
        "consistency": sum(shares) / total if total else None,
        **{name: number / total if total else None for name, number in counts.items()},
        "intervals": {name: _rounded(wilson(number, total)) for name, number in counts.items()},
        "per_question": [
            [askings[0].id, len(askings), number, share]
            for askings, number, share in zip(questions, right, shares, strict=True)
        ],
    }


def _most_frequent(askings: Iterable[ComparedRow]) -> int:
    return max(Counter(row.verdict for row in askings if row.verdict).values(), default=0)


def _rounded(ends: Sequence[float] | None) -> list[float] | None:
    return [round(end, 4) for end in ends] if ends else None
