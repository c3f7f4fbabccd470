"""Tests of each provider against a server that enforces its documented rules: what passes, and what is said if not."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import ModelError, SpecError
from pytest_simpleqa.models.spec import Surroundings, resolve_model
from pytest_simpleqa.records import Prompt, Reply

from .fake_server import Answer, FakeServer, Request, completion, error
from .provider_servers import (
    KEY,
    AnthropicServer,
    AzureServer,
    BedrockServer,
    GeminiServer,
    OpenAIServer,
    ProviderServer,
    response,
)

Environment = dict[str, str]
AWS = {"AWS_ACCESS_KEY_ID": BedrockServer.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": BedrockServer.SECRET}


@pytest.fixture
def azure() -> Iterator[AzureServer]:
    with AzureServer() as server:
        yield server


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def gemini() -> Iterator[GeminiServer]:
    with GeminiServer() as server:
        yield server


def root(server: FakeServer) -> str:
    return server.base_url.removesuffix("/v1")


def environment_of(server: FakeServer, **more: str) -> Environment:
    """Return the variables of a user of the provider that `server` is, who has a key."""
    url, address = root(server), server.base_url
    of = {
        OpenAIServer: {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address},
        AzureServer: {"AZURE_OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": url},
        AnthropicServer: {"ANTHROPIC_API_KEY": KEY, "SIMPLEQA_ANTHROPIC": json.dumps({"base_url": address})},
        GeminiServer: {"GEMINI_API_KEY": KEY, "SIMPLEQA_GEMINI": json.dumps({"base_url": f"{url}/v1beta/openai"})},
        BedrockServer: {
            "AWS_BEARER_TOKEN_BEDROCK": KEY,
            "AWS_BEDROCK_BASE_URL": address,
            "AWS_REGION": BedrockServer.REGION,
        },
    }
    return {**of[type(server)], **more}


def surroundings(environment: Mapping[str, str], base: Path) -> Surroundings:
    return Surroundings(environment, base, (), lambda path: pytest.fail("no local model is meant"))


def ask(
    spec: str,
    environment: Mapping[str, str],
    params: Mapping[str, Any] | None = None,
    prompt: Prompt = "Capital of France?",
    base: Path | None = None,
    times: int = 1,
) -> Reply:
    """Return the last reply of the model that `spec` names."""
    around = surroundings(environment, base or Path())

    async def session() -> Reply:
        model = resolve_model(spec, params or {}, around)
        try:
            for _ in range(times):
                reply = await asyncio.wait_for(model.complete(prompt), 10)
            return reply
        finally:
            await model.close()

    return asyncio.run(session())


def refusal(spec: str, environment: Mapping[str, str], **more: Any) -> ModelError:
    """Return the error of a request that fails; it is one line, and holds no secret."""
    with pytest.raises(ModelError) as caught:
        ask(spec, environment, **more)
    message = caught.value.message
    assert "\n" not in message
    assert KEY not in message
    assert BedrockServer.SECRET not in message
    return caught.value


RIGHT: list[tuple[type[ProviderServer], str, Environment, dict[str, Any]]] = [
    (OpenAIServer, "openai-responses:gpt-5", {}, {}),
    (OpenAIServer, "openai-responses:gpt-5", {}, {"reasoning_effort": "low", "max_tokens": 500, "verbosity": "low"}),
    (OpenAIServer, "mine:gpt-5", {"SIMPLEQA_MINE": '{"provider": "openai", "api": "responses"}'}, {}),
    (AzureServer, "azure:my-gpt", {}, {}),
    (AzureServer, "azure:my gpt/4", {}, {}),
    (AzureServer, "azure:my-gpt", {"OPENAI_API_VERSION": "2024-06-01"}, {}),
    (AzureServer, "azure:my-gpt", {"OPENAI_API_VERSION": "v1"}, {}),
    (AzureServer, "azure:my-gpt", {"OPENAI_API_VERSION": "preview"}, {}),
    (AzureServer, "azure:my-gpt", {"AZURE_OPENAI_AD_TOKEN": "token-1"}, {}),
    (AzureServer, "azure-responses:my-gpt", {}, {}),
    (AnthropicServer, "anthropic:claude-sonnet-4-5", {}, {"temperature": 0, "max_tokens": 64}),
    (GeminiServer, "gemini:gemini-2.5-flash", {}, {"temperature": 0, "reasoning_effort": "low"}),
    (GeminiServer, "gemini:models/gemini-2.5-flash", {}, {}),
    (BedrockServer, "bedrock:openai.gpt-oss-120b", {}, {}),
    (BedrockServer, "bedrock:openai.gpt-oss-120b", {"AWS_BEARER_TOKEN_BEDROCK": "", **AWS}, {}),
]


@pytest.mark.parametrize(("kind", "spec", "more", "params"), RIGHT)
def test_a_request_keeps_the_providers_rules(
    kind: type[ProviderServer], spec: str, more: Environment, params: dict[str, Any]
) -> None:
    """The first request passes, and what comes back is the answer without its reasoning."""
    if kind is BedrockServer and "AWS_SECRET_ACCESS_KEY" in more:
        pytest.importorskip("botocore")
    with kind() as server:
        reply = ask(spec, environment_of(server, **more), params)
        assert (reply.text, reply.calls, reply.notes) == ("Paris", 1, ())
        assert reply.prompt_tokens == 11
        assert reply.completion_tokens > 0


def without(name: str) -> Callable[[Request], None]:
    return lambda request: request.headers.__delitem__(name)


def replaced(old: str, new: str) -> Callable[[Request], None]:
    def change(request: Request) -> None:
        assert old in request.path
        request.path = request.path.replace(old, new)

    return change


def with_fields(**fields: Any) -> Callable[[Request], None]:
    return lambda request: request.body.update(fields)


BROKEN: list[tuple[type[ProviderServer], str, Callable[[Request], None]]] = [
    (OpenAIServer, "openai-responses:gpt-5", without("authorization")),
    (OpenAIServer, "openai-responses:gpt-5", replaced("/responses", "/chat/completions")),
    (OpenAIServer, "openai-responses:gpt-5", replaced("/v1/", "/")),
    (OpenAIServer, "openai-responses:gpt-5", with_fields(messages=[])),
    (OpenAIServer, "openai-responses:gpt-5", with_fields(max_tokens=50)),
    (OpenAIServer, "openai-responses:gpt-5", with_fields(reasoning_effort="low")),
    (OpenAIServer, "openai-responses:gpt-5", with_fields(temperature=0)),
    (OpenAIServer, "openai-responses:gpt-5", with_fields(max_output_tokens=8)),
    (AzureServer, "azure:my-gpt", without("api-key")),
    (AzureServer, "azure:my-gpt", lambda request: request.headers.update(authorization=f"Bearer {KEY}")),
    (AzureServer, "azure:my-gpt", replaced("?api-version=2024-10-21", "")),
    (AzureServer, "azure:my-gpt", replaced("2024-10-21", "2020-01-01")),
    (AzureServer, "azure:my-gpt", replaced("/my-gpt/", "/gpt-4o/")),
    (AzureServer, "azure:my-gpt", replaced("/openai/", "/")),
    (AzureServer, "azure-responses:my-gpt", replaced("/responses", "/responses?api-version=2024-10-21")),
    (AnthropicServer, "anthropic:claude-sonnet-4-5", without("authorization")),
    (AnthropicServer, "anthropic:claude-sonnet-4-5", with_fields(n=2)),
    (AnthropicServer, "anthropic:claude-sonnet-4-5", with_fields(temperature=1, top_p=1)),
    (AnthropicServer, "anthropic:claude-sonnet-4-5", with_fields(messages=[{"role": "human", "content": ""}])),
    (GeminiServer, "gemini:gemini-2.5-flash", without("authorization")),
    (GeminiServer, "gemini:gemini-2.5-flash", with_fields(seed=1)),
    (GeminiServer, "gemini:gemini-2.5-flash", with_fields(messages=[{"role": "developer", "content": ""}])),
    (BedrockServer, "bedrock:openai.gpt-oss-120b", without("authorization")),
    (BedrockServer, "bedrock:openai.gpt-oss-120b", with_fields(model="openai.gpt-5.4")),
    (BedrockServer, "bedrock:openai.gpt-oss-120b", replaced("/v1/", "/")),
]


@pytest.mark.parametrize(("kind", "spec", "change"), BROKEN)
def test_each_server_enforces_its_rules(
    kind: type[ProviderServer], spec: str, change: Callable[[Request], None]
) -> None:
    """The request that passed is refused as soon as one thing about it is changed."""
    with kind() as server:
        ask(spec, environment_of(server))
        broken = copy.deepcopy(server.requests[0])
        change(broken)
        said = server.refusal(broken)
    assert said is not None
    assert said.status >= 400


def test_a_signature_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another secret, and another region than the endpoint's, make another signature, which Bedrock refuses."""
    pytest.importorskip("botocore")
    spec = "bedrock:openai.gpt-oss-120b"
    with BedrockServer() as server:
        signed = environment_of(server, AWS_BEARER_TOKEN_BEDROCK="", **AWS)
        for change in ({"AWS_SECRET_ACCESS_KEY": "x" * 40}, {"AWS_REGION": "eu-west-1"}):
            said = refusal(spec, {**signed, **change})
            assert said.kind == "forbidden"
            assert "signed was with AWS credentials for" in said.message


