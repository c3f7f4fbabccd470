"""The engine: order, bounds, what is known already, stops, and what other people's code may do to it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.engine import Engine
from pytest_simpleqa.errors import ModelError, RunError, RunStopped
from pytest_simpleqa.intake import MAX_ANSWER_CHARS
from pytest_simpleqa.models.spec import PromptAnswerer
from pytest_simpleqa.prompts import Template
from pytest_simpleqa.records import Failure, Judgement, Prompt, Question, QuestionResult, Reply, Verdict
from pytest_simpleqa.runlog import RunLog, read_rows
from pytest_simpleqa.stage import Ask, Stage
from pytest_simpleqa.testing import FakeJudge, FakeModel, fake_dataset

HOURS = 3600.0


@contextmanager
def running(
    model: FakeModel,
    judge: Any = None,
    *,
    concurrency: int = 8,
    timeout: float = 30.0,
    grace: float = 1.0,
    **more: Any,
) -> Iterator[Engine]:
    """Give an engine over the fakes, closed at the end."""
    watch = more.pop("watch", None)
    stage = Stage(PromptAnswerer(model, Template("{question}")), judge or FakeJudge(), timeout, ("m", "j"), **more)
    engine = Engine({"": stage}, concurrency=concurrency, watch=watch)
    try:
        yield engine
    finally:
        engine.close(grace)


def asks(count: int) -> list[Ask]:
    return [Ask(question) for question in fake_dataset(count)]


def results(engine: Engine, count: int) -> list[QuestionResult]:
    """Offer and wait for the first `count` questions."""
    wanted = asks(count)
    engine.offer(wanted)
    return [engine.result(ask) for ask in wanted]


def echo(prompt: Prompt) -> str:
    """Answer `question 7?` with `gold 7`."""
    assert isinstance(prompt, str)
    return prompt.replace("question", "gold").rstrip("?")


def wait_until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not what():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.002)


# -- order and bounds ------------------------------------------------------------------------------


def test_each_question_gets_its_own_result() -> None:
    """Whatever finishes first, a result is that of the question asked for."""
    with running(FakeModel(echo)) as engine:
        found = results(engine, 50)
    assert [(r.id, r.predicted, r.verdict) for r in found] == [
        (f"q{n:04d}", f"gold {n}", Verdict.CORRECT) for n in range(1, 51)
    ]


def test_one_pair_at_a_time_in_order() -> None:
    """At a concurrency of 1 a question is answered and judged before the next one is asked."""
    order: list[str] = []

    def say(prompt: Prompt) -> str:
        order.append(f"answer {prompt}")
        return "x"

    def find(question: Question, predicted: str) -> Verdict:
        order.append(f"judge {question.problem}")
        return Verdict.CORRECT

    with running(FakeModel(say, latency_s=0.001), FakeJudge(find, latency_s=0.001), concurrency=1) as engine:
        results(engine, 5)
    assert order == [f"{what} question {n}?" for n in range(1, 6) for what in ("answer", "judge")]


def test_pairs_in_flight_reach_the_concurrency_and_never_pass_it() -> None:
    """Answers and judgements together are as many as allowed, no more and no fewer."""
    pairs: set[str] = set()
    most = 0

    def say(prompt: Prompt) -> str:
        nonlocal most
        pairs.add(str(prompt))
        most = max(most, len(pairs))
        return "x"

    def find(question: Question, predicted: str) -> Verdict:
        pairs.remove(question.problem)
        return Verdict.CORRECT

    model, judge = FakeModel(say, latency_s=0.002), FakeJudge(find, latency_s=0.003)
    with running(model, judge, concurrency=7) as engine:
        results(engine, 100)
    assert most == 7
    assert model.most_in_flight <= 7


def test_a_bound_of_the_connection_is_kept() -> None:
    """A connection is asked no more at once than it takes, and waiting for it costs no question its time."""
    model = FakeModel("x", latency_s=0.05)
    with running(model, concurrency=8, answer_limit=2, timeout=0.2) as engine:
        found = results(engine, 12)
    assert model.most_in_flight == 2
    assert [r.status for r in found] == ["incorrect"] * 12


def test_a_slow_answer_does_not_hold_the_line() -> None:
    """While the first question hangs, the others are answered."""
    release = threading.Event()

    class Slow(FakeModel):
        async def complete(self, prompt: Prompt) -> Reply:
            if prompt == "question 2?":
                await asyncio.to_thread(release.wait, 10)
            return await super().complete(prompt)

    with running(model := Slow(echo), concurrency=2) as engine:
        engine.offer(wanted := asks(40))
        wait_until(lambda: len(model.prompts) == 39)
        release.set()
        assert engine.result(wanted[1]).predicted == "gold 2"


def test_ten_thousand_questions_take_seconds() -> None:
    """The engine's own cost is small: well under a millisecond a question."""
    began = time.monotonic()
    with running(FakeModel(echo), concurrency=64) as engine:
        found = results(engine, 10_000)
    assert len(found) == 10_000
    assert time.monotonic() - began < 10


