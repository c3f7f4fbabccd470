"""Recognises an answer that declines: the ways to say `I don't know` in several languages."""

from __future__ import annotations

import re

# Over folded text (small letters, no accents, romanised), apostrophes unified. One line a thought:
# not knowing, not being able, no information, apology, referral.
_PHRASES = (
    # English
    r"\b(?:do not|don't|dont|did not|didn't) (?:\w+ ){0,2}(?:know|have|recall|find|possess)\b",
    r"\b(?:cannot|can't|can not|could not|couldn't|unable to|not able to) (?:\w+ ){0,2}"
    r"(?:find|verify|determine|provide|answer|confirm|access|identify|locate|say|recall|tell|establish|assist|help|browse)\b",
    r"\b(?:is|are|was|were)(?: not|n't) (?:\w+ ){0,3}(?:available|known|documented|specified|disclosed|recorded|clear|provided|sure|certain|"
    r"aware|familiar|mentioned|public|found)\b",
    r"\b(?:i'm|i am|we are|we're) (?:not|un)\s?(?:\w+ )?(?:sure|certain|aware|familiar|able)\b",
    r"\bno (?:\w+ ){0,3}(?:information|records?|data|details|evidence|sources?|answer|knowledge|idea)\b",
    r"\b(?:sorry|apologi[sz]e|unknown|need more (?:context|information)|as an ai|knowledge cut-?off|insufficient|without (?:\w+ ){0,2}(?:access|information|research"
    r"|browsing|context))",
    # Czech and Slovak
    r"\b(?:nemohu|nemuzu|nemozem|nedokaz\w+|neznam\w*|nevim|neviem|nemam\w*|nelze|neumim|netusim|nenasel|nenalez\w+)\b",
    r"\b(?:neni|nejsou|nie je|nebyl\w*|nebyva\w*|neni mi) (?:\w+ ){0,5}"
    r"(?:znam\w*|dostupn\w*|uveden\w*|doloz\w*|zdokument\w*|dokument\w*|verejn\w*|specifik\w*|jasn\w*|jist\w*|zmin\w*|zaznamen\w*|k dispozici)",
    r"\bbez (?:\w+ ){0,2}(?:pristupu|kontextu|konkretnich|dalsich|informaci|udaju)",
    r"\b(?:neexistuj\w+|nemaj\w*|neobsahuj\w+|neuvad\w+|chybi) (?:\w+ ){0,4}(?:informac\w*|zaznam\w*|udaj\w*|data|zdroj\w*)",
    r"\b(?:zadne|nedostatek) (?:\w+ ){0,2}(?:informac\w+|zaznam\w*|udaj\w*)|\b(?:je mi lito|omlouvam|lutujem)\b",
    r"\b(?:doporucuj\w+|doporucil\w*)\b|\bnejlepsi (?:\w+ ){0,2}(?:vyhledat|overit|podivat)|\b(?:mohl\w*|muzete) (?:\w+ )?(?:upresnit|specifikovat)",
    # Polish
    r"\bnie (?:wiem|znam|moge|mam (?:\w+ ){0,2}(?:informacji|danych|dostepu)|jestem (?:\w+ )?(?:w stanie|pewien|pewna))|\bprzykro mi|\bprzepraszam",
    # German and Dutch
    r"\b(?:weiss|kenne|kann|konnte|habe|liegen|ist|sind|bin) (?:\w+ ){0,6}(?:nicht|keine\w*|leider)\b(?=.{0,90}(?:bekannt|sicher|wissen|informationen|"
    r"angaben|beantworten|sagen|finden|bestatigen|ermitteln|dokumentiert|daten|zugriff|$))",
    r"\b(?:weiss (?:ich |es )?(?:leider )?nicht|tut mir leid|entschuldigung|keine (?:\w+ ){0,2}(?:informationen|angaben|ahnung|daten)|nicht (?:offentlich )?bekannt|unbekannt)",
    r"\b(?:weet (?:ik )?(?:het )?niet|geen (?:\w+ )?(?:informatie|idee|gegevens)|niet bekend|onbekend|het spijt me|kan (?:\w+ ){0,3}niet)",
    # French
    r"\b(?:je )?(?:ne|n') ?(?:le |la |les |me )?(?:sais|connais|peux|dispose|trouve|possede|suis|ai) (?:\w+ )?pas\b",
    r"\bn'(?:est|ai|a|y a|etait|ont) (?:\w+ )?(?:pas|aucun\w*)\b|\b(?:desole|aucune (?:\w+ )?information|inconnu\w*)\b",
    # Spanish, Portuguese, Italian
    r"\bno (?:lo |la |se |me |te )?(?:se|conozco|puedo|tengo|dispongo|encuentro|encontre|recuerdo|hay|existe\w*|esta|consta)\b(?: |\.|,|$)",
    r"\bnao (?:\w+ )?(?:sei|conheco|posso|tenho|consigo|encontrei|ha|existe\w*|esta|e (?:\w+ )?(?:conhecid|public)\w*)\b",
    r"\bnon (?:\w+ )?(?:so|conosco|posso|ho|sono|dispongo|trovo|e (?:\w+ )?(?:not|disponibil|pubblic|chiar)\w*|ci sono|esistono)\b",
    r"\b(?:lo siento|disculp\w+|desconozco|desconocid\w+|desculpe|lamento|desconhecid\w+|mi dispiace|sconosciut\w+)\b",
    # Russian and Ukrainian, romanised
    r"\bne (?:\w+ )?(?:znayu|mogu|uveren\w*|izvestn\w*|udalos|raspolagayu|imeyu|nashel|znaiu|mozhu|vidomo)\b|\bneizvestn\w+|\bizvinite|\bk sozhaleniyu",
    r"\bnet (?:\w+ )?(?:informatsii|dannykh|svedenii|dostupa)",
    # Chinese and Japanese
    r"不知道|不清楚|不确定|不太清楚|无法(?:确定|回答|提供|查|得知|确认|找到|给出)|没有(?:找到|相关|足够|具体|关于|公开|明确)|抱歉|对不起|未知|不详|不了解",
    r"わかりません|分かりません|わからない|分からない|不明|申し訳|存じません|情報が(?:あり|見つかり)ません",
)
_REFUSAL = re.compile("|".join(_PHRASES))
_APOSTROPHES = str.maketrans("’‘`´ʼ＇", "''''''")


def is_refusal(folded: str) -> bool:
    """Whether folded text says, somewhere, that the answer is not known or cannot be given."""
    return _REFUSAL.search(folded.translate(_APOSTROPHES)) is not None
