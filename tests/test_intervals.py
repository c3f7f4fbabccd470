"""Intervals of ratios and paired differences: known values, edges, and what they promise under simulation."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import cache

import pytest

from pytest_simpleqa.intervals import counted, detectable, mcnemar, paired_difference, score_interval, z_of
from pytest_simpleqa.metrics import Z_95, Counts, wilson
from pytest_simpleqa.pairing import METRICS

Z = z_of(0.95)
RIGHT, WRONG = (1.0, 1.0), (0.0, 1.0)


def interval_of_share(successes: int, n: int) -> tuple[float, float]:
    interval = score_interval({RIGHT: successes, WRONG: n - successes}, Z)
    assert interval is not None
    return interval


@cache
def interval_of_flips(gained: int, lost: int, n: int) -> tuple[float, float]:
    pairs = {(RIGHT, WRONG): gained, (WRONG, RIGHT): lost, (RIGHT, RIGHT): n - gained - lost, (WRONG, WRONG): 0}
    found = paired_difference(pairs, Z)
    assert found is not None
    return found.interval


# -- known values ---------------------------------------------------------------------------------


def test_the_quantile_is_the_metrics_own() -> None:
    """Both modules mean the same 95 %."""
    assert pytest.approx(Z_95, abs=1e-12) == Z


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (1, 5), (3, 10), (10, 10), (1, 1), (1345, 4326)])
def test_shares_of_rows_get_wilsons_interval(successes: int, n: int) -> None:
    """With single rows the score interval is Wilson's, exact at its ends."""
    assert interval_of_share(successes, n) == pytest.approx(wilson(successes, n), abs=1e-9)
    if successes == n:
        assert interval_of_share(successes, n)[1] == 1


def tango(gained: int, lost: int, n: int, difference: float) -> float:
    """Return Tango's score statistic by its closed form."""
    a = 2 * n
    b = -gained - lost + (2 * n - gained + lost) * difference
    c = -lost * difference * (1 - difference)
    share = (math.sqrt(b * b - 4 * a * c) - b) / (2 * a)
    return (gained - lost - n * difference) / math.sqrt(n * (2 * share + difference * (1 - difference)))


@pytest.mark.parametrize(
    ("gained", "lost", "n"), [(0, 1, 44), (5, 0, 30), (12, 20, 100), (30, 30, 60), (3, 3, 1000), (1117, 119, 4326)]
)
def test_paired_shares_get_tangos_interval(gained: int, lost: int, n: int) -> None:
    """At both ends of the interval Tango's closed form gives the quantile."""
    low, high = interval_of_flips(gained, lost, n)
    assert tango(gained, lost, n, low) == pytest.approx(Z, abs=1e-5)
    assert tango(gained, lost, n, high) == pytest.approx(-Z, abs=1e-5)


def test_flips_one_way_keep_a_width() -> None:
    """Where every question flips the same way, the interval ends at 1 and is no point."""
    low, high = interval_of_flips(50, 0, 50)
    assert low == pytest.approx(0.857305, abs=1e-6)
    assert high == 1


def test_no_flips_are_a_difference_of_zero() -> None:
    """Without a flip the interval is the point 0."""
    assert interval_of_flips(0, 0, 50) == (0, 0)


def test_no_denominator_gives_none() -> None:
    """A ratio that nothing adds to has no interval and no difference."""
    assert score_interval({(0.0, 0.0): 5, RIGHT: 0}, Z) is None
    assert score_interval({}, Z) is None
    assert paired_difference({((0.0, 0.0), RIGHT): 5}, Z) is None


def test_attempted_accuracy_looks_at_what_was_attempted() -> None:
    """Rows that add nothing to a ratio's denominator leave its interval as it is."""
    interval = score_interval({RIGHT: 30, WRONG: 20, (0.0, 0.0): 950}, Z)
    assert interval == pytest.approx(wilson(30, 50), abs=1e-9)


def parts_of(metric: str) -> dict[str, tuple[int, int]]:
    statuses = ("correct", "incorrect", "not_attempted")
    return {status: Counts.from_statuses([status]).fraction(metric) for status in statuses}


