"""A comparison on the screen and in a comment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_simpleqa.comparison import compare
from pytest_simpleqa.comparisontext import comparison_lines, p_words, signed
from pytest_simpleqa.markdown import comparison_markdown, escaped
from pytest_simpleqa.report import Report
from pytest_simpleqa.terminal import summary_lines
from pytest_simpleqa.textline import Line, fitted, wrapped
from pytest_simpleqa.wording import columns

from .letters import baseline, run


def compared(now: str, before: str, topics: str = "", **values: Any) -> Report:
    """Return the Report of a run that was compared with another."""
    report, rows = run(now, topics)
    found = {**compare(rows, baseline(before)).to_json(), **values}
    return replace(report, comparison=found)


def text(report: Report, width: int = 80, *, brief: bool = False) -> str:
    return "\n".join(line.text for line in comparison_lines(report, width, brief=brief))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    """Names and texts of any width are cut; columns go where there is no room."""
    report = compared("AABCAB", "AAABCA", "中国文化xyz", model="模型" * 60, judge="j" * 99)
    assert all(columns(line.text) <= width for line in comparison_lines(report, width))


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        ([], [], "new compared with old (old)"),
        ([{"name": "rag:Sources"}], [], "new wrapped by rag:Sources compared with old (old)"),
        ([], [{"name": "rag:Sources"}, {"name": "x"}], "new compared with old wrapped by rag:Sources, x (old)"),
        ([{"name": "rag:Sources", "n": 3}], [{"name": "rag:Sources", "n": 3}], "new compared with old (old)"),
        (
            [{"name": "a"}, {"name": "b", "n": 3, "top": 1}],
            [{"name": "a"}, {"name": "b", "n": 0, "top": 1}],
            "new wrapped by a, b (n 3) compared with old wrapped by a, b (n 0) (old)",
        ),
        ([{"name": "a"}], "no list", "new wrapped by a compared with old (old)"),
    ],
)
def test_wrappers_are_named_where_they_differ(now: Any, before: Any, said: str) -> None:
    """Two runs of one model may differ in what stands around it alone: the heading says it, and how."""
    report = replace(compared("AB", "AA", wrapped_by=before), provenance={"answer": {"wrapped_by": now}})
    assert text(report, 200).startswith(f"{said}, on the same 2 questions")
    heading = comparison_markdown(report).partition("\n")[0]
    now_words, before_words = said.split(" compared with ")
    assert heading.endswith(f"{escaped(now_words)} compared with {escaped(before_words)}")


def test_nothing_is_acted_on_by_the_terminal() -> None:
    """An escape in a model's name or answer is shown, not sent."""
    report = compared("AB", "AA", model="\x1b[31mred")
    found = dict(report.comparison or {})
    found["regressions"][0]["now"]["predicted"] = "\x1b]0;title\x07\n\u202ebad"
    said = text(replace(report, comparison=found))
    assert not {"\x1b", "\x07", "\u202e"} & set(said)
    assert "\\x1b[31mred" in said


def test_without_a_comparison_there_are_no_lines() -> None:
    """A run that was compared with nothing has no block for it."""
    assert comparison_lines(run("AB")[0], 80) == []


def test_differences_that_are_told_from_none_have_colours() -> None:
    """Green is better, red is worse, whichever way the metric goes; abstaining more is neither."""
    lines = comparison_lines(compared("A" * 60 + "C" * 40, "B" * 100), 80)
    colours = {line.text.split("  ")[0]: set(line.spans[3][1]) for line in lines if len(line.spans) == 5}
    assert colours["accuracy"] == {"green"}
    assert colours["hallucination rate"] == {"green"}
    assert colours["abstention rate"] == set()
    lines = comparison_lines(compared("B" * 100, "A" * 60 + "C" * 40), 80)
    assert {"red": True} in [line.spans[3][1] for line in lines if line.text.startswith("accuracy ")]


def test_topics_come_the_worst_first() -> None:
    """Where topics are known, accuracy is compared in each of them."""
    said = text(compared("AAAB", "AAAA", "xxyy"))
    assert said.index("accuracy by topic, the worst first") < said.index("\ny ") < said.index("\nx ")
    assert "accuracy by topic" not in text(compared("AAAB", "AAAA", "xxyy"), brief=True)


def test_a_refusal_is_told_from_a_wrong_answer() -> None:
    """A regression says whether the model was wrong or did not attempt."""
    said = text(compared("BC", "AA"))
    assert "before: said A  now: said B" in said
    assert "before: said A  not attempted: said C" in said


def test_the_summary_holds_the_comparison() -> None:
    """Beside its gates a run's summary tells what it was compared with."""
    lines = [line.text for line in summary_lines(compared("AB", "AA"))]
    assert "right answers: 0 won, 1 lost; McNemar's exact test: mid-p = 0.5000" in lines


def test_numbers_to_read() -> None:
    """Differences keep their sign, and none where nothing can be seen; no p-value stands for no test."""
    assert [signed(value) for value in (0.0231, -0.5, 1.0, -0.0001)] == ["+.023", "-.500", "+1.000", ".000"]
    assert p_words(0.00001) == "mid-p < .0001"
    assert p_words(None) == "no test, since rows are not independent"


def test_texts_share_a_line_fairly() -> None:
    """What a short text leaves goes to the long ones; an empty one takes its label along."""
    assert fitted("q1", [("", "a" * 90), ("gold: ", "1"), ("now: ", None)], 40) == f"q1  {'a' * 26}…  gold: 1"
    assert columns(fitted("q1", [("", "a" * 90), ("b: ", "中" * 90)], 40)) <= 40
    assert list(wrapped("one two three", 8, "  ")) == ["one two", "  three"]


def test_lines_have_colours_for_terminals() -> None:
    """Markup becomes escape codes, plain pieces stay plain."""
    assert Line((("a", {"red": True, "bold": True}), ("b", {}))).ansi == "\x1b[31;1ma\x1b[0mb"


def test_a_comment_holds_the_table_and_stays_within_its_size() -> None:
    """Twenty regressions of endless texts, all punctuation, stay below what GitHub takes."""
    report = compared("B" * 40, "A" * 40, "x" * 40)
    found = dict(report.comparison or {})
    for each in found["regressions"]:
        each["question"] = each["gold"] = each["before"]["predicted"] = each["now"]["predicted"] = "|" * 5000
    said = comparison_markdown(replace(report, comparison=found))
    assert len(said) < 65_536
    assert "| accuracy | 1.00 | .000 | -1.000 |" in said
    assert "<details><summary>40 regressions, the first 20</summary>" in said


def test_escaped_text_has_no_punctuation_of_its_own() -> None:
    """Whatever Markdown, HTML or GitHub could act on is a character reference inside of code."""
    assert escaped("@a <b>\n`|`") == "<code>&#64;a &#60;b&#62;&#92;n&#96;&#124;&#96;</code>"
    assert escaped("") == ""
