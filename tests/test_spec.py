"""Specs: from `<alias>[:<model>]` as typed to what answers and what judges."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError, SpecError
from pytest_simpleqa.judges.basic import BasicJudge
from pytest_simpleqa.judges.judge import FunctionJudge, ModelJudge, ReplayJudge, RulesJudge
from pytest_simpleqa.judges.spec import resolve_judge
from pytest_simpleqa.models import embedded
from pytest_simpleqa.models.embedded import Embedded
from pytest_simpleqa.models.http import HttpModel
from pytest_simpleqa.models.protocol import Answerer, Model
from pytest_simpleqa.models.replay import ReplayAnswerer
from pytest_simpleqa.models.spec import (
    FunctionAnswerer,
    LocalAddress,
    LocalModel,
    PromptAnswerer,
    Surroundings,
    resolve_answerer,
    resolve_model,
    split_spec,
)
from pytest_simpleqa.prompts import Template
from pytest_simpleqa.records import Question, Reply
from pytest_simpleqa.testing import FakeModel, fake_dataset

from .fake_server import FakeServer

KEY = "sk-planted-0123456789"
QUESTION = Template("{question}")
GRADE = Template("{question}{target}{predicted_answer}")


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    """Surroundings with one connection, a recording, a module and a model file."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "old.csv").write_text("question,answer,predicted,verdict\nquestion 1?,gold 1,gold 1,A\n")
    (tmp_path / "bare.csv").write_text("question,predicted\nquestion 1?,gold 1\n")
    (tmp_path / "spec_callables.py").write_text("def say(prompt): return 'said ' + prompt\n")
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    # Whether llama.cpp is installed here is no matter of specs.
    monkeypatch.setattr("pytest_simpleqa.models.local._require_server", lambda: None)

    def no_server(path: Path) -> LocalAddress:
        raise AssertionError("resolving starts nothing")

    connection = {"provider": "openai", "base_url": "http://localhost:9/v1", "api_key": KEY, "model": "m-1"}
    return Surroundings(
        environment={"SIMPLEQA_MINE": json.dumps({**connection, "max_in_flight": 3})},
        base=tmp_path,
        questions=fake_dataset(2).questions,
        local_address=no_server,
    )


def answer(answerer: Answerer, question: Question | None = None) -> Reply:
    return asyncio.run(answerer.answer(question or fake_dataset(1).questions[0], 1))


# -- what a spec names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("local", ("local", None)),
        ("qwen:qwen-max", ("qwen", "qwen-max")),
        ("python:a.b:c", ("python", "a.b:c")),
        ("openrouter:a/b:free", ("openrouter", "a/b:free")),
        ("replay:", ("replay", "")),
    ],
)
def test_a_spec_splits_at_its_first_colon(spec: str, parts: tuple[str, str | None]) -> None:
    """What stands behind the first colon is the model, colons and all."""
    assert split_spec(spec) == parts


def test_an_alias_of_the_environment_is_a_service(around: Surroundings) -> None:
    """A connection becomes an HTTP model with its bound, and a model in the spec wins over the JSON's."""
    answerer = resolve_answerer("mine:m-2", {"seed": 1}, QUESTION, around)
    assert isinstance(answerer, PromptAnswerer)
    assert isinstance(answerer.model, HttpModel)
    assert (answerer.max_in_flight, answerer.is_service) == (3, True)
    said = answerer.describe()
    assert said.items() >= {"provider": "openai", "model": "m-2", "base_url_host": "localhost:9"}.items()
    assert said["params"] == {"seed": 1}
    assert KEY not in repr(said)
    asyncio.run(answerer.close())


def test_local_is_a_file_from_the_base_and_starts_nothing(around: Surroundings) -> None:
    """The embedded server has a bound, and is not up before the first prompt."""
    model = resolve_model("local:tiny.gguf", {}, around)
    assert isinstance(model, LocalModel)
    assert model.path == around.base / "tiny.gguf"
    assert model.max_in_flight
    assert model.describe()["model"] == "tiny.gguf"


