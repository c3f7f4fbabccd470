"""Tests of the HTTP model against a real server on this machine."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

import pytest

from pytest_simpleqa.errors import ModelError, SpecError
from pytest_simpleqa.models import http
from pytest_simpleqa.models.connection import Connection, resolve_connection
from pytest_simpleqa.models.http import HttpModel
from pytest_simpleqa.models.protocol import Model, complete_with
from pytest_simpleqa.records import Reply
from pytest_simpleqa.secret import Secret

from .fake_server import Answer, FakeServer, completion, error

KEY = "sk-planted-0123456789"
T = TypeVar("T")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


def connect(server: FakeServer, **values: Any) -> Connection:
    return Connection(
        **{"alias": "x", "provider": "x", "base_url": server.base_url, "model": "m", "api_key": Secret(KEY), **values}
    )


def use(model: HttpModel, work: Callable[[HttpModel], Awaitable[T]]) -> T:
    """Run `work` on a loop of its own, with the client closed at the end."""

    async def session() -> T:
        try:
            return await asyncio.wait_for(work(model), 10)
        finally:
            await model.close()

    return asyncio.run(session())


def ask(server: FakeServer, prompt: Any = "Who?", params: dict[str, Any] | None = None, **values: Any) -> Reply:
    return use(HttpModel(connect(server, **values), params or {}), lambda model: model.complete(prompt))


def failure(server: FakeServer, answer: Any, **values: Any) -> ModelError:
    """Return the error that `answer` becomes; its text is one line, and holds no key."""
    server.script(lambda body, nth: answer)
    with pytest.raises(ModelError) as caught:
        ask(server, **values)
    message = caught.value.message
    assert str(caught.value) == message
    assert "\n" not in message
    assert len(message) < 400
    assert KEY not in message
    message.encode("utf-8")
    return caught.value


def test_it_is_a_model() -> None:
    """The protocol that the engine drives is fulfilled."""
    model = HttpModel(Connection("x", "x", "http://h", "m", max_in_flight=8), {})
    assert isinstance(model, Model)
    assert (model.max_in_flight, model.is_service) == (8, True)


def test_the_request_is_exactly_the_prompt(server: FakeServer) -> None:
    """One user message, no system message, the parameters beside it, and the key as a bearer token."""
    reply = ask(server, "Who? é 🎉", {"temperature": 0, "seed": None})
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.body == {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "Who? é 🎉"}]}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert (reply.text, reply.calls, reply.notes) == ("The answer to: Who? é 🎉", 1, ())
    assert reply.latency_s is not None
    assert 0 < reply.latency_s < 5


def test_chat_messages_are_sent_as_they_are(server: FakeServer) -> None:
    """A prompt that is a list of messages is not wrapped."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]
    ask(server, messages)
    assert server.requests[0].body["messages"] == messages


def test_a_prompt_with_half_a_surrogate_pair_is_sent(server: FakeServer) -> None:
    """What cannot be encoded is replaced, and the request goes out."""
    ask(server, "half \ud83c pair")
    assert server.requests[0].prompt == "half � pair"


def test_without_a_key_no_credentials_are_sent(server: FakeServer) -> None:
    """A local server gets no Authorization header."""
    ask(server, api_key=Secret(""))
    assert "authorization" not in server.requests[0].headers


def test_azure_is_asked_by_deployment(server: FakeServer) -> None:
    """Path, version and key header are Azure's; a token goes out as a bearer token."""
    azure: dict[str, Any] = {
        "provider": "azure",
        "model": "dep",
        "api_version": "2024-10-21",
        "base_url": server.base_url.removesuffix("/v1"),
    }
    ask(server, **azure)
    ask(server, **azure, token=True)
    first, second = server.requests
    assert first.path == "/openai/deployments/dep/chat/completions?api-version=2024-10-21"
    assert first.headers["api-key"] == KEY
    assert "authorization" not in first.headers
    assert second.headers["authorization"] == f"Bearer {KEY}"
    assert "api-key" not in second.headers


