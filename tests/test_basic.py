"""OpenAI Evals' basic comparisons, and the judges that apply them to any dataset."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_simpleqa.errors import SpecError
from pytest_simpleqa.judges.basic import (
    basic_judge,
    fuzzy_match,
    ideals_of,
    includes,
    is_json,
    json_match,
    match,
    normalised,
    token_f1,
)
from pytest_simpleqa.records import Judgement, Prompt, Question, Reply, Verdict

PARIS = Question("q0001", "Capital of France?", "Paris")


def judged(name: str, predicted: str, question: Question = PARIS, params: Mapping[str, Any] | None = None) -> Judgement:
    """Return what the judge `name` makes of `predicted`; it asks no model."""

    async def never(prompt: Prompt) -> Reply:
        raise AssertionError("a basic judge asks no model")

    judge = basic_judge(name, {"temperature": 0, **(params or {})}, [question])
    return asyncio.run(judge.judge(question, predicted, never))


# -- comparisons -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "ideals", "picked"),
    [
        ("Paris, France", ["Paris"], "Paris"),
        ("Parisian", ["Paris"], "Paris"),
        ("The answer is Paris", ["Paris"], None),
        (" Paris", ["Paris"], None),
        ("paris", ["Paris"], None),
        ("Pari", ["Paris"], None),
        ("B. because", ["A", "B"], "B"),
        ("AB", ["A", "AB"], "A"),
        ("anything", [""], ""),
        ("anything", [], None),
        ("東京都", ["東京"], "東京"),
        ("cafe\u0301", ["caf\u00e9"], None),
        ("\U0001f600!", ["\U0001f600"], "\U0001f600"),
    ],
)
def test_match_looks_at_the_beginning(predicted: str, ideals: Sequence[str], picked: str | None) -> None:
    """The first ideal that begins the answer is picked: no trimming, no folding, an empty ideal fits all."""
    assert match(predicted, ideals) == picked


@pytest.mark.parametrize(
    ("predicted", "ideals", "exact", "any_case"),
    [
        ("It is Paris.", ["Paris"], True, True),
        ("it is paris", ["Paris"], False, True),
        ("comparison", ["paris"], True, True),
        ("London", ["Paris", "Rome"], False, False),
        ("London", ["Paris", "London"], True, True),
        ("London", [""], True, True),
        ("London", [], False, False),
        ("STRASSE", ["straße"], False, False),
        ("İstanbul", ["i̇stanbul"], False, True),
    ],
)
def test_includes_looks_anywhere(predicted: str, ideals: Sequence[str], exact: bool, any_case: bool) -> None:
    """An ideal anywhere in the answer counts, inside a word too; case is folded by `lower` alone."""
    assert includes(predicted, ideals) is exact
    assert includes(predicted, ideals, ignore_case=True) is any_case


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Eiffel-Tower!", "eiffeltower"),
        ("a  Man,\n an  apple", "man apple"),
        ("than another theme", "than another theme"),
        ("the", ""),
        ("?!", ""),
        ("“Über” – naïve", "“über” – naïve"),
        ("a\u00a0b", "b"),
        ("a-b", "ab"),
        ("U.S.A.", "usa"),
    ],
)
def test_texts_are_normalised_as_squad_does(text: str, normal: str) -> None:
    """Case, ASCII punctuation, English articles and spare blanks go, in this order; other marks stay."""
    assert normalised(text) == normal


@pytest.mark.parametrize(
    ("predicted", "ideals", "hit", "f1"),
    [
        ("world", ["world"], True, 1.0),
        ("world", ["foo"], False, 0.0),
        ("world", ["some foo world", "dummy"], True, 0.5),
        ("It is the Nile.", ["Nile"], True, 0.5),
        ("Ni", ["Nile"], True, 0.0),
        ("", ["Nile"], False, 0.0),
        ("the", ["a"], True, 0.0),
        ("Nile", ["the"], False, 0.0),
        ("red red blue", ["red red green"], False, 2 / 3),
        ("x", [], False, 0.0),
        ("Zürich", ["zürich"], True, 1.0),
    ],
)
def test_fuzzy_match_takes_either_in_the_other(predicted: str, ideals: Sequence[str], hit: bool, f1: float) -> None:
    """Either may contain the other, letter by letter; nothing matches nothing alone; F1 counts shared words."""
    assert fuzzy_match(predicted, ideals) is hit
    assert token_f1(predicted, ideals) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("predicted", "ideals", "same"),
    [
        ('{"a": 1, "b": [1, 2]}', ['{ "b": [1,2],\n"a": 1 }'], True),
        ('{"a": 1.0}', ['{"a": 1}'], True),
        ('{"a": 1}', ['{"a": 1, "b": 2}'], False),
        ('{"a": 1, "b": 2}', ['{"a": 1}'], False),
        ('{"a": [1, 2]}', ['{"a": [2, 1]}'], False),
        ('{"a": []}', ['{"a": [1]}'], False),
        ('{"a": 2}', ['{"a": 1}', '{"a": 2}'], True),
        ('{"a": 1', ['{"a": 1}'], False),
        ('Here: {"a": 1}', ['{"a": 1}'], False),
        ('```json\n{"a": 1}\n```', ['{"a": 1}'], False),
        ("null", ["null"], False),
        ('{"a": null}', ['{"a": null}'], False),
        ("true", ["1"], True),
        ('"Zu\\u0308rich"', ['"Z\u00fcrich"'], False),
        ('"\\u00fc"', ['"ü"'], True),
        ("[]", ["{}"], False),
        ("{}", ["{}"], True),
        ("", ['""'], False),
        ("1", [], False),
        ("[" * 100_000, ["[]"], False),
        ("9" * 5000, ["9"], False),
    ],
)
def test_json_match_compares_structure(predicted: str, ideals: Sequence[str], same: bool) -> None:
    """Order of keys and white space do not count; what is no JSON never matches, and `null` nothing."""
    assert json_match(predicted, ideals) is same


def test_an_ideal_that_is_no_json_is_said() -> None:
    """The fault is the dataset's, not the answer's."""
    with pytest.raises(ValueError):
        json_match("1", ["one"])


@pytest.mark.parametrize(("text", "valid"), [("{}", True), ("1", True), ("nil", False), ("[" * 100_000, False)])
def test_json_is_told_from_text(text: str, valid: bool) -> None:
    """Any one JSON value is JSON; what nests too deeply to be read is not."""
    assert is_json(text) is valid


# -- judges on any dataset -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("match", "Paris!", "It is Paris"),
        ("includes", "It is Paris", "It is paris"),
        ("fuzzy_match", "it's paris", "Rome"),
    ],
)
def test_the_gold_is_the_ideal(name: str, right: str, wrong: str) -> None:
    """On any dataset the judge compares with the gold answer, and gives one of two verdicts."""
    assert judged(name, right).verdict is Verdict.CORRECT
    assert judged(name, wrong).verdict is Verdict.INCORRECT


def test_rows_carry_what_the_comparison_found() -> None:
    """The ideal that was picked and the F1 stand in the row."""
    assert judged("match", "Paris!").extra == {"picked": "Paris"}
    assert judged("fuzzy_match", "it is Paris").extra == {"f1_score": 0.5}


def test_a_listed_ideal_counts_too() -> None:
    """A row whose ideals are a list accepts each; a list beside another gold column does not."""
    listed = Question("q1", "?", "Paris", metadata={"ideal": ["Paris ", "Lutetia"]})
    assert list(ideals_of(listed)) == ["Paris", "Lutetia"]
    assert judged("match", "Lutetia", listed).verdict is Verdict.CORRECT
    assert list(ideals_of(Question("q1", "?", "Rome", metadata={"ideal": ["Paris", "Lutetia"]}))) == ["Rome"]


def test_includes_takes_its_argument() -> None:
    """`ignore_case=true` is a parameter of the judge, and stands in its description."""
    assert judged("includes", "paris", params={"ignore_case": True}).verdict is Verdict.CORRECT
    assert basic_judge("includes", {"ignore_case": True}, []).describe()["params"] == {"ignore_case": True}


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("includes", {"ignore_case": "yes"}, r"--judge-llm-param ignore_case=yes: wanted true or false"),
        ("match", {"ignore_case": True}, r"--judge-llm-param ignore_case=True: match takes no parameter"),
        ("includes", {"top_p": 1}, r"--judge-llm-param top_p=1: includes takes ignore_case"),
        ("json_match", {}, r"--judge-llm json_match: q0001: the gold answer 'Paris' is not JSON"),
    ],
)
def test_mistakes_are_told_before_anything_is_asked(name: str, params: Mapping[str, Any], message: str) -> None:
    """A parameter that the judge has not, and a gold that it cannot compare with, end the session at its start."""
    with pytest.raises(SpecError, match=message):
        basic_judge(name, params, [PARIS])
