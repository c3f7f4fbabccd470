"""The basic templates of OpenAI Evals: what each asks, how it compares, what it adds up, and what it refuses."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.engine import Engine
from pytest_simpleqa.errors import ModelError, SimpleQAError
from pytest_simpleqa.evals.build import build_eval
from pytest_simpleqa.evals.protocol import Eval
from pytest_simpleqa.evals.registry import EvalSpec, Registry
from pytest_simpleqa.evals.scores import half_sample_std
from pytest_simpleqa.records import Prompt, QuestionResult, Reply, Verdict
from pytest_simpleqa.stage import Ask, Stage
from pytest_simpleqa.testing import FakeModel

CLASSES = {
    "match": "evals.elsuite.basic.match:Match",
    "includes": "evals.elsuite.basic.includes:Includes",
    "fuzzy_match": "evals.elsuite.basic.fuzzy_match:FuzzyMatch",
    "json_match": "evals.elsuite.basic.json_match:JsonMatch",
    "json_validator": "evals.elsuite.basic.json_validator:JsonValidator",
    "multiple_choice": "evals.elsuite.multiple_choice:MultipleChoice",
}
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital of France?"}]
SAMPLES = [
    {"input": CHAT, "ideal": "Paris"},
    {"input": "Capital of Italy?", "ideal": ["Rome", "Roma"]},
]
CHOICES: list[dict[str, Any]] = [{"question": "Which is red?", "answers": ["sky", "blood", "grass"], "label": 1}]


class Tunable(FakeModel):
    """A fake model that takes request parameters with a prompt, and keeps them."""

    sent: Mapping[str, Any] | None = None

    async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        self.sent = params
        return await self.complete(prompt)


def write(folder: Path, name: str, rows: Sequence[Any]) -> str:
    """Write `rows` as JSON lines below `data/` of the registry `folder`; return their address."""
    path = folder / "data" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return name


def made(folder: Path, template: str, rows: Sequence[Any] = SAMPLES, *models: FakeModel, **args: Any) -> Eval:
    """Return the eval of `template` over `rows`."""
    key = "dataset" if template == "multiple_choice" else "samples_jsonl"
    given = {key: write(folder, "samples.jsonl", rows), **args}
    spec = EvalSpec("my-eval.dev.v0", "my-eval", CLASSES[template], given, folder)
    return build_eval(spec, Registry([folder]), models or (Tunable("Paris"),))


def results(an_eval: Eval) -> list[QuestionResult]:
    """Put the whole eval to its model."""
    engine = Engine({"": Stage(an_eval.answerer, an_eval.judge, 10)}, concurrency=1)
    asks = [Ask(question) for question in an_eval.dataset]
    try:
        engine.offer(asks)
        return [engine.result(ask) for ask in asks]
    finally:
        engine.close()


def verdicts(an_eval: Eval) -> list[Verdict | None]:
    return [result.verdict for result in results(an_eval)]


# -- what is asked ---------------------------------------------------------------------------------


def test_a_sample_becomes_a_question(tmp_path: Path) -> None:
    """The prompt is the problem, the ideals are the gold, as texts; the sample stands in the metadata as it came."""
    dataset = made(tmp_path, "match").dataset
    assert [(each.id, each.problem, each.answer) for each in dataset] == [
        ("1", "Be brief.\nUser: Capital of France?", "Paris"),
        ("2", "Capital of Italy?", "Rome | Roma"),
    ]
    assert [each.metadata["sample"] for each in dataset] == SAMPLES
    assert dataset.name == "my-eval.dev.v0"


@pytest.mark.parametrize(
    ("template", "args", "params"),
    [
        ("match", {"max_tokens": 7}, {"temperature": 0}),
        ("includes", {}, None),
        ("fuzzy_match", {}, {"temperature": 0, "max_tokens": 100}),
        ("fuzzy_match", {"max_tokens": 2048}, {"temperature": 0, "max_tokens": 2048}),
        ("json_match", {}, {"temperature": 0, "max_tokens": 512}),
        ("json_validator", {}, {"temperature": 0}),
    ],
)
def test_each_template_sends_its_parameters(
    tmp_path: Path, template: str, args: Mapping[str, Any], params: Mapping[str, Any] | None
) -> None:
    """The prompt goes out as it stands in the sample, with what the template asks for, which is described."""
    model = Tunable("Paris")
    an_eval = made(tmp_path, template, [{"input": CHAT, "ideal": '"Paris"'}], model, **args)
    results(an_eval)
    assert (model.prompts, model.sent) == ([CHAT], params)
    assert an_eval.answerer.describe()["params"] == (params or {})


def test_few_shot_examples_stand_before_the_last_message(tmp_path: Path) -> None:
    """The first `num_few_shot` examples are told, names and all, and are no part of the question's identity."""
    shots = [
        [
            {"role": "system", "name": "example_user", "content": f"Q{number}"},
            {"role": "system", "name": "example_assistant", "content": f"A{number}"},
        ]
        for number in (1, 2, 3)
    ]
    address = write(tmp_path, "few.jsonl", [{"sample": shot} for shot in shots])
    model = Tunable("Paris")
    an_eval = made(tmp_path, "match", SAMPLES[:1], model, num_few_shot=2, few_shot_jsonl=address)
    assert verdicts(an_eval) == [Verdict.CORRECT]
    assert model.prompts == [[CHAT[0], *shots[0], *shots[1], CHAT[1]]]
    assert an_eval.dataset.questions[0].fingerprint == made(tmp_path, "match").dataset.questions[0].fingerprint
    assert an_eval.answerer.describe()["few_shot"]["examples"] == 2


