"""The run directory: lines that survive a kill, what they say together, and directories that never clash."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_simpleqa.errors import RunError
from pytest_simpleqa.records import Failure, Question, QuestionResult, Reply, Usage, Verdict
from pytest_simpleqa.rundisk import create_run_dir, is_being_written, read_run_json, results_files, write_run_json
from pytest_simpleqa.runlog import RunLog, read_rows

PARIS = Question("q0001", "What is the capital of France?", "Paris", topic="Geography")
ODD = "a\nb\u2028c\u2029d\x85e \ud83c \x00 café 日本 {question}"
NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
REPLY = Reply(
    ODD,
    raw="<think>x</think>" + ODD,
    model="m-1",
    calls=3,
    prompt_tokens=10,
    completion_tokens=5,
    latency_s=0.25,
    extra={"trace": ["a", 1, None]},
    notes=("temperature dropped",),
)


def result(verdict: Verdict | None = Verdict.CORRECT, error: Failure | None = None, repeat: int = 1) -> QuestionResult:
    """Make the result of REPLY."""
    return QuestionResult.for_question(
        PARIS,
        repeat,
        predicted=REPLY.text,
        verdict=verdict,
        judge_reply="A \u2028",
        error=error,
        latency_s=0.5,
        raw=REPLY.raw,
        notes=("temperature dropped",),
        answer_usage=Usage(3, 10, 5, 0.25, "m-1"),
        judge_usage=Usage(1, 100, 1, 0.125, "j-1"),
        extra=REPLY.extra,
    )


@pytest.fixture
def log(tmp_path: Path) -> RunLog:
    return RunLog(tmp_path / "results.jsonl")


def read(log: RunLog) -> QuestionResult | None:
    """Return what the log says of the one question."""
    log.close()
    rows, warnings = read_rows([log.path])
    assert warnings == []
    return rows[PARIS.id, 1].result(PARIS, 1) if rows else None


# -- lines -----------------------------------------------------------------------------------------


def test_a_result_comes_back_as_it_was(log: RunLog) -> None:
    """Answer and verdict together give the whole result, whatever characters the model said."""
    log.answer(PARIS, 1, REPLY, 0.25)
    log.finished(PARIS, result())
    assert read(log) == result()


def test_another_answer_takes_the_verdict_away(log: RunLog) -> None:
    """A verdict belongs to the answer before it: a later, other answer has none until it is judged."""
    log.answer(PARIS, 1, REPLY, 0.25)
    log.finished(PARIS, result())
    log.answer(PARIS, 1, Reply("Lyon"), 0.25)
    assert read(log) is None


def test_a_judge_failure_comes_back_as_it_was(log: RunLog) -> None:
    """An answer whose judge failed keeps answer, failure and the judge's own words."""
    failed = result(None, Failure("judge_unreadable", "no verdict"))
    log.answer(PARIS, 1, REPLY, 0.25)
    log.finished(PARIS, failed)
    assert read(log) == failed


def test_an_answer_error_comes_back_as_it_was(log: RunLog) -> None:
    """A row without an answer keeps what its requests cost."""
    failed = QuestionResult.for_question(PARIS, error=Failure("timeout", "late"), answer_usage=Usage(4), latency_s=9.0)
    log.finished(PARIS, failed)
    assert read(log) == failed


def test_a_result_of_another_machine_is_kept_whole(log: RunLog) -> None:
    """What only travelled with a report stands in the log like any other."""
    log.whole(PARIS, result())
    assert read(log) == result()


def test_lines_have_the_documented_shape(log: RunLog) -> None:
    """Version, kind, id, fingerprint and repeat stand in every line, one ASCII line each."""
    log.answer(PARIS, 2, REPLY, 0.25)
    log.finished(PARIS, result(repeat=2))
    log.finished(PARIS, result(None, Failure("timeout", "late"), repeat=3))
    log.close()
    data = log.path.read_bytes()
    lines = [json.loads(line) for line in data.split(b"\n")[:-1]]
    head = {"v": 1, "id": "q0001", "fingerprint": PARIS.fingerprint}
    assert [line | head == line for line in lines] == [True] * 3
    assert [(line["kind"], line["repeat"]) for line in lines] == [("answer", 2), ("verdict", 2), ("error", 3)]
    assert data.isascii()


def test_a_raw_line_separator_does_not_end_a_line(log: RunLog) -> None:
    """Lines end at a newline alone, also where another writer left U+2028 unescaped."""
    log.close()
    line = {"kind": "answer", "id": "q0001", "repeat": 1, "fingerprint": "f", "predicted": "a\u2028b\x85c"}
    log.path.write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")
    rows, warnings = read_rows([log.path])
    reply = rows["q0001", 1].reply()
    assert warnings == []
    assert reply is not None
    assert reply.text == "a\u2028b\x85c"


