"""Holds whole pytest sessions over evals against the real `evals` package, sample by sample, on made-up completions.

    python tests/benchmarks/evals_sessions.py --python OTHER/bin/python [--samples 40] [--seed 1] [NAME...]

As `evals_agreement.py`, but from outside: 30 evals over the five template classes run in one session, their samples
named by node id, and what stands in the Reports is compared. Replies of the judge are made up too, of the choices of
each model-graded spec. Exit status 1 where a difference has no known reason.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_simpleqa.evals.build import build_eval
from pytest_simpleqa.evals.choicejudge import ChoiceJudge
from pytest_simpleqa.evals.protocol import Eval
from pytest_simpleqa.evals.registry import Registry
from pytest_simpleqa.models.shapes import as_text
from pytest_simpleqa.records import Prompt, Reply
from tests.benchmarks import evals_agreement as basic

DRAWN = {"Match": 7, "Includes": 6, "FuzzyMatch": 5, "JsonMatch": 2, "ModelBasedClassify": 10}
REPLIES = (
    "{choice}",
    "I weigh it up.\n\n{choice}\n{choice}",
    "**{choice}**",
    "First one thing.\nThen another.\nThe answer is {choice}.",
    "Answer: {choice}",
    "{choice}.\nReasons follow.",
    "It cannot be told from what is given.",
)
"""What a judge may say; the last makes no choice."""
MODEL = """
import json
from pathlib import Path

SAID = json.loads((Path(__file__).parent / "said.json").read_text(encoding="utf-8"))


def answer(prompt):
    return SAID["answers"][prompt]


def judge(prompt):
    return SAID["replies"][prompt]
