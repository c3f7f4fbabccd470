"""Wrappers around the answer model, without pytest."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError, SpecError
from pytest_simpleqa.models.protocol import Answerer
from pytest_simpleqa.models.spec import FunctionAnswerer, PromptAnswerer
from pytest_simpleqa.models.wrapping import Inner, unwrapped, wrapped, wrapper_name
from pytest_simpleqa.prompts import Template
from pytest_simpleqa.records import Prompt, Question, Reply
from pytest_simpleqa.testing import FakeModel

QUESTION = Question("q0001", "Capital of France?", "Paris")
TEMPLATE = Template("Q: {question}")


def around(model: FakeModel, *wrappers: Any) -> Answerer:
    """Return the answerer of `model` with wrappers around it."""
    return wrapped(PromptAnswerer(model, TEMPLATE), wrappers, TEMPLATE)


def answer(model: FakeModel, *wrappers: Any, repeat: int = 1) -> Reply:
    """Return what comes out of `wrappers` around `model`."""
    return asyncio.run(around(model, *wrappers).answer(QUESTION, repeat))


async def with_system(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
    """Put a system message before the prompt."""
    return await complete([{"role": "system", "content": "Be brief."}, {"role": "user", "content": str(prompt)}])


async def shouted(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
    """Post-process the answer."""
    reply = await complete(prompt)
    return replace(reply, text=reply.text.upper())


async def twice(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> str:
    """Ask two times and give the second answer's text."""
    await complete(prompt)
    return (await complete(f"{prompt} Again.")).text


def test_no_wrapper_leaves_the_answerer_as_it_is() -> None:
    """Without wrappers nothing stands around the answerer."""
    answerer = PromptAnswerer(FakeModel(), TEMPLATE)
    assert wrapped(answerer, [], TEMPLATE) is answerer


def test_the_prompt_is_the_rendered_one_and_can_be_changed() -> None:
    """A wrapper gets the rendered answer prompt, and the model what the wrapper makes of it."""
    model = FakeModel("Paris")
    assert answer(model, with_system).text == "Paris"
    assert model.prompts == [
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Q: Capital of France?"}]
    ]


def test_the_answer_can_be_changed() -> None:
    """What a wrapper returns is the answer; the rest of the model's reply stays."""
    reply = answer(FakeModel(Reply("Paris", model="m", prompt_tokens=5)), shouted)
    assert (reply.text, reply.model, reply.calls, reply.prompt_tokens) == ("PARIS", "m", 1, 5)


