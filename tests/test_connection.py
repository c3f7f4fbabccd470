"""Tests of resolving a spec in an environment: the order, the checks, and errors that show no value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_simpleqa.errors import SpecError
from pytest_simpleqa.models.connection import Connection, resolve_connection
from pytest_simpleqa.models.http import endpoint_of
from pytest_simpleqa.models.providers import PROVIDERS

KEY = "sk-planted-0123456789"
FULL = {"base_url": "https://h.example/v1", "api_key": KEY, "model": "m"}


def mistake(spec: str, environment: dict[str, str]) -> str:
    with pytest.raises(SpecError) as caught:
        resolve_connection(spec, environment)
    message = str(caught.value)
    assert "\n" not in message
    assert "planted" not in message
    assert caught.value.__cause__ is None
    return message


def as_json(**values: Any) -> str:
    return json.dumps(values)


def test_a_known_provider_needs_only_its_variable() -> None:
    """`openai:gpt-4o` and OPENAI_API_KEY are enough."""
    found = resolve_connection("openai:gpt-4o", {"OPENAI_API_KEY": KEY})
    assert (found.alias, found.provider, found.model) == ("openai", "openai", "gpt-4o")
    assert found.base_url == "https://api.openai.com/v1"
    assert found.api_key.reveal() == KEY


def test_the_key_is_not_in_the_repr() -> None:
    """A connection can be printed in a traceback without giving its key away."""
    assert KEY not in repr(resolve_connection("openai:gpt-4o", {"OPENAI_API_KEY": KEY}))


def test_the_model_may_hold_colons_and_slashes() -> None:
    """Only the first colon parts alias and model."""
    found = resolve_connection("openrouter:meta-llama/llama-3:free", {"OPENROUTER_API_KEY": KEY})
    assert found.model == "meta-llama/llama-3:free"


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name not in ("azure", "bedrock", "litellm")])
def test_every_known_provider_resolves(name: str) -> None:
    """Each table entry gives a clean https address (http on this machine) and its own key."""
    provider = PROVIDERS[name]
    found = resolve_connection(f"{name}:m", {provider.key_variables[0]: KEY})
    assert found.base_url == (provider.base_url or "").rstrip("/")
    assert found.base_url.startswith("https://" if provider.needs_key else "http://127.0.0.1:")
    assert found.api_key.reveal() == KEY


@pytest.mark.parametrize("name", [name for name, provider in PROVIDERS.items() if provider.needs_key])
def test_a_missing_key_names_the_variable(name: str) -> None:
    """The message says which variable to set."""
    if PROVIDERS[name].signs:
        pytest.skip("AWS credentials stand in for its key: see test_providers.py")
    assert PROVIDERS[name].key_variables[0] in mistake(f"{name}:m", {PROVIDERS[name].key_variables[0]: "  "})


def test_azure_takes_its_usual_variables() -> None:
    """Endpoint, key and version come from Azure's own variables; the model is the deployment."""
    environment = {"AZURE_OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/"}
    found = resolve_connection("azure:my-gpt", environment)
    assert (found.base_url, found.model, found.token) == ("https://r.openai.azure.com", "my-gpt", False)
    assert found.api_version == "2024-10-21"
    assert (
        resolve_connection("azure:d", {**environment, "OPENAI_API_VERSION": "2025-01-01"}).api_version == "2025-01-01"
    )


def test_azure_without_an_endpoint_names_the_variable() -> None:
    """There is no default address for Azure."""
    assert "AZURE_OPENAI_ENDPOINT" in mistake("azure:d", {"AZURE_OPENAI_API_KEY": KEY})


def test_an_azure_token_is_marked_as_one() -> None:
    """AZURE_OPENAI_AD_TOKEN goes out as a bearer token, and wins over the key as in OpenAI's SDK."""
    environment = {"AZURE_OPENAI_ENDPOINT": "https://r.example", "AZURE_OPENAI_AD_TOKEN": KEY}
    assert resolve_connection("azure:d", environment).token
    assert resolve_connection("azure:d", {**environment, "AZURE_OPENAI_API_KEY": "other"}).api_key.reveal() == KEY


def test_the_environment_json_comes_in_order() -> None:
    """SIMPLEQA_, FLOWCRAFT_, FLOWCRAFT_TEST_, then the known provider."""
    environment = {
        "FLOWCRAFT_TEST_QWEN": as_json(api_key=KEY, model="c"),
        "FLOWCRAFT_QWEN": as_json(api_key=KEY, model="b"),
        "SIMPLEQA_QWEN": as_json(api_key=KEY, model="a"),
        "DASHSCOPE_API_KEY": KEY,
    }
    for expected in ("a", "b", "c"):
        assert resolve_connection("qwen", environment).model == expected
        del environment[
            next(name for name in ("SIMPLEQA_QWEN", "FLOWCRAFT_QWEN", "FLOWCRAFT_TEST_QWEN") if name in environment)
        ]
    assert resolve_connection("qwen:d", environment).model == "d"