def test_f_score_agrees_with_a_bootstrap() -> None:
    """The interval of the F-score is that of a seeded bootstrap, which knows nothing of scores."""
    part = parts_of("f_score")
    rows = ["correct"] * 120 + ["incorrect"] * 200 + ["not_attempted"] * 80
    rng = random.Random(1)
    drawn = []
    for _ in range(1000):
        counts = Counts.from_statuses(rng.choices(rows, k=len(rows)))
        drawn.append(counts.f_score or 0.0)
    drawn.sort()
    interval = score_interval(counted((part[row] for row in rows), part.values()), Z)
    assert interval == pytest.approx((drawn[25], drawn[974]), abs=0.006)


def test_mcnemar_has_known_values() -> None:
    """The mid-p value takes half of the probability of what was seen, and stands any number of flips."""
    assert mcnemar(0, 0) == mcnemar(7, 7) == 1
    assert mcnemar(5, 0) == mcnemar(0, 5) == 1 / 32
    assert mcnemar(1, 6) == pytest.approx(2 * (1 + 7 / 2) / 2**7)
    assert 0 < mcnemar(1117, 119) < 1e-200


def test_detectable_differences_are_found_four_times_in_five() -> None:
    """With the detectable difference and its discordant share, 80 % of simulated runs are told apart."""
    n, share = 400, 0.2
    gap = detectable(share, n, Z)
    rng = random.Random(2)
    lows = [interval_of_flips(*flips(rng, n, share, gap), n)[0] for _ in range(1000)]
    assert sum(low > 0 for low in lows) / 1000 == pytest.approx(0.8, abs=0.05)


# -- promises, by simulation ----------------------------------------------------------------------


def flips(rng: random.Random, n: int, discordant: float, difference: float) -> tuple[int, int]:
    """Draw how many of `n` questions are won and lost."""
    gained, lost = (discordant + difference) / 2, (discordant - difference) / 2
    drawn = Counter(rng.choices("+-=", (gained, lost, 1 - discordant), k=n))
    return drawn["+"], drawn["-"]


@pytest.mark.parametrize("n", [100, 400, 1000])
def test_wilson_covers_95_percent(n: int) -> None:
    """Over rates from .05 to .95 the mean coverage of the 95 % interval lies between 94 and 96 %."""
    ends = [wilson(successes, n) or (0, 0) for successes in range(n + 1)]
    covered = []
    for rate in (k / 100 for k in range(5, 96)):
        log_odds, start = math.log(rate / (1 - rate)), n * math.log(1 - rate) + math.lgamma(n + 1)
        covered.append(
            sum(
                math.exp(start + k * log_odds - math.lgamma(k + 1) - math.lgamma(n - k + 1))
                for k, (low, high) in enumerate(ends)
                if low <= rate <= high
            )
        )
    assert 0.94 < sum(covered) / len(covered) < 0.96


@pytest.mark.parametrize("margin", [0.0, -0.02, 0.05])
def test_at_the_margin_a_gate_passes_rarely(margin: float) -> None:
    """Where the true difference is the margin itself, the interval lies beyond it in 2.5 % of runs on either side."""
    n, runs = 300, 4000
    rng = random.Random(3)
    ends = [interval_of_flips(*flips(rng, n, 0.15, margin), n) for _ in range(runs)]
    error = 3 * math.sqrt(0.025 * 0.975 / runs)
    assert sum(low >= margin for low, _ in ends) / runs < 0.025 + error
    assert sum(high < margin for _, high in ends) / runs < 0.025 + error


def test_a_drop_of_five_points_is_seen() -> None:
    """With 30 % discordant rows a true 5-point drop on 4,326 rows is wholly below the baseline in 99 % of runs."""
    rng = random.Random(4)
    highs = [interval_of_flips(*flips(rng, 4326, 0.3, -0.05), 4326)[1] for _ in range(300)]
    assert sum(high < 0 for high in highs) / 300 >= 0.99