def test_a_local_model_asks_the_server_that_runs(around: Surroundings) -> None:
    """Many first prompts at once look for the server once."""
    asked: list[Path] = []

    async def many(model: Model) -> list[Reply]:
        try:
            return await asyncio.gather(*(model.complete(f"question {n}?") for n in range(5)))
        finally:
            await model.close()

    with FakeServer() as server:
        server.script(lambda body, nth: f"{body['model']}: yes")

        def address(path: Path) -> LocalAddress:
            asked.append(path)
            return LocalAddress(server.base_url, "tiny")

        replies = asyncio.run(many(resolve_model("local:tiny.gguf", {}, replace(around, local_address=address))))
    assert [reply.text for reply in replies] == ["tiny: yes"] * 5
    assert len(asked) == 1


def test_python_calls_what_the_base_folder_holds(around: Surroundings) -> None:
    """A module of the invocation directory answers, and its calls are counted: they may cost."""
    answerer = resolve_answerer("python:spec_callables:say", {}, QUESTION, around)
    assert (answer(answerer).text, answerer.is_service) == ("said question 1?", True)


def test_replay_answers_and_judges(around: Surroundings) -> None:
    """A recording is no service; as a judge it needs verdicts."""
    answerer = resolve_answerer("replay:old.csv", {}, QUESTION, around)
    assert isinstance(answerer, ReplayAnswerer)
    assert (answer(answerer).text, answerer.is_service) == ("gold 1", False)
    assert isinstance(resolve_judge("replay:old.csv", {}, GRADE, around), ReplayJudge)
    with pytest.raises(SpecError, match=r"^replay:bare\.csv: no column of verdicts to judge by; found question, pred"):
        resolve_judge("replay:bare.csv", {}, GRADE, around)


def test_a_judge_is_a_model_or_the_rules(around: Surroundings) -> None:
    """Every model spec can judge by the grade prompt; `rules` and the basic comparisons ask nobody."""
    by_model = resolve_judge("mine", {}, GRADE, around)
    assert isinstance(by_model, ModelJudge)
    assert by_model.model is not None
    assert by_model.model.describe()["model"] == "m-1"
    assert isinstance(resolve_judge("rules", {}, GRADE, around), RulesJudge)
    assert isinstance(resolve_judge("match", {"temperature": 0}, GRADE, around), BasicJudge)
    asyncio.run(by_model.close())


@pytest.mark.parametrize("spec", ["rules", "match", "includes", "fuzzy_match", "json_match"])
def test_a_judge_alone_answers_nothing(spec: str, around: Surroundings) -> None:
    """The error says where the word belongs."""
    with pytest.raises(SpecError, match=f"^--answer-llm {spec}: {spec} is a judge and answers nothing; use it"):
        resolve_answerer(spec, {}, QUESTION, around)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nobody", "the model alias 'nobody' is not known; set SIMPLEQA_NOBODY to JSON such as "),
        ("mime:x", "the model alias 'mime' is not known (did you mean 'mine'?); set SIMPLEQA_MIME"),
        ("openai:gpt-4o", "OPENAI_API_KEY"),
        ("python:", "python: names no callable; write python:package.module:attribute"),
        ("python", "python: names no callable; write python:package.module:attribute"),
        ("python:spec_callables:nothing", "python:spec_callables:nothing"),
        ("local:none.gguf", "there is no such file"),
        ("local:old.csv", "not a GGUF file (it starts with b'ques')"),
        ("replay:none.csv", "none.csv"),
        ("hook", "no conftest.py implements pytest_simpleqa_"),
        ("", "model spec ''"),
        (":m", "model spec ':m'"),
    ],
)
@pytest.mark.parametrize("resolve", [resolve_answerer, resolve_judge])
def test_a_bad_spec_is_one_line(spec: str, message: str, resolve: Callable[..., Any], around: Surroundings) -> None:
    """Whatever is wrong, the line says what, and what to set or write; never a key."""
    with pytest.raises(SpecError) as caught:
        resolve(spec, {}, GRADE, around)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)


# -- what a conftest adds --------------------------------------------------------------------------


