"""From an eval's description to an eval that can be asked: which template its class means, and its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import SpecError
from ..models.protocol import Model
from .data import Samples, read_samples
from .protocol import Building, Eval, Template
from .refused import why_refused
from .registry import EvalSpec, Registry

DEFAULT_SEED = 20220722
"""That of OpenAI Evals, so that seeded evals draw the same numbers."""


@dataclass(frozen=True)
class _Class:
    """A class of OpenAI Evals, and the template of ours that stands in for it."""

    module: str
    """The module of ours with the template; loaded when an eval needs it."""
    template: str
    needs: tuple[str, ...] = ()
    """What every sample must have."""
    samples: str | None = None
    """The address of the samples, where the eval names none."""
    data_argument: str = "samples_jsonl"
    """The argument that holds the address of the samples."""

    def load(self) -> Template:
        template: Template = getattr(import_module(f".{self.module}", __package__), self.template)
        return template


_ASKED = ("input", "ideal")
CLASSES: Mapping[str, _Class] = {
    "evals.elsuite.basic.match:Match": _Class("templates", "match", _ASKED),
    "evals.elsuite.basic.includes:Includes": _Class("templates", "includes", _ASKED),
    "evals.elsuite.basic.fuzzy_match:FuzzyMatch": _Class("templates", "fuzzy_match", _ASKED),
    "evals.elsuite.basic.json_match:JsonMatch": _Class("templates", "json_match", _ASKED),
    "evals.elsuite.basic.json_validator:JsonValidator": _Class("templates", "json_validator", ("input",)),
    "evals.elsuite.test.match:TestMatch": _Class("templates", "match", _ASKED, "test_match/samples.jsonl"),
    "evals.elsuite.multiple_choice:MultipleChoice": _Class(
        "multiplechoice", "multiple_choice", data_argument="dataset"
    ),
    "evals.elsuite.modelgraded.classify:ModelBasedClassify": _Class("modelgraded", "make"),
}
"""What the classes that a registry names are here; every other one is code of the user's."""
_IN_CODE = _Class("custom", "make")


def build_eval(
    spec: EvalSpec,
    registry: Registry,
    completion: Sequence[Model],
    *,
    seed: int = DEFAULT_SEED,
    params: Mapping[str, Any] | None = None,
    limit: int = 0,
    judge: Model | None = None,
    judge_params: Mapping[str, Any] | None = None,
    base: Path | None = None,
    samples: Samples | None = None,
) -> Eval:
    """Return the eval that `spec` describes, its samples read; nothing is asked yet.

    `params` are laid over the `args` of the registry; of the samples the first `limit` are kept, 0 = all. `samples`
    are those that an earlier call for the same eval has kept. Raises SimpleQAError in one line for an eval that
    cannot be run here, and for whatever is wrong with it.
    """
    args = {**spec.args, **(params or {})}
    reason = why_refused(spec.class_path, args)
    if reason is not None:
        raise SpecError(f"{spec.name} cannot be run here: {reason}")
    home = base or Path.cwd()
    around = Building(
        models=tuple(completion),
        registry=registry,
        read=partial(read_samples, registries=(spec.registry_dir, *registry.dirs), base=home),
        seed=seed,
        judge=judge,
        judge_params=judge_params or {},
        base=home,
        limit=limit,
    )
    known = CLASSES.get(spec.class_path, _IN_CODE)
    if samples is None:
        samples = _samples(spec, args, known, around)
        samples = samples.first(limit) if limit else samples
    return replace(known.load()(spec, args, samples, around), samples=samples)


def data_address(class_path: str, args: Mapping[str, Any]) -> str | None:
    """Return the address of an eval's samples; None where its args name none."""
    known = CLASSES.get(class_path, _IN_CODE)
    address = args.get(known.data_argument, known.samples)
    return None if address is None else str(address)


def _samples(spec: EvalSpec, args: Mapping[str, Any], known: _Class, around: Building) -> Samples:
    address = data_address(spec.class_path, args)
    if address is None:
        if known is _IN_CODE:
            return Samples()
        raise SpecError(f"{spec.name}: its args name no samples; {known.data_argument}, an address, was wanted")
    samples = around.read(address)
    samples.require(*known.needs)
    return samples