def test_waiting_costs_no_cpu() -> None:
    """Who waits for an answer sleeps: nothing polls."""
    with running(FakeModel("x", latency_s=0.4)) as engine:
        began = time.process_time()
        results(engine, 1)
        assert time.process_time() - began < 0.1


def test_questions_may_be_offered_one_by_one() -> None:
    """An engine that has run dry starts again with the next question."""
    with running(FakeModel(echo)) as engine:
        for ask in asks(20):
            engine.offer([ask])
            assert engine.result(ask).verdict is Verdict.CORRECT


def test_what_is_offered_twice_is_asked_once() -> None:
    """A question that is under way, or whose result nobody has taken, is not paid for again."""
    with running(model := FakeModel(echo, latency_s=0.02)) as engine:
        (ask,) = asks(1)
        engine.offer([ask])
        wait_until(lambda: bool(model.prompts))
        engine.offer([ask])
        wait_until(lambda: model.in_flight == 0)
        engine.offer([ask])
        assert engine.result(ask).predicted == "gold 1"
    assert len(model.prompts) == 1


def test_threads_that_wait_for_one_question_all_get_its_result() -> None:
    """However many threads wait for a question, none of them is left waiting."""
    with running(model := FakeModel(echo, latency_s=0.1)) as engine, ThreadPoolExecutor(4) as pool:
        (ask,) = asks(1)
        engine.offer([ask])
        found = [pool.submit(engine.result, ask) for _ in range(4)]
        assert {each.result(5).predicted for each in found} == {"gold 1"}
    assert len(model.prompts) == 1


def test_what_somebody_waits_for_goes_first() -> None:
    """A question that is offered first is asked before all that were offered ahead, in the order that it came in."""
    with running(model := FakeModel(echo, latency_s=0.02), concurrency=1) as engine:
        wanted = asks(40)
        engine.offer(wanted[:30])
        engine.offer(wanted[30:32], first=True)
        assert [engine.result(ask).predicted for ask in wanted[30:32]] == ["gold 31", "gold 32"]
        assert model.prompts.index("question 31?") <= 1
        assert len(model.prompts) <= 4


def test_an_engine_without_a_run_has_a_limit() -> None:
    """Before the first run of a test function is known, the concurrency is the limit."""
    engine = Engine({}, concurrency=3)
    try:
        assert engine.limit == 3
    finally:
        engine.close()


# -- what tests bring ------------------------------------------------------------------------------


def given(text: str, **more: Any) -> Ask:
    """Return the ask for a verdict on `text` as an answer to the first question."""
    return asks(1)[0]._replace(part="verdict", reply=Reply(text, calls=0, **more))


def put(engine: Engine, ask: Ask) -> Any:
    engine.offer([ask], first=True)
    return engine.reply(ask)


def only_row(log: RunLog) -> QuestionResult | None:
    """Return what the log says of the first question."""
    (ask,) = asks(1)
    return read_rows([log.path])[0][ask.key].result(ask.question, 1)


