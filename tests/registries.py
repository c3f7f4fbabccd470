"""Small registries of evals for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MATCH = "evals.elsuite.basic.match:Match"
SAMPLES = [{"input": "One and one?", "ideal": "two"}, {"input": "Two and two?", "ideal": ["four", "4"]}]


def write_registry(top: Path, files: Mapping[str, str] | None = None, **data: list[Any]) -> Path:
    """Write YAML `files` (`evals/sums.yaml` to its text) and `data` (a name to its samples), and return `top`.

    Without files there is the eval `sums.dev.v0` with the alias `sums`.
    """
    for name, text in (files or {"evals/sums.yaml": an_eval("sums")}).items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, samples in (data or {"sums": SAMPLES}).items():
        write_samples(top / "data" / name / "samples.jsonl", samples)
    return top


def write_samples(path: Path, samples: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")
    return path


def an_eval(name: str, class_path: str = MATCH, **args: Any) -> str:
    """Return the YAML of an eval and its alias; its samples are those of its name."""
    said = json.dumps({"samples_jsonl": f"{name}/samples.jsonl", **args})
    return (
        f"{name}:\n  id: {name}.dev.v0\n  description: About {name}.\n  metrics: [accuracy]\n"
        f"{name}.dev.v0:\n  class: {class_path}\n  args: {said}\n"
    )
