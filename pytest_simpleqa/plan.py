"""What this session is to run: options, questions and the node ids picked; the same in every process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .dataset import read_dataset, select
from .download import dataset_name, fetch
from .engine import Ask
from .errors import OptionError
from .options import Options
from .records import Dataset


@dataclass(frozen=True)
class Plan:
    """One run: a dataset put to an answer model."""

    options: Options
    path: Path
    """The dataset's file on this machine."""
    rows: Dataset
    """The whole file."""
    dataset: Dataset
    """The population: after topics, sample, limit and shard."""
    picked: frozenset[str] | None
    """The item names among the arguments; None where no node id was given."""

    @classmethod
    def make(cls, config: pytest.Config, options: Options, path: Path | None = None) -> Plan:
        """Fetch and read the dataset, whole, and take its node ids out of pytest's arguments.

        `path` is where another process of this run has fetched the dataset to. Raises SimpleQAError.
        """
        name = dataset_name(options.dataset)
        path = path or fetch(options.dataset, base=options.dataset_base)
        rows = read_dataset(path, name)
        population = select(
            rows,
            limit=options.limit,
            sample=options.sample,
            seed=options.seed,
            topics=options.topics,
            shard=options.shard,
        )
        plan = cls(options, path, rows, population, _take_node_ids(config, name, path))
        plan._check_picked()
        return plan

    @property
    def name(self) -> str:
        """The dataset's name: the first part of every node id."""
        return self.dataset.name

    @property
    def population(self) -> int:
        """Rows of the run: questions times repeats."""
        return len(self.dataset) * self.options.repeats

    def asks(self) -> Iterator[tuple[str, Ask]]:
        """Yield every row's item name and what it asks, in dataset order."""
        repeats = self.options.repeats
        for question in self.dataset:
            if repeats == 1:
                yield question.id, Ask(question)
            else:
                for repeat in range(1, repeats + 1):
                    yield f"{question.id}-r{repeat}", Ask(question, repeat)

    def node_id(self, item_name: str) -> str:
        """Return the node id of the item of that name."""
        return f"{self.name}::{item_name}"

    def _check_picked(self) -> None:
        unknown = sorted((self.picked or frozenset()) - {name for name, _ in self.asks()})
        if unknown:
            whole = "" if len(self.rows) == len(self.dataset) else f" (of {len(self.rows):,} rows, by the options)"
            raise OptionError(
                f"{self.node_id(unknown[0])}: no such question among the {len(self.dataset):,} of this run{whole}"
            )


def _take_node_ids(config: pytest.Config, name: str, path: Path) -> frozenset[str] | None:
    """Take the dataset's node ids out of `config.args`; without any argument leave none at all.

    pytest would look for a file of the dataset's name: the name is no path, so the ids are ours to read. An id
    behind the file's path is one as well.
    """
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []
        return None
    mine = [arg for arg in config.args if _names_dataset(arg.partition("::")[0], name, path, config)]
    config.args = [arg for arg in config.args if arg not in mine]
    picked = [arg.partition("::")[2] for arg in mine]
    return frozenset(picked) if picked and all(picked) else None


def _names_dataset(word: str, name: str, path: Path, config: pytest.Config) -> bool:
    if word == name:
        return True
    try:
        return (config.invocation_params.dir / word).samefile(path)
    except (OSError, ValueError):
        return False