def test_an_empty_variable_is_no_variable() -> None:
    """CI systems set missing secrets to the empty text."""
    found = resolve_connection("openai:m", {"SIMPLEQA_OPENAI": " ", "OPENAI_API_KEY": KEY})
    assert found.base_url == "https://api.openai.com/v1"


def test_one_provider_can_have_several_connections() -> None:
    """The alias names the variable, `provider` the service."""
    environment = {
        "SIMPLEQA_AZURE_FAST": as_json(
            provider="azure", api_key=KEY, model="mini", base_url="https://f.example", api_version="2025-03-01",
            params={"temperature": 0}, caps={"no_temperature": True}, max_in_flight=8,
        ),
    }  # fmt: skip
    found = resolve_connection("azure-fast", environment)
    assert (found.provider, found.model, found.api_version) == ("azure", "mini", "2025-03-01")
    assert (found.params, found.caps, found.max_in_flight) == ({"temperature": 0}, {"no_temperature": True}, 8)
    assert resolve_connection("azure_fast:big", environment).model == "big"


def test_a_json_without_a_key_falls_back_on_the_usual_variable() -> None:
    """A connection can add parameters and leave the key where it is."""
    environment = {"SIMPLEQA_OPENAI": as_json(params={"seed": 1}), "OPENAI_API_KEY": KEY}
    assert resolve_connection("openai:m", environment).api_key.reveal() == KEY


def test_any_address_is_openai_compatible() -> None:
    """An unknown provider with a base URL is fine, with or without a key."""
    found = resolve_connection("mine", {"SIMPLEQA_MINE": as_json(base_url="http://h:1/v1", model="m")})
    assert (found.provider, found.base_url, bool(found.api_key)) == ("mine", "http://h:1/v1", False)


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("http://h/v1", "http://h/v1"),
        ("http://h/v1/", "http://h/v1"),
        (" http://h/v1/ ", "http://h/v1"),
        ("http://h/v1///", "http://h/v1"),
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("http://h/v1/chat/completions/", "http://h/v1"),
        ("https://h:8443", "https://h:8443"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
    ],
)
def test_base_urls_are_cleaned(url: str, clean: str) -> None:
    """Blanks, slashes and the endpoint's own path make no second address."""
    found = resolve_connection("x", {"SIMPLEQA_X": json.dumps({**FULL, "base_url": url})})
    assert found.base_url == clean
    assert endpoint_of(found) == f"{clean}/chat/completions"


@pytest.mark.parametrize(
    "url",
    ["h.example/v1", "ftp://h/v1", "file:///etc", "http://", "http:///v1", "http://h:port", "http://[::1", "//h/v1"],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """The message names the variable and the key, and what was wanted."""
    message = mistake("x", {"SIMPLEQA_X": json.dumps({**FULL, "base_url": url})})
    assert message.startswith("SIMPLEQA_X: 'base_url': ")
    assert "https://" in message


def test_a_password_in_the_address_is_refused() -> None:
    """An address is shown in reports: it must hold no secret."""
    assert "api_key" in mistake("x", {"SIMPLEQA_X": json.dumps({**FULL, "base_url": "https://me:planted@h/v1"})})


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        (Connection("a", "azure", "https://r", "d x/y", api_version="v"), "https://r/openai/deployments/d%20x%2Fy/chat/completions?api-version=v"),
        (Connection("a", "azure", "https://r/openai", "d", api_version="v"), "https://r/openai/deployments/d/chat/completions?api-version=v"),
        (Connection("a", "azure", "https://r/openai/v1", "d", api_version="v"), "https://r/openai/v1/chat/completions"),
        (Connection("a", "azure", "https://r/openai/deployments/e?api-version=w", "d", api_version="v"), "https://r/openai/deployments/e/chat/completions?api-version=w"),
        (Connection("a", "x", "https://r/v1?k=1", "d", api_version="v"), "https://r/v1/chat/completions?k=1"),
    ],
)  # fmt: skip
def test_the_endpoint_of_azure(connection: Connection, url: str) -> None:
    """Deployment paths, the v1 API and a pasted target URI all lead to one correct address."""
    assert endpoint_of(connection) == url


