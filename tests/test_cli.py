"""The `simpleqa` command: reporting and comparing runs that have ended."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_simpleqa.reportfile import write_report

from .kept import Command, command, write_dataset, write_run
from .letters import run


@pytest.fixture
def simpleqa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    write_dataset(tmp_path, 6)
    return command(tmp_path, monkeypatch, capsys)


def written(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return content


# -- the command ----------------------------------------------------------------------------------


def test_without_arguments_it_prints_help(simpleqa: Command) -> None:
    """Whoever types the bare name sees what can be typed."""
    status, out, err = simpleqa()
    assert (status, err) == (0, "")
    assert all(word in out for word in ("report", "compare", "merge", "judge-check"))


def test_it_tells_its_version(simpleqa: Command) -> None:
    """`--version` names the package."""
    with pytest.raises(SystemExit) as ended:
        simpleqa("--version")
    assert ended.value.code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["rport"], "invalid choice: 'rport'"),
        (["report"], "the following arguments are required: RUN"),
        (["report", "nowhere"], "nowhere: there is no such file, and no run of that name in .simpleqa"),
        (["report", "small.csv"], "small.csv"),
        (["report", "a\x1b[31mb"], "a\\x1b[31mb: there is no such file"),
        (["compare", "small.csv"], "the following arguments are required: NEW"),
        (["report", "x", "--max-failures", "40"], "'40': wanted a number from 0 to 1"),
        (["judge-check", "small.csv", "--judge-llm", "rules", "--limit", "0"], "wanted a whole number of at least 1"),
    ],
)
def test_a_mistake_is_one_line(simpleqa: Command, args: list[str], said: str) -> None:
    """What is typed wrong is told in one line, exit 4, without a traceback."""
    assert said in simpleqa.error(*args)


def test_it_is_installed(tmp_path: Path) -> None:
    """The command runs as a process of its own, in plain text, with the mistake on standard error."""
    code = "import sys; from pytest_simpleqa.cli import main; sys.exit(main(['report', 'nowhere']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("simpleqa: nowhere")


# -- report ---------------------------------------------------------------------------------------


def test_report_builds_the_report_again(simpleqa: Command, tmp_path: Path) -> None:
    """From the run's lines and the dataset comes the Report that the session wrote."""
    folder = write_run(tmp_path, "ABCA?!")
    before = written(folder / "report.json")
    status, out, err = simpleqa("report", folder.name)
    assert (status, err) == (0, "")
    assert re.search("all questions +6 ", out)
    again = written(folder / "report.json")
    assert {key for key in before if before[key] != again[key]} <= {"usage", "samples", "provenance"}


def test_report_rebuilds_what_a_kill_left(simpleqa: Command, tmp_path: Path) -> None:
    """A run killed before its Report is told from its lines; what is missing makes it incomplete."""
    folder = write_run(tmp_path, "AB..CA", report=False)
    status, out, _ = simpleqa("report", folder, "--gate", "accuracy >= 0.1")
    assert status == 6
    assert "incomplete: 4 of 6 questions have a result" in out
    assert written(folder / "report.json")["exit_status"] == 6


def test_report_tells_how_to_go_on(simpleqa: Command, tmp_path: Path) -> None:
    """An incomplete run whose command line was written down is told with the command that goes on with it."""
    write_dataset(tmp_path, 6)
    run = write_run(tmp_path, "ABCA..", report=False, typed=["--answer-llm", "m", "--simpleqa-answer-prompt=a b"])
    command = f"pytest --answer-llm m '--simpleqa-answer-prompt=a b' --simpleqa-resume={run.name}"
    assert f"go on with: {command}" in simpleqa("report", str(run))[1]


