"""The library entry: a run without pytest, in a script or on a running loop."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pytest_simpleqa
from pytest_simpleqa import (
    Event,
    ModelError,
    Question,
    Reply,
    Report,
    RunCutShort,
    RunStopped,
    SimpleQAError,
    Template,
    Verdict,
    arun,
    load_dataset,
    run,
)
from pytest_simpleqa.models import embedded
from pytest_simpleqa.models.wrapping import Inner
from pytest_simpleqa.records import Dataset, Prompt
from pytest_simpleqa.testing import FakeJudge, FakeModel, fake_dataset

from .fake_server import FakeServer

UNAUTHORIZED = ModelError("unauthorized", "wrong key", status=401)


def gold_of(prompt: Any) -> str:
    """Answer `question 7?` with `gold 7`."""
    return str(prompt).replace("question", "gold").rstrip("?")


async def gold_of_later(prompt: str) -> str:
    await asyncio.sleep(0.001)
    return gold_of(prompt)


# -- the Report ------------------------------------------------------------------------------------


def test_a_run_gives_its_report() -> None:
    """Counts, names, options and provenance are those of the run."""
    report = run(
        fake_dataset(6), FakeModel([gold_of("question 1?"), "wrong", "", "gold 9"]), FakeJudge(), concurrency=1
    )
    assert (report.n, report.correct, report.incorrect, report.not_attempted, report.complete) == (6, 1, 4, 1, True)
    assert (report.name, report.dataset, report.model, report.judge) == ("fake", "fake", "fake:fake", "fake:judge")
    assert report.per_topic is not None
    assert {name: topic.n for name, topic in report.per_topic.items()} == {"Even": 3, "Odd": 3}
    assert report.options == {
        "concurrency": 1,
        "limit_questions": 0,
        "max_samples": 200,
        "per_question_timeout": 90.0,
        "repeats": 1,
        "sentinels": 0,
        "parse": "strict",
        "include_topic_breakdown": True,
        "ask_confidence": False,
    }
    assert report.provenance["dataset_sha256"] == "0" * 64
    assert report.provenance["answer"]["provider"] == "fake"
    assert set(report.provenance["versions"]) == {"pytest_simpleqa", "python"}
    assert report.exit_status is None


def test_the_options_are_kept() -> None:
    """Limit, repeats, samples, breakdown and timeout do what their names say."""
    model = FakeModel(gold_of)
    report = run(
        fake_dataset(9),
        model,
        FakeJudge(),
        limit_questions=3,
        repeats=2,
        max_samples=4,
        include_topic_breakdown=False,
    )
    assert (report.population, report.n, len(report.samples), report.per_topic) == (6, 6, 4, None)
    assert [(row.id, row.repeat) for row in report.samples] == [("q0001", 1), ("q0001", 2), ("q0002", 1), ("q0002", 2)]
    assert run(fake_dataset(3), model, FakeJudge(), max_samples=-1).samples[2].id == "q0003"


def test_the_judge_can_be_tried() -> None:
    """Sentinels are judged among the answers, counted apart, and change none of the run's own counts."""
    blind = FakeJudge(Verdict.CORRECT)
    report = run(fake_dataset(6), FakeModel("an answer"), blind, sentinels=4)
    assert (report.n, report.correct, len(blind.judged)) == (6, 6, 10)
    assert report.sentinels is not None
    assert report.sentinels["n"] == 4
    assert report.sentinels["by_kind"]["abstention"] == {"n": 1, "passed": 0, "failed": 1}
    assert run(fake_dataset(6), FakeModel("an answer"), FakeJudge()).sentinels is None


def test_the_deadline_is_kept() -> None:
    """A model that hangs makes one error, and the run ends by itself."""
    began = time.monotonic()
    with pytest.raises(RunCutShort, match=r"^fake:fake: no answer within 0\.05 s$") as caught:
        run(fake_dataset(3), FakeModel(latency_s=3600), FakeJudge(), per_question_timeout=0.05, concurrency=1)
    assert time.monotonic() - began < 5
    assert caught.value.report.errors == 1


def test_an_empty_population_is_an_empty_report() -> None:
    """No question, no request, no rate."""
    report = run(Dataset("none", (), "0" * 64), FakeModel(), FakeJudge())
    assert (report.n, report.accuracy) == (0, None)


