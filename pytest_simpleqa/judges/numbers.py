"""Reads numbers in the notations of several languages, each as the set of values that it may mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = re.compile(
    r"(?<![^\W_])(?<![\d][.,])"
    r"(?P<whole>\d{1,3}(?:(?P<mark>[ \u00a0\u202f\u2009'’.,])\d{3})(?:(?P=mark)\d{3}){0,4}(?!\d)|\d{1,18})"
    r"(?P<fraction>[.,]\d{1,12}(?![\d]))?"
    r"(?:[ \u00a0-]?(?P<scale>[^\W\d_]+))?"
)

_SCALES = {
    1e3: "k thousand thousands tisic tisice tausend mille mil mila tysiac tysiace tysiecy duizend tysyach tysyachi",
    1e6: "m mn million millions milion miliony milionu millionen millones milhoes milioni milione milionow miljoen "
    "million millionov milliona",
    1e9: "bn billion billions miliarda miliardy miliard milliarde milliarden milliard milliards miliardi miljard "
    "milliard milliardov bilhoes",
    1e4: "万 萬",
    1e8: "亿 億",
    1e5: "lakh lakhs",
    1e7: "crore crores",
}
_SCALE_OF = {word: scale for scale, names in _SCALES.items() for word in names.split()}

# Numerals as words, folded; articles (`un`, `ein`) are left out, since they stand in any sentence.
_NUMERALS = """
0 zero nula null cero nul nol 零
1 one first once jeden jedna jedno jednou prvni eins erste ersten erster uno una primer primero premier premiere primo
   prima pierwszy een eerste odin pervyi 一 prvnim prvniho jednoho jednim jedne
2 two second twice dva dve dvou dvema druhy druha druhe zwei zweite zweiten deux deuxieme dos segundo segunda due
   secondo dois duas dwa dwie drugi twee tweede vtoroi 二 两 druhem druhou dvakrat dvojice zweimal twofold
3 three third tri treti trech drei dritte dritten trois troisieme tres tercero tercer tre terzo terceiro trzy trzeci
   drie derde tretii 三 trema tretim trikrat
4 four fourth ctyri ctyr ctvrty ctvrta ctvrte vier vierte vierten quatre quatrieme cuatro cuarto quattro quarto quatro
   cztery czwarty vierde chetyre 四 ctyrmi ctvrtem ctvrtou ctyrikrat
5 five fifth pet peti paty pata pate funf funfte cinq cinquieme cinco quinto cinque piec piaty vijf pyat 五 patem patou
   petkrat
6 six sixth sest sesti sesty sesta seste sechs sechste sixieme seis sexto sei sesto szesc szosty zes shest 六 sestem
   sestou
7 seven seventh sedm sedmi sedmy sedma sedme sieben siebte sept septieme siete septimo sette settimo sete siedem zeven
   sem 七 sedmem sedmou
8 eight eighth osm osmi osmy osma osme acht achte huit huitieme ocho octavo otto ottavo oito osiem vosem 八 osmem osmou
9 nine ninth devet deviti devaty devata devate neun neunte neuf neuvieme nueve noveno nove nono dziewiec negen devyat
   九 devatem devatou
10 ten tenth deset deseti desaty desata desate zehn zehnte dix dixieme diez decimo dieci dez dziesiec tien desyat 十
   desatem desatou
11 eleven eleventh jedenact jedenacti jedenacty elf elfte onze once undici jedenascie odinnadtsat
12 twelve twelfth dvanact dvanacti dvanacty zwolf zwolfte douze doce dodici doze dwanascie twaalf dvenadtsat
13 thirteen trinact dreizehn treize trece
14 fourteen ctrnact vierzehn quatorze catorce
15 fifteen patnact funfzehn quinze quince
16 sixteen sestnact sechzehn seize
17 seventeen sedmnact siebzehn
18 eighteen osmnact achtzehn
19 nineteen devatenact neunzehn
20 twenty dvacet zwanzig vingt veinte venti vinte
30 thirty tricet dreissig trente treinta trenta trinta
40 forty ctyricet vierzig quarante cuarenta
50 fifty padesat funfzig cinquante cincuenta
60 sixty sedesat sechzig soixante sesenta
100 hundred sto hundert cent cien cento 百
"""


def _numerals() -> dict[str, float]:
    table: dict[str, float] = {}
    value = 0.0
    for word in _NUMERALS.split():
        if word.isdigit() and word.isascii():
            value = float(word)
        else:
            table.setdefault(word, value)
    return table


NUMERAL_OF = _numerals()


_TOLERANCE = 0.02
"""The share by which rounding may move a number that is written with fewer decimals."""
_HAIR = 1e-6


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written."""

    values: frozenset[float]
    """What it may mean: `1.234` is 1.234 or 1234."""
    decimals: int
    """Digits behind the decimal mark; 0 where there is none or it may be a thousands mark."""
    start: int
    end: int

    def equals(self, other: Number) -> bool:
        """Whether both may mean one value."""
        return not self.values.isdisjoint(other.values)

    def rounds_to(self, gold: Number) -> bool:
        """Whether this is `gold` to the precision of the coarser of the two.

        `115 000` is a gold of `120 000`, `61` one of `61.4`; a count or a year is taken as exact.
        """
        if self.equals(gold):
            return True
        place = 10.0 ** -min(self.decimals, gold.decimals) if self.decimals != gold.decimals else 0.0
        return any(
            abs(mine - value) < max(min(place, _TOLERANCE * value), _last_place(value) / 2 + _HAIR)
            for value in gold.values
            for mine in self.values
        )


def _last_place(value: float) -> float:
    """Return the place of the last significant figure of a large round number, else a negative one."""
    digits = str(int(value))
    zeros = len(digits) - len(digits.rstrip("0"))
    return 10.0**zeros if value >= 10_000 and value == int(value) and 0 < zeros <= len(digits) - 2 else -1.0


def numbers(folded: str) -> list[Number]:
    """Return the numbers written in digits in folded text, in order."""
    return [_number(match) for match in _NUMBER.finditer(folded)]


def numeral(word: str) -> Number | None:
    """Return the number that a folded word means (`three`, `dva`), if it is one."""
    value = NUMERAL_OF.get(word)
    return None if value is None else Number(frozenset({value}), 0, 0, 0)


def _number(match: re.Match[str]) -> Number:
    whole, mark, fraction = match["whole"], match["mark"], match["fraction"] or ""
    digits = re.sub(r"\D", "", whole)
    values = {float(digits + fraction.replace(",", "."))}
    decimals = max(len(fraction) - 1, 0)
    if mark in (".", ",") and not fraction and whole.count(mark) == 1:
        values.add(float(whole.replace(mark, ".")))
    if len(fraction) == 4 and len(digits) <= 3 and not mark:
        values.add(float(digits + fraction[1:]))
    scale = _SCALE_OF.get(match["scale"] or "")
    if scale:
        values |= {round(value * scale, 6) for value in values}
    return Number(frozenset(values), decimals, match.start(), match.end("fraction") if fraction else match.end("whole"))
