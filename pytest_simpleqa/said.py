"""What the user said, on the command line or else in the ini file; each reader checks its value."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from .errors import OptionError
from .optiontable import OPTIONS
from .paths import typed_path
from .prompts import Template
from .records import Verdict
from .secret import Environment

Params = Mapping[str, Any]
"""Request parameters; None leaves one out."""


class Said:
    """What stands on the command line, else in the ini file; each reader checks its value."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.invocation_dir = config.invocation_params.dir
        self._specs = {spec.name: spec for spec in OPTIONS}
        self._typed = _expanded(config.invocation_params.args, self.invocation_dir)

    def typed(self, name: str) -> bool:
        """Tell whether the option stands on the command line itself, not in addopts."""
        flag = self._specs[name].flag
        return any(arg == flag or arg.startswith(f"{flag}=") for arg in self._typed)

    def value(self, name: str) -> tuple[Any, str]:
        """Return the raw value (None where nothing was said) and where it was said."""
        spec = self._specs[name]
        given = self.config.getoption(name, None)
        if given is not None:
            return given, spec.flag
        if spec.ini:
            given = self.config.getini(name)
            if given not in (None, "", []):
                return given, f"ini key {name}"
        return None, spec.flag

    def text(self, name: str) -> str | None:
        given, where = self.value(name)
        if given is not None and not given.strip():
            raise OptionError(f"{where}: the value is empty")
        return None if given is None else given.strip()

    def many(self, name: str) -> list[str]:
        return list(self.value(name)[0] or [])

    def flag(self, name: str) -> bool:
        return bool(self.value(name)[0])

    def path_text(self, name: str) -> tuple[str | None, Path]:
        """Return the text, and the folder that a relative path in it counts from."""
        return self.text(name), self._path_base(name)

    def path(self, name: str) -> Path | None:
        text, base = self.path_text(name)
        return None if text is None or text == "-" else typed_path(text, base)

    def paths(self, name: str) -> tuple[Path, ...]:
        return tuple(typed_path(text, self._path_base(name)) for text in self.many(name))

    def _path_base(self, name: str) -> Path:
        from_ini = self.value(name)[1].startswith("ini")
        return self.config.inipath.parent if from_ini and self.config.inipath is not None else self.invocation_dir

    def whole(self, name: str, default: int, least: int | None = None) -> int:
        text = self.text(name)
        if text is None:
            return default
        wanted = "a whole number" + ("" if least is None else f" of at least {least}")
        try:
            value = int(text)
        except ValueError:
            raise self._wrong(name, text, wanted) from None
        if least is not None and value < least:
            raise self._wrong(name, text, wanted)
        return value

    def number(self, name: str, default: float, most: float = math.inf) -> float:
        text = self.text(name)
        if text is None:
            return default
        wanted = "a number of at least 0" if most == math.inf else f"a number from 0 to {most:g}"
        try:
            value = float(text)
        except ValueError:
            raise self._wrong(name, text, wanted) from None
        if not 0 <= value <= most or not math.isfinite(value):
            raise self._wrong(name, text, wanted)
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str:
        text = self.text(name)
        if text is None:
            return choices[0]
        if text not in choices:
            raise self._wrong(name, text, " or ".join(choices))
        return text

    def verdicts(self, name: str, default: frozenset[Verdict]) -> frozenset[Verdict]:
        text = self.text(name)
        if text is None:
            return default
        allowed = (Verdict.INCORRECT.value, Verdict.NOT_ATTEMPTED.value)
        words = [word.strip() for word in text.split(",")]
        if words == ["none"]:
            return frozenset()
        if not set(words) <= set(allowed):
            raise self._wrong(name, text, f"a list of {', '.join(allowed)}, or none")
        return frozenset(Verdict(word) for word in words)

    def shard(self, name: str) -> tuple[int, int]:
        text = self.text(name)
        if text is None:
            return 1, 1
        first, _, count = text.partition("/")
        if not (first.isascii() and first.isdigit() and count.isascii() and count.isdigit()) or not (
            1 <= int(first) <= int(count)
        ):
            raise self._wrong(name, text, "I/N with I from 1 to N, such as 2/8")
        return int(first), int(count)

    def params(self, name: str, defaults: Params) -> Params:
        params = dict(defaults)
        for text, key, value in self._assigned(name, "temperature=0"):
            if key in ("model", "messages", "stream"):
                raise OptionError(f"{self.value(name)[1]} {text!r}: {key} is set by the run itself")
            # None leaves a parameter out, the connection's own default included.
            params[key] = None if value == "" else _json_or_text(value)
        return params

    def assignments(self, name: str) -> Params:
        """Return what every NAME=VALUE says, its value read as JSON, else as text."""
        return {key: _json_or_text(value) for _, key, value in self._assigned(name, "max_tokens=100")}

    def _assigned(self, name: str, example: str) -> Iterator[tuple[str, str, str]]:
        for text in self.many(name):
            key, equals, value = text.partition("=")
            if not equals or not key.strip().isidentifier():
                raise self._wrong(name, text, f"NAME=VALUE, such as {example}")
            yield text, key.strip(), value

    def template(self, name: str, default: Template, *needed: str) -> Template:
        text, base = self.path_text(name)
        if text is None:
            return default
        where = self.value(name)[1]
        raw: str = self.value(name)[0]
        if text.startswith("file:"):
            path = typed_path(text.removeprefix("file:"), base)
            try:
                raw = path.read_bytes().decode("utf-8-sig")
            except OSError as error:
                raise OptionError(f"{where}: {path} cannot be read: {error.strerror}") from None
            except UnicodeDecodeError:
                raise OptionError(f"{where}: {path} is not UTF-8 text") from None
        template = Template(raw)
        template.require(where, *needed)
        return template

    def environment(self, name: str) -> Mapping[str, str]:
        path = self.path(name)
        if path is None:
            return Environment(os.environ)
        if not path.is_file():
            raise OptionError(f"{self.value(name)[1]}: {path}: no such file")
        from dotenv import dotenv_values

        try:
            kept = dotenv_values(path, encoding="utf-8", interpolate=False)
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"{self.value(name)[1]}: {path} cannot be read: {type(error).__name__}") from None
        return Environment({**{key: value for key, value in kept.items() if value is not None}, **os.environ})

    def refuse_lost_ini_file(self) -> None:
        """Refuse to go on where pytest took an option's path for a test path and so missed the ini file.

        pytest looks for its rootdir from every existing path among the arguments, an option's value
        after a space included.
        """
        if self.config.inipath is not None:
            return
        spaced = self._spaced_path()
        found = spaced and _ini_file_above(self.invocation_dir)
        if found and spaced:
            flag, value = spaced
            raise OptionError(
                f"{flag} {value}: pytest takes a path after a space for a test path and so missed {found}; "
                f"write {flag}={value}"
            )

    def _spaced_path(self) -> tuple[str, str] | None:
        flags = {spec.flag for spec in OPTIONS if spec.is_path}
        for flag, value in zip(self._typed, self._typed[1:], strict=False):
            if flag in flags and (self.invocation_dir / value).exists():
                return flag, value
        return None

    def _wrong(self, name: str, text: str, wanted: str) -> OptionError:
        shown = text if len(text) <= 80 else text[:79] + "…"
        return OptionError(f"{self.value(name)[1]} {shown!r}: wanted {wanted}")


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value, parse_constant=_refuse_constant)
    except ValueError:
        return value


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


def _expanded(args: Sequence[Any], base: Path) -> list[str]:
    """Return the arguments with those of an @file, which pytest reads one a line."""
    expanded: list[str] = []
    for arg in map(str, args):
        if arg.startswith("@") and (base / arg[1:]).is_file():
            expanded += (base / arg[1:]).read_text(encoding="utf-8", errors="replace").splitlines()
        else:
            expanded.append(arg)
    return expanded


_INI_FILES: Mapping[str, Callable[[str], bool]] = {
    "pytest.toml": lambda text: True,
    ".pytest.toml": lambda text: True,
    "pytest.ini": lambda text: True,
    ".pytest.ini": lambda text: True,
    "pyproject.toml": lambda text: "[tool.pytest" in text,
    "tox.ini": lambda text: "[pytest]" in text,
    "setup.cfg": lambda text: "[tool:pytest]" in text,
}


def _ini_file_above(folder: Path) -> Path | None:
    for parent in (folder, *folder.parents):
        for name, holds in _INI_FILES.items():
            path = parent / name
            if path.is_file() and holds(path.read_text(encoding="utf-8", errors="replace")):
                return path
    return None
