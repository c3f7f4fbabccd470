"""The arguments of a template: those that it knows, of the kinds that it wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ..errors import OptionError
from .registry import EvalSpec

T = TypeVar("T")

_KINDS = {bool: "true or false", int: "a whole number", str: "a text"}


class Arguments:
    """What an eval's `args` say to its template."""

    def __init__(self, spec: EvalSpec, given: Mapping[str, Any], *known: str) -> None:
        """Raise OptionError for an argument that is not among `known`."""
        self._name = spec.name
        self._given = given
        for key in given:
            if key not in known:
                template = spec.class_path.rpartition(":")[2]
                raise OptionError(f"{spec.name}: {template} has no argument {key!r}; it has {', '.join(known)}")

    def text(self, key: str, default: str = "") -> str:
        """Return a text."""
        return self._of_kind(str, key, default)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return true or false."""
        return self._of_kind(bool, key, default)

    def number(self, key: str, default: int = 0) -> int:
        """Return a whole number of 0 or more."""
        number = self._of_kind(int, key, default)
        if number < 0:
            raise OptionError(f"{self._name}: {key}={number}: 0 or more was wanted")
        return number

    def _of_kind(self, kind: type[T], key: str, default: T) -> T:
        value = self._given.get(key)
        if value is None:
            return default
        if type(value) is not kind:  # exactly: true is no number
            raise OptionError(f"{self._name}: {key}={value!r}: {_KINDS[kind]} was wanted")
        return value