def test_two_texts_are_judged_one_after_the_other(tmp_path: Path) -> None:
    """Of two texts to one question each gets its own verdict, and the log ends on the one that was given last."""
    log = RunLog(tmp_path / "results.jsonl")

    class Slow(FakeJudge):
        async def judge(self, question: Question, predicted: str, complete: Any, repeat: int = 1) -> Judgement:
            await asyncio.sleep(0.05 if predicted == "gold 1" else 0.0)
            return Judgement(Verdict.CORRECT if predicted == question.answer else Verdict.INCORRECT)

    with running(FakeModel("x"), Slow(), log=log) as engine:
        texts = [given("gold 1"), given("bad")]
        for text in texts:
            engine.offer([text])
        assert [engine.result(text).status for text in texts] == ["correct", "incorrect"]
    row = only_row(log)
    assert row is not None
    assert (row.predicted, row.status) == ("bad", "incorrect")


def test_a_text_that_is_judged_is_not_the_models_answer(tmp_path: Path) -> None:
    """Beside what a test has had judged the log keeps what the model has said; both are paid, and stay so."""
    log = RunLog(tmp_path / "results.jsonl")
    answer = asks(1)[0]._replace(part="answer")
    model = FakeModel(lambda prompt: Reply("gold 1", completion_tokens=5, model="m-1"))
    with running(model, log=log) as engine:
        said = put(engine, answer)
        result = put(engine, given(f"I say: {said.text}", completion_tokens=2))
    log.close()
    assert result.predicted == "I say: gold 1"
    assert (result.answer_usage.calls, result.answer_usage.completion_tokens) == (1, 7)
    assert only_row(log) == result
    rows, _ = read_rows([log.path])
    again, judge = FakeModel("other"), FakeJudge()
    with running(again, judge, known=rows, log=RunLog(log.path)) as engine:
        assert put(engine, answer) == said
        assert put(engine, given(f"I say: {said.text}", completion_tokens=2)) == result
    assert (again.prompts, judge.judged) == ([], [])


def test_the_log_ends_on_what_was_judged_last_in_every_session(tmp_path: Path) -> None:
    """A verdict that an earlier session has given is not paid again, and stands last where it counts again."""
    log = RunLog(tmp_path / "results.jsonl")
    for session in (1, 2):
        judge = FakeJudge()
        with running(FakeModel("x"), judge, log=log, known=read_rows([log.path])[0]) as engine:
            assert put(engine, given("gold 1")).status == "correct"
            result = put(engine, given("bad"))
        assert (result.status, only_row(log)) == ("incorrect", result)
        assert len(judge.judged) == 3 - session


# -- verdicts and failures -------------------------------------------------------------------------


def test_a_blank_answer_is_not_attempted_without_a_judge() -> None:
    """Nothing is paid to judge nothing."""
    with running(FakeModel(" \n"), judge := FakeJudge()) as engine:
        (found,) = results(engine, 1)
    assert (found.status, judge.judged) == ("not_attempted", [])


def test_an_answer_error_is_no_answer() -> None:
    """A model that gives nothing usable makes an error with its kind, and no verdict."""
    with running(FakeModel(["x", ModelError("filtered", "blocked by a filter")]), concurrency=1) as engine:
        _, found = results(engine, 2)
    assert (found.status, found.predicted, found.verdict) == ("error", None, None)
    assert found.error is not None
    assert (found.error.kind, found.error.message) == ("filtered", "blocked by a filter")
    assert (found.answer_usage.calls, found.judge_usage.calls) == (1, 0)


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (ModelError("judge_no_verdict", "it rambles"), "judge_no_verdict", "it rambles"),
        (ValueError("broken"), "exception", "ValueError: broken"),
        (TimeoutError("db"), "exception", "TimeoutError: db"),
        (asyncio.CancelledError(), "exception", "CancelledError"),
        (SystemExit(2), "exception", "SystemExit: 2"),
        (RunStopped("enough"), "exception", "RunStopped: enough"),
    ],
)
def test_what_a_judge_raises_is_that_rows_failure(raised: BaseException, kind: str, message: str) -> None:
    """A judge of the user's costs one verdict, never the answer and never the run."""
    with running(FakeModel("x"), FakeJudge([raised, Verdict.CORRECT]), concurrency=1) as engine:
        found, after = results(engine, 2)
    assert (found.status, found.predicted, after.status) == ("judge_failure", "x", "correct")
    assert found.error is not None
    assert (found.error.kind, found.error.message) == (kind, message)


