"""Repeats and confidences in words: on the screen and in comments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_simpleqa.certaintytext import certainty_lines
from pytest_simpleqa.comparison import compare
from pytest_simpleqa.markdown import comparison_markdown
from pytest_simpleqa.records import Question, Verdict
from pytest_simpleqa.report import Report
from pytest_simpleqa.terminal import summary_lines
from pytest_simpleqa.wording import columns

from .example_run import by_key, graded, make
from .letters import baseline, run

SURE = (0.95, 0.9, 0.9, 0.8, 0.6, 0.6, 0.5, 0.3, 0.2, 0.1)


def confident(right: str = "AAABABBABB", extra: dict[int, object] | None = None) -> Report:
    asked = [Question(f"q{i}", f"{i}?", "x") for i in range(10)]
    words = {"A": Verdict.CORRECT, "B": Verdict.INCORRECT}
    stated = {**dict(enumerate(SURE)), **(extra or {})}
    rows = [
        graded(q, words[a], extra={"confidence": stated[i]}) for i, (q, a) in enumerate(zip(asked, right, strict=True))
    ]
    return make(by_key(*rows), population=asked)


def test_a_plain_run_says_nothing() -> None:
    """Neither repeats nor confidences: no line."""
    assert list(certainty_lines(run("AB")[0])) == []


def test_repeats_are_told_in_one_line() -> None:
    """How many askings, how consistent, how many questions right at least once and always."""
    lines = list(certainty_lines(run("AAAAABCACBBB", repeats=3)[0]))
    assert lines == [
        ("repeats", "3 of each, consistency .833, right at least once .750 .301-.954, always .250 .046-.699")
    ]


def test_confidences_are_told_in_three_lines() -> None:
    """What was claimed and what was right, the scores, and how right the surest are."""
    lines = list(certainty_lines(confident()))
    assert [label for label, _ in lines] == ["confidence", "", ""]
    assert [text for _, text in lines] == [
        ".585 on average, .500 right, of 10 answers",
        "calibration error .275, Brier score .197, AUROC .820",
        "right of the surest 10 % 1.00, 60 % .667, 100 % .500",
    ]


def test_what_has_no_usable_confidence_is_told() -> None:
    """Missing and impossible confidences are told by number; without any usable one there is one line."""
    (_, first), *_ = certainty_lines(confident(extra={1: None, 2: 85, 3: -1}))
    assert first.endswith("of 7 answers, 1 stated none, 2 not in 0 to 1")
    lines = list(certainty_lines(confident(extra=dict.fromkeys(range(10)))))
    assert lines == [("confidence", "none of 10 answers stated a usable one")]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_summary_holds_them_at_any_width(width: int) -> None:
    """They stand in the summary below their label, also under -q, and never beyond the screen."""
    report = replace(run("AABB", repeats=2)[0], calibration=confident().calibration)
    for verbosity in (0, -1):
        lines = [line.text for line in summary_lines(report, width=width, verbosity=verbosity)]
        assert any(line.startswith("repeats     2 of each, consistency 1.00") for line in lines)
        assert any(line.startswith("confidence  .585 on average") for line in lines)
        assert max(columns(line) for line in lines) <= width


def test_a_comment_holds_them() -> None:
    """A comparison in Markdown has a paragraph for each."""
    report, rows = run("AABB", repeats=2)
    found = compare(rows, baseline("AB"))
    said = comparison_markdown(replace(report, comparison=found.to_json(), calibration=confident().calibration))
    assert "\nRepeats: 2 of each, consistency 1.00" in said
    assert "\nConfidence: .585 on average, .500 right, of 10 answers.\nCalibration error .275" in said
