"""An OpenAI-compatible server of known latency and seeded faults, in a process of its own, that counts requests.

    python tests/benchmarks/server.py questions.csv --max-seconds 600

It prints its address and ends when its standard input closes, or after `--max-seconds`. The model whose name holds
`judge` judges, any other answers; `POST /settings` sets latency and faults and forgets all counts, `GET /stats` and
`GET /log` tell them. What it answers follows from the question alone (`truth`), so a run has one right Report.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import hashlib
import json
import math
import os
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from statistics import NormalDist
from typing import Any

ABSTENTION = "I don't know."
FAULTS = ("rate_limited", "server_error", "reset", "truncated", "empty", "hang", "unauthorized")
_REASONS = {200: "OK", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass
class Settings:
    """How the server behaves."""

    answer_s: float = 0.2
    """Seconds of latency; with `sigma` their mean."""
    judge_s: float = 0.1
    sigma: float = 0.0
    """Of a lognormal latency; 0 = fixed."""
    seed: int = 0
    faults: dict[str, float] = field(default_factory=dict)
    """Share of requests by name of the fault (`FAULTS`)."""


@dataclass
class Entry:
    """One request as it came and went."""

    role: str
    question: str
    started: float
    """Unix time."""
    ended: float | None = None
    """None where the client went away first, or nothing was ever sent."""
    outcome: str = "waiting"
    """`ok`, the name of a fault, or `gone`."""


def share(*parts: object) -> float:
    """Return a number in (0, 1) that depends on `parts` alone."""
    digest = hashlib.blake2b("|".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") + 0.5) / 2**64


def truth(question: str) -> str:
    """Return the verdict on the server's answer to `question`: `correct`, `incorrect` or `not_attempted`."""
    number = share("truth", question.strip())
    return "correct" if number < 0.55 else "incorrect" if number < 0.9 else "not_attempted"


