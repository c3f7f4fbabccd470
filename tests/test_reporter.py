"""Tests of what a run leaves behind and tells: Report, run directory, hooks, lines on the screen."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from .quiz import Quiz, Session, patient

MODES = pytest.mark.parametrize("mode", [(), ("-n2",)], ids=["bare", "n2"])

RUNS = {
    "gpt-4o-2024-11-20": ((1345, 2904, 77), (0.3109, 0.3165, 0.0178, 0.6713, 0.3137)),
    "gpt-4o-mini-2024-07-18": ((347, 3913, 66), (0.0802, 0.0815, 0.0153, 0.9045, 0.0808)),
}
RATES = ("accuracy", "attempted_accuracy", "abstention_rate", "hallucination_rate", "f_score")


@pytest.fixture
def quiz(pytester: pytest.Pytester) -> Quiz:
    return Quiz(pytester)


# --- recorded runs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "mode"),
    [
        ("gpt-4o-2024-11-20", ()),
        ("gpt-4o-mini-2024-07-18", ()),
        pytest.param("gpt-4o-2024-11-20", ("-n4",), marks=pytest.mark.slow),
    ],
)
def test_recorded_runs_give_their_published_figures(
    quiz: Quiz, shared_data: Path, run: str, mode: tuple[str, ...]
) -> None:
    """A recorded run that is reported again gives its own verdicts and rates, quickly, bare and with four workers."""
    file = shared_data / "runs" / f"{run}.csv.gz"
    recorded = (f"--simpleqa-dataset={file}", f"--answer-llm=replay:{file}", f"--judge-llm=replay:{file}")
    session = quiz.apart(*recorded, "-q", *mode)
    counts, rates = RUNS[run]
    assert session.counts == (*counts, 0, 0)
    assert session.report is not None
    assert [round(session.report[name], 4) for name in RATES] == list(rates)
    assert session.progress == (4326, 4326, 4326, True)
    assert len(session.report["verdicts"]) == 4326
    assert len(session.report["samples"]) == 200
    assert session.report["samples"][0]["id"] == "q0001"
    assert session.last == "{} correct, {} incorrect, {} not attempted".format(*counts)
    assert session.seconds < patient(15)


# --- the run directory -------------------------------------------------------------------------


@MODES
def test_the_run_directory_holds_what_was_asked_and_what_came(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """run.json says what was asked of whom; the results hold each answer before its verdict; all files are ours."""
    quiz.write("ABC")
    session = quiz.count(*mode)
    assert session.run_dir is not None
    assert re.fullmatch(r"\d{8}T\d{6}-quiz\.csv-[\w.]+", session.run_dir.name)
    run = json.loads((session.run_dir / "run.json").read_text())
    assert run["dataset"]["name"] == "quiz.csv"
    assert run["dataset"]["questions"] == 3
    assert re.fullmatch("[0-9a-f]{64}", run["dataset"]["sha256"])
    assert (run["answer"]["spec"], run["judge"]["spec"]) == ("python:answerer:answer", "replay:recorded.jsonl")
    assert run["answer_prompt"]["text"] == "{question}"
    assert set(run["grade_prompt"]) == {"text", "sha256"}
    assert set(run["versions"]) >= {"pytest_simpleqa", "pytest", "python"}
    assert run["options"]["concurrency"] == 32
    lines = session.results
    assert sorted(line["kind"] for line in lines) == ["answer"] * 3 + ["verdict"] * 3
    assert all(line["v"] == 1 and line["repeat"] == 1 for line in lines)
    for number, verdict in enumerate(("correct", "incorrect", "not_attempted"), start=1):
        mine = [line for line in lines if line["id"] == f"q000{number}"]
        assert [line["kind"] for line in mine] == ["answer", "verdict"]
        assert mine[0]["predicted"] == f"I say Who did thing {number}?"
        assert mine[1]["verdict"] == verdict
        assert re.fullmatch("[0-9a-f]{16}-[0-9a-f]{16}", mine[0]["fingerprint"])
    assert not list(session.run_dir.glob("*.tmp"))


def test_errors_stand_in_the_results_too(quiz: Quiz) -> None:
    """A judge failure is an error line behind its answer, an answer error an error line alone."""
    quiz.write("?!A")
    session = quiz.run()
    kinds = [(line["id"], line["kind"]) for line in session.results if line["id"] != "q0003"]
    assert sorted(kinds) == [("q0001", "answer"), ("q0001", "error"), ("q0002", "error")]


def test_results_are_on_disk_before_the_item_is_reported(quiz: Quiz) -> None:
    """When pytest reports an item, its answer and its verdict can be read from disk."""
    quiz.file(
        "conftest.py",
        "from pathlib import Path\n\n"
        "def pytest_runtest_logreport(report):\n"
        "    if report.when == 'call':\n"
        "        [file] = Path('.simpleqa').glob('*/results*.jsonl')\n"
        "        lines = [line for line in file.read_text().splitlines() if report.nodeid[-5:] in line]\n"
        "        assert len(lines) == 2 or report.nodeid.endswith('6'), lines\n",
    )
    assert quiz.run().status == 1


@MODES
def test_the_report_is_written_where_asked_as_well(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """--simpleqa-out gets the same Report as the run directory, once, from the controller."""
    session = quiz.run("--simpleqa-out=reports/out.json", *mode)
    assert json.loads((quiz.path / "reports" / "out.json").read_text()) == session.report
    assert "report  reports/out.json" in session.lines
    assert session.report is not None
    assert session.report["dataset"] == session.report["name"] == "quiz.csv"
    assert (session.report["model"], session.report["judge"]) == ("replay:recorded.jsonl", "replay:recorded.jsonl")
    assert session.report["schema_version"] == 1
    assert set(session.report["per_topic"]) == {"Art", "TV shows", "中国文化"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*(\+00:00|Z)", session.report["started_at"])
    hashes = [row[:3] for row in session.report["verdicts"]]
    assert all(re.fullmatch("[0-9a-f]{16}", row[0]) and row[2] == 1 for row in hashes)
    verdicts = [row[3] for row in session.report["verdicts"]]
    assert verdicts == ["correct", "incorrect", "not_attempted", "correct", None, None]


def test_the_report_on_standard_output(quiz: Quiz) -> None:
    """--simpleqa-out=- prints the Report after everything else, also without a terminal reporter."""
    session = quiz.run("--simpleqa-out=-", "-pno:terminal")
    assert json.loads(session.text) == session.report


def test_the_same_report_in_every_mode(quiz: Quiz) -> None:
    """Bare, with -n0 and with -n2 the Reports differ in times alone."""
    reports = []
    for mode in ((), ("-n0",), ("-n2",)):
        report = quiz.run(*mode).report
        assert report is not None
        for name in ("started_at", "duration_ms", "usage", "provenance"):
            del report[name]
        for sample in report["samples"]:
            del sample["latency_s"]
        reports.append(report)
    assert reports[0] == reports[1] == reports[2]


# --- hooks -------------------------------------------------------------------------------------

LISTENER = """
import json
import os
from pathlib import Path

