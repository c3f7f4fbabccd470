"""Whether a judge can be trusted: what it made of its sentinels, counted, and how many failures are too many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .records import QuestionResult

SENTINEL = "sentinel"
"""The key of a row's `extra` for what its judge made of a sentinel: `kind, predicted, wanted, verdict, error`."""
GOLD, ABSTENTION, OTHER_GOLD = "gold", "abstention", "other_gold"
KINDS = (GOLD, ABSTENTION, OTHER_GOLD)
"""The gold itself, a refusal, and the gold of another question; by turns."""

TOLERATED = 0.02
"""The share of sentinels that a good judge may fail: a service that stumbles, a gold that can be misread."""
FEW = 10
"""Fewer sentinels than this find out no judge but a hopeless one: one that is wrong on one in five passes 9 of them by
in three of four runs."""
FALSE_ALARM = 0.01
"""How often such a judge may be distrusted by bad luck."""

Tally = Mapping[str, Any]
"""What stands in `Report.sentinels`: `n, passed, failed, failures, allowed, by_kind, failed_checks`."""


def allowed_failures(n: int) -> int:
    """Return how many of `n` sentinels a judge may fail and be trusted; never all of them.

    The least number that a judge who fails 2 % of them passes by in at most 1 % of all runs (binomial).
    """
    within = _chance(0, n)
    allowed = 0
    while 1 - within > FALSE_ALARM and allowed < n - 1:
        allowed += 1
        within += _chance(allowed, n)
    return allowed


def _chance(failed: int, n: int) -> float:
    """Return how likely a judge who fails 2 % of the sentinels fails exactly so many; in logarithms, for any n."""
    ways = math.lgamma(n + 1) - math.lgamma(failed + 1) - math.lgamma(n - failed + 1)
    return math.exp(ways + failed * math.log(TOLERATED) + (n - failed) * math.log1p(-TOLERATED))


def tally(results: Iterable[QuestionResult], asked_for: int = 0) -> Tally | None:
    """Count what the judge made of its sentinels; None for a run without any, where none was `asked_for`."""
    found = [(result, check) for result in results if (check := (result.extra or {}).get(SENTINEL))]
    if not found and not asked_for:
        return None
    failed = [{"id": result.id, "repeat": result.repeat, **check} for result, check in found if not _is_passed(check)]
    kinds = Counter(str(check["kind"]) for _, check in found)
    failed_kinds = Counter(str(check["kind"]) for check in failed)
    return _counted({kind: (number, failed_kinds[kind]) for kind, number in sorted(kinds.items())}, failed)


def merged_tallies(tallies: Iterable[Tally | None]) -> Tally | None:
    """Return one tally of those of a run's shards."""
    known = [each for each in tallies if each is not None]
    if not known:
        return None
    kinds: dict[str, tuple[int, int]] = {}
    for kind, counts in (entry for each in known for entry in sorted(each["by_kind"].items())):
        n, failed = kinds.get(kind, (0, 0))
        kinds[kind] = n + counts["n"], failed + counts["failed"]
    return _counted(kinds, [check for each in known for check in each["failed_checks"]])


def _counted(kinds: Mapping[str, tuple[int, int]], failed: Sequence[Mapping[str, Any]]) -> Tally:
    n = sum(number for number, _ in kinds.values())
    return {
        "n": n,
        "passed": n - len(failed),
        "failed": len(failed),
        "failures": sum(check["verdict"] is None for check in failed),
        "allowed": allowed_failures(n),
        "by_kind": {kind: {"n": n, "passed": n - bad, "failed": bad} for kind, (n, bad) in kinds.items()},
        "failed_checks": list(failed),
    }


def _is_passed(check: Mapping[str, Any]) -> bool:
    return bool(check["verdict"] == check["wanted"])


def doubt(counted: Tally | None) -> str | None:
    """Return why a judge is not to be trusted, in a phrase; None where it is, or where nobody has tried it."""
    if counted is None or (counted["n"] and counted["failed"] <= counted["allowed"]):
        return None
    return in_words(counted) if counted["n"] else "none of the judge's sentinels was judged"


def in_words(counted: Tally) -> str:
    """Return what was made of them: `the judge failed 3 of 20 sentinels (gold graded incorrect 2, ...)`."""
    if not counted["failed"]:
        return f"the judge passed all {counted['n']:,} sentinels{_untried(counted)}"
    kinds = Counter(
        f"{_word(check['kind'])} " + (f"graded {_word(check['verdict'])}" if check["verdict"] else "without a verdict")
        for check in counted["failed_checks"]
    )
    details = ", ".join(f"{what} {number:,}" for what, number in kinds.most_common())
    return f"the judge failed {counted['failed']:,} of {counted['n']:,} sentinels ({details})"


def scant(counted: Tally, asked_for: int, questions: int) -> str:
    """Return that fewer were made than `asked_for`, or that so few prove little; nothing where enough were."""
    n, lacking = counted["n"], asked_for - questions
    made = f"; {lacking:,} more could not be made: one for each question is the most" if lacking > 0 else ""
    return made + (f"; {n:,} prove next to nothing" if n < FEW else "")


def _untried(counted: Tally) -> str:
    """Return which kinds it was not shown: it may be blind to these."""
    untried = [_word(kind) for kind in KINDS if kind not in counted["by_kind"]]
    return f" ({', '.join(untried)} not tried)" if untried else ""


def _word(name: str) -> str:
    return name.replace("_", " ")