@pytest.mark.parametrize(
    ("name", "words"), [("AWS_PROFILE", "ProfileNotFound"), ("OTHER", "set AWS_BEARER_TOKEN_BEDROCK")]
)
def test_missing_aws_credentials_are_told(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What AWS's own chain does not find, or a profile that is none, stops the run with one line."""
    pytest.importorskip("botocore")
    for variable, value in {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(variable, value)
    for variable in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(variable, raising=False)
    with BedrockServer() as server:
        environment = environment_of(server, AWS_BEARER_TOKEN_BEDROCK="", **{name: "nobody"})
        said = refusal("bedrock:openai.gpt-oss-120b", environment)
        assert server.requests == []
    assert said.kind == "unauthorized"
    assert "no AWS credentials" in said.message
    assert words in said.message


OUR_WORDS: list[tuple[type[ProviderServer], str, Environment, str, str]] = [
    (OpenAIServer, "openai-responses:gpt-5", {"OPENAI_API_KEY": "other"}, "unauthorized", "came from OPENAI_API_KEY"),
    (OpenAIServer, "openai:o1-pro", {}, "not_found", "openai-responses:o1-pro"),
    (AzureServer, "azure:gpt-4o", {}, "not_found", "'gpt-4o' is none of this resource"),
    (AzureServer, "azure:my-gpt", {"OPENAI_API_VERSION": "2031-01-01"}, "bad_request", "set OPENAI_API_VERSION"),
    (AzureServer, "azure:my-gpt", {"AZURE_OPENAI_AD_TOKEN": "old"}, "unauthorized", "AZURE_OPENAI_AD_TOKEN may have"),
    (AzureServer, "azure:my-gpt", {"AZURE_OPENAI_API_KEY": "x"}, "unauthorized", "came from AZURE_OPENAI_API_KEY"),
    (AnthropicServer, "anthropic:claude-x", {"ANTHROPIC_API_KEY": "x"}, "unauthorized", "came from ANTHROPIC_API_KEY"),
    (AnthropicServer, "anthropic:gpt-4o", {}, "not_found", "model: gpt-4o"),
    (GeminiServer, "gemini:gemini-2.5-pro", {"GEMINI_API_KEY": "x"}, "unauthorized", "came from GEMINI_API_KEY"),
    (GeminiServer, "gemini:gpt-4o", {}, "not_found", "models/gpt-4o is not found"),
    (BedrockServer, "bedrock:openai.gpt-5.4", {}, "bad_request", "bedrock-responses:openai.gpt-5.4"),
    (BedrockServer, "bedrock:m", {"AWS_BEARER_TOKEN_BEDROCK": "x"}, "forbidden", "came from AWS_BEARER_TOKEN_BEDROCK"),
]


@pytest.mark.parametrize(("kind", "spec", "more", "word", "hint"), OUR_WORDS)
def test_a_refusal_says_what_to_set(
    kind: type[ProviderServer], spec: str, more: Environment, word: str, hint: str
) -> None:
    """One line, the service's words and ours: the variable, the deployment, the version, the other API."""
    with kind() as server:
        said = refusal(spec, environment_of(server, **more))
    assert said.kind == word
    assert hint in said.message


def test_a_wrong_address_shows_its_path(gemini: GeminiServer) -> None:
    """A base URL without its path is recognised by what was asked."""
    said = refusal(
        "gemini:gemini-2.5-flash", {"GEMINI_API_KEY": KEY, "SIMPLEQA_GEMINI": json.dumps({"base_url": root(gemini)})}
    )
    assert "asked was /chat/completions: is the base URL right?" in said.message


@pytest.mark.parametrize(
    ("spec", "environment", "words"),
    [
        ("openai-responses:gpt-5", {}, ["OPENAI_API_KEY"]),
        ("azure-responses:d", {"AZURE_OPENAI_API_KEY": KEY}, ["AZURE_OPENAI_ENDPOINT"]),
        ("bedrock:m", {"AWS_BEARER_TOKEN_BEDROCK": KEY}, ["AWS_REGION", "us-east-1"]),
        ("bedrock:m", {"AWS_BEARER_TOKEN_BEDROCK": KEY, "AWS_REGION": "Oregon!"}, ["AWS_REGION", "'Oregon!'"]),
        ("azure:d", {"SIMPLEQA_AZURE": '{"token": "eyJhbGci"}'}, ["'token'", "python:package.module:attribute"]),
        ("x:m", {"SIMPLEQA_X": '{"api": "complete"}'}, ["'api'", "chat or responses"]),
        ("x:m", {"SIMPLEQA_X": '{"headers": {"Authorization": "k"}}'}, ["'headers'", "'api_key'"]),
        ("x:m", {"SIMPLEQA_X": '{"headers": {"a": 1}}'}, ["'headers'", "one line"]),
        ("litellm-responses:m", {}, ["litellm"]),
    ],
)
def test_a_mistake_is_told_before_anything_is_asked(spec: str, environment: Environment, words: list[str]) -> None:
    """One line names the variable or the key of the JSON, and what was wanted."""
    with pytest.raises(SpecError) as caught:
        ask(spec, environment)
    message = str(caught.value)
    assert "\n" not in message
    assert "eyJhbGci" not in message
    assert [word for word in words if word not in message] == []


def test_bedrock_without_a_key_or_botocore_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable to set, or the extra that signs with AWS credentials."""
    monkeypatch.setattr("pytest_simpleqa.models.connection.find_spec", lambda name: None)  # as where it is absent
    with pytest.raises(SpecError, match=r"AWS_BEARER_TOKEN_BEDROCK.*pytest-simpleqa\[bedrock\]"):
        ask("bedrock:m", {"AWS_REGION": "us-east-1"})


def test_bedrock_has_an_address_for_each_api() -> None:
    """Chat completions and responses lie at different paths of the region's endpoint."""
    around = surroundings({"AWS_BEARER_TOKEN_BEDROCK": KEY, "AWS_DEFAULT_REGION": "eu-west-1"}, Path())
    chat: Any = resolve_model("bedrock:m", {}, around)
    responses: Any = resolve_model("bedrock-responses:m", {}, around)
    assert chat.url == "https://bedrock-mantle.eu-west-1.api.aws/v1/chat/completions"
    assert responses.url == "https://bedrock-mantle.eu-west-1.api.aws/openai/v1/responses"
    assert responses.describe()["api"] == "responses"


def test_a_workspace_is_named_by_a_header() -> None:
    """What the connection's `headers` say goes with every request."""
    with AnthropicServer(workspace="wrk_1") as server:
        said = {"base_url": server.base_url, "headers": {"anthropic-workspace-id": "wrk_1"}}
        assert ask("anthropic:claude-x", {"ANTHROPIC_API_KEY": KEY, "SIMPLEQA_ANTHROPIC": json.dumps(said)}).text


# The Responses API.


def test_the_response_request_is_exactly_the_prompt(openai: OpenAIServer) -> None:
    """The prompt is `input`, nothing is kept by the service, parameters have their names in this API."""
    ask("openai-responses:gpt-5", environment_of(openai), {"reasoning_effort": "low", "max_completion_tokens": 99})
    assert openai.requests[0].body == {
        "model": "gpt-5",
        "input": "Capital of France?",
        "store": False,
        "reasoning": {"effort": "low"},
        "max_output_tokens": 99,
    }


def test_system_messages_become_instructions(openai: OpenAIServer) -> None:
    """Those that lead a chat; the others stay where they are, and a chat of theirs alone stays whole."""
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}
    ask("openai-responses:gpt-5", environment_of(openai), prompt=[system, user])
    ask("openai-responses:gpt-5", environment_of(openai), prompt=[system])
    first, second = (request.body for request in openai.requests)
    assert (first["instructions"], first["input"]) == ("Be brief.", [user])
    assert "instructions" not in second
    assert second["input"] == [system]


def test_a_temperature_that_is_refused_is_dropped(openai: OpenAIServer) -> None:
    """As the judge's default is for a reasoning model: one more request, and a note."""
    reply = ask("openai-responses:gpt-5", environment_of(openai), {"temperature": 0})
    assert (reply.text, reply.calls, reply.notes) == ("Paris", 2, ("dropped parameter: temperature",))


@pytest.mark.parametrize("params", [{"reasoning_effort": "extreme"}, {"max_tokens": 8}])
def test_an_unfit_value_is_not_dropped(openai: OpenAIServer, params: dict[str, Any]) -> None:
    """A run with another effort or length than was asked for would measure something else."""
    assert refusal("openai-responses:gpt-5", environment_of(openai), params=params).kind == "bad_request"
    assert len(openai.requests) == 1


@pytest.mark.parametrize("name", ["input", "messages", "instructions", "background", "stream"])
def test_a_parameter_cannot_replace_the_prompt(name: str) -> None:
    """What holds the prompt, or changes how the reply comes, is no request parameter."""
    with pytest.raises(SpecError, match=name):
        ask("openai-responses:m", {"OPENAI_API_KEY": KEY}, {name: 1})


REFUSED = {"type": "message", "content": [{"type": "refusal", "refusal": "I can't help."}]}
COMMENT = {"type": "message", "phase": "commentary", "content": [{"type": "output_text", "text": "Let me see."}]}
FINAL = {"type": "message", "phase": "final_answer", "content": [{"type": "output_text", "text": "Rome"}]}


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (response("Rome"), "Rome"),
        (response(output=[REFUSED]), "I can't help."),
        (response(output=[COMMENT, FINAL]), "Rome"),
        (response(output=[COMMENT]), "Let me see."),
        (response(output=[{"type": "reasoning", "summary": []}]), "empty"),
        (response("<think>x</think>Rome"), "Rome"),
        (response("Ro", status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "truncated"),
        (response("Ro", status="incomplete", incomplete_details={"reason": "content_filter"}), "filtered"),
        (response("Ro", status="incomplete"), "truncated"),
        (response(status="failed", error={"code": "server_error", "message": "sorry"}), "server_error"),
        (response(status="failed", error={"code": "rate_limit_exceeded", "message": "slow"}), "rate_limited"),
        (response(status="failed", error={"code": "invalid_prompt", "message": "flagged"}), "filtered"),
        (response(status="failed"), "server_error"),
        (response(status="in_progress"), "unreadable"),
        (completion("A"), "unreadable"),
        ({"output": "x"}, "unreadable"),
        ([], "unreadable"),
        (error(401), "unauthorized"),
        (error(400, code="context_length_exceeded"), "refused_request"),
    ],
)
def test_what_a_response_means(openai: OpenAIServer, body: Any, outcome: str) -> None:
    """Text and refusals are the answer, reasoning and commentary are not, and the status is read first."""
    openai.script(lambda *_: body)
    try:
        found = ask("openai-responses:gpt-5", environment_of(openai)).text
    except ModelError as said:
        found = said.kind
    assert found == outcome