OUT = Path(__file__).parent / "heard.txt"


def note(*what):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    with OUT.open("a") as file:
        file.write(json.dumps([worker, *what]) + "\\n")


def pytest_simpleqa_result(result):
    note("result", result.id, result.status)


def pytest_simpleqa_event(event):
    note("event", event.kind, dict(event.fields), event.title, event.body, event.time)


def pytest_simpleqa_report(report):
    note("report", report.n, report.exit_status)
"""


@MODES
def test_hooks_are_told_on_the_controller_only(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """Every result, the events in order with strings in their fields, and the Report once: in the reporting process."""
    quiz.file("conftest.py", LISTENER)
    session = quiz.run("--simpleqa-progress-pct=50", *mode)
    assert session.status == 1
    heard = [json.loads(line) for line in (quiz.path / "heard.txt").read_text().splitlines()]
    assert {worker for worker, *_ in heard} == {""}
    results = [(entry[2], entry[3]) for entry in heard if entry[1] == "result"]
    assert len(results) == 6
    assert dict(results) == {
        "q0001": "correct",
        "q0002": "incorrect",
        "q0003": "not_attempted",
        "q0004": "correct",
        "q0005": "judge_failure",
        "q0006": "error",
    }
    events = [entry[2:] for entry in heard if entry[1] == "event"]
    assert [kind for kind, *_ in events] == ["start", "qa_progress", "qa_progress", "done"]
    assert events[0][1] == {
        "dataset": "quiz.csv",
        "n_qs": "6",
        "answer": "replay:recorded.jsonl",
        "judge": "replay:recorded.jsonl",
    }
    assert [event[1] for event in events[1:3]] == [
        {"done": "3", "total": "6", "pct": "50"},
        {"done": "6", "total": "6", "pct": "100"},
    ]
    done = events[3][1]
    assert done.pop("duration")
    assert done == {
        "accuracy": "0.3333",
        "attempted_accuracy": "0.6667",
        "abstention_rate": "0.1667",
        "hallucination_rate": "0.1667",
        "judge_failures": "1",
    }
    assert all(isinstance(value, str) for event in events for value in event[1].values())
    assert heard[0][1:3] == ["event", "start"]
    assert heard[-1][1:] == ["report", 6, 1]


def test_a_broken_event_hook_costs_a_warning(quiz: Quiz) -> None:
    """An event hook that raises neither stops the run nor changes its status; it is warned of."""
    quiz.write("AAAA")
    quiz.file("conftest.py", "def pytest_simpleqa_event(event):\n    raise ConnectionError('chat is down')\n")
    session = quiz.run("-q")
    assert (session.status, session.counts) == (0, (4, 0, 0, 0, 0))
    assert "warning: pytest_simpleqa_event failed at start: ConnectionError: chat is down" in session.lines
    assert "warning: pytest_simpleqa_event failed at done: ConnectionError: chat is down" in session.lines


# --- the screen --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [(), ("-q",), ("-q", "-n2")], ids=["bare", "q", "q-n2"])
def test_the_run_is_announced_once_before_it_begins(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """One line says how many questions go to whom, and what that costs at least."""
    session = quiz.run(*mode)
    line = "6 questions to replay:recorded.jsonl, judged by replay:recorded.jsonl: no calls to a service"
    assert session.lines.count(line) == 1
    at = next(number for number, text in enumerate(session.lines) if "[100%]" in text)
    assert session.lines.index(line) < at


@pytest.mark.parametrize(("percent", "expected"), [("50", ["50"]), ("25", ["25", "50", "75"]), ("0", []), ("100", [])])
def test_progress_lines_come_at_their_percentages(quiz: Quiz, percent: str, expected: list[str]) -> None:
    """A progress line every P percent but the last, which is the summary; none with 0 or under -q."""
    quiz.write("ABCA")
    session = quiz.run(f"--simpleqa-progress-pct={percent}")
    assert [line.split()[0] for line in session.lines if " of 4  " in line] == expected
    quiet = quiz.run(f"--simpleqa-progress-pct={percent}", "-q")
    assert not any(" of 4  " in line for line in quiet.lines)


def summary(session: Session) -> list[str]:
    start = next(number for number, line in enumerate(session.lines) if re.fullmatch("=+ simpleqa =+", line))
    return session.lines[start:-1]


@MODES
def test_the_summary_fits_eighty_columns_and_shows_no_raw_control(quiz: Quiz, mode: tuple[str, ...]) -> None:
    """Whatever models and datasets say, the summary's lines are printable and at most 80 columns wide."""
    hostile = "\x1b[31mred\x00\x07 ‮backwards \U0001f600 " + "very long " * 50
    quiz.write("BB?!A", {1: hostile, 2: "line\r\nbreak\tand tab", 3: hostile})
    session = quiz.run(*mode)
    lines = summary(session)
    assert "".join(lines).isprintable()
    assert all(len(line) <= 80 for line in lines if not line.startswith(("run ", "report ")))
    pairs = list(pairwise(lines))
    assert any(line.startswith("quiz.csv::q0001 ") and "\\x1b[31mred" in said for line, said in pairs)
    assert any(line.startswith("quiz.csv::q0002 ") and "line\\r\\nbreak" in said for line, said in pairs)


