"""How a session ends: SIGTERM as Ctrl-C does, and the exit status as one value."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest

UNDECIDED = 6
"""Exit status of a session whose gates could not be decided."""


class Ending:
    """Watches what ends the session, and decides its exit status."""

    def __init__(self) -> None:
        self._old_handlers: dict[int, Any] = {}
        self._interrupt: str | None = None

    def watch_sigterm(self) -> None:
        """Let SIGTERM end the session as Ctrl-C does, with its Report."""
        if signal.SIGTERM in self._old_handlers or os.name != "posix":
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            raise KeyboardInterrupt("SIGTERM")

        with contextlib.suppress(ValueError):  # not in the main thread
            self._old_handlers[signal.SIGTERM] = signal.signal(signal.SIGTERM, interrupt)

    def restore_signals(self) -> None:
        """Give the signals back; a second time does nothing."""
        for number, handler in self._old_handlers.items():
            with contextlib.suppress(ValueError, TypeError):
                signal.signal(number, handler)
        self._old_handlers.clear()

    def hear_interrupt(self, error: BaseException) -> None:
        """Take in what pytest calls a keyboard interrupt."""
        # xdist raises its own Interrupted for any early end; only a worker's Ctrl-C is a real one.
        is_xdist = type(error).__module__.partition(".")[0] == "xdist"
        if is_xdist and "keyboard-interrupt" not in str(error):
            self._interrupt = "xdist"
        elif isinstance(error, KeyboardInterrupt):
            self._interrupt = "user"
            self._ignore_interrupts()

    def _ignore_interrupts(self) -> None:
        """Let no second Ctrl-C cut off the writing of the Report, which takes seconds at the most."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # not in the main thread
                self._old_handlers.setdefault(number, signal.signal(number, signal.SIG_IGN))

    @property
    def was_interrupted(self) -> bool:
        """Whether the user has ended the session by Ctrl-C or SIGTERM."""
        return self._interrupt == "user"

    def status(self, session: pytest.Session) -> int:
        """Return pytest's own exit status, but for how xdist tells of an early end."""
        status = int(session.exitstatus)
        if self._interrupt == "user":
            return int(pytest.ExitCode.INTERRUPTED) if status == pytest.ExitCode.OK else status
        if self._interrupt == "xdist" and status == pytest.ExitCode.INTERRUPTED:
            return int(pytest.ExitCode.TESTS_FAILED)
        return status

    def gated_status(
        self, session: pytest.Session, verdicts: Sequence[str], *, own_failures: int, questions_fail: bool
    ) -> int:
        """Return the exit status of a session with gates, whose verdicts are `pass`, `fail` or `undecided`.

        Of all failures that pytest has counted, the questions' own (`own_failures`) count only where the user
        has said so (`questions_fail`): the gates decide. An early end leaves them undecided; never 0 when a gate
        was asked for and not decided.
        """
        status = self.status(session)
        mine = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
        if status not in mine:
            return status
        stopped_itself = bool(session.shouldfail) and not self._stopped_by_maxfail(session)
        others_failed = session.testsfailed > own_failures or (
            status == pytest.ExitCode.TESTS_FAILED and not session.testsfailed  # said by another plugin
        )
        if others_failed or stopped_itself or questions_fail or "fail" in verdicts:
            return int(pytest.ExitCode.TESTS_FAILED)
        if "undecided" in verdicts or not verdicts:
            return UNDECIDED
        return int(pytest.ExitCode.OK)

    @staticmethod
    def _stopped_by_maxfail(session: pytest.Session) -> bool:
        return str(session.shouldfail).startswith("stopping after")