# Gemini's errors.


def test_a_429_waits_as_long_as_its_body_says(gemini: GeminiServer) -> None:
    """There is no Retry-After; a RetryInfo says it."""
    wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
    gemini.script(lambda *_: GeminiServer.error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", wait))
    said = refusal("gemini:gemini-2.5-flash", environment_of(gemini))
    assert (said.kind, said.retry_after) == ("rate_limited", 34.07)


@pytest.mark.parametrize(
    ("message", "quota"),
    [
        ("You exceeded", "GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
        ("free_tier_requests, limit: 0, model: x", ""),
    ],
)
def test_a_spent_quota_is_not_waited_for(gemini: GeminiServer, message: str, quota: str) -> None:
    """A day's quota, or none at all, is not back within the run."""
    detail = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}
    gemini.script(lambda *_: GeminiServer.error(429, "RESOURCE_EXHAUSTED", message, detail))
    assert refusal("gemini:gemini-2.5-flash", environment_of(gemini)).kind == "quota"


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"choices": [{"finish_reason": "content_filter: PROHIBITED_CONTENT", "index": 0}]}, "filtered"),
        ({"choices": [{"finish_reason": "length", "index": 0, "message": {"role": "assistant"}}]}, "truncated"),
        (completion("<thought>hm</thought>Paris"), "Paris"),
    ],
)
def test_what_gemini_withholds(gemini: GeminiServer, body: Any, outcome: str) -> None:
    """A reply without a message says why; thoughts are no answer."""
    gemini.script(lambda *_: body)
    try:
        found = ask("gemini:gemini-2.5-flash", environment_of(gemini)).text
    except ModelError as said:
        found = said.kind
    assert found == outcome


