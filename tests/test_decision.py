"""The decision on gates: what passes, what fails, what cannot be told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.baseline import Baseline, read_baseline
from pytest_simpleqa.decision import GateResult, decide, decide_all
from pytest_simpleqa.errors import OptionError
from pytest_simpleqa.gate import parse_gate
from pytest_simpleqa.pairing import FAILED, ComparedRow
from pytest_simpleqa.reportfile import read_report

from .letters import baseline, run

GPT_4O = "gpt-4o-2024-11-20.csv.gz"
GPT_4O_MINI = "gpt-4o-mini-2024-07-18.csv.gz"


def decided(expression: str, letters: str, before: str | None = None, *, topics: str = "", **values: Any) -> GateResult:
    made = {key: values.pop(key) for key in ("selected", "repeats") if key in values}
    report, rows = run(letters, topics, **made)
    old = None if before is None else baseline(before, made.get("repeats", 1))
    return decide(parse_gate(expression), report, rows, baseline=old, **values)


# -- thresholds -----------------------------------------------------------------------------------


def test_the_example_is_decided_as_it_stands(shared_data: Path) -> None:
    """The example Report's gate, its figures and its reason come out of its rows."""
    report = read_report(shared_data / "report.example.json")
    assert [decide(parse_gate("accuracy >= 0.4"), report).to_json()] == list(report.gates)


def test_three_of_ten_is_three_tenths() -> None:
    """3 correct, 5 incorrect, 2 errors: the failures stay in the denominator."""
    letters = "AAABBBBB!!"
    assert decided("accuracy >= 0.3", letters, max_failures=0.5).verdict == "pass"
    assert decided("accuracy > 0.3", letters, max_failures=0.5).verdict == "fail"
    assert decided("accuracy >= 0.3", letters, max_failures=0.5).value == 0.3
    assert decided("coverage >= 0.8", letters, max_failures=0.5).value == 0.8
    assert decided("f_score >= 0.3", letters, max_failures=0.5).value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("expression", "value", "bound"),
    [
        ("accuracy >= 0.1", 0.3, 0.3),
        ("accuracy <= 0.9", 0.3, 0.5),
        ("attempted_accuracy >= 0.1", 0.375, 0.3),
        ("attempted_accuracy <= 0.9", 0.375, 0.5),
        ("hallucination_rate <= 0.9", 0.5, 0.7),
        ("hallucination_rate >= 0.1", 0.5, 0.5),
        ("abstention_rate <= 0.9", 0.0, 0.2),
        ("coverage >= 0.1", 0.8, 0.8),
        ("f_score >= 0.1", 6 / 18, 6 / 20),
        ("f_score <= 0.9", 6 / 18, 10 / 20),
    ],
)
def test_rows_without_a_verdict_take_the_worst(expression: str, value: float, bound: float) -> None:
    """The bound gives each failure the verdict that is worst for metric and operator."""
    result = decided(expression, "AAABBBBB?!", max_failures=0.5)
    assert (result.value, result.bound, result.verdict) == (value, bound, "pass")


@pytest.mark.parametrize("before", [None, "RRR"])
@pytest.mark.parametrize("letters", ["RRR", "RR!", "RR."])
def test_what_was_only_recorded_decides_nothing(letters: str, before: str | None) -> None:
    """Rows that can be neither right nor wrong leave a gate undecided, beside failures too."""
    found = decided(
        "accuracy >= baseline" if before else "accuracy <= 0.9", letters, before, max_failures=1, selected=3
    )
    assert found.verdict == "undecided"
    assert (found.value, found.bound) in {(None, None), (None, 1.0)}


def test_recorded_rows_leave_the_others_to_decide() -> None:
    """Beside graded rows, recorded ones count nowhere."""
    assert decided("accuracy >= 0.5", "ABRR").value == 0.5


def test_the_bound_decides() -> None:
    """A value on the good side does not pass on the strength of failures, and the reason tells both figures."""
    result = decided("hallucination_rate <= 0.2", "A" * 8 + "BB" + "?", max_failures=0.5)
    assert result.verdict == "fail"
    assert result.reason == ("the value 0.1818 is <= 0.2, but at worst, 1 of 11 rows having no verdict, it is 0.2727")


