"""Tells what a judge says of its own from an echo: a quotation, or the answer that it judges said again."""

from __future__ import annotations

import re
from bisect import bisect_left

_REACH = 400
"""Characters before and after a claim that are looked at: more is no sentence."""

_WORDS = re.compile(r"[^\W_]+")
_HEADING = re.compile(
    r"^[ \t*_#>-]{0,12}(?:the[ ]|a[ ])?"
    r"(?:question|gold(?:[ ]target|[ ]answer)?|(?:(?:predicted|model|student|candidate|given|submitted)(?:'s)?[ ])?"
    r"(?:answer|response|prediction|reply)|问题|标准答案|预测答案|模型答案)[*_\]]{0,3}[ ]?[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE_END = re.compile(r"[.!?;\n。！？；]|\s[-–—]\s|—|,\s(?=(?:so|thus|hence|therefore)\b)", re.IGNORECASE)
_STOP = re.compile(r"[.!?\n。！？]")
_REPORTED = re.compile(
    r"\b(?:says?|said|contains?|text|reads?|claims?|states?|includes?|wrote|writes?|asks?|tells?|instruct\w{0,6})\b",
    re.IGNORECASE,
)

# A cue opens its sentence, or is led in by these; `the answer says Grade: A` is a report of somebody's words.
_LEADS = frozenset(
    _WORDS.findall(
        "a an the my our your this that these it is so thus hence therefore overall finally accordingly consequently "
        "in conclusion summary short sum based on above comparison analysis reasoning criteria rules i we would will "
        "give gives assign get gets deserves receives earns final and with here as for answer question response "
        "prediction predicted judge grading grade graded evaluation verdict result step now then "
        "最终 最终的 我的 评定 所以 因此 答案 答案的 该答案的"
    )
)


class Echoes:
    """Tells a judge's own words from an echo; `predicted` is the answer that is judged, where it is known."""

    def __init__(self, text: str, predicted: str | None) -> None:
        self._text = text
        self._predicted = None if predicted is None else _spoken(predicted)
        self._lines = len((predicted or "").strip().splitlines())
        self._known: dict[str, bool] = {}
        self._fences = [fence.start() for fence in re.finditer("```", text)]
        heading = _HEADING.search(text)
        self._echo_from = heading.start() if heading else None

    def holds(self, start: int, end: int) -> bool:
        """Whether what stands from `start` to `end` stands in the answer as well.

        A lone letter is an echo only of an answer of several lines: it may be the whole of another.
        """
        said = _spoken(self._text[start:end])
        if self._predicted is None or (len(said.split()) < 2 and self._lines < 2):
            return False
        if said not in self._known:  # once for each: a reply may repeat itself ten thousand times
            self._known[said] = said in self._predicted
        return self._known[said]

    def surround(self, start: int, end: int) -> bool:
        """Whether the place is a block quote, or part of a repeated question or answer."""
        line = self._before(start).rpartition("\n")[2] + self._text[start : start + 1]
        if line.lstrip().startswith(">") or _HEADING.match(line):
            return True
        return self._is_below_heading(start, end)

    def is_mentioned(self, start: int, end: int) -> bool:
        """Whether a cue stands in a sentence about something else, in a question, or in a fence with prose behind."""
        if self._is_fenced(start):
            return True
        *_, lead = _SENTENCE_END.split(self._before(start))
        if not all(word.lower() in _LEADS or word.isdigit() for word in _WORDS.findall(lead)):
            return True
        sentence_end = _STOP.search(self._text, end - 1, end + _REACH)
        return sentence_end is not None and sentence_end[0] in "?？"

    def is_reported(self, start: int) -> bool:
        """Whether a field is led in by words such as `the answer contains`."""
        lead, found, _ = self._before(start).rpartition("\n")[2].partition("{")
        return bool(found) and _REPORTED.search(lead) is not None

    def _before(self, start: int) -> str:
        return self._text[max(0, start - _REACH) : start]

    def _is_fenced(self, start: int) -> bool:
        at = bisect_left(self._fences, start)
        if at % 2 == 0 or at == len(self._fences):
            return False
        return _WORDS.search(self._text, self._fences[at]) is not None

    def _is_below_heading(self, start: int, end: int) -> bool:
        """Whether an echo began before, and prose goes on after; with the answer known, so is what repeats it."""
        if self._predicted is not None or self._echo_from is None or self._echo_from >= start:
            return False
        return _WORDS.search(self._text, end) is not None


def is_quoted(text: str, at: int) -> bool:
    """Whether the character at `at` stands inside a quotation on its line: somebody else's words."""
    before = text[max(0, at - _REACH) : at].rpartition("\n")[2]
    if not before.strip(" \t\"'`*_#"):
        return False  # decoration around the whole line
    return any(before.count(mark) % 2 for mark in '"`') or any(
        before.count(left) > before.count(right) for left, right in ("“”", "«»", "「」")
    )


def _spoken(text: str) -> str:
    """Return the words of `text`, in small letters, with a blank before and after each."""
    return f" {' '.join(_WORDS.findall(text.lower()))} "
