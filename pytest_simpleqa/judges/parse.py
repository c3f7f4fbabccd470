"""Reads a verdict out of a judge model's reply, or says why there is none.

A reply *claims* a verdict in one of these places and nowhere else:

    the whole reply       `A`, `(B)`, `NOT ATTEMPTED`, `C: NOT_ATTEMPTED`, `This one is a B`, `【错误】`
    its first or last     the same, standing alone on that line
    line
    its opening           `A: CORRECT, the model named ...`, `Incorrect. The year is off.`
    a field               `{"grade": "A"}`, `{'verdict': 'B'}`, also in a fence or after a sentence
    a cue                 `Grade: B`, `**Verdict:** CORRECT`, `Final verdict is A`

All claims must agree, and what follows the last of them must not speak against it. Prose before a
claim is reasoning, and reasoning may change its mind. What may be an echo of the answer that is judged
claims nothing by itself (`Echoes`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..records import Verdict
from .echo import Echoes, is_quoted

UNREADABLE = "judge_unreadable"
CONFLICT = "judge_conflict"

_LINE_CAP = 120
"""A longer line is prose: no framing takes that much."""

# Decoration around a letter or word. A closing `-` or `+` is none: `A-` is a school mark, no verdict.
_OPEN = r"[\s\"'`´“”‘’„«»*_~#<>()\[\]{}|「」『』【】〖〗《》.,:;=!–—-]"
_CLOSE = r"[\s\"'`´“”‘’„«»*_~#<>()\[\]{}|「」『』【】〖〗《》.,:;=!。、]"
_WORD = r"(?:incorrect|correct|not[\s_\\-]{0,3}attempted|不正确|正确|错误|未尝试)"
_END = r"(?![^\W_])"

# A lone letter or word, or a letter beside a word (`A: CORRECT`, `CORRECT (A)`).
_STANDING = re.compile(
    rf"{_OPEN}*(?:(?:grade|verdict|answer){_OPEN}+)?"
    rf"(?:(?P<letter>[ABC])(?:{_OPEN}+(?P<word>{_WORD}))?|(?P<word2>{_WORD})(?:{_OPEN}+(?P<letter2>[ABC]))?){_CLOSE}*",
    re.IGNORECASE,
)

# A whole reply in a sentence. The letter is a capital and the last thing said, so the article `a` is none.
_SENTENCE = re.compile(
    r"(?:(?:this|it|that)(?:\s+one|\s+answer|\s+response)?\s+(?:is|gets|deserves|earns|would\s+be|should\s+be)"
    r"|i(?:'d|’d|\s+would|\s+will)?\s+(?:give|grade|rate|mark|score|call)\s+(?:this|it|that)(?:\s+one|\s+answer|\s+response)?)"
    rf"\s+(?:graded\s+|rated\s+|marked\s+)?(?:as\s+)?(?:an?\s+)?{_OPEN}*(?P<letter>(?-i:[ABC])){_CLOSE}*",
    re.IGNORECASE,
)

# What may come after a claim: the end of a clause, or the reason for it.
_CLAUSE = rf"{_END}(?=[\"'`“”‘’»*_)\]}}】]{{0,6}}\s{{0,6}}(?:$|[\n.,;:!<(\[{{—–。，；|/]|-\s|because\b|since\b))"
# ... but not another letter: `Grade: A, B or C` repeats the prompt.
_ALONE = r"(?!(?:[^\w\n]|\bor\b|\band\b){1,12}(?-i:[ABC])\b)"

# An opening letter counts only with its word behind punctuation: `A correct answer ...` begins with an article.
_OPENING = re.compile(
    rf"""{_OPEN}*(?P<letter>(?-i:[ABC])|[abc](?=:))["'`*_]{{0,4}}\s?[:.,)\]=–—-]{_OPEN}{{0,8}}(?P<word>{_WORD}){_CLAUSE}
    |    [*_`"]{{0,4}}(?P<word2>{_WORD})[*_`"]{{0,4}}[.!。][*_`"]{{0,4}}(?=\s|$)""",
    re.IGNORECASE | re.VERBOSE,
)

_CUE = re.compile(
    rf"""
    (?: (?<!\w)(?:final\s)?(?:grade|graded\sas|verdict|rating|label|decision|result|conclusion
                              |classification|assessment|evaluation|judge?ment)
      | (?<!\w)final(?:\sanswer)?
      | 评定|评分|判定|评级|等级|结论|结果 )["'`*_\]】]{{0,6}}
    (?: # after a colon or its like: any verdict word, a capital, or a small letter that ends the line
        \s{{0,4}}(?:[:=>→]|[-=]>|\s[-–—]\s){_OPEN}{{0,12}}
        (?: (?P<letter>(?-i:[ABC])|[abc](?=\W{{0,6}}(?:$|\n)))(?:{_OPEN}{{1,6}}(?P<word>{_WORD}))?
          | (?P<word2>{_WORD}) )
      | # after `is`: capitals only, since `the verdict is a close call` and `the result is correct` are prose
        (?:\s{{1,4}}is\s{{1,4}}|[为是])(?:an?\s{{1,4}})?["'`*_(\[【“‘]{{0,6}}
        (?: (?P<letter3>(?-i:[ABC]))(?:{_OPEN}{{1,6}}(?P<word3>{_WORD}))?
          | (?P<word4>(?-i:INCORRECT|CORRECT|NOT[\s_-]{{1,3}}ATTEMPTED|不正确|正确|错误|未尝试)) )
    ){_ALONE}{_CLAUSE}
    | \\boxed\{{(?:\\text\{{)?\s?(?P<letter5>(?-i:[ABC]))\s?\}}
    """,
    re.IGNORECASE | re.VERBOSE,
)

_FIELD = re.compile(
    r"([\"'])(?P<name>grade|verdict|label|rating|judge?ment|answer|评定|结论)\1\s{0,9}:\s{0,9}([\"'])(?P<value>[^\"'\n]{1,60})\3",
    re.IGNORECASE,
)

# A verdict stated after the claim. Capitals are a verdict, `the correct answer is 1912` is not.
_STATED = re.compile(
    r"(?<!not )(?<!nor )(?<!than )(?<!n't )(?<!n’t )\b(?P<word>(?-i:INCORRECT|CORRECT|NOT[_ -]ATTEMPTED))\b"
    r"|\b(?:answer|prediction|response|reply|this|it)\s{1,4}(?:is|was)\s{1,4}"
    r"(?P<word2>incorrect|wrong|false|correct|not\scorrect|not\sattempted)\b"
    r"|\b(?:no|wait|actually|rather|instead|sorry|correction)\W{1,3}(?:it(?:'s|\sis)\s)?(?P<letter>(?-i:[ABC]))\b",
    re.IGNORECASE,
)

# What speaks against `correct` without stating a verdict; `does not contradict the gold` is no such thing.
_SPEAKS_AGAINST = re.compile(
    r"(?<!not )(?<!n't )(?<!n’t )(?<!\bno )(?<!any )(?<!without )(?<!nothing )(?<!never )\b"
    r"(?:wrong|incorrect|incorrectly|inaccurate|mistaken|contradict(?:s|ed|ing|ion|ions|ory)?|mismatch(?:es|ed)?|differs?)\b"
    r"|(?:\bnot|n't|n’t)\s{1,4}(?:[a-z]{1,12}\s{1,4})?(?:match|agree|equal|correspond|correct|accurate|right|the\ssame)\b"
    r"|\b(?:instructions?|inject(?:s|ed|ion)?|manipulat(?:e|es|ed|ion|ive)|mislead(?:s|ing)?)\b"
    r"|\b(?:must|should|to|i|we)\s(?:be\s)?(?:ignored?|disregard(?:ed)?)\b"
    r"|(?<![没无])(?:不正确|错误|不符|矛盾)",
    re.IGNORECASE,
)

_LETTERS = {"A": Verdict.CORRECT, "B": Verdict.INCORRECT, "C": Verdict.NOT_ATTEMPTED}


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a judge's reply says."""

    verdict: Verdict | None
    kind: str | None = None
    """None with a verdict, else `judge_unreadable` or `judge_conflict`."""
    message: str = ""
    """Why there is no verdict, in one line."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A verdict that the reply claims, and where it stands."""

    verdict: Verdict | None
    """None where letter and word of the claim disagree."""
    start: int
    end: int
    form: str = "line"
    """`whole` (the reply is nothing else), `line`, `field` or `cue`."""


def parse_verdict(reply: str, predicted: str | None = None) -> Parsed:
    """Return the one verdict that `reply` claims; never a default, never a letter found inside prose.

    `predicted` is the answer that is judged: a verdict that stands in it counts in the reply only where
    the reply is nothing else. Takes time linear in the length of both, whatever they hold.
    """
    text = _without_thinking(_plain(reply))
    if text is None:
        return Parsed(None, UNREADABLE, "the judge's reply breaks off inside its <think> block")
    text = text.strip()
    echoes = Echoes(text, None if predicted is None else _plain(predicted))
    claims = [claim for claim in _claims(text) if claim.form == "whole" or not echoes.holds(claim.start, claim.end)]
    own = [claim for claim in claims if claim.form == "whole" or not _is_doubtful(echoes, claim)]
    if not own:
        return Parsed(None, UNREADABLE, f"the judge's reply holds no verdict of its own: {_excerpt(text)}")
    verdicts = {claim.verdict for claim in claims}
    if len(verdicts) == 1 and None not in verdicts:
        verdicts |= set(_stated(text[max(claim.end for claim in own) :], own[0].verdict))
    if len(verdicts) > 1 or None in verdicts:
        return Parsed(None, CONFLICT, f"the judge's reply contradicts itself: {_excerpt(text)}")
    return Parsed(verdicts.pop())


def parse_paper(reply: str) -> Verdict:
    """Return the verdict by the rule of the reference implementation.

    The first capital A, B or C anywhere in the text decides; without one the answer is not attempted.
    """
    found = re.search(r"[ABC]", reply)
    return _LETTERS[found[0]] if found else Verdict.NOT_ATTEMPTED


def other_rule(*, paper: bool) -> Callable[[str], Verdict | None]:
    """Return the rule that a run did not use: strictly for a run by the reference rule (`paper`), else that one."""
    return (lambda reply: parse_verdict(reply).verdict) if paper else parse_paper


def _claims(text: str) -> Iterator[_Claim]:
    """Yield every verdict that the text claims."""
    whole = _standing(text, _STANDING) or _standing(text, _SENTENCE)
    if whole is not None:
        yield replace(whole, form="whole")
        return
    yield from _outer_lines(text)
    if opening := _OPENING.match(text):
        yield _claim(opening)
    yield from _fields(text)
    yield from (_claim(cue, "cue") for cue in _CUE.finditer(text) if not is_quoted(text, cue.start()))


def _is_doubtful(echoes: Echoes, claim: _Claim) -> bool:
    """Whether the claim may be somebody else's words, by where it stands."""
    if echoes.surround(claim.start, claim.end):
        return True
    if claim.form == "field":
        return echoes.is_reported(claim.start)
    return claim.form == "cue" and echoes.is_mentioned(claim.start, claim.end)


def _outer_lines(text: str) -> Iterator[_Claim]:
    """Yield the claims of the first and the last line, where they stand alone on it."""
    first, found, rest = text.partition("\n")
    if not found:
        return
    if (claim := _standing(first, _STANDING)) and not _is_small(first):
        yield claim
    before, _, last = rest.rpartition("\n")
    # Below a heading such as `Gold target:` the line is a quotation; below `Grade:` the cue has it.
    is_quotation = (before.strip() or first).rstrip().endswith(":")
    if (claim := _standing(last, _STANDING)) and not _is_small(last) and not is_quotation:
        yield replace(claim, start=len(text) - len(last), end=len(text))


def _fields(text: str) -> Iterator[_Claim]:
    """Yield the claims of JSON or Python-style fields; `answer` counts where no other name does."""
    found = [(field, _standing(field["value"], _STANDING)) for field in _FIELD.finditer(text)]
    found = [entry for entry in found if entry[1] is not None]
    named = [entry for entry in found if entry[0]["name"].lower() != "answer"] or found
    for field, claim in named:
        if claim is not None:
            yield _Claim(claim.verdict, field.start(), field.end(), "field")


def _standing(text: str, pattern: re.Pattern[str]) -> _Claim | None:
    """Return the claim that the whole text is, if it is one; a block quote is none."""
    text = text.strip()
    match = pattern.fullmatch(text) if len(text) <= _LINE_CAP and not text.startswith(">") else None
    return _claim(match) if match else None


def _claim(match: re.Match[str], form: str = "line") -> _Claim:
    """Return the claim of a match: letter and word must agree."""
    said = {_verdict(name, value) for name, value in match.groupdict().items() if value is not None}
    return _Claim(said.pop() if len(said) == 1 else None, match.start(), match.end(), form)


def _verdict(group: str, value: str) -> Verdict:
    return _LETTERS[value.upper()] if group.startswith("letter") else _word(value)


def _word(value: str) -> Verdict:
    """Return the verdict that a verdict word means, in either language."""
    lowered = value.lower()
    if lowered in ("correct", "正确"):
        return Verdict.CORRECT
    return Verdict.NOT_ATTEMPTED if "attempted" in lowered or lowered == "未尝试" else Verdict.INCORRECT


def _stated(text: str, claimed: Verdict | None) -> Iterator[Verdict]:
    """Yield the verdicts that prose after a claim states outright, or by speaking against `correct`."""
    for match in _STATED.finditer(text):
        yield from (_verdict(name, value) for name, value in match.groupdict().items() if value is not None)
    if claimed is Verdict.CORRECT and _SPEAKS_AGAINST.search(text):
        yield Verdict.INCORRECT


def _is_small(line: str) -> bool:
    """Whether the line's letter is a small one: a list mark or an article, unless it is the whole reply."""
    return re.search(r"\b[abc]\b", line) is not None


def _without_thinking(text: str) -> str | None:
    """Cut `<think>` blocks; None where one is never closed."""
    lowered, kept, at = text.lower(), [], 0
    if len(lowered) != len(text):  # a letter whose small form is longer: positions would not match
        lowered = text
    while (start := lowered.find("<think>", at)) >= 0:
        kept.append(text[at:start])
        end = lowered.find("</think>", start)
        if end < 0:
            return None
        at = end + len("</think>")
    rest = "".join([*kept, text[at:]])
    return rest.rpartition("</think>")[2]  # some services send only the closing tag


def _plain(text: str) -> str:
    """Fold full-width and styled letters (NFKC), drop invisible characters.

    Character by character: NFKC over a whole text is quadratic for long runs of combining marks.
    """
    return text if text.isascii() else text.translate({ord(char): _fold(char) for char in set(text)})


def _fold(char: str) -> str:
    if unicodedata.category(char) == "Cf":
        return ""
    folded = unicodedata.normalize("NFKC", char)
    return folded if len(folded) == 1 else char  # one character may stand for eighteen


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