def test_wrappers_stand_around_each_other() -> None:
    """The first wrapper is the outermost: its prompt goes to the next, the next one's answer comes to it."""
    seen: list[str] = []

    def layer(name: str) -> Any:
        async def wrapper(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> str:
            reply = await complete(f"{prompt} {name}")
            seen.append(name)
            return f"{reply.text} {name}"

        return wrapper

    model = FakeModel("Paris")
    assert answer(model, layer("outer"), layer("inner")).text == "Paris inner outer"
    assert model.prompts == ["Q: Capital of France? outer inner"]
    assert seen == ["inner", "outer"]


def test_everything_that_was_asked_is_counted() -> None:
    """Calls and tokens of all that a wrapper asked are summed, whatever it returns; a text keeps who said it."""
    model = FakeModel(Reply("Paris", model="m", calls=2, prompt_tokens=5, completion_tokens=1, notes=("dropped",)))
    reply = answer(model, twice)
    assert (reply.calls, reply.prompt_tokens, reply.completion_tokens) == (4, 10, 2)
    assert (reply.model, reply.notes) == ("m", ("dropped",))


def test_an_answer_without_the_model_costs_nothing() -> None:
    """A wrapper that does not ask spends no call, even where its Reply says so."""

    async def cached(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
        return Reply(f"kept {repeat}", calls=1, prompt_tokens=5)

    model = FakeModel()
    reply = answer(model, cached, repeat=3)
    assert (reply.text, reply.calls, reply.prompt_tokens, model.prompts) == ("kept 3", 0, 0, [])


def test_the_models_error_comes_through_with_its_price() -> None:
    """An error of the model keeps kind and status, and counts the calls before it."""
    model = FakeModel(["Lyon", ModelError("rate_limited", "slow down", status=429, calls=2)])
    with pytest.raises(ModelError) as caught:
        answer(model, twice)
    assert (caught.value.kind, caught.value.status, caught.value.calls) == ("rate_limited", 429, 3)


def test_a_refusal_of_the_wrapper_is_free() -> None:
    """A ModelError that a wrapper raises before it has asked counts no call."""

    async def declines(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> str:
        raise ModelError("declined", "no source")

    with pytest.raises(ModelError, match="no source") as caught:
        answer(FakeModel(), declines)
    assert (caught.value.kind, caught.value.calls) == ("declined", 0)


def test_a_bug_in_a_wrapper_is_told_with_its_name() -> None:
    """Any other exception is an error `exception` that names the wrapper."""

    async def breaks(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> str:
        await complete(prompt)
        raise KeyError("sources")

    with pytest.raises(ModelError, match=r"test_wrapping:.*breaks: KeyError: 'sources'") as caught:
        answer(FakeModel(), breaks)
    assert (caught.value.kind, caught.value.calls) == ("exception", 1)


@pytest.mark.parametrize(("said", "kind"), [(None, "declined"), (7, "exception"), ("<think>so", "truncated")])
def test_what_is_no_answer_is_an_error(said: Any, kind: str) -> None:
    """None, another type and an open think block are the row's error, as from the answer hook."""

    async def gives(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Any:
        return said

    with pytest.raises(ModelError) as caught:
        answer(FakeModel(), gives)
    assert caught.value.kind == kind


def test_around_a_hook_the_question_is_answered() -> None:
    """What answers without a prompt is asked the question itself, whatever prompt comes."""

    async def function(question: Question) -> str:
        return question.answer

    answerer = wrapped(FunctionAnswerer("hook", function), [with_system, shouted], TEMPLATE)
    assert asyncio.run(answerer.answer(QUESTION, 1)).text == "PARIS"


def test_request_parameters_go_to_the_model() -> None:
    """What a wrapper gives beside the prompt reaches a model that takes parameters, an inner wrapper's going first."""

    class Tunable(FakeModel):
        async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
            return Reply(f"{sorted(params.items())}")

    async def warm(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
        return await complete(prompt, temperature=1, top_p=0.5)

    async def cold(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
        return await complete(prompt, temperature=0)

    assert answer(Tunable(), warm, cold).text == "[('temperature', 0), ('top_p', 0.5)]"
    assert answer(FakeModel("Paris"), warm).text == "Paris"


class Sources:
    """A wrapper that is an object, and says what it is."""

    def __init__(self) -> None:
        self.closed = 0

    async def __call__(self, question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
        return await complete(f"{prompt} With sources.")

    def describe(self) -> dict[str, Any]:
        return {"sources": 3}

    async def close(self) -> None:
        self.closed += 1
        raise RuntimeError("too late to matter")


def test_the_report_names_the_wrappers() -> None:
    """`describe` keeps what the model says of itself, and lists the wrappers with what they say."""
    described = around(FakeModel(name="m"), Sources(), shouted).describe()
    assert described["model"] == "m"
    assert described["wrapped_by"] == [
        {"name": "tests.test_wrapping:Sources", "sources": 3},
        {"name": "tests.test_wrapping:shouted"},
    ]


def test_wrappers_are_closed_with_the_model() -> None:
    """Each wrapper is closed once, and one that fails at it does not keep the model open."""
    model, sources = FakeModel(), Sources()
    asyncio.run(around(model, sources, shouted).close())
    assert (sources.closed, model.closed) == (1, 1)


def test_bounds_and_kind_are_those_of_the_model() -> None:
    """A wrapped answerer is asked no more at once than what stands inside, and tells what that is."""
    answerer = around(FakeModel(max_in_flight=4, is_service=False), shouted)
    assert (answerer.max_in_flight, answerer.is_service) == (4, False)
    assert isinstance(unwrapped(answerer), PromptAnswerer)
    assert unwrapped(None) is None


def plain(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> str:
    return "not async"


async def short(question: Question) -> str:
    return "too few arguments"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (plain, "returned a plain function; wanted an async function"),
        ("text", "returned str; wanted an async function"),
        (short, r"returned tests.test_wrapping:short, which cannot be called with \(question, prompt, complete, "),
    ],
)
def test_what_is_no_wrapper_is_told_before_anything_is_asked(given: Any, what: str) -> None:
    """A mistake that would cost every question is one line at the start."""
    with pytest.raises(SpecError, match=f"^the hook pytest_simpleqa_wrap {what}"):
        around(FakeModel(), given)


def test_a_partial_is_a_wrapper() -> None:
    """An async function with some of its arguments filled in may wrap; it is named after that function."""

    async def sources(number: int, question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
        return await complete(f"{prompt} {number}")

    filled = functools.partial(sources, 3)
    model = FakeModel()
    answer(model, filled)
    assert model.prompts == ["Q: Capital of France? 3"]
    assert wrapper_name(filled) == wrapper_name(sources)
