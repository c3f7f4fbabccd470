"""pytest's terminal, where there is one: our words for its letters, and our lines between its own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Mapping

import pytest

from .terminal import Line

WORDS: Mapping[str, tuple[str, str, Mapping[str, bool]]] = {
    "correct": (".", "correct", {"green": True}),
    "incorrect": ("i", "incorrect", {"red": True}),
    "not_attempted": ("-", "not attempted", {"yellow": True}),
    "recorded": (".", "recorded", {"green": True}),
    "judge_failure": ("?", "judge failure", {"red": True, "bold": True}),
    "error": ("!", "answer error", {"red": True, "bold": True}),
}
"""What pytest shows of each status: letter, word (and category), colour; in the order of its last line."""


class SimpleQAWarning(UserWarning):
    """Something about a run that its user should know and that does not stop it."""


class Screen:
    """Writes where pytest writes; under `-p no:terminal` nowhere."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @property
    def width(self) -> int:
        """Columns that a line may take."""
        return max(40, self._reporter._tw.fullwidth) if self._reporter else 80

    def let_go(self, report: pytest.TestReport) -> None:
        """Take `report`, the last one, from what the terminal keeps to its end.

        There it only fills memory, and is looked through once for each failure: the square of the rows.
        """
        for kept in self._reporter.stats.values() if self._reporter is not None else ():
            if kept and kept[-1] is report:
                kept.pop()

    def seed_categories(self) -> None:
        """Let pytest's last line name our categories in our order."""
        if self._reporter is not None:
            for _, word, _ in WORDS.values():
                self._reporter.stats.setdefault(word, [])

    def say(self, line: str, least_verbosity: int, **markup: bool) -> None:
        """Write one line, where the verbosity is at least so much (`-q` is -1)."""
        reporter = self._reporter
        if reporter is not None and self._config.get_verbosity() >= least_verbosity:
            reporter.ensure_newline()
            if reporter._tw.width_of_current_line:  # letters that came from xdist: to the above they are no line
                reporter.line("")
            reporter.write_line(line, **markup)

    def warn(self, message: str) -> None:
        """Tell of something that does not stop the run."""
        if self._reporter is not None:
            self.say(f"warning: {message}", least_verbosity=-1, yellow=True)
        else:
            with contextlib.suppress(SimpleQAWarning):
                warnings.warn(message, SimpleQAWarning, stacklevel=2)

    def show(self, lines: Iterable[Line]) -> None:
        """Write lines with their colours."""
        reporter = self._reporter
        assert reporter is not None
        reporter.ensure_newline()
        for line in lines:
            for text, markup in line.spans:
                reporter.write(text, **markup)
            reporter.line("")

    @property
    def _reporter(self) -> pytest.TerminalReporter | None:
        plugin: pytest.TerminalReporter | None = self._config.pluginmanager.getplugin("terminalreporter")
        return plugin


def status_word(status: str) -> tuple[str, str, tuple[str, Mapping[str, bool]]]:
    """Return what `pytest_report_teststatus` gives for one of our statuses."""
    letter, word, markup = WORDS[status]
    return word, letter, (word, markup)
