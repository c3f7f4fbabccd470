"""Which code of the user's a run goes through, by the hashes of its files."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .models.spec import split_spec, split_specs

_HOOKS = ("pytest_simpleqa_answer", "pytest_simpleqa_judge", "pytest_simpleqa_model", "pytest_simpleqa_wrap")
"""The hooks that decide what is asked and what becomes of it."""


def user_code(contents: Iterable[Mapping[str, Any]], plugins: Iterable[Any], base: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that answers or judges, by its path from `base`.

    These are the modules behind `python:` in what runs ask (their run.json), and among `plugins` the conftest files
    with hooks of ours; what they import is not looked at.
    """
    specs = (str((content.get(role) or {}).get("spec")) for content in contents for role in ("answer", "judge"))
    names = {name for spec in specs for name in _module_names(spec)}
    modules = [sys.modules.get(name) for name in sorted(names)]
    hooking = (each for each in plugins if any(hasattr(each, hook) for hook in _HOOKS))
    conftests = (each for each in hooking if Path(str(getattr(each, "__file__", ""))).name == "conftest.py")
    return dict(_hashed([*modules, *conftests], base))


def _module_names(spec: str) -> Iterator[str]:
    for each in split_specs(spec):
        alias, argument = split_spec(each)
        if alias == "python" and argument:
            yield argument.partition(":")[0]


def _hashed(modules: Iterable[Any], base: Path) -> Iterator[tuple[str, str]]:
    for module in modules:
        file = getattr(module, "__file__", None)
        if file is None:
            continue
        try:
            data = Path(file).read_bytes().replace(b"\r\n", b"\n")  # the same file, fetched on Windows
        except OSError:
            continue  # in an archive, or gone: nothing to compare
        yield Path(os.path.relpath(file, base)).as_posix(), hashlib.sha256(data).hexdigest()
