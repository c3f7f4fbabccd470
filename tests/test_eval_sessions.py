"""Evals of a registry as test items: names, several runs in one session, sets, resuming, what is told."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.small_run import run_dirs

CAPITALS = [("France", "Paris"), ("Spain", "Madrid"), ("Italy", "Rome"), ("Norway", "Oslo")]
MODEL = """\
import os

def answer(prompt):
    with open(os.path.join(os.path.dirname(__file__), "asked.txt"), "a") as file:
        file.write(str(prompt).replace("\\n", " ") + "\\n")
    text = str(prompt)
    if "grade" in text:
        return "Y"
    return "It is Madrid" if "Spain" in text else "Paris" if "France" in text else "London"
"""
ANSWER = "--answer-llm=python:model:answer"
REGISTRY = "--simpleqa-registry-path=registry"
SIMPLEQA = Path(sys.executable).with_name("simpleqa")
"""The command beside this Python, whatever PATH says."""


@pytest.fixture
def registry(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a registry of four evals, one of them graded by a model, and a set of them."""
    root = pytester.path / "registry"
    for folder in ("evals", "data/capitals", "modelgraded", "eval_sets"):
        (root / folder).mkdir(parents=True)
    rows = [
        {"input": [{"role": "user", "content": f"Capital of {country}?"}], "ideal": city} for country, city in CAPITALS
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "data" / "capitals" / "samples.jsonl").write_text(text, encoding="utf-8")
    (root / "data" / "capitals" / "broken.jsonl").write_text('{"input": "Capital of Chad?"}\n', encoding="utf-8")
    (root / "evals" / "capitals.yaml").write_text(
        "".join(
            f"{name}:\n  id: {name}.dev.v0\n{name}.dev.v0:\n  class: {cls}\n  args:\n"
            f"    samples_jsonl: capitals/{data}\n{more}"
            for name, cls, data, more in (
                ("cap-match", "evals.elsuite.basic.match:Match", "samples.jsonl", ""),
                ("cap-includes", "evals.elsuite.basic.includes:Includes", "samples.jsonl", ""),
                ("cap-fuzzy", "evals.elsuite.basic.fuzzy_match:FuzzyMatch", "samples.jsonl", ""),
                (
                    "cap-graded",
                    "evals.elsuite.modelgraded.classify:ModelBasedClassify",
                    "samples.jsonl",
                    "    modelgraded_spec: grade\n    eval_type: classify\n",
                ),
                ("cap-broken", "evals.elsuite.basic.match:Match", "broken.jsonl", ""),
                ("cap-lost", "evals.elsuite.basic.match:Match", "nowhere.jsonl", ""),
            )
        ),
        encoding="utf-8",
    )
    (root / "modelgraded" / "grade.yaml").write_text(
        "grade:\n  prompt: 'grade {completion} Y or N'\n  choice_strings: ['Y', 'N']\n"
        "  choice_scores: {Y: 1.0, N: 0.0}\n  input_outputs:\n    input: completion\n",
        encoding="utf-8",
    )
    (root / "eval_sets" / "caps.yaml").write_text(
        "caps:\n  evals: [cap-match, cap-includes, cap-fuzzy, cap-graded]\n"
        "holed:\n  evals: [cap-match, cap-broken, cap-lost, no-such, cap-fuzzy]\n",
        encoding="utf-8",
    )
    (pytester.path / "model.py").write_text(MODEL, encoding="utf-8")
    return pytester


def reports(folder: Path) -> dict[str, Any]:
    """Return the Reports of the newest session, by name."""
    found = {}
    for run_dir in run_dirs(folder):
        report = json.loads((run_dir / "report.json").read_text(encoding="utf-8"))
        found[report["name"]] = report
    return found


def asked(folder: Path) -> list[str]:
    path = folder / "asked.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def verdicts(report: Any) -> list[str]:
    return [row[3] for row in report["verdicts"]]


