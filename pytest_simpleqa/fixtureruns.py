"""The runs of test functions: which rows a test that takes the `simpleqa` fixture has, and what its run is called."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from .errors import OptionError, SimpleQAError
from .fixtures import HANDLE, SimpleQA
from .items import keywords_of, label_of
from .options import Options
from .plan import Plan
from .records import QuestionResult, Reply
from .runlog import Key
from .stage import Ask
from .wording import visible

MARK = "simpleqa_dataset"
_ROW = "simpleqa"
"""The fixture, whose parameter is the item's Row."""


@dataclass(frozen=True)
class Choice:
    """What the marker of a test function says; what it does not say is as on the command line."""

    source: str | None = None
    base: str = "."
    """What a relative source counts from: the test file's folder, itself relative to the rootdir."""
    limit: int | None = None
    topics: tuple[str, ...] | None = None
    ask_ahead: bool = False

    @classmethod
    def of(cls, mark: pytest.Mark | None, base: str) -> Self:
        """Read `simpleqa_dataset(source, limit, topics, ask_ahead=False)`. Raises OptionError."""
        if mark is None:
            return cls()
        try:
            return cls._checked(base, *mark.args, **mark.kwargs)
        except TypeError as error:
            raise OptionError(f"the marker {MARK}: {str(error).rpartition('() ')[2]}") from None

    @classmethod
    def _checked(
        cls,
        base: str,
        source: Any = None,
        limit: Any = None,
        topics: str | Iterable[str] | None = None,
        ask_ahead: bool = False,
    ) -> Self:
        if source is not None and not isinstance(source, str | os.PathLike):
            raise OptionError(f"the marker {MARK}: source={source!r}: wanted a file, an https:// URL or a known name")
        if limit is not None and (not isinstance(limit, int) or limit < 0):
            raise OptionError(f"the marker {MARK}: limit={limit!r}: wanted a whole number, 0 for all")
        names: Any = (topics,) if isinstance(topics, str) else topics
        names = tuple(names) if isinstance(names, Iterable) else names
        if names is not None and not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
            raise OptionError(f"the marker {MARK}: topics={topics!r}: wanted a name, or a list of names")
        return cls(None if source is None else os.fspath(source), base, limit, names, bool(ask_ahead))


@dataclass(frozen=True)
class Row:
    """One row of the dataset of a test function: the parameter of one item."""

    plan: Plan
    """Not named after the function yet: other parameters belong to the name."""
    choice: Choice
    name: str
    """The item's own part of its id: `q0007`, or `q0007-r2`."""
    ask: Ask


@dataclass(frozen=True)
class FixtureRun:
    """One test function's run, with one set of its other parameters."""

    plan: Plan
    choice: Choice
    items: Mapping[str, Key]
    """What each of the selected items asks, by node id."""

    def to_json(self) -> dict[str, Any]:
        """Return what another process needs to know the run; `FixtureRuns.read` reads it back."""
        items = {node_id: list(key) for node_id, key in self.items.items()}
        sha256 = self.plan.rows.sha256
        return {"name": self.plan.name, "choice": vars(self.choice), "items": items, "sha256": sha256}


