"""Finds dates in the orders and month names of several languages."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Folded month names. A name with `*` is inflected: any word that begins with it counts, up to four letters more.
_MONTHS = """
1  january jan leden ledna lednu lednem januar janner janvier enero ener gennaio janeiro stycz* januari yanvar*
2  february feb unor* februar fevrier febrero febbraio fevereiro luty lutego lutym februari fevral*
3  march mar brezen brezn* marz maerz mars marzo marco marec marca marze marzec maart mart marta marte
4  april apr duben dubna dubnu dubnem avril abril aprile kwiec* kwiet* aprila aprili aprel*
5  may kveten kvetn* mai mayo maggio maio maj maja maju mei maya mae
6  june jun cerven cervn* juni juin junio giugno junho juna czerwc* czerwiec iyun*
7  july jul cervenec cervenc* juli juillet julio luglio julho jula lipiec lipca lipcu iyul*
8  august aug srpen srpn* aout agosto sierp* augustus augusta avgust*
9  september sept sep zari* septembre septiembre settembre setembro septembr* wrzes* wrzesn* sentyabr*
10 october oct rijen rijn* oktober okt octobre octubre ottobre outubro oktobr* pazdz* oktyabr*
11 november nov listopad* noviembre novembro novembre novembr* noyabr*
12 december dec prosinec prosinc* dezember dez decembre diciembre dicembre dezembro decembr* grudzien grudni* dekabr*
"""
_LONGEST_ENDING = 4
"""The longest ending that an inflected name takes."""


def _months() -> tuple[dict[str, int], dict[str, int]]:
    """Return the table as whole names and as stems."""
    names: dict[str, int] = {}
    stems: dict[str, int] = {}
    month = 0
    for word in _MONTHS.split():
        if word.isdigit():
            month = int(word)
        elif word.endswith("*"):
            stems[word[:-1]] = month
        else:
            names.setdefault(word, month)
    return names, stems


_NAMES, _STEMS = _months()
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

    @property
    def is_whole(self) -> bool:
        """Whether day, month and year are all written."""
        return None not in (self.day, self.month, self.year)

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
    if word in _NAMES:
        return _NAMES[word]
    for length in range(min(len(word), 9), max(3, len(word) - _LONGEST_ENDING - 1), -1):
        if word[:length] in _STEMS:
            return _STEMS[word[:length]]
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