def test_report_needs_the_dataset_where_there_is_no_report(simpleqa: Command, tmp_path: Path) -> None:
    """Lines hold no golds, so a killed run whose dataset is gone asks for it by name."""
    folder = write_run(tmp_path, "ABCA?!", report=False)
    (tmp_path / "small.csv").rename(tmp_path / "elsewhere.csv")
    assert "small.csv is not here; add --dataset=FILE" in simpleqa.error("report", folder)
    assert simpleqa("report", folder, "--dataset=elsewhere.csv")[0] == 0


def test_report_refuses_another_dataset(simpleqa: Command, tmp_path: Path) -> None:
    """A file of the same name with other bytes is no dataset of the run."""
    folder = write_run(tmp_path, "ABCA?!", report=False)
    write_dataset(tmp_path, 7)
    assert "is not here" in simpleqa.error("report", folder)
    assert "was asked another file" in simpleqa.error("report", folder, "--dataset=small.csv")


def test_report_stands_by_what_was_written(simpleqa: Command, tmp_path: Path) -> None:
    """Without the dataset the written Report is printed, with a note, and left alone."""
    folder = write_run(tmp_path, "ABCA?!")
    (tmp_path / "small.csv").unlink()
    before = (folder / "report.json").read_bytes()
    status, out, err = simpleqa("report", folder)
    assert status == 0
    assert re.search("all questions +6 ", out)
    assert "small.csv is not here, so the Report is as it was written" in err
    assert (folder / "report.json").read_bytes() == before


def test_report_refuses_a_report_older_than_its_lines(simpleqa: Command, tmp_path: Path) -> None:
    """A resumed run that was killed has lines that its Report does not know: no number is told from it."""
    folder = write_run(tmp_path, "ABCA?!")
    write_report(run("AB....")[0], folder / "report.json")
    (tmp_path / "small.csv").unlink()
    assert "report.json is older than the run's lines" in simpleqa.error("report", folder)


def test_report_reads_a_report_alone(simpleqa: Command, tmp_path: Path) -> None:
    """A Report without its run is printed and not written over."""
    write_report(run("AABC")[0], tmp_path / "last month.json")
    status, out, _ = simpleqa("report", "last month.json", "--gate", "accuracy >= 0.6")
    assert status == 1
    assert "gate accuracy >= 0.6: fail" in out
    assert written(tmp_path / "last month.json")["gates"] == []


def test_report_gives_the_document(simpleqa: Command, tmp_path: Path) -> None:
    """With `--out -` standard output is the Report alone, and with a file the run stays as it is."""
    folder = write_run(tmp_path, "ABCA?!")
    before = (folder / "report.json").read_bytes()
    status, out, err = simpleqa("report", folder, "--out", "-")
    assert (status, json.loads(out)["n"]) == (0, 6)
    assert "all questions" in err
    simpleqa("report", folder, "--out", "copy.json", "--gate", "accuracy > 0")
    assert (folder / "report.json").read_bytes() == before
    assert written(tmp_path / "copy.json")["exit_status"] == 6


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        (["accuracy >= 0.3"], 0),
        (["accuracy >= 0.9"], 1),
        (["accuracy >= 0.3", "accuracy >= 0.9"], 1),
        (["accuracy >= baseline - 0.05"], 6),
        (["topic[Music].accuracy >= 0.1"], 0),
    ],
)
def test_report_decides_gates(simpleqa: Command, tmp_path: Path, gates: list[str], status: int) -> None:
    """Gates on a run that has ended exit as under pytest, and stand in the Report."""
    folder = write_run(tmp_path, "ABCABB")
    before = write_run(tmp_path, "AABBBB", model="old")
    options = [text for gate in gates for text in ("--gate", gate)]
    assert simpleqa("report", folder, *options, "--baseline", before)[0] == status
    kept = written(folder / "report.json")
    assert kept["exit_status"] == status
    assert isinstance(kept["comparison"], dict)


def test_report_keeps_what_was_decided(simpleqa: Command, tmp_path: Path) -> None:
    """Printed again without a gate, a run exits by the gates that its Report holds."""
    folder = write_run(tmp_path, "ABCABB")
    assert simpleqa("report", folder, "--gate", "accuracy >= 0.9")[0] == 1
    status, out, _ = simpleqa("report", folder)
    assert status == 1
    assert "gate accuracy >= 0.9: fail" in out


