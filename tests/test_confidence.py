"""How sure an answer says it is: the stated percentage, found and taken out."""

from __future__ import annotations

import pytest

from pytest_simpleqa.confidence import split_confidence


@pytest.mark.parametrize(
    ("text", "answer", "confidence"),
    [
        ("Canberra\nConfidence: 85%", "Canberra", 0.85),
        ("Canberra\n\n**Confidence:** 85 %", "Canberra", 0.85),
        ("Canberra\n**Confidence**: 85%", "Canberra", 0.85),
        ("**Canberra**\n**Confidence: 85%**", "**Canberra**", 0.85),
        ("Canberra\n- *Confidence:* **85%**.", "Canberra", 0.85),
        ("Canberra\n## Confidence: 85%", "Canberra", 0.85),
        ("Canberra\nconfidence = 85 percent", "Canberra", 0.85),
        ("Canberra\nCONFIDENCE: 85 per cent\n", "Canberra", 0.85),
        ("Canberra\nConfidence level: ~85%", "Canberra", 0.85),
        ("Canberra\nConfidence (0-100): 85", "Canberra", 0.85),
        ("Canberra\nConfidence (0-100%): 85/100", "Canberra", 0.85),
        ("Canberra\nConfidence: 0.85", "Canberra", 0.85),
        ("Canberra\nConfidence: 87,5 %", "Canberra", 0.875),
        ("Canberra\nConfidence：85％", "Canberra", 0.85),
        ("Canberra\nMy confidence is about 85%.", "Canberra", 0.85),
        ("Canberra. Confidence: 85%", "Canberra.", 0.85),
        ("Canberra (confidence: 85%)", "Canberra", 0.85),
        ("Canberra (confidence: 85%).", "Canberra", 0.85),
        ("Canberra, confidence 85%", "Canberra", 0.85),
        ("Answer: Canberra | Confidence: 85%", "Answer: Canberra", 0.85),
        ("Canberra\nConfidence: 100%", "Canberra", 1.0),
        ("Canberra\nConfidence: 0%", "Canberra", 0.0),
        ("Canberra\nConfidence: 0.5%", "Canberra", 0.005),
        ("Canberra\nI am 85% confident.", "Canberra", 0.85),
        ("Canberra. I'm about 85 percent sure.", "Canberra.", 0.85),
        ("Canberra, with 85% certainty", "Canberra", 0.85),
        ("Canberra\n85% confidence", "Canberra", 0.85),
        ("Canberra\n85%", "Canberra", 0.85),
        ("Canberra\n(85%)", "Canberra", 0.85),
        ("Canberra (85%)", "Canberra", 0.85),
        ("**Canberra** [85 %]", "**Canberra**", 0.85),
    ],
)
def test_a_stated_confidence_is_taken_out(text: str, answer: str, confidence: float) -> None:
    """However it is written, the percentage becomes a fraction and leaves the answer."""
    assert split_confidence(text) == (answer, confidence)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Confidence: 85%\nCanberra", "Canberra"),
        ("**Confidence:** 85%\n\n**Answer:** Canberra", "**Answer:** Canberra"),
        ("Canberra\nConfidence: 85%\nIt is the capital since 1913.", "Canberra\nIt is the capital since 1913."),
        ("Canberra\nConfidence: 85%\n\nConfidence: 85%", "Canberra"),
        ("Canberra\nConfidence: 85% - widely known", "Canberra - widely known"),
    ],
)
def test_it_may_stand_anywhere(text: str, answer: str) -> None:
    """Before the answer, amid it or twice, the confidence alone is taken out."""
    assert split_confidence(text) == (answer, 0.85)


@pytest.mark.parametrize(
    "text",
    [
        "Canberra",
        "",
        "Canberra\nConfidence: high",
        "Canberra\nConfidence: N%",
        "Canberra\nConfidence: 150%",
        "Canberra\nConfidence: 1000%",
        "Canberra\nConfidence: -5%",
        "Canberra\nConfidence: 80-90%",
        "Canberra\nConfidence: 80 to 90 %",
        "Canberra\nConfidence: 1",
        "Canberra\nConfidence: 85%\nConfidence: 20%",
        "Canberra\n(120%)",
        "Overconfidence: 85%",
        "Confidence is 90% of success",
        "50%",
        "(50%)",
        "It is 50%",
        "It fell from 80% to 50%.",
        "50% of them",
        "He was 85% sure of it in 1969",
    ],
)
def test_what_states_none_stays_as_it_is(text: str) -> None:
    """Words, ranges, contradictions, impossible numbers and the answer's own percentage are no confidence."""
    assert split_confidence(text) == (text, None)


@pytest.mark.parametrize(
    ("text", "answer", "confidence"),
    [
        ("50%\nConfidence: 90%", "50%", 0.9),
        ("50% (confidence: 90%)", "50%", 0.9),
        ("About half (50%)\nConfidence: 90%", "About half (50%)", 0.9),
        ("Confidence: 90%\n50%", "50%", 0.9),
        ("50%, I am 90% sure", "50%", 0.9),
        ("50%\n90%", "50%", 0.9),
    ],
)
def test_a_percentage_that_is_the_answer_stays(text: str, answer: str, confidence: float) -> None:
    """Beside a stated confidence the percentage that was asked for is left."""
    assert split_confidence(text) == (answer, confidence)


@pytest.mark.parametrize("text", ["About half (50%)", "It was:\n50%"])
def test_a_question_about_a_share_keeps_its_percentage(text: str) -> None:
    """Where the question asks for a share, a percentage without a word on confidence is the answer."""
    assert split_confidence(text, "What percentage of Mali is desert?") == (text, None)
    assert split_confidence(f"{text}\nConfidence: 90%", "What share is desert?") == (text, 0.9)


def test_a_confidence_alone_leaves_no_answer() -> None:
    """An answer that is nothing but its confidence is empty."""
    assert split_confidence("Confidence: 85%") == ("", 0.85)


def test_long_texts_are_read_at_once() -> None:
    """Neither long answers nor piles of signs make the search slow."""
    for pile in ("confidence " * 9000, "(" * 90_000, "* " * 45_000, "\n" * 90_000, "1" * 90_000, "- _" * 30_000):
        assert split_confidence(pile) == (pile, None)
