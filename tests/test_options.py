"""The options: what each does, on the command line and as an ini key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.optiontable import OPTIONS
from tests.fake_server import Answer, FakeServer, completion
from tests.small_run import ASKED, ids_of, many_questions, report_of, run_dirs, run_json_of, write_files

D = "--simpleqa-dataset=questions.csv"
SERVED = (D, "--answer-llm=fake:model", "--judge-llm=fake:judge")
"""Arguments of a run that asks the server."""


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a dataset of three questions and a recording of answers and verdicts."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    write_files(pytester.path)
    return pytester


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A server that knows two of three answers; the environment in which `fake:` leads there."""
    with FakeServer({"What is one and one?": "2", "Capital of France?": "Paris"}) as server:
        for variable, value in server.environment().items():
            monkeypatch.setenv(variable, value)
        yield server


def write_ini(folder: pytest.Pytester, *lines: str) -> None:
    folder.makeini("\n".join(["[pytest]", *lines]))


# --- one value each, both ways ---------------------------------------------------------------

SEEN_IN_REPORT: dict[str, tuple[str, Callable[[dict[str, Any]], object], object]] = {
    "simpleqa_concurrency": ("3", lambda report: report["options"]["concurrency"], 3),
    "simpleqa_timeout": ("5.5", lambda report: report["options"]["per_question_timeout"], 5.5),
    "simpleqa_limit": ("2", ids_of, ["q0001", "q0002"]),
    "simpleqa_sample": ("2", lambda report: (report["population"], report["n"], report["complete"]), (2, 2, True)),
    "simpleqa_seed": ("7", lambda report: report["options"]["seed"], 7),
    "simpleqa_topic": ("geoGraphy", ids_of, ["q0002", "q0003"]),
    "simpleqa_shard": ("2/2", ids_of, ["q0002"]),
    "simpleqa_repeats": ("2", lambda report: [(s["id"], s["repeat"]) for s in report["samples"]][:2],
                         [("q0001", 1), ("q0001", 2)]),
    "simpleqa_max_samples": ("1", lambda report: (len(report["samples"]), report["n"]), (1, 3)),
    "simpleqa_fail_on": ("none", lambda report: report["exit_status"], 0),
    "simpleqa_parse": ("paper", lambda report: report["options"]["parse"], "paper"),
    "simpleqa_progress_pct": ("0", lambda report: report["complete"], True),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN_IN_REPORT)
@pytest.mark.parametrize("place", ["command line", "ini file"])
def test_an_option_counts_wherever_it_stands(folder: pytest.Pytester, name: str, place: str) -> None:
    """An option does the same on the command line and as an ini key."""
    value, look, wanted = SEEN_IN_REPORT[name]
    if place == "ini file":
        write_ini(folder, f"{name} = {value}")
        folder.runpytest_inprocess(*ASKED)
    else:
        folder.runpytest_inprocess(*ASKED, f"--{name.replace('_', '-')}={value}")
    assert look(report_of(folder.path)) == wanted


@pytest.mark.parametrize("place", ["command line", "ini file"])
def test_the_topic_breakdown_can_be_left_out(folder: pytest.Pytester, place: str) -> None:
    """--no-simpleqa-topic-breakdown leaves `per_topic` out of the Report, and the topics out of the table."""
    args = list(ASKED)
    if place == "ini file":
        write_ini(folder, "no_simpleqa_topic_breakdown = true")
    else:
        args.append("--no-simpleqa-topic-breakdown")
    result = folder.runpytest_inprocess(*args)
    assert report_of(folder.path)["per_topic"] is None
    result.stdout.no_fnmatch_line("Geography *")


def test_the_command_line_wins_over_the_ini_file(folder: pytest.Pytester) -> None:
    """What is typed takes the place of the ini key; a list is replaced, not added to."""
    write_ini(folder, "simpleqa_limit = 1", "simpleqa_topic =", "    Maths")
    folder.runpytest_inprocess(*ASKED, "--simpleqa-limit=2", "--simpleqa-topic=Geography")
    assert ids_of(report_of(folder.path)) == ["q0002", "q0003"]


@pytest.mark.parametrize("place", ["command line", "ini file"])
def test_topics_can_be_several(folder: pytest.Pytester, place: str) -> None:
    """--simpleqa-topic may be said several times; in the ini file one stands on each line."""
    args = list(ASKED)
    if place == "ini file":
        write_ini(folder, "simpleqa_topic =", "    Maths", "    geography")
    else:
        args += ["--simpleqa-topic=Maths", "--simpleqa-topic=geography"]
    folder.runpytest_inprocess(*args)
    assert report_of(folder.path)["population"] == 3


