"""A small dataset with recorded answers, and pytest sessions over it: what the tests above the line run."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TOPICS = ("Art", "TV shows", "中国文化")
TYPES = ("Date", "Person")
RECORDED = "replay:recorded.jsonl"

ANSWERER = '''
import time
from pathlib import Path

HERE = Path(__file__).parent
WORDS = {}  # what is said to a question, where that is no answer of the ordinary kind


def answer(prompt):
    """Answer, and note that it was asked."""
    with (HERE / "asked.txt").open("a", encoding="utf-8") as file:
        file.write(prompt + "\\n")
    time.sleep(float((HERE / "delay.txt").read_text()) if (HERE / "delay.txt").exists() else 0)
    return "I say " + prompt
'''
"""A module `answerer` that counts what it is asked."""


def patient(seconds: float) -> float:
    """Return `seconds`, or more where the machine has more to do than it has processors."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 1.0
    return seconds * max(1.0, 2 * load / (os.cpu_count() or 1))


@dataclass
class Session:
    """One pytest session that has ended."""

    status: int
    lines: list[str]
    """Standard output."""
    errors: str
    """Standard error."""
    report: dict[str, Any] | None
    """The Report of the session's run; None where none was written."""
    run_dir: Path | None
    seconds: float

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def last(self) -> str:
        """pytest's last line without its frame and its time."""
        return self.lines[-1].strip("= ").rsplit(" in ", 1)[0] if self.lines else ""

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """Correct, incorrect, not attempted, judge failures, errors."""
        assert self.report is not None, self.text + self.errors
        names = ("correct", "incorrect", "not_attempted", "judge_failures", "errors")
        correct, incorrect, not_attempted, judge_failures, errors = (self.report[name] for name in names)
        return correct, incorrect, not_attempted, judge_failures, errors

    @property
    def progress(self) -> tuple[int, int, int, bool]:
        """Population, selected, rows with a result, and whether the run is complete."""
        assert self.report is not None, self.text + self.errors
        return self.report["population"], self.report["selected"], self.report["n"], self.report["complete"]

    @property
    def results(self) -> list[dict[str, Any]]:
        """All lines of all files of results."""
        assert self.run_dir is not None
        files = sorted(self.run_dir.glob("results*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().split("\n") if line]


class Quiz:
    """A folder with `quiz.csv`, and sessions in it.

    One letter a row: `A` correct, `B` incorrect, `C` not attempted, `?` judge failure, `!` answer error.
    """

    def __init__(self, pytester: pytest.Pytester, verdicts: str = "ABCA?!") -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.environment: dict[str, str] = {}
        """Variables of sessions in a process of their own."""
        self._old: set[Path] = set()
        self.write(verdicts)
        (self.path / "answerer.py").write_text(ANSWERER, encoding="utf-8")

    def write(self, verdicts: str, predicted: Mapping[int, str] | None = None) -> None:
        """Write the dataset, and what was recorded of it; `predicted` by row, from 1."""
        rows = []
        for number, verdict in enumerate(verdicts, start=1):
            said = (predicted or {}).get(number, "" if verdict == "C" else f"say {number}")
            row = {
                "problem": f"Who did thing {number}?",
                "answer": f"person {number}",
                "topic": TOPICS[number % 3],
                "answer_type": TYPES[number % 2],
            }
            rows.append((row, said, verdict))
        with (self.path / "quiz.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["problem", "answer", "topic", "answer_type"])
            writer.writeheader()
            writer.writerows(row for row, _, _ in rows)
        recorded = [
            {"problem": row["problem"], "predicted": said, "grade": "" if verdict == "?" else verdict}
            for row, said, verdict in rows
            if verdict != "!"
        ]
        with (self.path / "recorded.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in recorded)

    def args(self, *args: str, answer: str = RECORDED) -> list[str]:
        """Return the arguments of a session over the dataset, judged by what was recorded."""
        return ["--simpleqa-dataset=quiz.csv", f"--answer-llm={answer}", f"--judge-llm={RECORDED}", *args]

    def counted(self, *args: str) -> list[str]:
        """Return the arguments of a session whose answers come from `answerer`, which counts."""
        return self.args(*args, answer="python:answerer:answer")

    def run(self, *args: str) -> Session:
        """Put the dataset to what was recorded of it."""
        return self.pytest(*self.args(*args))

    def count(self, *args: str) -> Session:
        """Put the dataset to `answerer`."""
        return self.pytest(*self.counted(*args))

    def pytest(self, *args: str) -> Session:
        """Run a session with these arguments and no others: with workers in a process of its own, else in this one."""
        return self.apart(*args) if any(re.fullmatch("-n[1-9]", arg) for arg in args) else self._inside(*args)

    def apart(self, *args: str) -> Session:
        """Run a session with these arguments in a process of its own."""
        return self.finish(self.start(*args))

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start a session in a process group of its own."""
        self._old = set(self._run_dirs())
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "SIMPLEQA_", "COV_"))},
            "COLUMNS": "80",
            "PYTHONUTF8": "1",
            **self.environment,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *args],
            cwd=self.path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> Session:
        """Wait for a session and gather what it left behind."""
        began = time.monotonic()
        try:
            out, errors = process.communicate(timeout=100)
        finally:
            process.kill()
        return self._session(process.returncode, out.splitlines(), errors, time.monotonic() - began)

    def _inside(self, *args: str) -> Session:
        self._old = set(self._run_dirs())
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "80")
            patch.delenv("PYTEST_XDIST_WORKER", raising=False)
            result = self.pytester.runpytest_inprocess(*args)
        return self._session(int(result.ret), result.outlines, "\n".join(result.errlines), result.duration)

    def _session(self, status: int, lines: list[str], errors: str, seconds: float) -> Session:
        new = [path for path in self._run_dirs() if path not in self._old]
        run_dir = new[-1] if new else None
        written = run_dir / "report.json" if run_dir else None
        report = json.loads(written.read_text(encoding="utf-8")) if written and written.exists() else None
        return Session(status, lines, errors, report, run_dir, seconds)

    def _run_dirs(self) -> Sequence[Path]:
        return sorted(
            (path.parent for path in self.path.glob(".simpleqa/*/run.json")), key=lambda path: path.stat().st_mtime_ns
        )

    @property
    def asked(self) -> list[str]:
        """What `answerer` was asked, in order."""
        path = self.path / "asked.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def file(self, name: str, text: str) -> None:
        """Write a file into the folder."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
