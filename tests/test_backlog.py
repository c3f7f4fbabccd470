"""Tests of what waits to be written elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from pytest_simpleqa.backlog import Backlog


class Taker:
    """Takes batches, or fails while it is down."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.tries = 0
        self.is_down = False
        self.changed = threading.Event()

    def write(self, batch: Sequence[int]) -> None:
        self.tries += 1
        self.changed.set()
        if self.is_down:
            raise OSError(f"down, try {self.tries}")
        self.batches.append(list(batch))

    def wait_for_tries(self, count: int) -> None:
        deadline = time.monotonic() + 20
        while self.tries < count and time.monotonic() < deadline:
            self.changed.wait(1)
            self.changed.clear()
        assert self.tries >= count


def test_entries_come_in_order_and_in_batches() -> None:
    """What was put is written in its order, never more than a batch at once, and all of it at the end."""
    taker = Taker()
    backlog = Backlog(taker.write, size=4, every_s=60)
    for number in range(11):
        backlog.put(number)
    assert backlog.close(10) == 0
    assert [number for batch in taker.batches for number in batch] == list(range(11))
    assert max(map(len, taker.batches)) == 4


def test_few_entries_are_written_after_a_while() -> None:
    """A batch that does not fill up is written when its time has come."""
    taker = Taker()
    backlog = Backlog(taker.write, size=100, every_s=0.05)
    backlog.put(1)
    taker.wait_for_tries(1)
    assert backlog.close(10) == 0
    assert taker.batches == [[1]]


def test_what_fails_is_tried_again_and_told_once() -> None:
    """A failing batch stays, is tried again, loses nothing, and an outage is told of once."""
    taker = Taker()
    taker.is_down = True
    backlog = Backlog(taker.write, size=2, every_s=0.01, again_s=0.02)
    for number in range(5):
        backlog.put(number)
    taker.wait_for_tries(3)
    assert str(backlog.trouble()) == "down, try 1"
    assert backlog.trouble() is None
    taker.is_down = False
    assert backlog.close(10) == 0
    assert [number for batch in taker.batches for number in batch] == list(range(5))


def test_what_nobody_takes_is_counted() -> None:
    """Where the end comes and writes still fail, it is given up in time, and told how much is left and why."""
    taker = Taker()
    taker.is_down = True
    backlog = Backlog(taker.write, size=2, every_s=0.01, again_s=60)
    for number in range(5):
        backlog.put(number)
    taker.wait_for_tries(1)
    began = time.monotonic()
    assert backlog.close(patience_s=0.1) == 5
    assert time.monotonic() - began < 10
    assert str(backlog.fault).startswith("down")


def test_nothing_put_is_nothing_done() -> None:
    """Without an entry no thread is started and nothing written."""
    taker = Taker()
    assert Backlog(taker.write).close(10) == 0
    assert taker.tries == 0
