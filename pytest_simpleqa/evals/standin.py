"""Importing the user's evals and completion functions, which say `import evals`, with or without that package."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import SpecError
from ..models.importing import find_target
from . import api

_KEY = "OPENAI_API_KEY"
_LOCK = threading.Lock()
_INSIDE: list[None] = []
"""One for each piece of the user's code that runs now."""


def load_class(class_path: str, places: Sequence[Path]) -> Any:
    """Return what `module:Class` of a registry names; the folders `places` are importable from now on.

    Raises SpecError.
    """
    if class_path.partition(":")[0].partition(".")[0] == "evals" and not has_evals():
        raise SpecError(
            f"class {class_path}: it comes with the package evals, which is not installed; pip install evals"
        )
    for place in reversed(places):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))
    with _some_key() if has_evals() else standing_in():
        try:
            return find_target(class_path, places[0], label=f"class {class_path}")
        except SpecError as error:
            if api.__name__ not in str(error):
                raise
            raise SpecError(f"{error}; it stands in for the package evals: pip install evals has the rest") from None


def has_evals() -> bool:
    """Tell whether the real package is installed; a mere folder of that name, as every registry has one, is not it."""
    loaded = sys.modules.get("evals")
    if loaded is not None:
        return loaded is not api
    found = importlib.util.find_spec("evals")
    return found is not None and found.origin is not None


@contextlib.contextmanager
def standing_in() -> Iterator[None]:
    """Let `import evals` find our own names while code of the user's runs, unless the real package is there.

    Many samples run at once: the first one in brings the names, the last one out takes them away.
    """
    if has_evals():
        yield
        return
    with _LOCK:
        _INSIDE.append(None)
        sys.modules.update(dict.fromkeys(api.MODULES, api))
    try:
        yield
    finally:
        with _LOCK:
            _INSIDE.pop()
            for name in api.MODULES if not _INSIDE else ():
                sys.modules.pop(name, None)


@contextlib.contextmanager
def _some_key() -> Iterator[None]:
    """Let the real package be imported without a key: it makes a client then, which nobody here asks."""
    with _LOCK:
        if os.environ.setdefault(_KEY, "none") != "none":
            yield
            return
        try:
            yield
        finally:
            os.environ.pop(_KEY, None)
