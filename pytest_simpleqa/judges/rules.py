"""The `rules` judge: grades without a model, by what any language's answers have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..records import Verdict
from .dates import Date, dates, month_of
from .numbers import Number, numbers, numeral
from .refusals import is_refusal
from .words import codes, fold, is_long_name, same_word, without_codes, word_weights, words

_CAP = 6000
"""Characters of an answer that are read, its beginning and its end: a short answer stands in one of them."""

_SHORT_CAP = 1000
"""Characters of a question or a gold that are read."""

_ENOUGH = 0.66
"""The share of the gold's words, weighed by what they tell, that an answer must name."""

_RANGE = re.compile(r"\(\s*acceptable range:(?P<bounds>[^)]*)\)?", re.IGNORECASE)
_ALIAS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# What part of a date a question asks for; the year alone will do where only the year is asked for.
_DAY_ASKED = re.compile(
    r"\b(?:date|day|when|den|dne|dni|datum\w*|kdy|tag|wann|jour|quand|dia|cuando|quando|fecha|data|giorno|dzien|dnia|kiedy"
    r"|dag|wanneer|kogda|daty?)\b|日|几号"
)
_MONTH_ASKED = re.compile(r"\b(?:months?|mesic\w*|monat\w*|mois|mes|mese|miesiac\w*|mesyats\w*|maand)\b|月")
_YEAR_ASKED = re.compile(r"\b(?:years?|rok\w{0,2}|roce|letech|jahr\w*|annees?|anos?|anno|jaar|godu?)\b|年")

_OR = re.compile(r"\b(?:or|nebo|anebo|alebo|lub|albo|oder|of|ou|o|ili|abo)\b|或|还是")


@dataclass(frozen=True, slots=True)
class _Text:
    """A folded text and what is read out of it."""

    folded: str
    words: list[str]
    numbers: list[Number]
    by_initial: dict[str, list[str]]
    """The words by first letter, so that a word is compared only with what it can be."""

    @classmethod
    def of(cls, text: str, cap: int = _SHORT_CAP) -> _Text:
        """Read a text; of one longer than `cap` the first two thirds and the last third of that."""
        if len(text) > cap:
            text = f"{text[: cap * 2 // 3]} \u2026 {text[-cap // 3 :]}"
        folded = fold(text)
        by_initial: dict[str, list[str]] = {}
        found = words(folded)
        for word in dict.fromkeys(found):
            by_initial.setdefault(word[0], []).append(word)
        return cls(folded, found, numbers(folded), by_initial)

    def all_numbers(self) -> list[Number]:
        """Return the numbers in digits and those in words."""
        return [*self.numbers, *(number for word in self.words if (number := numeral(word)))]

    def says(self, word: str) -> bool:
        """Whether the word is said, in whatever inflection; a month also by its name in another language."""
        if any(same_word(word, other) for other in self.by_initial.get(word[0], ())):
            return True
        month = month_of(word)
        return month is not None and any(month_of(other) == month for other in self.words)


def judge_by_rules(question: str, gold: str, predicted: str) -> Verdict:
    """Return the verdict on `predicted` by fixed rules: deterministic, offline, for any language.

    Correct when it names the gold's date, numbers or words, in any inflection or spelling near enough;
    else not attempted when it is empty or declines; else incorrect.
    """
    answer = _Text.of(predicted, _CAP)
    if not answer.words:
        return Verdict.NOT_ATTEMPTED
    asked = _Text.of(question)
    if any(_agrees(target, answer, asked) for target in _targets(gold[:_SHORT_CAP])):
        return Verdict.CORRECT
    if is_refusal(answer.folded) or _only_repeats(answer, asked):
        return Verdict.NOT_ATTEMPTED
    return Verdict.INCORRECT


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
    if required := codes(target.folded):
        rest = without_codes(target.folded)
        return required <= codes(answer.folded) and (not words(rest) or _names_words(rest, answer, asked))
    if date := _whole_date(target):
        return _names_date(date, answer, asked)
    if wanted := _whole_number(target):
        return _names_numbers(wanted, answer, asked)
    if _CJK.search(target.folded):
        return "".join(target.words) in "".join(answer.words)
    return _names_words(gold, answer, asked)