@pytest.mark.parametrize("how", [(), ("-n0",), ("-n2",)], ids=["bare", "n0", "n2"])
def test_each_eval_is_a_run_of_its_own(registry: pytest.Pytester, how: tuple[str, ...]) -> None:
    """Evals named one by one have node ids, a Report and figures each, under their full names."""
    result = registry.runpytest_subprocess(
        REGISTRY, "--simpleqa-eval=cap-match", "--simpleqa-eval=cap-includes.dev.v0", ANSWER, "-v", *how
    )
    result.stdout.fnmatch_lines_random(["*cap-match.dev.v0::2*", "*cap-includes.dev.v0::2*"])
    assert result.ret == 1
    found = reports(registry.path)
    assert verdicts(found["cap-match.dev.v0"]) == ["correct", "incorrect", "incorrect", "incorrect"]
    assert verdicts(found["cap-includes.dev.v0"]) == ["correct", "correct", "incorrect", "incorrect"]
    assert found["cap-includes.dev.v0"]["metrics"]["accuracy"] == 0.5
    assert found["cap-match.dev.v0"]["judge"] == "match"
    assert len(asked(registry.path)) == 8


def test_a_model_grades_where_the_eval_says_so(registry: pytest.Pytester) -> None:
    """A model-graded eval asks the judge model, and its figures stand in the Report."""
    judge = "--judge-llm=python:model:answer"
    assert registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval=cap-graded", ANSWER, judge).ret == 0
    report = reports(registry.path)["cap-graded.dev.v0"]
    assert (report["correct"], report["metrics"]["counts/Y"], report["metrics"]["score"]) == (4, 4, 1.0)


def test_a_model_graded_eval_needs_a_judge(registry: pytest.Pytester) -> None:
    """Without a judge model nothing is asked: one line and exit 4."""
    result = registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval=cap-graded", ANSWER)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *add --judge-llm*"])
    assert asked(registry.path) == []


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("cap-mtach", "did you mean cap-match"),
        ("cap-broken", "line 1: * 'ideal'"),
        ("cap-lost", "nowhere.jsonl"),
    ],
)
def test_an_eval_that_cannot_be_run_is_one_line(registry: pytest.Pytester, name: str, wanted: str) -> None:
    """A wrong name, a sample without an ideal and missing data are told before anything is asked: exit 4."""
    result = registry.runpytest_subprocess(REGISTRY, f"--simpleqa-eval={name}", ANSWER)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: *{wanted}*"])
    assert asked(registry.path) == []


@pytest.mark.parametrize("how", [(), ("-n2",)], ids=["bare", "n2"])
def test_every_kind_of_broken_eval_costs_itself_alone(registry: pytest.Pytester, how: tuple[str, ...]) -> None:
    """Malformed YAML, a class that cannot be imported and one model where several are wanted are an item each."""
    evals = registry.path / "registry" / "evals"
    evals.joinpath("torn.yaml").write_text("cap-torn:\n  class: [\n", encoding="utf-8")
    graded = "evals.elsuite.modelgraded.classify:ModelBasedClassify"
    evals.joinpath("odd.yaml").write_text(
        "cap-code:\n  class: nowhere:Thing\n  args: {samples_jsonl: capitals/samples.jsonl}\n"
        f"cap-several:\n  class: {graded}\n  args:\n    samples_jsonl: capitals/samples.jsonl\n"
        "    modelgraded_spec: best\n    eval_type: classify\n    multicomp_n: from_models\n",
        encoding="utf-8",
    )
    (registry.path / "registry" / "eval_sets" / "odd.yaml").write_text(
        "odd:\n  evals: [cap-torn, cap-code, cap-several, 'cap-m*']\n", encoding="utf-8"
    )
    shipped_best = (
        "best:\n  prompt: 'Best of {completion}'\n  choice_strings: from_n\n  output_template: '{i}. {output} '\n"
    )
    (registry.path / "registry" / "modelgraded" / "best.yaml").write_text(
        shipped_best + "  input_outputs: {input: completion}\n", encoding="utf-8"
    )
    asking = (REGISTRY, "--simpleqa-eval-set=odd")
    judge = ("--judge-llm=python:model:answer", "--simpleqa-fail-on=none")
    result = registry.runpytest_subprocess(*asking, ANSWER, *judge, "--tb=short", *how)
    assert result.ret == 1
    result.stdout.fnmatch_lines_random(
        ["*torn.yaml, line *: not YAML*", "*no module 'nowhere'*", "*wanted several answer models, found one*"]
    )
    assert set(reports(registry.path)) == {"cap-match.dev.v0"}
    collected = registry.runpytest_subprocess(*asking, "--collect-only", "-q", *how)
    assert collected.ret == 1
    collected.stdout.fnmatch_lines(["warning: *torn.yaml, line*", "warning: cannot be run: cap-code: *'nowhere'*"])
    for name, wanted in (
        () if how else (("cap-torn", "torn.yaml, line *: not YAML"), ("cap-code", "cap-code: *no module 'nowhere'"))
    ):
        refused = registry.runpytest_subprocess(REGISTRY, f"--simpleqa-eval={name}", ANSWER, *how)
        assert refused.ret == 4
        refused.stderr.fnmatch_lines([f"ERROR: *{wanted}*"])


