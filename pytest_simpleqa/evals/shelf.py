"""The YAML files of one kind in several registries: found, read when a name asks for it, and searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import SpecError


@dataclass(frozen=True)
class Entry:
    """One name in a registry, with what its file says of it."""

    name: str
    values: Mapping[str, Any]
    file: Path
    registry_dir: Path

    @property
    def alias(self) -> str | None:
        """The name that this one stands for; None where it stands for itself."""
        target = self.values.get("id")
        return None if target is None else str(target)

    @property
    def place(self) -> str:
        """Where the entry stands, as errors begin."""
        return f"{self.file}, {self.name!r}"


class Shelf:
    """All files of one kind; where several registries know a name, the first wins."""

    def __init__(self, kind: str, dirs: Sequence[Path], shipped: Path | None = None) -> None:
        """`shipped` is there to be replaced: nothing is said where another registry does."""
        self._kind = kind
        self._shipped = shipped
        self._dirs = dirs
        self._found: dict[str, Entry | None] = {}
        self.notes: list[str] = []
        """Names that registries disagree on, a line each, of those that were asked for."""

    @cached_property
    def _files(self) -> tuple[_File, ...]:
        return tuple(_File(path, top) for top in self._dirs for path in _yaml_files(top / self._kind))

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, each once; reads all files."""
        return tuple(dict.fromkeys(name for file in self._files for name in file.entries))

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the files that cannot be read, a line each; reads all files."""
        return tuple(file.fault for file in self._files if not file.entries and file.fault)

    def find(self, name: str) -> Entry | None:
        """Return the entry of that very name, None where there is none; raises SpecError for a name that stands twice.

        Only files whose text has the name in it are parsed: a whole registry takes ten times as long.
        """
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def fault_of(self, name: str) -> str | None:
        """Return what is wrong with a file that cannot be read and has `name` in its text."""
        return next((file.fault for file in self._files if name in file.text and not file.entries and file.fault), None)

    def _search(self, name: str) -> Entry | None:
        hits = [file.entries[name] for file in self._files if name in file.text and name in file.entries]
        if not hits:
            return None
        first, *others = hits
        for other in others:
            if other.registry_dir == first.registry_dir:
                raise SpecError(f"{first.place}: the same name stands in {other.file}; delete or rename one of them")
            if other.values != first.values and other.registry_dir != self._shipped:
                self.notes.append(f"{name} is taken from {first.file}, not from {other.file}, which differs")
        return first


class _File:
    """One YAML file, read and parsed at most once."""

    def __init__(self, path: Path, registry_dir: Path) -> None:
        self._path = path
        self._dir = registry_dir
        self.fault: str | None = None
        """Why the file cannot be used; known once it is read, or parsed."""

    @cached_property
    def text(self) -> str:
        try:
            data = self._path.read_bytes()
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            self.fault = f"{self._path}, line {line}: not UTF-8; save the file as UTF-8"
            return data.decode("utf-8", "replace")  # to tell whether a name may stand in it
        except OSError as error:
            self.fault = f"{self._path}: the file cannot be read ({error.strerror})"
            return ""

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """What the file names; nothing where it cannot be used."""
        document = self._parsed() if self.text and not self.fault else None
        if document is None:
            return {}
        if not isinstance(document, dict):
            self.fault = f"{self._path}: names with what stands behind them wanted at the outermost level"
            return {}
        return {str(name): self._entry(str(name), values) for name, values in document.items()}

    def _entry(self, name: str, values: Any) -> Entry:
        known = {str(key): value for key, value in values.items()} if isinstance(values, dict) else {}
        return Entry(name, {"id": values} if isinstance(values, str) else known, self._path, self._dir)

    def _parsed(self) -> Any:
        import yaml

        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            return yaml.load(self.text, loader)  # noqa: S506  # both are safe loaders
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = f", line {mark.line + 1}" if mark else ""
            self.fault = f"{self._path}{at}: not YAML ({error.problem or error.context})"
        except yaml.YAMLError as error:  # a character that YAML has no place for
            self.fault = f"{self._path}: not YAML ({' '.join(str(error).split())})"
        except (ValueError, RecursionError) as error:  # a date such as 2024-99-99; a nest without end
            self.fault = f"{self._path}: not YAML ({type(error).__name__})"
        return None


def _yaml_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))
