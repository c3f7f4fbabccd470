"""Mistakes of the user: one line on standard error, exit 4, and nothing asked or written before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fake_server import FakeServer
from tests.small_run import ASKED, error_line, write_files

D = "--simpleqa-dataset=questions.csv"
A = "--answer-llm=fake:model"
J = "--judge-llm=fake:judge"

FILES = {
    "columns__csv": "foo,bar\n1,2\n",
    "broken__csv": "problem,answer\nWho?,me\nWhen?,\n",
    "ragged__csv": "problem,answer\nWho?,me,too\n",
    "blank__csv": "problem,answer\n",
    "questions__xlsx": "problem,answer\nWho?,me\n",
    "ungraded__csv": "problem,predicted\nCapital of France?,Paris\n",
    "plain_file": "",
    "module__py": "value = 1\n",
    "failing__py": "raise ValueError('on import')\n",
}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    """A server that nothing here may reach."""
    with FakeServer() as server:
        yield server


@pytest.fixture
def folder(pytester: pytest.Pytester, server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with the files above, and the environment in which `fake:` leads to the server."""
    write_files(pytester.path, **FILES)
    for variable, value in server.environment().items():
        monkeypatch.setenv(variable, value)
    for variable in ("OPENAI_API_KEY", "SIMPLEQA_NOSUCH", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SIMPLEQA_NO_JSON", "{api_key: sk-planted-0001}")
    monkeypatch.setenv("SIMPLEQA_ODD_KEY", '{"api_kee": "sk-planted-0002", "base_url": "http://h/v1"}')
    return pytester


def assert_refused(result: pytest.RunResult, server: FakeServer, folder: pytest.Pytester, *said: str) -> None:
    """Assert exit 4 with one line that says all of `said`, no question asked, no run directory made."""
    line = error_line(result)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for text in said:
        assert text in line
    assert "sk-planted" not in line
    assert server.requests == []
    assert not (folder.path / ".simpleqa").exists()


MISTAKES = {
    # What is missing.
    "dataset without a model": ([D], ["--simpleqa-dataset", "add --answer-llm"]),
    "resume without a model": (["--simpleqa-resume=latest"], ["--simpleqa-resume", "add --answer-llm"]),
    "no judge": ([D, A], ["--judge-llm is missing", "rules"]),
    # The dataset.
    "no such dataset": ([A, J, "--simpleqa-dataset=nothing.csv"], ["'nothing.csv'", "sample", "simpleqa"]),
    "a known name, mistyped": ([A, J, "--simpleqa-dataset=simplqa"], ["did you mean 'simpleqa'?"]),
    "a folder": ([A, J, "--simpleqa-dataset=."], ["is a folder"]),
    "wrong extension": ([A, J, "--simpleqa-dataset=questions.xlsx"], ["'.xlsx'", ".csv", ".jsonl", ".gz"]),
    "wrong columns": (
        [A, J, "--simpleqa-dataset=columns.csv"],
        ["columns.csv", "found 'foo', 'bar'", "accepted", "problem, question", "answer, target"],
    ),
    "broken row": ([A, J, "--simpleqa-dataset=broken.csv"], ["broken.csv, row 2", "'answer' is empty"]),
    "ragged row": ([A, J, "--simpleqa-dataset=ragged.csv"], ["ragged.csv, row 1", "3 cells found, 2 wanted"]),
    "no rows": ([A, J, "--simpleqa-dataset=blank.csv"], ["blank.csv", "no questions"]),
    "plain http": ([A, J, "--simpleqa-dataset=http://example.org/q.csv"], ["https://"]),
    # The models.
    "unknown alias": ([D, "--answer-llm=nosuch:model", J], ["'nosuch'", "SIMPLEQA_NOSUCH"]),
    "unknown judge": ([D, A, "--judge-llm=nosuch:model"], ["'nosuch'", "SIMPLEQA_NOSUCH"]),
    "alias that is no JSON": ([D, "--answer-llm=no_json", J], ["SIMPLEQA_NO_JSON", "no JSON"]),
    "alias with an unknown key": ([D, "--answer-llm=odd-key:m", J], ["SIMPLEQA_ODD_KEY", "did you mean 'api_key'?"]),
    "no key": ([D, "--answer-llm=openai:gpt", J], ["OPENAI_API_KEY"]),
    "no model name": ([D, "--answer-llm=fake", J], ["'fake'", "fake:<model>", "SIMPLEQA_FAKE"]),
    "no spec": ([D, "--answer-llm=", J], ["--answer-llm", "empty"]),
    "a judge that is to answer": ([D, "--answer-llm=rules", J], ["rules is a judge"]),
    "recording without answers": ([D, "--answer-llm=replay:columns.csv", J], ["columns.csv", "found foo, bar"]),
    "recording without verdicts": ([D, A, "--judge-llm=replay:ungraded.csv"], ["ungraded.csv", "verdict, grade"]),
    "no such recording": ([D, "--answer-llm=replay:record.csv", J], ["did you mean recorded.csv"]),
    "no such module": ([D, "--answer-llm=python:modul:value", J], ["no module 'modul'", "did you mean module?"]),
    "no such attribute": ([D, "--answer-llm=python:module:valu", J], ["has no 'valu'", "did you mean value?"]),
    "no callable": ([D, "--answer-llm=python:module:value", J], ["python:module:value"]),
    "a module that fails": ([D, "--answer-llm=python:failing:f", J], ["ValueError: on import", "failing.py, line 1"]),
    "no answer hook": ([D, "--answer-llm=hook", J], ["pytest_simpleqa_answer"]),
    "no judge hook": ([D, A, "--judge-llm=hook"], ["pytest_simpleqa_judge"]),
    # The prompts.
    "grade prompt without placeholders": (
        [D, A, J, "--simpleqa-grade-prompt=Is {predicted_answer} right?"],
        ["--simpleqa-grade-prompt", "lacks {question} and {target}"],
    ),
    "answer prompt without its placeholder": (
        [D, A, J, "--simpleqa-answer-prompt=Say something."],
        ["--simpleqa-answer-prompt", "lacks {question}"],
    ),
    "no such prompt file": ([D, A, J, "--simpleqa-answer-prompt=file:none.txt"], ["none.txt", "No such file"]),
    # Values.
    "concurrency 0": ([D, A, J, "--simpleqa-concurrency=0"], ["'0'", "at least 1"]),
    "limit -1": ([D, A, J, "--simpleqa-limit=-1"], ["'-1'", "at least 0"]),
    "sample x": ([D, A, J, "--simpleqa-sample=x"], ["'x'", "whole number"]),
    "a number of 5,000 digits": ([D, A, J, f"--simpleqa-limit={'9' * 5000}"], ["--simpleqa-limit", "…'"]),
    "seed 1.5": ([D, A, J, "--simpleqa-seed=1.5"], ["'1.5'"]),
    "shard 3/2": ([D, A, J, "--simpleqa-shard=3/2"], ["'3/2'", "2/8"]),
    "repeats 0": ([D, A, J, "--simpleqa-repeats=0"], ["'0'", "at least 1"]),
    "timeout nan": ([D, A, J, "--simpleqa-timeout=nan"], ["'nan'", "number"]),
    "max-samples -2": ([D, A, J, "--simpleqa-max-samples=-2"], ["'-2'", "at least -1"]),
    "progress 101": ([D, A, J, "--simpleqa-progress-pct=101"], ["'101'", "0 to 100"]),
    "fail-on correct": ([D, A, J, "--simpleqa-fail-on=correct"], ["'correct'", "none"]),
    "parse loose": ([D, A, J, "--simpleqa-parse=loose"], ["'loose'", "strict or paper"]),
    "a parameter without a value": ([D, A, J, "--answer-llm-param=temperature"], ["NAME=VALUE"]),
    "a parameter of the run's own": ([D, A, J, "--judge-llm-param=model=other"], ["model is set by the run"]),
    "a topic, mistyped": ([D, A, J, "--simpleqa-topic=Geografy"], ["did you mean 'Geography'?"]),
    "no such env file": ([D, A, J, "--simpleqa-env-file=none.env"], ["none.env", "no such file"]),
    # Where things go.
    "run directory below a file": ([D, A, J, "--simpleqa-run-dir=plain_file/runs"], ["--simpleqa-run-dir"]),
    "Report below a file": ([D, A, J, "--simpleqa-out=plain_file/report.json"], ["plain_file/report.json"]),
    "Report in place of a folder": ([D, A, J, "--simpleqa-out=."], ["is a folder"]),
    "a dataset's name that no system takes": ([A, J, f"--simpleqa-dataset={'x' * 5000}.csv"], ["File name too long"]),
    "an env file's name that no system takes": ([D, A, J, f"--simpleqa-env-file={'x' * 5000}"], ["File name too long"]),
    "a recording's name that no system takes": ([D, J, f"--answer-llm=replay:{'x' * 5000}"], ["File name too long"]),
    "a Report's name that no system takes": ([D, A, J, f"--simpleqa-out={'x' * 5000}"], ["File name too long"]),
    "a run's name that no system takes": ([D, A, J, f"--simpleqa-resume={'x' * 5000}"], ["--simpleqa-resume xxx"]),
    "a home of nobody": ([D, A, J, "--simpleqa-env-file=~nobody-here/keys"], ["~nobody-here/keys: no such file"]),
    "a line end in a path": ([D, A, J, "--simpleqa-answer-prompt=file:a\nb"], ["a\\nb cannot be read"]),
    # What pytest is told.
    "a line end in a node id": ([D, A, J, "questions.csv::a\nb"], ["questions.csv::a\\nb: no such question"]),
    "no such question": ([D, A, J, "questions.csv::q9999"], ["questions.csv::q9999", "no such question"]),
    "--dist each": ([D, A, J, "-n2", "--dist=each"], ["--dist each", "--dist load"]),
}


@pytest.mark.parametrize(("args", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_exit_4(
    folder: pytest.Pytester, server: FakeServer, args: list[str], said: list[str]
) -> None:
    """Every mistake is told in one line that names it, with exit 4, before any question is asked."""
    assert_refused(folder.runpytest_inprocess(*args), server, folder, *said)


@pytest.mark.parametrize("name", ["broken row", "run directory below a file", "no such question"])
def test_a_mistake_is_the_same_under_xdist(folder: pytest.Pytester, server: FakeServer, name: str) -> None:
    """With workers a mistake is the same one line and exit 4, told once, not by each worker."""
    args, said = MISTAKES[name]
    assert_refused(folder.runpytest_subprocess(*args, "-n2"), server, folder, *said)


@pytest.mark.parametrize("place", ["addopts", "PYTEST_ADDOPTS"])
def test_the_model_is_taken_from_the_command_line_alone(
    folder: pytest.Pytester, server: FakeServer, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """--answer-llm in addopts or PYTEST_ADDOPTS is refused: a plain pytest must never cost money."""
    if place == "addopts":
        folder.makeini(f"[pytest]\naddopts = {D} {A} {J}")
    else:
        monkeypatch.setenv("PYTEST_ADDOPTS", f"{D} {A} {J}")
    assert_refused(folder.runpytest_inprocess(), server, folder, "--answer-llm", place, "command line")


def test_the_model_in_addopts_is_refused_beside_a_typed_dataset(folder: pytest.Pytester, server: FakeServer) -> None:
    """Typing everything but --answer-llm does not make up for it."""
    folder.makeini(f"[pytest]\naddopts = {A}")
    assert_refused(folder.runpytest_inprocess(D, J), server, folder, "--answer-llm", "addopts")


def test_a_bad_ini_value_names_its_key(folder: pytest.Pytester, server: FakeServer) -> None:
    """A mistake in the ini file is told by the key that stands there, not by the option."""
    folder.makeini("[pytest]\nsimpleqa_concurrency = many")
    assert_refused(folder.runpytest_inprocess(D, A, J), server, folder, "ini key simpleqa_concurrency 'many'")


def test_a_path_after_a_space_that_loses_the_ini_file_is_refused(folder: pytest.Pytester, server: FakeServer) -> None:
    """Where pytest took a path value for a test path and so missed the ini file, the line says what to write."""
    folder.makeini("[pytest]\nsimpleqa_limit = 1")
    elsewhere = folder.path.parent / f"{folder.path.name}-elsewhere"
    elsewhere.mkdir()
    write_files(elsewhere)
    result = folder.runpytest_subprocess("--simpleqa-dataset", str(elsewhere / "questions.csv"), A, J)
    wanted = f"write --simpleqa-dataset={elsewhere / 'questions.csv'}"
    assert_refused(result, server, folder, "tox.ini", wanted)


def test_numbers_beyond_any_machine_are_no_internal_error(folder: pytest.Pytester) -> None:
    """A limit of thirty digits means all questions, a shard of as many a part of none."""
    huge = "9" * 30
    result = folder.runpytest_inprocess(*ASKED, f"--simpleqa-limit={huge}", "--simpleqa-fail-on=none")
    assert result.ret == pytest.ExitCode.OK
    result = folder.runpytest_inprocess(*ASKED, f"--simpleqa-shard=4/{huge}")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_model_that_judges_itself_is_only_warned_of(folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model as judge is a warning, not a refusal."""
    with FakeServer() as own:
        for variable, value in own.environment("own").items():
            monkeypatch.setenv(variable, value)
        result = folder.runpytest_inprocess(D, "--answer-llm=own:judge", "--judge-llm=own:judge", "-q")
        assert result.ret != pytest.ExitCode.USAGE_ERROR
        result.stdout.fnmatch_lines(["warning: own:judge judges its own answers"])
        assert own.requests


def test_the_report_never_overwrites_the_dataset(pytester: pytest.Pytester) -> None:
    """--simpleqa-out that names the dataset's own file is refused."""
    write_files(pytester.path)
    before = (pytester.path / "questions.csv").read_bytes()
    result = pytester.runpytest_inprocess(*ASKED, "--simpleqa-out=questions.csv")
    assert "would overwrite" in error_line(result)
    assert (pytester.path / "questions.csv").read_bytes() == before