def test_parameters_go_over_those_of_the_connection(server: FakeServer) -> None:
    """The command line wins, None leaves a parameter out, and caps rule parameters out."""
    connection = connect(
        server,
        params={"temperature": 1, "seed": 5, "top_p": 0.5, "max_tokens": 9},
        caps={"no_temperature": True, "no_max_tokens": True},
    )
    model = HttpModel(connection, {"seed": 6, "top_p": None, "temperature": 0})
    use(model, lambda it: it.complete("Who?"))
    assert server.requests[0].body == {"model": "m", "seed": 6, "messages": [{"role": "user", "content": "Who?"}]}


def test_parameters_of_one_call_go_under_the_users(server: FakeServer) -> None:
    """A call brings parameters of its own; those of the user win, and other calls do not see them."""
    model = HttpModel(connect(server), {"temperature": 0.5})

    async def three(it: HttpModel) -> None:
        await complete_with(it, "a", {"temperature": 0, "max_tokens": 1})
        await complete_with(it, "b", {})
        await complete_with(it, "c", {"stop": ["x"]})

    use(model, three)
    sent = [{key: value for key, value in request.body.items() if key != "messages"} for request in server.requests]
    own = {"model": "m", "temperature": 0.5}
    assert sent == [{**own, "max_tokens": 1}, own, {**own, "stop": ["x"]}]
    assert model.describe()["params"] == {"temperature": 0.5}


def test_a_refused_parameter_of_calls_is_asked_for_once(server: FakeServer) -> None:
    """What the service refuses of a call's own parameters is left out of the next call that brings the same."""
    server.script(picky("temperature"))

    async def two(it: HttpModel) -> list[int]:
        return [(await it.complete_with("a", {"temperature": 1})).calls for _ in range(2)]

    assert use(HttpModel(connect(server), {}), two) == [2, 1]


@pytest.mark.parametrize("name", ["model", "messages", "stream"])
def test_a_parameter_cannot_replace_what_is_not_its_own(name: str) -> None:
    """Model, prompt and way of reading are set elsewhere: a mistake, told at once."""
    with pytest.raises(SpecError, match=name):
        HttpModel(Connection("x", "x", "http://h", "m"), {name: 1})


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(400), "bad_request"),
        (error(401, "Incorrect API key"), "unauthorized"),
        (error(402), "quota"),
        (error(403), "forbidden"),
        (error(404, code="model_not_found"), "not_found"),
        (error(405), "not_found"),
        (error(408), "server_error"),
        (error(409), "server_error"),
        (error(413), "refused_request"),
        (error(422), "bad_request"),
        (error(429), "rate_limited"),
        (error(429, code="insufficient_quota"), "quota"),
        (error(429, type="insufficient_quota", code="credit_balance_exhausted"), "quota"),
        (error(429, code="billing_hard_limit_reached"), "quota"),
        (error(400, "Your credit balance is too low", type="invalid_request_error"), "quota"),
        (error(500), "server_error"),
        (error(503), "server_error"),
        (error(529, type="overloaded_error"), "server_error"),
        (error(400, code="content_filter"), "filtered"),
        (error(400, code="content_policy_violation"), "filtered"),
        (Answer({"error": {"innererror": {"code": "ResponsibleAIPolicyViolation"}}}, 400), "filtered"),
        (error(400, code="context_length_exceeded"), "refused_request"),
        (error(400, "This model's maximum context length is 8192 tokens"), "refused_request"),
        (error(400, "prompt is too long: 300000 tokens > 200000 maximum"), "refused_request"),
        (Answer([{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}], 400), "bad_request"),
        (Answer("<html><title>502 Bad Gateway</title>", 502), "server_error"),
        (Answer("", 500), "server_error"),
        (Answer("[" * 100_000, 500), "server_error"),
        (Answer({"detail": [{"loc": ["body", "messages"], "msg": "bad"}]}, 422), "bad_request"),
        (Answer({"error": "no such thing"}, 404), "not_found"),
        (completion(""), "empty"),
        (completion("A", finish_reason="length"), "truncated"),
        (completion("A", finish_reason="content_filter"), "filtered"),
        (Answer("Bad gateway"), "unreadable"),
        (Answer('{"choices": [{"mess'), "unreadable"),
        (Answer("[" * 100_000), "unreadable"),
        (Answer({"error": {"code": 503, "message": "busy"}}), "server_error"),
        (Answer(completion("A"), fault="reset"), "connection"),
        (Answer(completion("A"), fault="close"), "connection"),
        (Answer(completion("A"), fault="truncated"), "connection"),
        (Answer(fault="garbage"), "connection"),
        (Answer(b"no gzip", headers={"Content-Encoding": "gzip"}), "connection"),
    ],
)  # fmt: skip
def test_every_failure_has_its_kind(server: FakeServer, answer: Any, kind: str) -> None:
    """Status, code and type decide the kind; one request is sent, trying again is the engine's business."""
    assert failure(server, answer).kind == kind
    assert len(server.requests) == 1