def test_a_run_here_and_under_pytest_agree(pytester: pytest.Pytester) -> None:
    """The same dataset and specs give the same Report from a script and from a session."""
    rows = "question,answer,topic,predicted,verdict\n" + "".join(
        f"question {n}?,gold {n},{'Even' if n % 2 == 0 else 'Odd'},{f'gold {n}' if n % 3 else ''},{'ABC'[n % 3]}\n"
        for n in range(1, 13)
    )
    path = pytester.path / "old.csv"
    path.write_text(rows)
    session = pytester.runpytest_subprocess(
        "--simpleqa-dataset=old.csv", "--answer-llm=replay:old.csv", "--judge-llm=replay:old.csv",
        "--simpleqa-out=out.json", "-q",
    )  # fmt: skip
    assert session.ret == 1
    theirs = json.loads((pytester.path / "out.json").read_text())
    ours = run("old.csv", "replay:old.csv", "replay:old.csv").to_json()
    for document in (theirs, ours):
        for key in ("started_at", "duration_ms", "exit_status", "options"):
            del document[key]
        document["provenance"].pop("versions")
        for sample in document["samples"]:
            del sample["latency_s"]
    assert ours == theirs


# -- what answers and what judges ------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        gold_of,
        gold_of_later,
        lambda prompt: gold_of_later(prompt),
        lambda prompt: Reply(gold_of(prompt)),
        FakeModel(gold_of),
    ],
)
def test_whatever_answers_is_put_the_question(answer: Any) -> None:
    """Plain and async callables, those that give something to await, and models all answer the prompt."""
    report = run(fake_dataset(5), answer, FakeJudge())
    assert report.correct == 5


def test_a_callable_is_named_by_its_place() -> None:
    """The Report says which function it was."""
    report = run(fake_dataset(1), gold_of, FakeJudge())
    assert report.model == f"python:{__name__}:gold_of"


def test_an_answerer_is_given_the_question() -> None:
    """An object that answers questions, such as a retrieval stack, is put no prompt at all."""

    class Stack:
        max_in_flight: int | None = 2
        is_service = False

        async def answer(self, question: Question, repeat: int) -> Reply:
            return Reply(f"{question.answer}, says {question.topic}", extra={"trace": [repeat]})

        async def close(self) -> None: ...

        def describe(self) -> dict[str, Any]:
            return {"provider": "mine", "model": "stack"}

    report = run(fake_dataset(4), Stack(), FakeJudge())
    assert (report.correct, report.model, report.samples[0].extra) == (4, "mine:stack", {"trace": [1]})


