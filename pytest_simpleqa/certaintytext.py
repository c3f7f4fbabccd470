"""How far answers agree and whether they are as sure as they are right, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .report import Report
from .wording import ends, many, rate

_SHOWN = (0.1, 0.5, 1.0)
"""Shares of the surest answers that are told of."""


def certainty_lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield label and text of what a Report says of repeats and of confidences; nothing where it says none."""
    if report.repeats is not None:
        yield "repeats", repeats_words(report.repeats)
    if report.calibration is not None:
        label = "confidence"
        for text in calibration_words(report.calibration):
            yield label, text
            label = ""


def repeats_words(found: Mapping[str, Any]) -> str:
    """Return how the repeats agree: how often the usual verdict came, how many questions were right ever and always."""
    shares = (
        f"{words} {rate(found[name])} {ends(found['intervals'][name])}".rstrip()
        for words, name in (("right at least once", "right_at_least_once"), ("always", "right_always"))
    )
    return f"{found['k']} of each, consistency {rate(found['consistency'])}, {', '.join(shares)}"


def calibration_words(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the confidences are worth, a line each."""
    counts = ((found["no_confidence"], "stated none"), (found["out_of_range"], "not in 0 to 1"))
    left_out = [f"{number:,} {words}" for number, words in counts if number]
    if not found["n"]:
        without = found["no_confidence"] + found["out_of_range"]
        yield f"none of {many(without, 'answer')} stated a usable one" if without else "no answer was attempted"
        return
    missing = "".join(f", {each}" for each in left_out)
    average, right = rate(found["confidence"]), rate(found["accuracy"])
    yield f"{average} on average, {right} right, of {many(found['n'], 'answer')}{missing}"
    yield f"calibration error {rate(found['ece'])}, Brier score {rate(found['brier'])}, AUROC {rate(found['auroc'])}"
    yield "right of the surest " + ", ".join(
        f"{100 * point['coverage']:.0f} % {rate(point['accuracy'])}" for point in _points(found)
    )


def _points(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the curve's points at the shares that are shown; equally sure answers may leave fewer."""
    reached = (next((point for point in found["curve"] if point["coverage"] >= share - 1e-9), None) for share in _SHOWN)
    return list({point["threshold"]: point for point in reached if point is not None}.values())