def _in_range(bounds: list[Number], answer: _Text) -> bool:
    """Whether a number of the answer lies within the gold's own range."""
    values = [max(number.values) for number in bounds[:2]]
    return len(values) == 2 and any(
        min(values) <= value <= max(values) for number in answer.numbers for value in number.values
    )


def _whole_date(target: _Text) -> Date | None:
    """Return the date that the gold is, if it is nothing else; a weekday may stand beside a whole one."""
    rest = [word for word in target.words if not word[0].isdigit() and len(word) > 3 and not month_of(word)]
    found = dates(target.folded) if len(rest) < 2 else []
    return found[0] if found and (not rest or found[0].is_whole) else None


def _names_date(gold: Date, answer: _Text, asked: _Text) -> bool:
    """Whether a date of the answer is the gold's, as far as the question asks for it."""
    said = dates(answer.folded)
    if any(date.covers(gold) for date in said):
        return True
    if _DAY_ASKED.search(asked.folded) or not gold.year:
        return False
    if _MONTH_ASKED.search(asked.folded):
        return any(date.covers(Date(None, gold.month, gold.year)) for date in said)
    named = any(float(gold.year) in number.values for number in answer.numbers)
    return named and bool(_YEAR_ASKED.search(asked.folded)) and not any(date.contradicts(gold) for date in said)


def _whole_number(target: _Text) -> list[Number]:
    """Return the numbers that the gold is, with at most a unit beside them; empty for a gold of words."""
    rest = [word for word in target.words if not word[0].isdigit()]
    unit = [word for word in rest if len(word) > 3]
    if target.numbers and (len(rest) <= 1 or not unit or (target.words[0][0].isdigit() and len(rest) <= 3)):
        return target.numbers
    if not target.numbers and rest and len(rest) <= 2 and (number := numeral(rest[0])):
        return [number]
    return []


def _names_numbers(gold: list[Number], answer: _Text, asked: _Text) -> bool:
    """Whether the answer holds every number of the gold, in digits or as words."""
    said = _fresh(answer.all_numbers(), asked.all_numbers())
    return all(any(number.rounds_to(wanted) for number in said) for wanted in gold) and not _hedges(gold, answer)


def _hedges(gold: list[Number], answer: _Text) -> bool:
    """Whether the answer offers another number beside the gold's: `1950 or 1952`."""
    pairs = zip(answer.numbers, answer.numbers[1:], strict=False)
    return any(
        one.rounds_to(gold[0]) != other.rounds_to(gold[0]) and other.start - one.end < 12
        for one, other in pairs
        if len(gold) == 1 and _OR.fullmatch(answer.folded[one.end : other.start].strip(" ,*'\""))
    )


def _fresh(said: list[Number], asked: list[Number]) -> list[Number]:
    """Return the numbers that the answer does not merely repeat from the question; all, if it only repeats."""
    repeated, fresh = Counter(number.values for number in asked), []
    for number in said:
        if repeated[number.values] > 0:
            repeated[number.values] -= 1
        else:
            fresh.append(number)
    return fresh or said


def _names_words(gold: str, answer: _Text, asked: _Text) -> bool:
    """Whether the answer names the gold's numbers and enough of its words, weighed by what they tell."""
    target = _Text.of(gold)
    if not all(any(number.rounds_to(wanted) for number in answer.numbers) for wanted in target.numbers):
        return False
    weights = [(word, weight) for word, weight in word_weights(gold) if weight]
    if not weights:  # numbers only, or nothing but little words (`The The`)
        return bool(target.words) and f" {' '.join(target.words)} " in f" {' '.join(answer.words)} "
    new = [entry for entry in weights if not asked.says(entry[0])] or weights
    total = sum(weight for _, weight in new)
    if total and sum(weight for word, weight in new if answer.says(word)) >= _ENOUGH * total:
        return True
    return is_long_name(gold) and all(answer.says(target.words[end]) for end in (0, -1))


def _only_repeats(answer: _Text, asked: _Text) -> bool:
    """Whether the answer is the question said again: long enough for it, and every word of it taken from there."""
    if not 0.6 * len(asked.words) <= len(answer.words) <= len(asked.words) or len(asked.words) < 5:
        return False
    left = list(asked.words)
    for word in answer.words:
        found = next((other for other in left if same_word(word, other)), None)
        if found is None:
            return False
        left.remove(found)
    return True
