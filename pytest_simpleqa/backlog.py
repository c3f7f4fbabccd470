"""What waits to be written elsewhere: handed over in batches, by a thread of its own, until it has been taken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Backlog(Generic[T]):
    """Gives entries to `write` in the order that they came, in batches: when `size` wait, or after `every_s` seconds.

    A batch that `write` raises for stays, and is tried again after `again_s` seconds and at the end; nobody waits
    for it meanwhile.
    """

    def __init__(
        self, write: Callable[[Sequence[T]], None], *, size: int = 200, every_s: float = 2.0, again_s: float = 10.0
    ) -> None:
        self._write = write
        self._size = size
        self._every_s = every_s
        self._again_s = again_s
        self._waiting: list[T] = []
        self._changed = threading.Condition()
        self._deadline: float | None = None
        """When to give up, on the monotonic clock; None until `close`."""
        self._has_failed = False
        self._news: Exception | None = None
        self.fault: Exception | None = None
        """What the last write that failed has failed by."""
        self._thread = threading.Thread(target=self._work, name="simpleqa-backlog", daemon=True)

    def put(self, entry: T) -> None:
        """Take an entry; never waits for a write."""
        with self._changed:
            self._waiting.append(entry)
            if self._thread.ident is None:
                self._thread.start()
            self._changed.notify()

    def trouble(self) -> Exception | None:
        """Return what a write has failed by, once for each time that things have gone wrong."""
        if self._news is None:
            return None
        with self._changed:
            news, self._news = self._news, None
            return news

    def close(self, patience_s: float) -> int:
        """Write what is left, trying for so many seconds where that fails; return how many entries nobody has taken."""
        with self._changed:
            self._deadline = time.monotonic() + patience_s
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(2 * patience_s)  # longer: a try that has begun may hang
        with self._changed:
            return len(self._waiting)

    def _work(self) -> None:
        while batch := self._next():
            try:
                self._write(batch)
            except Exception as error:  # whatever it is: it must cost neither the run nor the entries
                with self._changed:
                    self._news = self._news if self._has_failed else error
                    self._has_failed, self.fault = True, error
            else:
                with self._changed:
                    self._has_failed = False
                    del self._waiting[: len(batch)]

    def _next(self) -> Sequence[T]:
        """Wait for a batch that is due and return it; nothing where the end has come."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._deadline is not None)
            self._changed.wait_for(self._is_due, timeout=self._again_s if self._has_failed else self._every_s)
            if self._deadline is not None and self._has_failed:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    return ()
                self._changed.wait(min(1.0, left))
            return self._waiting[: self._size]

    def _is_due(self) -> bool:
        return self._deadline is not None or (len(self._waiting) >= self._size and not self._has_failed)