def test_a_judge_that_fails_names_the_line_of_the_users_code() -> None:
    """What a judge of the user's raises is told with the file and the line that raised it."""

    def judge(question: Question, predicted: str) -> Verdict:
        raise ValueError("broken")

    with running(FakeModel("x"), FakeJudge(judge)) as engine:
        (found,) = results(engine, 1)
    assert found.error is not None
    line = judge.__code__.co_firstlineno + 1
    assert found.error.message == f"ValueError: broken (test_engine.py, line {line})"


def test_a_judge_that_hangs_ends_at_the_deadline() -> None:
    """The deadline of a question is over its judge, too."""
    with running(FakeModel("x"), FakeJudge(Verdict.CORRECT, latency_s=HOURS), timeout=0.05) as engine:
        (found,) = results(engine, 1)
    assert found.error is not None
    assert (found.status, found.error.message) == ("judge_failure", "no verdict within 0.05 s")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Reply("x", extra={"seen": {1, 2}}), "the Reply holds what is no plain JSON: "),
        (Reply("x", extra={"sure": float("nan")}), "the Reply holds what is no plain JSON: "),
        (Reply("x", latency_s=float("inf")), "the Reply holds what is no plain JSON: "),
        (Reply("x", notes=(b"note",)), "the Reply holds what is no plain JSON: "),  # type: ignore[arg-type]  # the user's mistake
        (Reply(b"x"), "the Reply's `text` is bytes; wanted str"),  # type: ignore[arg-type]  # the user's mistake
        (Reply("x", calls="2"), "the Reply's `calls` is str; wanted int"),  # type: ignore[arg-type]  # likewise
    ],
)  # fmt: skip
def test_a_reply_that_cannot_be_written_down_costs_its_row(given: Reply, message: str, tmp_path: Path) -> None:
    """What a model of the user's hands in is checked at once: one odd value never ends the run."""
    with running(FakeModel([given, "y"]), concurrency=1, log=RunLog(tmp_path / "results.jsonl")) as engine:
        found, after = results(engine, 2)
    assert found.error is not None
    assert (found.status, found.error.kind, after.predicted) == ("error", "exception", "y")
    assert found.error.message.startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Judgement(None), "the judge gave neither a verdict nor an error"),
        (Judgement(None, error=Failure("x", OSError("gone"))), "the Judgement holds what is no plain"),  # type: ignore[arg-type]  # the user's mistake
        (Judgement("correct"), "the Judgement's `verdict` is str; wanted Verdict or NoneType"),  # type: ignore[arg-type]  # the user's mistake
        (Judgement(Verdict.CORRECT, reply=7), "the Judgement's `reply` is int; wanted str or NoneType"),  # type: ignore[arg-type]  # likewise
    ],
)  # fmt: skip
def test_a_judgement_that_cannot_be_written_down_costs_its_row(given: Judgement, message: str, tmp_path: Path) -> None:
    """What a judge of the user's hands in is checked at once, too."""
    log = RunLog(tmp_path / "results.jsonl")
    with running(FakeModel("x"), FakeJudge([given, Verdict.CORRECT]), concurrency=1, log=log) as engine:
        found, after = results(engine, 2)
    assert found.error is not None
    assert (found.status, found.error.kind, after.status) == ("judge_failure", "exception", "correct")
    assert found.error.message.startswith(message)


def test_what_a_judge_attaches_stays_with_its_row(tmp_path: Path) -> None:
    """A judgement's extra lies over the answer's, in the result and, read back, in the run log."""
    log = RunLog(tmp_path / "results.jsonl")
    judge = FakeJudge(lambda question, predicted: Judgement(Verdict.CORRECT, extra={"choice": "B", "score": 1.0}))
    model = FakeModel(lambda prompt: Reply("yes", extra={"score": 0.0, "trace": ["t"]}))
    with running(model, judge, log=log) as engine:
        (result,) = results(engine, 1)
    log.close()
    assert result.extra == {"score": 1.0, "trace": ["t"], "choice": "B"}
    (ask,) = asks(1)
    assert read_rows([log.path])[0][ask.key].result(ask.question, 1) == result


