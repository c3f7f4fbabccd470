"""Sentinels: which there are, and that neither the judge nor the answers can tell."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.dataset import read_dataset
from pytest_simpleqa.engine import Engine
from pytest_simpleqa.errors import ModelError, OptionError
from pytest_simpleqa.judges.judge import FunctionJudge, ModelJudge, ReplayJudge, RulesJudge
from pytest_simpleqa.judges.protocol import Judge
from pytest_simpleqa.judges.rules import judge_by_rules
from pytest_simpleqa.judges.sentinels import ABSTENTIONS, Sentinel, SentinelJudge, draw_sentinels, with_sentinels
from pytest_simpleqa.models.replay import Recording
from pytest_simpleqa.models.spec import PromptAnswerer
from pytest_simpleqa.prompts import Template
from pytest_simpleqa.records import Failure, Judgement, Question, QuestionResult, Reply, Verdict
from pytest_simpleqa.runlog import RunLog, read_rows
from pytest_simpleqa.stage import Ask, Stage
from pytest_simpleqa.testing import FakeJudge, FakeModel, fake_dataset

CAPITALS = (
    ("Australia", "Canberra"),
    ("France", "Paris"),
    ("Peru", "Lima"),
    ("Kenya", "Nairobi"),
    ("Chad", "N'Djamena"),
)
GRADE = Template("Q {question} G {target} P {predicted_answer}")


def places(number: int) -> list[Question]:
    """Return questions with golds of two types that nobody could mix up."""
    found = []
    for i in range(1, number + 1):
        country, capital = CAPITALS[i % len(CAPITALS)]
        if i % 2:
            found.append(Question(f"q{i:04}", f"Capital of {country}, {i}?", capital, answer_type="Place"))
        else:
            found.append(Question(f"q{i:04}", f"Year of thing {i}?", str(1000 + 37 * i), answer_type="Date"))
    return found


def thrice(question: Question) -> list[Question]:
    """Return the question under three ids, so that a draw of three gives a sentinel of each kind."""
    return [replace(question, id=f"{question.id}-{n}") for n in (1, 2, 3)]


def judged(
    questions: list[Question],
    judge: Judge,
    says: Any = "an answer",
    *,
    timeout: float = 30.0,
    **more: Any,
) -> list[QuestionResult]:
    """Put the questions to a model that `says` something, judged by `judge`."""
    model = FakeModel(says)
    stage = Stage(PromptAnswerer(model, Template("{question}")), judge, timeout, ("m", "j"), **more)
    engine = Engine({"": stage}, concurrency=4)
    try:
        engine.offer(wanted := [Ask(question) for question in questions])
        return [engine.result(ask) for ask in wanted]
    finally:
        engine.close()


def outcome(result: QuestionResult) -> Mapping[str, Any]:
    """Return what came of the sentinel before this answer."""
    assert result.extra is not None
    found: Mapping[str, Any] = result.extra["sentinel"]
    return found


# -- which there are ------------------------------------------------------------------------------


def test_the_draw_is_the_same_everywhere() -> None:
    """One seed gives one draw, another another; as many as asked for, or one on each question."""
    asked = places(60)
    first = draw_sentinels(asked, 20, asked, 0)
    assert first == draw_sentinels(asked, 20, asked, 0)
    assert first != draw_sentinels(asked, 20, asked, 1)
    assert len(first) == 20
    assert len(draw_sentinels(asked, 999, asked, 0)) == 60
    assert set(first) <= {(question.id, 1) for question in asked}


def test_the_kinds_take_turns() -> None:
    """Each of the three kinds is a third of the sentinels, with the verdict that it must get."""
    found = draw_sentinels(places(60), 30, places(60), 0).values()
    assert Counter((each.kind, each.wanted) for each in found) == {
        ("gold", Verdict.CORRECT): 10,
        ("abstention", Verdict.NOT_ATTEMPTED): 10,
        ("other_gold", Verdict.INCORRECT): 10,
    }
    assert len({each.predicted for each in found if each.kind == "abstention"}) > 2


def test_another_gold_is_of_the_same_type() -> None:
    """What stands in for a place is a place, for a year a year; where there is no other of the type, anything."""
    asked = places(60)
    by_id = {question.id: question for question in asked}
    for (question_id, _), each in draw_sentinels(asked, 60, asked, 3).items():
        if each.kind == "other_gold":
            assert each.predicted.isdigit() == (by_id[question_id].answer_type == "Date")
    odd = Question("q1", "What?", "Canberra", answer_type="Place")
    pool = [odd, Question("q2", "When?", "1873", answer_type="Date")]
    assert {each.predicted for seed in range(3) for each in draw_sentinels(thrice(odd), 3, pool, seed).values()} > {
        "1873"
    }


@pytest.mark.parametrize(
    ("gold", "other"),
    [
        ("Paris", "paris"),
        ("2005", "May 2005"),
        ("May 5, 1990", "May 6, 1990"),
        ("1990", "1991"),
        ("John Smith", "John Smyth"),
        ("New York City", "York"),
        ("120 (acceptable range: 110 to 130)", "115"),
        ("Canberra", "I don't know"),
    ],
)
def test_a_gold_that_may_pass_is_never_another(gold: str, other: str) -> None:
    """Golds that are equal, alike, within one another, or no answer at all stand for no wrong answer."""
    asked = Question("q1", "What is it?", gold)
    pool = [asked, Question("q2", "And what is that?", other)]
    for seed in range(4):
        kinds = {each.kind for each in draw_sentinels(thrice(asked), 3, pool, seed).values()}
        assert "other_gold" not in kinds


def test_no_right_answer_is_taken_for_a_wrong_one() -> None:
    """Of a question with several right answers none stands in for a wrong one."""
    asked = Question("q1", "What is it?", "Canberra", metadata={"ideal": ["Canberra", "Lima"]})
    pool = [asked, Question("q2", "And that?", "Lima")]
    assert all(each.kind != "other_gold" for each in draw_sentinels(thrice(asked), 3, pool, 0).values())


def test_a_refusal_that_is_a_title_is_left_out() -> None:
    """A question whose right answer stands in a refusal gets another wording."""
    song = Question("q1", "Which song?", "I don't know")
    for seed in range(8):
        found = [each for each in draw_sentinels(thrice(song), 3, [song], seed).values() if each.kind == "abstention"]
        assert all(judge_by_rules(song.problem, song.answer, each.predicted) is not Verdict.CORRECT for each in found)


def test_the_official_questions_have_what_it_takes(shared_data: Path) -> None:
    """On 4,326 questions each kind is a third; no two sentinels share a row, and the rules agree with all but few."""
    asked = read_dataset(shared_data / "simple_qa_test_set.csv").questions
    drawn = draw_sentinels(asked, 300, asked, 0)
    assert Counter(each.kind for each in drawn.values()) == {"gold": 100, "abstention": 100, "other_gold": 100}
    by_id = {question.id: question for question in asked}
    for (question_id, _), each in drawn.items():
        question = by_id[question_id]
        assert judge_by_rules(question.problem, question.answer, each.predicted) is each.wanted


@pytest.mark.parametrize("wording", ABSTENTIONS)
def test_every_refusal_is_one(wording: str) -> None:
    """The rules take each wording for an answer that declines."""
    assert judge_by_rules("Who did it?", "Jane Austen", wording) is Verdict.NOT_ATTEMPTED


def test_none_are_none() -> None:
    """Without sentinels the judge is itself; a dataset of one question has no other gold to show."""
    judge = FakeJudge()
    assert with_sentinels(judge, 0, places(3), places(3), 0) is judge
    assert {each.kind for each in draw_sentinels(thrice(places(1)[0]), 3, places(1), 0).values()} == {
        "gold",
        "abstention",
    } - set()


def test_a_recording_is_refused(tmp_path: Path) -> None:
    """A recording has no verdict on an answer that is not in it: one line, before anything is asked."""
    (tmp_path / "r.csv").write_text("problem,predicted,grade\nWhat?,that,A\n", encoding="utf-8")
    judge = ReplayJudge(Recording.load("r.csv", tmp_path))
    with pytest.raises(OptionError, match=r"^--simpleqa-sentinels 20: a recording has no verdict on") as told:
        with_sentinels(judge, 20, places(3), places(3), 0)
    assert "\n" not in str(told.value)


# -- what the judge sees --------------------------------------------------------------------------


def test_a_sentinel_comes_before_its_answer() -> None:
    """The judge sees each question's sentinel first, so that nothing is known of the question when it comes."""
    asked = places(9)
    inner = FakeJudge()
    judge = with_sentinels(inner, 3, asked, asked, 0)
    assert isinstance(judge, SentinelJudge)
    judged(asked, judge, "an answer")
    for (question_id, _), sentinel in judge.sentinels.items():
        seen = [predicted for question, predicted in inner.judged if question.id == question_id]
        assert seen == [sentinel.predicted, "an answer"]
    assert len(inner.judged) == 12


