"""Secrets: a value that never prints itself, and the cut that keeps it out of foreign text."""

from __future__ import annotations

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
