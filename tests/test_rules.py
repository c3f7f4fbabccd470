"""The rules judge: what it takes for the same answer, in any language, and how far it agrees with a model judge."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pytest_simpleqa.judges.dates import Date, dates
from pytest_simpleqa.judges.numbers import numbers
from pytest_simpleqa.judges.refusals import is_refusal
from pytest_simpleqa.judges.rules import judge_by_rules
from pytest_simpleqa.judges.words import fold, same_word
from pytest_simpleqa.records import Verdict

from .benchmarks.judge_agreement import compare, read_runs

CORRECT, INCORRECT, NOT_ATTEMPTED = Verdict.CORRECT, Verdict.INCORRECT, Verdict.NOT_ATTEMPTED


@pytest.mark.parametrize(
    ("question", "gold", "predicted", "verdict"),
    [
        ("Who?", "Malia and Sasha", "sasha and malia obama", CORRECT),
        ("Who?", "Malia and Sasha", "Malia, Jackie.", INCORRECT),
        ("Who?", "Michio Sugeno", "The first one was **Michio Sugeno**.", CORRECT),
        ("Who?", "Michio Sugeno", "It was Hiroshi Tanaka.", INCORRECT),
        ("Who?", "Jurgen Aschoff", "Jürgen Aschoff", CORRECT),
        ("Who?", "Łukasz Żal", "lukasz zal", CORRECT),
        ("Who?", "Hyung Won Chong", "Hyung Won Choong", CORRECT),
        ("Who?", "Lilian Masediba Ngoyi", "It was Lilian Ngoyi.", CORRECT),
        ("Kdo?", "John Wesley Fletcher", "Obvinila pastora Johna Wesleyho Fletchera.", CORRECT),
        ("Kdo?", "Ted Cruz.", "Podpořil Teda Cruze.", CORRECT),
        ("Ve kterém městě?", "Amsterdam", "Setkala se s ním v Amsterdamu.", CORRECT),
        ("Кто?", "Лев Толстой", "Роман написал Лев Николаевич Толстой.", CORRECT),
        ("Who?", "Лев Толстой", "Lev Tolstoy", CORRECT),
        ("首都是哪里?", "北京", "中国的首都是北京。", CORRECT),
        ("首都是哪里?", "北京", "上海", INCORRECT),
        ("Which school?", "Nyeri High School", "Alliance High School", INCORRECT),
        ("Which organisation?", "International Sport Kickboxing Association (ISKA)", "The ISKA", CORRECT),
        ("In which key?", "F major", "It is in G major.", INCORRECT),
        ("Which road?", "SH207", "State highway SH-207", CORRECT),
        ("Which snapshot?", "21w11a", "It was snapshot 21w10a.", INCORRECT),
        ("Which DOI?", "10.1515/cllt-2021-0018", "It is 10.1515/cllt-2021-0018.", CORRECT),
        ("Which DOI?", "10.1515/cllt-2021-0018", "It is 10.1515/cllt-2021-0019.", INCORRECT),
        ("Which band?", "The The", "It was The The.", CORRECT),
        ("Which band?", "The The", "It was The Who.", INCORRECT),
        ("Which symbol?", "?", "The full stop.", INCORRECT),
        ("Which patch?", "1.4.4", "Patch 1.4.4.1", INCORRECT),
        ("Which patch?", "Patch 1.11.1", "Patch 1.12.0", INCORRECT),
    ],
)
def test_names_and_words(question: str, gold: str, predicted: str, verdict: Verdict) -> None:
    """A name counts in any case, spelling or inflection near enough; a different one does not."""
    assert judge_by_rules(question, gold, predicted) is verdict


@pytest.mark.parametrize(
    ("gold", "predicted", "verdict"),
    [
        ("120k", "115,000", CORRECT),
        ("120 000", "115 000", CORRECT),
        ("120 000", "113 000", INCORRECT),
        ("70 435 diváků", "70,435 spectators", CORRECT),
        ("$321 500", "US$ 321.500", CORRECT),
        ("1234", "1’234 Franken", CORRECT),
        ("25,5", "about 25.5 %", CORRECT),
        ("61.4", "61 degrees", CORRECT),
        ("50.16", "50,2 %", CORRECT),
        ("10 million", "10.000.000", CORRECT),
        ("3", "They had three children.", CORRECT),
        ("Dvě", "Měli spolu 2 děti.", CORRECT),
        ("Third", "He came in 3rd.", CORRECT),
        ("1987", "1988", INCORRECT),
        ("1987", "It was 1987 or 1988.", INCORRECT),
        ("1963", "It opened in 1963.", CORRECT),
        ("1962-1965", "mezi roky 1962 a 1965", CORRECT),
        ("2", "five", INCORRECT),
        ("150 (acceptable range: anything between 148 and 152)", "About 149.", CORRECT),
        ("150 (acceptable range: anything between 148 and 152)", "About 153.", INCORRECT),
        ("1142 feet (acceptable range: anything between 1130 and 1154 feet)", "1,131 ft", CORRECT),
    ],
)
def test_numbers(gold: str, predicted: str, verdict: Verdict) -> None:
    """A number counts in any notation, to the precision of the coarser side; a different one contradicts."""
    assert judge_by_rules("How many?", gold, predicted) is verdict


def test_a_number_of_the_question_is_no_answer() -> None:
    """A number that the answer only repeats from the question does not match the gold."""
    question = "On 2 August 2017, to how many years was she sentenced?"
    assert judge_by_rules(question, "2", "On 2 August 2017 she was sentenced to five years.") is INCORRECT


@pytest.mark.parametrize(
    ("question", "gold", "predicted", "verdict"),
    [
        ("On what date?", "5th September, 2011", "September 5, 2011", CORRECT),
        ("On what date?", "5 September 2011", "2011-09-05", CORRECT),
        ("On what date?", "5 September 2011", "5.9.2011", CORRECT),
        ("On what date?", "5 September 2011", "5. září 2011", CORRECT),
        ("On what date?", "5 September 2011", "am 5. September 2011", CORRECT),
        ("On what date?", "5 September 2011", "le 5 septembre 2011", CORRECT),
        ("On what date?", "5 September 2011", "el 5 de septiembre de 2011", CORRECT),
        ("On what date?", "5 September 2011", "5 września 2011", CORRECT),
        ("On what date?", "5 September 2011", "5 сентября 2011 года", CORRECT),
        ("On what date?", "5 September 2011", "2011年9月5日", CORRECT),
        ("On what date?", "5 September 2011", "6 September 2011", INCORRECT),
        ("On what date?", "5 September 2011", "2011", INCORRECT),
        ("In what year?", "5 September 2011", "In 2011.", CORRECT),
        ("In what month and year?", "5 September 2011", "In September 2011.", CORRECT),
        ("In what month and year?", "5 September 2011", "In October 2011.", INCORRECT),
        ("Ve kterém měsíci?", "Říjen", "V říjnu 1993.", CORRECT),
    ],
)
def test_dates(question: str, gold: str, predicted: str, verdict: Verdict) -> None:
    """A date counts in any order and language, as far as the question asks for it."""
    assert judge_by_rules(question, gold, predicted) is verdict


@pytest.mark.parametrize(
    "predicted",
    [
        "",
        "  \n",
        "...",
        "I don't know.",
        "I don’t know",
        "I'm not sure.",
        "I'm sorry, but I cannot help with that.",
        "Without researching the web, I cannot answer this question.",
        "I could not verify the date from the sources available.",
        "Nevím.",
        "Odpověď na otázku zatím neznám.",
        "Jeho jméno není veřejně známé.",
        "Neviem.",
        "Nie wiem.",
        "Ich weiß es nicht.",
        "Das kann ich leider nicht beantworten.",
        "Je ne sais pas.",
        "Je n’ai pas d'information.",
        "No lo sé.",
        "Lo siento, no tengo esa información.",
        "Não sei.",
        "Non lo so.",
        "Ik weet het niet.",
        "Я не знаю.",
        "К сожалению, нет информации.",
        "我不知道。",
        "抱歉，无法确定。",
        "わかりません。",
        "申し訳ありませんが、情報がありません。",
    ],
)
def test_empty_answers_and_refusals_are_not_attempted(predicted: str) -> None:
    """An empty answer and a refusal, in many languages and with any apostrophe, are not attempted."""
    assert judge_by_rules("Who won the prize?", "Michio Sugeno", predicted) is NOT_ATTEMPTED


def test_the_question_said_again_is_not_attempted() -> None:
    """An answer that adds no word of its own to the question attempts nothing."""
    question = "Which high school in Michigan did Dan Kloeffler attend in 1994?"
    predicted = "Dan Kloeffler did attend high school in Michigan in 1994."
    assert judge_by_rules(question, "Algonac High School", predicted) is NOT_ATTEMPTED


@pytest.mark.parametrize("text", ["Jose Nolasco", "Know-Nothing Party", "The Unknowns", "Weissensee", "Nonna", "2011"])
def test_a_plain_answer_is_no_refusal(text: str) -> None:
    """Names that merely look like parts of a refusal are answers."""
    assert not is_refusal(fold(text))


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("21 September 15 people came", Date(21, 9, None)),
        ("May 1999", Date(None, 5, 1999)),
        ("červenec 2000", Date(None, 7, 2000)),
        ("v červnu 2000", Date(None, 6, 2000)),
        ("the 3rd of March 1981", Date(None, 3, 1981)),
    ],
)
def test_dates_are_read_around_the_month(text: str, date: Date) -> None:
    """Day and year are the numbers beside the month's name."""
    assert dates(fold(text))[0].month == date.month
    assert dates(fold(text))[0].year == date.year


