"""Whether answers are as often right as they claim: reliability table, calibration error, what abstaining would buy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeGuard

from .intervals import counted, score_interval
from .metrics import Z_95, Interval
from .records import QuestionResult, Verdict

BINS = 10
_POINTS = 10
_ATTEMPTED = (Verdict.CORRECT, Verdict.INCORRECT)


class Claim(NamedTuple):
    """One attempted answer, how sure it said it was, and whether it was right."""

    confidence: float
    """A fraction, 0 to 1."""
    right: bool
    question: str
    """Its question's id: repeats of one question are not independent."""


def calibration(results: Iterable[QuestionResult], *, asked: bool = False) -> dict[str, Any] | None:
    """Return the Report's `calibration` in plain JSON types; None where no answer carries a confidence.

    With `asked`, where every answer was to state one, it is never None. What counts are attempted answers: `n` of
    them with a usable confidence, `no_confidence` without, `out_of_range` with one outside 0 to 1. A confidence is
    the chance that an answer is right, so one that was not attempted claims nothing (benchmarks that ask for a
    best guess have none; those that take it for wrong measure abstaining as well), and one without a verdict
    cannot be checked.
    """
    rows = list(results)
    if not asked and not any("confidence" in (row.extra or {}) for row in rows):
        return None
    attempted = [(row, (row.extra or {}).get("confidence")) for row in rows if row.verdict in _ATTEMPTED]
    claims = [Claim(value, row.verdict == "correct", row.id) for row, value in attempted if _is_fraction(value)]
    without = sum(value is None for _, value in attempted)
    return {
        "n": len(claims),
        "no_confidence": without,
        "out_of_range": len(attempted) - len(claims) - without,
        "confidence": _mean([claim.confidence for claim in claims]),
        "accuracy": _accuracy(claims),
        "ece": calibration_error(claims),
        "brier": brier_score(claims),
        "auroc": auroc(claims),
        "bins": reliability(claims),
        "curve": coverage_curve(claims),
    }


def _is_fraction(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def reliability(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """Return the answers by confidence in 10 equal-width bins, `(low, high]`, the first with 0; empty ones too.

    The interval is the 95 % one of the bin's accuracy, clustered by question: Wilson's without repeats.
    """
    bins = _binned(claims)
    return [
        {
            "low": number / BINS,
            "high": (number + 1) / BINS,
            "n": len(found),
            "confidence": _mean([claim.confidence for claim in found]),
            "accuracy": _accuracy(found),
            "interval": [round(end, 4) for end in ends] if (ends := _interval(found)) else None,
        }
        for number, found in enumerate(bins)
    ]


def calibration_error(claims: Sequence[Claim]) -> float | None:
    """Return the expected calibration error: the bins' |accuracy - mean confidence|, weighted by their answers.

    Source: C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On Calibration of Modern Neural Networks", ICML 2017,
    equation 3, with its bins; first in M. P. Naeini, G. F. Cooper, M. Hauskrecht, AAAI 2015. None without answers.
    """
    if not claims:
        return None
    gaps = (abs(sum(claim.right - claim.confidence for claim in found)) for found in _binned(claims))
    return sum(gaps) / len(claims)


def brier_score(claims: Iterable[Claim]) -> float | None:
    """Return the mean of `(confidence - right)^2`: 0 is perfect, 0.25 what saying 50 % throughout gets.

    Source: G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78
    (1950), in the form for two outcomes (half of his).
    """
    return _mean([(claim.confidence - claim.right) ** 2 for claim in claims])


def auroc(claims: Sequence[Claim]) -> float | None:
    """Return how often a right answer is surer than a wrong one, a tie counting half; None without both.

    Source: J. A. Hanley, B. J. McNeil, "The meaning and use of the area under a receiver operating characteristic
    (ROC) curve", Radiology 143 (1982). It looks at the order alone: 0.5 tells nothing apart.
    """
    right = Counter(claim.confidence for claim in claims if claim.right)
    wrong = Counter(claim.confidence for claim in claims if not claim.right)
    if not right or not wrong:
        return None
    below, wins = 0, 0.0
    for confidence in sorted(right | wrong):
        wins += right[confidence] * (below + wrong[confidence] / 2)
        below += wrong[confidence]
    return wins / (right.total() * wrong.total())


def coverage_curve(claims: Iterable[Claim]) -> list[dict[str, float]]:
    """Return how right the surest answers are, from the surest tenth to all.

    A point keeps every answer with at least the `threshold`'s confidence: `coverage` is their share, the next
    whole tenth or, where answers are equally sure, more. Equal thresholds are one point. Source: R. El-Yaniv,
    Y. Wiener, "On the Foundations of Noise-free Selective Classification", JMLR 11 (2010).
    """
    surest = sorted(claims, key=lambda claim: -claim.confidence)
    places = (math.ceil(len(surest) * tenth / _POINTS) - 1 for tenth in range(1, _POINTS + 1))
    thresholds = dict.fromkeys(surest[place].confidence for place in places if surest)
    points = []
    for threshold in thresholds:
        kept = [claim for claim in surest if claim.confidence >= threshold]
        share = sum(claim.right for claim in kept) / len(kept)
        points.append({"threshold": threshold, "coverage": len(kept) / len(surest), "accuracy": share})
    return points


def _binned(claims: Iterable[Claim]) -> list[list[Claim]]:
    bins: list[list[Claim]] = [[] for _ in range(BINS)]
    for claim in claims:
        # Rounded, so that 70 % does not fall above its bin's end by an error in the last place.
        bins[max(0, math.ceil(round(claim.confidence * BINS, 9)) - 1)].append(claim)
    return bins


def _interval(claims: Iterable[Claim]) -> Interval | None:
    right, asked = Counter[str](), Counter[str]()
    for claim in claims:
        right[claim.question] += claim.right
        asked[claim.question] += 1
    most = max(asked.values(), default=1)
    parts = ((float(right[question]), float(number)) for question, number in asked.items())
    return score_interval(counted(parts, [(0.0, float(most)), (float(most), float(most))]), Z_95)


def _accuracy(claims: Sequence[Claim]) -> float | None:
    return _mean([claim.right for claim in claims])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