def test_a_cut_keeps_what_had_come_and_what_it_cost(server: FakeServer) -> None:
    """The text before the token limit is there for who set the limit, its request counted."""
    partial = failure(server, completion("Paris is", finish_reason="length")).partial
    assert partial is not None
    assert (partial.text, partial.calls, partial.latency_s is not None) == ("Paris is", 1, True)


def test_the_message_says_status_host_and_the_services_words(server: FakeServer) -> None:
    """One line, at most 300 characters of it the service's."""
    said = failure(server, error(401, "Incorrect\nAPI   key " + "x" * 1000))
    assert said.message.startswith(f"HTTP 401 from 127.0.0.1:{server.port}: Incorrect API key xxx")
    assert said.message.endswith("x…")
    assert said.status == 401
    assert "502 Bad Gateway" in failure(server, Answer("<title>502 Bad Gateway</title>", 502)).message


@pytest.mark.parametrize(
    "make", [lambda key: error(401, f"Incorrect API key provided: {key}."), lambda key: Answer(f"key {key}", 500)]
)
def test_a_key_in_an_error_is_masked(server: FakeServer, make: Callable[[str], Answer]) -> None:
    """Services quote the key they refuse."""
    assert "***" in failure(server, make(KEY)).message


@pytest.mark.parametrize("status", [200, 500])
def test_no_half_of_a_key_is_left(server: FakeServer, status: int) -> None:
    """A message is cut to its length after the key is masked, not in the middle of it."""
    for blanks in range(270, 300, 5):
        said = failure(server, Answer({"error": {"message": "x" * blanks + KEY + "y" * 400}}, status))
        assert KEY[:8] not in said.message


BASE64 = "Zm9v+YmFy/YmF6cXV4/0123+Zm9vYmFy/YmF6=="


@pytest.mark.parametrize("start", [0, *range(230, 300, 7)])
@pytest.mark.parametrize("status", [200, 401, 500])
@pytest.mark.parametrize(
    "form", ['{{"error": {{"message": "{}"}}}}', '{{"error": {{"message": "{}', "<title>{}</title>"]
)
def test_no_escape_brings_a_key_past_the_mask(server: FakeServer, form: str, status: int, start: int) -> None:
    """Whole JSON, JSON that breaks off, a page: a key as .NET or PHP write it is masked before the text is cut."""
    for key in (BASE64, BASE64.replace("+", "\\u002B").replace("/", "\\/"), BASE64.replace("+", "&#43;")):
        said = failure(server, Answer(form.format("x" * start + key), status), api_key=Secret(BASE64))
        assert BASE64[:4] not in said.message


def test_a_key_in_a_redirect_is_masked(server: FakeServer) -> None:
    """Percent-encoded in the path, as a gateway may send it on."""
    said = failure(
        server, Answer("", 307, {"Location": f"http://h/{quote(BASE64, safe='')}/v1"}), api_key=Secret(BASE64)
    )
    assert "http" not in said.message.partition("redirects")[2]
    assert "h/***/v1" in said.message


def test_a_key_in_an_answer_is_masked(server: FakeServer) -> None:
    """An echo of our own header is no way out for the key."""
    server.script(lambda body, nth: completion(f"<think>{KEY}</think>it is {KEY}", model=KEY))
    reply = ask(server)
    assert (reply.text, reply.raw, reply.model) == ("it is ***", "<think>***</think>it is ***", "***")
    assert KEY not in repr(reply)
    server.script(lambda body, nth: completion(None, tool_calls=[{"id": "1", "function": {"arguments": KEY}}]))
    assert ask(server).extra == {"tool_calls": [{"id": "1", "function": {"arguments": "***"}}]}


