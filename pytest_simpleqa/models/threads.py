"""Threads that run the user's synchronous code for one event loop, and never keep the process alive."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any


@dataclass(eq=False, slots=True)
class _Job:
    work: Callable[[], Any]
    done: Future[Any] = field(default_factory=Future)
    thread: threading.Thread | None = None
    abandoned: bool = False


class DaemonThreads:
    """Threads for one event loop that never keep the process alive.

    concurrent.futures joins its threads at exit, so that one hung call would hang pytest. Here a
    cancelled call gives its place to a new thread, and its own thread ends whenever the call does.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: set[threading.Thread] = set()
        self._open = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Return what `work` returns in a thread; raises what it raises."""
        job = _Job(work)
        self._open += 1
        self._jobs.put(job)
        if len(self._threads) < min(self._open, self._limit):
            self._start_thread()
        try:
            return await asyncio.wrap_future(job.done)
        except asyncio.CancelledError:
            if job.done.running() and job.thread is not None:
                job.abandoned = True
                self._threads.discard(job.thread)
                if self._open > len(self._threads) + 1:  # others wait for the place
                    self._start_thread()
            raise
        finally:
            self._open -= 1

    def close(self) -> None:
        """End the idle threads; wait a moment for them, and for no other."""
        for _ in self._threads:
            self._jobs.put(None)
        deadline = time.monotonic() + 0.5
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._threads.clear()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=_work, args=(self._jobs,), name="simpleqa-callable", daemon=True)
        self._threads.add(thread)
        thread.start()


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    """Do jobs until told to end, or until the call in hand was given up."""
    while (job := jobs.get()) is not None:
        job.thread = threading.current_thread()
        if not job.done.set_running_or_notify_cancel():
            continue
        try:
            job.done.set_result(job.work())
        except StopIteration as error:  # `next` on what is used up: no future takes one, so nobody would ever hear
            job.done.set_exception(RuntimeError(f"StopIteration: {error}").with_traceback(error.__traceback__))
        except BaseException as error:
            job.done.set_exception(error)
        if job.abandoned:
            return
