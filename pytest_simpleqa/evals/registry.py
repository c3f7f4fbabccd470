"""A registry of evals: what its YAML files name, and what stands behind a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class EvalSpec:
    """One eval, as its registry describes it."""

    name: str
    """The full name, behind every alias: `coqa-match.dev.v0`."""
    group: str
    """The name up to its first dot: `coqa-match`."""
    class_path: str
    """What runs it, as `module:Class`."""
    args: Mapping[str, Any] = field(default_factory=dict)
    registry_dir: Path = field(default_factory=Path)
    """The registry that it stands in; its data lie in `data/` below."""
    description: str | None = None
    metrics: tuple[str, ...] = ()
    """The metrics that its alias names as the ones to look at."""


class Registry:
    """Evals and what belongs to them, in one or several directories."""
