"""How a question's item is run: in pytest's phases, without the steps that only ordinary tests need."""

from __future__ import annotations

import pytest

from .items import QuestionItem

_STEPS = ("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown")
_OPTIONS = ("usepdb", "trace", "setupshow", "setuponly", "setupplan")
_RERAISE = (pytest.exit.Exception, KeyboardInterrupt)


def is_plain(config: pytest.Config) -> bool:
    """Tell whether questions of this session need none of pytest's own steps around a test.

    Those set up fixtures, take turns capturing output and logs, evaluate skip marks: half of what a trivial
    item costs. A conftest with a word in it gets the whole of them.
    """
    if any(getattr(config.option, name, False) for name in _OPTIONS):
        return False
    modules = {each.function.__module__ for step in _STEPS for each in getattr(config.hook, step).get_hookimpls()}
    return not any(module.rpartition(".")[2] == "conftest" for module in modules)


class PlainProtocol:
    """Runs items with the reports and hooks that other plugins expect, and their own steps, but not pytest's."""

    def __init__(self, config: pytest.Config) -> None:
        manager = config.pluginmanager
        own = [plugin for plugin in manager.get_plugins() if _module_of(plugin).startswith("_pytest.")]
        self._hook = config.hook
        self._setup, self._call, self._teardown = (manager.subset_hook_caller(step, own) for step in _STEPS)
        reporting = config.hook.pytest_runtest_makereport.get_hookimpls()
        self._others_report = any(not _is_known(each.function.__module__) for each in reporting)
        self._item: QuestionItem | None = None
        manager.register(self, "simpleqa-protocol")

    def run(self, item: QuestionItem, nextitem: pytest.Item | None) -> None:
        """Run `item`: three phases, three reports."""
        hook = self._hook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        setup = pytest.CallInfo.from_call(lambda: self._setup(item=item), "setup", _RERAISE)
        self._phase(item, setup)
        if setup.excinfo is None:  # else a plugin has skipped it, or has failed at it
            self._item = item
            self._phase(item, pytest.CallInfo.from_call(lambda: self._call(item=item), "call", _RERAISE))
            self._item = None
        self._phase(
            item,
            pytest.CallInfo.from_call(lambda: self._teardown(item=item, nextitem=nextitem), "teardown", _RERAISE),
        )
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        if item is self._item:  # in pytest's own protocol its runner does this
            item.runtest()

    def _phase(self, item: QuestionItem, call: pytest.CallInfo[None]) -> None:
        if call.when == "call" or call.excinfo is not None or self._others_report:
            report = self._hook.pytest_runtest_makereport(item=item, call=call)
        else:  # nobody has anything to add to a setup or teardown in which nothing happens
            report = pytest.TestReport.from_item_and_call(item, call)
        self._hook.pytest_runtest_logreport(report=report)


def _is_known(module: str) -> bool:
    return module.startswith(("_pytest.", "pytest_simpleqa."))


def _module_of(plugin: object) -> str:
    """Return the name of the module that a plugin is, or that its class comes from."""
    return str(getattr(plugin, "__name__", None) or type(plugin).__module__)
