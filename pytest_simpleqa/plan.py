"""What this session is to run: options, questions and the node ids picked; the same in every process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .dataset import read_dataset, select
from .download import dataset_name, fetch
from .errors import OptionError, SimpleQAError
from .models.spec import split_spec, split_specs
from .options import Options
from .prompts import ANSWER_TEMPLATE, Template
from .records import Dataset
from .stage import Ask

if TYPE_CHECKING:  # most sessions run no eval of a registry
    from .evals.data import Samples
    from .evals.protocol import Eval
    from .evals.registry import EvalSpec, Registry
    from .models.protocol import Model


@dataclass(frozen=True)
class EvalSource:
    """Where a run's questions come from: an eval of a registry of OpenAI Evals."""

    spec: EvalSpec
    registry: Registry
    options: Options

    def build(self, models: Sequence[Model], judge: Model | None) -> Eval:
        """Return the eval, to be asked of `models`, none where others answer. Raises SimpleQAError."""
        return self._built(models, judge, self.unasked.samples)

    @cached_property
    def unasked(self) -> Eval:
        """The eval without any model: it can only be looked at. Raises SimpleQAError."""
        from .evals.protocol import Nobody

        specs = split_specs(self.options.answer_llm or "")
        is_named = split_spec(specs[0])[0] not in ("", "replay", "hook")
        return self._built([Nobody(is_named=is_named) for _ in specs], Nobody())

    def _built(self, models: Sequence[Model], judge: Model | None, samples: Samples | None = None) -> Eval:
        from .evals.build import DEFAULT_SEED, build_eval
        from .evals.protocol import Nobody

        options = self.options
        is_cut_later = bool(options.topics or options.sample or options.shard != (1, 1))
        return build_eval(
            self.spec,
            self.registry,
            models or (Nobody(),),
            seed=options.seed if options.is_seeded else DEFAULT_SEED,
            params=options.eval_params,
            limit=0 if is_cut_later else options.limit,
            judge=judge,
            judge_params=options.judge_params,
            base=options.invocation_dir,
            samples=samples,
        )


@dataclass(frozen=True)
class Plan:
    """One run: a dataset, or the samples of an eval, put to an answer model."""

    name: str
    """The run's name: what its node ids begin with."""
    options: Options
    rows: Dataset
    """The whole file."""
    dataset: Dataset
    """The population: after topics, sample, limit and shard."""
    path: Path | None = None
    """The dataset's file on this machine."""
    picked: frozenset[str] | None = None
    """The item names among the arguments; None where no node id was given."""
    source: EvalSource | None = None
    """The eval whose samples these are; None for a dataset."""
    in_tests: bool = False
    """Whether tests of the user's put its questions, by the `simpleqa` fixture; else each row is an item of ours."""

    @classmethod
    def of_dataset(cls, options: Options, path: Path | None = None) -> Plan:
        """Fetch and read the dataset that the options name, whole.

        `path` is where another process of this run has fetched it to. Raises SimpleQAError.
        """
        assert options.dataset is not None
        name = dataset_name(options.dataset)
        path = path or fetch(options.dataset, base=options.dataset_base)
        rows = read_dataset(path, name)
        return cls(name, options, rows, _population(rows, options), path)

    @classmethod
    def of_nothing(cls, options: Options) -> Plan:
        """Return a run without questions, to see whether what the options name can be asked at all."""
        nothing = Dataset("", (), "")
        return cls("", replace(options, sentinels=0), nothing, nothing)

    @classmethod
    def of_eval(cls, options: Options, source: EvalSource) -> Plan:
        """Read the samples of an eval. Raises SimpleQAError, which names the eval."""
        try:
            rows = source.unasked.dataset
        except SimpleQAError as error:
            if source.spec.name in str(error):
                raise
            raise type(error)(f"{source.spec.name}: {error}") from None
        options = _of_an_eval(options)
        return cls(source.spec.name, options, rows, _population(rows, options), source=source)

    def under(self, options: Options) -> Plan:
        """Return the same file's questions as other options choose them. Raises DatasetError."""
        return replace(self, options=options, dataset=_population(self.rows, options))

    @property
    def provenance(self) -> dict[str, Any]:
        """What the Report and run.json say of the eval; empty for a dataset."""
        if self.source is None:
            return {}
        spec = self.source.spec
        return {"eval": {"class": spec.class_path, "args": {**spec.args, **self.options.eval_params}}}

    def judge_spec(self, described: Mapping[str, Any]) -> str | None:
        """Return how the judge that describes itself so is called: as typed, or by the eval's own rule."""
        provider, name = described.get("provider"), described.get("model")
        is_rule = provider is not None and provider == name and described.get("base_url_host") is None
        if self.source is not None and provider != "hook" and (is_rule or provider == "evals"):
            return str(name)
        return self.options.judge_llm

    @property
    def population(self) -> int:
        """Rows of the run: questions times repeats."""
        return len(self.dataset) * self.options.repeats

    def asks(self) -> Iterator[tuple[str, Ask]]:
        """Yield every row's item name and what it asks, in dataset order."""
        repeats = self.options.repeats
        for question in self.dataset:
            if repeats == 1:
                yield question.id, Ask(question, run=self.name)
            else:
                for repeat in range(1, repeats + 1):
                    yield f"{question.id}-r{repeat}", Ask(question, repeat, self.name)

    def node_id(self, item_name: str) -> str:
        """Return the node id of the item of that name."""
        if self.in_tests:  # other parameters of the function stand before it
            return f"{self.name[:-1]}-{item_name}]" if self.name.endswith("]") else f"{self.name}[{item_name}]"
        return f"{self.name}::{item_name}"

    def holds(self, node_id: str) -> bool:
        """Tell whether a node id is one of this run's items."""
        return node_id.startswith(self.name) and node_id.startswith("::", len(self.name))

    def require(self, picked: Iterable[str]) -> None:
        """Raise OptionError where an item name is none of this run's."""
        unknown = sorted(frozenset(picked) - {name for name, _ in self.asks()})
        if unknown:
            whole = "" if len(self.rows) == len(self.dataset) else f" (of {len(self.rows):,} rows, by the options)"
            raise OptionError(
                f"{self.node_id(unknown[0])}: no such question among the {len(self.dataset):,} of this run{whole}"
            )


