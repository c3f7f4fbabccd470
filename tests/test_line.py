"""The line to one connection: probe, retries, deadline, adaptive limit, giving up."""

from __future__ import annotations

import asyncio
import gc
import re
import time
import warnings
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError, RunStopped
from pytest_simpleqa.line import MAX_FAILURES_IN_ROW, MAX_TRIES, Budget, Line, OutOfTime
from pytest_simpleqa.models.connection import Connection
from pytest_simpleqa.models.http import HttpModel
from pytest_simpleqa.records import Reply
from pytest_simpleqa.retry import MAX_WAIT_S
from pytest_simpleqa.secret import Secret

from .fake_server import Answer, FakeServer, error

Call = Callable[[], Awaitable[Reply]]


class NoJitter(Random):
    """Back-off without waiting."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


class Stops(list[str]):
    """Hears why a line stopped the run."""

    def line(self, *, most: int = 8, max_in_flight: int | None = None) -> Line:
        return Line("m", most=most, max_in_flight=max_in_flight, on_stop=self.append, random=NoJitter())


def says(*script: str | BaseException, latency_s: float = 0.0) -> Call:
    """Return a call that says what is next in the script, the last for ever."""
    left = list(script)

    async def call() -> Reply:
        said = left.pop(0) if len(left) > 1 else left[0]
        await asyncio.sleep(latency_s)
        if isinstance(said, BaseException):
            raise said
        return Reply(said)

    return call


def fault(kind: str, status: int | None = None, retry_after: float | None = None) -> ModelError:
    return ModelError(kind, f"it is {kind}", status=status, retry_after=retry_after)


async def outcome(line: Line, call: Call, seconds: float = 5.0) -> Reply | ModelError | RunStopped:
    try:
        return await line.attempt(call, Budget(seconds))
    except (ModelError, RunStopped) as error:
        return error


def failure(line: Line, call: Call, seconds: float = 5.0) -> ModelError:
    """Return what one attempt fails with."""
    with pytest.raises(ModelError) as caught:
        asyncio.run(line.attempt(call, Budget(seconds)))
    return caught.value


# -- the first request -----------------------------------------------------------------------------


def test_the_first_request_goes_alone() -> None:
    """Nobody else asks a connection before its first request has been answered."""
    asked = 0
    most_before_reply = 0

    async def call() -> Reply:
        nonlocal asked, most_before_reply
        asked += 1
        number = asked
        await asyncio.sleep(0.02)
        if number == 1:
            most_before_reply = asked
        return Reply("x")

    async def five() -> None:
        line = Stops().line()
        await asyncio.gather(*(line.attempt(call, Budget(0.05)) for _ in range(5)))

    asyncio.run(five())
    assert (most_before_reply, asked) == (1, 5)


def test_waiting_for_the_first_reply_costs_nobody_time() -> None:
    """A question that waits for another one's first request has its whole budget left."""

    async def two() -> list[float]:
        line, budgets = Stops().line(), [Budget(0), Budget(0)]
        await asyncio.gather(*(line.attempt(says("x", latency_s=0.1), budget) for budget in budgets))
        return [budget.spent for budget in budgets]

    assert max(asyncio.run(two())) < 0.19


# -- stopping the run ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["unauthorized", "quota", "not_found", "forbidden", "bad_request"])
def test_a_refused_first_request_stops_the_run_with_one_message(kind: str) -> None:
    """One refusal, one message; who waited behind it is not asked at all."""
    stops = Stops()
    asked = 0

    async def call() -> Reply:
        nonlocal asked
        asked += 1
        raise fault(kind)

    async def five() -> list[Reply | ModelError | RunStopped]:
        line = stops.line()
        return await asyncio.gather(*(outcome(line, call) for _ in range(5)))

    first, *others = asyncio.run(five())
    assert isinstance(first, ModelError)
    assert [str(other) for other in others] == [f"m: it is {kind}"] * 4
    assert (asked, stops) == (1, [f"m: it is {kind}"])


@pytest.mark.parametrize("kind", ["timeout", "connection", "server_error", "unreadable", "empty"])
def test_a_service_that_never_answers_stops_the_run(kind: str) -> None:
    """Where nothing has worked, a first request that is given up ends the run."""
    stops = Stops()
    failure(stops.line(), says(fault(kind, retry_after=0.0)))
    assert stops == [f"m: it is {kind} ({MAX_TRIES} tries)"]