def read_golds(path: Path) -> dict[str, str]:
    """Return the gold of each question of a CSV with the columns `problem` and `answer`."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return {row["problem"].strip(): row["answer"].strip() for row in csv.DictReader(file)}


class Server:
    """Answers, judges, and counts."""

    def __init__(self, golds: Mapping[str, str], settings: Settings) -> None:
        self.golds = golds
        self.set(settings)

    def set(self, settings: Settings) -> None:
        """Behave by `settings` from now on, and forget what was counted."""
        self.settings = settings
        self.log: list[Entry] = []
        self.in_flight = self.max_in_flight = self.duplicates = self.unknown = 0
        self.work_s = 0.0
        self._nth: Counter[tuple[str, str]] = Counter()
        self._succeeded: set[tuple[str, str]] = set()

    # --- a request ---------------------------------------------------------------------------

    def begin(self, body: Mapping[str, Any]) -> tuple[Entry, float, str | None, str]:
        """Note a request; return its entry, its latency in seconds, its fault, and what the model says."""
        role = "judge" if "judge" in str(body["model"]) else "answer"
        question, said = self._reply(role, str(body["messages"][-1]["content"]))
        key = (role, question)
        self._nth[key] += 1
        self.duplicates += key in self._succeeded
        entry = Entry(role, question, time.time())
        self.log.append(entry)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        latency = self._latency(role, question, self._nth[key])
        self.work_s += latency
        return entry, latency, self._fault(role, question, self._nth[key]), said

    def end(self, entry: Entry, outcome: str) -> None:
        """Note how a request ended."""
        self.in_flight -= 1
        entry.outcome = outcome
        if outcome != "gone":
            entry.ended = time.time()
        if outcome == "ok":
            self._succeeded.add((entry.role, entry.question))

    def _reply(self, role: str, prompt: str) -> tuple[str, str]:
        if role == "answer":
            question = prompt.strip()
            return question, self._answer(question)
        head, _, predicted = prompt.rpartition("\nPredicted answer: ")
        head, _, gold = head.rpartition("\nGold target: ")
        question = head.rpartition("Question: ")[2].strip()
        predicted = predicted.partition("\n```")[0].strip()
        return question, "C" if predicted == ABSTENTION else "A" if predicted == gold.strip() else "B"

    def _answer(self, question: str) -> str:
        gold = self.golds.get(question)
        if gold is None:
            self.unknown += 1
            return ABSTENTION
        return {"correct": gold, "incorrect": f"anything but {gold}", "not_attempted": ABSTENTION}[truth(question)]

    def _latency(self, role: str, question: str, nth: int) -> float:
        settings = self.settings
        mean = settings.judge_s if role == "judge" else settings.answer_s
        if not settings.sigma or not mean:
            return mean
        normal = NormalDist().inv_cdf(share(settings.seed, "latency", role, question, nth))
        return mean * math.exp(settings.sigma * normal - settings.sigma**2 / 2)

    def _fault(self, role: str, question: str, nth: int) -> str | None:
        if not self.settings.faults:
            return None
        drawn = share(self.settings.seed, "fault", role, question, nth)
        for name, portion in self.settings.faults.items():
            if drawn < portion:
                return name
            drawn -= portion
        return None

    # --- what it tells -----------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Return the counts."""
        log = self.log
        return {
            "calls": dict(Counter(entry.role for entry in log)),
            "outcomes": dict(Counter(entry.outcome for entry in log)),
            "max_in_flight": self.max_in_flight,
            "duplicates": self.duplicates,  # requests for what had been replied to in full
            "unknown": self.unknown,  # requests for an answer to no question of the dataset
            "work_s": self.work_s,
            "first_at": log[0].started if log else None,
            "last_at": max((entry.ended or entry.started for entry in log), default=None),
        }


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection; one request at a time, as clients send them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = bytearray()
        self._pending: tuple[Entry, asyncio.TimerHandle | None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._pending is not None:
            entry, timer = self._pending
            self._pending = None
            if timer is not None:
                timer.cancel()
            self._server.end(entry, "gone")

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).decode("latin-1")
        length = _content_length(head)
        if len(self._buffer) < end + 4 + length:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self._serve(head.split(" ", 2)[1].partition("?")[0], body)

    def _serve(self, path: str, body: bytes) -> None:
        if path.endswith("/chat/completions"):
            entry, latency, fault, said = self._server.begin(json.loads(body))
            timer = None
            if fault != "hang":
                timer = asyncio.get_running_loop().call_later(latency, self._reply, entry, fault, said)
            self._pending = (entry, timer)
        elif path == "/settings":
            self._server.set(Settings(**json.loads(body)))
            self._send(200, {})
        elif path == "/stats":
            self._send(200, self._server.stats())
        elif path == "/log":
            self._send(200, [vars(entry) for entry in self._server.log])
        else:
            self._send(404, {"error": {"message": f"no such path: {path}"}})

    def _reply(self, entry: Entry, fault: str | None, said: str) -> None:
        self._pending = None
        self._server.end(entry, fault or "ok")
        if fault == "reset":
            linger = struct.pack("ii", 1, 0)  # with no time to linger the close is a TCP reset
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._transport.abort()
        elif fault == "rate_limited":
            self._send(429, _error("slow down", "rate_limit_exceeded"), retry_after(entry.question))
        elif fault == "server_error":
            self._send(500, _error("something broke", None))
        elif fault == "unauthorized":
            self._send(401, _error("Incorrect API key provided", "invalid_api_key"))
        else:
            self._send(200, _completion("" if fault == "empty" else said, entry.role), cut=fault == "truncated")

    def _send(self, status: int, content: Any, header: str = "", cut: bool = False) -> None:
        body = json.dumps(content).encode()
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n{header}\r\n"
        )
        self._transport.write(head.encode("latin-1") + (body[: len(body) // 2] if cut else body))
        if cut:
            self._transport.close()


def retry_after(question: str) -> str:
    """Return a `Retry-After` header in one of its forms, by the question."""
    forms = (
        "Retry-After: 0",
        "Retry-After: 1",
        "Retry-After: 0.2",
        "retry-after-ms: 300",
        f"Retry-After: {formatdate(time.time() + 1, usegmt=True)}",
    )
    return forms[int(share("retry", question) * len(forms))] + "\r\n"


def _content_length(head: str) -> int:
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            return int(value)
    return 0


def _error(message: str, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": None, "param": None, "code": code}}


def _completion(text: str, model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
    }


async def serve(golds: Mapping[str, str], max_seconds: float) -> None:
    """Serve until standard input closes or `max_seconds` have passed; print the address first."""
    loop = asyncio.get_running_loop()
    server = Server(golds, Settings())
    listening = await loop.create_server(lambda: Connection(server), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", flush=True)
    closed = asyncio.Event()

    def look() -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            loop.remove_reader(sys.stdin)
            closed.set()

    loop.add_reader(sys.stdin, look)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(closed.wait(), max_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--max-seconds", type=float, default=600.0)
    given = parser.parse_args()
    asyncio.run(serve(read_golds(given.dataset), given.max_seconds))


if __name__ == "__main__":
    main()
