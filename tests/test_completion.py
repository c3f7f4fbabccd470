"""Promises of `evals/completion.py` and `evals/thinking.py`: the models behind `fn:NAME`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError, SpecError
from pytest_simpleqa.evals.completion import completion_functions
from pytest_simpleqa.evals.thinking import EXTRACT, THINK, ThinkingModel
from pytest_simpleqa.models.http import HttpModel
from pytest_simpleqa.models.protocol import Model, complete_with
from pytest_simpleqa.models.spec import LocalAddress, Surroundings, resolve_model
from pytest_simpleqa.records import Prompt, Reply

from .fake_server import FakeServer

CHAT: Prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the module and the folders that a test has made importable."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("own_fns", "own_plain"):
        sys.modules.pop(name, None)


def resolved(folder: Path, name: str, yaml: str = "", source: str = "", /, **params: Any) -> Model:
    """Return the model behind `fn:NAME` beside a registry with the given completion functions."""
    (folder / "completion_fns").mkdir(exist_ok=True)
    (folder / "completion_fns" / "own.yaml").write_text(yaml or "{}", encoding="utf-8")
    (folder / "own_fns.py").write_text(source, encoding="utf-8")
    (folder / "own_plain.py").write_text("def plainly(prompt): return f'{prompt}.'\n", encoding="utf-8")
    environment = {key: params.pop(key) for key in list(params) if key.isupper()}
    around = Surroundings(
        {"OPENAI_API_KEY": "sk-planted-1234567890", **environment},
        folder,
        (),
        lambda path: LocalAddress("http://h/v1", "m"),
        functions=completion_functions([folder]),
    )
    return resolve_model(f"fn:{name}", params, around)


def ask(model: Model, prompt: Prompt = "Who?", **params: Any) -> Reply:
    async def once() -> Reply:
        try:
            return await complete_with(model, prompt, params)
        finally:
            await model.close()

    return asyncio.run(once())


ECHO = """
from evals.api import CompletionFn, CompletionResult
from evals.prompt.base import CompletionPrompt
from evals.record import record_sampling

class Said(CompletionResult):
    def __init__(self, text): self.text = text
    def get_completions(self): return [self.text]

class Echo(CompletionFn):
    def __init__(self, sign='!', **kwargs): self.sign = sign
    def __call__(self, prompt, **kwargs):
        record_sampling(prompt=prompt, sampled='x')
        return Said(f"{prompt!r} {CompletionPrompt(prompt).to_formatted_prompt()!r} {sorted(kwargs)}{self.sign}")

class Later(Echo):
    async def __call__(self, prompt, **kwargs):
        return super().__call__(prompt, **kwargs)

def plainly(prompt, sign='.'):
    return f"{prompt}{sign}"
"""


def test_a_completion_function_gets_the_prompt_as_it_is(tmp_path: Path) -> None:
    """A class of a registry is made with its args and called with text or messages, and the parameters."""
    yaml = "own/echo:\n  class: own_fns:Echo\n  args:\n    sign: '?'\n"
    model = resolved(tmp_path, "own/echo", yaml, ECHO, top_p=1)
    assert ask(model, "Who?", temperature=0).text == "'Who?' 'Who?' ['temperature', 'top_p']?"
    assert ask(model, CHAT).text == f"{CHAT!r} 'Be brief.\\nUser: Who?\\nAssistant:' ['top_p']?"
    assert model.describe()["provider"] == "fn"


def test_parameters_may_be_arguments_of_the_class(tmp_path: Path) -> None:
    """What the class is made with can be given by `--answer-llm-param`, over the registry's args."""
    model = resolved(tmp_path, "own/echo", "own/echo:\n  class: own_fns:Echo\n", ECHO, sign="#", top_p=1)
    assert ask(model).text == "'Who?' 'Who?' ['top_p']#"


@pytest.mark.parametrize(("kind", "said"), [("Later", "'Who?' 'Who?' []!"), ("plainly", "Who?.")])
def test_async_and_plain_functions_complete(tmp_path: Path, kind: str, said: str) -> None:
    """An async `__call__` is awaited on the loop; a function of the prompt is taken as well."""
    assert ask(resolved(tmp_path, "x", f"x:\n  class: own_fns:{kind}\n", ECHO)).text == said


