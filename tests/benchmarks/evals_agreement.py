"""Holds the basic templates against the real `evals` package, sample by sample, on the same made-up completions.

    python tests/benchmarks/evals_agreement.py --python OTHER/bin/python [--samples 60] [--seed 1] [NAME...]

`--python` is that of an environment with the `evals` package (3.0.1 and what it imports). Without names 30 evals of
its registry are drawn over the template classes. The completions are a seeded mix of right, nearly right and wrong
ones, made of the ideals. Exit status 1 where a difference has no known reason.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_simpleqa.engine import Engine
from pytest_simpleqa.errors import SimpleQAError
from pytest_simpleqa.evals.build import CLASSES, build_eval
from pytest_simpleqa.evals.protocol import Eval
from pytest_simpleqa.evals.registry import EvalSpec, Registry
from pytest_simpleqa.models.protocol import Answerer
from pytest_simpleqa.models.shapes import as_text
from pytest_simpleqa.records import Prompt, Question, QuestionResult, Reply, Verdict
from pytest_simpleqa.stage import Ask, Stage

DRAWN = {"Match": 11, "Includes": 9, "FuzzyMatch": 7, "JsonMatch": 3}
"""How many evals of each class are drawn."""
SHUFFLE_SEED = 123
"""By which the package picks the samples of a run that takes but some."""

_ASKED: ContextVar[str] = ContextVar("asked")


class Recorded:
    """A model that says what was made up for the sample that is asked; keeps prompts and parameters."""

    max_in_flight: int | None = None
    is_service = False

    def __init__(self, completions: Mapping[str, str]) -> None:
        self.completions = completions
        self.sent: dict[str, tuple[Prompt, Mapping[str, Any]]] = {}

    async def complete(self, prompt: Prompt) -> Reply:
        return await self.complete_with(prompt, {})

    async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        index = _ASKED.get()
        self.sent[index] = (prompt, params)
        return Reply(self.completions[index])

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "recorded", "model": "recorded", "base_url_host": None, "params": {}}


class Announcing:
    """The eval's answerer, telling the model which sample is asked."""

    is_service = False
    max_in_flight: int | None = None

    def __init__(self, inner: Answerer) -> None:
        self._inner = inner
        self.close, self.describe = inner.close, inner.describe

    async def answer(self, question: Question, repeat: int) -> Reply:
        _ASKED.set(str(int(question.id) - 1))
        return await self._inner.answer(question, repeat)