def test_a_file_cut_anywhere_keeps_every_whole_line(log: RunLog) -> None:
    """Wherever a kill tears the file, the lines before are read and the torn one is dropped with a warning."""
    for repeat in (1, 2):
        log.answer(PARIS, repeat, REPLY, 0.25)
    log.close()
    data = log.path.read_bytes()
    first = data.index(b"\n") + 1
    for end in range(first, len(data) - 1, 7):
        log.path.write_bytes(data[:end])
        rows, warnings = read_rows([log.path])
        assert [key[1] for key in rows] == [1]
        assert warnings == (["results.jsonl, line 2 is torn and was dropped"] if end > first else [])


def test_a_torn_line_does_not_swallow_the_next(log: RunLog) -> None:
    """A file that is opened again after a kill starts a line of its own."""
    log.answer(PARIS, 1, REPLY, 0.25)
    log.close()
    log.path.write_bytes(log.path.read_bytes()[:-20])
    again = RunLog(log.path)
    again.answer(PARIS, 2, REPLY, 0.25)
    again.close()
    rows, warnings = read_rows([log.path])
    assert (list(rows), len(warnings)) == ([("q0001", 2)], 1)


@pytest.mark.parametrize("line", [b"12", b"[]", b"null", b'{"kind": "answer"}', b"\xff\xfe", b'{"id": 1', b"NaN"])
def test_a_foreign_line_is_dropped(log: RunLog, line: bytes) -> None:
    """What is no line of ours is warned of and never ends the run."""
    log.answer(PARIS, 1, REPLY, 0.25)
    log.close()
    log.path.write_bytes(line + b"\n" + log.path.read_bytes())
    rows, warnings = read_rows([log.path])
    assert (list(rows), len(warnings)) == ([("q0001", 1)], 1)


def test_the_last_line_of_a_kind_wins(log: RunLog) -> None:
    """A verdict that was given again replaces the first one."""
    log.answer(PARIS, 1, REPLY, 0.25)
    log.finished(PARIS, result(Verdict.INCORRECT))
    log.finished(PARIS, result(Verdict.CORRECT))
    assert read(log) == result(Verdict.CORRECT)


def test_a_verdict_replaces_an_earlier_failure(log: RunLog) -> None:
    """A row that failed and was resumed is what it became."""
    log.answer(PARIS, 1, REPLY, 0.25)
    log.finished(PARIS, result(None, Failure("judge_unreadable", "no verdict")))
    log.finished(PARIS, result())
    assert read(log) == result()


def test_a_new_answer_takes_an_earlier_error_away(log: RunLog) -> None:
    """An answer that came after an error and was not judged yet is unfinished, not a judge failure."""
    log.finished(PARIS, QuestionResult.for_question(PARIS, error=Failure("timeout", "late")))
    log.answer(PARIS, 1, REPLY, 0.25)
    assert read(log) is None


def test_a_verdict_without_its_answer_is_no_result(log: RunLog) -> None:
    """Where the answer's line was torn, the row is asked again."""
    log.finished(PARIS, result())
    assert read(log) is None


def test_repeats_are_rows_of_their_own(log: RunLog) -> None:
    """Askings of one question do not mix."""
    for repeat, verdict in ((1, Verdict.CORRECT), (2, Verdict.INCORRECT)):
        log.answer(PARIS, repeat, REPLY, 0.25)
        log.finished(PARIS, result(verdict, repeat=repeat))
    log.close()
    rows, _ = read_rows([log.path])
    found = [rows["q0001", repeat].result(PARIS, repeat) for repeat in (1, 2)]
    assert [(each.repeat, each.verdict) for each in found if each] == [(1, "correct"), (2, "incorrect")]


def test_files_of_several_writers_are_read_together(tmp_path: Path) -> None:
    """Each worker writes its own file; together they are the run."""
    for worker, repeat in (("gw0", 1), ("gw1", 2)):
        log = RunLog(tmp_path / f"results-{worker}.jsonl")
        log.answer(PARIS, repeat, REPLY, 0.25)
        log.close()
    (tmp_path / "report.json").write_text("{}")
    rows, _ = read_rows(results_files(tmp_path))
    assert list(rows) == [("q0001", 1), ("q0001", 2)]


def written(path: Path, *lines: tuple[float | None, str, str]) -> None:
    """Write lines `(time, kind, what)`: of an answer what was said, else the verdict; no time for an old version's."""
    head = {"v": 1, "id": PARIS.id, "fingerprint": PARIS.fingerprint, "repeat": 1}
    with path.open("a", encoding="utf-8") as file:
        for at, kind, what in lines:
            said = {"predicted": what} if kind == "answer" else {"verdict": what}
            file.write(json.dumps({**head, "kind": kind, **said, **({"time": at} if at else {})}) + "\n")


