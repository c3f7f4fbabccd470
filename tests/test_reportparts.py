"""The inner parts of a Report: what is damaged in a document from outside is told in one line."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pytest_simpleqa.calibration import calibration
from pytest_simpleqa.comparison import compare
from pytest_simpleqa.decision import decide_all
from pytest_simpleqa.errors import RunError
from pytest_simpleqa.gate import parse_gate
from pytest_simpleqa.markdown import comparison_markdown
from pytest_simpleqa.report import Report
from pytest_simpleqa.reportparts import PARTS, require_parts
from pytest_simpleqa.terminal import summary_lines
from pytest_simpleqa.trust import tally

from .letters import baseline, run


def full() -> dict[str, Any]:
    """Return the document of a run that has every part."""
    report, rows = run("AABBCCBB?!", "aabcd", repeats=2)
    check = {"kind": "gold", "predicted": "x", "wanted": "correct", "verdict": "incorrect", "error": None}
    samples = [replace(row, extra={"confidence": 0.7, "sentinel": check}) for row in report.samples]
    gates = decide_all([parse_gate("accuracy >= .1"), parse_gate("topic[a].accuracy >= .1")], report, rows)
    document = replace(
        report,
        samples=tuple(samples),
        calibration=calibration(samples),
        sentinels=tally(samples),
        gates=tuple(gate.to_json() for gate in gates),
        comparison=compare(rows, baseline("AAABBACABC", repeats=2)).to_json(),
    ).to_json()
    document["usage"]["answer"]["latency_s"] = {"p50": 1.0, "p95": 2, "max": 3.0}
    return document


def test_a_report_of_ours_passes() -> None:
    """Every part that a run can have is of the shape that is wanted, and none goes unchecked."""
    document = full()
    require_parts(document)
    assert not PARTS.keys() - document.keys()
    assert document["comparison"]["regressions"]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("calibration", "n"), "3", "'calibration.n' is '3', which is not a whole number"),
        (("calibration", "ece"), True, "'calibration.ece' is True, which is not a number or null"),
        (("sentinels", "failed_checks"), None, "'sentinels.failed_checks' is None, which is not a list"),
        (("repeats", "intervals", "right_always"), [1], r"is \[1\], which is not a list of 2"),
        (("gates", 0, "verdict"), [], r"'gates\[0\].verdict' is \[\], which is not a text or null"),
        (("usage", "answer"), 3, "'usage.answer' is 3, which is not an object"),
        (("comparison", "flips"), {}, "the key 'comparison.flips.incorrect_to_correct' is missing"),
        (("samples", 0, "question"), None, r"'samples\[0\].question' is None, which is not a text"),
    ],
)
def test_what_is_damaged_is_named(place: tuple[Any, ...], value: Any, message: str) -> None:
    """The place, the value and what was wanted stand in one line."""
    document = full()
    put(document, place, value)
    with pytest.raises(RunError, match=message) as caught:
        require_parts(document)
    assert "\n" not in str(caught.value)


def test_no_damage_reaches_a_reader() -> None:
    """Whatever is exchanged or taken away anywhere in a part, a Report is refused or can be shown."""
    document = full()
    refused = 0
    for place in [place for key in PARTS for place in places(document[key], (key,))]:
        for value in ("x", [], None, MISSING):
            damaged = copy.deepcopy(document)
            put(damaged, place, value)
            try:
                report = Report.from_json(damaged)
                require_parts(damaged)
            except RunError:
                refused += 1
                continue
            summary_lines(report, results=report.samples)
            if report.comparison is not None:
                comparison_markdown(report)
    assert refused > 500


MISSING = object()


def put(document: Any, place: tuple[Any, ...], value: Any) -> None:
    """Put `value` at a place of the document, or take away what is there."""
    for key in place[:-1]:
        document = document[key]
    if value is MISSING:
        del document[place[-1]]
    else:
        document[place[-1]] = value


def places(part: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the places of a part and of all inside it, of a list those of the first member."""
    yield place
    inner = part.items() if isinstance(part, dict) else enumerate(part[:1]) if isinstance(part, list) else ()
    for key, each in inner:
        yield from places(each, (*place, key))
