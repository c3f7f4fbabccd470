"""This process's part of the session: what it may ask at once, where its results go, who tells it to stop."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .machines import Link
from .rundisk import STOP_FILE

LOOK_AHEAD = 8
"""Questions started and not yet reached, as a multiple of the pairs in flight: a slow answer must not hold the line."""
LEAST_LOOK_AHEAD = 256
ANY_TEST = ""
"""Stands for the run of any test function, where limits are shared out before these are known."""


@dataclass(frozen=True)
class Seat:
    """This process's part of the session."""

    concurrency: int
    """Pairs in flight here."""
    limits: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    """By run: requests at once to the answer model and to the judge from here; None where one sets no bound."""
    run_dirs: Mapping[str, Path] = field(default_factory=dict)
    """By run; empty on another machine."""
    results_name: str = "results.jsonl"
    signals: Path | None = None
    """The folder in which the controller tells its workers of a stop and of each other's death."""
    parent_pid: int | None = None
    """The controller; a worker that has lost it starts nothing new."""
    link: Link | None = None
    """On another machine than the controller: what stands in for the directories and the folder."""


def window(concurrency: int, config: pytest.Config) -> int:
    """Return how many questions may be started before pytest reaches them.

    No further than what is in flight where a failure ends the session, not at all under a debugger.
    """
    option = config.option
    if option.usepdb or getattr(option, "trace", False):
        return 0
    if option.maxfail or getattr(option, "stepwise", False):
        return concurrency
    return max(LEAST_LOOK_AHEAD, LOOK_AHEAD * concurrency)


def watch_of(seat: Seat) -> Callable[[], str | None] | None:
    """Return what tells a worker to stop: the controller's word, or its death."""
    if (link := seat.link) is not None:
        return lambda: link.stop
    if seat.parent_pid is None:
        return None
    path = seat.signals / STOP_FILE if seat.signals is not None else None

    def look() -> str | None:
        if os.getppid() != seat.parent_pid:
            return "the controller has died"
        try:
            return path.read_text(encoding="utf-8") or "told to stop" if path is not None else None
        except OSError:
            return None

    return look