def test_a_model_judge_gets_one_prompt_for_both() -> None:
    """A sentinel is put to the model in the very prompt of an answer, and nothing else."""
    question = places(1)[0]
    model = FakeModel("A")
    judge = SentinelJudge(ModelJudge(model, GRADE), {("q0001", 1): Sentinel("gold", question.answer, Verdict.CORRECT)})
    (result,) = judged([question], judge, question.answer)
    assert len(model.prompts) == 2
    assert model.prompts[0] == model.prompts[1]
    assert result.judge_usage.calls == 2


def test_a_repeat_has_no_sentinel_of_its_own() -> None:
    """A question that is asked several times has its sentinel before the first."""
    asked = places(3)
    assert all(repeat == 1 for _, repeat in draw_sentinels(asked, 3, asked, 0))


# -- what becomes of the answers ------------------------------------------------------------------

_ODD: list[tuple[str, Callable[[Question, str], Any]]] = [
    ("wrong", lambda question, predicted: Verdict.INCORRECT),
    ("no verdict", lambda question, predicted: Judgement(None, error=Failure("judge_unreadable", "?"))),
    ("model error", lambda question, predicted: ModelError("server_error", "down", status=500)),
    ("exception", lambda question, predicted: ValueError("a bug")),
    ("no Judgement", lambda question, predicted: Judgement("correct")),  # type: ignore[arg-type]  # user code
]


