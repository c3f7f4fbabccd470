"""An OpenAI-compatible server for tests: scripted replies, faults, and a record of what was asked.

    with FakeServer() as server:
        server.script(lambda body, nth: error(429, "slow down", headers={"Retry-After": "0"}) if nth == 1 else "Paris")
        ...                                     # ask server.base_url
        assert len(server.requests) == 2

It runs in a thread of its own, so it serves the test's process and any it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

ABSTENTION = "I don't know."


@dataclass(frozen=True)
class Answer:
    """One HTTP reply, or a fault in place of it."""

    body: Any = None
    """An object is sent as JSON; text and bytes as they are."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the reply, on top of the server's latency."""
    fault: str | None = None
    """`reset`, `close` (no reply), `truncated` (half of the body), `hang` (for ever), `drip`, `garbage` (no HTTP)."""
    drip_s: float = 0.05
    """Seconds between two bytes of a `drip`."""


@dataclass
class Request:
    """One request as it came."""

    path: str
    """With its query."""
    headers: dict[str, str]
    """Names in lower case."""
    body: Any
    nth: int
    """How many requests with the same model and messages there have been, this one included."""
    connection: int
    """Number of the TCP connection it came by."""
    started: float
    ended: float | None = None
    """None while it is in flight, and for ever where the client went away."""

    @property
    def model(self) -> str:
        return str(self.body.get("model", "")) if isinstance(self.body, dict) else ""

    @property
    def is_judge(self) -> bool:
        """Whether the model's name says that it is the judge."""
        return "judge" in self.model

    @property
    def prompt(self) -> str:
        """The last message's text."""
        return str(self.body["messages"][-1]["content"])


Script = Callable[[dict[str, Any], int], "Answer | str | dict[str, Any] | None"]
"""`(request body, nth request of the same prompt, from 1)`: None means the default behaviour."""


def completion(text: str | None, *, finish_reason: str | None = "stop", model: str = "fake", **message: Any) -> Any:
    """Return a chat completion's body; further arguments go into its message."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


def error(
    status: int,
    message: str = "no luck",
    *,
    code: str | None = None,
    type: str | None = None,  # noqa: A002  the name in the error body
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return an error in OpenAI's form."""
    body = {"error": {"message": message, "type": type, "param": param, "code": code}}
    return Answer(body, status, headers or {})