@pytest.mark.parametrize("how", [(), ("-n2",)], ids=["bare", "n2"])
def test_what_cannot_be_run_in_a_set_fails_alone(registry: pytest.Pytester, how: tuple[str, ...]) -> None:
    """Inside a set each such eval is one failed item with its reason, and the others go on."""
    result = registry.runpytest_subprocess(
        REGISTRY, "--simpleqa-eval-set=holed", ANSWER, "--simpleqa-fail-on=none", "-v", *how
    )
    assert result.ret == 1
    result.stdout.fnmatch_lines_random(
        ["*cap-broken.dev.v0::cannot-run*", "*cap-lost.dev.v0::cannot-run*", "*no-such::cannot-run*", "*nowhere.jsonl*"]
    )
    assert set(reports(registry.path)) == {"cap-match.dev.v0", "cap-fuzzy.dev.v0"}
    assert len(asked(registry.path)) == 8


def test_a_set_is_gone_on_with_at_the_sample(registry: pytest.Pytester) -> None:
    """A set that stopped half-way asks only the samples that are missing, of whatever eval they are."""
    arguments: tuple[str, ...] = (REGISTRY, "--simpleqa-eval-set=caps", ANSWER, "--judge-llm=python:model:answer")
    arguments += ("--simpleqa-concurrency=1",)
    stopped = registry.runpytest_subprocess(*arguments, "--simpleqa-fail-on=incorrect", "-x")
    assert stopped.ret == 1
    before = len(asked(registry.path))
    assert 0 < before < 20
    again = registry.runpytest_subprocess(*arguments, "--simpleqa-resume=latest", "--simpleqa-fail-on=none")
    assert again.ret == 0
    found = reports(registry.path)
    assert len(found) == 4
    assert all(report["complete"] for report in found.values())
    assert len(asked(registry.path)) == 20  # 16 answers and 4 grades: nothing was asked twice
    assert len(run_dirs(registry.path)) == 4


def test_gates_are_decided_over_all_runs(registry: pytest.Pytester) -> None:
    """A gate applies to every run, one with a prefix to that run alone; the worst decides the exit status."""
    both = (REGISTRY, "--simpleqa-eval=cap-match", "--simpleqa-eval=cap-includes", ANSWER)
    assert registry.runpytest_subprocess(*both, "--simpleqa-gate=accuracy >= 0.2").ret == 0
    assert registry.runpytest_subprocess(*both, "--simpleqa-gate=accuracy >= 0.4").ret == 1
    assert registry.runpytest_subprocess(*both, "--simpleqa-gate=cap-includes.dev.v0: accuracy >= 0.4").ret == 0
    assert registry.runpytest_subprocess(*both, "--simpleqa-gate=cap-none.dev.v0: accuracy >= 0.4").ret == 4


def test_an_id_runs_that_sample_alone(registry: pytest.Pytester) -> None:
    """A node id pasted behind the same options asks one sample, and nothing of the other runs."""
    both = (REGISTRY, "--simpleqa-eval=cap-match", "--simpleqa-eval=cap-includes", ANSWER)
    result = registry.runpytest_subprocess(*both, "cap-includes.dev.v0::2", "-v")
    assert result.ret == 0
    assert len(asked(registry.path)) == 1
    assert registry.runpytest_subprocess(*both, "-k", "cap-match", "--collect-only", "-q").ret == 0


