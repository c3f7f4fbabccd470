"""Folds text of any script to comparable words, and says when two words are the same one."""

from __future__ import annotations

import re
import unicodedata

# Letters that do not decompose, and the alphabets that names are commonly romanised from.
_SPECIAL = dict(zip("łøđðħıœæþß", ("l", "o", "d", "d", "h", "i", "oe", "ae", "th", "ss"), strict=True))
_CYRILLIC = dict(
    zip(
        "абвгдежзийклмнопрстуфхцчшщъыьэюяєіїґ",
        "a b v g d e zh z i i k l m n o p r s t u f kh ts ch sh shch _ y _ e yu ya ye i i g".replace("_", "").split(
            " "
        ),
        strict=True,
    )
)
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        "a b g d e z i th i k l m n x o p r s s t y f ch ps o".split(),
        strict=True,
    )
)
_ROMAN = _SPECIAL | _CYRILLIC | _GREEK

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")


class _Folds(dict[int, str]):
    """What each character folds to, found once: one character at a time keeps hostile text linear."""

    def __missing__(self, code: int) -> str:
        bare = unicodedata.normalize("NFKD", chr(code).casefold())[:4]
        folded = "".join(_ROMAN.get(char, char) for char in bare if not unicodedata.combining(char))
        self[code] = folded = "" if unicodedata.category(chr(code)) == "Cf" else folded
        return folded


_folds = _Folds()


def fold(text: str) -> str:
    """Return `text` in small plain letters: no accents, no full-width forms, Cyrillic and Greek romanised."""
    return text.translate(_folds)


def words(folded: str) -> list[str]:
    """Return the words of folded text, numbers included; a Chinese or Japanese character is a word."""
    return _WORD.findall(folded)


def same_word(one: str, other: str) -> bool:
    """Whether two folded words are one word in different inflections or spellings."""
    if one == other:
        return True
    short, long = sorted((len(one), len(other)))
    if short < 4 or long - short > 4 or one[0] != other[0] or one.isdigit() or other.isdigit():
        return False
    stem = short - 1 if short < 6 else short - 2
    if one[:stem] == other[:stem]:
        return True
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(one, other, score_cutoff=2) <= (1 if short < 6 else 2)
