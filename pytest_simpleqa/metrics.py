"""The numbers: counts of rows, the rates they give, and how sure these are. Pure arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from .records import QuestionResult

Interval = tuple[float, float]
"""Low and high end, both in 0 to 1."""

INTERVAL_RATES = ("accuracy", "attempted_accuracy", "abstention_rate", "hallucination_rate")
"""The rates that the Report gives an interval for, in its order."""

Z_95 = 1.959963984540054
"""The standard normal quantile that leaves 2.5 % on either side."""


def wilson(successes: int, n: int, z: float = Z_95) -> Interval | None:
    """Return the Wilson score interval of `successes` out of `n`; None for no trials.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    Journal of the American Statistical Association 22 (1927), without continuity correction. It
    takes the trials for independent: repeats of one question are not quite, and then it is too narrow.
    """
    if n == 0:
        return None
    assert 0 <= successes <= n, f"{successes} successes of {n}"
    share, spread = successes / n, z * z / n
    centre = share + spread / 2
    reach = z * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    # The ends are exact where every trial agrees; the formula misses them by a rounding error.
    low = 0.0 if successes == 0 else (centre - reach) / (1 + spread)
    high = 1.0 if successes == n else (centre + reach) / (1 + spread)
    return low, high


class Rates:
    """The rates of whatever carries the seven counts: all fractions, 0 to 1; None without a denominator.

    Recorded rows can be neither right nor wrong: no rate counts them, and of nothing else but failures there is none.
    """

    __slots__ = ()

    n: int
    """Rows with a result: the sum of the other six."""
    correct: int
    incorrect: int
    not_attempted: int
    judge_failures: int
    errors: int
    recorded: int

    def fraction(self, rate: str) -> tuple[int, int]:
        """Return numerator and denominator of `rate`; KeyError for a name that is no rate."""
        attempted = self.correct + self.incorrect
        graded = attempted + self.not_attempted
        rows = self.n - self.recorded if graded or not self.recorded else 0
        return {
            "accuracy": (self.correct, rows),
            "attempted_accuracy": (self.correct, attempted),
            "abstention_rate": (self.not_attempted, rows),
            "hallucination_rate": (self.incorrect, rows),
            "coverage": (graded, rows),
            "f_score": (2 * self.correct, rows + attempted),
        }[rate]

    def rate(self, name: str) -> float | None:
        """Return the rate called `name`; KeyError for a name that is no rate."""
        numerator, denominator = self.fraction(name)
        return numerator / denominator if denominator else None

    def interval(self, rate: str) -> Interval | None:
        """Return the Wilson 95 % interval of `rate`, which must be a share of rows (not `f_score`)."""
        assert rate != "f_score", "f_score is no share of rows: the Wilson interval does not hold for it"
        return wilson(*self.fraction(rate))

    @property
    def accuracy(self) -> float | None:
        """`correct / n`."""
        return self.rate("accuracy")

    @property
    def attempted_accuracy(self) -> float | None:
        """`correct / (correct + incorrect)`: the headline."""
        return self.rate("attempted_accuracy")

    @property
    def abstention_rate(self) -> float | None:
        """`not_attempted / n`."""
        return self.rate("abstention_rate")

    @property
    def hallucination_rate(self) -> float | None:
        """`incorrect / n`."""
        return self.rate("hallucination_rate")

    @property
    def coverage(self) -> float | None:
        """Share of `n` with a verdict."""
        return self.rate("coverage")

    @property
    def f_score(self) -> float | None:
        """`2 correct / (n + correct + incorrect)`: harmonic mean of accuracy and attempted accuracy."""
        return self.rate("f_score")

    @property
    def failures(self) -> int:
        """Rows without a verdict: judge failures and errors."""
        return self.judge_failures + self.errors

    def _check_sum(self) -> None:
        parts = (self.correct, self.incorrect, self.not_attempted, self.judge_failures, self.errors, self.recorded)
        assert min(parts) >= 0, f"a negative count among {parts}"
        assert sum(parts) == self.n, f"the counts {parts} add up to {sum(parts)}, not to n = {self.n}"


@dataclass(frozen=True, slots=True)
class Counts(Rates):
    """How many rows ended in which way; every row with a result is in exactly one of the six."""

    n: int = 0
    correct: int = 0
    incorrect: int = 0
    not_attempted: int = 0
    judge_failures: int = 0
    errors: int = 0
    recorded: int = 0

    def __post_init__(self) -> None:
        self._check_sum()

    @classmethod
    def from_statuses(cls, statuses: Iterable[str]) -> Self:
        """Count `QuestionResult.status` words; a word that is none of the six fails the assertion."""
        found = Counter(statuses)
        return cls(
            n=found.total(),
            correct=found["correct"],
            incorrect=found["incorrect"],
            not_attempted=found["not_attempted"],
            judge_failures=found["judge_failure"],
            errors=found["error"],
            recorded=found["recorded"],
        )

    @classmethod
    def from_results(cls, results: Iterable[QuestionResult]) -> Self:
        """Count results."""
        return cls.from_statuses(result.status for result in results)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.n + other.n,
            self.correct + other.correct,
            self.incorrect + other.incorrect,
            self.not_attempted + other.not_attempted,
            self.judge_failures + other.judge_failures,
            self.errors + other.errors,
            self.recorded + other.recorded,
        )