@pytest.mark.parametrize(("name", "fails"), _ODD, ids=[name for name, _ in _ODD])
def test_a_failing_sentinel_changes_no_answer(name: str, fails: Callable[[Question, str], Any]) -> None:
    """Whatever the judge makes of a sentinel, the verdict on the answer is the judge's on the answer."""
    question = places(1)[0]

    def finds(question: Question, predicted: str) -> Any:
        return fails(question, predicted) if predicted == "Paris" else Verdict.CORRECT

    judge = SentinelJudge(FakeJudge(finds), {("q0001", 1): Sentinel("gold", "Paris", Verdict.CORRECT)})
    (result,) = judged([question], judge)
    assert (result.verdict, result.error) == (Verdict.CORRECT, None)
    assert outcome(result)["verdict"] == ("incorrect" if name == "wrong" else None)
    assert (outcome(result)["error"] is None) == (name == "wrong")
    assert {key: outcome(result)[key] for key in ("kind", "predicted", "wanted")} == {
        "kind": "gold",
        "predicted": "Paris",
        "wanted": "correct",
    }


@pytest.mark.parametrize("has_model", [False, True])
def test_a_sentinel_takes_no_time_from_its_answer(has_model: bool) -> None:
    """A judge that hangs at the sentinel until its deadline has the whole of another one for the answer."""
    question = places(1)[0]

    async def slow(question: Question, predicted: str) -> Verdict:
        await asyncio.sleep(60 if predicted == "Paris" else 0.2)
        return Verdict.CORRECT

    class SlowModel(FakeModel):
        async def complete(self, prompt: Any) -> Reply:
            await asyncio.sleep(60 if "P Paris" in prompt else 0.2)
            return await super().complete(prompt)

    inner: Judge = ModelJudge(SlowModel("A"), GRADE) if has_model else FunctionJudge("hook", slow)
    warm = Question("q0000", "Warm?", "up")  # the first request of all: a service that has never worked stops the run
    judge = SentinelJudge(inner, {("q0001", 1): Sentinel("gold", "Paris", Verdict.CORRECT)})
    _, result = judged([warm, question], judge, timeout=0.8)
    assert (result.verdict, result.error) == (Verdict.CORRECT, None)
    assert outcome(result)["error"]["kind"] == "timeout"
    assert result.latency_s is not None
    assert result.latency_s < 0.8


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_a_blank_answer_has_its_sentinel(blank: str) -> None:
    """An answer that needs no judge, being blank, leaves the sentinel to be judged all the same."""
    question = places(1)[0]
    inner = FakeJudge(Verdict.CORRECT)
    judge = SentinelJudge(inner, {("q0001", 1): Sentinel("gold", "Paris", Verdict.CORRECT)})
    (result,) = judged([question], judge, blank)
    assert result.verdict is Verdict.NOT_ATTEMPTED
    assert outcome(result)["verdict"] == "correct"
    assert [predicted for _, predicted in inner.judged] == ["Paris"]