@pytest.mark.parametrize("kind", ["unreadable", "empty"])
def test_a_service_that_begins_to_answer_nonsense_stops_the_run(kind: str) -> None:
    """A page or nothing at all under status 200 is the row's own until twenty come in a row."""
    stops = Stops()

    async def many() -> None:
        line = stops.line()
        await outcome(line, says("x"))
        for _ in range(MAX_FAILURES_IN_ROW - 1):
            await outcome(line, says(fault(kind, 200)))
        assert stops == []
        await outcome(line, says(fault(kind, 200)))

    asyncio.run(many())
    assert stops == [f"m: it is {kind} ({MAX_TRIES} tries) (20 in a row)"]


def test_rate_limits_alone_never_stop_the_run() -> None:
    """However many rows a burst of 429 costs, and before anything has worked, the run goes on."""
    stops = Stops()

    async def many() -> None:
        line = stops.line()
        for _ in range(MAX_FAILURES_IN_ROW + 1):
            await outcome(line, says(fault("rate_limited", 429, retry_after=0.0)))

    asyncio.run(many())
    assert stops == []


@pytest.mark.parametrize("first", ["x", fault("filtered", 200)])
def test_a_service_that_says_429_for_a_whole_deadline_stops_the_run(first: str | ModelError) -> None:
    """Where nothing else is heard for as long as a question has, more patience is of no use."""
    stops = Stops()

    async def two() -> None:
        line = stops.line()
        await outcome(line, says(first))
        await outcome(line, says(fault("rate_limited", 429, retry_after=0.1)), 0.5)

    asyncio.run(two())
    (stop,) = stops
    assert stop.startswith("m: it is rate_limited (")
    assert stop.endswith(" tries), and nothing else for 0 s")


def test_any_other_word_between_rate_limits_is_a_sign_of_life() -> None:
    """As long as somebody gets a reply now and then, the run goes on."""
    stops = Stops()

    async def both() -> None:
        line = stops.line()
        await outcome(line, says("x"))
        refused = asyncio.create_task(outcome(line, says(fault("rate_limited", 429)), 0.3))
        await asyncio.sleep(0.2)
        await outcome(line, says("x"))
        await refused

    asyncio.run(both())
    assert stops == []


@pytest.mark.parametrize("kind", ["filtered", "truncated", "declined", "exception"])
def test_a_row_of_its_own_never_stops_the_run(kind: str) -> None:
    """What one question did wrong says nothing of the next, however often it happens."""
    stops = Stops()

    async def many() -> None:
        line = stops.line()
        for _ in range(MAX_FAILURES_IN_ROW + 1):
            await outcome(line, says(fault(kind)))

    asyncio.run(many())
    assert stops == []


def test_refusals_after_a_success_stop_the_run_only_in_a_row() -> None:
    """Once something has worked, 404 is the row's own until twenty come in a row."""
    stops = Stops()

    async def many() -> list[int]:
        line, stopped_after = stops.line(), list[int]()
        await outcome(line, says("x"))
        for _ in range(2):
            for _ in range(MAX_FAILURES_IN_ROW - 1):
                await outcome(line, says(fault("not_found", 404)))
            await outcome(line, says("x"))
        for number in range(1, MAX_FAILURES_IN_ROW + 1):
            await outcome(line, says(fault("not_found", 404)))
            if stops and not stopped_after:
                stopped_after.append(number)
        return stopped_after

    assert asyncio.run(many()) == [MAX_FAILURES_IN_ROW]
    assert stops == ["m: it is not_found (20 in a row)"]


def test_a_filtered_reply_breaks_the_row_of_refusals() -> None:
    """A reply that is only unusable shows that the service answers."""
    stops = Stops()

    async def many() -> None:
        line = stops.line()
        await outcome(line, says("x"))
        for _ in range(MAX_FAILURES_IN_ROW):
            await outcome(line, says(fault("filtered")))
            await outcome(line, says(fault("not_found", 404)))

    asyncio.run(many())
    assert stops == []


def test_401_stops_the_run_after_any_number_of_successes() -> None:
    """A key that is revoked half-way ends the run at once."""
    stops = Stops()

    async def two() -> None:
        line = stops.line()
        await outcome(line, says("x"))
        await outcome(line, says(fault("unauthorized", 401)))

    asyncio.run(two())
    assert stops == ["m: it is unauthorized"]


# -- retries ---------------------------------------------------------------------------------------


def test_calls_are_counted_over_all_tries() -> None:
    """A reply says how many requests it took, also where a try took several."""
    dropped = fault("rate_limited")
    dropped.calls = 2
    reply = asyncio.run(Stops().line().attempt(says(dropped, fault("server_error"), "x"), Budget(5)))
    assert (reply.text, reply.calls) == ("x", 4)


