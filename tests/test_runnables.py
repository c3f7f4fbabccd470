"""Promises of `models/runnables.py`, kept with LangChain's own fakes where LangChain is installed."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError
from pytest_simpleqa.models.callables import callable_model, check_callable, load_callable
from pytest_simpleqa.models.protocol import Model
from pytest_simpleqa.records import Prompt, Reply

CHAT: Prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]


class Runnable:
    """What every LangChain runnable can do; it says what it is told to, and keeps what it was asked."""

    def __init__(self, said: Any) -> None:
        self.said = said
        self.asked: list[Any] = []

    def invoke(self, prompt: Any) -> Any:
        raise AssertionError("asked without await")

    def abatch(self, prompts: Any) -> Any:
        raise AssertionError("asked for many at once")

    async def ainvoke(self, prompt: Any) -> Any:
        self.asked.append(prompt)
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class Spoken(Runnable):
    """A language model: it takes messages."""

    def agenerate_prompt(self) -> None: ...


class Message:
    """What a chat model returns."""

    response_metadata = {"finish_reason": "stop", "model_name": "m-1"}  # noqa: RUF012 - as there
    usage_metadata = {"input_tokens": 3, "output_tokens": 4}  # noqa: RUF012 - as there

    def __init__(self, content: Any) -> None:
        self.content = content


class Limited(Exception):
    """What a service's own package raises."""

    status_code = 429

    class response:  # noqa: N801 - as there
        headers = {"Retry-After": "7"}  # noqa: RUF012 - as there


def ask(model: Model, prompt: Prompt = "Who?") -> Reply:
    return asyncio.run(model.complete(prompt))


def model_of(said: Any, kind: type[Runnable] = Runnable) -> tuple[Model, Runnable]:
    runnable = kind(said)
    return callable_model("app:chain", runnable), runnable


def test_a_chain_is_asked_with_one_text() -> None:
    """A chain gets the prompt as text, a chat rendered to one; its string is the answer."""
    model, chain = model_of("<think>hm</think>Paris")
    assert (ask(model).text, ask(model, CHAT).raw) == ("Paris", "<think>hm</think>Paris")
    assert chain.asked == ["Who?", "Be brief.\nUser: Who?\nAssistant:"]


def test_a_chat_model_is_asked_with_messages() -> None:
    """A language model gets messages; its message gives text, tokens, reason and name."""
    model, chat = model_of(Message([{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}]), Spoken)
    reply = ask(model, CHAT)
    assert chat.asked == [CHAT]
    assert (reply.text, reply.model, reply.prompt_tokens, reply.completion_tokens) == ("Paris", "m-1", 3, 4)
    assert (reply.finish_reason, model.describe()["provider"]) == ("stop", "langchain")


def test_a_chain_that_returns_a_mapping_answers() -> None:
    """Of a mapping its answer is taken, where it has one under a usual name."""
    assert ask(model_of({"question": "Who?", "answer": Message("Paris")})[0]).text == "Paris"
    with pytest.raises(ModelError, match="app:chain returned dict; wanted a text, a message, or a mapping with one of"):
        ask(model_of({"x": "y"})[0])


def test_a_limit_is_told_as_one() -> None:
    """An error with a status means what it means from a service: this one is tried again later."""
    with pytest.raises(ModelError) as caught:
        ask(model_of(Limited("slow down"))[0])
    assert (caught.value.kind, caught.value.status, caught.value.retry_after) == ("rate_limited", 429, 7.0)
    with pytest.raises(ModelError, match="KeyError: 'q'"):
        ask(model_of(KeyError("q"))[0])


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for a module `chain_app` of the user's."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("chain_app", None)


def langchain(name: str) -> Any:
    """Return a module of langchain-core; skip where it is not installed."""
    pytest.importorskip("langchain_core")
    return importlib.import_module(f"langchain_core.{name}")


def test_langchains_chat_model_answers(app: Path) -> None:
    """`python:` takes LangChain's own fake chat model, bare, bound, and with a parser behind it."""
    langchain("language_models")
    (app / "chain_app.py").write_text(
        "from langchain_core.language_models import GenericFakeChatModel\n"
        "from langchain_core.messages import AIMessage\n"
        "from langchain_core.output_parsers import StrOutputParser\n"
        "from langchain_core.runnables import RunnableLambda\n"
        "said = AIMessage('Paris', usage_metadata={'input_tokens': 3, 'output_tokens': 4, 'total_tokens': 7})\n"
        "chat = GenericFakeChatModel(messages=iter([said] * 9))\n"
        "bound = chat.bind(stop=['x'])\n"
        "piped = chat | StrOutputParser()\n"
        "echo = RunnableLambda(lambda text: text.upper())\n",
        encoding="utf-8",
    )
    replies = {}
    for name in ("chat", "bound", "piped", "echo"):
        check_callable(f"chain_app:{name}", app)
        replies[name] = ask(load_callable(f"chain_app:{name}", app), CHAT)
    assert {name: reply.text for name, reply in replies.items()} == {
        "chat": "Paris",
        "bound": "Paris",
        "piped": "Paris",
        "echo": "BE BRIEF.\nUSER: WHO?\nASSISTANT:",
    }
    assert (replies["chat"].prompt_tokens, replies["chat"].completion_tokens) == (3, 4)


def test_langchains_prompt_and_model_answer(app: Path) -> None:
    """A prompt of one variable before a plain language model takes the question."""
    prompts, models = langchain("prompts"), langchain("language_models")
    chain = prompts.PromptTemplate.from_template("Q: {q}") | models.FakeListLLM(responses=["Rome"])
    assert ask(callable_model("app:chain", chain)).text == "Rome"
