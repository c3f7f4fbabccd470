"""An eval in code, once as OpenAI Evals has it and once as one function; the registry beside it names both.

    pytest --simpleqa-registry-path=evals_custom --simpleqa-eval arithmetic --answer-llm local --judge-llm rules

Copy the folder, and name `arithmetic-function` for the function.
"""

from __future__ import annotations

import random
from typing import Any

import evals
import evals.metrics


class Arithmetic(evals.Eval):
    """Few-shot sums: each sample is asked behind some solved ones, drawn by its own seeded `rng`."""

    def __init__(self, train_jsonl: str, test_jsonl: str, train_samples_per_prompt: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.train_jsonl = train_jsonl
        self.test_jsonl = test_jsonl
        self.train_samples_per_prompt = train_samples_per_prompt

    def run(self, recorder: Any) -> dict[str, float]:
        """Hand over the samples; what is returned stands in the Report."""
        self.train_samples = self._read(self.train_jsonl)
        self.eval_all_samples(recorder, self._read(self.test_jsonl))
        return {"accuracy": evals.metrics.get_accuracy(recorder.get_events("match"))}

    def _read(self, name: str) -> list[dict[str, str]]:
        samples: list[dict[str, str]] = evals.get_jsonl(str(self.eval_registry_path / "data" / name))
        return samples

    def eval_sample(self, sample: dict[str, str], rng: random.Random) -> None:
        """Ask for one sum, and record whether the answer begins with the right number."""
        prompt = [{"role": "system", "content": "Solve the sum. Answer with the number alone."}]
        for shot in rng.sample(self.train_samples, self.train_samples_per_prompt):
            prompt.append({"role": "system", "name": "example_user", "content": shot["problem"]})
            prompt.append({"role": "system", "name": "example_assistant", "content": shot["answer"]})
        prompt.append({"role": "user", "content": sample["problem"]})
        said = self.completion_fn(prompt=prompt, temperature=0.0, max_tokens=4).get_completions()[0]
        evals.record_and_check_match(prompt=prompt, sampled=said.strip(), expected=sample["answer"])


async def check(sample: dict[str, str], model: Any, hint: str = "") -> bool:
    """Ask for one sum; True is correct, False incorrect."""
    said = await model(f"{hint}{sample['problem']}", temperature=0, max_tokens=4)
    return str(said).strip().startswith(sample["answer"])