def test_one_file_does_not_take_several_reports(registry: pytest.Pytester) -> None:
    """--simpleqa-out names the run where there are several, else it is refused."""
    both = (REGISTRY, "--simpleqa-eval=cap-match", "--simpleqa-eval=cap-includes", ANSWER)
    result = registry.runpytest_subprocess(*both, "--simpleqa-out=report.json")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*the session holds 2 runs; put {name} into the file's name*"])
    registry.runpytest_subprocess(*both, "--simpleqa-out=of-{name}.json")
    assert {path.name for path in registry.path.glob("of-*")} == {
        "of-cap_match.dev.v0.json",
        "of-cap_includes.dev.v0.json",
    }


def test_collecting_needs_no_model(registry: pytest.Pytester) -> None:
    """--collect-only lists the samples of an eval without any model."""
    result = registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval=cap-graded", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["cap-graded.dev.v0::1", "cap-graded.dev.v0::4"])
    assert asked(registry.path) == []


def test_arguments_of_an_eval_are_laid_over_its_own(registry: pytest.Pytester) -> None:
    """--simpleqa-eval-param changes an argument, and is part of what a resumed run must share."""
    one = (REGISTRY, "--simpleqa-eval=cap-match", ANSWER, "--simpleqa-fail-on=none")
    shots = ("--simpleqa-eval-param=num_few_shot=1", "--simpleqa-eval-param=few_shot_jsonl=capitals/shots.jsonl")
    shot = {"sample": [{"role": "system", "name": "example_user", "content": "Capital of Chad?"}]}
    path = registry.path / "registry" / "data" / "capitals" / "shots.jsonl"
    path.write_text(json.dumps(shot) + "\n", encoding="utf-8")
    assert registry.runpytest_subprocess(*one).ret == 0
    refused = registry.runpytest_subprocess(*one, *shots, "--simpleqa-resume=latest")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines(["*that run is another one*"])
    assert registry.runpytest_subprocess(*one, *shots).ret == 0
    assert any("Chad" in line for line in asked(registry.path))


def test_a_model_without_questions_says_so(registry: pytest.Pytester) -> None:
    """--answer-llm with nothing to ask is no silent success."""
    result = registry.runpytest_subprocess(ANSWER)
    result.stdout.fnmatch_lines(["no question was asked: add --simpleqa-dataset=FILE or --simpleqa-eval=NAME*"])
    assert result.ret == 5


FOUR = (REGISTRY, "--simpleqa-eval-set=caps", ANSWER, "--judge-llm=python:model:answer", "--simpleqa-fail-on=none")


@pytest.mark.parametrize("how", [(), ("-n2",)], ids=["bare", "n2"])
def test_many_runs_are_told_in_brief(registry: pytest.Pytester, how: tuple[str, ...]) -> None:
    """With many runs there is one line before the first request, one table at the end and no page for each."""
    result = registry.runpytest_subprocess(*FOUR, "--simpleqa-progress-pct=25", *how)
    assert result.ret == 0
    text = result.stdout.str()
    judges = "match, includes, fuzzy_match, python:model:answer"
    assert f"4 runs: 16 questions to python:model:answer, judged by {judges}: at least 20 calls" in text
    assert text.count("= simpleqa =") == 1
    assert text.count("questions to") == 1
    assert "25 %  4 of 16" in text
    result.stdout.re_match_lines([r"all runs +16 ", r"cap-match.dev.v0 +4 ", r"cap-graded.dev.v0 +4 .* 1$"])


def test_verbose_shows_each_of_many_runs(registry: pytest.Pytester) -> None:
    """-v shows a page for each run, and the table behind them."""
    text = registry.runpytest_subprocess(*FOUR, "-v").stdout.str()
    assert text.count("= simpleqa =") == 5
    assert text.count("questions to") == 4


