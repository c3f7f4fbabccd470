"""Folds text of any script to comparable words, and says when two words are the same one."""

from __future__ import annotations

import re
import unicodedata

# Letters that do not decompose, and the alphabets that names are commonly romanised from.
_SPECIAL = dict(zip("łøđðħıœæþß", ("l", "o", "d", "d", "h", "i", "oe", "ae", "th", "ss"), strict=True))
_CYRILLIC_ROMAN = "a b v g d e zh z i i k l m n o p r s t u f kh ts ch sh shch - y - e yu ya ye i i g"
_CYRILLIC = dict(zip("абвгдежзийклмнопрстуфхцчшщъыьэюяєіїґ", _CYRILLIC_ROMAN.split(), strict=True)) | {"ъ": "", "ь": ""}
_GREEK_ROMAN = "a b g d e z i th i k l m n x o p r s s t y f ch ps o"
_GREEK = dict(zip("αβγδεζηθικλμνξοπρσςτυφχψω", _GREEK_ROMAN.split(), strict=True))
_ROMAN = _SPECIAL | _CYRILLIC | _GREEK

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")


# Words that any answer may hold: they tell nothing.
_LITTLE_WORDS = """
a an the of and in on at to for by with from or is was de la le les el los las del der die das den dem des und von van
zu im am et du en y e o u i v ve na do od z ze s se k ke po pro za di da dos il lo gli w dr mr mrs ms sir
"""
# Words for the kind of a thing, which rival answers share: they tell little.
_KIND_WORDS = """
high school university college institute academy museum gallery award prize medal center centre hotel society
association organization organisation national international company corporation river lake mountain street road
avenue church cathedral hospital station airport house park county city state district village province minister
president king queen prince princess lord lady professor saint first second american british department ministry
journal press magazine festival univerzita skola institut akademie muzeum galerie cena spolecnost asociace reka jezero
ulice kostel nemocnice stanice okres mesto stat vesnice kraj ministr prezident prezidentka kral kralovna princ
princezna profesor svaty universitat schule preis gesellschaft fluss strasse kirche krankenhaus stadt universite ecole
prix societe rue ville universidad escuela premio sociedad rio calle iglesia ciudad universita scuola citta
"""
_LITTLE = frozenset(_LITTLE_WORDS.split())
_KINDS = frozenset(_KIND_WORDS.split())

# A letter before a digit, or a version of three parts and more.
_CODE = re.compile(r"(?<![^\W_])(?:\w*[^\W\d_]-?\d\w*(?:-\d\w*)*|\d+(?:\.\d+){2,}\w*)")


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
    if short == 3 and long <= 5 and one[:3] == other[:3]:
        return not one.isdigit() and not other.isdigit()
    if short < 4 or long - short > 4 or one[0] != other[0] or one.isdigit() or other.isdigit():
        return False
    stem = short - 1 if short < 6 else short - 2
    if one[:stem] == other[:stem]:
        return True
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(one, other, score_cutoff=2) <= (1 if short < 6 else 2)


def codes(folded: str) -> set[str]:
    """Return what must be repeated to the letter, hyphens left out: `SH-207`, `21w11a`, version `1.11.1`."""
    return {match[0].replace("-", "") for match in _CODE.finditer(folded)}


def without_codes(folded: str) -> str:
    """Return folded text with its codes cut out."""
    return _CODE.sub(" ", folded)


def word_weights(text: str) -> list[tuple[str, float]]:
    """Return the folded words of a gold, numbers left out, with how much each of them tells.

    A word weighs its length, at least 3 (`F` of `F major` counts); little words weigh nothing, words for
    the kind of a thing and small words beside a name less than the name.
    """
    raw = [word for word in _raw_words(text) if not word.isdigit()]
    named = any(word[0].isupper() for word in raw[1:])
    return [(folded, _weight(word, folded, named)) for word in raw if (folded := fold(word))]


def is_long_name(text: str) -> bool:
    """Whether the text is a name of three words or more, known by its first and last (`Lilian Masediba Ngoyi`)."""
    raw = _raw_words(text)
    ends = {fold(word) for word in raw[:1] + raw[-1:]}
    return len(raw) > 2 and all(word[0].isupper() for word in raw) and not ends & (_KINDS | _LITTLE)


def _raw_words(text: str) -> list[str]:
    return words(unicodedata.normalize("NFC", text))


def _weight(word: str, folded: str, named: bool) -> float:
    if folded in _LITTLE and (len(word) > 1 or word.islower()):
        return 0
    is_kind = folded in _KINDS or (named and word[0].islower())
    return max(3, len(folded)) * (0.35 if is_kind else 1)