def test_retry_after_is_read_from_the_headers(server: FakeServer) -> None:
    """The engine is told how long the service wants it to wait."""
    assert failure(server, error(429, headers={"Retry-After": "1.5"})).retry_after == 1.5
    assert failure(server, error(429, headers={"x-ratelimit-reset-requests": "2s"})).retry_after == 2
    assert failure(server, error(503, headers={"retry-after-ms": "30"})).retry_after == 0.03
    assert failure(server, error(500)).retry_after is None


def test_a_refused_connection_is_a_connection_fault() -> None:
    """Nobody listening is worth another try."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        model = HttpModel(Connection("x", "x", f"http://127.0.0.1:{taken.getsockname()[1]}", "m"), {})
        with pytest.raises(ModelError) as caught:
            use(model, lambda it: it.complete("Who?"))
    assert caught.value.kind == "connection"


def test_tls_to_a_server_without_it_is_a_connection_fault(server: FakeServer) -> None:
    """A failed handshake has no status."""
    with pytest.raises(ModelError) as caught:
        ask(server, base_url=server.base_url.replace("http:", "https:"))
    assert caught.value.kind == "connection"


def test_a_redirect_is_not_followed(server: FakeServer) -> None:
    """The key goes to no other host than the one it was meant for."""
    with FakeServer() as other:
        said = failure(server, Answer("", 307, {"Location": f"{other.base_url}/chat/completions?token=1"}))
        assert other.requests == []
    assert said.kind == "not_found"
    assert f"127.0.0.1:{other.port}/v1/chat/completions" in said.message
    assert "token" not in said.message


def test_a_body_beyond_the_cap_is_truncated(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runaway reply is the row's own error, and does not fill the memory."""
    monkeypatch.setattr(http, "MAX_BODY_BYTES", 1000)
    assert failure(server, completion("x" * 2000)).kind == "truncated"


def test_a_long_answer_comes_whole(server: FakeServer) -> None:
    """Two million characters of any alphabet are below the cap."""
    server.script(lambda body, nth: completion("é" * 2_000_000))
    assert len(ask(server).text) == 2_000_000


def test_bytes_that_are_no_utf8_do_not_cost_the_answer(server: FakeServer) -> None:
    """They become U+FFFD; a byte-order mark before the JSON is passed over."""
    body = json.dumps(completion("caf@")).encode().replace(b"@", b"\xe9")
    server.script(lambda _, nth: Answer(b"\xef\xbb\xbf" + body))
    assert ask(server).text == "caf�"


def test_a_compressed_reply_is_read(server: FakeServer) -> None:
    """Some gateways compress without being asked to; the cap counts what comes out."""
    body = gzip.compress(json.dumps(completion("Paris")).encode())
    server.script(lambda _, nth: Answer(body, headers={"Content-Encoding": "gzip"}))
    assert ask(server).text == "Paris"


def test_a_page_in_place_of_json_is_named(server: FakeServer) -> None:
    """A base URL that leads to a website is recognised by the message."""
    assert failure(server, Answer("<html><head><title>Welcome\x1b[31m</title>")).message.endswith("JSON: Welcome [31m")


REFUSALS = {
    "temperature": error(
        400,
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
        type="invalid_request_error",
        code="unsupported_value",
        param="temperature",
    ),
    "max_tokens": error(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        type="invalid_request_error",
        code="unsupported_parameter",
        param="max_tokens",
    ),
    "top_p": error(400, "Unknown argument: top_p"),
    "seed": Answer({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}, 422),
    "stop": error(400, "bad", param="stop"),
    "logprobs": error(400, "`logprobs` and `n` cannot both be specified for this model"),
}


