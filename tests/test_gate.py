"""The gate's grammar: what is understood, and what is refused where."""

from __future__ import annotations

import pytest

from pytest_simpleqa.errors import OptionError
from pytest_simpleqa.gate import Gate, Slice, parse_gate


def test_a_threshold_is_read() -> None:
    """Metric, operator and number are taken apart, whatever the blanks."""
    expected = Gate("accuracy >= 0.4", None, None, "accuracy", None, ">=", 0.4)
    assert parse_gate("accuracy >= 0.4") == expected
    assert parse_gate("  accuracy>=.4 ").number == 0.4
    assert parse_gate("hallucination_rate <= 3e-1").number == 0.3


@pytest.mark.parametrize("op", [">=", "<=", ">", "<"])
def test_every_operator_is_read(op: str) -> None:
    """The four operators mean what they say, and know which way is better."""
    gate = parse_gate(f"accuracy {op} 0.5")
    assert gate.op == op
    assert gate.wants_more == op.startswith(">")
    assert [gate.holds(value) for value in (0.4, 0.5, 0.6)] == {
        ">=": [False, True, True],
        "<=": [True, True, False],
        ">": [False, False, True],
        "<": [True, False, False],
    }[op]


def test_the_ends_of_the_interval_are_read() -> None:
    """`.low` and `.high` name the interval's ends."""
    assert parse_gate("accuracy.low >= 0.38").end == "low"
    assert parse_gate("f_score.high<0.9").end == "high"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topic[Art].accuracy >= 0.2", Slice("topic", "Art")),
        ("topic[ TV shows ] .accuracy >= 0.2", Slice("topic", "TV shows")),
        ("type[Date].accuracy >= 0.2", Slice("answer_type", "Date")),
        ("answer_type[Date].accuracy >= 0.2", Slice("answer_type", "Date")),
        ("topic[中国文化].accuracy >= 0.2", Slice("topic", "中国文化")),
        ("topic[a: b [c]].accuracy >= 0.2", Slice("topic", "a: b [c]")),
    ],
)
def test_slices_are_read(text: str, expected: Slice) -> None:
    """A topic or answer type may hold blanks, colons, brackets and any script."""
    gate = parse_gate(text)
    assert (gate.slice, gate.run, gate.metric) == (expected, None, "accuracy")


def test_a_gate_may_name_its_run() -> None:
    """A prefix `NAME: ` holds one run to the gate; without it every run is held."""
    gate = parse_gate("simple_qa_test_set.csv: topic[Art].accuracy >= 0.2")
    assert gate.run == "simple_qa_test_set.csv"
    assert gate.applies_to("simple_qa_test_set.csv")
    assert not gate.applies_to("sample")
    assert parse_gate("accuracy >= 0.2").applies_to("sample")


@pytest.mark.parametrize(
    ("text", "margin"),
    [
        ("accuracy >= baseline", 0.0),
        ("accuracy >= baseline - 0.02", -0.02),
        ("accuracy>=baseline+.3", 0.3),
    ],
)
def test_a_baseline_may_have_a_margin(text: str, margin: float) -> None:
    """Beside `baseline` the number is the margin, with its sign."""
    gate = parse_gate(text)
    assert (gate.against_baseline, gate.number) == (True, margin)


@pytest.mark.parametrize(
    ("text", "column", "wanted"),
    [
        ("accuracy => 0.4", 10, "wanted >=, <=, > or <"),
        ("accuracy == 0.4", 10, "wanted >=, <=, > or <"),
        ("accuracy", 9, "wanted >=, <=, > or <"),
        ("acuracy >= 0.4", 1, "did you mean accuracy?"),
        ("", 1, "wanted a metric, one of accuracy, "),
        ("accuracy.lo >= 0.4", 10, "wanted low or high"),
        ("accuracy.lowest >= 0.4", 10, "wanted low or high"),
        ("accuracy >=", 12, "wanted a number from 0 to 1, or baseline"),
        ("accuracy >= nan", 13, "wanted a number from 0 to 1, or baseline"),
        ("accuracy >= -0.1", 13, "wanted a number from 0 to 1, or baseline"),
        ("accuracy >= 0,4", 14, "wanted the end of the gate here"),
        ("accuracy >= baseline * 0.9", 22, "wanted the end of the gate here"),
        ("accuracy >= baseline +", 23, "wanted a number from 0 to 1"),
        ("accuracy.low >= baseline", 17, "leave .low out"),
        ("tpic[Art].accuracy > 0", 1, "wanted topic[...] or type[...], found 'tpic['"),
        ("topic[].accuracy > 0", 7, "wanted a name between [ and ]"),
        ("topic[Art accuracy > 0", 7, "as in topic[Art].accuracy"),
    ],
)
def test_errors_point_at_the_column(text: str, column: int, wanted: str) -> None:
    """What is wrong is told in one line with the text, the column and what was wanted there."""
    with pytest.raises(OptionError) as caught:
        parse_gate(text)
    message = str(caught.value)
    assert message.startswith(f"--simpleqa-gate {text!r}: column {column}: ")
    assert wanted in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("number", "told"),
    [
        ("40", "for 40 % type 0.4"),
        ("40%", "for 40 % type 0.4"),
        ("0.4 %", "for 0.4 % type 0.004"),
        ("1.5", "from 0 to 1"),
        ("4000", "from 0 to 1"),
        ("baseline - 2", "for 2 % type 0.02"),
    ],
)
def test_rates_are_fractions(number: str, told: str) -> None:
    """Percent signs and numbers above 1 are refused, with the fraction to type."""
    with pytest.raises(OptionError, match="rates are fractions") as caught:
        parse_gate(f"accuracy >= {number}")
    assert told in str(caught.value)
