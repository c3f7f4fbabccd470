"""The summary of a session with many runs: one table, and what needs a look."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.manyruns import many_runs_lines, total_of
from pytest_simpleqa.records import Verdict
from pytest_simpleqa.report import Report
from pytest_simpleqa.wording import columns
from tests.test_terminal import failed, report_of, row, texts


def run(name: str, *verdicts: Verdict, **values: Any) -> Report:
    return replace(report_of([row(n, verdict) for n, verdict in enumerate(verdicts, 1)], name=name), **values)


RUNS = (
    run("capitals.dev.v0", Verdict.CORRECT, Verdict.INCORRECT),
    run("a-very-long-name-of-an-eval-that-no-screen-holds.dev.v0", Verdict.CORRECT, Verdict.NOT_ATTEMPTED),
    run("tone.dev.v0", Verdict.RECORDED, Verdict.RECORDED, metrics={"score": 0.25}),
)


def lines(*reports: Report, **values: Any) -> list[str]:
    return texts(many_runs_lines(reports or RUNS, **{"width": 100, **values}))


def test_each_run_is_one_line_of_the_table() -> None:
    """Every run has a row, under the one of all together."""
    table = lines()
    assert table[1].split()[0] == "run"
    assert table[2].split() == ["all", "runs", "6", "2", "1", "1", "2", ".500", ".667", "-"]
    assert table[3].split() == ["capitals.dev.v0", "2", "1", "1", "0", "0", ".500", ".500", "-"]
    assert table[5].split() == ["tone.dev.v0", "2", "0", "0", "0", "2", "-", "-", "0.25"]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_row_is_wider_than_the_screen(width: int) -> None:
    """Names are cut, then columns go; what is told is never broken by the terminal."""
    assert all(columns(line) <= width for line in lines(width=width))


def test_failures_have_columns_and_their_reasons() -> None:
    """Judge failures and errors are counted per run where there are any, with the usual reasons below."""
    rows = [row(1, Verdict.CORRECT), failed(2, "http_500", "no luck"), failed(3, "judge_unreadable", "hm", "Paris")]
    text = "\n".join(lines(report_of(rows), *RUNS, rows=rows))
    assert "judge" in text.splitlines()[0]
    assert "1 judge failure, 1 error" in text
    assert "1 http_500: no luck" in text


def test_only_gates_that_have_not_passed_are_told_one_by_one() -> None:
    """A gate that fails stands there under the name of its run; the others are a number."""
    fail = run("bad.dev.v0", Verdict.INCORRECT, gates=({"expression": "accuracy >= 1", "verdict": "fail"},))
    good = run("good.dev.v0", Verdict.CORRECT, gates=({"expression": "accuracy >= 1", "verdict": "pass"},))
    text = "\n".join(lines(fail, good))
    assert "bad.dev.v0: gate accuracy >= 1: fail" in text
    assert "1 gate passed" in text
    assert "good.dev.v0: gate" not in text


def test_incomplete_runs_are_named_with_the_way_on() -> None:
    """Runs that lack results are named, and the command that goes on with all of them stands there once."""
    text = "\n".join(lines(*RUNS, replace(RUNS[0], selected=5, population=5), resume="pytest --resume"))
    assert "incomplete: 1 run: capitals.dev.v0" in text
    assert text.count("go on with: pytest --resume") == 1


def test_very_quiet_is_one_line() -> None:
    """-qq leaves one line for all runs, with gates that stand in no Report."""
    assert lines(verbosity=-2) == ["3 runs: 6 of 6 questions, accuracy .500, attempted .667"]
    assert lines(verbosity=-2, left_open=["gate a: undecided"])[0].endswith("attempted .667, 1 gate undecided")


def test_gates_without_a_report_stand_below_the_others() -> None:
    """A gate that a run without a result leaves open is told where the gates are."""
    good = run("good.dev.v0", Verdict.CORRECT, gates=({"expression": "accuracy >= 1", "verdict": "pass"},))
    table = lines(good, RUNS[0], left_open=["gate accuracy >= 1: undecided: no question of lost has a result"])
    at = table.index("1 gate passed")
    assert table[at + 1] == "gate accuracy >= 1: undecided: no question of lost has a result"


def test_wrong_answers_of_all_runs_are_listed() -> None:
    """The first wrong answers stand at the end with their node ids; not under -q, nor behind pages of their own."""
    wrong = [("a.csv::q0001", row(1)), ("b.csv::q0002", row(2))]
    assert any(line.startswith("b.csv::q0002  ") for line in lines(wrong=wrong))
    for verbosity in (-1, 1):
        assert not any("q0002" in line for line in lines(wrong=wrong, verbosity=verbosity))


def test_what_is_known_of_single_runs_keeps_their_name() -> None:
    """A judge that is not to be trusted is told under the name of its run, as are results ahead of pytest."""
    checks = [{"kind": "other_gold", "wanted": "incorrect", "verdict": None}] * 3
    bad = {"n": 20, "failed": 3, "allowed": 2, "failed_checks": checks, "by_kind": {}}
    text = "\n".join(lines(replace(RUNS[0], sentinels=bad), replace(RUNS[1], population=9), ahead=2))
    assert "capitals.dev.v0: the judge failed 3 of 20 sentinels" in text
    assert "  2 answered ahead of pytest" in text


def test_the_runs_directory_is_named_once() -> None:
    """All runs of a session lie in one directory, which is named."""
    text = "\n".join(lines(run_dirs=[Path("kept/a"), Path("kept/b")]))
    assert text.count("kept") == 1


def test_counts_of_runs_add_up() -> None:
    """The total is that of all rows."""
    assert (total_of(RUNS).n, total_of(RUNS).recorded, total_of(()).n) == (6, 2, 0)