def picky(*names: str) -> Callable[[dict[str, Any], int], Any]:
    """Return a script that refuses the first of `names` that it is sent."""
    return lambda body, nth: next((REFUSALS[name] for name in names if name in body), None)


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refused_parameter_is_dropped_once_and_remembered(server: FakeServer, name: str) -> None:
    """One extra request in all; later ones go without it, and replies and description say so."""
    server.script(picky(name))
    model = HttpModel(connect(server), {"n": 1, name: 0})

    async def twice(it: HttpModel) -> list[Reply]:
        return [await it.complete("one"), await it.complete("two")]

    first, second = use(model, twice)
    assert (first.calls, second.calls) == (2, 1)
    assert len(server.requests) == 3
    assert all(name in note for reply in (first, second) for note in reply.notes)
    assert first.notes == second.notes != ()
    (dropped,) = model.describe()["dropped_params"]
    assert dropped.startswith(name)
    assert name not in model.describe()["params"]
    assert model.describe()["params"]["n"] == 1


def test_max_tokens_is_renamed_before_it_is_dropped(server: FakeServer) -> None:
    """`max_completion_tokens` takes its place with its value; if that is refused too, both are gone."""
    server.script(picky("max_tokens"))
    model = HttpModel(connect(server), {"max_tokens": 64})
    use(model, lambda it: it.complete("Who?"))
    assert server.requests[-1].body["max_completion_tokens"] == 64
    assert model.describe()["dropped_params"] == ["max_tokens (sent as max_completion_tokens)"]

    server.script(lambda body, nth: error(400, param=[*body][1]) if len(body) > 2 else None)
    reply = ask(server, params={"max_tokens": 64})
    assert reply.calls == 3
    assert set(server.requests[-1].body) == {"model", "messages"}


def test_several_refused_parameters_cost_one_request_each(server: FakeServer) -> None:
    """The question is answered in the end."""
    server.script(picky("temperature", "max_tokens", "seed"))
    reply = ask(server, params={"temperature": 0, "max_tokens": 5, "seed": 1, "user": "u"})
    assert reply.calls == 4
    assert len(reply.notes) == 3
    assert set(server.requests[-1].body) == {"model", "messages", "user", "max_completion_tokens"}


def test_calls_under_way_share_what_one_has_learnt(server: FakeServer) -> None:
    """Concurrent calls that meet the same refusal each send one more request, none is lost."""
    server.latency = 0.02
    server.script(picky("temperature"))

    async def many(it: HttpModel) -> list[Reply]:
        return list(await asyncio.gather(*(it.complete(f"q{number}") for number in range(10))))

    replies = use(HttpModel(connect(server), {"temperature": 0}), many)
    assert {reply.calls for reply in replies} == {2}
    assert len(server.requests) == 20


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "temperature must be between 0 and 2", param="temperature", code="decimal_above_max_value"),
        error(400, "max_tokens is too large: 64", param="max_tokens", code="invalid_value"),
        error(400, "Unsupported: 'response_format'", param="response_format"),
        error(400, "System role not supported"),
        error(400, "the model does not support this", param="model"),
        error(400, "Invalid 'messages[0].content'", param="messages[0].content"),
        error(403, "temperature is not supported", param="temperature"),
    ],
)
def test_other_refusals_stay_errors(server: FakeServer, answer: Answer) -> None:
    """A value out of range is the user's mistake; what was not sent, and what must be sent, cannot be dropped."""
    server.script(lambda body, nth: answer)
    with pytest.raises(ModelError) as caught:
        ask(server, params={"temperature": 9, "max_tokens": 64})
    assert caught.value.kind in ("bad_request", "forbidden")
    assert len(server.requests) == 1


def test_a_service_that_refuses_for_ever_is_given_up(server: FakeServer) -> None:
    """Each parameter is dropped once; then the refusal is the error."""
    server.script(lambda body, nth: REFUSALS["temperature"])
    with pytest.raises(ModelError):
        ask(server, params={"temperature": 0})
    assert len(server.requests) == 2


def test_all_calls_go_out_at_once_over_kept_connections(server: FakeServer) -> None:
    """The client bounds nothing, and a second round opens no further connection."""
    server.latency = 0.1

    async def rounds(it: HttpModel) -> None:
        for _ in range(2):
            await asyncio.gather(*(it.complete(f"q{number}") for number in range(150)))

    use(HttpModel(connect(server), {}), rounds)
    assert server.max_in_flight == 150
    assert server.connections == 150


