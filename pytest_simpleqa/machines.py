"""Workers on other machines: what they are told, whether they would ask the same, and what a lost one costs."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from .errors import OptionError, RunError
from .resume import difference
from .rundisk import results_files
from .runlog import Key, Log, Row, RunLog, read_rows
from .screen import Screen
from .usercode import user_code
from .wording import visible

Contents = Mapping[str, Mapping[str, Any]]
"""By run: what its run.json says is asked, and of whom."""
_REFUSED = "simpleqa_refused"
_NOT_COPIED = re.compile(r"arg (.+) not relative to an rsync root")
"""How xdist 3 tells of a path that it cannot copy."""


def is_here(node: Any) -> bool:
    """Tell whether a worker runs on this machine: what is behind a proxy (`via=`) does not."""
    spec = node.gateway.spec
    return bool(spec.popen) and not spec.via


def place_of(spec: Any) -> str:
    """Return how the user has named another machine."""
    kinds = ("socket", "ssh", "vagrant_ssh", "via")
    return next((f"{kind}={value}" for kind in kinds if (value := getattr(spec, kind))), "popen")


# --- in a worker on another machine --------------------------------------------------------


class Link:
    """The channel of its own between a worker on another machine and the controller.

    One way come orders and what stands in the run logs; the other way go the lines of this worker's run logs,
    sent by pytest's own thread alone: a connection takes one writer at a time.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.stop: str | None = None
        """Why nothing new is to be asked; also where the connection is gone."""
        self.suspects: frozenset[str] = frozenset()
        """Items one of which has killed a worker."""
        self._rows: deque[tuple[str, dict[Key, Row]]] = deque()
        self._lines: deque[str] = deque()
        self._channel = told["link"]
        self._hear(told["rows"])
        self._channel.setcallback(self._hear, endmarker=None)

    def _hear(self, order: str | None) -> None:
        gone: dict[str, Any] = {"stop": "the connection to the controller is lost"}
        said = json.loads(order) if order is not None else gone
        self.stop = self.stop or said.get("stop")
        self.suspects |= frozenset(said.get("suspects", ()))
        for run, rows in said.get("rows", {}).items():
            self._rows.append((run, {(id_, repeat): Row(**row) for id_, repeat, row in rows}))

    def heard_rows(self) -> Iterator[tuple[str, dict[Key, Row]]]:
        """Yield by run what the controller has told of the run logs since the last call: none of it is asked again."""
        while self._rows:
            yield self._rows.popleft()

    def log(self, run: str) -> Log:
        """Return the log of a run that the controller writes."""
        return _FarLog(run, self)

    def put(self, line: Sequence[Any]) -> None:
        """Let a line wait for `send`."""
        self._lines.append(_json(line))

    def tell_runs(self, runs: Sequence[Mapping[str, Any]]) -> None:
        """Tell the controller which runs the test functions hold; the word that all is collected comes behind it."""
        self.put(("", runs))
        self.send()

    def send(self) -> None:
        """Send what waits; where the connection is gone it waits on."""
        try:
            while self._lines:
                self._channel.send(self._lines[0])
                self._lines.popleft()
        except OSError:
            return


class _FarLog(Log):
    def __init__(self, run: str, link: Link) -> None:
        self._run = run
        self._link = link

    def write(self, line: Mapping[str, Any]) -> None:
        self._link.put((self._run, line))

    def close(self) -> None:
        self._link.send()


