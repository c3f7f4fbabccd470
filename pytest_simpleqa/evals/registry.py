"""A registry of evals: what its YAML files name, and what stands behind a name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import SpecError
from .shelf import Entry, Shelf

KINDS = {
    "evals": "eval",
    "eval_sets": "eval set",
    "modelgraded": "model-graded spec",
    "completion_fns": "completion function",
    "solvers": "solver",
}
"""The folders of a registry, and what an entry in each is called. Beside them lies `data`."""

SHIPPED = Path(__file__).with_name("registry")
"""The registry that comes with the package; the last one that is looked at."""


@dataclass(frozen=True)
class EvalSpec:
    """One eval, as its registry describes it."""

    name: str
    """The full name, behind every alias: `coqa-match.dev.v0`."""
    group: str
    """The name up to its first dot: `coqa-match`."""
    class_path: str
    """What runs it, as `module:Class`."""
    args: Mapping[str, Any] = field(default_factory=dict)
    registry_dir: Path = field(default_factory=Path)
    """The registry that it stands in; its data lie in `data/` below."""
    description: str | None = None
    metrics: tuple[str, ...] = ()
    """The metrics that its alias names as the ones to look at."""


@dataclass(frozen=True)
class CompletionSpec:
    """One completion function, as its registry describes it."""

    name: str
    class_path: str
    args: Mapping[str, Any] = field(default_factory=dict)
    registry_dir: Path = field(default_factory=Path)


def registry_dirs(given: Sequence[Path], home: Path | None = None) -> tuple[Path, ...]:
    """Return the registries to look at, the first winning: `given`, `~/.evals`, an installed `evals`, and ours.

    Raises SpecError for a given directory that is none.
    """
    for path in given:
        if not any((path / kind).is_dir() for kind in KINDS):
            found = "no registry" if path.is_dir() else "no such directory"
            raise SpecError(f"--simpleqa-registry-path {path}: {found}; wanted a directory with evals/ and data/ in it")
    try:
        own = (home or Path.home()) / ".evals"
    except RuntimeError:  # no home
        own = None
    rest = [path for path in (own, _installed(), SHIPPED) if path is not None and path.is_dir()]
    each: dict[Path, Path] = {}
    for path in (*given, *rest):
        each.setdefault(path.resolve(), path)
    return tuple(each.values())


def _installed() -> Path | None:
    """Return the registry of an installed `evals` package, which is looked up but not imported."""
    from importlib.util import find_spec

    try:
        package = find_spec("evals")
    except ValueError:  # something that calls itself `evals` stands in sys.modules
        return None
    places = (package.submodule_search_locations if package else None) or ()
    return next((path for place in places if ((path := Path(place) / "registry") / "evals").is_dir()), None)


class Registry:
    """Evals and what belongs to them, in several directories of which the first that knows a name wins.

    A file is read when a name is asked for that may stand in it.
    """

    def __init__(self, dirs: Sequence[Path]) -> None:
        self.dirs = tuple(dirs)
        self._shelves = {kind: Shelf(kind, self.dirs, SHIPPED) for kind in KINDS}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the owner of the registries should know, a line each.

        That is a name to which two of them give another meaning, and where a pattern has looked for names, files that
        cannot be read.
        """
        notes = tuple(note for shelf in self._shelves.values() for note in shelf.notes)
        return (*notes, *self.faults) if "aliases" in vars(self) else notes  # the cached property: all files are read

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with files of evals that cannot be read, a line each; reads all of them."""
        return self._shelves["evals"].faults

    def eval(self, name: str) -> EvalSpec:
        """Return what stands behind a full name or an alias; raises SpecError."""
        chain = self._chain("evals", name)
        last = chain[-1]
        said = {key: value for entry in reversed(chain) for key, value in entry.values.items()}
        description, metrics = said.get("description"), said.get("metrics") or []
        return EvalSpec(
            name=last.name,
            group=last.name.partition(".")[0],
            class_path=_class_path(last),
            args=_args(last),
            registry_dir=last.registry_dir,
            description=None if description is None else str(description),
            metrics=tuple(map(str, metrics if isinstance(metrics, list) else [metrics])),
        )

    def has_eval(self, name: str) -> bool:
        """Tell whether an eval or alias has that very name."""
        return self._shelves["evals"].find(name) is not None

    def has_eval_set(self, name: str) -> bool:
        """Tell whether a set of evals has that very name."""
        return self._shelves["eval_sets"].find(name) is not None

    def file_of(self, name: str) -> Path:
        """Return the file that an eval stands in, behind every alias; raises SpecError."""
        return self._chain("evals", name)[-1].file

    @cached_property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """Every eval's full name, sorted, with the aliases that lead to it; reads all files."""
        found: dict[str, list[str]] = {}
        for name in self._shelves["evals"].names:
            full = self._full_name(name)
            if full is not None:
                found.setdefault(full, []).extend([name] if name != full else [])
        return {name: tuple(found[name]) for name in sorted(found)}

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Return the full names of the evals whose name or alias fits, sorted; `*` stands for anything."""
        fits = re.compile(re.escape(pattern).replace(r"\*", ".*")).fullmatch
        return tuple(full for full, names in self.aliases.items() if any(map(fits, (full, *names))))

    def eval_set(self, name: str) -> tuple[str, ...]:
        """Return the full names of a set's evals, in its order, each once; raises SpecError.

        An entry is an eval, a pattern with `*`, or another set. One that leads nowhere stays as it stands, so that
        `eval` says what is wrong with it and the others can go on.
        """
        return tuple(dict.fromkeys(self._members(name, ())))

    def _members(self, name: str, within: tuple[str, ...]) -> Iterator[str]:
        if name in within:
            raise SpecError(f"eval set {within[0]!r} holds itself: {' -> '.join((*within, name))}")
        entry = self._chain("eval_sets", name)[-1]
        members = entry.values.get("evals")
        if not isinstance(members, list):
            raise SpecError(f"{entry.place}: the eval set has no list 'evals'")
        for member in map(str, members):
            if "*" in member:
                yield from self.matching(member) or (member,)
            elif not self.has_eval(member) and self.has_eval_set(member):
                yield from self._members(member, (*within, name))
            else:
                yield self._full_name(member) or member

    def modelgraded(self, name: str) -> Mapping[str, Any]:
        """Return what a model-graded spec says; raises SpecError."""
        return self._chain("modelgraded", name)[-1].values

    def completion_fn(self, name: str) -> CompletionSpec:
        """Return what stands behind the name of a completion function; raises SpecError."""
        if self._shelves["completion_fns"].find(name) is None and self._shelves["solvers"].find(name):
            raise SpecError(f"{name!r} is a solver; solvers, which play several turns, are not run here")
        entry = self._chain("completion_fns", name)[-1]
        return CompletionSpec(entry.name, _class_path(entry), _args(entry), entry.registry_dir)

    def _full_name(self, name: str) -> str | None:
        """Return the full name of an eval; None where there is none, or its alias leads nowhere."""
        try:
            return self._chain("evals", name)[-1].name
        except SpecError:
            return None

    def _chain(self, kind: str, name: str) -> list[Entry]:
        """Return the entries from a name through its aliases to what they stand for; raises SpecError."""
        chain: list[Entry] = []
        target: str | None = name
        while target is not None:
            if any(entry.name == target for entry in chain):
                raise SpecError(f"{chain[0].place}: the alias leads back to itself, by way of {chain[-1].name!r}")
            entry = self._shelves[kind].find(target)
            if entry is None:
                raise self._unknown(kind, target, chain)
            chain.append(entry)
            target = entry.alias
        return chain

    def _unknown(self, kind: str, name: str, chain: Sequence[Entry]) -> SpecError:
        shelf = self._shelves[kind]
        if (fault := shelf.fault_of(name)) is not None:
            return SpecError(fault)
        place = f"{chain[-1].place}: the alias leads nowhere: " if chain else ""
        where = ", ".join(str(path) for path in self.dirs) or "no registry"
        hint = self._other_kind(kind, name) or _close(name, shelf.names)
        command = "; see simpleqa evals list" if kind == "evals" and not chain else ""
        return SpecError(f"{place}no {KINDS[kind]} {name!r} in {where}{hint}{command}")

    def _other_kind(self, kind: str, name: str) -> str:
        if kind == "evals" and self.has_eval_set(name):
            return "; it is an eval set: --simpleqa-eval-set"
        if kind == "eval_sets" and self.has_eval(name):
            return "; it is an eval: --simpleqa-eval"
        return ""


def _close(name: str, names: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(names), n=3)
    return f"; did you mean {', '.join(found)}?" if found else ""


def _class_path(entry: Entry) -> str:
    path = entry.values.get("class")
    if not isinstance(path, str) or not all(path.partition(":")):
        found = "no class" if path is None else f"the class {path!r}"
        raise SpecError(f"{entry.place}: {found} found, 'class: module:Class' wanted")
    return path


def _args(entry: Entry) -> Mapping[str, Any]:
    args = entry.values.get("args")
    if args is not None and not isinstance(args, dict):
        raise SpecError(f"{entry.place}: 'args' is no mapping of names to values")
    return {str(key): value for key, value in (args or {}).items()}