def test_a_completion_function_that_raises_costs_the_row(tmp_path: Path) -> None:
    """What it raises, and what it returns beside text, is told by its name in one line."""
    source = "def f(prompt): return 1 / 0\ndef g(prompt): return 1"
    with pytest.raises(ModelError, match="ZeroDivisionError: division by zero"):
        ask(resolved(tmp_path, "f", "f:\n  class: own_fns:f\n", source))
    with pytest.raises(ModelError, match="fn:g returned int; wanted str"):
        ask(resolved(tmp_path, "g", "g:\n  class: own_fns:g\n", source))


def test_openais_chat_function_is_our_connection(tmp_path: Path) -> None:
    """Model, address, key and options of the YAML go out as those of a connection, the user's parameters over them."""
    yaml = (
        "mine:\n  class: evals.completion_fns.openai:OpenAIChatCompletionFn\n  args:\n    model: gpt-x\n"
        "    api_base: {base}\n    api_key: sk-of-the-yaml-1234\n"
        "    extra_options:\n      temperature: 1\n      seed: 2\n"
    )
    with FakeServer() as server:
        model = resolved(tmp_path, "mine", yaml.format(base=server.base_url), "", temperature=0)
        assert isinstance(model, HttpModel)
        ask(model, CHAT)
        (request,) = server.requests
    assert request.headers["authorization"] == "Bearer sk-of-the-yaml-1234"
    assert request.body == {"model": "gpt-x", "temperature": 0, "seed": 2, "messages": CHAT}
    assert "sk-" not in str(model.describe())


def test_the_dummy_answers(tmp_path: Path) -> None:
    """OpenAI Evals' own stand-in for a model has its name here too."""
    assert ask(resolved(tmp_path, "dummy")).text == "This is a dummy response."


# --- chain of thought ----------------------------------------------------------------------


class Thinker:
    """A model that says in turn what it is told to, and keeps what it was asked."""

    max_in_flight: int | None = 2
    is_service = True

    def __init__(self, *said: str | ModelError) -> None:
        self.said = list(said)
        self.asked: list[Any] = []

    async def complete(self, prompt: Prompt) -> Reply:
        return await self.complete_with(prompt, {})

    async def complete_with(self, prompt: Prompt, params: Any) -> Reply:
        self.asked.append((prompt, dict(params)))
        said = self.said.pop(0)
        if isinstance(said, ModelError):
            raise said
        return Reply(said, prompt_tokens=5, completion_tokens=7, latency_s=1.0, calls=1)

    async def close(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"provider": "x", "model": "m", "base_url_host": "h", "params": {"seed": 1}}


def test_it_thinks_first_then_answers() -> None:
    """Two requests: the question with the call to think, then its thoughts with the call for the answer alone."""
    inner = Thinker("It was Ann, I think.", " Ann\n")
    model = ThinkingModel("cot", inner, inner)
    reply = ask(model, CHAT, max_tokens=5, temperature=0)
    system = CHAT[0]
    first = [system, {"role": "user", "content": f"Who?{THINK}"}]
    second = [
        *first,
        {"role": "assistant", "content": "It was Ann, I think."},
        {"role": "user", "content": EXTRACT.strip()},
    ]
    assert inner.asked == [(first, {"temperature": 0}), (second, {"max_tokens": 5, "temperature": 0})]
    assert (reply.text, reply.calls, reply.prompt_tokens, reply.completion_tokens) == ("Ann", 2, 10, 14)
    assert (reply.extra, reply.latency_s) == ({"thinking": "It was Ann, I think."}, 2.0)
    assert (model.max_in_flight, model.describe()["params"]) == (2, {"seed": 1})


def test_after_a_fault_nothing_is_thought_twice() -> None:
    """Where the answer fails, the next try begins behind the thoughts."""
    inner = Thinker("Hm.", ModelError("server_error", "HTTP 503"), "Ann")
    model = ThinkingModel("cot", inner, inner)
    with pytest.raises(ModelError) as caught:
        ask(model)
    assert caught.value.calls == 2
    reply = ask(model)
    assert (reply.text, reply.calls, reply.completion_tokens, len(inner.asked)) == ("Ann", 1, 14, 3)


