"""Tests of --simpleqa-resume: what is asked again, what is refused, and two sessions at one run."""

from __future__ import annotations

import fcntl
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.errors import RunError
from pytest_simpleqa.resume import difference, find_run, resume_command
from pytest_simpleqa.rundisk import write_run_json

from .small_run import error_line, run_dirs  # small_run also imports what cannot be imported twice

EXAM = """
import json
import time
from pathlib import Path

HERE = Path(__file__).parent


def note(role, number):
    with (HERE / "calls.txt").open("a") as file:
        file.write(f"{role} {number}\\n")
    if (HERE / "slow").exists():
        time.sleep(0.1)
    path = HERE / "broken.txt"
    return f"{role} {number}" in (path.read_text().splitlines() if path.exists() else [])


def answer(prompt, **params):
    number = prompt.split()[-1]
    if note("answer", number):
        raise RuntimeError("no answer today")
    return f"say {number}"


def judge(prompt, **params):
    number = prompt.rpartition("Predicted answer: say ")[2].split()[0]
    if note("judge", number):
        return "Honestly I am not sure"
    return "ABC"[int(number) % 3]


other_answer, other_judge = answer, judge
"""
"""A model and a judge that note each call and fail where `broken.txt` says so, by role and number."""


class Exam:
    """Six questions, and sessions that put them to `EXAM`."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.write(6)
        (self.path / "exam.py").write_text(EXAM)

    def write(self, rows: int) -> None:
        """Write the dataset."""
        lines = (f"Question {number},gold {number},Art\n" for number in range(1, rows + 1))
        (self.path / "exam.csv").write_text("problem,answer,topic\n" + "".join(lines))

    def break_(self, *what: str) -> None:
        """Let only these fail from now on, such as `answer 3` and `judge 2`."""
        (self.path / "broken.txt").write_text("".join(f"{each}\n" for each in what))

    def args(self, *args: str, answer: str = "python:exam:answer", judge: str = "python:exam:judge") -> list[str]:
        """Return the arguments of a session."""
        return ["--simpleqa-dataset=exam.csv", f"--answer-llm={answer}", f"--judge-llm={judge}", *args]

    def run(self, *args: str, **models: str) -> pytest.RunResult:
        """Run a session in this process."""
        return self.pytester.runpytest_inprocess(*self.args(*args, **models))

    def resume(self, *args: str, **models: str) -> pytest.RunResult:
        """Go on with the latest run."""
        return self.run("--simpleqa-resume=latest", *args, **models)

    def spawn(self, *args: str) -> subprocess.Popen[str]:
        """Start a session in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *self.args(*args)],
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def calls(self) -> list[str]:
        """Return what was asked since the last look, sorted."""
        path = self.path / "calls.txt"
        found = sorted(path.read_text().splitlines()) if path.exists() else []
        path.unlink(missing_ok=True)
        return found

    @property
    def run_dir(self) -> Path:
        """The directory of the only run."""
        (only,) = run_dirs(self.path)
        return only

    @property
    def report(self) -> dict[str, Any]:
        """The Report of the only run."""
        report: dict[str, Any] = json.loads((self.run_dir / "report.json").read_text())
        return report

    def cut(self, keep: Callable[[Mapping[str, Any]], bool]) -> None:
        """Leave only those lines of results, and no Report: what a kill leaves behind."""
        for path in self.run_dir.glob("results*.jsonl"):
            lines = [line for line in path.read_text().splitlines() if line and keep(json.loads(line))]
            path.write_text("".join(f"{line}\n" for line in lines))
        (self.run_dir / "report.json").unlink()


@pytest.fixture
def exam(pytester: pytest.Pytester) -> Exam:
    return Exam(pytester)