def test_report_decides_again_what_was_decided_on_less(simpleqa: Command, tmp_path: Path) -> None:
    """Gates of a Report that is older than its lines are decided on all lines."""
    folder = write_run(tmp_path, "ABCABB")
    report, _ = run("AA....", gates=({"expression": "accuracy >= 0.9", "verdict": "pass"},))
    write_report(report, folder / "report.json")
    status, out, _ = simpleqa("report", folder)
    assert status == 1
    assert "gate accuracy >= 0.9: fail" in out


def test_a_gate_that_cannot_be_decided_is_a_mistake(simpleqa: Command, tmp_path: Path) -> None:
    """A gate without its baseline, of another run or of no grammar exits 4 and names the option."""
    folder = write_run(tmp_path, "ABCABB")
    assert "--baseline=FILE" in simpleqa.error("report", folder, "--gate", "accuracy >= baseline")
    other = ("--gate", "accuracy >= 0", "--gate", "other: accuracy >= 0.1")
    assert "there is no run 'other'; this one is 'small.csv'" in simpleqa.error("report", folder, *other)
    assert simpleqa.error("report", folder, "--gate", "acc >= 1").startswith("--gate 'acc >= 1': column 1")


# -- compare --------------------------------------------------------------------------------------


def test_compare_puts_runs_side_by_side(simpleqa: Command, tmp_path: Path) -> None:
    """Both models, the difference, McNemar's test, the flips and every regression are told on 80 columns."""
    before = write_run(tmp_path, "AAABBC", model="old")
    now = write_run(tmp_path, "AABCAA", model="new")
    status, out, err = simpleqa("compare", before, now)
    assert (status, err) == (0, "")
    assert f"new compared with old ({before.name}, judged by rules), on the same 6 questions" in " ".join(out.split())
    assert "right answers: 2 won, 1 lost" in out
    assert "  correct to incorrect            1" in out
    assert "1 regression\nq0003  Question 3?  gold: gold 3  before: said A  now: said B" in out
    assert all(len(line) <= 80 for line in out.split("\n"))
    assert "\x1b" not in out


def test_compare_tells_how_questions_differ(simpleqa: Command, tmp_path: Path) -> None:
    """Rows of one run alone and changed golds are counted, not compared."""
    write_report(run("AAAA")[0], tmp_path / "old.json")
    text = "problem,answer,predicted,grade\nQuestion 1?,gold 1,x,A\nQuestion 2?,new gold,x,A\nQuestion 9?,gold 9,x,B\n"
    (tmp_path / "new.csv").write_text(text, encoding="utf-8")
    out = simpleqa("compare", "old.json", "new.csv")[1]
    assert "on the same 1 question " in " ".join(out.split())
    assert "the questions differ: 1 only here, 2 only there, 1 changed gold" in out


def test_compare_of_strangers_says_so(simpleqa: Command, tmp_path: Path) -> None:
    """Runs without a common question have nothing to compare: one line and exit status 4, with a gate or without."""
    write_report(run("AAAA")[0], tmp_path / "old.json")
    (tmp_path / "new.csv").write_text("problem,answer,predicted,grade\nWho?,me,x,A\n", encoding="utf-8")
    for more in ([], ["--gate", "accuracy >= baseline"], ["--markdown"]):
        error = simpleqa.error("compare", "old.json", "new.csv", *more)
        assert error == "old.json and new.csv have no question in common"
    (tmp_path / "other.csv").write_text("problem,answer,predicted,grade\nQuestion 1?,x,x,A\n", encoding="utf-8")
    assert "in common; 1 question with another gold" in simpleqa.error("compare", "old.json", "other.csv")