def test_an_answer_may_end_at_the_templates_own_limit(tmp_path: Path) -> None:
    """What came before `max_tokens` is graded, with a note; where the template sets no limit a cut is an error."""

    def cut() -> ModelError:
        error = ModelError("truncated", "cut off")
        error.partial = Reply("Paris is the")
        return error

    rows = SAMPLES[:1]
    (graded,) = results(made(tmp_path, "fuzzy_match", rows, Tunable([cut()])))
    assert graded.verdict is Verdict.CORRECT
    assert graded.notes == ("cut off at the token limit, as the eval wants (max_tokens 100)",)
    (failed,) = results(made(tmp_path, "match", rows, Tunable([cut()])))
    assert (failed.verdict, failed.error and failed.error.kind) == (None, "truncated")


def test_choices_are_shuffled_as_in_openai_evals(tmp_path: Path) -> None:
    """Each sample has an order of its own, from its name, its number from 0, and the seed of the run."""
    rows = CHOICES * 3
    model = Tunable("A")
    an_eval = made(tmp_path, "multiple_choice", rows, model, instructions="Think.")
    for index, question in enumerate(an_eval.dataset):
        order = [0, 1, 2]
        random.Random(f"my-eval.dev.{index}:20220722".encode()).shuffle(order)
        listing = "\n".join(f"{letter}) {CHOICES[0]['answers'][at]}" for letter, at in zip("ABC", order, strict=True))
        assert question.problem.startswith("Think.\n")
        assert question.problem.endswith(f"\n\nWhich is red?\n{listing}")
        assert question.answer == "ABC"[order.index(1)]
    assert [each is Verdict.CORRECT for each in verdicts(an_eval)] == [each.answer == "A" for each in an_eval.dataset]
    assert model.prompts == [each.problem for each in an_eval.dataset]
    assert model.sent == {"temperature": 0, "max_tokens": 1}


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Which?", "answers": ["a", "b"], "label": 1},
        {"ctx": "Which?", "endings": ["a", "b"], "label": "1"},
        {"question": "Which?", "choices": ["a", "b"], "answer": 1},
    ],
)
def test_choices_are_read_in_three_layouts(tmp_path: Path, row: Mapping[str, Any]) -> None:
    """Local files may be laid out as OpenAI Evals has them, as HellaSwag, or as MMLU."""
    (question,) = made(tmp_path, "multiple_choice", [row]).dataset
    assert f"{question.answer}) b" in question.problem


# -- how it is compared ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "args", "said", "correct"),
    [
        ("match", {}, "Paris.", [True, False]),
        ("match", {}, "Roma", [False, True]),
        ("includes", {}, "not paris but Rome", [False, True]),
        ("includes", {"ignore_case": True}, "PARIS or ROME", [True, True]),
        ("fuzzy_match", {}, "it's the roma.", [False, True]),
        ("json_validator", {}, "{}", [True, True]),
        ("json_validator", {}, "{", [False, False]),
    ],
)
def test_answers_are_compared_with_every_ideal(
    tmp_path: Path, template: str, args: Mapping[str, Any], said: str, correct: Sequence[bool]
) -> None:
    """Each template holds an answer against the ideals of its sample, of which one is enough."""
    found = verdicts(made(tmp_path, template, SAMPLES, Tunable(said), **args))
    assert found == [Verdict.CORRECT if each else Verdict.INCORRECT for each in correct]


def test_json_is_compared_by_structure(tmp_path: Path) -> None:
    """Order of keys and white space do not count, and one of several ideals is enough."""
    rows = [{"input": "?", "ideal": ['{"a": 2}', '{"a": 1, "b": [1]}']}, {"input": "?", "ideal": "[]"}]
    assert verdicts(made(tmp_path, "json_match", rows, Tunable('{"b":[1],\n"a":1}'))) == [
        Verdict.CORRECT,
        Verdict.INCORRECT,
    ]


def test_the_blanks_of_an_ideal_count(tmp_path: Path) -> None:
    """The ideal is compared as it stands in the sample, though the gold is shown trimmed."""
    rows = [{"input": "?", "ideal": "Paris\n"}]
    assert verdicts(made(tmp_path, "match", rows, Tunable("Paris"))) == [Verdict.INCORRECT]
    assert made(tmp_path, "match", rows).dataset.questions[0].answer == "Paris"