def test_a_long_answer_is_capped_with_a_mark() -> None:
    """A megabyte of answer is kept to its start, and a note says so."""
    with running(FakeModel("y" * 1_000_000)) as engine:
        (found,) = results(engine, 1)
    assert found.predicted is not None
    assert found.predicted.startswith("y" * MAX_ANSWER_CHARS + " [... 900,000 more characters]")
    assert found.notes == ("answer of 1,000,000 characters kept to 100,000",)


# -- what is known already -------------------------------------------------------------------------


def test_a_finished_row_is_neither_asked_nor_judged(tmp_path: Path) -> None:
    """A row whose verdict stands in the log costs nothing and comes back as it was."""
    log = RunLog(tmp_path / "results.jsonl")
    with running(FakeModel(echo), log=log) as engine:
        before = results(engine, 3)
    log.close()
    rows, _ = read_rows([log.path])
    model, judge = FakeModel("other"), FakeJudge(Verdict.INCORRECT)
    with running(model, judge, known=rows) as engine:
        after = results(engine, 3)
    assert after == before
    assert (model.prompts, judge.judged) == ([], [])


def test_an_answered_row_is_only_judged(tmp_path: Path) -> None:
    """An answer that was paid for is judged, never asked for again; after a judge failure too."""
    log = RunLog(tmp_path / "results.jsonl")
    first, second = asks(2)
    log.answer(first.question, 1, Reply("gold 1", calls=3), 0.5)
    with running(FakeModel("gold 2"), FakeJudge(ModelError("judge_no_verdict", "?")), log=log) as engine:
        engine.offer([second])
        engine.result(second)
    log.close()
    rows, _ = read_rows([log.path])
    model = FakeModel("other")
    with running(model, known=rows) as engine:
        found = results(engine, 2)
    assert [(r.predicted, r.status) for r in found] == [("gold 1", "correct"), ("gold 2", "correct")]
    assert (model.prompts, found[0].answer_usage.calls) == ([], 3)


def test_a_failed_row_is_asked_again(tmp_path: Path) -> None:
    """An answer error in the log is no result to keep."""
    log = RunLog(tmp_path / "results.jsonl")
    (ask,) = asks(1)
    log.finished(ask.question, QuestionResult.for_question(ask.question, error=Failure("timeout", "no answer")))
    log.close()
    rows, _ = read_rows([log.path])
    with running(model := FakeModel(echo), known=rows) as engine:
        (found,) = results(engine, 1)
    assert (found.status, len(model.prompts)) == ("correct", 1)


def test_everything_is_on_disk_before_anybody_hears_of_it(tmp_path: Path) -> None:
    """The answer stands in the log before the judge is asked, the verdict before the result is given."""
    path = tmp_path / "results.jsonl"
    at_judging: list[str] = []

    def find(question: Question, predicted: str) -> Verdict:
        at_judging.append(path.read_text("utf-8"))
        return Verdict.CORRECT

    with running(FakeModel(echo), FakeJudge(find), log=RunLog(path)) as engine:
        results(engine, 1)
        lines = path.read_text("utf-8").splitlines()
    assert '"kind":"answer"' in at_judging[0]
    assert ['"kind":"answer"' in lines[0], '"kind":"verdict"' in lines[1]] == [True, True]


# -- stops -----------------------------------------------------------------------------------------


def test_a_refused_key_stops_the_run_after_one_request() -> None:
    """The row that met the refusal has its error; for all others there is none, and the reason is told."""
    model = FakeModel(ModelError("unauthorized", "wrong key", status=401))
    with running(model) as engine:
        first, second, *_ = wanted = asks(100)
        engine.offer(wanted)
        assert engine.result(first).status == "error"
        with pytest.raises(RunStopped, match="m: wrong key"):
            engine.result(second)
        assert engine.gave_up == "m: wrong key"
    assert len(model.prompts) == 1


def test_a_judge_that_refuses_stops_the_run_and_keeps_the_answer() -> None:
    """What was answered before the judge's key was refused stands as a judge failure."""

    class Refusing(FakeJudge):
        def __init__(self) -> None:
            super().__init__()
            self.model = FakeModel(ModelError("quota", "no credit left", status=429))

        async def judge(self, question: Question, predicted: str, complete: Any, repeat: int = 1) -> Judgement:
            await complete("grade")
            raise AssertionError

    with running(FakeModel("x"), Refusing()) as engine:
        first, second = wanted = asks(2)
        engine.offer(wanted)
        assert (engine.result(first).status, engine.gave_up) == ("judge_failure", "j: no credit left")
        with pytest.raises(RunStopped):
            engine.result(second)


