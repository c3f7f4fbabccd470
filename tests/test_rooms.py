"""The house: imports only point down, pytest lives above the line, heavy libraries come in when they are used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import pytest_simpleqa

HOUSE = Path(pytest_simpleqa.__file__).parent

BELOW = (
    ("errors", "secret", "paths", "loopthread"),
    ("records", "rundisk", "download", "rows", "retry", "confidence", "backlog"),
    ("prompts", "dataset", "metrics", "reportparts", "runlog", "trust", "intake", "databaseaddress"),
    ("models", "intervals"),
    ("agreement", "calibration", "caller"),
    ("judges", "report", "resume"),
    ("line", "stage", "cast", "payload", "runevents", "wording", "testing", "pairing", "reportfile", "openaievents"),
    ("engine", "evals", "textline", "baseline", "repeats", "gate", "eventlog", "databasetables", "usercode"),
    ("reportbuild", "database"),
    ("library", "comparison", "certaintytext", "comparisontext", "ratestable", "decision", "runfolder"),
    ("__init__", "gates", "commandline", "terminal", "markdown", "keptrun", "catalogue", "mergereports"),
    ("merge", "labelled", "manyruns"),
    ("judgecheck",),
    ("cli",),
)
"""Modules and packages by rank, the lowest first: each may import from lower ones alone."""
ABOVE = (
    ("hookspecs", "optiontable"),
    ("said",),
    ("options",),
    ("plan",),
    ("items", "surroundings", "scheduling", "screen", "ending", "rundir"),
    ("protocol", "jsonreport", "ledger", "fixtures", "machines"),
    ("fixtureruns", "seat", "progress", "summary"),
    ("lookahead",),
    ("runner", "reporter", "sinks"),
    ("wire",),
    ("roles",),
    ("plugin",),
)
"""Those that know pytest."""
RANKS = {room: rank for rank, rooms in enumerate((*BELOW, *ABOVE)) for room in rooms}
KNOW_XDIST = ("wire", "scheduling", "machines")
HEAVY = {
    "aiohttp",
    "botocore",
    "dotenv",
    "fsspec",
    "litellm",
    "numpy",
    "openai",
    "pooch",
    "pydantic",
    "rapidfuzz",
    "requests",
    "scipy",
    "sqlalchemy",
    "xllamacpp",
    "yaml",
    "yarl",
}

FILES = sorted(path for path in HOUSE.rglob("*.py"))


class Import(NamedTuple):
    """One import statement's target, with whether it runs as soon as the module is loaded."""

    module: str
    """With dots; ours begins with `pytest_simpleqa`."""
    line: int
    at_load: bool


def name_of(path: Path) -> str:
    """Return a module's name within the house: `engine`, `models.http`, `judges`."""
    parts = path.relative_to(HOUSE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def room_of(module: str) -> str:
    return module.partition(".")[0]


def imports_of(path: Path) -> Iterator[Import]:
    """Yield what a module imports, wherever in it; what only type checkers see does not count."""
    package = ["pytest_simpleqa", *path.relative_to(HOUSE).parent.parts]
    todo: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), True)]
    while todo:
        node, at_load = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += [(each, at_load) for each in node.orelse]
            continue
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, at_load) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = (HOUSE.parent / f"{source}.{alias.name}".replace(".", "/")).with_suffix(".py")
                yield Import(f"{source}.{alias.name}" if inner.exists() else source, node.lineno, at_load)
        inside = at_load and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        todo += [(child, inside) for child in ast.iter_child_nodes(node)]


def our_imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the names of our own modules that a module imports, with the line."""
    for module, line, _ in imports_of(path):
        if room_of(module) == "pytest_simpleqa":
            yield module.removeprefix("pytest_simpleqa").lstrip(".") or "__init__", line


def is_in_order(me: str, module: str) -> bool:
    """Tell whether the room `me` may import `module`: from its own package, or from below."""
    room = room_of(module)
    return RANKS[room] < RANKS[me] or (room == me and (HOUSE / me).is_dir())


def test_every_module_has_a_room() -> None:
    """A new module is given its rank here before it imports anything."""
    assert {room_of(name_of(path)) for path in FILES} - set(RANKS) == set()


def test_imports_only_point_down() -> None:
    """A module imports from lower rooms alone, or from its own package."""
    wrong = [
        f"{name_of(path)}:{line} imports {module}"
        for path in FILES
        for module, line in our_imports(path)
        if not is_in_order(room_of(name_of(path)), module)
    ]
    assert wrong == []


def test_pytest_lives_above_the_line() -> None:
    """Below the line nobody imports pytest or xdist; above it three modules alone know xdist."""
    wrong = []
    for path in FILES:
        me = room_of(name_of(path))
        refused = {"pytest", "_pytest"} if RANKS[me] < len(BELOW) else set()
        refused |= {"xdist", "execnet"} if me not in KNOW_XDIST else set()
        wrong += [f"{me}:{each.line} {each.module}" for each in imports_of(path) if room_of(each.module) in refused]
    assert wrong == []


def test_heavy_libraries_come_in_when_they_are_used() -> None:
    """No module imports a heavy library as soon as it is loaded."""
    wrong = [
        f"{name_of(path)}:{each.line} {each.module}"
        for path in FILES
        for each in imports_of(path)
        if each.at_load and room_of(each.module) in HEAVY
    ]
    assert wrong == []


def test_no_module_imports_itself_in_a_circle() -> None:
    """Nowhere, within the packages neither, does a chain of imports lead back to its start."""
    graph = {name_of(path): {module for module, _ in our_imports(path)} for path in FILES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_every_module_says_what_it_owns() -> None:
    """A module's first line is its ownership sentence: it ends in a full stop."""
    first = {name_of(path): path.read_text(encoding="utf-8").partition("\n")[0] for path in FILES}
    assert [name for name, line in first.items() if not (line[:3] == '"""' and line.rstrip('"').endswith("."))] == []