def test_the_end_of_the_interval_is_compared() -> None:
    """`.low` compares the interval's low end, so that few rows do not pass on luck."""
    assert decided("accuracy >= 0.6", "AAAB").verdict == "pass"
    result = decided("accuracy.low >= 0.6", "AAAB")
    assert result.verdict == "fail"
    assert result.interval is not None
    assert result.value == result.interval[0]
    assert decided("f_score.high <= 0.5", "BBBBBBBBBB").verdict == "pass"


def test_a_near_miss_shows_its_side() -> None:
    """A figure has as many decimals as it takes to see on which side it is."""
    assert "0.39996 is not >= 0.4" in decided("accuracy >= 0.4", "A" * 9999 + "B" * 15001).reason


# -- what cannot be decided -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letters", "values", "reason"),
    [
        ("AAAA......", {}, "incomplete: 4 of 10 rows have a result"),
        ("A.........", {"selected": 1}, "pytest's own selection left 9 of 10 rows out"),
        ("AAAAAAAAA!", {}, "failures 1 of 10 are above 0.01"),
        ("..........", {}, "no row of 10 has a result"),
        ("", {}, "there are no rows"),
        ("AAAAAAAAAA", {"reasons": ["the judge failed 2 of 10 checks"]}, "the judge failed 2 of 10 checks"),
        ("CCCCCCCCCC", {}, "attempted_accuracy has no row to count"),
    ],
)
@pytest.mark.parametrize("op", [">=", "<="])
def test_evidence_that_is_not_there_passes_nothing(letters: str, values: dict[str, Any], reason: str, op: str) -> None:
    """Stopped, deselected, failed, empty or uncountable runs are undecided whatever their rows say."""
    result = decided(f"attempted_accuracy {op} 0.5", letters, **values)
    assert (result.verdict, result.reason) == ("undecided", reason)


@pytest.mark.parametrize(("failed", "verdict"), [(2, "pass"), (3, "undecided")])
def test_a_judge_that_failed_its_sentinels_decides_nothing(failed: int, verdict: str) -> None:
    """A Report whose judge has failed more sentinels than it may leaves its gates undecided, whatever the rows say."""
    report, rows = run("AAAA")
    checks = [{"kind": "gold", "wanted": "correct", "verdict": "incorrect"}] * failed
    counted = {"n": 20, "failed": failed, "allowed": 2, "failed_checks": checks}
    result = decide(parse_gate("accuracy >= 0.5"), replace(report, sentinels=counted), rows)
    assert result.verdict == verdict
    told = "the judge failed 3 of 20 sentinels (gold graded incorrect 3)"
    assert (result.reason == told) == (verdict == "undecided")


def test_a_run_that_stopped_early_never_passes() -> None:
    """2 right rows of 100 planned are no accuracy above 0.5."""
    result = decided("accuracy >= 0.5", "AA" + "." * 98)
    assert (result.value, result.bound, result.verdict) == (1.0, 0.02, "undecided")


def test_failures_up_to_the_limit_are_counted_at_their_worst() -> None:
    """A share of failures equal to the limit leaves the gate to its bound."""
    assert decided("accuracy >= 0.9", "A" * 99 + "!").verdict == "pass"
    assert decided("accuracy >= 0.9", "A" * 98 + "!?").verdict == "undecided"


def test_a_result_is_strict_json() -> None:
    """An undecided gate without any figure can be written down."""
    assert json.dumps(decided("accuracy >= 0.5", "").to_json(), allow_nan=False)


# -- slices ---------------------------------------------------------------------------------------


def test_a_slice_counts_its_own_rows() -> None:
    """A topic's gate looks at its rows alone, by the exact name in any case."""
    values = {"topics": "aaabbb"}
    assert decided("topic[A].accuracy >= 1", "AAABBB", **values).verdict == "pass"
    assert decided("topic[b].accuracy > 0", "AAABBB", **values).verdict == "fail"
    assert decided("topic[(unspecified)].accuracy >= 1", "AAABBB", topics="bbb").verdict == "fail"


