"""Whether a judge can be trusted: what its sentinels came to, and how many failures are too many."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pytest_simpleqa.records import Question, QuestionResult, Verdict
from pytest_simpleqa.trust import FEW, allowed_failures, doubt, in_words, merged_tallies, scant, tally


def result(number: int, kind: str, wanted: str, verdict: str | None, repeat: int = 1) -> QuestionResult:
    """Return a right answer whose judge has made `verdict` of a sentinel before it."""
    check = {"kind": kind, "predicted": "said", "wanted": wanted, "verdict": verdict, "error": None}
    question = Question(f"q{number:04}", f"Question {number}?", "gold")
    return QuestionResult.for_question(
        question, repeat, predicted="gold", verdict=Verdict.CORRECT, extra={"sentinel": check, "trace": 1}
    )


def gold(number: int, verdict: str | None = "correct") -> QuestionResult:
    return result(number, "gold", "correct", verdict)


def counted(n: int, failed: int) -> dict[str, Any]:
    """Return the tally of a judge who has failed `failed` of `n`."""
    found = tally([gold(number, "incorrect" if number <= failed else "correct") for number in range(1, n + 1)])
    assert found is not None
    return dict(found)


# -- counting -------------------------------------------------------------------------------------


def test_what_came_of_the_sentinels_is_counted() -> None:
    """Passed and failed add up, overall and by kind; a judge failure is a failed one; all failed ones are listed."""
    found = tally(
        [
            gold(1),
            gold(2, "incorrect"),
            result(3, "abstention", "not_attempted", None),
            result(4, "other_gold", "incorrect", "incorrect"),
            QuestionResult.for_question(Question("q0005", "What?", "gold"), predicted="x", verdict=Verdict.CORRECT),
        ]
    )
    assert found is not None
    assert {key: found[key] for key in ("n", "passed", "failed", "failures", "allowed")} == {
        "n": 4,
        "passed": 2,
        "failed": 2,
        "failures": 1,
        "allowed": 1,
    }
    assert found["by_kind"] == {
        "abstention": {"n": 1, "passed": 0, "failed": 1},
        "gold": {"n": 2, "passed": 1, "failed": 1},
        "other_gold": {"n": 1, "passed": 1, "failed": 0},
    }
    assert [(check["id"], check["kind"], check["wanted"], check["verdict"]) for check in found["failed_checks"]] == [
        ("q0002", "gold", "correct", "incorrect"),
        ("q0003", "abstention", "not_attempted", None),
    ]
    assert (
        in_words(found) == "the judge failed 2 of 4 sentinels (gold graded incorrect 1, abstention without a verdict 1)"
    )


def test_kinds_that_the_judge_was_not_shown_are_told() -> None:
    """A judge who has passed may be blind to what it was not tried with."""
    assert in_words(counted(4, 0)) == "the judge passed all 4 sentinels (abstention, other gold not tried)"
    refusal = result(2, "abstention", "not_attempted", "not_attempted")
    found = tally([gold(1), refusal, result(3, "other_gold", "incorrect", "incorrect")])
    assert found is not None
    assert in_words(found) == "the judge passed all 3 sentinels"


def test_few_sentinels_are_told_to_prove_little() -> None:
    """Where there were fewer questions than sentinels asked for, or so few were asked for, that is told."""
    assert scant(counted(20, 0), 20, 20) == ""
    assert scant(counted(20, 0), 30, 20) == "; 10 more could not be made: one for each question is the most"
    assert scant(counted(3, 0), 30, 3).endswith("; 3 prove next to nothing")
    assert scant(counted(3, 0), 3, 60) == "; 3 prove next to nothing"


def test_few_is_where_a_bad_judge_passes_as_a_rule() -> None:
    """With fewer sentinels a judge that is wrong on one in five passes in three of four runs."""
    n, allowed = FEW - 1, allowed_failures(FEW - 1)
    passes = sum(math.comb(n, k) * 0.2**k * 0.8 ** (n - k) for k in range(allowed + 1))
    assert 0.7 < passes < 0.8


def test_a_run_without_sentinels_has_no_tally() -> None:
    """Off is not the same as none judged: that one is a reason to doubt."""
    assert tally([]) is None
    assert doubt(None) is None
    assert doubt(tally([], asked_for=20)) == "none of the judge's sentinels was judged"


def test_shards_add_up() -> None:
    """The tally of a run is that of its shards, whatever stood in which."""
    rows = [gold(1), gold(2, None), result(3, "abstention", "not_attempted", "correct"), gold(4)]
    assert merged_tallies([tally(rows[:2]), None, tally(rows[2:])]) == {
        **(tally(rows) or {}),
        "by_kind": {"gold": {"n": 3, "passed": 2, "failed": 1}, "abstention": {"n": 1, "passed": 0, "failed": 1}},
    }
    assert merged_tallies([None, None]) is None


# -- the rule -------------------------------------------------------------------------------------


def chance_of_doubt(n: int, failing: float) -> float:
    """Return how likely a judge is doubted who fails that share of `n` sentinels."""
    allowed = allowed_failures(n)
    return 1 - sum(math.comb(n, k) * failing**k * (1 - failing) ** (n - k) for k in range(allowed + 1))


@pytest.mark.parametrize("n", [*range(2, 200), 500, 1000])
def test_a_good_judge_is_not_doubted(n: int) -> None:
    """A judge that fails 2 % of the sentinels is doubted in at most 1 % of all runs, and as seldom only as need be."""
    assert chance_of_doubt(n, 0.02) <= 0.01
    allowed = allowed_failures(n)
    lower = sum(math.comb(n, k) * 0.02**k * 0.98 ** (n - k) for k in range(allowed))
    assert allowed == 0 or 1 - lower > 0.01


def test_a_bad_judge_is_found_out() -> None:
    """The power that the README states: 1 in 5 wrong by 20 sentinels in 79 %, by 60 in 99.6 %; 1 in 3 by 20 in 98 %."""
    assert (allowed_failures(20), allowed_failures(60)) == (2, 4)
    assert chance_of_doubt(20, 1 / 5) == pytest.approx(0.79, abs=0.005)
    assert chance_of_doubt(60, 1 / 5) == pytest.approx(0.996, abs=0.0005)
    assert chance_of_doubt(20, 1 / 3) == pytest.approx(0.98, abs=0.005)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 100, 5000])
def test_failing_all_is_always_too_many(n: int) -> None:
    """However many sentinels there are, a judge that fails them all is doubted, one that fails none is not."""
    assert doubt(counted(n, n)) is not None
    assert doubt(counted(n, 0)) is None
    assert allowed_failures(100_000) == 2104


def test_the_limit_itself_is_allowed() -> None:
    """2 of 20 leave a judge trusted, 3 of 20 do not, and the reason counts them."""
    assert doubt(counted(20, 2)) is None
    assert doubt(counted(20, 3)) == "the judge failed 3 of 20 sentinels (gold graded incorrect 3)"
