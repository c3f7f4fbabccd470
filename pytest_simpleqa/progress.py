"""How far the runs of a session are: lines on the screen and events, from their announcement to the last result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest

from .ledger import Ledger, Steps, announcement, progress_line
from .options import Options
from .runevents import Event, progress_event, start_event
from .screen import Screen
from .wording import many

_UNTOLD_S = 5.0
"""So long no progress line is shown, unless the user has said how often."""


class Progress:
    """Told of results, says how far the runs are.

    `ledgers` are those of the session; more may join until `begin`. `tell` takes the events.
    """

    def __init__(
        self,
        config: pytest.Config,
        options: Options,
        ledgers: Mapping[str, Ledger],
        screen: Screen,
        tell: Callable[[Event], None],
    ) -> None:
        self._config = config
        self._options = options
        self._ledgers = ledgers
        self._begun: list[Ledger] = []
        """Those of which questions are selected."""
        self._screen = screen
        self._tell = tell
        self._limits: dict[str, int] = {}
        """By worker: pairs that may be in flight there now, fewer while a service says slow down."""
        self._steps = Steps(options.progress_pct)
        """Of all runs together."""
        self._due: Ledger | None = None
        """Whose progress line is due."""
        self._began = time.monotonic()

    def begin(self) -> None:
        """Announce the runs of which questions are selected; before the first request."""
        begun = self._begun = [ledger for ledger in self._ledgers.values() if ledger.selected]
        if self._tells_in_brief:
            self._screen.say(f"{many(len(begun), 'run')}: {announcement(begun)}", least_verbosity=-1)
        self._began = time.monotonic()
        told: set[str] = set()  # several runs may have notices in common
        for ledger in begun:
            if not self._tells_in_brief:
                self._screen.say(self._named(ledger, announcement([ledger])), least_verbosity=-1)
            for notice in ledger.notices():
                if notice not in told:
                    told.add(notice)
                    self._screen.warn(notice)
            self._tell(start_event(ledger.plan.name, ledger.selected, *ledger.specs))

    def hear_limit(self, worker: str, limit: int) -> None:
        """Take in how many pairs may be in flight in a worker now."""
        self._limits[worker] = limit

    def is_due(self, ledger: Ledger) -> None:
        """Take in that a step of a run is done: its line is said by the next `tell`."""
        self._due = ledger

    def tell(self) -> None:
        """Say what is due, and whether all runs together have done a step."""
        if self._tells_in_brief:
            self._say_of_all()
        if self._due is not None:
            self._say_of(self._due)
            self._due = None

    def _say_of(self, ledger: Ledger) -> None:
        room = self._screen.width - len(self._named(ledger, ""))
        line = progress_line([ledger], in_flight=self._slowed_to, width=room)
        done, total = len(ledger.results), ledger.selected
        if done < total and not self._tells_in_brief and self._is_worth_telling:
            self._screen.say(self._named(ledger, line), least_verbosity=0)
        self._tell(progress_event(ledger.plan.name, done, total, line))

    def _say_of_all(self) -> None:
        done, total = sum(len(each.results) for each in self._begun), sum(each.selected for each in self._begun)
        if self._steps.reached(done, total) and done < total and self._is_worth_telling:
            line = progress_line(self._begun, in_flight=self._slowed_to, width=self._screen.width)
            self._screen.say(line, least_verbosity=0)

    @property
    def _is_worth_telling(self) -> bool:
        """Whether a progress line tells anybody anything: a run of a few seconds is over before it is read."""
        return self._options.tells_progress or time.monotonic() - self._began >= _UNTOLD_S

    @property
    def _slowed_to(self) -> int:
        """Pairs in flight where a service has slowed the runs down, else 0."""
        limit = sum(self._limits.values())
        return limit if limit < self._options.concurrency else 0

    @property
    def _tells_in_brief(self) -> bool:
        """Whether the screen tells of several runs together; under -v of each all the same."""
        return len(self._begun) > 1 and self._config.get_verbosity() < 1

    def _named(self, ledger: Ledger, line: str) -> str:
        """Say which run a line is about, where there are several."""
        return f"{ledger.plan.name}: {line}" if len(self._begun) > 1 else line