class Refusal:
    """Registered in a worker on another machine in place of all else: it collects nothing and says why."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]  # xdist's
        output[_REFUSED] = self._reason
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        return True


def require_same(told: Mapping[str, Any], mine: Contents, code: Mapping[str, str]) -> None:
    """Raise OptionError where this machine would ask something else than the controller; the difference is named.

    `code` are the hashes of the user's files that answer or judge here. The controller shows the line, so it is
    "this machine" there.
    """
    if (installed := version("pytest-simpleqa")) != told["version"]:
        raise OptionError(f"it has pytest-simpleqa {installed}, this machine {told['version']}; install the same")
    theirs: dict[str, Any] = json.loads(told["contents"])
    for run, content in mine.items():
        here, there = theirs.get(run, {}), json.loads(_json(content))
        what = difference(here, there, options=tuple(there["options"]), words=("on this machine", "there"))
        if what is not None:
            remedy = "; copy the file there" if what.startswith("dataset sha256") else ""
            raise OptionError(f"it would not ask the same as this machine: {what}{remedy}")
    changed = [file for file, sha256 in told["code"].items() if code.get(file, sha256) != sha256]
    if changed:
        files = ", ".join(changed)
        raise OptionError(
            f"{files}: not the same code as on this machine; copy it there, and start a socket server anew"
        )


# --- in the controller ---------------------------------------------------------------------


class Machines:
    """Registered beside the controller: speaks to the workers on other machines, and goes on without a lost one."""

    def __init__(
        self,
        config: pytest.Config,
        contents: Callable[[], Contents],
        run_dirs: Callable[[], Mapping[str, Path]],
        places: int,
    ) -> None:
        self._config = config
        self._contents = contents
        self._run_dirs = run_dirs
        self._places = places
        self._specs: Sequence[Any] = ()
        self._opened = 0
        self._channels: dict[str, Any] = {}
        self._logs: dict[Path, RunLog] = {}
        self._runs: dict[str, Sequence[Mapping[str, Any]]] = {}
        """By worker: the runs of test functions, as it has collected them."""
        self._unwritten: str | None = None
        self._named: dict[str, str] = {}
        """By worker: the machine as the user has named it."""
        self._collected: set[str] = set()
        self._unfit: set[str] = set()
        self._screen = Screen(config)

    def told(self, node: Any) -> dict[str, Any]:
        """Return what a worker on another machine is told beyond the others; no secrets, which it has itself."""
        config = self._config
        channel = self._channels[node.gateway.id] = node.gateway.newchannel()
        self._named[node.gateway.id] = place_of(node.gateway.spec)
        run_dirs = dict(self._run_dirs())
        channel.setcallback(lambda text: self._keep(text, run_dirs, node.gateway.id))
        return {
            "version": version("pytest-simpleqa"),
            "contents": _json(contents := self._contents()),
            "code": user_code(contents.values(), config.pluginmanager.get_plugins(), config.invocation_params.dir),
            "rows": _json({"rows": {run: _rows(results_files(path)) for run, path in run_dirs.items()}}),
            "link": channel,
        }

    def _keep(self, text: str, run_dirs: Mapping[str, Path], node_id: str) -> None:
        """Write a line of a far worker's run log; its report comes behind it."""
        run, line = json.loads(text)
        if not run:
            self._runs[node_id] = line
            return
        path = (run_dirs.get(run) or self._run_dirs()[run]) / f"results-{node_id}.jsonl"
        try:
            if path not in self._logs:
                self._logs[path] = RunLog(path)
            self._logs[path].write(line)
        except RunError as error:  # the row is in the Report all the same
            self._unwritten = str(error)

    def tell(self, **order: Any) -> None:
        """Say `stop`, `suspects` or `rows` to every worker on another machine."""
        for channel in self._channels.values():
            try:
                channel.send(_json(order))
            except OSError:  # it is gone
                continue

    def tell_rows(self, results_name: str) -> None:
        """Tell every worker on another machine what one that has died had written."""
        if self._channels:
            self.tell(rows={run: _rows([path / results_name]) for run, path in self._run_dirs().items()})

    @property
    def runs(self) -> Sequence[Mapping[str, Any]]:
        """The runs of test functions, as a worker on another machine has collected them."""
        return next(iter(self._runs.values()), ())

    def require_same_runs(self, datasets: Mapping[str, str | None]) -> None:
        """Raise pytest.UsageError where a machine has another dataset for a test function than `datasets`, by hash."""
        for node_id, runs in self._runs.items():
            if mistake := next((run["mistake"] for run in runs if "mistake" in run), None):
                raise pytest.UsageError(visible(f"{self._named[node_id]}: {mistake}"))
            for run in (run for run in runs if run["sha256"] != datasets.get(run["name"])):
                place, name = self._named[node_id], run["name"]
                told = f"{place}: {name} has another dataset there than on this machine; copy the file there"
                raise pytest.UsageError(visible(told))

    def tell_runs_known(self, runs: Container[str]) -> None:
        """Tell every worker on another machine what stands in the run logs of test functions that are gone on with."""
        if self._channels:
            known = {run: _rows(results_files(path)) for run, path in self._run_dirs().items() if run in runs}
            self.tell(rows=known)

    def pytest_unconfigure(self) -> None:
        for log in self._logs.values():
            log.close()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        self._specs = specs

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_newgateway(self) -> None:
        self._opened += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self) -> Iterator[None]:
        """Tell in one line of a machine that cannot be reached; from then on replace those that can."""
        try:
            yield
        except Exception as error:
            if not self._specs or not isinstance(error, (*_unreachable(), ValueError)):
                raise
            place = place_of(self._specs[min(self._opened, len(self._specs) - 1)])
            raise pytest.UsageError(visible(f"--tx {place}: {_why_not_started(error)}")) from None
        session = self._config.pluginmanager.getplugin("dsession")
        if hasattr(session, "_clone_node"):
            # xdist < 4 has no say in whether a lost worker is replaced, and ends where it cannot be: drop when it has.
            session._clone_node = self._replacing(session, session._clone_node)

    def _replacing(self, session: Any, clone: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def replace(node: Any) -> Any:
            try:
                if node.gateway.id not in self._unfit:
                    return clone(node)
            except _unreachable() as error:
                place = place_of(node.gateway.spec)
                self._screen.warn(f"{place} is lost ({_line(error)}): what it was to ask goes to the others")
            self._end_where_last(session, node, is_left=not session.sched.tests_finished)
            return None

        return replace

    @staticmethod
    def _end_where_last(session: Any, node: Any, *, is_left: bool) -> None:
        """End the session where the last worker is gone and something is left to do: xdist would break down."""
        if is_left and session._active_nodes <= {node} and not session.shouldstop:
            session.shouldstop = "no worker is left"

    def pytest_sessionfinish(self) -> None:
        if self._unwritten is not None:
            self._screen.warn(self._unwritten)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        self._collected.add(node.gateway.id)

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """End the session at a machine that refuses or breaks down before anything is asked, else go on without it."""
        refused = (getattr(node, "workeroutput", None) or {}).get(_REFUSED)
        is_early = not is_here(node) and error is not None and node.gateway.id not in self._collected
        if refused or is_early:
            reason = refused or f"it ended before it had collected: {_line(error)}; is pytest-simpleqa installed there?"
            text = visible(f"{place_of(node.gateway.spec)}: {reason}")
            if len(self._collected) < self._places:
                raise pytest.UsageError(text)
            self._unfit.add(node.gateway.id)
            self._screen.warn(f"{text}; it is not replaced")
        if error is None and (session := self._config.pluginmanager.getplugin("dsession")) is not None:
            self._end_where_last(session, node, is_left=session.sched.has_pending and not session.shuttingdown)


def _rows(files: Iterable[Path]) -> list[tuple[str, int, dict[str, Any]]]:
    return [(id_, repeat, asdict(row)) for (id_, repeat), row in read_rows(files)[0].items()]


def _unreachable() -> tuple[type[Exception], ...]:
    """Return what execnet raises where a machine cannot be reached."""
    from execnet import HostNotFound

    return OSError, EOFError, HostNotFound


def _why_not_started(error: Exception) -> str:
    """Return why a worker could not be started, and what to do where xdist takes a path for one to copy."""
    found = _NOT_COPIED.search(str(error))
    if found is None:
        return f"no worker can be started there: {_line(error)}"
    return (
        f"xdist takes {found[1]} on the command line for a path to copy; name tests by `testpaths` in the ini file, "
        "here and there, and put an option's path behind '='"
    )


def _json(value: Any) -> str:
    """Return ASCII text: half a surrogate pair would end the connection; a model may describe itself in odd types."""
    return json.dumps(value, default=str)


def _line(error: object) -> str:
    """Return the last line of an error, which says what it is."""
    return next(iter(str(error).strip().splitlines()[-1:]), type(error).__name__)