def the_row(folder: Path) -> tuple[str | None, str]:
    row = read_rows(results_files(folder))[0][PARIS.id, 1].result(PARIS, 1)
    assert row is not None
    return row.predicted, row.status


def test_the_last_line_wins_whatever_its_file_is_called(tmp_path: Path) -> None:
    """Of several files the line that was written last holds, not the one whose file's name comes last."""
    written(tmp_path / "results.jsonl", (10.0, "answer", "Rome"), (11.0, "verdict", "incorrect"))
    written(tmp_path / "results-gw0.jsonl", (20.0, "answer", "Paris"), (21.0, "verdict", "correct"))
    assert the_row(tmp_path) == ("Paris", "correct")
    written(tmp_path / "results.jsonl", (30.0, "answer", "Lyon"), (31.0, "verdict", "incorrect"))
    assert the_row(tmp_path) == ("Lyon", "incorrect")


def test_lines_of_an_old_version_come_before_those_with_a_time(tmp_path: Path) -> None:
    """Lines without a time are read, by their files' names, and give way to what was written since."""
    written(tmp_path / "results.jsonl", (None, "answer", "Rome"), (None, "verdict", "incorrect"))
    written(tmp_path / "results-gw0.jsonl", (None, "answer", "Paris"), (None, "verdict", "correct"))
    assert the_row(tmp_path) == ("Rome", "incorrect")
    written(tmp_path / "results-gw0.jsonl", (5.0, "answer", "Paris"), (6.0, "verdict", "correct"))
    assert the_row(tmp_path) == ("Paris", "correct")


def test_a_clock_that_was_set_back_turns_no_files_order(tmp_path: Path) -> None:
    """In one file the lines stand as they were written, whatever their times say."""
    written(tmp_path / "results.jsonl", (9.0, "answer", "Rome"), (8.0, "answer", "Paris"), (7.0, "verdict", "correct"))
    assert the_row(tmp_path) == ("Paris", "correct")


def test_every_line_says_when_it_was_written(log: RunLog) -> None:
    """A line's time is in seconds since 1970, by the clock of the process that writes the file."""
    before = time.time()
    log.answer(PARIS, 1, REPLY, 0.25)
    (line,) = (json.loads(each) for each in log.path.read_text("utf-8").splitlines())
    assert before - 0.01 <= line["time"] <= time.time() + 0.01


def test_a_text_in_place_of_the_answer_stands_with_its_verdict(log: RunLog) -> None:
    """What a test has had judged comes back as predicted, with what was paid for both; the answer stays as it was."""
    graded = Reply("It is Paris", calls=0, completion_tokens=2, extra={"by": "me"})
    log.answer(PARIS, 1, REPLY, 0.25)
    log.finished(PARIS, result(), None, graded)
    log.answer(PARIS, 1, Reply("Lyon"), 0.25)
    log.close()
    row = read_rows([log.path])[0][PARIS.id, 1]
    found, answer = row.result(PARIS, 1), row.reply()
    assert found is not None
    assert answer is not None
    assert (found.predicted, found.extra, found.verdict) == ("It is Paris", {"by": "me"}, "correct")
    assert (found.answer_usage.calls, found.answer_usage.completion_tokens, answer.text) == (1, 2, "Lyon")


def test_a_text_needs_no_answer_of_the_model(log: RunLog) -> None:
    """A test that brings its own text leaves a whole row, of which the model has said nothing."""
    log.finished(PARIS, result(), None, Reply("It is Paris", calls=0))
    log.close()
    row = read_rows([log.path])[0][PARIS.id, 1]
    found = row.result(PARIS, 1)
    assert found is not None
    assert (found.predicted, found.answer_usage.calls, row.reply()) == ("It is Paris", 0, None)


def test_a_judge_failure_after_a_verdict_holds(log: RunLog) -> None:
    """Of verdict and error the later one counts."""
    log.answer(PARIS, 1, REPLY, 0.25)
    log.finished(PARIS, result())
    failed = result(None, Failure("judge_unreadable", "no verdict"))
    log.finished(PARIS, failed)
    assert read(log) == failed


def test_a_crash_takes_no_verdict_away(log: RunLog) -> None:
    """A worker may die between its verdict and its report: what it wrote stays."""
    log.answer(PARIS, 1, REPLY, 0.25)
    log.finished(PARIS, result())
    log.whole(PARIS, QuestionResult.for_question(PARIS, error=Failure("worker_crash", "it died")))
    assert read(log) == result()