def test_a_cancelled_call_leaves_nothing_behind(server: FakeServer) -> None:
    """A deadline ends even a reply that drips, at once, and the next call is well."""
    server.script(lambda body, nth: Answer(completion("A"), fault="drip", drip_s=0.02) if nth == 1 else "B")

    async def impatient(it: HttpModel) -> Reply:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await it.complete("Who?")
        assert time.monotonic() - started < 1
        return await it.complete("Who?")

    assert use(HttpModel(connect(server), {}), impatient).text == "B"


def test_closing_is_safe_at_any_time(server: FakeServer) -> None:
    """Twice, and before anything was asked; after it a new client is opened on demand, on another loop too."""
    model = HttpModel(connect(server), {})
    asyncio.run(model.close())
    for _ in range(2):
        assert use(model, lambda it: it.complete("Who?")).text
    asyncio.run(model.close())


def test_the_description_is_fit_for_a_report(server: FakeServer) -> None:
    """Names, host and parameters are told; the key is not, wherever it stands."""
    model = HttpModel(connect(server, provider="azure", api_version="v"), {"user": KEY, "temperature": 0})
    described = model.describe()
    assert described == {
        "provider": "azure",
        "model": "m",
        "base_url_host": f"127.0.0.1:{server.port}",
        "params": {"user": "***", "temperature": 0},
        "dropped_params": [],
        "api_version": "v",
    }
    assert KEY not in repr(vars(HttpModel(connect(server), {})))


def test_a_proxy_is_used_but_not_for_this_machine(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual variables lead through a proxy, with its password; loopback addresses are asked directly."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with FakeServer() as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:pw@127.0.0.1:{proxy.port}")
        ask(server)
        assert proxy.requests == []
        ask(server, base_url="http://far.invalid/v1")
        (request,) = proxy.requests
        assert request.path == "http://far.invalid/v1/chat/completions"
        assert request.headers["proxy-authorization"] == "Basic bWU6cHc="
        monkeypatch.setenv("no_proxy", "far.invalid")
        with pytest.raises(ModelError):
            ask(server, base_url="http://far.invalid/v1")
        assert len(proxy.requests) == 1


def test_a_proxy_sees_no_key(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the service is reached by https, a proxy is told the host and its own password only."""
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("https_proxy", f"http://me:pw@127.0.0.1:{server.port}")
    with pytest.raises(ModelError) as caught:
        ask(server, base_url="https://far.invalid/v1")
    assert "the proxy before far.invalid" in caught.value.message
    (request,) = server.requests
    assert request.path == "far.invalid:443"
    assert request.headers["proxy-authorization"] == "Basic bWU6cHc="
    assert KEY not in repr(request)


def test_the_judge_reads_the_last_block(server: FakeServer) -> None:
    """The fake judge grades by equality, whatever stands before."""
    from pytest_simpleqa.prompts import grade_template
    from pytest_simpleqa.records import Question

    question = Question("q1", "Capital?", "Paris")
    for predicted, letter in [("Paris", "A"), ("Rome", "B"), ("I don't know.", "C"), ("", "B")]:
        assert ask(server, grade_template().render(question, predicted), model="judge").text == letter
    assert len(server.judgements) == 4
    assert server.answers == []


def test_importing_and_resolving_is_light(server: FakeServer) -> None:
    """Neither aiohttp, pydantic nor openai is loaded before it is needed; openai never is."""
    code = (
        "import sys, asyncio\n"
        "import pytest_simpleqa.retry, pytest_simpleqa.models.http as http\n"
        "from pytest_simpleqa.models.connection import resolve_connection\n"
        "connection = resolve_connection('vllm:m', {'VLLM_BASE_URL': sys.argv[1]})\n"
        "model = http.HttpModel(connection, {})\n"
        "assert not {'aiohttp', 'pydantic', 'openai'} & set(sys.modules)\n"
        "asyncio.run(model.complete('Who?'))\n"
        "assert 'openai' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, server.base_url], check=True, timeout=30)


def test_the_server_gives_its_own_environment(server: FakeServer) -> None:
    """Other tests reach the fake server by a spec."""
    connection = resolve_connection("my-fake:m", server.environment("my-fake", max_in_flight=3))
    assert (connection.base_url, connection.max_in_flight) == (server.base_url, 3)