def test_latest_is_the_newest_run(simpleqa: Command, tmp_path: Path) -> None:
    """`latest` names the newest run in .simpleqa for every command; without one that is said."""
    assert "latest: there is no run in " in simpleqa.error("report", "latest")
    old = write_run(tmp_path, "AAABAA", model="old", started_at="2026-11-30T11:00:00+00:00")
    new = write_run(tmp_path, "AABBAA", started_at="2026-11-30T12:00:00+00:00")
    status, out, _ = simpleqa("report", "latest")
    assert status == 0
    assert new.name in out
    assert "correct to incorrect            1" in simpleqa("compare", old.name, "latest")[1]


def test_compare_shows_the_texts_that_a_recording_has(simpleqa: Command, tmp_path: Path) -> None:
    """A regression between recordings without ids or golds still names its question."""
    for name, grades in (("old", "AA"), ("new", "AB")):
        rows = "".join(f"What is {i}?,x,{grade}\n" for i, grade in enumerate(grades, start=1))
        (tmp_path / f"{name}.csv").write_text(f"problem,predicted,grade\n{rows}", encoding="utf-8")
    assert "What is 2?  before: x  now: x" in simpleqa("compare", "old.csv", "new.csv")[1]


def test_compare_decides_gates(simpleqa: Command, shared_data: Path) -> None:
    """The larger model passes against the smaller one, the smaller one fails, a run equals itself."""
    large, small = (shared_data / "runs" / f"{name}.csv.gz" for name in ("gpt-4o-2024-11-20", "gpt-4o-mini-2024-07-18"))
    gate = ("--gate", "accuracy >= baseline - 0.02")
    status, out, _ = simpleqa("compare", small, large, *gate)
    assert status == 0
    assert "+.231   +.216 to +.245" in out
    assert simpleqa("compare", large, small, *gate)[0] == 1
    status, out, _ = simpleqa("compare", large, large, *gate)
    assert status == 0
    assert "right answers: 0 won, 0 lost" in out


def test_compare_reads_questions_where_a_recording_has_none(simpleqa: Command, tmp_path: Path) -> None:
    """The dataset lends a recording its golds and topics, so that regressions can be read."""
    for name, grades in (("old", "AAAAAA"), ("new", "ABAAAA")):
        rows = "".join(f"Question {i}?,x,{grade}\n" for i, grade in enumerate(grades, start=1))
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(f"problem,predicted,grade\n{rows}".encode()))
    out = simpleqa("compare", "old.csv.gz", "new.csv.gz", "--dataset", "small.csv")[1]
    assert "q0002  Question 2?  gold: gold 2  before: x  now: x" in out
    assert "accuracy by topic" in out


def test_compare_in_markdown_acts_on_nothing(simpleqa: Command, tmp_path: Path) -> None:
    """No text of a model or a dataset mentions anybody, ends a cell or opens a tag in a comment."""
    before = write_run(tmp_path, "AAABBC", model="old")
    evil = "@octocat | <b>`x`</b> [a](http://e.org)\n| #1 --> :tada: **bold**"
    now = write_run(tmp_path, "AABCAA", model="<script>", said={3: evil})
    status, out, _ = simpleqa("compare", before, now, "--markdown", "--gate", "accuracy >= 0.9")
    assert status == 1
    assert "| correct to incorrect | 1 |" in out
    assert "- ❌ **fail**" in out
    (row,) = [line for line in out.split("\n") if "octocat" in line]
    assert row.count("|") == 6
    for text in ("@octocat", "<b>", "`x`", "http://", "#1 ", "**bold", "<script>", ":tada:"):
        assert text not in out
    assert "&#64;octocat" in out


def test_colours_are_for_terminals(simpleqa: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets colours, unless NO_COLOR is set."""
    folder = write_run(tmp_path, "ABCABB")
    monkeypatch.setattr("pytest_simpleqa.cli._is_terminal", lambda stream: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1m" in simpleqa("report", folder)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in simpleqa("report", folder)[1]
