"""An agent with tools in front of any model: the hook `pytest_simpleqa_wrap` runs a tool loop over the chat API.

The README beside this file has the command. The model may search `corpus.txt`, reckon, and give up; put your own
tools into `TOOLS`. A service that fails in the midst of it is that service's error, as without an agent: the question
is tried again where that helps, within its deadline.
"""

from __future__ import annotations

import ast
import asyncio
import json
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa import Question, QuestionResult, Reply
from pytest_simpleqa.errors import SpecError
from pytest_simpleqa.models.protocol import Answerer
from pytest_simpleqa.models.shapes import as_chat
from pytest_simpleqa.models.wrapping import Inner
from pytest_simpleqa.records import Prompt

CORPUS = Path(__file__).with_name("corpus.txt")
SYSTEM = (
    "Answer the question in one short sentence. Search before you answer, and calculate with the tool. "
    "If you cannot find the answer, give up rather than guess."
)
GAVE_UP = "I don't know."
MAX_CALLS = 8
"""The tools that one reply may call; what it calls beyond them is not run, and not sent back."""
MAX_NAME_CHARS = 64
"""What the trace and the model get to see of a tool's name: as long as the chat API lets one be."""
MAX_RESULT_CHARS = 1_000
"""What the model, and the trace, get to see of one result, and the trace of one call's arguments."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the command line bound the agent: 0 steps is the run without it."""
    group = parser.getgroup("agent")
    group.addoption("--agent-steps", type=int, default=6, metavar="N", help="most replies of the model; 0 = no agent")
    group.addoption("--agent-seconds", type=float, default=60, metavar="S", help="most seconds for one question")


