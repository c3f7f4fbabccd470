"""How sure an answer says it is: the stated percentage, found in its text and taken out of it."""

from __future__ import annotations

import re

# Every run of blanks and marks is bounded, so that no pile of them makes the search slow.
_GAP = r"\s{0,9}"
_MARKS = r"[*_`\"]{0,4}"
_NUMBER = rf"{_MARKS}(?:(?:about|around|approximately|roughly)\s|[~≈])?\s?(?P<number>\d{{1,3}}(?:[.,]\d{{1,6}})?)"
_PERCENT = rf"(?P<percent>{_GAP}(?:[%％]|per\s?cent\b|/\s?100\b))"
_CLOSE = rf"{_MARKS}[)\]]?[.。]?{_MARKS}"

_LABELLED = re.compile(
    # It begins a line or a sentence, or stands behind a comma or in brackets; "overconfidence" is another word.
    rf"(?:\A|(?<=[.!?。:])|[\n,;|(\[–—-])[\s>#*_-]{{0,9}}"
    rf"(?:(?:my|the)\s)?confidence(?:\s(?:level|score|rating))?(?:\s?\([^()\n]{{1,20}}\))?"
    rf"{_MARKS}{_GAP}(?:[:=：]|\bis\b|){_MARKS}{_GAP}{_NUMBER}{_PERCENT}?"
    # Neither a part of something longer nor a range.
    rf"(?![\w%])(?!{_GAP}(?:-|–|to\b){_GAP}\d)(?={_GAP}{_MARKS}{_GAP}(?:$|[.,;:!?。)\]|(–—-])){_CLOSE}",
    re.IGNORECASE | re.MULTILINE,
)
"""`Confidence: 85%`, wherever it stands."""

_SURE = re.compile(
    rf"(?:\A|(?<=[.!?。])|[\n,;(\[]){_GAP}(?:(?:i\sam|i['’]m|with)\s)?{_NUMBER}{_PERCENT}"
    rf"\s(?:confiden(?:t|ce)|sure|certain(?:ty)?){_CLOSE}\Z",
    re.IGNORECASE,
)
"""`I am 85% confident.`, at the end."""

_BARE = re.compile(rf"(?:(?<=\S){_GAP}[(\[]|\n){_GAP}{_MARKS}{_NUMBER}{_PERCENT}{_CLOSE}\Z", re.IGNORECASE)
"""`85%` in the last line by itself, or `(85%)` at the end."""

_ASKS_FOR_A_SHARE = re.compile(
    r"[%％]|per\s?cent|pro[cz]ent|pour\s?cent|por\s?cien|百分|\b(?:share|proportion|fraction|ratio|rate|odds)\b",
    re.IGNORECASE,
)


def split_confidence(text: str, question: str = "") -> tuple[str, float | None]:
    """Return `text` without the confidence that it states, and that as a fraction.

    A text that states none, more than 100 %, or two different ones comes back as it is, with None. A
    percentage without a word on confidence may be the answer itself: one that is the whole text, or that answers
    a `question` about a share, is left in its place.
    """
    patterns = (_LABELLED, _SURE) if _ASKS_FOR_A_SHARE.search(question) else (_LABELLED, _SURE, _BARE)
    for pattern in patterns:
        found = list(pattern.finditer(text.rstrip()))
        if found:
            stated = {_fraction(each["number"], each["percent"]) for each in found}
            confidence = stated.pop()
            if confidence is None or stated:
                return text, None
            return _without(text, found), confidence
    return text, None


def _fraction(number: str, percent: str | None) -> float | None:
    """Return `85`, `85%` and `0.85` as .85; None above 100 %, and for a lone 1, which may be either."""
    value = float(number.replace(",", "."))
    if not percent and value <= 1:
        return value if value == 0 or not number.isdigit() else None
    return round(value / 100, 6) if value <= 100 else None


def _without(text: str, found: list[re.Match[str]]) -> str:
    kept, at = [], 0
    for each in found:
        kept.append(text[at : each.start()])
        at = each.end()
    return "".join([*kept, text[at:]]).strip()
