"""Finding the user's attribute behind `package.module:attribute`, with errors that say where was looked."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import SpecError
from .reply import plain_text

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_ARGUMENT = re.compile(rf"(?P<module>{_NAME}):(?P<attribute>{_NAME})(?:\(\))?")
_LINE_CAP = 300
_HOUSE = Path(__file__).parents[1]


def find_target(argument: str, base: Path, label: str | None = None) -> Any:
    """Return the attribute that `ARGUMENT` names; `base` is importable from now on.

    Raises SpecError, headed by `label`, else by the spec `python:ARGUMENT`.
    """
    spec = label or f"python:{argument}"
    match = _ARGUMENT.fullmatch(argument)
    if match is None or match["module"].endswith(".py"):
        hint = "; name a module with dots and without .py" if re.search(r"\.py\b|[/\\]", argument) else ""
        raise SpecError(f"{spec}: wanted python:package.module:attribute, or :attribute() for a factory{hint}")
    module = _import(spec, match["module"], base)
    return functools.reduce(functools.partial(_attribute, spec, module), match["attribute"].split("."), module)


def _attribute(spec: str, module: ModuleType, owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        file = getattr(module, "__file__", None) or "built in"
        raise SpecError(f"{spec}: {module.__name__} ({file}) has no {name!r}{_close(name, dir(owner))}") from None


def _import(spec: str, name: str, base: Path) -> ModuleType:
    if str(base) not in sys.path:
        sys.path.insert(0, str(base))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _import_failed(spec, name, error) from error
        parent = base.joinpath(*error.name.split(".")[:-1])
        siblings = [module.name for module in pkgutil.iter_modules([str(parent)])]
        hint = _close(error.name.rpartition(".")[2], siblings)
        raise SpecError(f"{spec}: no module {error.name!r} in {base} or on the import path{hint}") from None
    except (Exception, SystemExit) as error:
        raise _import_failed(spec, name, error) from error


def _import_failed(spec: str, name: str, error: BaseException) -> SpecError:
    return SpecError(f"{spec}: importing {name} failed: {error_line(error)}{where(error)}")


def where(error: BaseException) -> str:
    """Return ` (file.py, line 3)`, where the user's code raised the error; a SyntaxError says so itself.

    That is the last line of the user's own: what an installed package makes of a call is its affair.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    own = [frame for frame in frames if not _is_installed(frame.filename)] or frames
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})"


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen ") or filename == importlib.__file__ or Path(filename).is_relative_to(_HOUSE)


def _is_installed(filename: str) -> bool:
    places = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    return any(Path(filename).is_relative_to(place) for place in places)


def _close(name: str, names: list[str]) -> str:
    found = difflib.get_close_matches(name, [other for other in names if not other.startswith("__")])
    return f"; did you mean {', '.join(found)}?" if found else ""


def error_line(error: BaseException) -> str:
    """Return `ValueError: text` of an exception, in one capped line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # a broken __str__ must not hide the error
        text = ""
    line = plain_text(f"{type(error).__name__}: {text}" if text else type(error).__name__)
    return line if len(line) <= _LINE_CAP else f"{line[:_LINE_CAP]} [...]"
