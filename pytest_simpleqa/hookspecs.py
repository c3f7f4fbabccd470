"""The hooks that a conftest.py or a plugin may implement; each is shown by a file in `conftest_examples/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # loaded in every pytest run: annotations must cost nothing
    from collections.abc import Awaitable

    from .models.protocol import Answerer, Model
    from .models.wrapping import Wrapper
    from .records import Judgement, Question, QuestionResult, Reply, Verdict
    from .report import Report
    from .runevents import Event


@pytest.hookspec(firstresult=True)
def pytest_simpleqa_model(spec: str, config: pytest.Config) -> Model | None:
    """Return the model behind a spec of your own, such as `house:large`; None leaves it to others.

    Called for every spec that is not built in (`local`, `python:`, `replay:`, `hook`, `rules`), once at
    configure in the process that reports and once in each process that answers. It must not ask anything yet.
    """


@pytest.hookspec(firstresult=True)
def pytest_simpleqa_answer(
    question: Question, config: pytest.Config
) -> str | Reply | Awaitable[str | Reply | None] | None:
    """Answer `question` under `--answer-llm hook`; None from a plain function leaves it to others.

    Called once per question in the process that answers: plain functions in a thread, async ones on the
    engine's loop, many at once. Where nobody answers, or an async one gives None, the row is an error
    (`declined`). An empty string counts as not attempted. An exception is that row's error.
    """


@pytest.hookspec
def pytest_simpleqa_wrap(answerer: Answerer, config: pytest.Config) -> Wrapper | None:
    """Return what is to stand around the answer model that --answer-llm names; None leaves it as it is.

    That is an async function `(question, prompt, complete, repeat)`, or an object that is called like one. It
    gives a Reply, or the answer's text, and mostly gets it by `await complete(prompt)`, with the prompt that it
    was given or another, and with request parameters as keywords; it may call it several times, or not at all.
    `prompt` is the rendered answer prompt, or what a wrapper further out has made of it: a text, or chat
    messages. Around a recording or `hook`, `complete` gives the answer to the question, whatever the prompt.

    Called once at configure in the process that reports, and once in each process that answers; it must not
    ask anything yet. Several wrappers stand around each other, those of conftest.py files around those of
    plugins. The engine tries the whole of it again where a ModelError may pass, within the question's deadline.
    Calls and tokens are counted as `complete` spent them. What an object's `describe()` returns (plain JSON)
    stands in run.json and in the Report's provenance, and a run is only resumed where it is the same; `close()`
    is called at the end. Any other exception is that row's error.
    """


@pytest.hookspec(firstresult=True)
def pytest_simpleqa_judge(
    question: Question, predicted: str, config: pytest.Config
) -> str | Verdict | Judgement | Awaitable[str | Verdict | Judgement | None] | None:
    """Judge `predicted` under `--judge-llm hook`: a Verdict, or a text that holds one; None leaves it to others.

    Called as `pytest_simpleqa_answer` is, never with a blank answer. Where nobody judges, or the text is
    no verdict, the row is a judge failure.
    """


@pytest.hookspec
def pytest_simpleqa_result(result: QuestionResult, run: str) -> None:
    """Hear of each result as it arrives, in the process that reports; in the order of arrival.

    `run` is the name of the run that it belongs to; an implementation may leave it out.
    """


@pytest.hookspec
def pytest_simpleqa_event(event: Event) -> None:
    """Hear of `start`, `qa_progress` and `done`, in the process that reports; an exception here is only warned of."""


@pytest.hookspec
def pytest_simpleqa_report(report: Report) -> None:
    """Hear of the Report after it was written, at the end of the session, in the process that reports."""