"""


class Saying:
    """A model that says one thing, and keeps the prompts as text."""

    max_in_flight: int | None = None
    is_service = True

    def __init__(self) -> None:
        self.says = ""
        self.prompts: list[str] = []

    async def complete(self, prompt: Prompt) -> Reply:
        self.prompts.append(as_text(prompt))
        return Reply(self.says)

    async def close(self) -> None: ...

    def describe(self) -> Mapping[str, Any]:
        return {"provider": "saying", "model": "saying", "base_url_host": None, "params": {}}


class Made:
    """One eval with what is made up for its samples: completions and replies by index, from 0, as JSON has them."""

    def __init__(self, an_eval: Eval, answerer: Saying, judge: Saying, most: int, seed: int) -> None:
        self.eval, self._answerer, self._judge = an_eval, answerer, judge
        self.plan = basic.plan_of(an_eval, most, seed)
        self.choices = an_eval.judge.grading.choices if isinstance(an_eval.judge, ChoiceJudge) else ()
        draw = random.Random(f"{seed}:{an_eval.name}:judge")
        self.plan["replies"] = {
            index: draw.choice(REPLIES).format(choice=draw.choice(self.choices)) if self.choices else ""
            for index in self.plan["completions"]
        }

    async def learn(self, answers: dict[str, str], replies: dict[str, str]) -> None:
        """Enter what each prompt is told; a prompt that has stood somewhere before is told the same again."""
        completions, said = self.plan["completions"], self.plan["replies"]
        questions = self.eval.dataset.questions
        for index in completions:
            question = questions[int(index)]
            self._answerer.prompts, self._answerer.says = [], completions[index]
            await self.eval.answerer.answer(question, 1)
            known = next(
                (answers[prompt] for prompt in self._answerer.prompts if prompt in answers), completions[index]
            )
            completions[index] = self._answerer.says = known
            answers |= dict.fromkeys(self._answerer.prompts, known)
            if self.choices:
                reply = await self.eval.answerer.answer(question, 1)
                self._judge.prompts, self._judge.says = [], said[index]
                await self.eval.judge.judge(question, reply.text, self._judge.complete, 1)
                said[index] = next(
                    (replies[prompt] for prompt in self._judge.prompts if prompt in replies), said[index]
                )
                replies |= dict.fromkeys(self._judge.prompts, said[index])


def session(made: Sequence[Made], registry: Path, said: Mapping[str, Any], extra: Sequence[str]) -> dict[str, Any]:
    """Run one pytest session over all of them, and return the Reports by name."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "recorded.py").write_text(MODEL, encoding="utf-8")
        (home / "said.json").write_text(json.dumps(said), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", f"--simpleqa-registry-path={registry}"]
        command += [f"--simpleqa-eval={each.eval.name}" for each in made]
        command += ["--answer-llm=python:recorded:answer", "--judge-llm=python:recorded:judge"]
        command += ["--simpleqa-max-samples=-1", "--simpleqa-fail-on=none", *extra]
        command += [f"{each.eval.name}::{int(index) + 1}" for each in made for index in each.plan["completions"]]
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
        print(*done.stdout.splitlines()[-1:], done.stderr[-1500:])
        reports = [json.loads(path.read_text(encoding="utf-8")) for path in home.glob(".simpleqa/*/report.json")]
    return {report["name"]: report for report in reports}


def compare(made: Made, report: Mapping[str, Any], real: Mapping[str, Any]) -> Counter[str]:
    """Count rows by how the two sides differ; prints the rows that differ in a way that has no known reason."""
    found: Counter[str] = Counter()
    for sample in report["samples"]:
        index = str(int(sample["id"]) - 1)
        row = real["rows"].get(index, {})
        found["rows"] += 1
        if not made.plan["completions"][index].strip() and sample["verdict"] == "not_attempted":
            found["blank answers"] += 1
        elif made.choices:
            choice = (sample.get("extra") or {}).get("choice")
            if row.get("choice") == "__invalid__" and sample["verdict"] is None:
                found["no choice on either side"] += 1
            elif choice != row.get("choice"):
                reply = made.plan["replies"][index]
                is_known = reply == f"Answer: {choice}" and reply.startswith(str(row.get("choice")))
                found["a choice found inside a word there" if is_known else "unexplained"] += 1
                print(f"  {made.eval.name} {index}: ours {choice!r}, real {row.get('choice')!r}: {reply!r}")
        elif row.get("correct") is not (sample["verdict"] == "correct"):
            found["unexplained"] += 1
            print(f"  {made.eval.name} {index}: ours {sample['verdict']}, real {row!r}"[:400])
    if found["rows"] != len(made.plan["completions"]):
        found["unexplained"] += 1
        print(f"  {made.eval.name}: {found['rows']} rows of {len(made.plan['completions'])}")
    return found


def main() -> None:
    """Compare, print a row for each eval, and exit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--python", required=True)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0, help="as many of pytest-xdist")
    given = parser.parse_args()
    place = basic.registry_of(given.python)
    registry = Registry([place])
    answerer, judge = Saying(), Saying()
    made = [
        Made(
            build_eval(registry.eval(name), registry, [answerer], judge=judge),
            answerer,
            judge,
            given.samples,
            given.seed,
        )
        for name in given.names or basic.drawn(registry, given.seed, DRAWN)
    ]
    said: dict[str, dict[str, str]] = {"answers": {}, "replies": {}}
    for each in made:
        asyncio.run(each.learn(said["answers"], said["replies"]))
    real = basic.real_side(given.python, [each.plan for each in made])
    reports = session(made, place, said, ["-n", str(given.workers)] if given.workers else [])
    total: Counter[str] = Counter()
    for each in made:
        found = compare(each, reports[each.eval.name], real[each.eval.name])
        total += found
        theirs = real[each.eval.name]["error"] or real[each.eval.name]["report"]
        print(f"{each.eval.name:60.60} {dict(found)} ours {reports[each.eval.name]['metrics']} real {theirs}")
    print(f"{len(made)} evals: {dict(total)}")
    sys.exit(1 if total["unexplained"] else 0)


if __name__ == "__main__":
    main()
