"""How a question's item is run: by pytest's own steps, or without those that only ordinary tests need."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .items import QuestionItem

_STEPS = ("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown")
_OPTIONS = ("usepdb", "trace", "setupshow", "setuponly", "setupplan")


def is_plain(config: pytest.Config) -> bool:
    """Tell whether nobody but pytest itself has anything to do around an item of this session.

    pytest's own steps set up fixtures, take turns capturing output and logs, and evaluate skip marks: half of
    what a trivial item costs, and nothing that a question without marks has a use for.
    """
    if any(getattr(config.option, name, False) for name in _OPTIONS):
        return False
    implementations = (each for step in _STEPS for each in getattr(config.hook, step).get_hookimpls())
    return all(each.function.__module__.startswith("_pytest.") for each in implementations)


def run_plainly(item: QuestionItem) -> None:
    """Run `item` in pytest's three phases, with the reports and hooks that other plugins expect."""
    hook = item.config.hook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    _phase(item, "setup", _nothing)
    _phase(item, "call", item.runtest)
    _phase(item, "teardown", _nothing)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _phase(item: QuestionItem, when: str, work: Callable[[], None]) -> None:
    hook = item.config.hook
    call = pytest.CallInfo.from_call(work, when=when, reraise=(pytest.exit.Exception, KeyboardInterrupt))  # type: ignore[arg-type]  # a literal there
    hook.pytest_runtest_logreport(report=hook.pytest_runtest_makereport(item=item, call=call))


def _nothing() -> None: ...
