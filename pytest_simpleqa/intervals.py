"""How sure the numbers are: intervals of ratios and of paired differences, the test of flips. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .metrics import INTERVAL_RATES, Z_95, Interval, Rates, wilson

Part = tuple[float, float]
"""What one question adds to a rate: numerator and denominator."""

_T = TypeVar("_T")

POWER = 0.8
"""The chance with which a detectable difference is found."""


def z_of(level: float) -> float:
    """Return the standard normal quantile that leaves `1 - level` outside, half on either side."""
    from statistics import NormalDist  # not before: it brings fractions and decimals along

    return NormalDist().inv_cdf((1 + level) / 2)


# -- one run --------------------------------------------------------------------------------------


def intervals_of(counts: Rates) -> dict[str, Interval | None]:
    """Return the 95 % intervals of the four rates (Wilson's) and of `f_score`, each row taken for itself.

    That of `f_score` is the score interval of a ratio: in simulations of 30 rows and more it holds its 95 %, where a
    bootstrap's falls below 80 % for rates near 0 or 1.
    """
    rest = counts.not_attempted + counts.failures
    parts = {(2.0, 2.0): counts.correct, (0.0, 2.0): counts.incorrect, (0.0, 1.0): rest}
    has_rate = counts.fraction("f_score")[1] > 0
    return {
        **{rate: wilson(*counts.fraction(rate)) for rate in INTERVAL_RATES},
        "f_score": score_interval(parts, Z_95) if has_rate else None,
    }


def score_interval(questions: Mapping[Part, int], z: float) -> Interval | None:
    """Return the score interval of `sum of numerators / sum of denominators`; None without a denominator.

    `questions` tells how many questions add which part; parts that could have come up and did not
    stand in it with 0. The interval holds every ratio that a score test at `z` does not refuse: the
    spread is that of the most likely shares of the parts under that ratio, so it keeps its width
    where all questions agree. With shares of rows it is Wilson's interval (1927); with differences of
    -1, 0 and 1 it is Tango's for paired proportions (T. Tango, "Equivalence test and confidence
    interval for the difference in proportions for the paired-sample design", Statistics in Medicine
    17, 1998). The repeats of a question are one part, so they are not taken for independent.
    """
    total = sum(numerator * number for (numerator, _), number in questions.items())
    whole = sum(denominator * number for (_, denominator), number in questions.items())
    if not whole:
        return None
    within_reach = [numerator / denominator for numerator, denominator in questions if denominator]
    low, high = (_end(questions, total / whole, limit, z) for limit in (min(within_reach), max(within_reach)))
    return low, high


def _end(questions: Mapping[Part, int], inside: float, limit: float, z: float) -> float:
    """Return the last ratio on the way from `inside` to `limit` that the test does not refuse."""
    if _score(questions, limit) <= z:
        return limit
    outside = limit
    while abs(outside - inside) > 1e-11:
        middle = (inside + outside) / 2
        if _score(questions, middle) <= z:
            inside = middle
        else:
            outside = middle
    return inside


def _score(questions: Mapping[Part, int], ratio: float) -> float:
    """Return how many standard errors the questions are away from `ratio`."""
    scores = [(numerator - ratio * denominator, number) for (numerator, denominator), number in questions.items()]
    distance = abs(sum(score * number for score, number in scores))
    if distance < 1e-12:
        return 0.0
    n = sum(questions.values())
    spread = _spread([(score, number / n) for score, number in scores])
    return distance / math.sqrt(n * spread) if spread > 0 else math.inf


def _spread(scores: list[tuple[float, float]]) -> float:
    """Return the variance of the scores under the most likely shares that give them a mean of 0.

    These shares are `share / (1 + t * score)` for the one `t` that brings the mean to 0. Where none
    does, what is left goes to the furthest score on the other side, which did not come up.
    """
    mean = sum(score * share for score, share in scores)
    furthest = (max if mean < 0 else min)(score for score, _ in scores)
    if furthest * mean >= 0:
        return 0.0  # no shares have a mean of 0 but all of it at a score of 0
    seen = [(score, share) for score, share in scores if share]
    t = _tilt(seen, -1 / furthest, closed=all(score != furthest for score, _ in seen))
    shares = [(score, share / (1 + t * score)) for score, share in seen]
    left = max(0.0, 1 - sum(share for _, share in shares))
    return sum(share * score**2 for score, share in shares) + left * furthest**2


def _tilt(seen: list[tuple[float, float]], limit: float, *, closed: bool) -> float:
    """Return the `t` between 0 and `limit` where the tilted mean is 0, or `limit` where it is not reached."""

    def mean(t: float) -> float:
        return sum(score * share / (1 + t * score) for score, share in seen)

    start = mean(0)
    if closed and mean(limit) * start >= 0:
        return limit
    short, beyond, t = 0.0, limit, 0.0
    for _ in range(200):
        slope = -sum(share * (score / (1 + t * score)) ** 2 for score, share in seen)
        step = t - mean(t) / slope
        # Newton's step where it stays between the two, else halve: the mean has a pole at the limit.
        after = step if min(short, beyond) < step < max(short, beyond) else (short + beyond) / 2
        if abs(after - t) <= 1e-13 * abs(limit):
            return after
        t = after
        if mean(t) * start > 0:
            short = t
        else:
            beyond = t
    return t


# -- two runs on the same questions ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """A rate in two runs on the same questions."""

    now: float
    before: float
    difference: float
    """`now - before`."""
    interval: Interval
    """Of the difference; (0, 0) where no question changed."""
    detectable: float
    """The distance from the margin that this many questions show with 80 % power."""


def paired_difference(pairs: Mapping[tuple[Part, Part], int], z: float, margin: float = 0.0) -> Difference | None:
    """Return the difference of a rate between two runs; None where a run has no denominator.

    `pairs` tells how many questions add which parts, (now, before), each averaged over its repeats;
    pairs that could have come up stand in it with 0. A rate with a fixed denominator gets the
    interval of Tango, exactly; one whose denominator varies (`attempted_accuracy`, `f_score`) the
    same interval for the differences linearised about the two measured ratios.
    """
    n = sum(pairs.values())
    sums = [[sum(pair[side][part] * k for pair, k in pairs.items()) for part in (0, 1)] for side in (0, 1)]
    if not (sums[0][1] and sums[1][1]):
        return None
    now, before = (numerator / denominator for numerator, denominator in sums)

    def value(pair: tuple[Part, Part]) -> float:
        (a, b), (c, d) = pair
        return (a - now * b) * n / sums[0][1] - (c - before * d) * n / sums[1][1] + now - before

    values: dict[Part, int] = {}
    for pair, k in pairs.items():
        # Rounded, so that equal values are one part.
        part = (round(value(pair), 12), 1.0)
        values[part] = values.get(part, 0) + k
    changed = any(k and pair[0] != pair[1] for pair, k in pairs.items())
    interval = score_interval(values, z) if changed else (0.0, 0.0)
    assert interval is not None
    interval = (max(-1.0, interval[0]), min(1.0, interval[1]))  # the linearised ones know no bounds
    about_margin = sum(k * (part[0] - margin) ** 2 for part, k in values.items()) / n
    return Difference(now, before, now - before, interval, detectable(about_margin, n, z))


def detectable(spread: float, n: int, z: float) -> float:
    """Return the mean difference that `n` questions show with 80 % power in a two-sided test at `z`.

    `spread` is the mean square of their differences: for accuracy the share of questions that are
    right in one of the two runs only. One such question is assumed where there was none.
    """
    return (z + z_of(2 * POWER - 1)) * math.sqrt(max(spread, 1 / n) / n)


def mcnemar(gained: int, lost: int) -> float:
    """Return the mid-p value of McNemar's exact test: how likely flips are at least this one-sided by chance.

    Source: M. W. Fagerland, S. Lydersen, P. Laake, "The McNemar test for binary matched-pairs data:
    mid-p and asymptotic are better than exact conditional", BMC Medical Research Methodology 13 (2013).
    """
    flips, fewer = gained + lost, min(gained, lost)
    below = sum(math.comb(flips, k) for k in range(fewer))
    # Twice (all below and half of the point itself), in whole numbers: 2^flips overflows a float.
    return min(1.0, (2 * below + math.comb(flips, fewer)) / (1 << flips))


def counted(found: Iterable[_T], possible: Iterable[_T]) -> dict[_T, int]:
    """Count what was found, with 0 for what was possible and not found."""
    counts = dict.fromkeys(possible, 0)
    for each in found:
        counts[each] = counts.get(each, 0) + 1
    return counts
