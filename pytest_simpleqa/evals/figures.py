"""The figures that evals written in code make of their events, as OpenAI Evals defines them."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Collection, Sequence
from typing import Any

from .recorder import Event

Matrix = Any
"""A numpy array; numpy comes in only with `get_confusion_matrix`."""


def get_accuracy(events: Sequence[Event]) -> float:
    """Return the share of match events that are correct; not a number where there is none."""
    return sum(map(_is_correct, events)) / len(events) if events else math.nan


def get_bootstrap_accuracy_std(events: Sequence[Event], num_samples: int = 1000) -> float:
    """Return the standard deviation of the accuracies of so many random halves, always the same ones."""
    values = [float(_is_correct(event)) for event in events]
    half = len(values) // 2
    if not half:
        return math.nan
    draw = random.Random(0)
    return statistics.pstdev(statistics.fmean(draw.sample(values, half)) for _ in range(num_samples))


def get_confusion_matrix(matches: Sequence[Event], class_labels: Collection[Any] | None = None) -> Matrix:
    """Return how often each label (row) was picked as which (column); the last column is for all else.

    Rows stand in the order of `class_labels`, else sorted. Wants numpy.
    """
    import numpy as np

    found = {event.data["expected"] for event in matches}
    labels = list(class_labels) if class_labels is not None else sorted(found)
    if unknown := found - set(labels):
        raise ValueError(f"labels {sorted(map(str, unknown))} are none of {labels}")
    matrix = np.zeros((len(labels), len(labels) + 1), dtype=int)
    for event in matches:
        picked = event.data["picked"]
        matrix[labels.index(event.data["expected"]), labels.index(picked) if picked in labels else -1] += 1
    return matrix


def compute_matthew_corr(confusion_matrix: Matrix) -> float:
    """Return Matthews' correlation of two classes; what was picked as neither counts as the first."""
    (a, b, neither_a), (c, d, neither_c) = confusion_matrix.tolist()
    a, c = a + neither_a, c + neither_c
    return float((d * a - c * b) / math.sqrt((c + d) * (a + b) * (a + c) * (b + d)))


def compute_precision(confusion_matrix: Matrix, idx: int = 0) -> float:
    """Return the share of what was picked as class `idx` that is of it."""
    return float(confusion_matrix[idx, idx] / confusion_matrix[:, idx].sum())


def compute_recall(confusion_matrix: Matrix, idx: int = 0) -> float:
    """Return the share of class `idx` that was picked as it."""
    return float(confusion_matrix[idx, idx] / confusion_matrix[idx, :].sum())


def compute_f_score(confusion_matrix: Matrix, idx: int = 0, beta: float = 1.0) -> float:
    """Return the weighted harmonic mean of precision and recall of class `idx`."""
    precision, recall = compute_precision(confusion_matrix, idx), compute_recall(confusion_matrix, idx)
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def compute_averaged_f_score(confusion_matrix: Matrix, beta: float = 1.0, average: str = "macro") -> float:
    """Return the plain mean of the classes' F scores."""
    if average != "macro":
        raise ValueError(f"average={average!r}: only 'macro' is known")
    return statistics.fmean(compute_f_score(confusion_matrix, idx, beta) for idx in range(len(confusion_matrix)))


def _is_correct(event: Event) -> bool:
    return bool(event.data["correct"])
