"""Everything that knows pytest-xdist: what a worker is told, what it is queued, and who gets which question."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from .errors import SimpleQAError
from .fixtureruns import FixtureRun, FixtureRuns
from .fixtures import PLUGIN as FIXTURE_RUNS
from .items import QuestionItem
from .lookahead import Upcoming
from .machines import Link, Machines, is_here
from .models.embedded import Embedded
from .models.spec import LocalAddress
from .options import Options
from .plan import Plan
from .rundisk import DEAD_FILE, RUN_DIRS_FILE, RUNS_FILE, STOP_FILE, SUSPECTS_FILE, put_json, results_files
from .runlog import read_rows
from .screen import Screen
from .seat import Seat, window
from .surroundings import start_servers
from .wording import visible

_INPUT = "simpleqa"
_SCHEDULED = ("load", "worksteal")
"""Ways of distribution for which questions are dealt by our own scheduler."""


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is an xdist worker."""
    return hasattr(config, "workerinput")


def is_far(config: pytest.Config) -> bool:
    """Tell whether this process is a worker whose controller is on another machine."""
    return is_worker(config) and "link" in config.workerinput.get(_INPUT, {})  # type: ignore[attr-defined]  # xdist's


def distributes(config: pytest.Config) -> bool:
    """Tell whether this process is an xdist controller, which runs no test itself."""
    option = config.option
    return getattr(option, "dist", "no") != "no" and bool(getattr(option, "tx", None)) and not option.collectonly


# --- in a worker ---------------------------------------------------------------------------


class Worker:
    """What the controller told this worker, and a look at what it is queued."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._told: Mapping[str, Any] = config.workerinput[_INPUT]  # type: ignore[attr-defined]  # xdist's
        self._item: pytest.Item | None = None
        self._nextitem: pytest.Item | None = None
        self._screen = Screen(config)
        self.is_far = is_far(config)
        self._link = Link(self._told) if self.is_far else None

    @property
    def told(self) -> Mapping[str, Any]:
        """All that the controller has told."""
        return self._told

    @property
    def paths(self) -> dict[str, Path]:
        """Where the controller has fetched the datasets to, by run; empty on another machine."""
        return {run: Path(path) for run, path in self._told["paths"].items()}

    @property
    def addresses(self) -> dict[str, LocalAddress]:
        """The embedded servers that the controller has started."""
        return {path: LocalAddress(*address) for path, address in self._told["local"].items()}

    def seat(self) -> Seat:
        """Return this worker's part of the run."""
        told = self._told
        of_tests = _json_in(Path(told["signals"]) / RUN_DIRS_FILE, {}) if told["signals"] else {}
        return Seat(
            concurrency=told["concurrency"],
            limits={run: tuple(limits) for run, limits in told["limits"].items()},
            run_dirs={run: Path(path) for run, path in {**told["run_dirs"], **of_tests}.items()},
            results_name=told["results_name"],
            signals=Path(told["signals"]) if told["signals"] else None,
            parent_pid=os.getppid() if told["signals"] else None,
            link=self._link,
        )

    def upcoming(self, session: pytest.Session) -> Upcoming:
        """Return the look at what the controller has sent to this worker and pytest has not reached."""
        for plugin in self._config.pluginmanager.get_plugins():
            if hasattr(plugin, "nextitem_index") and hasattr(getattr(plugin, "torun", None), "lock"):
                return _Queue(plugin, session.items)
        return lambda: self._nextitem  # an xdist that hides its queue: the next item is all we know

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Leave word of the runs of test functions before the controller hears of their items."""
        in_tests: FixtureRuns = self._config.pluginmanager.getplugin(FIXTURE_RUNS)
        runs = in_tests.told(session.items)
        if runs and self._link is not None:
            self._link.tell_runs(runs)
        elif runs:
            put_json(Path(self._told["signals"]) / RUNS_FILE, runs)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        self._item, self._nextitem = item, nextitem

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if isinstance(self._item, QuestionItem):  # the terminal of a worker shows nothing of it
            self._screen.let_go(report)


def _json_in(path: Path, default: Any) -> Any:
    """Return what another process has put there; `default` where it has not."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else default


