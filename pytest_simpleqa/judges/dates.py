"""Finds dates in the orders and month names of several languages."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Stems of folded month names; the longest stem that a word begins with decides.
_MONTHS = """
1  january jan leden ledna januar janner janvier enero ener gennaio janeiro stycz januari yanvar gener
2  february feb unor februar fevrier febrero febbraio fevereiro lut luty lutego februari fevral
3  march mar brez marz maerz mars marzo marco marz marca maart mart
4  april apr dub avril abril aprile kwie aprel
5  may kvet mai mayo maggio maio maj maja mei maya
6  june jun cerven cervna cervnu juni juin junio giugno junho czerw iyun
7  july jul cervenec cervence cervenci juli juillet julio luglio julho lip iyul
8  august aug srp aout agosto sierp augustus avgust
9  september sep zar septembre septiembre settembre setembro wrzes sentyabr
10 october oct rij oktober okt octobre octubre ottobre outubro pazdz oktyabr
11 november nov listopad novembre noviembre novembro noyabr
12 december dec prosin dezember dez decembre diciembre dicembre dezembro grud dekabr
"""
# Names that mean one month in one language and another in another keep the first meaning (Czech `listopad`).
_EXACT = frozenset("jan feb mar apr may jun jul aug sep oct nov dec okt dez mai maj maja mei maya lut lip zar mars marca mart lipa".split())


def _stems() -> dict[str, int]:
    table: dict[str, int] = {}
    month = 0
    for word in _MONTHS.split():
        if word.isdigit():
            month = int(word)
        else:
            table.setdefault(word, month)
    return table


_STEMS = _stems()
_TOKEN = re.compile(r"\d+|[^\W\d_]+")
_NUMERIC = re.compile(
    r"(?<!\d)(?:(?P<y>\d{4})\s?[-/.年]\s?(?P<m>\d{1,2})(?:\s?[-/.月]\s?(?P<d>\d{1,2}))?(?!\d)"
    r"|(?P<a>\d{1,2})\s?([-/.])\s?(?P<b>\d{1,2})\s?\5\s?(?P<y2>\d{4})(?!\d)"
    r"|(?P<m3>\d{1,2})\s?月(?:\s?(?P<d3>\d{1,2})\s?日)?)"
)


@dataclass(frozen=True, slots=True)
class Date:
    """A date as written; a part that is not written is None."""

    day: int | None
    month: int | None
    year: int | None

    def contradicts(self, gold: Date) -> bool:
        """Whether a part is written in both and differs."""
        pairs = ((self.day, gold.day), (self.month, gold.month), (self.year, gold.year))
        return any(mine is not None and theirs is not None and mine != theirs for mine, theirs in pairs)

    def covers(self, gold: Date) -> bool:
        """Whether every part of `gold` is written here too."""
        pairs = ((self.day, gold.day), (self.month, gold.month), (self.year, gold.year))
        return all(theirs is None or mine == theirs for mine, theirs in pairs)


def month_of(word: str) -> int | None:
    """Return the month, 1 to 12, that a folded word names in some language."""
    if word in _STEMS:
        return _STEMS[word]
    for length in range(min(len(word), 10), 3, -1):
        month = _STEMS.get(word[:length])
        if month is not None and word[:length] not in _EXACT and len(word) - length <= 4:
            return month
    return None


def dates(folded: str) -> list[Date]:
    """Return the dates of folded text that name at least a month."""
    found = [date for match in _NUMERIC.finditer(folded) for date in _numeric(match)]
    tokens = _TOKEN.findall(folded)
    for at, token in enumerate(tokens):
        month = None if token.isdigit() else month_of(token)
        if month is not None:
            found.append(_around(tokens, at, month))
    return [date for date in found if date.day or date.year]


def _around(tokens: list[str], at: int, month: int) -> Date:
    """Return the date of a month's name and the numbers beside it."""
    day = year = None
    before = tokens[max(0, at - 2) : at][::-1]
    after = tokens[at + 1 : at + 4]
    if after and (_is_day(after[0]) or (after[0] == "the" and len(after) > 1 and _is_day(after[1]))):
        day = int(after[0] if after[0] != "the" else after[1])
    for token in before:  # the day before the name wins: `21 September 15 people`
        if _is_day(token):
            day = int(token)
            break
    for token in [*after, *before]:
        if len(token) == 4 and token.isdigit():
            year = int(token)
            break
    return Date(day, month, year)


def _is_day(token: str) -> bool:
    return len(token) <= 2 and token.isdigit() and 1 <= int(token) <= 31


def _numeric(match: re.Match[str]) -> list[Date]:
    """Return the readings of a date in digits: `5.9.2011` may put day or month first."""
    if match["y"]:
        readings = [(match["d"], match["m"], match["y"])]
    elif match["y2"]:
        readings = [(match["a"], match["b"], match["y2"]), (match["b"], match["a"], match["y2"])]
    else:
        readings = [(match["d3"], match["m3"], None)]
    found = [Date(*(int(part) if part else None for part in reading)) for reading in readings]
    return [date for date in found if 1 <= (date.month or 0) <= 12 and (date.day or 1) <= 31]