def test_numbers_keep_every_reading() -> None:
    """`1.234` may be a thousand or one; `1 234,5` is one number."""
    assert [number.values for number in numbers("1.234")] == [{1.234, 1234.0}]
    assert [number.values for number in numbers("1 234,5")] == [{1234.5}]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("fletcher", "fletchera", True), ("cruz", "cruze", True), ("sob", "sobu", True), ("perry", "smith", False)],
)
def test_inflected_words_are_the_same(one: str, other: str, same: bool) -> None:
    """Endings of inflected languages do not make another word."""
    assert same_word(one, other) is same


@pytest.mark.parametrize(
    "predicted",
    [
        "a" * 1_000_000,
        "1 " * 500_000,
        "je ne " * 160_000,
        "\u0315\u0300" * 500_000,
        "1,2" * 300_000,
        "May 1 " * 160_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_hostile_answers_are_capped(predicted: str) -> None:
    """A megabyte of anything costs no more than a short answer's time many times over."""
    start = time.perf_counter()
    judge_by_rules("Who said may 1?", "Amy Maybe, 1 May 2001", predicted)
    assert time.perf_counter() - start < 1


def test_the_end_of_a_long_answer_is_read() -> None:
    """The conclusion of a long answer counts."""
    assert judge_by_rules("Who?", "Michio Sugeno", "blah " * 10_000 + "Short answer: Michio Sugeno.") is CORRECT


@pytest.mark.parametrize(
    ("name", "agreement", "kappa", "recall"),
    [("gpt-4o-2024-11-20.csv.gz", 0.94, 0.87, 0.90), ("gpt-4o-mini-2024-07-18.csv.gz", 0.96, 0.79, 0.86)],
)
def test_agreement_with_a_model_judge(
    shared_data: Path, name: str, agreement: float, kappa: float, recall: float
) -> None:
    """On 4,326 real answers the rules agree with the recorded verdicts at least this well, and quickly."""
    [(_, rows)] = read_runs(shared_data / "runs" / name)
    result = compare(rows)
    assert result.n == 4326
    assert result.agreement >= agreement
    assert result.kappa >= kappa
    assert result.recall >= recall
    assert result.seconds / result.n < 0.003


def test_agreement_on_english_answers_with_sources(shared_data: Path) -> None:
    """On long English answers with sources nine in ten verdicts agree."""
    runs = sorted((shared_data / "runs").glob("simpleqa_*_n30.json"))
    rows = [row for path in runs for _, rows in read_runs(path) for row in rows]
    result = compare(rows)
    assert result.n == 120
    assert result.agreement >= 0.9