class FixtureRuns:
    """Registered in each process that collects: gives every test that takes the fixture its rows.

    Each source is read once.
    """

    def __init__(
        self,
        rootpath: Path,
        options: Options,
        own: Plan | None,
    ) -> None:
        self._rootpath = rootpath
        self._options = options
        self._own = own
        self.put: Callable[[pytest.Item, Ask], Reply | QuestionResult] | None = None
        """Puts a question for an item and waits; None where no test is run."""
        self.mistake: str | None = None
        """The first marker or dataset that cannot be read: told when all is collected, before anything is asked."""
        self._files: dict[tuple[str, str], Plan] = {}
        self._chosen: dict[Choice, Plan] = {}
        self._named: dict[str, Plan] = {}

    def rows_for(self, definition: pytest.Function) -> Sequence[Any] | str:
        """Return the rows of a test function as pytest's parameters, or why it has none.

        A mistake is kept until all is collected: pytest has no exit status 4 for a fault of one collector.
        """
        try:
            return self._rows_for(definition)
        except SimpleQAError as error:
            mistake = f"{definition.nodeid}: {error}"
            self.mistake = self.mistake or mistake
            return mistake

    def _rows_for(self, definition: pytest.Function) -> Sequence[Any] | str:
        folder = os.path.relpath(definition.path.parent, self._rootpath)
        choice = Choice.of(definition.get_closest_marker(MARK), Path(folder).as_posix())
        if self._options.answer_llm is not None and self._options.judge_llm is None:
            return "no judge is named: add --judge-llm"
        if choice.source is None and self._own is None:
            return f"no dataset is named: add --simpleqa-dataset, or the marker {MARK}(source)"
        plan = self.plan_of(choice)
        return [
            pytest.param(
                Row(plan, choice, name, ask), id=name, marks=(label_of(ask.question.topic, ask.question.answer_type),)
            )
            for name, ask in plan.asks()
        ]

    def plan_of(self, choice: Choice) -> Plan:
        """Return the questions that a marker chooses, the same object for the same choice. Raises SimpleQAError."""
        choice = replace(choice, ask_ahead=False)
        if choice not in self._chosen:
            self._chosen[choice] = self._read(choice)
        return self._chosen[choice]

    def _read(self, choice: Choice) -> Plan:
        options = self._options
        if choice.source is not None:
            options = replace(options, dataset=choice.source, dataset_base=self._rootpath / choice.base)
        if choice.limit is not None:
            options = replace(options, limit=choice.limit)
        if choice.topics is not None:
            options = replace(options, topics=choice.topics)
        if choice.source is None:
            assert self._own is not None
            return self._own if options == self._options else self._own.under(options)
        place = choice.source, choice.base
        if place not in self._files:
            self._files[place] = Plan.of_dataset(options)
        return self._files[place].under(options)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Hand each item its question, before anything is selected by its topic."""
        for item in items:
            if (row := row_of(item)) is not None:
                assert self.put is not None
                plan = self._plan_named(_run_name(item, row), row.plan)
                item.stash[HANDLE] = SimpleQA(row.ask._replace(run=plan.name), partial(self.put, item))
                item.extra_keyword_matches.update(keywords_of(row.ask.question.topic, row.ask.question.answer_type))

    def _plan_named(self, name: str, plan: Plan) -> Plan:
        if name not in self._named:
            self._named[name] = replace(plan, name=name, in_tests=True, picked=None)
        return self._named[name]

    def plan(self, run: str) -> Plan:
        """Return the plan of a run of this process."""
        return self._named[run]

    def among(self, items: Iterable[pytest.Item]) -> list[FixtureRun]:
        """Return the runs that the selected `items` belong to."""
        asked: dict[str, dict[str, Key]] = {}
        choices: dict[str, Choice] = {}
        for item in items:
            if (row := row_of(item)) is not None:
                run = item.stash[HANDLE].run
                choices[run] = row.choice
                asked.setdefault(run, {})[item.nodeid] = row.ask.key
        return [FixtureRun(self.plan(run), choices[run], keys) for run, keys in asked.items()]

    def require_sound(self) -> None:
        """Raise pytest.UsageError where a marker or its dataset was found broken."""
        if self.mistake is not None:
            raise pytest.UsageError(visible(self.mistake))

    def told(self, items: Iterable[pytest.Item]) -> list[dict[str, Any]]:
        """Return what a worker tells the controller of the selected `items`: their runs, or the mistake."""
        return [{"mistake": self.mistake}] if self.mistake else [run.to_json() for run in self.among(items)]

    def read(self, data: Mapping[str, Any]) -> FixtureRun:
        """Read one of what `told` gave. Raises SimpleQAError."""
        if "mistake" in data:
            raise OptionError(data["mistake"])
        choice = Choice(**{**data["choice"], "topics": _tuple(data["choice"]["topics"])})
        plan = self._plan_named(data["name"], self.plan_of(choice))
        return FixtureRun(plan, choice, {node_id: (id_, repeat) for node_id, (id_, repeat) in data["items"].items()})


def _tuple(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def row_of(item: pytest.Item) -> Row | None:
    """Return the row of an item whose test takes the fixture; None for any other."""
    callspec = getattr(item, "callspec", None)
    row = callspec.params.get(_ROW) if callspec is not None else None
    return row if isinstance(row, Row) else None


def ahead_of(item: pytest.Item) -> Ask | None:
    """Return what may be asked before pytest reaches `item`: nothing, unless the test's marker says so."""
    row = row_of(item)
    if row is None or not row.choice.ask_ahead:
        return None
    return row.ask._replace(run=item.stash[HANDLE].run, part="answer")


def _run_name(item: pytest.Item, row: Row) -> str:
    """Return the function's node id with the id of its other parameters: the row's own part stands last."""
    assert isinstance(item, pytest.Function)
    assert item.parent is not None
    others: str = item.callspec.id
    if others == row.name:
        others = ""
    elif others.endswith(f"-{row.name}"):
        others = others.removesuffix(f"-{row.name}")
    else:  # a conftest that parametrises after us
        others = others.replace(row.name, "", 1).strip("-")
    return f"{item.parent.nodeid}::{item.originalname}" + (f"[{others}]" if others else "")