def test_tries_are_bounded() -> None:
    """After the tenth request the failure stands, with its tries told and counted."""
    error = failure(Stops().line(), says(fault("server_error", 500)), seconds=0)
    assert (error.message, error.calls) == (f"it is server_error ({MAX_TRIES} tries)", MAX_TRIES)


@pytest.mark.parametrize("kind", ["filtered", "truncated", "refused_request", "exception", "unauthorized", "odd"])
def test_what_cannot_pass_is_not_tried_again(kind: str) -> None:
    """Only what may pass costs a second request."""
    error = failure(Stops().line(), says(fault(kind), "x"))
    assert (error.kind, error.message, error.calls) == (kind, f"it is {kind}", 1)


def test_retry_after_is_waited_for_within_the_budget() -> None:
    """What the service asks us to wait is waited, and counts on the question's time."""
    budget = Budget(5)
    began = time.monotonic()
    asyncio.run(Stops().line().attempt(says(fault("rate_limited", 429, retry_after=0.05), "x"), budget))
    assert 0.05 <= time.monotonic() - began < 1
    assert 0.05 <= budget.spent < 1


def test_a_retry_after_beyond_the_deadline_leaves_time_for_one_more_request() -> None:
    """Where the deadline would pass first, the question waits as long as it can and asks once more."""
    budget = Budget(0.3)
    reply = asyncio.run(Stops().line().attempt(says(fault("rate_limited", 429, retry_after=60), "x"), budget))
    assert (reply.text, reply.calls) == ("x", 2)
    assert 0.25 < budget.spent < 0.3


def test_a_last_chance_is_the_last() -> None:
    """A question that is told to wait longer than it can is asked twice, and then is an error."""
    error = failure(Stops().line(), says(fault("rate_limited", 429, retry_after=60)), seconds=0.2)
    assert (error.kind, error.calls) == ("rate_limited", 2)


def test_no_wait_is_longer_than_two_minutes() -> None:
    """Whatever a service or somebody's own model asks for."""
    line = Stops().line()
    assert line._delay_after(fault("rate_limited", 429, retry_after=1e9), 1) == MAX_WAIT_S


# -- pauses ----------------------------------------------------------------------------------------


def test_a_pause_is_everybodys_and_costs_only_who_was_told() -> None:
    """After three requests to wait in a row nobody is asked before the time; who was not told has the whole budget."""

    async def two() -> tuple[float, list[float]]:
        line, told, untold = Stops().line(), Budget(5), Budget(0.1)
        await outcome(line, says("x"))
        began = time.monotonic()
        refused = [line.attempt(says(fault("rate_limited", 429, retry_after=0.2), "x"), told) for _ in range(3)]
        first = asyncio.gather(*refused)
        await asyncio.sleep(0.01)
        await line.attempt(says("x"), untold)
        passed = time.monotonic() - began
        await first
        return passed, [told.spent, untold.spent]

    passed, (told, untold) = asyncio.run(two())
    assert 0.2 <= passed < 1
    assert (told >= 0.2, untold < 0.1) == (True, True)


def test_who_waits_in_a_pause_is_not_asked_after_a_stop() -> None:
    """A run that stops meanwhile sends nothing more."""
    asked = 0

    async def count() -> Reply:
        nonlocal asked
        asked += 1
        return Reply("x")

    async def three() -> Reply | ModelError | RunStopped:
        line = Stops().line()
        await outcome(line, says("x"))
        leaves = says(fault("unauthorized", 401), latency_s=0.03)
        others = [outcome(line, says(fault("rate_limited", 429, retry_after=0.1), "x")) for _ in range(3)]
        *_, said = await asyncio.gather(outcome(line, leaves), *others, _later(lambda: outcome(line, count)))
        return said

    assert isinstance(asyncio.run(three()), RunStopped)
    assert asked == 0


async def _later(call: Callable[[], Awaitable[Reply | ModelError | RunStopped]]) -> Reply | ModelError | RunStopped:
    await asyncio.sleep(0.01)
    return await call()


def test_a_stray_request_to_wait_holds_nobody_else_back() -> None:
    """One reply in ten that asks for patience costs that question a wait, and neither pause nor a lower limit."""

    async def twenty() -> tuple[float, float]:
        line = Stops().line()
        await outcome(line, says("x"))
        began = time.monotonic()
        refused = asyncio.create_task(outcome(line, says(fault("rate_limited", 429, retry_after=0.5), "x")))
        await asyncio.sleep(0)
        for _ in range(19):
            await outcome(line, says("x"))
        passed = time.monotonic() - began
        await refused
        return passed, line.limit

    passed, _ = asyncio.run(twenty())
    assert passed < 0.4