def test_an_unknown_slice_passes_nothing() -> None:
    """A topic that no row has is undecided, and names the one that was meant."""
    report, rows = run("AAA")
    named = [replace(row, topic="Geography") for row in rows]
    result = decide(parse_gate("topic[Georaphy].accuracy >= 0"), report, named)
    assert result.verdict == "undecided"
    assert result.reason == "no row has the topic 'Georaphy'; did you mean Geography?"


def test_gates_on_slices_are_corrected_for_their_number() -> None:
    """Two gates on slices get 97.5 % intervals and say so; the gate on all rows keeps 95 %."""
    report, rows = run("AAABBB", "aaabbb")
    gates = [parse_gate(text) for text in ("topic[a].accuracy > 0", "topic[b].accuracy < 1", "accuracy > 0")]
    one, two, whole = decide_all(gates, report, rows)
    assert (one.more["level"], one.more["slice_gates"]) == (0.975, 2)
    assert "intervals are at 97.5 %, corrected for 2 gates on slices" in two.reason
    assert whole.more == {}
    alone = decide(gates[0], report, rows)
    assert one.interval is not None
    assert alone.interval is not None
    assert one.interval[0] < alone.interval[0]


def test_only_gates_of_this_run_are_decided() -> None:
    """A gate with another run's name is left out."""
    report, rows = run("AB")
    gates = [parse_gate(text) for text in ("small.csv: accuracy > 0", "other.csv: accuracy > 0", "coverage > 0")]
    assert [result.expression for result in decide_all(gates, report, rows)] == [gates[0].text, gates[2].text]


def test_a_report_alone_must_know_its_topics() -> None:
    """A slice is undecided where the Report keeps too few rows to tell which belong to it."""
    report, _ = run("AAABBB", "aaabbb", max_samples=2)
    result = decide(parse_gate("topic[a].accuracy >= 0.5"), report)
    assert (result.verdict, result.reason) == ("undecided", "the Report tells the topics of 2 of its 6 rows")


# -- baselines ------------------------------------------------------------------------------------


def test_no_flips_are_equal() -> None:
    """Against the same verdicts the difference is 0, which is at least the baseline and not more than it."""
    for op, verdict in ((">=", "pass"), ("<=", "pass"), (">", "fail"), ("<", "fail")):
        result = decided(f"accuracy {op} baseline", "AABC", "AABC")
        assert (result.verdict, result.more["difference"], result.interval) == (verdict, 0, (0, 0))
    assert "no question changed: equal" in decided("accuracy >= baseline - 0.02", "AABC", "AABC").reason


def test_flips_that_do_not_touch_the_metric_are_none() -> None:
    """From incorrect to not attempted is no change of accuracy."""
    assert decided("accuracy >= baseline", "ABBC", "ACCB").verdict == "pass"
    assert decided("abstention_rate <= baseline", "ABBC", "ACCB").verdict == "undecided"


def test_the_whole_interval_decides() -> None:
    """A clear gain passes, a clear loss fails, and what could be either is undecided."""
    better, worse = "A" * 80 + "B" * 20, "A" * 20 + "B" * 80
    assert decided("accuracy >= baseline + 0.1", better, worse).verdict == "pass"
    assert decided("accuracy >= baseline - 0.1", worse, better).verdict == "fail"
    assert decided("hallucination_rate <= baseline", better, worse).verdict == "pass"
    assert decided("f_score >= baseline", worse, better).verdict == "fail"
    close = decided("accuracy >= baseline", "A" * 50 + "B" * 50, "B" * 6 + "A" * 48 + "B" * 46)
    assert close.verdict == "undecided"
    assert close.reason.endswith("100 questions show a distance of 0.0886 from 0 or more (80 % power)")


def test_failures_are_at_their_worst_on_both_sides() -> None:
    """Now a failure counts as wrong, before as right, for a gate that wants more."""
    result = decided("accuracy >= baseline", "AA?A", "A?BA", max_failures=0.5)
    assert (result.more["difference"], result.more["difference_bound"]) == (0.25, 0.0)
    assert (result.value, result.bound, result.more["baseline"]) == (0.75, 0.75, 0.5)


