"""The files of `conftest_examples/`, each copied into an empty folder and run as its docstring says."""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_server import FakeServer, error
from tests.small_run import report_of, run_dirs

EXAMPLES = Path(__file__).resolve().parents[1] / "conftest_examples"
ANSWERS = '''
def answer(prompt):
    """Stand for a local model: one good answer, one bare gold, one that would act in a page, and guesses."""
    if "Mona Lisa" in prompt:
        return "It was Leonardo da Vinci."
    if "capital of France" in prompt:
        return "paris."
    return "</td>|<b>guess</b>\\n# @all <!channel>"
'''


def command_of(example: str) -> list[str]:
    """Return the one command line in an example's docstring, as words."""
    docstring = ast.get_docstring(ast.parse((EXAMPLES / example).read_text(encoding="utf-8"))) or ""
    (line,) = [line for line in docstring.splitlines() if line.startswith("    ") and "pytest " in line]
    return shlex.split(line)


def run_example(
    pytester: pytest.Pytester, example: str, *more: str, local: str = "python:answers:answer"
) -> pytest.RunResult:
    """Run an example as its docstring says, with a callable, or another model, in the place of `local`."""
    pytester.makeconftest((EXAMPLES / example).read_text(encoding="utf-8"))
    pytester.makepyfile(answers=ANSWERS)
    words = command_of(example)
    args = [local if word == "local" else word for word in words[words.index("pytest") + 1 :]]
    return pytester.runpytest_subprocess(*args, "-W", "error", *more, timeout=100)


def samples_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the samples of the only run below `folder`, by question."""
    return {sample["question"]: sample for sample in report_of(folder)["samples"]}


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the objects in a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the examples look for out of the environment."""
    for name in ("CHAT_WEBHOOK_URL", "GITHUB_STEP_SUMMARY", "HOUSE_URL", "HOUSE_KEY", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A server behind the spec `fake:m`."""
    with FakeServer() as started:
        for name, value in started.environment().items():
            monkeypatch.setenv(name, value)
        yield started


def test_every_example_is_run_here_and_named_in_the_readme() -> None:
    """No example stands in the folder without a test of its own and a line in the README."""
    names = {path.name for path in EXAMPLES.iterdir() if path.suffix == ".py"}
    tests = Path(__file__).read_text(encoding="utf-8")
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    assert {name for name in names if f'"{name}"' in tests and name in readme} == names


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["bare", "n2"])
def test_a_plain_function_answers(pytester: pytest.Pytester, more: tuple[str, ...]) -> None:
    """What the plain hook knows is correct, and its "I don't know" is not attempted, bare and under -n."""
    result = run_example(pytester, "conftest_answer.py", *more)
    report = report_of(pytester.path)
    assert (report["n"], report["errors"], report["judge_failures"]) == (60, 0, 0), str(result.stdout)
    assert report["correct"] >= 4
    assert report["not_attempted"] >= 40
    assert samples_of(pytester.path)["What is the capital of France?"]["predicted"] == "Paris"


def test_an_async_function_answers_with_a_trace(pytester: pytest.Pytester) -> None:
    """The async hook's sources stand in the Report, and its refusal of a topic is that row's error alone."""
    run_example(pytester, "conftest_answer_async.py")
    samples = samples_of(pytester.path)
    assert samples["What is the capital of France?"]["verdict"] == "correct"
    assert samples["What is the capital of France?"]["extra"] == {"sources": ["France"]}
    errors = [sample for sample in samples.values() if sample["error"]]
    assert {(sample["topic"], sample["error"]["kind"]) for sample in errors} == {("Video games", "declined")}


def test_own_rules_grade(pytester: pytest.Pytester) -> None:
    """The judge hook accepts the bare gold in any case and nothing around it."""
    run_example(pytester, "conftest_judge.py")
    samples = samples_of(pytester.path)
    assert samples["What is the capital of France?"]["verdict"] == "correct"
    assert samples["Who painted the Mona Lisa?"]["verdict"] == "incorrect"


def test_an_alias_of_the_house_is_asked(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """`house:large` reaches the server with its key, its model and the system message before each question."""
    with FakeServer({"What is the capital of France?": "Paris"}) as server:
        monkeypatch.setenv("HOUSE_URL", server.base_url)
        monkeypatch.setenv("HOUSE_KEY", "sk-house-0123456789")
        run_example(pytester, "conftest_model.py", "--simpleqa-limit=5")
        assert {request.model for request in server.requests} == {"large"}
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer sk-house-0123456789"}
        assert {request.body["messages"][0]["role"] for request in server.requests} == {"system"}
    assert samples_of(pytester.path)["What is the capital of France?"]["verdict"] == "correct"


def test_an_alias_without_its_address_is_one_line(pytester: pytest.Pytester) -> None:
    """Without HOUSE_URL the run ends with exit 4 before any question, naming the variable."""
    result = run_example(pytester, "conftest_model.py")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: house:large: no address; set HOUSE_URL*"])


def test_a_chat_is_only_written_to_by_default(pytester: pytest.Pytester) -> None:
    """Without an address start, progress and end are noted in a file, escaped, and posted nowhere."""
    run_example(pytester, "conftest_chat.py", "--simpleqa-progress-pct=50")
    texts = [line["text"] for line in lines_of(pytester.path / "chat.jsonl")]
    assert [text.partition("\n")[0] for text in texts] == [
        "*sample: 60 questions*",
        "*sample: 50 %*",
        "*sample: 100 %*",
        "*sample: done*",
    ]


def test_a_chat_gets_the_posts(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an address every event is posted as JSON; one that refuses is warned of and costs nothing else."""
    with FakeServer() as server:  # it knows no such path and answers 404
        monkeypatch.setenv("CHAT_WEBHOOK_URL", f"http://127.0.0.1:{server.port}/hooks/T0-secret")
        result = run_example(pytester, "conftest_chat.py", "--simpleqa-progress-pct=0")
        posts = [request.body["text"] for request in server.requests]
    assert [text.partition("\n")[0] for text in posts] == ["*sample: 60 questions*", "*sample: done*"]
    result.stdout.fnmatch_lines(["*pytest_simpleqa_event failed at start*404*"])
    result.stdout.no_fnmatch_line("*T0-secret*")
    assert report_of(pytester.path)["complete"]


def test_the_page_shows_what_a_model_said_as_text(pytester: pytest.Pytester) -> None:
    """The Markdown summary has a row for each topic, and no answer can leave its cell."""
    run_example(pytester, "conftest_report.py")
    page = (pytester.path / "summary.md").read_text(encoding="utf-8")
    assert "| all questions | 60 | 2 | 58 | 0 | 3.3% |" in page
    assert "| Geography | 6 |" in page
    assert "&#60;&#47;td&#62;&#124;&#60;b&#62;guess" in page
    assert not any(mark in page for mark in ("<", "@", "\n# "))


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["bare", "n2"])
def test_wrong_answers_are_kept_as_they_arrive(pytester: pytest.Pytester, more: tuple[str, ...]) -> None:
    """The result hook hears of every result once, bare and under -n."""
    run_example(pytester, "conftest_result.py", *more)
    ids = [row["id"] for row in lines_of(pytester.path / "wrong.jsonl")]
    assert len(ids) == len(set(ids)) == report_of(pytester.path)["incorrect"] == 58


