"""A line of text for the screen: pieces with their colours, and breaking between words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from .wording import columns, cut, shown

Markup = Mapping[str, bool]
"""Keywords of pytest's terminal writer: `green`, `red`, `yellow`, `bold`."""
Span = tuple[str, Markup]

_CODES = {"bold": 1, "red": 31, "green": 32, "yellow": 33}


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end: pieces of text, each with its markup."""

    spans: tuple[Span, ...] = ()

    @classmethod
    def of(cls, text: str, **markup: bool) -> Self:
        """Make a line of one piece."""
        return cls(((text, markup),))

    @property
    def text(self) -> str:
        """The line without markup."""
        return "".join(text for text, _ in self.spans)

    @property
    def ansi(self) -> str:
        """The line with its markup as a terminal takes it."""
        return "".join(_painted(text, markup) for text, markup in self.spans)

    def plain(self) -> Self:
        """Return the line without its markup."""
        return type(self)(tuple((text, {}) for text, _ in self.spans))


def _painted(text: str, markup: Markup) -> str:
    codes = [str(_CODES[name]) for name, on in markup.items() if on]
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and text else text


def spaced(blocks: Iterable[Iterable[Line]]) -> list[Line]:
    """Return the lines of all blocks that have any, an empty line between two."""
    full = [lines for block in blocks if (lines := list(block))]
    return [line for lines in full for line in (*lines, Line())][:-1]


def wrapped(text: str, width: int, indent: str = "") -> Iterator[str]:
    """Yield `text` broken between words, by columns as `textwrap` cannot."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line.strip() and columns(longer) > width:
            yield line
            longer = indent + word
        line = longer
    yield line


def fitted(start: str, texts: Iterable[tuple[str, str | None]], width: int) -> str:
    """Return `start` and the texts behind their labels in one line, each with its fair share of the room.

    A text that is None or empty is left out with its label.
    """
    pieces = [(label, shown(text, width)) for label, text in texts if text]
    taken = columns(start) + sum(2 + columns(label) for label, _ in pieces)
    rooms = _fair([columns(text) for _, text in pieces], width - taken)
    line = start + "".join(f"  {label}{cut(text, room)}" for (label, text), room in zip(pieces, rooms, strict=True))
    return cut(line if start else line[2:], width)


def _fair(wanted: Sequence[int], room: int) -> list[int]:
    """Return how many columns each gets: what it wants, else an equal part of what the modest ones leave."""
    given = [0] * len(wanted)
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    for place, index in enumerate(order):
        given[index] = max(0, min(wanted[index], room // (len(order) - place)))
        room -= given[index]
    return given
