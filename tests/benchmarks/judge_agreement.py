"""How far the `rules` judge agrees with recorded verdicts: `python tests/benchmarks/judge_agreement.py FILE...`.

Reads CSV (also `.gz`) with the columns `problem, target, predicted_answer, grade`, and JSON runs whose
`systems` hold records of `question, target, prediction, grade`. Prints one block for each run.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_simpleqa.judges.rules import judge_by_rules
from pytest_simpleqa.records import Verdict

_GRADES = {"A": Verdict.CORRECT, "B": Verdict.INCORRECT, "C": Verdict.NOT_ATTEMPTED}


@dataclass(frozen=True, slots=True)
class Row:
    """A recorded answer with the verdict it was given."""

    question: str
    gold: str
    predicted: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two judges on the same rows."""

    pairs: Counter[tuple[Verdict, Verdict]]
    """How often (recorded, by rules) came up."""
    seconds: float

    @property
    def n(self) -> int:
        return self.pairs.total()

    @property
    def agreement(self) -> float:
        """The share of rows with equal verdicts."""
        return sum(count for (one, other), count in self.pairs.items() if one is other) / self.n

    @property
    def kappa(self) -> float:
        """Cohen's kappa: agreement beyond chance, 1 at most (Cohen 1960)."""
        ours, theirs = self._margin(1), self._margin(0)
        chance = sum(ours[verdict] * theirs[verdict] for verdict in Verdict) / self.n**2
        return (self.agreement - chance) / (1 - chance) if chance < 1 else 1.0

    @property
    def recall(self) -> float:
        """The share of the recorded `correct` that the rules find."""
        return self.pairs[Verdict.CORRECT, Verdict.CORRECT] / max(1, self._margin(0)[Verdict.CORRECT])

    @property
    def precision(self) -> float:
        """The share of the rules' `correct` that the record confirms."""
        return self.pairs[Verdict.CORRECT, Verdict.CORRECT] / max(1, self._margin(1)[Verdict.CORRECT])

    def _margin(self, side: int) -> Counter[Verdict]:
        margin: Counter[Verdict] = Counter()
        for pair, count in self.pairs.items():
            margin[pair[side]] += count
        return margin


def read_runs(path: Path) -> Iterator[tuple[str, list[Row]]]:
    """Yield each run of a file as its name and rows."""
    if path.suffix == ".json":
        for name, system in json.loads(path.read_text(encoding="utf-8"))["systems"].items():
            yield (
                f"{path.name} {name}",
                [
                    Row(row["question"], row["target"], row["prediction"], Verdict(row["grade"].lower()))
                    for row in system["records"]
                ],
            )
        return
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if not {"problem", "target", "predicted_answer", "grade"} <= set(rows.fieldnames or ()):
        raise SystemExit(f"{path.name}: wanted the columns problem, target, predicted_answer, grade")
    yield (
        path.name,
        [
            Row(row["problem"], row["target"], row["predicted_answer"], _GRADES[row["grade"]])
            for row in rows
            if row["grade"] in _GRADES
        ],
    )


def compare(rows: Iterable[Row]) -> Agreement:
    """Grade every row by the rules and count the pairs."""
    start = time.perf_counter()
    pairs = Counter((row.verdict, judge_by_rules(row.question, row.gold, row.predicted)) for row in rows)
    return Agreement(pairs, time.perf_counter() - start)


def main(paths: list[str]) -> None:
    """Print the agreement on each file."""
    for path in paths:
        for name, rows in read_runs(Path(path)):
            result = compare(rows)
            print(
                f"{name}: n {result.n}, agreement {result.agreement:.4f}, kappa {result.kappa:.3f}, "
                f"recall of correct {result.recall:.3f}, precision of correct {result.precision:.3f}, "
                f"{1000 * result.seconds / result.n:.3f} ms a row"
            )
            print(f"  {'recorded':<15}" + "".join(f"{'rules: ' + verdict.value:>22}" for verdict in Verdict))
            for recorded in Verdict:
                print(f"  {recorded.value:<15}" + "".join(f"{result.pairs[recorded, ours]:>22}" for ours in Verdict))


if __name__ == "__main__":
    main(sys.argv[1:])