def test_several_answer_models_make_one_completion_each(registry: pytest.Pytester) -> None:
    """`from_models` asks every model that --answer-llm names, with commas between; other evals take one."""
    (registry.path / "registry" / "evals" / "several.yaml").write_text(
        "cap-several.dev.v0:\n  class: evals.elsuite.modelgraded.classify:ModelBasedClassify\n  args:\n"
        "    samples_jsonl: capitals/samples.jsonl\n    modelgraded_spec: pick\n    eval_type: classify\n"
        "    multicomp_n: from_models\n",
        encoding="utf-8",
    )
    (registry.path / "registry" / "modelgraded" / "pick.yaml").write_text(
        "pick:\n  prompt: 'grade {completion}'\n  choice_strings: [Y, N]\n  output_template: '{i}. {output} '\n"
        "  input_outputs:\n    input: completion\n",
        encoding="utf-8",
    )
    two = ("--answer-llm=python:model:answer,python:model:answer", "--judge-llm=python:model:answer")
    result = registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval=cap-several.dev.v0", *two)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["4 questions to *, judged by python:model:answer: at least 12 calls"])
    assert len(asked(registry.path)) == 12
    assert reports(registry.path)["cap-several.dev.v0"]["samples"][0]["predicted"] == "1. Paris 2. Paris"
    for arguments in (("cap-match", *two), ("cap-several.dev.v0", ANSWER, two[1])):
        refused = registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval", *arguments)
        assert refused.ret == 4
        refused.stderr.fnmatch_lines(["ERROR: *answer model*"])
    assert registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval=cap-several.dev.v0", "--collect-only").ret == 0


@pytest.mark.parametrize(
    "flag",
    [
        "--simpleqa-ask-confidence",
        "--simpleqa-sentinels=2",
        "--simpleqa-grade-prompt={question} {target} {predicted_answer}",
        "--simpleqa-parse=paper",
    ],
)
def test_what_concerns_datasets_is_refused_where_only_evals_are_asked(registry: pytest.Pytester, flag: str) -> None:
    """An option that would do nothing is told in one line; beside a dataset it concerns that alone."""
    one = (REGISTRY, "--simpleqa-eval=cap-match", ANSWER, flag)
    refused = registry.runpytest_subprocess(*one)
    assert refused.ret == 4
    refused.stderr.fnmatch_lines([f"ERROR: {flag.partition('=')[0]} concerns the questions of a dataset*"])
    assert asked(registry.path) == []
    beside = ("--simpleqa-dataset=sample", "--simpleqa-limit=1", "--judge-llm=rules", "--simpleqa-fail-on=none")
    if flag == "--simpleqa-ask-confidence":  # one tells for all
        assert registry.runpytest_subprocess(*one, *beside).ret == 0
        assert set(reports(registry.path)) == {"cap-match.dev.v0", "sample"}


def test_recorded_answers_are_graded_by_the_template(registry: pytest.Pytester) -> None:
    """`replay:` of an earlier run puts its answers to the same template, or to another eval, without asking again."""
    graded = (REGISTRY, "--simpleqa-eval=cap-graded", "--judge-llm=python:model:answer")
    assert registry.runpytest_subprocess(*graded, ANSWER).ret == 0
    run = run_dirs(registry.path)[0]
    before = len(asked(registry.path))
    again = registry.runpytest_subprocess(*graded, f"--answer-llm=replay:{run}")
    assert again.ret == 0
    assert len(asked(registry.path)) == before + 4  # the judge's
    recorded = (f"--answer-llm=replay:{run}", f"--judge-llm=replay:{run}")
    assert registry.runpytest_subprocess(*graded[:2], *recorded).ret == 0
    assert reports(registry.path)["cap-graded.dev.v0"]["metrics"] == {"counts/Y": 4, "score": 1.0}
    other = registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval=cap-includes", recorded[0])
    assert other.ret == 1
    assert verdicts(reports(registry.path)["cap-includes.dev.v0"]) == ["correct", "correct", "incorrect", "incorrect"]
    assert len(asked(registry.path)) == before + 4


def test_shards_of_an_eval_have_its_figures_after_a_resume(registry: pytest.Pytester) -> None:
    """Merged shards claim no figures; going on with the merged run makes them of all results, asking nothing."""
    one = (REGISTRY, "--simpleqa-eval=cap-includes", ANSWER, "--simpleqa-fail-on=none")
    for share in ("1/2", "2/2"):
        assert registry.runpytest_subprocess(*one, f"--simpleqa-shard={share}").ret == 0
    shards = [str(path) for path in run_dirs(registry.path)]
    merged = registry.run(SIMPLEQA, "merge", *shards, "--out=whole")
    merged.stderr.fnmatch_lines(["*an eval's figures are no sum of its shards' figures*"])
    path = registry.path / "whole" / "report.json"
    assert json.loads(path.read_text(encoding="utf-8")).get("metrics") is None
    before = len(asked(registry.path))
    assert registry.runpytest_subprocess(*one, "--simpleqa-resume=whole").ret == 0
    assert json.loads(path.read_text(encoding="utf-8"))["metrics"]["accuracy"] == 0.5
    assert len(asked(registry.path)) == before
    path.unlink()
    dead = registry.run(SIMPLEQA, "report", "whole")
    dead.stderr.fnmatch_lines(["*go on with the run, by --simpleqa-resume*"])