def test_a_burst_of_429_costs_no_row() -> None:
    """A service that refuses for a moment gets no request until it wants one, and answers all of them in the end."""
    refused_at: list[float] = []

    def burst(body: dict[str, Any], nth: int) -> Answer | None:
        now = time.monotonic()
        if len(server.requests) <= 8 or (refused_at and now - refused_at[0] > 0.15):
            return None
        refused_at.append(now)
        return error(429, "slow down", headers={"Retry-After": "1"})

    async def ask(line: Line, model: HttpModel) -> list[Reply]:
        async def pair(number: int) -> Reply:
            async with room:
                return await line.attempt(lambda: model.complete(f"q{number}"), Budget(3))

        room = asyncio.Semaphore(8)
        try:
            return list(await asyncio.gather(*(pair(number) for number in range(60))))
        finally:
            await model.close()

    stops = Stops()
    with FakeServer(latency=0.01) as server:
        server.script(burst)
        connection = Connection("x", "x", server.base_url, "m", api_key=Secret("sk-fake-0123456789"))
        replies = asyncio.run(ask(stops.line(), HttpModel(connection, {})))
        started = [request.started for request in server.requests]
    assert (len(replies), stops) == (60, [])
    assert 1 <= len(refused_at) <= 8
    assert not [at for at in started if refused_at[-1] + 0.05 < at < refused_at[-1] + 0.95]


def test_a_wait_that_ends_at_the_deadline_is_no_crash() -> None:
    """A retry that is due just before the deadline ends in a reply or a timeout of the row."""
    for seconds in (0.0201, 0.02001, 0.020001):
        said = asyncio.run(outcome(Stops().line(), says(fault("server_error", retry_after=0.02), "x"), seconds))
        assert isinstance(said, Reply) or (isinstance(said, ModelError) and said.kind in ("timeout", "server_error"))


# -- the deadline ----------------------------------------------------------------------------------


def test_a_hanging_call_ends_at_the_deadline() -> None:
    """The message says how long was waited."""
    error = failure(Stops().line(), says("x", latency_s=60), seconds=0.05)
    assert (error.kind, error.message) == ("timeout", "no answer within 0.05 s")


def test_who_was_left_no_time_does_not_stop_the_run() -> None:
    """A judge that a slow answer has starved makes a failure of that row, which says how little was left."""
    stops, budget = Stops(), Budget(10)
    budget.spent = 9.98

    async def once() -> Reply | ModelError | RunStopped:
        try:
            return await stops.line().attempt(says("A", latency_s=60), budget)
        except ModelError as error:
            return error

    said = asyncio.run(once())
    assert isinstance(said, ModelError)
    assert (said.kind, said.message, stops) == ("timeout", "no answer within the 0.0 s left of 10", [])


def test_a_failure_that_comes_again_is_not_changed() -> None:
    """A call may raise the same exception twice: what is told of the tries is told in a new one."""
    same = fault("server_error", 500)
    errors = [failure(Stops().line(), says(same), seconds=0) for _ in range(2)]
    assert {error.message for error in errors} == {f"it is server_error ({MAX_TRIES} tries)"}
    assert (same.message, same.calls) == ("it is server_error", 1)


def test_a_call_that_will_not_be_cancelled_is_left_behind() -> None:
    """Code that swallows its cancellation costs its own row, and neither the slot nor the end of the loop."""

    async def stubborn() -> Reply:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue
        return Reply("late")

    async def both() -> tuple[Reply | ModelError | RunStopped, ...]:
        line = Stops().line(max_in_flight=1)
        await outcome(line, says("first"))
        return await outcome(line, stubborn, 0.2), await outcome(line, says("next"))

    began = time.monotonic()
    loop = asyncio.new_event_loop()  # asyncio.run would wait for what was left behind
    late, after = loop.run_until_complete(both())
    loop.close()
    assert isinstance(late, ModelError)
    assert late.kind == "timeout"
    assert isinstance(after, Reply)
    assert time.monotonic() - began < 5