@pytest.mark.parametrize(
    ("name", "variable", "value", "base_url"),
    [
        ("ollama", "OLLAMA_HOST", "0.0.0.0:11500", "http://127.0.0.1:11500/v1"),
        ("ollama", "OLLAMA_HOST", "box", "http://box:11434/v1"),
        ("ollama", "OLLAMA_HOST", "http://box:80/", "http://box:80/v1"),
        ("vllm", "VLLM_BASE_URL", "http://box:8000/v1/", "http://box:8000/v1"),
        ("lmstudio", "LMSTUDIO_BASE_URL", "http://box:1234", "http://box:1234/v1"),
        ("openai", "OPENAI_BASE_URL", "https://eu.api.openai.com/v1/", "https://eu.api.openai.com/v1"),
    ],
)
def test_addresses_can_be_overridden(name: str, variable: str, value: str, base_url: str) -> None:
    """The usual variables move a provider; a local server's bare host is completed."""
    assert resolve_connection(f"{name}:m", {variable: value, "OPENAI_API_KEY": KEY}).base_url == base_url


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"api_key": "sk-planted', ["no JSON", "line 1 column"]),
        ("sk-planted", ["no JSON", "line 1 column"]),
        ('["sk-planted"]', ["wanted a JSON object"]),
        ('{"api_ky": "sk-planted"}', ["'api_ky'", "did you mean 'api_key'"]),
        ('{"sk-planted": 1}', ["unknown key", "base_url"]),
        ('{"model": "m", "api_key": ["sk-planted"]}', ["'api_key'", "text in quotes"]),
        ('{"max_in_flight": "8"}', ["'max_in_flight'", "whole number"]),
        ('{"max_in_flight": true}', ["'max_in_flight'", "whole number"]),
        ('{"max_in_flight": 0}', ["'max_in_flight'", "from 1"]),
        ('{"params": [1]}', ["'params'", "object"]),
        ('{"caps": {"no_temperature": "yes"}}', ["'caps.no_temperature'", "true or false"]),
        ('{"caps": {"no_temprature": true}}', ["caps", "did you mean 'no_temperature'"]),
        ('{"params": {"messages": []}}', ["'params'", "'messages'"]),
    ],
)
def test_a_bad_json_names_variable_and_key_and_never_the_value(text: str, words: list[str]) -> None:
    """One line says which variable, which key and what was wanted."""
    message = mistake("x", {"SIMPLEQA_X": text})
    assert message.startswith("SIMPLEQA_X: ")
    assert [word for word in words if word not in message] == []


def test_an_unknown_provider_without_an_address_lists_the_known_ones() -> None:
    """A misspelt provider is met with the nearest one and the whole list."""
    message = mistake("x", {"SIMPLEQA_X": as_json(provider="azur", api_key=KEY, model="m")})
    assert "did you mean 'azure'" in message
    assert "deepseek" in message
    assert "base_url" in message


def test_an_unknown_alias_names_the_variable_to_set() -> None:
    """The message holds an example and the nearest alias that is set up."""
    message = mistake("qwen-fst:m", {"SIMPLEQA_QWEN_FAST": json.dumps(FULL)})
    assert "SIMPLEQA_QWEN_FST" in message
    assert "did you mean 'qwen_fast'" in message
    assert '{"base_url": ' in message
    assert "did you mean 'openai'" in mistake("opnai:m", {})


def test_other_kinds_of_spec_are_suggested_too() -> None:
    """The caller may name what else it knows."""
    with pytest.raises(SpecError, match="did you mean 'replay'"):
        resolve_connection("rplay:x", {}, known=("replay", "python"))


@pytest.mark.parametrize("spec", ["openai", "openai:", " openai: "])
def test_a_missing_model_is_a_mistake(spec: str) -> None:
    """The message shows how a spec with a model looks."""
    assert "openai:gpt-4o" in mistake(spec, {"OPENAI_API_KEY": KEY})


@pytest.mark.parametrize("spec", ["", ":", ":m", "a b:m", "é:m", "-x", "x" * 500 + "!"])
def test_a_spec_that_is_none_is_refused(spec: str) -> None:
    """One short line says what was wanted."""
    message = mistake(spec, {})
    assert "<alias>[:<model>]" in message
    assert len(message) < 200


@pytest.mark.parametrize("key", ["sk-planted\nX: y", "sk-planted\u201d", "sk-plantedé"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    """Line ends and typographic quotes are noticed before the client would print them."""
    assert "OPENAI_API_KEY" in mistake("openai:m", {"OPENAI_API_KEY": key})


def test_outer_blanks_of_a_key_are_no_part_of_it() -> None:
    """A line end from a secrets file does no harm."""
    assert resolve_connection("openai:m", {"OPENAI_API_KEY": f" {KEY}\n"}).api_key.reveal() == KEY
    assert resolve_connection("x", {"SIMPLEQA_X": json.dumps({**FULL, "api_key": f"{KEY}\n"})}).api_key.reveal() == KEY