def test_nothing_new_starts_after_a_stop() -> None:
    """What is under way arrives within the grace; what was only queued is never asked."""
    with running(model := FakeModel(echo, latency_s=0.05), concurrency=2) as engine:
        first, second, third = wanted = asks(3)
        engine.offer([first])
        engine.result(first)
        engine.offer(wanted[1:] + asks(20)[3:])
        wait_until(lambda: len(model.prompts) == 3)
        engine.stop("told to")
        engine.close()
        assert engine.result(second).verdict is Verdict.CORRECT
        assert engine.result(third).verdict is Verdict.CORRECT
        with pytest.raises(RunStopped, match="told to"):
            engine.result(asks(4)[3])
    assert len(model.prompts) == 3


def test_the_grace_ends() -> None:
    """A request that does not come back holds the end up no longer than the grace."""
    with running(model := FakeModel("x", latency_s=HOURS)) as engine:
        engine.offer(asks(1))
        wait_until(lambda: bool(model.prompts))
        began = time.monotonic()
        engine.close(grace=0.05)
        assert time.monotonic() - began < 1
    assert model.in_flight == 0


def test_a_stop_wakes_who_waits() -> None:
    """A thread that waits for a result hears of a stop at once."""
    with running(FakeModel("x", latency_s=HOURS), grace=0) as engine:
        (ask,) = asks(1)
        engine.offer([ask])
        threading.Timer(0.02, engine.stop, ["told to"]).start()
        with pytest.raises(RunStopped, match="told to"):
            engine.result(ask)


def test_another_process_can_stop_the_run() -> None:
    """What the watch says is the reason, and counts as told, not as a refusal."""
    with running(FakeModel("x", latency_s=HOURS), watch=lambda: "the controller has died", grace=0) as engine:
        (ask,) = asks(1)
        engine.offer([ask])
        with pytest.raises(RunStopped, match="the controller has died"):
            engine.result(ask)
        assert (engine.was_told, engine.gave_up) == (True, None)


def test_a_log_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    """A full disk is told once, as the mistake that it is, and nothing more is paid for."""

    class Full(RunLog):
        def answer(self, *args: Any) -> None:
            raise RunError("results.jsonl: cannot be written: No space left on device")

    log = Full(tmp_path / "results.jsonl")
    with running(model := FakeModel("x"), concurrency=1, log=log) as engine, pytest.raises(RunError, match="No space"):
        results(engine, 20)
    assert len(model.prompts) == 1


def test_both_models_are_closed_whatever_one_of_them_does() -> None:
    """An answerer that fails to close does not keep the judge open, and is no crash at the end."""

    class Broken(FakeModel):
        async def close(self) -> None:
            raise OSError("already gone")

    judge = FakeJudge()
    with running(Broken("x"), judge) as engine:
        results(engine, 1)
    engine.close()
    assert judge.closed == 1


def test_slow_down_lowers_what_may_be_in_flight() -> None:
    """A 429 halves the pairs that are started."""
    model = FakeModel(["x", ModelError("rate_limited", "slow", status=429, retry_after=0), "x"])
    with running(model, concurrency=8) as engine:
        first, second = asks(2)
        engine.offer([first])
        engine.result(first)
        engine.offer([second])
        engine.result(second)
        assert engine.limit == 4


def test_the_loop_never_keeps_the_process_alive() -> None:
    """A process ends by itself with a question in flight and an engine that nobody closed."""
    code = (
        "from pytest_simpleqa.engine import Engine\nfrom pytest_simpleqa.stage import Ask, Stage\n"
        "from pytest_simpleqa.models.spec import PromptAnswerer\n"
        "from pytest_simpleqa.prompts import Template\n"
        "from pytest_simpleqa.testing import *\n"
        "answerer = PromptAnswerer(FakeModel(latency_s=3600), Template('{question}'))\n"
        "engine = Engine({'': Stage(answerer, FakeJudge(), 0)}, concurrency=2)\n"
        "engine.offer(Ask(question) for question in fake_dataset(5))\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")