# -- what it adds up to ----------------------------------------------------------------------------


def test_scores_have_the_names_of_openai_evals(tmp_path: Path) -> None:
    """`accuracy`, with `boostrap_std` (so spelt there) or `f1_score` where the template reports it."""
    for template, names in [
        ("match", {"accuracy", "boostrap_std"}),
        ("includes", {"accuracy", "boostrap_std"}),
        ("fuzzy_match", {"accuracy", "f1_score"}),
        ("json_validator", {"accuracy", "boostrap_std"}),
    ]:
        an_eval = made(tmp_path, template, SAMPLES, Tunable("Paris France"))
        scores = an_eval.metrics(results(an_eval))
        assert set(scores) == names
        assert set(an_eval.metrics([]).values()) == {None}
        if template == "fuzzy_match":
            assert scores == {"accuracy": 0.5, "f1_score": pytest.approx(1 / 3)}


def test_the_spread_is_that_of_random_halves() -> None:
    """The closed form is what many draws of half the rows without replacement tend to."""
    rows = [1] * 30 + [0] * 71
    draw = random.Random(7)
    means = [sum(draw.sample(rows, 50)) / 50 for _ in range(20_000)]
    centre = sum(means) / len(means)
    drawn = (sum((mean - centre) ** 2 for mean in means) / len(means)) ** 0.5
    assert half_sample_std(30 / 101, 101) == pytest.approx(drawn, rel=0.02)
    assert half_sample_std(1.0, 1) is None
    assert half_sample_std(0.5, 2) == 0.5


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "rows", "args", "message"),
    [
        ("match", [{"input": "?"}], {}, r"samples\.jsonl, line 1: .*'ideal'"),
        ("match", [SAMPLES[0], {"input": "?", "ideal": 5}], {}, r"samples\.jsonl, line 2: a number found at 'ideal'"),
        ("match", [{"input": [], "ideal": "x"}], {}, r"line 1: 'input' is empty; a text or chat messages"),
        ("match", [{"input": ["x"], "ideal": "x"}], {}, r"'input', message 1: a text found, an object was wanted"),
        ("match", [{"input": [{"role": "user"}], "ideal": "x"}], {}, r"message 1: nothing found at 'content', a text"),
        ("match", SAMPLES, {"few_shot": 2}, r"my-eval\.dev\.v0: Match has no argument 'few_shot'; it has samples_jso"),
        ("match", SAMPLES, {"num_few_shot": 2}, r"num_few_shot=2: the argument few_shot_jsonl is missing"),
        ("match", SAMPLES, {"num_few_shot": "two"}, r"num_few_shot='two': a whole number was wanted"),
        ("match", SAMPLES, {"num_few_shot": -1}, r"num_few_shot=-1: 0 or more was wanted"),
        ("includes", SAMPLES, {"ignore_case": 1}, r"ignore_case=1: true or false was wanted"),
        ("json_match", SAMPLES, {}, r"samples\.jsonl, line 1: the ideal 'Paris' is not JSON"),
        ("multiple_choice", [{"q": "?"}], {}, r"line 1: found q; question, answers, label were wanted"),
        ("multiple_choice", [{**CHOICES[0], "label": 3}], {}, r"3 found at 'label', one of 3 choices from 0 was want"),
        ("multiple_choice", [{**CHOICES[0], "answers": "ab"}], {}, r"'answers' a list of texts"),
        ("multiple_choice", CHOICES, {"dataset": "hf://hellaswag?split=validation"}, r"Hugging Face"),
    ],
)
def test_mistakes_are_one_line_with_their_place(
    tmp_path: Path, template: str, rows: Sequence[Any], args: Mapping[str, Any], message: str
) -> None:
    """A sample or argument that the template cannot use is refused before anything is asked."""
    with pytest.raises(SimpleQAError, match=message) as caught:
        made(tmp_path, template, rows, **args)
    assert "\n" not in str(caught.value)


def test_few_shot_wants_chats(tmp_path: Path) -> None:
    """Examples can only stand between the messages of a chat."""
    address = write(tmp_path, "few.jsonl", [{"sample": [{"role": "user", "content": "Q"}]}, {"sample": "Q"}])
    with pytest.raises(SimpleQAError, match=r"samples\.jsonl, line 2: a text found at 'input', chat messages"):
        made(tmp_path, "match", SAMPLES, num_few_shot=1, few_shot_jsonl=address)
    with pytest.raises(SimpleQAError, match=r"few\.jsonl, line 2: a text found at 'sample', chat messages"):
        made(tmp_path, "match", SAMPLES[:1], num_few_shot=2, few_shot_jsonl=address)


def test_a_basic_template_asks_one_model(tmp_path: Path) -> None:
    """Several models under test are refused, naming how many."""
    with pytest.raises(SimpleQAError, match=r"my-eval\.dev\.v0: 2 answer models found, one was wanted"):
        made(tmp_path, "match", SAMPLES, Tunable(), Tunable())