def untimed(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Report without what differs from one session to the next."""
    timed = ("started_at", "duration_ms", "usage", "resumed", "samples")
    rows = [{name: value for name, value in row.items() if name != "latency_s"} for row in report["samples"]]
    return {**{name: value for name, value in report.items() if name not in timed}, "samples": rows}


# --- what is asked again -----------------------------------------------------------------------


def test_only_missing_and_failed_rows_are_asked(exam: Exam) -> None:
    """A row without an answer is asked and judged, one without a verdict only judged, a finished one left alone."""
    exam.break_("answer 3", "judge 5")
    exam.run()
    exam.cut(lambda line: line["id"] != "q0002")
    exam.calls()
    exam.break_()
    assert exam.resume().ret == 1
    assert exam.calls() == ["answer 2", "answer 3", "judge 2", "judge 3", "judge 5"]
    resumed = exam.report
    assert (resumed["n"], resumed["complete"], resumed["errors"], resumed["judge_failures"]) == (6, True, 0, 0)


def test_a_resumed_run_reports_what_an_unbroken_one_does(exam: Exam) -> None:
    """The Report of a resumed run is that of an unbroken one, and says how often it was resumed."""
    exam.run()
    unbroken = exam.report
    assert unbroken["resumed"] == 0
    exam.cut(lambda line: line["kind"] == "answer" and line["id"] < "q0005")
    exam.resume()
    assert exam.report["resumed"] == 1
    assert untimed(exam.report) == untimed(unbroken)
    assert exam.report["usage"]["answer"]["calls"] == unbroken["usage"]["answer"]["calls"]


def test_a_complete_run_costs_nothing_again(exam: Exam) -> None:
    """Resumed once complete, a run makes no call and ends with the same status and last line."""
    first = exam.run()
    exam.calls()
    for times in (1, 2):
        again = exam.resume()
        assert again.ret == first.ret == 1
        assert again.outlines[-1].rpartition(" in ")[0] == first.outlines[-1].rpartition(" in ")[0]
        assert exam.calls() == []
        assert exam.report["resumed"] == times


@pytest.mark.parametrize("modes", [((), ("-n2",)), (("-n2",), ())], ids=["bare then n2", "n2 then bare"])
def test_a_run_may_be_resumed_with_other_workers(exam: Exam, modes: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    """What one session has written is known to the next, whatever its number of processes."""
    exam.break_("answer 3", "judge 5")
    exam.spawn(*modes[0]).communicate(timeout=60)
    exam.calls()
    exam.break_()
    exam.spawn("--simpleqa-resume=latest", *modes[1]).communicate(timeout=60)
    assert exam.calls() == ["answer 3", "judge 3", "judge 5"]
    assert exam.report["complete"]
    exam.spawn("--simpleqa-resume=latest", *modes[0]).communicate(timeout=60)
    assert exam.calls() == []
    assert exam.report["resumed"] == 2


def test_more_rows_of_the_same_dataset_may_be_asked(exam: Exam) -> None:
    """A run of the first rows is widened by resuming it with a larger limit: only the new rows are asked."""
    exam.run("--simpleqa-limit=2")
    exam.calls()
    exam.resume("--simpleqa-limit=4")
    assert exam.calls() == ["answer 3", "answer 4", "judge 3", "judge 4"]
    assert (exam.report["population"], exam.report["n"]) == (4, 4)


def test_an_error_that_returns_is_the_last_one(exam: Exam) -> None:
    """A row that fails again is in the Report with what it said now."""
    exam.break_("answer 3")
    exam.run()
    exam.break_("judge 3")
    exam.resume()
    assert exam.report["errors"] == 0
    assert exam.report["judge_failures"] == 1
    row = exam.report["samples"][2]
    assert (row["predicted"], row["error"]["kind"]) == ("say 3", "judge_unreadable")


def test_a_torn_last_line_is_dropped_with_a_warning(exam: Exam) -> None:
    """A line that a kill has cut is said to be dropped, and its row asked again; the lines around it count."""
    exam.run()
    path = exam.run_dir / "results.jsonl"
    whole = path.read_bytes().rstrip().split(b"\n")
    path.write_bytes(b"\n".join([*whole[:-1], whole[-1][: len(whole[-1]) // 2]]))
    exam.calls()
    result = exam.resume()
    assert len(exam.calls()) == 1
    assert exam.report["complete"]
    result.stdout.fnmatch_lines(["warning: results.jsonl, line * is torn and was dropped"])
    exam.resume()
    assert exam.calls() == []


# --- which run ---------------------------------------------------------------------------------


def test_a_run_is_found_by_its_name_or_its_path(exam: Exam) -> None:
    """The name of a run, and the path of its directory, lead to it."""
    exam.run()
    exam.calls()
    for word in (exam.run_dir.name, str(exam.run_dir), str(exam.run_dir.relative_to(exam.path))):
        assert exam.run(f"--simpleqa-resume={word}").ret == 1
    assert exam.calls() == []
    assert exam.report["resumed"] == 3


def test_auto_starts_afresh_where_there_is_nothing_to_go_on_with(exam: Exam) -> None:
    """`auto` makes a run where there is none, goes on with an unfinished one, and starts afresh after a whole one."""
    exam.break_("answer 3")
    exam.run("--simpleqa-resume=auto")
    assert exam.report["resumed"] == 0
    exam.break_()
    exam.calls()
    exam.run("--simpleqa-resume=auto")
    assert exam.calls() == ["answer 3", "judge 3"]
    assert exam.report["resumed"] == 1
    exam.run("--simpleqa-resume=auto")
    assert len(exam.calls()) == 12
    assert len(run_dirs(exam.path)) == 2


def test_auto_passes_over_other_runs(exam: Exam) -> None:
    """`auto` leaves an unfinished run of another model alone."""
    exam.break_("answer 3")
    exam.run()
    exam.run("--simpleqa-resume=auto", answer="python:exam:other_answer")
    assert len(run_dirs(exam.path)) == 2


@pytest.mark.parametrize("word", ["latest", "20200101T000000-no-such"])
def test_a_run_that_is_not_there_is_refused(exam: Exam, word: str) -> None:
    """An unknown run, or `latest` where there is none, is one line and exit 4 before any question."""
    result = exam.run(f"--simpleqa-resume={word}")
    assert result.ret == 4
    assert f"--simpleqa-resume {word}" in error_line(result)
    assert exam.calls() == []


def test_a_run_killed_before_it_was_described_is_passed_over(exam: Exam) -> None:
    """`latest` does not mean a directory whose run.json was never finished."""
    exam.run()
    broken = exam.path / ".simpleqa" / "99990101T000000-exam-x"
    broken.mkdir()
    (broken / "run.json").write_text('{"v": 1, "dat')
    exam.calls()
    assert exam.resume().ret == 1
    assert exam.calls() == []


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "models", "named"),
    [
        ((), {"answer": "python:exam:other_answer"}, "answer spec"),
        ((), {"judge": "python:exam:other_judge"}, "judge spec"),
        (("--simpleqa-answer-prompt=Please: {question}",), {}, "answer_prompt text"),
        (("--simpleqa-grade-prompt={question} {target} Predicted answer: {predicted_answer}",), {}, "grade_prompt"),
        (("--answer-llm-param=top_p=0.5",), {}, "top_p"),
        (("--judge-llm-param=temperature=1",), {}, "temperature"),
        (("--simpleqa-parse=paper",), {}, "parse"),
        (("--simpleqa-repeats=2",), {}, "repeats"),
    ],
    ids=["model", "judge", "prompt", "grade prompt", "param", "judge param", "parse", "repeats"],
)
def test_another_run_is_refused(exam: Exam, args: tuple[str, ...], models: dict[str, str], named: str) -> None:
    """What asks something else is exit 4 with one line that names the difference, and costs and changes nothing."""
    exam.run()
    before = {path: path.read_bytes() for path in exam.run_dir.iterdir()}
    exam.calls()
    result = exam.resume(*args, **models)
    assert result.ret == 4
    line = error_line(result)
    assert named in line
    assert " then, " in line
    assert exam.calls() == []
    assert {path: path.read_bytes() for path in exam.run_dir.iterdir()} == before


def test_another_dataset_of_the_same_name_is_refused(exam: Exam) -> None:
    """A dataset whose bytes have changed is another one."""
    exam.run()
    exam.calls()
    exam.write(7)
    result = exam.resume()
    assert result.ret == 4
    assert "dataset sha256" in error_line(result)
    assert exam.calls() == []


def test_what_is_no_part_of_the_question_may_change(exam: Exam) -> None:
    """Concurrency, timeout, progress and the size of the Report are a session's own."""
    exam.run()
    exam.calls()
    args = ("--simpleqa-concurrency=2", "--simpleqa-timeout=5", "--simpleqa-progress-pct=0", "--simpleqa-max-samples=1")
    assert exam.resume(*args).ret == 1
    assert exam.calls() == []
    assert len(exam.report["samples"]) == 1


def test_a_missing_part_is_a_difference() -> None:
    """A run.json that says more or less than the other is another run."""
    assert difference({"answer": {"spec": "a"}}, {"answer": {"spec": "a", "model": "m"}}) is not None
    assert difference({"answer": {"spec": "a", "model": "m"}}, {"answer": {"spec": "a"}}) is not None
    assert difference({"answer": {"spec": "a"}}, {"answer": {"spec": "a"}}) is None


def test_a_session_of_several_runs_is_gone_on_with_run_by_run(tmp_path: Path) -> None:
    """The first runs of it that are taken up bear the new session's name already, and lead to the others still."""
    for run in ("one", "two", "three"):
        (tmp_path / run).mkdir()
        write_run_json(tmp_path / run, {"run": run, "session": "old", "started_at": run})
    for run in ("one", "two", "three"):
        for word in ("one", "latest", "auto"):
            assert find_run(word, tmp_path, tmp_path, {"run": run}, alone=False) == tmp_path / run
        old = {"run": run, "session": "new", "earlier_session": "old", "started_at": run}
        write_run_json(tmp_path / run, old)
    assert find_run("latest", tmp_path, tmp_path, {"run": "four"}, alone=False) is None
    assert find_run("two", tmp_path, tmp_path, {"run": "four"}, alone=True) == tmp_path / "two"
    assert difference({"run": "two"}, {"run": "four", "options": {}}) == 'run: "two" then, "four" now'


def test_what_is_finished_counts_among_no_calls(exam: Exam) -> None:
    """The line before a resumed run tells what is finished, and what the rest takes: answered is only judged."""
    exam.break_("answer 2", "judge 3")
    assert exam.run("-q").ret == 1
    exam.break_()
    lines = exam.resume("-q").outlines
    wanted = "6 questions to python:exam:answer, judged by python:exam:judge, 4 finished already: at least 3 calls"
    assert wanted in lines
    assert exam.calls()


def test_a_refusal_names_the_way_that_loses_nothing(exam: Exam) -> None:
    """A run that asked something else is refused with `auto`, which finds the one that is meant."""
    exam.run()
    assert "--simpleqa-resume=auto" in error_line(exam.resume("--simpleqa-repeats=2"))


def test_a_command_goes_on_with_one_run() -> None:
    """The command is what was typed, with the run's name in place of an earlier --simpleqa-resume."""
    for typed in (("a b", "--simpleqa-resume", "auto", "-q"), ("a b", "--simpleqa-resume=x", "-q")):
        assert resume_command(typed, "run-1") == "pytest 'a b' -q --simpleqa-resume=run-1"


def test_find_run_says_where_it_looked(tmp_path: Path) -> None:
    """The error of an unknown run names the directory of runs."""
    with pytest.raises(RunError, match=r"no run of that name in .*runs"):
        find_run("nothing", tmp_path / "runs", tmp_path, {})


# --- the printed command -----------------------------------------------------------------------


def test_the_printed_command_resumes_the_run(exam: Exam) -> None:
    """A run that ends incomplete prints a command that, pasted into a shell, finishes it."""
    (exam.path / "conftest.py").write_text(
        "from pathlib import Path\n\nimport pytest\n\nseen = []\n\n\n"
        "def pytest_simpleqa_result(result):\n"
        "    seen.append(result)\n"
        "    if len(seen) == 2 and not Path('again').exists():\n"
        "        pytest.exit('enough')\n"
    )
    (exam.path / "slow").touch()
    prompt = '--simpleqa-answer-prompt=It\'s "urgent": {question}'
    first = exam.run(prompt, "--simpleqa-concurrency=1", "--simpleqa-resume", "auto")
    assert first.ret == 2
    (line,) = [line for line in first.outlines if line.startswith("go on with: ")]
    words = shlex.split(line.removeprefix("go on with: "))
    assert words[0] == "pytest"
    (exam.path / "slow").rename(exam.path / "again")
    exam.calls()
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=exam.path, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    assert done.returncode == 1, done.stdout
    assert 0 < len(exam.calls()) <= 9
    assert exam.report["complete"]
    assert exam.report["resumed"] == 1


# --- two sessions at one run -------------------------------------------------------------------


def test_a_second_session_waits_for_the_first(exam: Exam) -> None:
    """A run that is resumed while it is still being asked is gone on with when that has ended: all is paid once."""
    exam.write(12)
    (exam.path / "slow").touch()
    first = exam.spawn("--simpleqa-concurrency=1")
    deadline = time.monotonic() + 30
    while not run_dirs(exam.path) and time.monotonic() < deadline:
        time.sleep(0.02)
    second = exam.spawn("--simpleqa-resume=latest", "--simpleqa-concurrency=1")
    third = exam.spawn("--simpleqa-resume=latest", "--simpleqa-concurrency=1")
    for process in (first, second, third):
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 1, output
    assert len(exam.calls()) == 24
    assert exam.report["complete"]
    assert exam.report["resumed"] == 2


def test_a_run_in_other_hands_is_refused(exam: Exam, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the other session does not end, exit 4 says that it is still there."""
    exam.run()
    exam.calls()
    monkeypatch.setattr("pytest_simpleqa.resume.WAIT_S", 0.2)  # a person's patience, not a test's
    with (exam.run_dir / "results.jsonl").open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        result = exam.resume()
    assert result.ret == 4
    assert "another process is still writing this run" in error_line(result)
    assert exam.calls() == []


# --- a disk that is full -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])
def test_a_full_disk_ends_the_run_cleanly(exam: Exam, mode: tuple[str, ...]) -> None:
    """Where no line can be written any more the run stops with one message; what was written is not asked again."""
    exam.write(40)
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (6000, resource.RLIM_INFINITY))\n"
    (exam.path / "conftest.py").write_text(limit)
    process = exam.spawn("--simpleqa-concurrency=2", *mode)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    told = [line for line in output.splitlines() if "results" in line and "cannot be written" in line]
    assert len(told) == 1, output
    assert not {"INTERNALERROR", "Traceback", "FAILURES"} & set(output.split()), output
    (exam.path / "conftest.py").unlink()
    lines = [json.loads(line) for path in exam.run_dir.glob("results*") for line in whole_lines(path)]
    kept = {("answer" if line["kind"] == "answer" else "judge", line["id"][-2:].lstrip("0")) for line in lines}
    assert len(kept) > 10
    exam.calls()
    assert exam.resume().ret == 1
    assert not kept & {tuple(call.split()) for call in exam.calls()}
    assert exam.report["complete"]


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file that end."""
    return [line for line in path.read_text().split("\n")[:-1] if line]
