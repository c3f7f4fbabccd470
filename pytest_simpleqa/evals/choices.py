"""Choices of a model-graded eval: which there are, what each is worth, and which one a judge's reply makes."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import SpecError

INVALID = "__invalid__"
"""What stands in place of a choice where a reply makes none."""
UNREADABLE = "judge_unreadable"
CONFLICT = "judge_conflict"

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_WORD = re.compile(r"[^\w\s]|_")
"""A mark of any script."""
_ARTICLE = re.compile(r"[AI] (?!(?:is|was|because|since|as|for)\b)[a-z]")
"""A line that opens with a word of English rather than with the choice of that letter."""
_QUOTED = re.compile(
    r"^\s*>|^\W*(?:the\s+)?(?:submission|submitted\s+\w+|completion|response|student'?s?\s+answer|user'?s?\s+answer)"
    r"(?:\s+\d+)?\W{0,3}(?::|\s(?:says?|said|claims?|states?|reads?|concludes?|contains?|ends?)\b)",
    re.IGNORECASE,
)
"""A line that repeats, or reports, what was graded."""


# -- what there is to choose ------------------------------------------------------------------------


def choices_of(given: Any, n: int, place: str) -> tuple[str, ...]:
    """Return the choices that `choice_strings` means, for `n` completions; `place` begins errors.

    A text stands for its characters, `from_n` for `1, 2, ...`, `from_n_abc` and `from_n_ABC` for letters.
    Raises SpecError.
    """
    counted: Mapping[Any, Callable[[int], str]] = {
        "from_n": lambda i: str(i + 1),
        "from_n_abc": lambda i: string.ascii_lowercase[i % 26],
        "from_n_ABC": lambda i: string.ascii_uppercase[i % 26],
    }
    if isinstance(given, str) and given in counted:
        return tuple(counted[given](i) for i in range(n))
    if not isinstance(given, str | list) or not given:
        raise SpecError(f"{place}: 'choice_strings' is {given!r}; wanted a text of letters, a list, or from_n")
    choices = tuple(_choice(each, place) for each in given)
    if len(set(choices)) < len(choices):
        raise SpecError(f"{place}: 'choice_strings' names a choice twice: {', '.join(choices)}")
    return choices


def _choice(given: Any, place: str) -> str:
    if isinstance(given, bool):
        raise SpecError(f"{place}: 'choice_strings' holds {given}; write a bare Yes or No in quotes")
    text = str(given).strip()
    if not text or any(mark in text for mark in string.punctuation):
        raise SpecError(f"{place}: the choice {text!r} has punctuation or nothing in it; wanted words or digits alone")
    return text


def scores_of(given: Any, choices: Sequence[str], place: str) -> Mapping[str, float] | None:
    """Return what each choice is worth by `choice_scores`; None where nothing is said. Raises SpecError."""
    if given is None:
        return None
    known = {choice: choice for choice in choices} if given == "from_strings" else given
    if not isinstance(known, Mapping):
        raise SpecError(f"{place}: 'choice_scores' is {given!r}; wanted a number for each choice, or from_strings")
    known = {str(choice): score for choice, score in known.items()}
    if missing := [choice for choice in choices if choice not in known]:
        raise SpecError(f"{place}: 'choice_scores' has no number for {', '.join(missing)}")
    try:
        return {choice: float(known[choice]) for choice in choices}
    except (TypeError, ValueError):
        raise SpecError(f"{place}: 'choice_scores' are {known}; wanted numbers") from None


# -- which one a reply makes ------------------------------------------------------------------------


class Found(NamedTuple):
    """The choice that a reply makes, or why there is none."""

    choice: str | None
    kind: str | None = None
    """None with a choice, else `judge_unreadable` or `judge_conflict`."""


def _starts(line: str, choice: str) -> bool:
    return line.startswith(choice) and _parts(line, len(choice)) and not (len(choice) == 1 and _ARTICLE.match(line))


def _ends(line: str, choice: str) -> bool:
    return line.endswith(choice) and _parts(line, len(line) - len(choice))


def _includes(line: str, choice: str) -> bool:
    places = (match.start() for match in re.finditer(re.escape(choice), line))
    return any(
        _parts(line, at)
        and _parts(line, at + len(choice))
        and not (len(choice) == 1 and _ARTICLE.match(line[at : at + 20]))
        for at in places
    )


MATCH_FNS: Mapping[str, Callable[[str, str], bool]] = {
    "include": _includes,
    "exact": lambda line, choice: line == choice,
    "endswith": _ends,
    "starts_or_endswith": lambda line, choice: _starts(line, choice) or _ends(line, choice),
}
"""How a line makes a choice, by the name in `match_fn`; always in whole words."""


def read_choice(
    reply: str, choices: Sequence[str], *, from_end: bool, match_fn: str = "starts_or_endswith", judged: str = ""
) -> Found:
    """Return the choice of the first line that makes one, the last first with `from_end`.

    A line counts without its ASCII punctuation, and with blanks for the marks of any script. One that makes two
    choices makes none; one that repeats the text that was `judged` is not the judge's own, unless the reply is
    nothing else.
    """
    lines = [line.strip() for line in reply.split("\n") if line.translate(_WITHOUT_PUNCTUATION).strip()]
    echoes = _echoes(lines, judged) if len(lines) > 1 else set()
    order = range(len(lines))
    for number in reversed(order) if from_end else order:
        found = set() if number in echoes else _made(lines[number], choices, MATCH_FNS[match_fn])
        if len(found) > 1:
            return Found(None, CONFLICT)
        if found:
            return Found(found.pop())
    return Found(None, UNREADABLE)


def _made(line: str, choices: Iterable[str], matches: Callable[[str, str], bool]) -> set[str]:
    """Return the choices that a line makes, without those that are a part of a longer one."""
    forms = {" ".join(form.split()) for form in (line.translate(_WITHOUT_PUNCTUATION), _NO_WORD.sub(" ", line))}
    made = {choice for choice in choices if any(matches(form, choice) for form in forms)}
    return {choice for choice in made if not any(choice != other and choice in other for other in made)}


def _parts(line: str, at: int) -> bool:
    """Whether one word ends and another begins at `at`: no letter with a case, and no digit, on both sides."""
    return not (0 < at < len(line) and all(unicodedata.category(each) in _IN_WORDS for each in line[at - 1 : at + 1]))


_IN_WORDS = frozenset(("Lu", "Ll", "Lt", "Nd"))
"""Categories of characters that run on within a word; Chinese and Japanese are written without gaps."""


def _echoes(lines: Sequence[str], judged: str) -> set[int]:
    """Return the numbers of the lines that repeat or report the judged text.

    A short line such as `B` may well stand in both: it is an echo only behind another one.
    """
    theirs = {line.strip() for line in judged.split("\n")}
    found: set[int] = set()
    for number, line in enumerate(lines):
        stands_there = line in theirs or (len(line.split()) > 2 and line in judged)
        if _QUOTED.search(line) or (stands_there and (len(line.split()) > 2 or number - 1 in found)):
            found.add(number)
    return found