def test_colours_only_where_wanted(quiz: Quiz) -> None:
    """With --color=yes the table has colours, else it has none."""
    assert "\x1b[" in quiz.run("--color=yes").text
    assert "\x1b[" not in quiz.run("--color=no").text


def test_a_report_that_cannot_be_written_fails_the_session(quiz: Quiz) -> None:
    """Where the Report cannot be written at the end, one line says so and the status is not 0."""
    quiz.write("AA")
    quiz.file(
        "conftest.py",
        "from pathlib import Path\n\ndef pytest_simpleqa_result(result):\n    Path('out.json').mkdir(exist_ok=True)\n",
    )
    session = quiz.run("--simpleqa-out=out.json")
    assert session.status == 1
    assert sum(line.startswith("warning: ") and "out.json" in line for line in session.lines) == 1


def test_a_broken_result_hook_does_not_pass(quiz: Quiz) -> None:
    """A result hook that raises is a bug of the project's conftest: status 3, and the Report is still written."""
    quiz.file("conftest.py", "def pytest_simpleqa_result(result):\n    assert result.id != 'q0003'\n")
    session = quiz.run()
    assert session.status == 3
    assert session.report is not None
    assert session.report["n"] >= 3


def test_a_report_hook_that_raises_costs_a_warning(quiz: Quiz) -> None:
    """A report hook that raises takes neither the summary nor the exit status with it."""
    quiz.write("AAAA")
    quiz.file("conftest.py", "def pytest_simpleqa_report(report):\n    raise OSError('disk is gone')\n")
    session = quiz.run()
    assert session.status == 0
    assert "warning: pytest_simpleqa_report failed: OSError: disk is gone" in session.lines
    assert "all questions" in session.text