def test_limit_sample_topic_and_shard_go_together(folder: pytest.Pytester) -> None:
    """Topics first, then the sample, its first rows, and the shard of those; the Report keeps what was said."""
    (folder.path / "questions.csv").write_text(many_questions(40), encoding="utf-8")
    args = ("--simpleqa-sample=20", "--simpleqa-seed=3", "--simpleqa-limit=9")
    shards: list[str] = []
    for shard in ("1/2", "2/2"):
        folder.runpytest_inprocess(
            D, "--answer-llm=replay:questions.csv", "--judge-llm=rules", *args,
            f"--simpleqa-shard={shard}", f"--simpleqa-run-dir={shard[0]}",
        )  # fmt: skip
        shards += ids_of(report_of(folder.path / shard[0]))
    assert len(set(shards)) == 9


def test_a_sample_is_the_same_in_every_process(folder: pytest.Pytester) -> None:
    """Every worker draws the sample that a single process draws, in the dataset's order."""
    (folder.path / "questions.csv").write_text(many_questions(100), encoding="utf-8")
    args = (D, "--answer-llm=replay:questions.csv", "--judge-llm=rules", "--simpleqa-sample=10")
    folder.runpytest_inprocess(*args, "--simpleqa-run-dir=bare")
    folder.runpytest_subprocess(*args, "--simpleqa-run-dir=dealt", "-n2")
    bare, dealt = report_of(folder.path / "bare"), report_of(folder.path / "dealt")
    assert len(ids_of(bare)) == 10
    assert ids_of(bare) == ids_of(dealt) == sorted(ids_of(bare))
    assert bare["verdicts"] == dealt["verdicts"]


# --- paths -----------------------------------------------------------------------------------


