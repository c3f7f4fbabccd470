"""Secrets: values that never print themselves, and the cut that keeps them out of foreign text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

MASK = "***"


class Secret:
    """A string that shows itself only through `reveal()`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret; for request headers only."""
        return self._value

    def redact(self, text: str) -> str:
        """Return `text` with every occurrence of the secret masked."""
        return text.replace(self._value, MASK) if len(self._value) > 3 else text

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret('***')"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        raise TypeError("a Secret is not pickled: pass it by the environment")


class Environment(Mapping[str, str]):
    """Variables, keys among them: read as any mapping, never shown; not by a traceback with locals either."""

    __slots__ = ("_variables",)

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def __getitem__(self, name: str) -> str:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        return f"Environment({len(self)} variables)"