def test_an_unknown_field_is_dropped(gemini: GeminiServer) -> None:
    """Gemini names it in its own words."""
    reply = ask("gemini:gemini-2.5-flash", environment_of(gemini), {"seed": 1})
    assert reply.notes == ("dropped parameter: seed",)


# Tokens that are fetched.


def test_a_token_is_fetched_by_the_users_function(azure: AzureServer, tmp_path: Path) -> None:
    """Once for many requests; the key's variable is not looked at, and the function's module is the user's."""
    (tmp_path / "my_azure_1.py").write_text(
        "calls = []\ndef token():\n    calls.append(1)\n    return 'token-1'\n", encoding="utf-8"
    )
    environment = environment_of(azure, SIMPLEQA_AZURE='{"token": "python:my_azure_1:token"}')
    ask("azure:my-gpt", environment, base=tmp_path, times=3)
    import my_azure_1  # type: ignore[import-not-found]  # written above

    assert my_azure_1.calls == [1]
    assert {request.headers["authorization"] for request in azure.requests} == {"Bearer token-1"}


def test_a_token_that_was_refused_is_fetched_anew(azure: AzureServer, tmp_path: Path) -> None:
    """Once: the request is repeated with the new one, and both requests count."""
    (tmp_path / "my_azure_2.py").write_text(
        "tokens = ['stale', 'token-1']\nasync def token():\n    return tokens.pop(0)\n", encoding="utf-8"
    )
    environment = environment_of(azure, SIMPLEQA_AZURE='{"token": "python:my_azure_2:token"}')
    reply = ask("azure:my-gpt", environment, base=tmp_path)
    assert (reply.text, reply.calls) == ("Paris", 2)