@dataclass(frozen=True)
class Planned:
    """The runs of a session."""

    plans: tuple[Plan, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    """Members of an eval set that cannot be run, with the reason: each is one failed item."""
    notices: tuple[str, ...] = ()

    @property
    def own(self) -> Plan | None:
        """The run of the dataset that the options name."""
        return next((plan for plan in self.plans if plan.source is None), None)


def planned(config: pytest.Config, options: Options, paths: Mapping[str, Path] | None = None) -> Planned:
    """Return the runs that the options name, and take their node ids out of pytest's arguments.

    `paths` tells where another process of this session has fetched a run's dataset to. Raises SimpleQAError.
    """
    plans = [Plan.of_dataset(options, *(paths or {}).values())] if options.dataset is not None else []
    refused: dict[str, str] = {}
    notices: tuple[str, ...] = ()
    if options.evals or options.eval_set:
        from .evals.registry import Registry, registry_dirs

        registry = Registry(registry_dirs(options.registry_paths))
        sources = {spec.name: EvalSource(spec, registry, options) for spec in map(registry.eval, options.evals)}
        plans += [Plan.of_eval(options, source) for source in sources.values()]
        for name in registry.eval_set(options.eval_set) if options.eval_set else ():
            if name not in sources:
                try:
                    plans.append(Plan.of_eval(options, EvalSource(registry.eval(name), registry, options)))
                except SimpleQAError as error:
                    refused[name] = str(error)
        notices = tuple(registry.notes)
    _require_different_names(plans)
    return Planned(_with_picked(config, plans), refused, notices)


def _of_an_eval(options: Options) -> Options:
    """Return the options without what concerns datasets: no sentinel is missed where none is shown."""
    prompt = options.answer_prompt
    return replace(options, sentinels=0, answer_prompt=Template(ANSWER_TEMPLATE) if prompt.asks_confidence else prompt)


def _population(rows: Dataset, options: Options) -> Dataset:
    return select(
        rows,
        limit=options.limit,
        sample=options.sample,
        seed=options.seed,
        topics=options.topics,
        shard=options.shard,
    )


def _require_different_names(plans: Sequence[Plan]) -> None:
    names = [plan.name for plan in plans]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"{twice}: a dataset and an eval of that name in one session; rename the dataset's file")


def _with_picked(config: pytest.Config, plans: list[Plan]) -> tuple[Plan, ...]:
    """Give each plan the items of it that the arguments name; without any argument pytest is to look for nothing else.

    pytest would look for a file of a run's name: the name is no path, so the ids are ours to read. An id behind
    the dataset's path is one as well. Where questions of one run are named, the others are not asked.
    """
    if not plans:
        return ()
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []
        return tuple(plans)
    mine: dict[str, list[str]] = {plan.name: [] for plan in plans}
    others: list[str] = []
    for arg in config.args:
        word, _, item = arg.partition("::")
        named = next((plan for plan in plans if _names_run(word, plan, config)), None)
        (mine[named.name] if named is not None else others).append(item if named is not None else arg)
    config.args = others
    if not any(mine.values()):
        return tuple(plans)
    picked = []
    for plan in plans:
        items = mine[plan.name]
        chosen = None if items and not all(items) else frozenset(items)
        plan.require(chosen or ())
        picked.append(replace(plan, picked=chosen))
    return tuple(picked)


def _names_run(word: str, plan: Plan, config: pytest.Config) -> bool:
    if word == plan.name:
        return True
    try:
        return plan.path is not None and (config.invocation_params.dir / word).samefile(plan.path)
    except (OSError, ValueError):
        return False
