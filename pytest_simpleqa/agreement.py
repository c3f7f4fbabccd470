"""How well a judge agrees with labels: the matrix, agreement, Cohen's kappa, and what its errors do to an accuracy.

Pure arithmetic.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .intervals import counted, score_interval, z_of
from .metrics import Interval

_Z = z_of(0.95)


class Rated(NamedTuple):
    """One row, by its label and by the judge."""

    label: str
    judged: str
    """In the label's words; anything else, such as a failure, agrees with no label."""
    question: str = ""
    """Rows of one question are not independent: they count as one cluster."""


class Measured(NamedTuple):
    """A figure and its 95 % interval."""

    value: float
    interval: Interval


def matrix(rows: Iterable[Rated]) -> Counter[tuple[str, str]]:
    """Count rows by label and judgement."""
    return Counter((row.label, row.judged) for row in rows)


def agreement(rows: Sequence[Rated]) -> Measured | None:
    """Return the share of rows on which judge and label agree; None without rows.

    The interval is Wilson's; where questions have several rows, the score interval over questions.
    """
    clusters: dict[object, list[bool]] = defaultdict(list)
    for number, row in enumerate(rows):
        clusters[row.question or number].append(row.label == row.judged)
    parts = [(float(sum(each)), float(len(each))) for each in clusters.values()]
    most = max((len(each) for each in clusters.values()), default=1)
    interval = score_interval(counted(parts, [(0.0, float(most)), (float(most), float(most))]), _Z)
    return Measured(sum(part[0] for part in parts) / len(rows), interval) if interval else None


def kappa(rows: Sequence[Rated]) -> Measured | None:
    """Return Cohen's kappa; None where it has no denominator: no rows, or all of them in one class.

    Sources: J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
    Measurement 20 (1960). The interval is value +- z * standard error, the large-sample error of J. L.
    Fleiss, J. Cohen and B. S. Everitt, "Large sample standard errors of kappa and weighted kappa",
    Psychological Bulletin 72 (1969), written as a sum over rows, so that the rows of one question add
    up before they are squared.
    """
    n = len(rows)
    labels, judgements = Counter(row.label for row in rows), Counter(row.judged for row in rows)
    chance = sum(labels[word] * judgements[word] for word in labels) / n**2 if n else 1.0
    if chance >= 1:
        return None
    agreed = sum(row.label == row.judged for row in rows) / n
    value = (agreed - chance) / (1 - chance)
    pulls: dict[object, float] = defaultdict(float)
    for number, row in enumerate(rows):
        of_chance = (judgements[row.label] + labels[row.judged]) / n - 2 * chance
        pull = ((row.label == row.judged) - agreed) / (1 - chance) - of_chance * (1 - agreed) / (1 - chance) ** 2
        pulls[row.question or number] += pull
    reach = _Z * math.sqrt(sum(pull**2 for pull in pulls.values())) / n
    return Measured(value, (max(-1.0, value - reach), min(1.0, value + reach)))


@dataclass(frozen=True, slots=True)
class JudgeErrors:
    """How a judge treats what the labels call right and wrong."""

    right: int
    right_called_right: int
    wrong: int
    wrong_called_wrong: int
    """Anything but right, a failure too."""

    @classmethod
    def of(cls, rows: Iterable[Rated], right: str) -> JudgeErrors:
        """Count them; `right` is the word for a right answer."""
        counts = matrix(rows)
        both = counts[right, right]
        labelled_right = sum(number for (label, _), number in counts.items() if label == right)
        called_right = sum(number for (_, judged), number in counts.items() if judged == right)
        wrong = counts.total() - labelled_right
        return cls(labelled_right, both, wrong, wrong - (called_right - both))

    def corrected(self, called_right: int, n: int) -> Measured | None:
        """Return the share of right answers behind `called_right` of `n`; None where the judge tells nothing.

        Sources: W. J. Rogan and B. Gladen, "Estimating prevalence from the results of a screening test",
        American Journal of Epidemiology 107 (1978); the interval is that of Z. Lang and J. Reiczigel,
        "Confidence limits for prevalence of disease adjusted for estimated sensitivity and specificity",
        Preventive Veterinary Medicine 113 (2014). It takes the rows for independent.
        """
        if not (self.right and self.wrong and n):
            return None
        found_right, found_wrong = self.right_called_right / self.right, self.wrong_called_wrong / self.wrong
        skill = found_right + found_wrong - 1
        if skill <= 0:
            return None
        value = (called_right / n + found_wrong - 1) / skill
        return Measured(min(1.0, max(0.0, value)), self._interval(called_right / n, n))

    def _interval(self, share: float, n: int) -> Interval:
        z2 = _Z**2
        rights, wrongs, rows = self.right + 2, self.wrong + 2, n + z2
        a, b = (self.right_called_right + 1) / rights, (self.wrong_called_wrong + 1) / wrongs
        p = (share * n + z2 / 2) / rows
        skill = a + b - 1
        if skill <= 0:  # two rows more tip a judge that hardly tells
            return 0.0, 1.0
        middle = (p + b - 1) / skill
        of_rights, of_wrongs = a * (1 - a) / rights, b * (1 - b) / wrongs
        shift = 2 * z2 * (middle * of_rights - (1 - middle) * of_wrongs)
        spread = p * (1 - p) / rows + middle**2 * of_rights + (1 - middle) ** 2 * of_wrongs
        reach = _Z * math.sqrt(spread) / skill
        low, high = (min(1.0, max(0.0, middle + shift + sign * reach)) for sign in (-1, 1))
        return low, high