def test_a_token_that_is_refused_twice_stops(azure: AzureServer, tmp_path: Path) -> None:
    """The message names the function, and what it may have got wrong; the token is masked."""
    (tmp_path / "my_azure_3.py").write_text(
        "import itertools\nnumber = itertools.count()\ndef token():\n    return f'planted-token-{next(number)}'\n",
        encoding="utf-8",
    )
    environment = environment_of(azure, SIMPLEQA_AZURE='{"token": "python:my_azure_3:token"}')
    azure.script(lambda *_: error(401, "no: planted-token-0 or planted-token-1"))
    said = refusal("azure:my-gpt", environment, base=tmp_path)
    assert said.kind == "unauthorized"
    assert "python:my_azure_3:token" in said.message
    assert "planted" not in said.message
    assert len(azure.requests) == 2


def test_a_token_function_that_is_none_is_a_mistake(azure: AzureServer, tmp_path: Path) -> None:
    """It is looked for before anything is asked."""
    (tmp_path / "my_azure_4.py").write_text("token = 'planted'\n", encoding="utf-8")
    for name, words in (("token", "something to call"), ("tokn", "has no 'tokn'")):
        environment = environment_of(azure, SIMPLEQA_AZURE=json.dumps({"token": f"python:my_azure_4:{name}"}))
        with pytest.raises(SpecError, match=words) as caught:
            ask("azure:my-gpt", environment, base=tmp_path)
        assert "planted" not in str(caught.value)
    assert azure.requests == []


