"""Sentinels: answers of ours whose verdict is known, which a judge is shown unseen before some of the real ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from random import Random
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..models.protocol import Complete
from ..records import Judgement, Question, Reply, Verdict
from ..runlog import Key
from ..trust import ABSTENTION, GOLD, KINDS, OTHER_GOLD, SENTINEL
from .judge import ReplayJudge
from .protocol import Judge

if TYPE_CHECKING:
    from ..line import Budget

ABSTENTIONS = (
    "I don't know.",
    "I do not know the answer to this question.",
    "I'm not sure.",
    "Sorry, I don't have that information.",
    "I can't answer that with confidence.",
    "I have no idea.",
)
_TRIES = 40
"""Golds that are looked at, at random, for one that is clearly another."""
_ALIKE = 70
"""From this similarity on (of 100) two golds may be one to a lenient reader: `1990` and `1991`."""


@dataclass(frozen=True, slots=True)
class Sentinel:
    """An answer to a question of the run, and the verdict that any judge must give it."""

    kind: str
    predicted: str
    wanted: Verdict

    def beside(self, judgement: Judgement, found: Judgement) -> Judgement:
        """Return the judgement on the real answer, with what the judge `found` of this one, and the cost of both."""
        outcome = {
            "kind": self.kind,
            "predicted": self.predicted,
            "wanted": self.wanted.value,
            "verdict": found.verdict.value if found.verdict else None,
            "error": found.error.to_json() if found.error else None,
        }
        return replace(
            judgement,
            calls=judgement.calls + found.calls,
            prompt_tokens=judgement.prompt_tokens + found.prompt_tokens,
            completion_tokens=judgement.completion_tokens + found.completion_tokens,
            extra={**(judgement.extra or {}), SENTINEL: outcome},
        )


class SentinelJudge:
    """A judge, and the sentinels that it is to be shown: each before the answer to the same question.

    The first look at a question tells a judge nothing; a second one would. `after_sentinel` shows them.
    """

    def __init__(self, inner: Judge, sentinels: Mapping[Key, Sentinel]) -> None:
        self.inner = inner
        self.model = inner.model
        self.sentinels = sentinels

    async def judge(self, question: Question, predicted: str, complete: Complete, repeat: int = 1) -> Judgement:
        return await self.inner.judge(question, predicted, complete, repeat)

    async def close(self) -> None:
        await self.inner.close()

    def describe(self) -> Mapping[str, Any]:
        return self.inner.describe()


async def after_sentinel(
    judge: Judge, key: Key, judging: Callable[[Reply, Budget], Awaitable[Judgement]], reply: Reply, budget: Budget
) -> Judgement:
    """Return the judgement on `reply`, and with it what came of the sentinel that was judged first, if there is one.

    A sentinel is judged whatever the answer is, and in a time of its own: no answer fares worse for it.
    """
    sentinel = judge.sentinels.get(key) if isinstance(judge, SentinelJudge) else None
    if sentinel is None:
        return await judging(reply, budget)
    found = await judging(Reply(sentinel.predicted), budget.afresh())
    return sentinel.beside(await judging(reply, budget), found)


def with_sentinels(
    judge: Judge, number: int, questions: Sequence[Question], golds: Sequence[Question], seed: int
) -> Judge:
    """Return `judge` with sentinels on `number` of the `questions`, or itself for none. Raises OptionError.

    `golds` are the questions whose golds may stand in for another's.
    """
    if not number:
        return judge
    if isinstance(judge, ReplayJudge):
        raise OptionError(
            f"--simpleqa-sentinels {number}: a recording has no verdict on answers that are not in it; "
            "name another judge, or --simpleqa-sentinels 0"
        )
    return SentinelJudge(judge, draw_sentinels(questions, number, golds, seed))


def draw_sentinels(
    questions: Sequence[Question], number: int, golds: Sequence[Question], seed: int
) -> dict[Key, Sentinel]:
    """Return a sentinel for each of `number` questions (or all), by the id and the repeat they stand before.

    The same for the same seed, in every process.
    """
    random = Random(f"sentinels {seed}")
    drawn = random.sample(range(len(questions)), min(number, len(questions)))
    pools = _pools(golds)
    return {
        (questions[index].id, 1): _sentinel(kind, questions[index], pools, random)
        for kind, index in zip(cycle(KINDS), drawn, strict=False)
    }


_Pools = Mapping[str | None, Sequence[Question]]
"""Questions by answer type, and all of them under None."""


def _pools(golds: Sequence[Question]) -> _Pools:
    pools: dict[str | None, list[Question]] = {None: list(golds)}
    for question in golds:
        if question.answer_type is not None:
            pools.setdefault(question.answer_type, []).append(question)
    return pools


def _sentinel(kind: str, question: Question, pools: _Pools, random: Random) -> Sentinel:
    """Return a sentinel of `kind`; the gold itself where the golds leave no such one."""
    if kind == ABSTENTION:
        wordings = random.sample(ABSTENTIONS, len(ABSTENTIONS))
        fitting = next((each for each in wordings if not _may_pass(question, each)), None)  # a song may be called so
        if fitting is not None:
            return Sentinel(ABSTENTION, fitting, Verdict.NOT_ATTEMPTED)
    if kind == OTHER_GOLD:
        others = (each.answer for each in _others(question, pools, random))
        found = next((other for other in others if _is_clearly_other(question, other)), None)
        if found is not None:
            return Sentinel(OTHER_GOLD, found, Verdict.INCORRECT)
    return Sentinel(GOLD, question.answer, Verdict.CORRECT)


def _others(question: Question, pools: _Pools, random: Random) -> Iterator[Question]:
    """Yield questions to take a gold from, those of the same answer type first."""
    for answer_type in dict.fromkeys((question.answer_type, None)):
        pool = pools.get(answer_type, ())
        yield from (pool[index] for index in random.sample(range(len(pool)), min(_TRIES, len(pool))))


def _may_pass(question: Question, predicted: str) -> bool:
    from .rules import judge_by_rules

    return judge_by_rules(question.problem, question.answer, predicted) is Verdict.CORRECT


def _is_clearly_other(question: Question, gold: str) -> bool:
    """Whether nobody could take `gold` for the question's own: neither looks like, holds or allows the other."""
    from rapidfuzz.fuzz import ratio

    from .rules import judge_by_rules
    from .words import fold

    for own in (question.answer, *_texts(question.metadata.get("ideal"))):
        both_ways = (judge_by_rules(question.problem, own, gold), judge_by_rules(question.problem, gold, own))
        if ratio(fold(own), fold(gold)) >= _ALIKE or set(both_ways) != {Verdict.INCORRECT}:
            return False
    return True


def _texts(cell: Any) -> list[str]:
    return [each for each in cell if isinstance(each, str)] if isinstance(cell, list) else []
