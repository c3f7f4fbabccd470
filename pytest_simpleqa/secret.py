"""Secrets: values that never print themselves, and the cut that keeps them out of foreign text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

MASK = "***"

_TELLING = 9
"""So many of its first characters give a secret away; fewer are a prefix such as `sk-proj-`, which all keys have."""

_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos", "+": "plus", "/": "sol", "=": "equals"}


class Secret:
    """A string that shows itself only through `reveal()`."""

    __slots__ = ("_beginning", "_hint", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        # Letters and digits are written the same everywhere: without these the text holds no part that matters.
        self._hint = max(re.findall(r"[A-Za-z0-9]+", value[:_TELLING]), key=len, default="")
        self._beginning: re.Pattern[str] | None = None

    def reveal(self) -> str:
        """Return the secret; for request headers only."""
        return self._value

    def redact(self, text: str) -> str:
        """Return `text` with every occurrence of the secret masked, in whatever encoding, and cut short too.

        Before a text is cut: what is left of a secret may be too little to be known again.
        """
        return text if len(self._value) <= 3 or self._hint not in text else self._masked(text)

    def _masked(self, text: str) -> str:
        if self._beginning is None:  # compiled late: most secrets are never said
            self._beginning = re.compile("".join(map(_any_form, self._value[:_TELLING])))
        parts: list[str] = []
        at = 0
        for found in self._beginning.finditer(text):
            if found.start() >= at:
                parts += (text[at : found.start()], MASK)
                at = self._end(text, found.end())
        return "".join([*parts, text[at:]])

    def _end(self, text: str, at: int) -> int:
        """Return where the secret ends, or breaks off, whose beginning ends at `at`."""
        for char in self._value[_TELLING:]:
            following = re.compile(_any_form(char)).match(text, at)
            if following is None:
                break
            at = following.end()
        return at

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


def without_password(text: str) -> str:
    """Return `text` with the password of an address in it masked, and what its query says of one."""
    if "://" not in text:
        return text
    # A database's password may hold any character, also one that belongs encoded.
    masked = re.sub(r"(?<!http)(?<!https)(://[^/:@]*:).*@|(://[^/:@]*:)[^/@]*@", rf"\1\2{MASK}@", text)
    return re.sub(r"((?:pass|secret|token|key)[^=&]*=)[^&]+", rf"\1{MASK}", masked)


def without_secrets(argument: str) -> str:
    """Return an argument of a command line with the passwords and keys in it masked."""
    return re.sub(r"(?i)((?:\b|_)(?:api_?key|password|secret|token)=).+", rf"\1{MASK}", without_password(argument))


def _any_form(char: str) -> str:
    r"""Return a pattern for `char` plain or escaped: `+`, `\u002B`, `%2b`, `&#43;`, `&plus;`, also more than once."""
    code = ord(char)
    forms = [re.escape(char), rf"\\{{1,4}}(?i:u{code:04x}|x{code:02x})", f"(?i:{_percent(char)})"]
    entity = f"|{_ENTITIES[char]}" if char in _ENTITIES else ""
    forms.append(f"&(?:amp;)*(?i:#0*{code}|#x0*{code:x}{entity});")
    if not char.isalnum():
        forms.append(rf"\\{{1,4}}{re.escape(char)}")
    # The longest first: a key's own `&` or `%` may as well begin an escape.
    return f"(?:{'|'.join(reversed(forms))})"


def _percent(char: str) -> str:
    return "".join(f"%(?:25)*{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