def test_a_baseline_of_failures_decides_nothing() -> None:
    """Too many rows of the baseline without a verdict leave the gate undecided."""
    result = decided("accuracy >= baseline", "AAAA", "AA??")
    assert result.verdict == "undecided"
    assert result.reason.startswith("failures 2 of 4 of the baseline are above 0.01; ")


def test_other_questions_decide_nothing() -> None:
    """Without a question in both runs there is no difference."""
    report, rows = run("AA")
    other = Baseline("old", (ComparedRow("0" * 16, "1" * 16),))
    result = decide(parse_gate("accuracy >= baseline"), report, rows, baseline=other, max_failures=1)
    assert (result.verdict, result.value) == ("undecided", None)
    assert result.reason == "no question is in both runs; the questions differ: 2 only here, 1 only there"


def test_a_slice_is_compared_on_its_own_questions() -> None:
    """A topic's gate takes the baseline's rows of the same questions."""
    letters = "A" * 40 + "B" * 40
    result = decided("topic[a].accuracy >= baseline", letters, "B" * 40 + "A" * 40, topics="a" * 40 + "b" * 40)
    assert (result.verdict, result.more["questions"]) == ("pass", 40)
    other = decided("topic[b].accuracy >= baseline", letters, "B" * 40 + "A" * 40, topics="a" * 40 + "b" * 40)
    assert other.verdict == "fail"


def test_a_gate_without_its_baseline_is_refused() -> None:
    """A baseline that is spoken of and not given is the user's mistake."""
    with pytest.raises(OptionError, match="--simpleqa-baseline=FILE"):
        decided("accuracy >= baseline", "AA")


def test_an_incomplete_run_tells_what_it_could_have_shown() -> None:
    """A comparison that is cut short names the difference and the detectable one all the same."""
    result = decided("accuracy >= baseline", "A" * 50 + "." * 50, "B" * 50 + "A" * 50)
    assert result.verdict == "undecided"
    assert result.reason.startswith("incomplete: 50 of 100 rows have a result; 1.0000 against 0.0000")
    assert result.reason.endswith("(80 % power)")


# -- real runs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(shared_data: Path) -> Baseline:
    return read_baseline(shared_data / "runs" / GPT_4O)


@pytest.fixture(scope="module")
def small(shared_data: Path) -> Baseline:
    return read_baseline(shared_data / "runs" / GPT_4O_MINI)


def against(expression: str, now: Baseline, before: Baseline, first: int | None = None) -> GateResult:
    """Decide on recorded rows."""
    rows = now.rows[:first]
    assert not any(row.status == FAILED for row in rows)
    letters = {"correct": "A", "incorrect": "B", "not_attempted": "C"}
    report, _ = run("".join(letters[str(row.status)] for row in rows))
    return decide(parse_gate(expression), report, rows, baseline=before)


def test_the_better_model_may_go_out(large: Baseline, small: Baseline) -> None:
    """gpt-4o passes a gate against gpt-4o-mini, the reverse fails, on the same questions in another order."""
    passed = against("accuracy >= baseline - 0.02", large, small)
    assert passed.verdict == "pass"
    assert passed.more["difference"] == pytest.approx((1345 - 347) / 4326)
    assert passed.more["questions"] == 4326
    assert "questions differ" not in passed.reason
    assert against("accuracy >= baseline - 0.02", small, large).verdict == "fail"


def test_a_model_equals_itself(large: Baseline) -> None:
    """A real run against itself has difference 0 and passes."""
    result = against("accuracy >= baseline", large, large)
    assert (result.verdict, result.more["difference"]) == ("pass", 0)


def test_few_rows_cannot_tell(large: Baseline, small: Baseline) -> None:
    """On the first 100 rows a gain of .31 is not known to be at least .30, and the reason says what could be shown."""
    result = against("accuracy >= baseline + 0.30", large, small, first=100)
    assert result.verdict == "undecided"
    assert result.more["difference"] == pytest.approx(0.31)
    assert "4,226 only there" in result.reason
    assert result.reason.endswith("100 questions show a distance of 0.1355 from +0.3 or more (80 % power)")