def test_a_question_that_a_hook_skips_counts_for_nothing(quiz: Quiz) -> None:
    """What was asked ahead for a question that a conftest skips at setup is no result: the run is incomplete."""
    quiz.write("AAAA")
    source = (
        "import pytest\n\ndef pytest_runtest_setup(item):\n    if item.name == 'q0002':\n        pytest.skip('no')\n"
    )
    quiz.file("conftest.py", source)
    session = quiz.run()
    assert session.progress == (4, 4, 3, False)


def test_an_item_that_stands_twice_is_one_row(quiz: Quiz) -> None:
    """A conftest that runs an item twice neither asks twice nor breaks the Report."""
    quiz.write("AAAA")
    quiz.file("conftest.py", "def pytest_collection_modifyitems(items):\n    items.append(items[0])\n")
    session = quiz.run()
    assert session.status == 0
    assert session.progress == (4, 4, 4, True)


def test_tiny_progress_steps_cost_nothing(quiz: Quiz) -> None:
    """A step far below one question ends as fast as any other."""
    quiz.write("AAAA")
    assert quiz.run("--simpleqa-progress-pct=1e-300").status == 0


def test_the_report_on_stdout_is_utf_8_whatever_the_terminal_speaks(quiz: Quiz) -> None:
    """Under a terminal encoding that lacks the letters the Report still comes whole."""
    quiz.write("A", {1: "café, 日本"})
    quiz.environment["PYTHONIOENCODING"] = "latin-1"
    quiz.environment["PYTHONUTF8"] = "0"
    process = quiz.start(*quiz.args("--simpleqa-out=-", "-q"))
    process.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # a text stream
    session = quiz.finish(process)
    assert session.status == 0, session.errors
    report = json.loads(session.text[session.text.index("\n{\n") :])
    assert report["samples"][0]["predicted"] == "café, 日本"