def test_a_call_that_is_cancelled_before_it_starts_leaves_no_warning() -> None:
    """Neither a budget that is used up nor a task that is cancelled at once leaves a coroutine that nobody awaited."""

    async def both() -> Reply | ModelError | RunStopped:
        waiting = asyncio.create_task(Budget(5).run(says("x")()))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        budget = Budget(0.01)
        budget.spent = 1.0
        with pytest.raises(OutOfTime):
            await budget.run(says("x", latency_s=1)())
        return await outcome(Stops().line(), says("x"))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(asyncio.run(both()), Reply)
        gc.collect()


def test_what_ends_late_is_not_heard() -> None:
    """A reply that a call gives once it is cancelled is no reply of the question."""

    async def late() -> Reply:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return Reply("late")
        return Reply("in time")

    said = asyncio.run(outcome(Stops().line(), late, 0.1))
    assert isinstance(said, ModelError)
    assert said.kind == "timeout"


def test_a_loop_that_is_held_up_costs_no_other_question_its_time() -> None:
    """Where code blocks the loop beyond the deadline, a service that answers in time is not blamed for it."""

    async def blocked() -> float:
        stops, budget = Stops(), Budget(1)
        asyncio.get_running_loop().call_later(0.05, time.sleep, 1.5)
        for _ in range(2):  # an answer, then a judge: there is time left for both
            assert (await stops.line().attempt(says("well", latency_s=0.1), budget)).text == "well"
        assert stops == []
        return budget.spent

    assert asyncio.run(blocked()) < 0.8


def test_no_deadline_is_no_deadline() -> None:
    """A budget of 0 seconds never ends a call."""
    assert asyncio.run(Stops().line().attempt(says("x", latency_s=0.02), Budget(0))).text == "x"


def test_waiting_for_a_slot_is_free() -> None:
    """Four calls of 40 ms through one slot all end within budgets of 150 ms, and never two at once."""
    running = most = 0

    async def call() -> Reply:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.04)
        running -= 1
        return Reply("x")

    async def four() -> list[Reply | ModelError | RunStopped]:
        line = Stops().line(max_in_flight=1)
        return await asyncio.gather(*(outcome(line, call, 0.15) for _ in range(4)))

    assert all(isinstance(said, Reply) for said in asyncio.run(four()))
    assert most == 1


# -- the user's code -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (TimeoutError("db"), "TimeoutError: db"),
        (ValueError("bad\n  luck"), "ValueError: bad luck"),
        (asyncio.CancelledError(), "CancelledError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (RunStopped("enough"), "RunStopped: enough"),
    ],
)
def test_what_the_users_code_raises_is_that_rows_error(raised: BaseException, message: str) -> None:
    """Nothing that a callable raises is tried again, taken for a deadline, or ends the loop."""
    error = failure(Stops().line(), says(raised))
    assert (error.kind, error.calls) == ("exception", 1)
    assert re.fullmatch(rf"{message} \(\w+\.py, line \d+\)", error.message)


def test_a_cancelled_attempt_is_cancelled() -> None:
    """Who cancels an attempt gets a cancellation, not an error of the row."""

    async def cancel() -> None:
        task = asyncio.create_task(Stops().line().attempt(says("x", latency_s=60), Budget(0)))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


# -- the adaptive limit ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_burst_of_refusals_halves_the_limit_once(status: int) -> None:
    """Eight requests that are told to slow down together count as one word."""

    async def burst() -> float:
        line = Stops().line(most=8)
        await outcome(line, says("x"))
        kind = "rate_limited" if status == 429 else "server_error"
        await asyncio.gather(*(outcome(line, says(fault(kind, status, retry_after=60)), 0.2) for _ in range(8)))
        return line.limit

    assert asyncio.run(burst()) == 4


def test_the_limit_grows_back_by_one_a_round() -> None:
    """As many successes as are in flight raise the limit by about one, up to the concurrency and no further."""

    async def grow() -> tuple[float, float]:
        line = Stops().line(most=8)
        await outcome(line, says("x"))
        await outcome(line, says(fault("rate_limited", 429, retry_after=0.01), "x"))
        for _ in range(5):
            await outcome(line, says("x"))
        after_a_round = line.limit
        for _ in range(100):
            await outcome(line, says("x"))
        return after_a_round, line.limit

    after_a_round, at_last = asyncio.run(grow())
    assert 5 <= after_a_round < 5.5
    assert at_last == 8


@pytest.mark.parametrize("status", [400, 404, 500, 502])
def test_other_failures_leave_the_limit(status: int) -> None:
    """Only a word to slow down lowers what may be in flight."""

    async def fail() -> float:
        line = Stops().line(most=8)
        await outcome(line, says("x"))
        await outcome(line, says(fault("filtered", status)))
        return line.limit

    assert asyncio.run(fail()) == 8
