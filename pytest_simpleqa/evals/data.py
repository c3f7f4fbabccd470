"""The samples of an eval: an address becomes rows that know their place, and rows become questions."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..download import fetch
from ..errors import DatasetError
from ..paths import typed_path
from ..records import Dataset, Question
from ..rows import listing, read_rows

Sample = dict[str, Any]
"""One row of a data file, as it stands there."""

_LFS = b"version https://git-lfs.github.com/spec/"
_LIST_COLUMNS = frozenset({"input", "ideal"})
"""By these a list of samples is known inside a JSON object."""


class Samples(list[Sample]):
    """The rows behind one address, and where each of them stands."""

    def __init__(self, rows: Sequence[tuple[str, Sample]] = (), name: str = "", sha256: str = "") -> None:
        super().__init__(sample for _, sample in rows)
        self._places = tuple(place for place, _ in rows)
        self.name = name
        """The address."""
        self.sha256 = sha256
        """Hash of the bytes, of a folder that of its files' hashes."""

    def place(self, index: int) -> str:
        """Return where the row of that index, from 0, stands, as errors begin."""
        return self._places[index]

    def first(self, count: int) -> Samples:
        """Return the first `count` rows."""
        return Samples(list(zip(self._places[:count], self[:count], strict=True)), self.name, self.sha256)

    def require(self, *keys: str) -> None:
        """Raise DatasetError for the first row that lacks one of `keys`, or has null there."""
        for index, sample in enumerate(self):
            for key in keys:
                if sample.get(key) is None:
                    found = "null stands" if key in sample else f"found {listing(sample) or 'nothing'}, not"
                    at = f"at {key!r}" if key in sample else repr(key)
                    raise DatasetError(f"{self.place(index)}: {found} {at}; every sample of this eval needs one")


def read_samples(address: str, registries: Sequence[Path], base: Path) -> Samples:
    """Read the samples behind an address: a URL, a file or folder from `base`, or below `data/` of a registry.

    Of `registries` the first that has it counts. Of a folder all `.jsonl` files are read, sorted, also those in
    folders below. Raises DatasetError.
    """
    path = find_data(address, registries, base)
    if not path.is_dir():
        return _read_file(path, address)
    parts = [
        _read_file(file, f"{address.rstrip('/')}/{file.relative_to(path).as_posix()}")
        for file in sorted(path.rglob("*.jsonl"))
    ]
    rows = [(part.place(index), sample) for part in parts for index, sample in enumerate(part)]
    digest = hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()
    return _not_empty(Samples(rows, address, digest))


def find_data(address: str, registries: Sequence[Path], base: Path) -> Path:
    """Return the local file or folder behind an address, fetched where it is a URL; raises DatasetError."""
    if "://" in address:
        return fetch(address, base=base)
    places = [typed_path(address, base), *(typed_path(address, registry / "data") for registry in registries)]
    for place in places:
        if place.is_file() or (place.is_dir() and place != base):
            return place
    searched = (*(f"{registry / 'data'}" for registry in registries[:1]), str(base))
    raise DatasetError(f"there is no data file {address!r} in {' or '.join(searched)}{_near(places)}")


def _near(places: Sequence[Path]) -> str:
    for place in places[1:]:
        if place.parent.is_dir():
            names = [path.name for path in place.parent.iterdir()]
            near = difflib.get_close_matches(place.name, names, n=1)
            if near:
                return f"; did you mean {near[0]}?"
    return ""


def _read_file(path: Path, name: str) -> Samples:
    _refuse_lfs_pointer(path, name)
    file = read_rows(path, name, _LIST_COLUMNS)
    rows = [(file.place(number), dict(cells)) for number, cells in file.rows]
    return _not_empty(Samples(rows, name, file.sha256))


def _not_empty(samples: Samples) -> Samples:
    if not samples:
        raise DatasetError(f"{samples.name}: there are no samples in it")
    return samples


def _refuse_lfs_pointer(path: Path, name: str) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(len(_LFS))
    except OSError as error:
        raise DatasetError(f"{name}: the file cannot be read ({error.strerror})") from None
    if head == _LFS:
        raise DatasetError(
            f"{name}: a Git LFS pointer stands here instead of the data; run 'git lfs pull' in {path.parent}"
        )


def count_samples(path: Path) -> int | None:
    """Return the number of samples of a local file or folder without parsing it; None where that cannot be told.

    Raises DatasetError.
    """
    if path.is_dir():
        counts = [count_samples(file) for file in path.rglob("*.jsonl")]
        return sum(count for count in counts if count is not None)
    _refuse_lfs_pointer(path, path.name)
    if path.suffix != ".jsonl":
        return None
    with path.open("rb") as file:
        return sum(1 for line in file if not line.isspace())


def eval_dataset(name: str, samples: Samples, texts: Callable[[Sample], tuple[str, str]]) -> Dataset:
    """Return an eval's questions: of each sample what `texts` gives as (problem, answer).

    A question's id is the sample's number, from 1; `metadata["sample"]` is the sample itself.
    """
    return Dataset(name, tuple(_questions(samples, texts)), samples.sha256)


def _questions(samples: Samples, texts: Callable[[Sample], tuple[str, str]]) -> Iterator[Question]:
    for number, sample in enumerate(samples, 1):
        problem, answer = texts(sample)
        metadata: Mapping[str, Any] = {"sample": sample}
        yield Question(id=str(number), problem=problem, answer=answer, metadata=metadata)