def test_costs_and_findings_of_both_are_kept() -> None:
    """Calls and tokens of sentinel and answer add up; what the judge itself has attached stays."""
    question = places(1)[0]
    inner = FakeJudge(Judgement(Verdict.CORRECT, calls=2, prompt_tokens=30, completion_tokens=4, extra={"choice": "A"}))
    judge = SentinelJudge(inner, {("q0001", 1): Sentinel("gold", "Paris", Verdict.CORRECT)})
    (result,) = judged([question], judge)
    used = result.judge_usage
    assert (used.calls, used.prompt_tokens, used.completion_tokens) == (4, 60, 8)
    assert result.extra is not None
    assert result.extra["choice"] == "A"


def test_a_finished_row_keeps_what_came_of_its_sentinel(tmp_path: Path) -> None:
    """A row read back from the run log has its sentinel's outcome, and its judge is asked nothing again."""
    question = places(1)[0]
    inner = FakeJudge(Verdict.INCORRECT)
    judge = SentinelJudge(inner, {("q0001", 1): Sentinel("gold", "Paris", Verdict.CORRECT)})
    log = RunLog(tmp_path / "results.jsonl")
    (first,) = judged([question], judge, log=log)
    log.close()
    rows, _ = read_rows([tmp_path / "results.jsonl"])
    (again,) = judged([question], judge, known=rows)
    assert again.extra == first.extra
    assert outcome(again)["verdict"] == "incorrect"
    assert len(inner.judged) == 2


def test_every_judge_can_be_tried() -> None:
    """Rules and fakes pass what they must; the wrapper tells of itself what the judge does."""
    asked = places(30)
    judge = with_sentinels(RulesJudge(), 30, asked, asked, 0)
    results = judged(asked, judge)
    assert all(outcome(result)["verdict"] == outcome(result)["wanted"] for result in results)
    assert judge.describe() == RulesJudge().describe()
    assert isinstance(judge, Judge)
    inner = FakeJudge()
    judged(list(fake_dataset(3)), SentinelJudge(inner, {}))
    assert inner.closed == 1