def test_a_file_says_whether_somebody_writes_it(log: RunLog) -> None:
    """A run that another process still writes is told from one that has ended."""
    assert is_being_written(log.path)
    log.close()
    assert not is_being_written(log.path)
    log.close()


# -- what cannot be written ------------------------------------------------------------------------


def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    """Where the system takes no more bytes, the error names the file and the reason, and whole lines stay."""
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from pytest_simpleqa.errors import RunError\n"
        "from pytest_simpleqa.records import Question, Reply\n"
        "from pytest_simpleqa.runlog import RunLog\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))\n"
        "log = RunLog(Path(sys.argv[1]))\n"
        "try:\n"
        "    for repeat in range(1, 9): log.answer(Question('q1', 'p', 'a'), repeat, Reply('x' * 50), 0.1)\n"
        "except RunError as error:\n"
        "    print(error)\n"
    )
    path = tmp_path / "results.jsonl"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=20)
    assert (done.stdout, done.stderr) == (f"{path}: cannot be written: File too large\n", "")
    rows, warnings = read_rows([path])
    assert (len(rows) >= 1, len(warnings)) == (True, 1)


def test_a_results_file_that_cannot_be_opened_is_one_clear_error(tmp_path: Path) -> None:
    """The error names the file and the reason."""
    with pytest.raises(RunError, match=r"^.*gone.results\.jsonl: cannot be written: No such file or directory$"):
        RunLog(tmp_path / "gone" / "results.jsonl")


def test_a_run_dir_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    """The error names the option, the directory and the reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"^--simpleqa-run-dir .*file.runs: cannot be written: Not a directory$"):
        create_run_dir(tmp_path / "file" / "runs", "d", "m", NOW)


# -- run directories -------------------------------------------------------------------------------


def test_run_dirs_are_never_shared(tmp_path: Path) -> None:
    """Runs that start in one second, in any number of processes or threads, get directories of their own."""
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: create_run_dir(tmp_path / "runs", "d.csv", "m", NOW), range(24)))
    assert len(set(made)) == 24
    assert all(path.is_dir() for path in made)
    assert min(made).name == "20261201T093000-d.csv-m"


def test_a_run_dir_name_is_fit_for_any_file_system(tmp_path: Path) -> None:
    """What a dataset or spec holds beside letters, digits, dots and underscores becomes an underscore."""
    path = create_run_dir(tmp_path, "日本.csv", 'openrouter:a/b:free "x"', NOW)
    assert path.name == "20261201T093000-csv-openrouter_a_b_free_x"


def test_the_run_folder_ignores_itself_in_git(tmp_path: Path) -> None:
    """Nothing of a run is committed by accident; a .gitignore of the user's own stays."""
    create_run_dir(tmp_path / "runs", "d", "m", NOW)
    assert (tmp_path / "runs" / ".gitignore").read_text() == "*\n"
    (tmp_path / "runs" / ".gitignore").write_text("mine\n")
    create_run_dir(tmp_path / "runs", "d", "m", NOW)
    assert (tmp_path / "runs" / ".gitignore").read_text() == "mine\n"


# -- run.json --------------------------------------------------------------------------------------


def test_run_json_comes_back_as_it_was(tmp_path: Path) -> None:
    """What was asked can be read again, odd characters included, and no temporary file stays."""
    content = {"v": 1, "answer_prompt": {"text": ODD}, "options": {"limit": 0, "parse": "strict"}}
    write_run_json(tmp_path, content)
    assert read_run_json(tmp_path) == content
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_run_json_takes_what_a_model_says_of_itself(tmp_path: Path) -> None:
    """A model of the user's may describe itself in types that JSON has not."""
    write_run_json(tmp_path, {"answer": {"path": Path("a/b")}})
    assert read_run_json(tmp_path) == {"answer": {"path": str(Path("a/b"))}}
    with pytest.raises(RunError, match=r"run\.json: cannot be written as JSON: "):
        write_run_json(tmp_path, {"answer": {"temperature": float("nan")}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r": not a run directory \(there is no run\.json\)$"),
        ("[1]", r"run\.json: wanted a JSON object$"),
        ("{", r"run\.json: cannot be read: "),
        ("\udcff", r"run\.json: cannot be read: "),
    ],
)
def test_a_run_json_that_cannot_be_read_is_one_clear_error(tmp_path: Path, text: str | None, message: str) -> None:
    """The error names the file and what is wrong with it."""
    if text is not None:
        (tmp_path / "run.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RunError, match=message) as caught:
        read_run_json(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_file_that_was_never_opened_says_nothing(tmp_path: Path) -> None:
    """A worker may die before its first question; reading its results is no mistake."""
    assert read_rows([tmp_path / "results-gw7.jsonl"]) == ({}, [])