def test_the_prompt_depends_on_the_question(pytester: pytest.Pytester, server: FakeServer) -> None:
    """Each question is asked for the form that its answer type wants."""
    run_example(pytester, "conftest_wrap_prompt.py", local="fake:m")
    prompts = {request.prompt for request in server.answers}
    assert "How many days does a leap year have?\nAnswer with a number in figures." in prompts
    assert "Who wrote Romeo and Juliet?\nAnswer with the full name." in prompts
    assert "Which currency is used in Japan?\nAnswer in one short sentence." in prompts


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["bare", "n2"])
def test_a_system_message_stands_before_every_prompt(
    pytester: pytest.Pytester, server: FakeServer, more: tuple[str, ...]
) -> None:
    """Every request begins with the system message, bare and under -n; another message is another run to resume."""
    run_example(pytester, "conftest_wrap_system.py", "--simpleqa-limit=20", *more, local="fake:m")
    first = [request.body["messages"][0] for request in server.answers]
    (pytester.path / "system.txt").write_text("Be brief.", encoding="utf-8")
    again = run_example(
        pytester, "conftest_wrap_system.py", "--simpleqa-limit=20", "--simpleqa-resume=latest", local="fake:m"
    )
    assert len(first) == 20
    assert {message["role"] for message in first} == {"system"}
    wrapper = report_of(pytester.path)["provenance"]["answer"]["wrapped_by"][0]
    assert wrapper["name"] == "conftest:WithSystem"
    assert again.ret == 4
    again.stderr.fnmatch_lines(["*that run is another one: answer wrapped_by*"])


def test_only_the_marked_answer_is_judged(pytester: pytest.Pytester, server: FakeServer) -> None:
    """What stands behind `Answer:` is the answer, and the whole reply is kept beside it."""
    server.script(lambda body, nth: "It is a city.\n**Answer:** Paris" if "France" in str(body) else None)
    run_example(pytester, "conftest_wrap_answer.py", "--simpleqa-limit=4", local="fake:m")
    sample = samples_of(pytester.path)["What is the capital of France?"]
    assert (sample["predicted"], sample["verdict"]) == ("Paris", "correct")
    assert sample["raw"] == "It is a city.\n**Answer:** Paris"


def test_answers_are_kept_from_run_to_run(pytester: pytest.Pytester, server: FakeServer) -> None:
    """The second run asks only what failed in the first, and its kept answers cost no call."""
    server.script(lambda body, nth: error(400) if "Mona Lisa" in str(body) else None)
    run_example(pytester, "conftest_wrap_cache.py", "--simpleqa-limit=10", local="fake:m")
    server.script(None)
    asked = len(server.answers)
    run_example(pytester, "conftest_wrap_cache.py", "--simpleqa-limit=10", local="fake:m")
    assert [request.prompt for request in server.answers[asked:]] == ["Who painted the Mona Lisa?"]
    reports = [json.loads((path / "report.json").read_text(encoding="utf-8")) for path in run_dirs(pytester.path)]
    assert [(report["n"], report["errors"]) for report in reports] == [(10, 1), (10, 0)]
    assert reports[1]["usage"]["answer"]["calls"] == 1
    kept, new = (row["predicted"] for report in reports for row in report["samples"][:1])
    assert kept == new


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["bare", "n2"])
def test_skipped_questions_are_not_asked(pytester: pytest.Pytester, server: FakeServer, more: tuple[str, ...]) -> None:
    """A question with a skip mark costs no request and says why; the Report is incomplete without it."""
    result = run_example(pytester, "conftest_skip.py", *more, local="fake:m")
    prompts = [request.prompt for request in server.answers]
    report = report_of(pytester.path)
    assert (report["n"], report["selected"], report["complete"]) == (54, 60, False)
    assert len(prompts) == len(set(prompts)) == 54
    result.stdout.fnmatch_lines(["SKIPPED*our product knows nothing of video games"])