def test_the_registrys_chain_of_thought_is_ours(tmp_path: Path) -> None:
    """`cot` of a registry, over any inner name or spec, with templates of its own; other arguments by parameter."""
    yaml = (
        "cot:\n  class: evals.completion_fns.cot:ChainOfThoughtCompletionFn\n  args:\n"
        "    cot_completion_fn: gpt-3.5-turbo\n    cot_template: ' Think.'\n    extract_answer_template: Answer.\n"
        "echo:\n  class: own_fns:plainly\n"
    )
    over_openai = resolved(tmp_path, "cot", yaml, ECHO, temperature=0)
    assert isinstance(over_openai, ThinkingModel)
    assert over_openai.describe()["chain_of_thought"]["thinker"]["model"] == "gpt-3.5-turbo"
    assert over_openai.describe()["params"] == {"temperature": 0}
    over_echo = resolved(
        tmp_path, "cot", yaml, ECHO, cot_completion_fn="echo", extract_completion_fn="python:own_plain:plainly"
    )
    assert ask(over_echo).text == "User: Who? Think.\nAssistant: Who? Think..\nUser: Answer.\nAssistant:."


def test_chain_of_thought_goes_around_any_spec(tmp_path: Path) -> None:
    """`fn:cot/SPEC` needs no registry: it thinks with whatever model the spec names."""
    model = resolved(tmp_path, "cot/python:own_plain:plainly", "", ECHO)
    assert isinstance(model, ThinkingModel)
    assert ask(model).extra == {"thinking": f"Who?{THINK}."}
    assert model.describe()["model"] == "cot/python:own_plain:plainly"


# --- LangChain -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["LangChainLLMCompletionFn", "LangChainChatModelCompletionFn"])
def test_a_registrys_langchain_model_answers(tmp_path: Path, kind: str) -> None:
    """A class of LangChain's named in a registry is made with its arguments, and asked."""
    pytest.importorskip("langchain_core")
    fake = "FakeListLLM" if "LLM" in kind else "FakeListChatModel"
    yaml = (
        f"lc:\n  class: evals.completion_fns.langchain_llm:{kind}\n  args:\n"
        f"    llm: langchain_core.language_models:{fake}\n    llm_kwargs:\n      responses: [Paris]\n"
    )
    reply = ask(resolved(tmp_path, "lc", yaml), CHAT)
    assert reply.text == "Paris"


# --- what cannot be ------------------------------------------------------------------------

EVALS = "x:\n  class: evals.completion_fns"


@pytest.mark.parametrize(
    ("name", "yaml", "wanted"),
    [
        ("y", "yes:\n  class: own_fns:Echo\n", "no completion function 'y'"),
        (
            "x",
            f"{EVALS}.openai:OpenAICompletionFn\n",
            "old endpoint for completions without a chat; write openai:MODEL",
        ),
        ("x", f"{EVALS}.retrieval:RetrievalCompletionFn\n", "write the retrieval as a python: callable"),
        ("x", f"{EVALS}.langchain_math:LangChainMathChainCompletionFn\n", "name a chain of yours"),
        ("x", f"{EVALS}.solver_completion_fn:SolverCompletionFn\n", "solvers are not run here"),
        ("x", f"{EVALS}.other:Other\n", "class evals.completion_fns.other:Other: "),
        ("x", f"{EVALS}.cot:ChainOfThoughtCompletionFn\n", "no cot_completion_fn"),
        (
            "x",
            f"{EVALS}.cot:ChainOfThoughtCompletionFn\n  args:\n    cot_completion_fn: x\n",
            "fn:x leads back to itself",
        ),
        ("x", f"{EVALS}.langchain_llm:LangChainLLMCompletionFn\n  args:\n    llm: None1\n", "no class 'None1' in"),
        ("x", f"{EVALS}.openai:OpenAIChatCompletionFn\n", "fn:x: its args name no model"),
        (
            "x",
            "x:\n  class: own_fns:Ech\n",
            "class own_fns:Ech: own_fns (*own_fns.py) has no 'Ech'; did you mean Echo?",
        ),
        ("x", "x:\n  class: own_fns:Echo\n  args:\n    '1': 2\n    sign: {}\n", ""),
        ("x", "x:\n  class: own_fns:Said\n", "fn:x: making it failed: TypeError"),
        ("", "", "fn: names no completion function; write fn:NAME"),
    ],
)
def test_what_is_no_completion_function_is_one_line(tmp_path: Path, name: str, yaml: str, wanted: str) -> None:
    """A wrong name, a class that there is nothing for, and code that fails are each told in one line."""
    if not wanted:
        resolved(tmp_path, name, yaml, ECHO)
        return
    with pytest.raises(SpecError) as caught:
        resolved(tmp_path, name, yaml, ECHO)
    start, _, end = wanted.partition("*")
    assert start in str(caught.value)
    assert end in str(caught.value)
    assert "\n" not in str(caught.value)
