"""What the registries hold: evals as a list, one of them in full, and the classes that run them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import SimpleQAError, SpecError
from .evals.build import CLASSES, data_address
from .evals.data import count_samples, find_data
from .evals.refused import why_refused
from .evals.registry import EvalSpec, Registry
from .textline import Line
from .wording import many, visible


@dataclass(frozen=True)
class Listed:
    """One eval as the list shows it."""

    name: str
    class_path: str | None
    samples: int | None
    """None where they cannot be counted without fetching or parsing them."""
    reason: str | None
    """Why it cannot be run here; None where nothing is known to speak against it."""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "class": self.class_path, "samples": self.samples, "reason": self.reason}


def list_evals(registry: Registry, pattern: str, base: Path) -> list[Listed]:
    """Return the evals whose full name or alias fits `pattern`, where `*` stands for anything.

    Data files are counted by their lines: nothing is parsed, fetched or imported. Raises SpecError where none fits.
    """
    listed = [_listed(registry, name, base) for name in registry.matching(pattern)]
    if not listed:
        raise SpecError(_why_none(registry, pattern))
    return listed


def _why_none(registry: Registry, pattern: str) -> str:
    """Return why the list is empty, and what to type: a pattern that fits nothing, or registries without an eval."""
    places = ", ".join(map(str, registry.dirs)) or "any registry"
    if registry.matching("*"):
        return f"no eval fits {pattern!r} in {places}; without a pattern simpleqa evals list shows them all"
    return f"there is no eval in {places}; say where your registry lies: --registry-path DIR"


def _listed(registry: Registry, name: str, base: Path) -> Listed:
    try:
        spec = registry.eval(name)
    except SimpleQAError as error:
        return Listed(name, None, None, str(error))
    samples, reason = _looked_at(spec, registry, base)
    return Listed(name, spec.class_path, samples, reason)


def _looked_at(spec: EvalSpec, registry: Registry, base: Path) -> tuple[int | None, str | None]:
    """Return how many samples an eval has and why it cannot be run, each None where that is not known."""
    reason = why_refused(spec.class_path, spec.args)
    address = data_address(spec.class_path, spec.args)
    if reason is not None or address is None or "://" in address:
        return None, reason
    try:
        return count_samples(find_data(address, (spec.registry_dir, *registry.dirs), base)), None
    except SimpleQAError as error:
        return None, str(error)


def list_lines(listed: Sequence[Listed]) -> Iterator[Line]:
    """Yield the list: an eval a line, and how many of them run."""
    names = max((len(each.name) for each in listed), default=0)
    classes = max((len(_short(each.class_path)) for each in listed), default=0)
    for each in listed:
        said = each.reason or ("" if each.samples is None else many(each.samples, "sample"))
        start = f"{each.name:<{names}}  {_short(each.class_path):<{classes}}  "
        yield Line((((visible(start)), {}), (visible(said), {"yellow": each.reason is not None})))
    refused = sum(each.reason is not None for each in listed)
    yield Line.of(f"{many(len(listed), 'eval')}: {len(listed) - refused:,} run, {refused:,} cannot", bold=True)


def class_lines(listed: Sequence[Listed]) -> Iterator[Line]:
    """Yield a line per class: its evals, how many of them run, and why the others cannot."""
    width = max((len(_short(each.class_path)) for each in listed), default=0)
    yield Line.of(f"{'class':<{width}}  evals    run  why the others cannot", bold=True)
    for name, count in Counter(_short(each.class_path) for each in listed).most_common():
        ones = [each for each in listed if _short(each.class_path) == name]
        reasons = list(dict.fromkeys(each.reason for each in ones if each.reason))
        runs = sum(each.reason is None for each in ones)
        yield Line.of(visible(f"{name:<{width}}  {count:>5,}  {runs:>5,}  {'; '.join(reasons)}".rstrip()))


def _short(class_path: str | None) -> str:
    """Return the class without its module, where it is one of OpenAI Evals'."""
    if class_path is None:
        return "?"
    known = class_path in CLASSES or why_refused(class_path, {}) is not None
    return class_path.partition(":")[2] if known else class_path


def show_lines(registry: Registry, name: str, base: Path) -> Iterator[Line]:
    """Yield what the registries say of an eval or, where there is none of that name, of an eval set.

    Raises SpecError.
    """
    if not registry.has_eval(name) and registry.has_eval_set(name):
        yield Line.of(visible(f"{name}: an eval set"), bold=True)
        for member in registry.eval_set(name):
            yield Line.of(visible(f"  {member}"))
        return
    spec = registry.eval(name)
    samples, reason = _looked_at(spec, registry, base)
    address = data_address(spec.class_path, spec.args)
    said = {
        "aliases": ", ".join(registry.aliases[spec.name]),
        "class": spec.class_path,
        "args": json.dumps(spec.args, ensure_ascii=False, default=str),
        "file": str(registry.file_of(name)),
        "samples": ", ".join(filter(None, [address, None if samples is None else many(samples, "sample")])),
        "metrics": ", ".join(spec.metrics),
        "description": spec.description or "",
        "cannot run": reason or "",
    }
    yield Line.of(visible(spec.name), bold=True)
    for key, text in said.items():
        if text:
            yield Line.of(f"  {key:<12} {visible(text)}")