# Through litellm.


def lite(server: FakeServer, **more: str) -> Environment:
    return {"SIMPLEQA_LITELLM": json.dumps({"base_url": server.base_url, "api_key": KEY, **more})}


def test_litellm_that_is_absent_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("pytest_simpleqa.models.through_litellm.find_spec", lambda name: None)
    with pytest.raises(SpecError, match=r"pip install \"pytest-simpleqa\[litellm\]\""):
        ask("litellm:openai/gpt-4o", {})


@pytest.mark.slow
def test_litellm_is_asked_as_any_model() -> None:
    """One request each, the retries off, a refused parameter dropped, failures by their kinds, nothing shown."""
    pytest.importorskip("litellm")
    failures: list[tuple[Answer, str]] = [
        (error(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"), "unauthorized"),
        (error(404, "The model does not exist", code="model_not_found"), "not_found"),
        (error(429, "slow down", headers={"Retry-After": "2"}), "rate_limited"),
        (error(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
        (error(400, "maximum context length is 8192 tokens", code="context_length_exceeded"), "refused_request"),
        (error(400, "flagged by content management policy", code="content_policy_violation"), "filtered"),
        (error(500, "sorry"), "server_error"),
        (error(503, "busy"), "server_error"),
        (Answer(completion("A", finish_reason="length")), "truncated"),
        (Answer(completion("")), "empty"),
    ]  # fmt: skip
    with FakeServer() as server:
        spec = "litellm:openai/gpt-4o-mini"
        reply = ask(spec, lite(server), {"temperature": 0})
        assert (reply.text, reply.calls, reply.notes) == ("The answer to: Capital of France?", 1, ())
        assert server.requests[0].body["messages"] == [{"role": "user", "content": "Capital of France?"}]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        for answer, kind in failures:
            before = len(server.requests)
            server.script(lambda *_, answer=answer: answer)
            said = refusal(spec, lite(server))
            assert (said.kind, len(server.requests) - before) == (kind, 1), said.message
        server.script(
            lambda body, nth: error(400, "Unknown parameter: 'seed'", param="seed") if "seed" in body else "B"
        )
        assert ask(spec, lite(server), {"seed": 1}).notes == ("dropped parameter: seed",)
