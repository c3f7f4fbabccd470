"""Recognises an answer that declines: the ways to say `I don't know` in several languages."""

from __future__ import annotations

import re

from .words import fold

_FEW = r"(?:\w+ ){0,3}"
"""Up to three words that may stand in between."""

_IS_NOT = r"(?:neni|nejsou|nie j[es]\w*|nebyl\w*|nebyva\w*)"
"""Czech and Slovak."""

# Over folded text: small letters, no accents, Cyrillic romanised. By language; one line a way of saying it.
_PHRASES = {
    "English": (
        rf"\b(?:do|did|does)(?: not|n't) {_FEW}(?:know|have|recall|find|possess)\b|\bdont know\b",
        rf"\b(?:can't|can ?not|could not|couldn't) {_FEW}(?:find|verify|determine|provide|answer|confirm|recall)\b",
        rf"\b(?:can't|can ?not|could not|couldn't) {_FEW}(?:access|identify|say|tell|establish|assist|help|browse)\b",
        r"\b(?:unable to|not able to) (?:find|verify|determine|provide|answer|confirm|access|identify|say)\b",
        rf"\b(?:is|are|was|were)(?: not|n't) {_FEW}(?:available|known|documented|specified|disclosed|recorded|clear)\b",
        rf"\b(?:is|are|was|were)(?: not|n't) {_FEW}(?:provided|sure|certain|aware|familiar|mentioned|public|found)\b",
        r"\b(?:i'm|i am|we are|we're) (?:not |un)(?:\w+ )?(?:sure|certain|aware|familiar|able)\b|\bnot sure\b",
        rf"\bno {_FEW}(?:information|records?|data|details|evidence|sources?|answer|knowledge|idea)\b",
        r"\b(?:sorry|apologi[sz]e|unknown|as an ai|insufficient|need more (?:context|information))\b",
        rf"\bwithout {_FEW}(?:access|information|researching|browsing|context)\b",
    ),
    "Czech and Slovak": (
        r"\b(?:nemohu|nemuzu|nemozem|nedokaz\w+|neznam\w*|nepozna\w+|nevim|neviem|nemam\w*|nelze|netusim|nenasel)\b",
        rf"\b{_IS_NOT} (?:\w+ ){{0,5}}(?:znam|dostupn|uveden|doloz|z?dokument|verejn|specifik|jasn|jist|zmin|zaznamen)",
        rf"\b{_IS_NOT} (?:\w+ ){{0,5}}k dispozici",
        rf"\bbez {_FEW}(?:pristupu|kontextu|konkretnich|dalsich|informaci|udaju)",
        r"\b(?:neexistuj\w+|nemaj\w*|neobsahuj\w+|neuvad\w+|chybi) (?:\w+ ){0,4}(?:informac|zaznam|udaj|data|zdroj)",
        rf"\b(?:zadne|nedostatek) {_FEW}(?:informac|zaznam|udaj)|\b(?:je mi lito|omlouvam|lutujem)\b",
        r"\bdoporuc(?:uj|il)\w+|\bnejlepsi (?:\w+ ){0,2}(?:vyhledat|overit|podivat)",
        r"\b(?:mohl\w*|muzete) (?:\w+ )?upresnit",
    ),
    "Polish": (
        r"\bnie (?:wiem|znam|moge|mam (?:\w+ ){0,2}(?:informacji|danych|dostepu))",
        r"\bnie jestem (?:\w+ )?(?:w stanie|pewien|pewna)|\b(?:przykro mi|przepraszam)\b",
    ),
    "German": (
        r"\b(?:weiss|kenne) (?:ich |es |das |die antwort )*(?:leider )?nicht\b|\btut mir leid\b|\bunbekannt\b",
        rf"\bkeine {_FEW}(?:informationen|angaben|ahnung|daten)",
        r"\bnicht (?:offentlich |genau )?(?:bekannt|dokumentiert)",
        r"\b(?:kann|konnte|konnen) (?:\w+ ){0,6}nicht (?:\w+ )?(?:beantworten|sagen|finden|bestatigen|ermitteln)",
        r"\bbin (?:mir )?(?:\w+ )?nicht sicher\b",
    ),
    "Dutch": (
        rf"\bweet (?:ik )?(?:het )?niet\b|\bgeen {_FEW}(?:informatie|idee|gegevens)",
        r"\b(?:niet bekend|onbekend|spijt me)\b",
    ),
    "French": (
        r"\b(?:ne |n')(?:\w+ )?(?:sais|connais|peux|dispose|trouve|suis|ai|est|etait|a) (?:\w+ ){0,2}(?:pas|aucun)",
        r"\b(?:desolee?|inconnue?s?)\b|\baucune (?:\w+ )?information",
    ),
    "Spanish": (
        r"\bno (?:l[oa] |se |me |te )?(?:conozco|puedo|tengo|dispongo|encuentro|recuerdo|estoy segur|consta)",
        r"\b(?:no lo se|no se (?:la|el|cual|que|quien|si|cuando|sabe|conoce)|no hay (?:\w+ )?(?:informacion|datos))\b",
        r"\b(?:lo siento|disculp\w+|desconozco|desconocid[oa]s?|lamento)\b|^no se\W*$",
    ),
    "Portuguese": (
        r"\bnao (?:\w+ )?(?:sei|conheco|posso|tenho|consigo|encontrei|estou cert|e (?:\w+ )?(?:conhecid|public))",
        r"\bnao ha (?:\w+ )?(?:informac|dados)|\b(?:desculpe|desconhecid[oa]|desconheco)\b",
    ),
    "Italian": (
        r"\bnon (?:l[oa] |ne )?(?:so\b|conosco|posso|ho\b|dispongo|trovo|sono sicur|e (?:\w+ )?(?:not|disponibil))",
        r"\b(?:mi dispiace|sconosciut[oa])\b|\bnon ci sono (?:\w+ )?(?:informazion|dati)",
    ),
    "Russian and Ukrainian": (
        r"\bne (?:\w+ )?(?:znayu|mogu|uveren|izvestn|udalos|raspolagayu|imeyu|nashel|znaiu|mozhu|vidomo)|\bneizvestn",
        r"\bizvinite\b|\bk sozhaleniyu\b|\bnet (?:\w+ )?(?:informatsii|dannykh|svedenii|dostupa)",
    ),
    "Chinese": (
        r"不知道|不清楚|不确定|不太清楚|抱歉|对不起|未知|不详|不了解",
        r"无法(?:确定|回答|提供|查|得知|确认|找到|给出)|没有(?:找到|相关|足够|具体|关于|公开|明确)",
    ),
    "Japanese": (
        fold("わかりません|分かりません|わからない|分からない|申し訳|存じません|不明"),
        fold("情報が(?:あり|見つかり)ません"),
    ),
}
_REFUSAL = re.compile("|".join(phrase for phrases in _PHRASES.values() for phrase in phrases))
_APOSTROPHES = str.maketrans("’‘`´ʼ＇", "''''''")


def is_refusal(folded: str) -> bool:
    """Whether folded text says, somewhere, that the answer is not known or cannot be given."""
    return _REFUSAL.search(folded.translate(_APOSTROPHES)) is not None