def test_paths_in_the_ini_file_count_from_it(folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dataset, prompt, env file, run directory and Report of an ini file lie beside it, wherever pytest is started."""
    (folder.path / "prompt.txt").write_text("Say: {question}", encoding="utf-8")
    (folder.path / "keys.env").write_text('SIMPLEQA_FILED={"base_url": "http://127.0.0.1:1/v1"}\n', encoding="utf-8")
    write_ini(
        folder,
        "simpleqa_dataset = questions.csv",
        "simpleqa_answer_prompt = file:prompt.txt",
        "simpleqa_env_file = keys.env",
        "simpleqa_run_dir = runs",
        "simpleqa_out = out/report.json",
        "judge_llm = rules",
    )
    below = folder.mkdir("below")
    monkeypatch.chdir(below)
    folder.runpytest_inprocess("--answer-llm=replay:../recorded.csv")
    assert not list(below.iterdir())
    assert run_json_of(folder.path / "runs")["answer_prompt"]["text"] == "Say: {question}"
    assert (folder.path / "out" / "report.json").read_bytes() == (
        run_dirs(folder.path / "runs")[0] / "report.json"
    ).read_bytes()


def test_paths_on_the_command_line_count_from_where_pytest_is_started(
    folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed paths count from the invocation directory, not from the ini file's."""
    write_ini(folder)
    (folder.path / "prompt.txt").write_text("Say: {question}", encoding="utf-8")
    below = folder.mkdir("below")
    monkeypatch.chdir(below)
    folder.runpytest_inprocess(
        "--simpleqa-dataset=../questions.csv",
        "--answer-llm=replay:../recorded.csv",
        "--judge-llm=replay:../recorded.csv",
        "--simpleqa-answer-prompt=file:../prompt.txt",
        "--simpleqa-run-dir=runs",
        "--simpleqa-out=report.json",
    )
    assert sorted(path.name for path in below.iterdir()) == ["report.json", "runs"]
    assert run_json_of(below)["answer_prompt"]["text"] == "Say: {question}"


def test_the_run_directory_ignores_itself_in_git(folder: pytest.Pytester) -> None:
    """Runs are kept in `.simpleqa` by default, with a .gitignore that leaves all of it out."""
    folder.runpytest_inprocess(*ASKED)
    assert (folder.path / ".simpleqa" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    (run_dir,) = run_dirs(folder.path / ".simpleqa")
    assert {path.name for path in run_dir.iterdir()} == {"run.json", "results.jsonl", "report.json"}


# --- the Report on standard output -----------------------------------------------------------


@pytest.mark.parametrize("how", [(), ("-n2",), ("-p", "no:terminal"), ("-qq",)], ids=" ".join)
def test_the_report_can_go_to_standard_output(folder: pytest.Pytester, how: tuple[str, ...]) -> None:
    """--simpleqa-out=- prints the Report behind everything that the session prints, whole and readable by machines."""
    result = folder.runpytest_subprocess(*ASKED, "--simpleqa-out=-", *how)
    text = result.stdout.str()
    report = json.loads(text[("\n" + text).index("\n{") :])
    assert report == report_of(folder.path)
    assert result.ret == report["exit_status"] == pytest.ExitCode.TESTS_FAILED


# --- prompts and parameters ------------------------------------------------------------------


def test_by_default_the_question_is_all_that_is_sent(folder: pytest.Pytester, server: FakeServer) -> None:
    """One user message with exactly the question; no parameter, but temperature 0 for the judge."""
    folder.runpytest_inprocess(*SERVED, "--simpleqa-limit=1")
    (answer,), (judgement,) = server.answers, server.judgements
    assert answer.body == {"model": "model", "messages": [{"role": "user", "content": "What is one and one?"}]}
    assert judgement.body["temperature"] == 0
    assert len(judgement.body["messages"]) == 1


@pytest.mark.parametrize("place", ["text", "file", "ini file"])
def test_prompts_are_texts_or_files(folder: pytest.Pytester, server: FakeServer, place: str) -> None:
    """Both prompts can be replaced: the placeholders in one pass, every other brace left as it is."""
    answer = 'Only {"grade": "A"} and {question}'
    grade = "{predicted_answer}? {target}! {question} {other} Predicted answer: {predicted_answer}"
    (folder.path / "answer.txt").write_bytes(b"\xef\xbb\xbf" + answer.encode())
    (folder.path / "grade.txt").write_text(grade, encoding="utf-8")
    files = ("file:answer.txt", "file:grade.txt")
    args = list(SERVED)
    if place == "ini file":
        write_ini(folder, f"simpleqa_answer_prompt = {files[0]}", f"simpleqa_grade_prompt = {files[1]}")
    else:
        said = files if place == "file" else (answer, grade)
        args += [f"--simpleqa-answer-prompt={said[0]}", f"--simpleqa-grade-prompt={said[1]}"]
    server.script(lambda body, nth: "A" if "judge" in body["model"] else "set {target} and {question}")
    folder.runpytest_inprocess(*args, "--simpleqa-limit=1")
    question, predicted = "What is one and one?", "set {target} and {question}"
    assert server.answers[0].prompt == f'Only {{"grade": "A"}} and {question}'
    assert server.judgements[0].prompt == f"{predicted}? 2! {question} {{other}} Predicted answer: {predicted}"
    assert run_json_of(folder.path)["grade_prompt"]["text"] == grade


@pytest.mark.parametrize("place", ["command line", "ini file"])
def test_parameters_are_json_else_text(folder: pytest.Pytester, server: FakeServer, place: str) -> None:
    """Request parameters are read as JSON, else taken as text; `K=` drops a default; the Report names them."""
    answer = ["temperature=0.5", 'stop=["x", "y"]', "user=some one", "seed=7", "reasoning_effort=", "logprobs=false"]
    judge = ["temperature=", "max_tokens=5"]
    args = [*SERVED, "--simpleqa-limit=1"]
    if place == "ini file":
        listed = [f"    {text}" for text in answer]
        write_ini(folder, "answer_llm_param =", *listed, "judge_llm_param =", *[f"    {text}" for text in judge])
    else:
        args += [f"--answer-llm-param={text}" for text in answer] + [f"--judge-llm-param={text}" for text in judge]
    folder.runpytest_inprocess(*args)
    sent = {key: value for key, value in server.answers[0].body.items() if key not in ("model", "messages")}
    assert sent == {"temperature": 0.5, "stop": ["x", "y"], "user": "some one", "seed": 7, "logprobs": False}
    judged = {key: value for key, value in server.judgements[0].body.items() if key not in ("model", "messages")}
    assert judged == {"max_tokens": 5}
    assert report_of(folder.path)["provenance"]["answer"]["params"] == sent


# --- how it is asked -------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "most"), [((), 3), (("-n2",), 3), (("-n2",), 1)], ids=["bare", "-n2", "-n2, one"])
def test_concurrency_bounds_the_whole_run(
    folder: pytest.Pytester, server: FakeServer, how: tuple[str, ...], most: int
) -> None:
    """So many pairs are in flight in all, however many workers there are; a single process reaches the bound."""
    (folder.path / "questions.csv").write_text(many_questions(12), encoding="utf-8")
    server.latency = server.judge_latency = 0.05
    result = folder.runpytest_subprocess(*SERVED, f"--simpleqa-concurrency={most}", *how)
    assert report_of(folder.path)["n"] == 12, result.stdout.str()
    assert server.max_in_flight <= most
    if not how:  # on a busy machine one worker may be done before the other has begun
        assert server.max_in_flight == most


def test_the_timeout_ends_a_question_that_hangs(folder: pytest.Pytester, server: FakeServer) -> None:
    """A question whose service hangs is an answer error after the timeout; the others have their verdicts."""
    server.script(lambda body, nth: Answer(fault="hang") if "France" in body["messages"][-1]["content"] else None)
    result = folder.runpytest_inprocess(*SERVED, "--simpleqa-timeout=0.5")
    report = report_of(folder.path)
    assert (report["n"], report["errors"], report["correct"]) == (3, 1, 1)
    assert report["samples"][1]["error"]["kind"] == "timeout"
    assert result.duration < 30  # the default deadline is 90


@pytest.mark.parametrize(("rule", "counts"), [("strict", (0, 1)), ("paper", (1, 0))], ids=["strict", "paper"])
def test_the_rule_of_reading_verdicts_is_chosen(
    folder: pytest.Pytester, server: FakeServer, rule: str, counts: tuple[int, int]
) -> None:
    """A reply without a verdict is a judge failure under `strict`, a guess under `paper`; the difference is counted."""
    server.script(lambda body, nth: completion("As far as I see, unclear") if "judge" in body["model"] else None)
    folder.runpytest_inprocess(*SERVED, "--simpleqa-limit=1", f"--simpleqa-parse={rule}")
    report = report_of(folder.path)
    assert (report["correct"], report["judge_failures"]) == counts
    assert report["options"]["parse"] == rule
    assert report["provenance"]["paper_parse_differs"] == 1


# --- what is kept and shown ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kept"),
    [((), 200), (("--simpleqa-max-samples=-1",), 210), (("--simpleqa-max-samples=0",), 0)],
    ids=["default", "all", "none"],
)
def test_samples_are_kept_up_to_a_number(folder: pytest.Pytester, args: tuple[str, ...], kept: int) -> None:
    """The Report keeps the first 200 rows in dataset order, or as many as said; verdicts of all."""
    (folder.path / "questions.csv").write_text(many_questions(210), encoding="utf-8")
    folder.runpytest_inprocess(D, "--answer-llm=replay:questions.csv", "--judge-llm=rules", *args)
    report = report_of(folder.path)
    assert ids_of(report) == [f"q{number:04d}" for number in range(1, kept + 1)]
    assert len(report["verdicts"]) == report["n"] == 210


@pytest.mark.parametrize(("pct", "lines"), [("50", 1), ("10", 9), ("0", 0)])
def test_progress_is_told_every_so_many_percent(folder: pytest.Pytester, pct: str, lines: int) -> None:
    """A progress line stands at every P percent, none at the end, none for 0."""
    (folder.path / "questions.csv").write_text(many_questions(20), encoding="utf-8")
    asked = (D, "--answer-llm=replay:questions.csv", "--judge-llm=rules")
    result = folder.runpytest_inprocess(*asked, f"--simpleqa-progress-pct={pct}", "--simpleqa-fail-on=none")
    assert len([line for line in result.outlines if " % " in line and " of 20 " in line]) == lines


# --- the environment -------------------------------------------------------------------------


@pytest.mark.parametrize("shell", [True, False], ids=["also in the shell", "in the file alone"])
def test_the_env_file_fills_what_the_shell_has_not_set(
    folder: pytest.Pytester, server: FakeServer, monkeypatch: pytest.MonkeyPatch, shell: bool
) -> None:
    """A dotenv file gives connections and keys; what the shell has set wins; nothing is put into the environment."""
    elsewhere = {"base_url": "http://127.0.0.1:1/v1", "api_key": "sk-of-the-file"}
    here = {"base_url": server.base_url, "api_key": "sk-of-the-shell"}
    in_file = elsewhere if shell else {**here, "api_key": "sk-of-the-file"}
    (folder.path / "keys.env").write_text(f"SIMPLEQA_FILED='{json.dumps(in_file)}'\n", encoding="utf-8")
    if shell:
        monkeypatch.setenv("SIMPLEQA_FILED", json.dumps(here))
    args = (D, "--answer-llm=filed:model", "--judge-llm=fake:judge", "--simpleqa-env-file=keys.env")
    result = folder.runpytest_subprocess(*args, "--simpleqa-limit=1")
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    assert server.answers[0].headers["authorization"] == (
        "Bearer sk-of-the-shell" if shell else "Bearer sk-of-the-file"
    )


# --- the table -------------------------------------------------------------------------------


def test_help_lists_every_option_and_ini_key(folder: pytest.Pytester) -> None:
    """`pytest --help` shows every option with its place-holder, and every ini key."""
    text = folder.runpytest_inprocess("--help").stdout.str()
    words = set(text.replace("=", " ").replace("(", " ").split())
    for spec in OPTIONS:
        assert spec.flag in words
        assert not spec.ini or spec.name in words


def test_markers_list_ours(folder: pytest.Pytester) -> None:
    """`pytest --markers` explains the label of a question's item."""
    folder.runpytest_inprocess("--markers").stdout.fnmatch_lines(["@pytest.mark.simpleqa(topic, answer_type): *"])


def test_every_option_is_tried_here() -> None:
    """No option goes without a test: its flag or its name stands in one of the tests of the options."""
    tried = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    missing = [spec.flag for spec in OPTIONS if spec.flag not in tried and spec.name not in tried]
    assert not missing