@pytest.mark.parametrize("metric", ["attempted_accuracy", "f_score"])
def test_ratios_with_varying_denominators_hold_their_coverage(metric: str) -> None:
    """The paired difference of a ratio whose denominator varies is covered as often as it claims."""
    part = parts_of(metric)
    joint = {  # (now, before): share; many abstentions, unevenly many
        ("correct", "correct"): 0.25,
        ("incorrect", "incorrect"): 0.25,
        ("not_attempted", "not_attempted"): 0.15,
        ("correct", "incorrect"): 0.1,
        ("incorrect", "correct"): 0.05,
        ("incorrect", "not_attempted"): 0.12,
        ("not_attempted", "correct"): 0.08,
    }
    now, before = (
        sum(part[pair[side]][0] * share for pair, share in joint.items())
        / sum(part[pair[side]][1] * share for pair, share in joint.items())
        for side in (0, 1)
    )
    rng = random.Random(5)
    possible = [(a, b) for a in part.values() for b in part.values()]
    covered, runs = 0, 300
    for _ in range(runs):
        drawn = rng.choices(list(joint), list(joint.values()), k=200)
        found = paired_difference(counted(((part[a], part[b]) for a, b in drawn), possible), Z)
        assert found is not None
        covered += found.interval[0] <= now - before <= found.interval[1]
    assert covered / runs == pytest.approx(0.95, abs=0.035)


def bootstrap(parts: list[tuple[float, float]], rng: random.Random, draws: int = 200) -> tuple[float, float]:
    """Return the percentile interval of a ratio, questions drawn with replacement."""
    ratios = []
    for _ in range(draws):
        drawn = rng.choices(parts, k=len(parts))
        ratios.append(sum(a for a, _ in drawn) / (sum(b for _, b in drawn) or 1))
    ratios.sort()
    return ratios[round(0.025 * draws)], ratios[round(0.975 * draws) - 1]


@pytest.mark.parametrize("repeats", [1, 5])
def test_the_score_interval_holds_where_a_bootstrap_does_not(repeats: int) -> None:
    """On 30 questions, few of them right, the F-score's interval holds its 95 % and a bootstrap by question does not.

    Every question has chances of its own, so that its repeats resemble one another.
    """
    shares, part, rng = (0.05, 0.85, 0.1), parts_of("f_score"), random.Random(8)
    truth = 0.1 / (1 + 0.9)
    possible = [(a * repeats, b * repeats) for a, b in part.values()]
    by_score = by_bootstrap = 0
    runs = 150
    for _ in range(runs):
        parts: list[tuple[float, float]] = []
        for _ in range(30):
            chances = [rng.gammavariate(share, 1) + 1e-12 for share in shares]
            said = rng.choices(list(part.values()), chances, k=repeats)
            parts.append((sum(a for a, _ in said), sum(b for _, b in said)))
        low, high = score_interval(counted(parts, possible), Z) or (0.0, 0.0)
        by_score += low <= truth <= high
        low, high = bootstrap(parts, rng)
        by_bootstrap += low <= truth <= high
    assert by_score / runs == pytest.approx(0.95, abs=0.045)
    assert by_bootstrap / runs < 0.88


def test_repeats_are_not_taken_for_independent() -> None:
    """With 5 repeats of questions that are easy or hard the interval by question holds, the one by row does not."""
    rng = random.Random(6)
    repeats, questions, runs = 5, 80, 300
    by_question = by_row = 0
    for _ in range(runs):
        chances = [rng.betavariate(0.5, 0.5) for _ in range(questions)]
        right = [sum(rng.random() < chance for _ in range(repeats)) for chance in chances]
        possible = [(0.0, 5.0), (5.0, 5.0)]
        interval = score_interval(counted(((float(k), 5.0) for k in right), possible), Z)
        rows = wilson(sum(right), repeats * questions)
        assert interval is not None
        assert rows is not None
        by_question += interval[0] <= 0.5 <= interval[1]
        by_row += rows[0] <= 0.5 <= rows[1]
    assert by_question / runs == pytest.approx(0.95, abs=0.035)
    assert by_row / runs < 0.85


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_stands_every_small_run(metric: str) -> None:
    """Whatever two small runs hold, the difference lies in its interval."""
    part = parts_of(metric)
    rng = random.Random(7)
    possible = [(a, b) for a in part.values() for b in part.values()]
    for n in (1, 2, 3, 5, 8) * 4:
        found = paired_difference(counted(rng.choices(possible, k=n), possible), Z)
        if found is not None:
            low, high = found.interval
            assert low - 1e-9 <= found.difference <= high + 1e-9
            assert math.isfinite(low + high + found.detectable)