def test_wrappers_stand_around_whatever_answers() -> None:
    """`wrap` is one wrapper or several, the outermost first; the Report names them, and the answer is theirs."""

    async def shout(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> str:
        return (await complete(f"{prompt} {repeat}")).text.upper()

    async def quote(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> str:
        return f"<{(await complete(prompt)).text}>"

    model = FakeModel("yes")
    report = run(fake_dataset(1), model, FakeJudge(), wrap=[quote, shout], repeats=2, concurrency=1)
    assert [row.predicted for row in report.samples] == ["<YES>", "<YES>"]
    assert model.prompts == ["question 1? 1", "question 1? 2"]
    names = [each["name"].rpartition(".")[2] for each in report.provenance["answer"]["wrapped_by"]]
    assert names == ["quote", "shout"]
    for answer in (gold_of, gold_of_later):
        report = asyncio.run(arun(fake_dataset(2), answer, "rules", wrap=shout))
        assert [row.predicted for row in report.samples] == ["GOLD 1? 1", "GOLD 2? 1"]
    stated = run(fake_dataset(1), gold_of, "rules", wrap=_sure, ask_confidence=True)
    assert stated.samples[0].extra == {"confidence": 0.8}
    with pytest.raises(SimpleQAError, match=r"^wrap holds a plain function; wanted an async function"):
        run(fake_dataset(1), model, FakeJudge(), wrap=[gold_of])  # type: ignore[list-item]  # the mistake in question


async def _sure(question: Question, prompt: Prompt, complete: Inner, repeat: int) -> str:
    return f"{question.answer}\nConfidence: 80%"


def test_a_callable_judges_by_the_grade_prompt() -> None:
    """A callable or a model as judge is a judge model: it is sent the grade prompt, and its reply is parsed."""
    seen: list[str] = []

    def judge(prompt: str) -> str:
        seen.append(prompt)
        return "B" if "question 2?" in prompt else "A"

    report = run(fake_dataset(3), gold_of, judge, grade_prompt="{question}|{target}|{predicted_answer}")
    assert (report.correct, report.incorrect) == (2, 1)
    assert sorted(seen) == [f"question {n}?|gold {n}|gold {n}" for n in (1, 2, 3)]
    assert run(fake_dataset(3), gold_of, FakeModel("C")).not_attempted == 3


def test_prompts_may_be_texts_or_templates() -> None:
    """The answer prompt shapes what is asked."""
    model = FakeModel()
    for prompt in ("Q: {question}", Template("Q: {question}")):
        run(fake_dataset(1), model, FakeJudge(), answer_prompt=prompt)
    assert model.prompts == ["Q: question 1?"] * 2


def test_parameters_go_to_callables_that_take_them() -> None:
    """Request parameters are keyword arguments, as far as a callable has them; the judge's temperature is 0."""
    seen: list[tuple[str, Any]] = []

    def answer(prompt: str, temperature: float = 1.0) -> str:
        seen.append(("answer", temperature))
        return "x"

    def judge(prompt: str, *, temperature: float = 1.0, seed: int = 0) -> str:
        seen.append(("judge", (temperature, seed)))
        return "A"

    run(fake_dataset(1), answer, judge, answer_params={"temperature": 0.5, "odd": 1})
    run(fake_dataset(1), answer, judge, judge_params={"seed": 7})
    assert seen == [("answer", 0.5), ("judge", (0, 0)), ("answer", 1.0), ("judge", (1.0, 7))]


def test_the_papers_rule_can_be_asked_for() -> None:
    """`parse="paper"` reads the first letter, and the Report says how many rows the strict rule reads otherwise."""
    report = run(fake_dataset(2), gold_of, FakeModel("Bah, A"), parse="paper")
    assert (report.incorrect, report.options["parse"], report.provenance["paper_parse_differs"]) == (2, "paper", 2)


def test_objects_are_closed_at_the_end() -> None:
    """Models and judges are closed once for each run, and fakes may be used again."""
    model, judge = FakeModel(), FakeJudge()
    for _ in range(2):
        run(fake_dataset(1), model, judge)
    assert (model.closed, judge.closed) == (2, 2)


def test_a_spec_over_http_takes_its_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same aliases work as behind `--answer-llm` and `--judge-llm`."""
    with FakeServer() as server:
        server.script(lambda body, nth: "A" if body["model"] == "judge" else "gold")
        connection = {"provider": "openai", "base_url": server.base_url, "api_key": "k"}
        monkeypatch.setenv("SIMPLEQA_MINE", json.dumps(connection))
        report = run(fake_dataset(5), "mine:m", "mine:judge", concurrency=2)
    assert (report.correct, report.model, report.judge) == (5, "mine:m", "mine:judge")
    assert len(server.requests) == 10


def test_the_embedded_server_is_started_once_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`local` as answer model and judge is one server, up before the first question and down at the end."""
    events: list[str] = []
    with FakeServer() as server:
        server.script(lambda body, nth: "A" if "gold" in str(body) else "x")

        class Server:
            base_url = server.base_url
            model_name = "tiny"

            def __init__(self, path: Path) -> None:
                events.append(f"start {path.name}")

            def stop(self) -> None:
                events.append("stop")

        # The real one needs a model of 100 MB; what is tested is who starts and stops it.
        monkeypatch.setattr(embedded, "LocalServer", Server)
        monkeypatch.setattr("pytest_simpleqa.models.local._require_server", lambda: None)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
        report = run(fake_dataset(3), "local:tiny.gguf", "local:tiny.gguf", hook=lambda e: events.append(e.kind))
    assert (report.n, report.errors) == (3, 0)
    assert [event for event in events if event != "qa_progress"] == ["start", "start tiny.gguf", "stop", "done"]


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency=0: wanted a whole number of at least 1"),
        ({"concurrency": 1.5}, "concurrency=1.5: wanted a whole number of at least 1"),
        ({"limit_questions": -1}, "limit_questions=-1: wanted a whole number of at least 0"),
        ({"repeats": 0}, "repeats=0: wanted a whole number of at least 1"),
        ({"max_samples": -2}, "max_samples=-2: wanted a whole number of at least -1"),
        ({"per_question_timeout": -1}, "per_question_timeout=-1: wanted seconds, at least 0 (none)"),
        ({"per_question_timeout": float("nan")}, "per_question_timeout=nan: wanted seconds, at least 0 (none)"),
        ({"progress_pct": 101}, "progress_pct=101: wanted a number from 0 (never) to 100"),
        ({"parse": "loose"}, "parse='loose': wanted 'strict' or 'paper'"),
        ({"answer_prompt": "hi"}, "answer_prompt: the prompt lacks {question}; it needs {question}"),
        ({"judge": 7}, "judge=7: wanted a spec, a model object or a callable (prompt) -> str"),
        ({"answer": None}, "answer=None: wanted a spec, a model object or a callable (prompt) -> str"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_asked(options: dict[str, Any], message: str) -> None:
    """The error names the argument, what was found and what was wanted; no event is sent and nobody is asked."""
    model, events = FakeModel(), list[Event]()
    arguments = {"answer": model, "judge": FakeJudge(), "hook": events.append, **options}
    with pytest.raises(SimpleQAError) as caught:
        run(fake_dataset(3), **arguments)
    assert str(caught.value) == message
    assert (model.prompts, events) == ([], [])


@pytest.mark.parametrize(
    ("dataset", "answer", "judge"),
    [
        ("no_such_file.csv", gold_of, "rules"),
        ("sample", "nobody:m", "rules"),
        ("sample", "rules", "rules"),
        ("sample", "hook", "rules"),
        ("sample", gold_of, "replay:none.csv"),
        ("sample", "python:no.such:thing", "rules"),
    ],
)
def test_what_is_not_there_is_one_line(dataset: str, answer: Any, judge: str) -> None:
    """Datasets and specs that lead nowhere are the user's mistakes, without a traceback of ours in the text."""
    with pytest.raises(SimpleQAError) as caught:
        run(dataset, answer, judge)
    assert "\n" not in str(caught.value)


# -- stops and events ------------------------------------------------------------------------------


def test_a_run_that_stops_itself_keeps_what_was_finished() -> None:
    """The error says why, is a RunStopped, and holds the Report of the rows before."""
    model = FakeModel(["gold 1", "gold 2", UNAUTHORIZED])
    with pytest.raises(RunStopped, match=r"^fake:fake: wrong key$") as caught:
        run(fake_dataset(100), model, FakeJudge(), concurrency=1)
    assert isinstance(caught.value, RunCutShort)
    report = caught.value.report
    assert (report.n, report.correct, report.errors, report.complete) == (3, 2, 1, False)
    assert len(model.prompts) == 3


def test_the_last_question_can_stop_a_run_as_well() -> None:
    """A refused key is told also where no question was left to ask."""
    for _ in range(20):
        with pytest.raises(RunCutShort):
            run(fake_dataset(1), FakeModel(UNAUTHORIZED), FakeJudge())


def test_events_come_in_order() -> None:
    """Start, progress at each step, done; all fields are texts."""
    events: list[Event] = []
    run(fake_dataset(8), FakeModel(gold_of), FakeJudge(), hook=events.append, progress_pct=50)
    assert [event.kind for event in events] == ["start", "qa_progress", "qa_progress", "done"]
    assert events[0].fields == {"dataset": "fake", "n_qs": "8", "answer": "fake:fake", "judge": "fake:judge"}
    assert [event.fields["pct"] for event in events[1:3]] == ["50", "100"]
    assert events[3].fields["accuracy"] == "1.0000"
    assert all(isinstance(value, str) for event in events for value in event.fields.values())


def test_a_hook_that_fails_costs_a_warning() -> None:
    """A chat that is down does not end the run."""

    def hook(event: Event) -> None:
        raise OSError("chat is down")

    with pytest.warns(RuntimeWarning, match="the hook failed at (start|done): OSError: chat is down"):
        report = run(fake_dataset(2), FakeModel(), FakeJudge(), hook=hook, progress_pct=0)
    assert report.complete


def test_ctrl_c_ends_a_run() -> None:
    """An interrupt passes on, and models are closed."""

    def hook(event: Event) -> None:
        if event.kind == "qa_progress":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(fake_dataset(8), model := FakeModel(), FakeJudge(), hook=hook)
    assert model.closed == 1


# -- on a running loop -----------------------------------------------------------------------------


def test_arun_leaves_the_loop_free() -> None:
    """While a run goes on, the caller's loop does other work, and gets the same Report."""

    async def main() -> tuple[Report, int]:
        task = asyncio.create_task(arun(fake_dataset(10), FakeModel(gold_of, latency_s=0.05), FakeJudge()))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return await task, ticks

    report, ticks = asyncio.run(main())
    assert (report.correct, ticks > 3) == (10, True)


def test_async_callables_are_awaited_on_the_callers_loop() -> None:
    """A client that was opened on the notebook's loop works: answers and events come there."""
    loops: set[asyncio.AbstractEventLoop] = set()
    threads: set[int] = set()

    async def answer(prompt: str) -> str:
        loops.add(asyncio.get_running_loop())
        return gold_of(prompt)

    def hook(event: Event) -> None:
        loops.add(asyncio.get_running_loop())
        threads.add(threading.get_ident())

    async def main() -> tuple[Report, asyncio.AbstractEventLoop]:
        return await arun(fake_dataset(5), answer, lambda prompt: judged(prompt), hook=hook), asyncio.get_running_loop()

    async def judged(prompt: str) -> str:
        loops.add(asyncio.get_running_loop())
        return "A"

    report, mine = asyncio.run(main())
    assert report.correct == 5
    assert loops == {mine}
    assert threads == {threading.get_ident()}


def test_events_are_all_there_when_arun_returns() -> None:
    """Nothing is told after the Report was given."""

    async def main() -> list[str]:
        kinds: list[str] = []
        await arun(fake_dataset(4), FakeModel(), FakeJudge(), hook=lambda event: kinds.append(event.kind))
        return kinds

    assert asyncio.run(main()) == ["start", *["qa_progress"] * 4, "done"]


def test_cancelling_stops_the_run() -> None:
    """A cancelled run starts nothing new, gives its models back, and raises at once."""

    async def main(model: FakeModel) -> None:
        task = asyncio.create_task(arun(fake_dataset(1000), model, FakeJudge(), concurrency=2))
        while len(model.prompts) < 4:  # noqa: ASYNC110 - the model is asked on another loop
            await asyncio.sleep(0.005)
        task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 0.5
        for _ in range(600):
            if model.closed:
                return
            await asyncio.sleep(0.01)

    asyncio.run(main(model := FakeModel(latency_s=0.02)))
    assert model.closed == 1
    assert len(model.prompts) < 20


def test_many_runs_go_on_at_once() -> None:
    """A dozen models can be compared in one gather, each with callables that use the loop's threads."""

    async def answer(prompt: str) -> str:
        return await asyncio.to_thread(gold_of, prompt)

    async def main() -> list[Report]:
        return await asyncio.gather(*(arun(fake_dataset(4), answer, FakeJudge()) for _ in range(12)))

    assert [report.correct for report in asyncio.run(main())] == [4] * 12


def test_arun_raises_what_run_raises() -> None:
    """Mistakes and stops reach the awaiting code."""
    with pytest.raises(SimpleQAError, match="concurrency=0"):
        asyncio.run(arun(fake_dataset(1), gold_of, "rules", concurrency=0))
    with pytest.raises(RunCutShort, match="wrong key"):
        asyncio.run(arun(fake_dataset(2), FakeModel(UNAUTHORIZED), FakeJudge()))


def test_run_works_under_a_running_loop() -> None:
    """Where somebody calls `run` in a notebook it blocks, but it works."""

    async def main() -> Report:
        return run(fake_dataset(3), gold_of_later, FakeJudge())

    assert asyncio.run(main()).correct == 3


# -- the package -----------------------------------------------------------------------------------


def test_the_package_loads_nothing_before_it_is_used() -> None:
    """Importing the package costs nothing; each public name is there when it is asked for, in any order."""
    code = (
        "import sys, pytest_simpleqa as q\n"
        "assert [m for m in sys.modules if m.startswith('pytest_simpleqa')] == ['pytest_simpleqa']\n"
        "assert set(q.__all__) <= set(dir(q))\n"
        "from pytest_simpleqa import *\n"
        "for name in q.__all__: assert getattr(q, name).__name__ == name, name\n"
        "assert not {'pytest', 'openai', 'aiohttp', 'pooch', 'rapidfuzz', 'pydantic'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The package behaves like any module towards a name that it has not."""
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pytest_simpleqa.nothing


def test_the_shipped_sample_runs() -> None:
    """The README's smallest script works without a key: a callable, the sample, the rules."""
    golds: dict[str, str] = {question.problem: question.answer for question in load_dataset("sample")}
    recite: Callable[[str], str] = golds.__getitem__
    report = run("sample", lambda prompt: recite(prompt), "rules")
    assert (report.errors, report.judge_failures, report.correct) == (0, 0, report.n)
    assert Verdict.CORRECT in {row.verdict for row in report.samples}