def pytest_simpleqa_wrap(answerer: Answerer, config: pytest.Config) -> Agent | None:
    """Let whatever model answers use the tools."""
    steps = config.getoption("--agent-steps")
    return (
        Agent({**TOOLS, "search": search_tool(CORPUS)}, steps, config.getoption("--agent-seconds")) if steps else None
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch whether the model knows tools at all."""
    config.pluginmanager.register(ToolWatch())


class ToolWatch:
    """Tells at the end where no answer has called a tool: that model may not know how."""

    def __init__(self) -> None:
        self._answers = 0
        self._calls = 0

    def pytest_simpleqa_result(self, result: QuestionResult) -> None:
        trace = (result.extra or {}).get("trace")
        if trace is not None:
            self._answers += 1
            self._calls += sum(len(step["calls"]) for step in trace)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._answers and not self._calls:
            said = f"agent: none of {self._answers} answers called a tool: can this model, behind this endpoint?"
            terminalreporter.write_line(said, yellow=True)


@dataclass(frozen=True)
class Tool:
    """What a model may call: a function of one text, or None for giving up."""

    about: str
    argument: str
    run: Callable[[str], str] | None

    def schema(self, name: str) -> dict[str, Any]:
        """Return the tool as the chat API wants it told."""
        parameters = {"type": "object", "properties": {self.argument: {"type": "string"}}, "required": [self.argument]}
        return {"type": "function", "function": {"name": name, "description": self.about, "parameters": parameters}}


@dataclass
class Trace:
    """What an agent did for one question; it stands beside the answer in the Report."""

    steps: list[dict[str, Any]] = field(default_factory=list)

    def heard(self, reply: Reply) -> None:
        self.steps.append({"tokens": [reply.prompt_tokens, reply.completion_tokens], "calls": []})

    def called(self, name: str, arguments: str, result: str) -> None:
        call = {"tool": name, "arguments": arguments[:MAX_RESULT_CHARS], "result": result}
        self.steps[-1]["calls"].append(call)

    def ended(self, reply: Reply, why: str) -> Reply:
        """Return `reply` with the trace and with why the agent stopped."""
        return replace(reply, extra={"ended": why, "trace": self.steps})


class Agent:
    """Puts a question to a model that may call tools, until it answers, gives up, or its steps or seconds are over."""

    def __init__(self, tools: Mapping[str, Tool], steps: int, seconds: float) -> None:
        self._tools = tools
        self._steps = steps
        self._seconds = seconds
        self._schemas = [tool.schema(name) for name, tool in tools.items()]

    async def __call__(self, question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
        """Answer; every reply of the model is counted, whatever comes out."""
        trace = Trace()
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await self._loop([{"role": "system", "content": SYSTEM}, *as_chat(prompt)], complete, trace)
        except TimeoutError:
            if not limit.expired():
                raise
            return trace.ended(Reply(GAVE_UP), f"{self._seconds:g} s were over")

    def describe(self) -> dict[str, Any]:
        """Tell runs with different tools or limits apart."""
        return {"tools": sorted(self._tools), "steps": self._steps, "seconds": self._seconds}

    async def _loop(self, messages: list[Any], complete: Inner, trace: Trace) -> Reply:
        for step in range(1, self._steps + 1):
            # What it has found must do for the last reply, in which it may call nothing.
            choice = "auto" if step < self._steps else "none"
            reply = await complete(messages, tools=self._schemas, tool_choice=choice)
            trace.heard(reply)
            calls = list(_calls_of(reply))
            if not calls:
                return trace.ended(reply, "answered")
            results = await asyncio.gather(*(asyncio.to_thread(self._run, name, said) for _, name, said in calls))
            for (_, name, said), result in zip(calls, results, strict=True):
                trace.called(name, said, result)
            if any(name in self._tools and self._tools[name].run is None for _, name, _ in calls):
                return trace.ended(Reply(GAVE_UP), "gave up")
            messages.append(_as_said(reply, calls))
            messages += [
                {"role": "tool", "tool_call_id": number, "content": result}
                for (number, _, _), result in zip(calls, results, strict=True)
            ]
        return trace.ended(Reply(GAVE_UP), f"{self._steps} steps were over")

    def _run(self, name: str, arguments: str) -> str:
        """Return what a call gives, or what is wrong with it: the model may mend that, and the run goes on."""
        tool = self._tools.get(name)
        if tool is None:
            return f"error: there is no tool {name!r}; there are {', '.join(self._tools)}"
        try:
            text = json.loads(arguments)[tool.argument]
        except (ValueError, KeyError, TypeError, RecursionError):
            return f"error: wanted a JSON object such as {json.dumps({tool.argument: '...'})}"
        try:
            return tool.run(str(text))[:MAX_RESULT_CHARS] if tool.run is not None else GAVE_UP
        except Exception as error:  # a tool that fails is no end of the world to an agent
            return f"error: {type(error).__name__}: {error}"[:MAX_RESULT_CHARS]


def _calls_of(reply: Reply) -> Iterator[tuple[str, str, str]]:
    """Yield id, name and arguments of each tool that a reply calls, whatever shape the model has made of it."""
    calls = (reply.extra or {}).get("tool_calls")
    for number, call in enumerate(calls[:MAX_CALLS] if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        known = function if isinstance(function, dict) else {}
        arguments = known.get("arguments")
        said = arguments if isinstance(arguments, str) else json.dumps(arguments)
        name = str(known.get("name"))[:MAX_NAME_CHARS]
        yield str((call.get("id") if known else None) or f"call-{number}"), name, said


def _as_said(reply: Reply, calls: list[tuple[str, str, str]]) -> dict[str, Any]:
    """Return the model's own message, to be sent back before the results."""
    said = [
        {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, name, arguments in calls
    ]
    return {"role": "assistant", "content": reply.text or None, "tool_calls": said}


def search_tool(corpus: Path) -> Tool:
    """Return a tool that finds passages by their words; your own search in its place may ask a service."""
    try:
        import bm25s
    except ImportError:
        raise SpecError("the agent's search: the package bm25s is missing; pip install bm25s") from None

    def tokens(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)

    passages = [line for line in corpus.read_text(encoding="utf-8").splitlines() if line.strip()]
    index = bm25s.BM25()
    index.index(tokens(passages), show_progress=False)

    def search(text: str) -> str:
        words = tokens([text])[0]
        fits = index.get_scores(words).tolist() if words else []
        best = sorted(zip(fits, passages, strict=False), reverse=True)[:3]
        return "\n".join(passage for fit, passage in best if fit > 0) or "nothing found"

    return Tool("Find passages of an encyclopedia.", "query", search)


_OPERATORS: Mapping[type, Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def calculate(text: str) -> str:
    """Return the value of an expression of numbers, `+ - * / // % **` and brackets; nothing else is ever run."""
    if len(text) > 200:
        raise ValueError("the expression is longer than 200 characters")
    return f"{_value(ast.parse(text.strip(), mode='eval').body):.15g}"


def _value(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)  # with floats no power can fill the memory: it overflows
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        power = _value(node.left) ** _value(node.right)
        if isinstance(power, complex):
            raise ValueError("no root of a negative number")
        return float(power)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError("wanted numbers, + - * / // % ** and brackets alone")


TOOLS = {
    "calculate": Tool("Calculate an arithmetic expression, such as (1756 + 35) / 3.", "expression", calculate),
    "give_up": Tool("Say that the answer cannot be found.", "reason", None),
}
"""The tools beside `search`, which is made when a run begins."""