def test_a_rule_of_an_eval_is_its_judges_name(registry: pytest.Pytester) -> None:
    """An eval that grades by itself names its rule as the judge everywhere, whatever judge is named for others."""
    one = (REGISTRY, "--simpleqa-eval=cap-match", ANSWER, "--simpleqa-fail-on=none")
    assert registry.runpytest_subprocess(*one).ret == 0
    run = run_dirs(registry.path)[0]
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["judge"]["spec"] == "match"
    again = registry.runpytest_subprocess(
        *one, "--judge-llm=rules", f"--simpleqa-resume={run}", f"--simpleqa-baseline={run}"
    )
    assert " ".join(again.stdout.str().split()).count("judged by match") == 3  # before, above the table, as a baseline
    assert len(asked(registry.path)) == 4
    replayed = registry.runpytest_subprocess(*one[:2], f"--answer-llm=replay:{run}", f"--judge-llm=replay:{run}")
    replayed.stdout.fnmatch_lines([f"4 questions to replay:*, judged by replay:{run}: no calls to a service"])


WRAP = """
async def shout(question, prompt, complete, repeat):
    reply = await complete({prompt})
    return reply.text.upper()

def pytest_simpleqa_wrap(answerer, config):
    return shout
"""


def test_a_wrapper_gets_the_prompt_of_a_sample(registry: pytest.Pytester) -> None:
    """A wrapper changes prompt and answer of a basic template; of an eval that asks by itself, answers alone."""
    registry.makeconftest(WRAP.format(prompt="[{'role': 'system', 'content': 'Be brief.'}, *prompt]"))
    judge = ("--judge-llm=python:model:answer", "--simpleqa-fail-on=none")
    registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval=cap-match", ANSWER, *judge)
    assert all("Be brief." in line and "Capital of" in line for line in asked(registry.path))
    assert reports(registry.path)["cap-match.dev.v0"]["samples"][0]["predicted"] == "PARIS"
    refused = registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval=cap-graded", ANSWER, *judge)
    refused.stdout.fnmatch_lines(["*a wrapper can change its answers only*"])
    registry.makeconftest(WRAP.format(prompt="prompt"))
    assert registry.runpytest_subprocess(REGISTRY, "--simpleqa-eval=cap-graded", ANSWER, *judge).ret == 0
    assert reports(registry.path)["cap-graded.dev.v0"]["samples"][0]["predicted"] == "PARIS"


@pytest.mark.parametrize("how", [(), ("-n2",)], ids=["bare", "n2"])
@pytest.mark.parametrize("word", ["latest", "auto"])
def test_a_killed_set_is_gone_on_with_at_the_sample(registry: pytest.Pytester, how: tuple[str, ...], word: str) -> None:
    """After kill -9 half-way no request is made again but those in flight, of whatever eval they are."""
    (registry.path / "model.py").write_text(
        f"import time\n{MODEL}".replace("    text =", "    time.sleep(0.1)\n    text =")
    )
    command = [sys.executable, "-m", "pytest", *FOUR, "--simpleqa-concurrency=2", *how]
    with subprocess.Popen(command, cwd=registry.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as session:
        deadline = time.monotonic() + 60
        while len(asked(registry.path)) < 8 and time.monotonic() < deadline:
            time.sleep(0.02)
        session.kill()
    assert not list(registry.path.glob(".simpleqa/*/report.json"))
    again = registry.runpytest_subprocess(*FOUR, "--simpleqa-concurrency=2", f"--simpleqa-resume={word}", *how)
    assert again.ret == 0
    found = reports(registry.path)
    assert (len(found), len(run_dirs(registry.path))) == (4, 4)
    assert all(report["complete"] and report["metrics"] for report in found.values())
    assert 20 <= len(asked(registry.path)) <= 22  # 16 answers and 4 grades, and what the kill cut off
