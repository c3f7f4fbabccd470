"""The other side of `evals_agreement.py`: runs evals by the real `evals` package, in its own environment.

Reads `{"evals": [{"name", "most", "completions": {"<index>": text}, "replies": {"<index>": text}}]}` from standard
input, the index from 0 and the judge's replies where a model grades; writes
`{"<name>": {"rows": {"<index>": {"correct", "choice", "f1_score", "prompt", "params"}}, "report", "error"}}`.
"""

from __future__ import annotations

import json
import sys
from typing import Any


class Result:
    """One recorded completion, as the package wants it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_completions(self) -> list[str]:
        return [self._text]


def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Return what the package makes of one eval's recorded completions."""
    import evals.eval
    from evals.base import RunSpec
    from evals.record import RecorderBase, default_recorder
    from evals.registry import Registry

    rows: dict[str, dict[str, Any]] = {}

    def index_now() -> str:
        return str(default_recorder().current_sample_id().rpartition(".")[2])

    def judge(prompt: Any, **params: Any) -> Result:
        return Result(plan["replies"][index_now()])

    def complete(prompt: Any, **params: Any) -> Result:
        index = index_now()
        rows[index] = {"prompt": prompt, "params": params}
        return Result(plan["completions"][index])

    registry = Registry()
    spec = registry.get_eval(plan["name"])
    evals.eval.set_max_samples(plan["most"])
    is_graded = "modelgraded_spec" in (spec.args or {})
    made = registry.get_class(spec)(
        completion_fns=[complete, judge] if is_graded else [complete],
        eval_registry_path=spec.registry_path,
        name=spec.key,
        registry=registry,
    )
    recorder = RecorderBase(RunSpec(["recorded"], spec.key, "", "", {}, created_by=""))
    report, error = None, None
    try:
        report = {key: float(value) for key, value in made.run(recorder).items()}
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    for event in recorder.get_events("match"):
        rows[event.sample_id.rpartition(".")[2]]["correct"] = event.data["correct"]
    for event in recorder.get_events("metrics"):
        row = rows.setdefault(event.sample_id.rpartition(".")[2], {})
        row.update({key: event.data[key] for key in ("f1_score", "choice") if key in event.data})
    return {"rows": rows, "report": report, "error": error}


def main() -> None:
    """Run every eval of the plan."""
    plans = json.load(sys.stdin)["evals"]
    json.dump({plan["name"]: run(plan) for plan in plans}, sys.stdout)


if __name__ == "__main__":
    main()
