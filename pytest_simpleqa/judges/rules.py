"""The `rules` judge: grades without a model, by what any language's answers have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..records import Verdict
from .dates import Date, dates, month_of
from .numbers import Number, numbers, numeral
from .refusals import is_refusal
from .words import fold, same_word, words

_CAP = 6000
"""Characters of a text that are read: whatever comes later is no short answer."""

_ENOUGH = 0.62
"""The share of the gold's letters that an answer must name."""

_RANGE = re.compile(r"\(\s*acceptable range:(?P<bounds>[^)]*)\)?", re.IGNORECASE)
_ALIAS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_DAY_ASKED = re.compile(
    r"\b(?:date|day|month|den|dne|datum\w*|mesic\w*|tag|monat|jour|mois|dia|mes|fecha|data|giorno|mese|dzien|dnia|miesiac\w*"
    r"|den\w*|mesyats\w*|dag|maand)\b|日|月"
)


@dataclass(frozen=True, slots=True)
class _Text:
    """A folded text and what is read out of it."""

    folded: str
    words: list[str]
    numbers: list[Number]

    @classmethod
    def of(cls, text: str) -> _Text:
        folded = fold(text[:_CAP])
        return cls(folded, words(folded), numbers(folded))


def judge_by_rules(question: str, gold: str, predicted: str) -> Verdict:
    """Return the verdict on `predicted` by fixed rules: deterministic, offline, for any language.

    Correct when it names the gold's date, numbers or words, in any inflection or spelling near enough;
    else not attempted when it is empty or declines; else incorrect.
    """
    answer = _Text.of(predicted)
    if not answer.words:
        return Verdict.NOT_ATTEMPTED
    asked = _Text.of(question)
    if any(_agrees(target, answer, asked) for target in _targets(gold[:_CAP])):
        return Verdict.CORRECT
    return Verdict.NOT_ATTEMPTED if is_refusal(answer.folded) else Verdict.INCORRECT


def _targets(gold: str) -> Iterator[str]:
    """Yield the gold and what may stand for it: without its brackets, the alias inside them."""
    yield gold
    if _RANGE.search(gold):
        return
    bare = _ALIAS.sub(" ", gold)
    if bare != gold and words(fold(bare)):
        yield bare
        for alias in _ALIAS.findall(gold):
            if len(alias) > 2 and not any(char.isdigit() for char in alias):
                yield alias


def _agrees(gold: str, answer: _Text, asked: _Text) -> bool:
    """Whether the answer names what the gold says, by the rule that fits the gold's kind."""
    if found := _RANGE.search(gold):
        return _in_range(numbers(fold(found["bounds"])), answer)
    target = _Text.of(gold)
    if target.folded and target.folded == answer.folded:
        return True
    if date := _whole_date(target):
        return _names_date(date, answer, asked)
    if wanted := _whole_number(target, asked):
        return _names_numbers(wanted, answer, asked)
    if _CJK.search(target.folded):
        return "".join(target.words) in "".join(answer.words)
    return _names_words(target, answer, asked)


def _in_range(bounds: list[Number], answer: _Text) -> bool:
    """Whether a number of the answer lies within the gold's own range."""
    values = [max(number.values) for number in bounds[:2]]
    return len(values) == 2 and any(
        min(values) <= value <= max(values) for number in answer.numbers for value in number.values
    )


def _whole_date(target: _Text) -> Date | None:
    """Return the date that the gold is, if it is nothing else."""
    rest = [word for word in target.words if not word[0].isdigit() and len(word) > 3 and not month_of(word)]
    found = dates(target.folded) if not rest else []
    return found[0] if found else None


def _names_date(gold: Date, answer: _Text, asked: _Text) -> bool:
    """Whether a date of the answer is the gold's; the year alone will do where only that was asked."""
    if any(date.covers(gold) for date in dates(answer.folded)):
        return True
    if _DAY_ASKED.search(asked.folded) or not gold.year:
        return False
    year = float(gold.year)
    return any(year in number.values for number in answer.numbers) and not any(
        date.contradicts(gold) for date in dates(answer.folded)
    )


def _whole_number(target: _Text, asked: _Text) -> list[Number]:
    """Return the numbers that the gold is, with at most a unit beside them; empty for a gold of words."""
    rest = [word for word in target.words if not word[0].isdigit()]
    if target.numbers and (len(rest) <= 1 or target.words[0][0].isdigit() and len(rest) <= 3):
        return target.numbers
    if not target.numbers and rest and len(rest) <= 2 and (number := numeral(rest[0])):
        return [number]
    return []


def _names_numbers(gold: list[Number], answer: _Text, asked: _Text) -> bool:
    """Whether the answer holds every number of the gold, in digits or as words."""
    said = [*answer.numbers, *(number for word in answer.words if (number := numeral(word)))]
    return all(any(number.rounds_to(wanted) for number in said) for wanted in gold)


def _names_words(target: _Text, answer: _Text, asked: _Text) -> bool:
    """Whether the answer names enough of the gold's words, weighed by their length."""
    if not all(any(number.rounds_to(wanted) for number in answer.numbers) for wanted in target.numbers):
        return False
    wanted = [word for word in target.words if not word.isdigit()]
    new = [word for word in wanted if not _is_among(word, asked.words)] or wanted
    total = sum(len(word) for word in new)
    return total > 0 and sum(len(word) for word in new if _is_among(word, answer.words)) >= _ENOUGH * total


def _is_among(word: str, others: list[str]) -> bool:
    return word in others or any(same_word(word, other) for other in others)