class _Queue:
    """xdist's queue of this worker, seen through `TestQueue.lock()`: drop when it has a public look."""

    def __init__(self, interactor: Any, items: Sequence[pytest.Item]) -> None:
        self._interactor = interactor
        self._items = items
        self._given: set[int] = set()
        self._fresh: deque[int] = deque()

    def __call__(self) -> pytest.Item | None:
        if not self._fresh:
            self._look()
        return self._items[self._fresh.popleft()] if self._fresh else None

    def _look(self) -> None:
        with self._interactor.torun.lock() as queue:
            indices = [self._interactor.nextitem_index, *queue]
        fresh = [index for index in indices if isinstance(index, int) and index not in self._given]
        self._given.update(fresh)
        self._fresh.extend(fresh)


# --- in the controller ---------------------------------------------------------------------


class Controller:
    """Registered where xdist distributes: seats the workers, deals the questions, spreads a stop."""

    def __init__(
        self,
        config: pytest.Config,
        options: Options,
        plans: Sequence[Plan],
        *,
        run_dirs: Callable[[], Mapping[str, Path]],
        limits: Mapping[str, tuple[int | None, int | None]],
        embedded: Embedded,
        on_selected: Callable[[Sequence[str], Sequence[FixtureRun]], None],
        read_run: Callable[[Mapping[str, Any]], FixtureRun],
        contents: Callable[[], Mapping[str, Mapping[str, Any]]],
    ) -> None:
        self._config = config
        self._options = options
        self._plans = plans
        self._run_dirs = run_dirs
        self._limits = limits
        self._embedded = embedded
        self._on_selected = on_selected
        self._read_run = read_run
        self._dealt_tests: set[str] = set()
        """Items of test functions that are dealt as questions are."""
        self._shares: list[int] | None = None
        self._share_of: dict[str, int] = {}
        self._failed = 0
        self._collected = 0
        self._deaths = 0
        self._suspects: set[str] = set()
        self._machines = Machines(config, contents, run_dirs, self._places)
        config.pluginmanager.register(self._machines, "simpleqa-machines")

    @cached_property
    def _places(self) -> int:
        """How many workers the session starts with."""
        from xdist.workermanage import parse_tx_spec_config

        return len(parse_tx_spec_config(self._config))  # "3*popen" is one word and three workers

    @cached_property
    def _signals(self) -> Path:
        """The folder in which this machine's workers are told of a stop and of each other's death."""
        return Path(tempfile.mkdtemp(prefix="simpleqa-"))

    @property
    def active(self) -> int:
        """How many workers get questions: no more than pairs may be in flight."""
        bounds = [self._options.concurrency, *(limit for pair in self._limits.values() for limit in pair if limit)]
        return max(1, min(self._places, *bounds))

    def is_question(self, node_id: str) -> bool:
        """Tell whether an item is a question of any run."""
        return node_id in self._dealt_tests or any(plan.holds(node_id) for plan in self._plans)

    def shares_questions(self) -> bool:
        """Tell whether questions go to all workers; else one worker gets the whole dataset."""
        return self._config.option.dist in _SCHEDULED or self._config.option.dist == "loadgroup"

    def pytest_configure_node(self, node: Any) -> None:
        """Seat a worker; one that replaces a dead one takes over its share."""
        here = is_here(node)
        if here:  # on another machine nobody could reach them
            start_servers(self._embedded)
        if self._shares is None:
            self._shares = list(range(self._places))
        number = self._shares.pop(0) if self._shares else 0
        self._share_of[node.gateway.id] = number
        node.workerinput[_INPUT] = {
            "paths": {plan.name: str(plan.path) for plan in self._plans if here and plan.path},
            "run_dirs": {run: str(path) for run, path in self._run_dirs().items() if here},
            "signals": str(self._signals) if here else "",
            "results_name": f"results-{node.gateway.id}.jsonl",
            "concurrency": self._share(self._options.concurrency, number),
            "limits": {
                run: [limit and max(1, self._share(limit, number)) for limit in pair]
                for run, pair in self._limits.items()
            },
            "local": {path: list(address) for path, address in self._embedded.addresses.items() if here},
            **({} if here else self._machines.told(node)),
        }

    def _share(self, whole: int, number: int) -> int:
        if not self.shares_questions():
            return whole
        active = self.active
        if number >= active:
            return 0
        return whole // active + (1 if number < whole % active else 0)

    def takes_questions(self, node: Any) -> bool:
        """Tell whether a worker has a share of what may be in flight."""
        return not self.shares_questions() or self._share_of.get(node.gateway.id, 0) < self.active

    def depth(self, node: Any) -> int:
        """Return how deep a worker's queue is to be: more than it may start ahead."""
        share = self._share(self._options.concurrency, self._share_of.get(node.gateway.id, 0))
        return window(share, self._config) + 2

    def blames_first(self, node: Any, queued: Sequence[str]) -> bool:
        """Tell whether a dead worker fell to the first item of its queue, which pytest was running.

        It did where it stood under suspicion already, or where no other question was in flight. Else each of
        those may have done it (an answerer that ends its process): all go back under suspicion, and none is
        asked again before pytest reaches it. An ordinary test is not run twice: it takes the blame, as does
        whatever was first where no worker will come to find out.
        """
        first = queued[0]
        in_flight = self._in_flight(node, queued)
        if first in self._suspects or not set(in_flight) - {first} or not self._replaces_workers():
            return True
        self._suspects.update([first, *in_flight])
        with (self._signals / SUSPECTS_FILE).open("a", encoding="utf-8") as file:
            file.writelines(f"{node_id}\n" for node_id in in_flight)
        self._machines.tell(suspects=in_flight)
        return not self.is_question(first)

    def _replaces_workers(self) -> bool:
        from xdist.dsession import get_default_max_worker_restart

        most: int | None = get_default_max_worker_restart(self._config)
        return most is None or self._deaths <= most

    def _in_flight(self, node: Any, queued: Sequence[str]) -> list[str]:
        """Return the questions that a dead worker may have been asking: the first of its queue without a result."""
        finished = {
            (run, *key)
            for run, path in self._run_dirs().items()
            for key, row in read_rows(results_files(path))[0].items()
            if row.verdict or row.error
        }
        asks = {plan.node_id(name): (plan.name, *ask.key) for plan in self._plans for name, ask in plan.asks()}
        share = self._share(self._options.concurrency, self._share_of.get(node.gateway.id, 0))
        return [node_id for node_id in queued if node_id in asks and asks[node_id] not in finished][:share]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._collected += 1
        if self._collected == self._places:  # not sooner: another machine may yet refuse
            told = _json_in(self._signals / RUNS_FILE, self._machines.runs)
            try:
                runs = [self._read_run(data) for data in told]
            except SimpleQAError as error:  # what another machine has and this one has not
                raise pytest.UsageError(visible(str(error))) from None
            self._machines.require_same_runs({run.plan.name: run.plan.rows.sha256 for run in runs})
            self._on_selected([node_id for node_id in ids if self.is_question(node_id)], runs)
            if runs:
                put_json(self._signals / RUN_DIRS_FILE, {run: str(path) for run, path in self._run_dirs().items()})
                self._machines.tell_runs_known({run.plan.name for run in runs})
            for run in runs:
                # What is asked ahead wants deep queues; a bound below the number of workers wants few of them.
                if run.choice.ask_ahead or self.active < self._places:
                    self._dealt_tests.update(run.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        if config.getvalue("dist") not in _SCHEDULED:
            return None
        from .scheduling import QuestionScheduling

        return QuestionScheduling(config, log, self)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        number = self._share_of.get(node.gateway.id)
        if error is not None:
            self._deaths += 1
            if number is not None and self._shares is not None:
                self._shares.insert(0, number)
            results_name = f"results-{node.gateway.id}.jsonl"
            with (self._signals / DEAD_FILE).open("a", encoding="utf-8") as file:
                file.write(f"{results_name}\n")
            self._machines.tell_rows(results_name)
        else:
            output = getattr(node, "workeroutput", None) or {}
            if reason := output.get("shouldfail") or output.get("shouldstop"):
                self.stop_workers(str(reason))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Stop all workers at the failure that ends the session: xdist lets each empty its queue."""
        most = self._config.option.maxfail
        if most and report.failed and not hasattr(report, "wasxfail"):
            self._failed += 1
            if self._failed >= most:
                self.stop_workers(f"stopping after {self._failed} failures")

    def pytest_keyboard_interrupt(self) -> None:
        self.stop_workers("interrupted")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self._embedded.stop()

    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self._signals, ignore_errors=True)

    def stop_workers(self, reason: str) -> None:
        """Tell every worker to start nothing new."""
        self._machines.tell(stop=reason)
        path = self._signals / STOP_FILE
        if not path.exists():
            with contextlib.suppress(OSError):  # a disk that is full: the empty file says enough
                path.write_text(reason, encoding="utf-8")
