"""What the results of an eval add up to, under the names that OpenAI Evals gives it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..metrics import Counts
from ..records import QuestionResult

Scores = Mapping[str, float | int | None]


def accuracy(results: Sequence[QuestionResult]) -> Scores:
    """Return the share of correct rows; None of none."""
    return {"accuracy": Counts.from_results(results).accuracy}


def accuracy_with_spread(results: Sequence[QuestionResult]) -> Scores:
    """Return `accuracy`, and how far it would vary over random halves of the rows (`boostrap_std`, so spelt there)."""
    share = Counts.from_results(results).accuracy
    return {"accuracy": share, "boostrap_std": None if share is None else half_sample_std(share, len(results))}


def half_sample_std(share: float, n: int) -> float | None:
    """Return the standard deviation of the mean of `n // 2` of `n` rows, drawn without replacement.

    `share` of the rows are 1, the others 0. OpenAI Evals draws 1,000 such halves without a seed; this is what that
    tends to: the variance of a hypergeometric mean, `p (1 - p) / m * (n - m) / (n - 1)`. None for fewer than two rows.
    """
    half = n // 2
    return math.sqrt(share * (1 - share) / half * (n - half) / (n - 1)) if half else None


def accuracy_with_f1(results: Sequence[QuestionResult]) -> Scores:
    """Return `accuracy` and the mean `f1_score` of all rows; one without an answer has 0."""
    found = [float((result.extra or {}).get("f1_score", 0.0)) for result in results]
    return {**accuracy(results), "f1_score": sum(found) / len(found) if found else None}