class FakeServer:
    """The server; a context manager."""

    def __init__(
        self,
        golds: Mapping[str, str] | None = None,
        *,
        latency: float = 0.0,
        judge_latency: float | None = None,
        port: int = 0,
    ) -> None:
        self.golds = golds or {}
        """What the default answerer says to a question; any other gets a text made of the question."""
        self.latency = latency
        self.judge_latency = latency if judge_latency is None else judge_latency
        self.requests: list[Request] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self.connections = 0
        """TCP connections accepted so far."""
        self.port = port
        self._script: Script | None = None
        self._seen: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fake-server", daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def answers(self) -> list[Request]:
        """The requests to the answer model."""
        return [request for request in self.requests if not request.is_judge]

    @property
    def judgements(self) -> list[Request]:
        """The requests to the judge model."""
        return [request for request in self.requests if request.is_judge]

    @property
    def duplicates(self) -> dict[str, int]:
        """Prompts that came more than once to the same model, with their number."""
        return {key: count for key, count in self._seen.items() if count > 1}

    def script(self, script: Script | None) -> None:
        """Let `script` decide what is replied; None brings the default behaviour back."""
        self._script = script

    def environment(self, alias: str = "fake", **settings: Any) -> dict[str, str]:
        """Return the variable that makes `alias:<model>` lead here."""
        value = {"base_url": self.base_url, "api_key": "sk-fake-0123456789", **settings}
        return {f"SIMPLEQA_{alias.upper().replace('-', '_')}": json.dumps(value)}

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the fake server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets the closed transports go

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            while await self._exchange(reader, writer, number):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the test is over: neither is this server's fault
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        """Serve one request; return whether the connection stays open."""
        start = await reader.readexactly(1)
        if start == b"\x16":
            return False  # the hello of TLS, which is not spoken here
        head = (start + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        request = self._record(first.split(" ")[1], headers, raw, number)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            answer = self._reply_to(request)
            latency = self.judge_latency if request.is_judge else self.latency
            await _wait(3600 if answer.fault == "hang" else latency + answer.delay, reader)
            return await _send(answer, writer)
        finally:
            self.in_flight -= 1
            request.ended = time.monotonic()

    def _record(self, path: str, headers: dict[str, str], raw: bytes, number: int) -> Request:
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = raw
        key = json.dumps([body.get("model"), body.get("messages")]) if isinstance(body, dict) else repr(body)
        self._seen[key] += 1
        request = Request(path, headers, body, self._seen[key], number, time.monotonic())
        self.requests.append(request)
        return request

    def _reply_to(self, request: Request) -> Answer:
        if not request.path.split("?")[0].endswith("/chat/completions") or not isinstance(request.body, dict):
            return error(404, f"no such path: {request.path}")
        try:
            said = self._script(request.body, request.nth) if self._script else None
        except Exception as problem:
            # Not raised in this thread, where no test would see it.
            return error(418, f"the test's script failed: {problem!r}")
        if said is None:
            said = self._default(request)
        if isinstance(said, str):
            said = completion(said, model=request.model)
        return said if isinstance(said, Answer) else Answer(said)

    def _default(self, request: Request) -> str:
        if request.is_judge:
            return grade(request.prompt)
        return self.golds.get(request.prompt, f"The answer to: {request.prompt}")


def grade(prompt: str) -> str:
    """Return A, B or C for the last `Question / Gold target / Predicted answer` block, by equality."""
    before, found, after = prompt.rpartition("Predicted answer: ")
    gold = before.rpartition("Gold target: ")[2].strip()
    head, fence, _ = after.rpartition("\n```")
    predicted = (head if fence else after).strip()
    if not found or predicted == ABSTENTION:
        return "C"
    return "A" if predicted == gold else "B"


async def _wait(seconds: float, reader: asyncio.StreamReader) -> None:
    """Wait; raise ConnectionResetError if the client goes away meanwhile."""
    if seconds <= 0:
        await asyncio.sleep(0)
        return
    gone = asyncio.ensure_future(reader.read(1))
    try:
        done, _ = await asyncio.wait({gone}, timeout=seconds)
    finally:
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await gone
    if done:
        raise ConnectionResetError


async def _send(answer: Answer, writer: asyncio.StreamWriter) -> bool:
    """Send `answer`, or commit its fault; return whether the connection stays open."""
    if answer.fault == "reset":
        # With no time to linger the close is a TCP reset, not an orderly end.
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if answer.fault in ("reset", "close"):
        return False
    if answer.fault == "garbage":
        writer.write(b"SSH-2.0-Fake\r\n\r\n")
        await writer.drain()
        return False
    body = answer.body if isinstance(answer.body, bytes) else _encoded(answer.body)
    head = _head(answer, len(body))
    if answer.fault == "truncated":
        writer.write(head + body[: len(body) // 2])
        await writer.drain()
        writer.close()
        return False
    if answer.fault == "drip":
        writer.write(head)
        for at in range(len(body)):
            writer.write(body[at : at + 1])
            await writer.drain()
            await asyncio.sleep(answer.drip_s)
        return True
    writer.write(head + body)
    await writer.drain()
    return True


def _encoded(body: Any) -> bytes:
    return (body if isinstance(body, str) else json.dumps(body)).encode("utf-8")


def _head(answer: Answer, length: int) -> bytes:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Something"
    headers = {"Content-Type": "application/json", "Content-Length": str(length), **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