def test_an_alias_of_the_conftest_wins_over_the_environment(around: Surroundings) -> None:
    """The model hook is asked for every alias that is not built in, with the spec as typed."""
    asked: list[str] = []
    house = FakeModel("x")

    def hook(spec: str) -> FakeModel | None:
        asked.append(spec)
        return house if spec == "mine:large" else None

    around = replace(around, model_hook=hook)
    assert resolve_model("mine:large", {}, around) is house
    other = resolve_model("mine", {}, around)
    assert isinstance(other, HttpModel)
    resolve_model("local:tiny.gguf", {}, around)
    assert asked == ["mine:large", "mine"]
    asyncio.run(other.close())


def test_a_model_hook_must_return_a_model(around: Surroundings) -> None:
    """The error names the hook, what came and what was wanted."""
    around = replace(around, model_hook=lambda spec: "gpt")  # type: ignore[arg-type, return-value]  # the user's mistake
    with pytest.raises(SpecError, match=r"^house: the hook pytest_simpleqa_model returned str; wanted an"):
        resolve_model("house", {}, around)


@pytest.mark.parametrize(
    ("said", "text", "raw"),
    [
        ("Paris", "Paris", None),
        ("<think>hm</think>Paris", "Paris", "<think>hm</think>Paris"),
        ("", "", None),
        (Reply("Paris", calls=4), "Paris", None),
    ],
)
def test_a_hook_answers_with_a_text_or_a_reply(said: Any, text: str, raw: str | None) -> None:
    """A text is cut of its think block; a Reply is taken as it is."""

    async def function(question: Question) -> Any:
        return said

    reply = answer(FunctionAnswerer("hook", function))
    assert (reply.text, reply.raw) == (text, raw)


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (None, "declined", "hook gave no answer"),
        (7, "exception", "hook returned int; wanted str"),
        ("<think>hm", "truncated", "hook returned a <think> block without its end"),
    ],
)
def test_a_hook_that_gives_no_answer_is_an_error(said: Any, kind: str, message: str) -> None:
    """What is no answer is an error of the row with its kind."""

    async def function(question: Question) -> Any:
        return said

    with pytest.raises(ModelError) as caught:
        answer(FunctionAnswerer("hook", function))
    assert (caught.value.kind, caught.value.message) == (kind, message)


def test_hooks_stand_behind_the_spec_hook(around: Surroundings) -> None:
    """`hook` is what the conftest implements."""

    async def function(*asked: Any) -> str:
        return "A"

    around = replace(around, answer_hook=function, judge_hook=function)
    assert isinstance(resolve_answerer("hook", {}, QUESTION, around), FunctionAnswerer)
    assert isinstance(resolve_judge("hook:mine", {}, GRADE, around), FunctionJudge)


# -- embedded servers ------------------------------------------------------------------------------


class Servers:
    """Stands for the class LocalServer; the real one loads a model of 100 MB."""

    def __init__(self, fails: bool = False) -> None:
        self.events: list[str] = []
        self.fails = fails

    def __call__(self, path: Path) -> Any:
        if self.fails:
            raise SpecError(f"local:{path}: cannot be loaded")
        self.events.append(f"start {path.name}")
        return self

    base_url = "http://127.0.0.1:9/v1"
    model_name = "tiny"

    def stop(self) -> None:
        self.events.append("stop")


def test_each_model_file_has_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is served once however often it is asked for, and all servers stop, once."""
    servers = Servers()
    monkeypatch.setattr(embedded, "LocalServer", servers)  # see Servers
    both = Embedded()
    both.paths = (Path("a.gguf"), Path("b.gguf"))
    both.start()
    assert both.address(Path("a.gguf")) == LocalAddress("http://127.0.0.1:9/v1", "tiny")
    both.stop()
    both.stop()
    assert servers.events == ["start a.gguf", "start b.gguf", "stop", "stop"]


def test_a_server_of_another_process_is_used_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker starts nothing where the controller has a server, and stops nothing."""
    servers = Servers(fails=True)
    monkeypatch.setattr(embedded, "LocalServer", servers)  # see Servers
    there = LocalAddress("http://127.0.0.1:8/v1", "tiny")
    known = Embedded({"a.gguf": there})
    assert known.address(Path("a.gguf")) == there
    known.stop()
    with pytest.raises(SpecError, match="cannot be loaded"):
        known.address(Path("b.gguf"))
