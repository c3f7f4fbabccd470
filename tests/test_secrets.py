"""A planted key: no byte that a run writes or prints may hold it, whatever a service echoes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fake_server import Answer, FakeServer, completion, error
from tests.small_run import report_of, write_files

ALIAS_KEY = "sk-planted-in-the-alias-0123456789"
OPENAI_KEY = "sk-planted-in-openai-api-key-9876543210"
FILE_KEY = "sk-planted-in-the-env-file-5555555555"
KEYS = {"alias": ALIAS_KEY, "openai": OPENAI_KEY, "env file": FILE_KEY}

LOUD = (
    "-vv",
    "--showlocals",
    "--full-trace",
    "--debug=debug.log",
    "-o", "log_cli=true",
    "-o", "log_cli_level=debug",
    "--log-file=all.log",
    "--log-file-level=debug",
    "-rA",
    "--json-report",
    "--json-report-file=json_report.json",
    "--junitxml=junit.xml",
    "-o", "junit_logging=all",
    "--simpleqa-out=out.json",
)  # fmt: skip
"""Everything that makes pytest tell more than it should."""
HEARD = """\
import logging

logging.basicConfig(level=logging.DEBUG)


def pytest_simpleqa_event(event):
    print("EVENT", event)


def pytest_simpleqa_result(result):
    print("RESULT", result)


def pytest_simpleqa_report(report):
    print("REPORT", report)
"""
BROKEN = """
import {module}


def fail(*args, **kwargs):
    raise RuntimeError("a bug of our own")


{module}.{name} = fail
"""


@pytest.fixture
def server(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A server; three connections to it, each with a key of its own from another place."""
    with FakeServer() as server:
        write_files(pytester.path, conftest__py=HEARD)
        monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
        for variable, value in server.environment("planted", api_key=ALIAS_KEY).items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        in_file = server.environment("filed", api_key=FILE_KEY)
        # Outside of the folder: the only file that may hold the key.
        lines = (f"{variable}='{value}'\n" for variable, value in in_file.items())
        env_file(pytester).write_text("".join(lines), encoding="utf-8")
        yield server


def env_file(pytester: pytest.Pytester) -> Path:
    return pytester.path.parent / f"{pytester.path.name}.env"


def run(pytester: pytest.Pytester, answer: str, judge: str, *args: str) -> pytest.RunResult:
    """Run a session as loud as pytest can be."""
    specs = (f"--answer-llm={answer}", f"--judge-llm={judge}", f"--simpleqa-env-file={env_file(pytester)}")
    return pytester.runpytest_subprocess("--simpleqa-dataset=questions.csv", *specs, *LOUD, *args)


def assert_unseen(pytester: pytest.Pytester, result: pytest.RunResult) -> None:
    """Assert that no key stands in a file of the folder (pytester keeps both outputs there) or on the screen."""
    written = {path: path.read_bytes() for path in pytester.path.rglob("*") if path.is_file()}
    assert {"debug.log", "stdout", "stderr"} <= {path.name for path in written}
    written[Path("printed")] = (result.stdout.str() + result.stderr.str()).encode()
    for place, key in KEYS.items():
        for path, data in written.items():
            assert key.encode() not in data, f"the key of the {place} stands in {path.name}"
            assert key[3:].encode() not in data, f"most of the key of the {place} stands in {path.name}"


def authorization(server: FakeServer) -> str:
    """Return the header of the request that the script replies to."""
    return server.requests[-1].headers["authorization"]


def echo(server: FakeServer) -> Any:
    """Return a script that echoes the Authorization header in every way that a row can take."""

    def script(body: Mapping[str, Any], nth: int) -> Any:
        header = authorization(server)
        prompt = body["messages"][-1]["content"]
        if "judge" in body["model"]:
            return f"Grade: A, as {header} says" if "France" in prompt else f"I was sent {header}"
        if "Spain" in prompt:
            return error(400, f"refused: {header}", code=header, param=header)
        said = f'<think>{header}</think>{header} is what I was sent, "{header}"'
        return completion(said, model=header, finish_reason="stop", reasoning_content=header)

    return script


CASES = pytest.mark.parametrize(
    ("answer", "judge", "how"),
    [("openai:model", "filed:judge", ()), ("planted:model", "openai:judge", ("-n2",))],
    ids=["bare", "-n2"],
)


@CASES
def test_a_service_that_echoes_the_key_does_not_spread_it(
    pytester: pytest.Pytester, server: FakeServer, answer: str, judge: str, how: tuple[str, ...]
) -> None:
    """A key that comes back in answers, verdicts, errors and model names is masked before it is kept or shown."""
    server.script(echo(server))
    result = run(pytester, answer, judge, *how)
    assert_unseen(pytester, result)
    report = report_of(pytester.path)
    assert (report["n"], report["errors"]) == (3, 1)
    assert "***" in report["samples"][1]["predicted"]
    assert {request.headers["authorization"] for request in server.requests} <= {
        f"Bearer {key}" for key in KEYS.values()
    }


@CASES
def test_a_401_that_echoes_the_key_stops_the_run_without_it(
    pytester: pytest.Pytester, server: FakeServer, answer: str, judge: str, how: tuple[str, ...]
) -> None:
    """A 401 whose body and headers quote the key ends the run with one message, exit 1 and no key anywhere."""
    server.script(
        lambda body, nth: Answer(
            {"error": {"message": f"Incorrect API key provided: {authorization(server)}", "code": "invalid_api_key"}},
            401,
            {"WWW-Authenticate": authorization(server), "X-Echo": authorization(server)},
        )
    )
    result = run(pytester, answer, judge, *how)
    assert_unseen(pytester, result)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "401" in result.stdout.str()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("pytest_simpleqa.models.settings", "_trimmed"),
        ("pytest_simpleqa.models.connection", "_key_of"),
        ("pytest_simpleqa.models.http", "_request_options"),
        ("pytest_simpleqa.engine", "Engine.result"),
        ("aiohttp", "ClientSession._request"),
    ],
)
def test_a_bug_keeps_the_key_out_of_its_traceback(
    pytester: pytest.Pytester, server: FakeServer, module: str, name: str
) -> None:
    """A bug of ours or of the client shows its locals under --showlocals, and no key among them."""
    (pytester.path / "conftest.py").write_text(BROKEN.format(module=module, name=name), encoding="utf-8")
    result = run(pytester, "planted:model", "filed:judge")
    assert_unseen(pytester, result)
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERNAL_ERROR)
    assert "a bug of our own" in result.stdout.str() + result.stderr.str()


def test_a_mistake_beside_a_key_does_not_show_it(pytester: pytest.Pytester, server: FakeServer) -> None:
    """What is wrong with a connection is told without its value, in --debug's log too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMPLEQA_PLANTED", json.dumps({"api_key": [ALIAS_KEY], ALIAS_KEY: FILE_KEY}))
        result = run(pytester, "planted:model", "filed:judge")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert_unseen(pytester, result)