def made_up(ideals: Sequence[str], others: Sequence[str], draw: random.Random) -> str:
    """Return a completion that is right, nearly right or wrong."""
    ideal = draw.choice(ideals) if ideals else ""
    other = draw.choice(others)
    ways: Sequence[Callable[[], str]] = (
        lambda: ideal,
        lambda: ideal,
        lambda: f"{ideal}.",
        lambda: f"{ideal}\n\nThat is why.",
        lambda: f" {ideal}",
        lambda: f"The answer is {ideal}",
        lambda: f"**{ideal}**",
        lambda: ideal.lower(),
        lambda: ideal.upper(),
        lambda: ideal.strip(),
        lambda: ideal[:-1],
        lambda: ideal[len(ideal) // 2 :],
        lambda: f"the {ideal}!",
        lambda: f"a {ideal.replace(' ', '  ')}",
        lambda: ideal.replace(",", "").replace("-", ""),
        lambda: other,
        lambda: other,
        lambda: f"{other} or {ideal}",
        lambda: reordered(ideal, draw),
        lambda: reordered(ideal, draw, broken=True),
        lambda: "I do not know.",
        lambda: draw.choice(("", "\n", "the", "?")),
    )
    return draw.choice(ways)()


def reordered(text: str, draw: random.Random, *, broken: bool = False) -> str:
    """Return JSON with its keys in another order, or with one value changed; any other text turned round."""
    try:
        value = json.loads(text)
    except ValueError:
        return " ".join(reversed(text.split(" ")))
    if isinstance(value, dict) and value:
        items = list(value.items())
        draw.shuffle(items)
        value = dict(items)
        if broken:
            value[items[0][0]] = draw.choice((None, "other", []))
    return json.dumps(value, indent=draw.choice((None, 2)), ensure_ascii=draw.random() < 0.5)


def picked(count: int, most: int) -> list[int]:
    """Return the indices of the samples that the package takes when it is told to take `most`."""
    order = list(range(count))
    random.Random(SHUFFLE_SEED).shuffle(order)
    return sorted(order[:most])


def plan_of(an_eval: Eval, most: int, seed: int) -> dict[str, Any]:
    """Return what the other side is to run."""
    draw = random.Random(f"{seed}:{an_eval.name}")
    questions = an_eval.dataset.questions
    ideals = [_ideals(question) for question in questions]
    others = [each for some in ideals[:500] for each in some] or [""]
    chosen = picked(len(questions), most)
    completions = {str(index): made_up(ideals[index], others, draw) for index in chosen}
    return {"name": an_eval.name, "most": most, "completions": completions}


def _ideals(question: Question) -> list[str]:
    ideal = question.metadata["sample"].get("ideal", [])
    return ideal if isinstance(ideal, list) else [ideal]


def ours(
    spec: EvalSpec, registry: Registry, completions: Mapping[str, str]
) -> tuple[Eval, Recorded, list[QuestionResult]]:
    """Return our eval and its results on the recorded completions."""
    model = Recorded(completions)
    an_eval = build_eval(spec, registry, [model])
    chosen = [question for question in an_eval.dataset if str(int(question.id) - 1) in completions]
    an_eval = replace(an_eval, dataset=replace(an_eval.dataset, questions=tuple(chosen)))
    engine = Engine({"": Stage(Announcing(an_eval.answerer), an_eval.judge, 0)}, concurrency=8)
    try:
        asks = [Ask(question) for question in chosen]
        engine.offer(asks)
        return an_eval, model, [engine.result(ask) for ask in asks]
    finally:
        engine.close()


def compare(an_eval: Eval, model: Recorded, results: Sequence[QuestionResult], real: Mapping[str, Any]) -> Counter[str]:
    """Count rows by how the two sides differ; prints the rows that differ in a way that has no known reason."""
    found: Counter[str] = Counter()
    for result in results:
        index = str(int(result.id) - 1)
        row = real["rows"].get(index, {})
        prompt, params = model.sent[index]
        said = model.completions[index]
        differs = []
        if row.get("prompt") != prompt and row.get("prompt") != as_text(prompt):
            differs.append("prompt")
        if row.get("params") != params:
            differs.append(f"parameters {row.get('params')} {params}")
        if row.get("correct") is not (result.verdict is Verdict.CORRECT):
            differs.append("verdict")
        if "f1_score" in row and abs(row["f1_score"] - (result.extra or {}).get("f1_score", 0.0)) > 1e-12:
            differs.append("f1_score")
        found["rows"] += 1
        found["right"] += bool(row.get("correct"))
        if not said.strip():
            found["blank"] += 1
            found["blank, right there"] += bool(row.get("correct"))
        elif differs:
            found["unexplained"] += 1
            print(
                f"  {an_eval.name} sample {index}: {', '.join(differs)}: {said[:80]!r} {result.gold[:80]!r} {row}"[:600]
            )
    return found


def built(spec: EvalSpec, registry: Registry) -> Eval | None:
    """Return our eval; None, with a line that says why, where its samples cannot be read."""
    try:
        return build_eval(spec, registry, [Recorded({})], judge=Recorded({}))
    except SimpleQAError as error:
        print(f"left out: {error}")
        return None


def drawn(registry: Registry, seed: int, counts: Mapping[str, int] = DRAWN) -> list[str]:
    """Return names of so many evals of each template class whose samples can be read and that want a single model."""
    wanted, names = dict(counts), sorted(registry.matching("*"))
    random.Random(seed).shuffle(names)
    chosen: dict[str, None] = {}
    for name in names:
        spec = registry.eval(name)
        template = spec.class_path.rpartition(":")[2]
        is_wanted = wanted.get(template, 0) and spec.class_path in CLASSES and spec.name not in chosen
        if is_wanted and spec.args.get("multicomp_n") != "from_models" and built(spec, registry):
            wanted[template] -= 1
            chosen[spec.name] = None
    return list(chosen)


def real_side(python: str, plans: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the package makes of the plans."""
    done = subprocess.run(
        [python, str(Path(__file__).with_name("evals_real.py"))],
        input=json.dumps({"evals": plans}),
        capture_output=True,
        text=True,
        env={**os.environ, "OPENAI_API_KEY": "none", "EVALS_SHOW_EVAL_PROGRESS": "", "EVALS_SEQUENTIAL": "1"},
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def registry_of(python: str) -> Path:
    """Return the registry of the package in that environment."""
    code = "import importlib.util as u; print(u.find_spec('evals').submodule_search_locations[0])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()) / "registry"


def main() -> None:
    """Compare, print a row for each eval, and exit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--python", required=True)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    registry = Registry([registry_of(said.python)])
    names = said.names or drawn(registry, said.seed)
    evals = (built(registry.eval(name), registry) for name in names)
    plans = [plan_of(an_eval, said.samples, said.seed) for an_eval in evals if an_eval is not None]
    real = real_side(said.python, plans)
    total: Counter[str] = Counter()
    for plan in plans:
        spec = registry.eval(plan["name"])
        an_eval, model, results = ours(spec, registry, plan["completions"])
        theirs = real[spec.name]
        found = compare(an_eval, model, results, theirs)
        total += found
        template = spec.class_path.rpartition(":")[2]
        scores = {key: None if value is None else round(value, 4) for key, value in an_eval.metrics(results).items()}
        report = {key: round(value, 4) for key, value in (theirs["report"] or {}).items()}
        print(f"{template:12} {spec.name:60.60} {dict(found)} ours {scores} real {theirs['error'] or report}")
    print(f"{len(plans)} evals: {dict(total)}")
    sys.exit(1 if total["unexplained"] else 0)


if __name__ == "__main__":
    main()
