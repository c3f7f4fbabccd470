"""Promises of `evals/custom.py`, with `sitting.py`, `recorder.py`, `standin.py` and `api.py` behind it."""

from __future__ import annotations

import asyncio
import importlib
import random
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.engine import Engine
from pytest_simpleqa.errors import ModelError, RunError, SimpleQAError, SpecError
from pytest_simpleqa.evals.build import build_eval
from pytest_simpleqa.evals.onecall import calls_twice
from pytest_simpleqa.evals.protocol import Eval
from pytest_simpleqa.evals.recorder import Recorder, plain
from pytest_simpleqa.evals.registry import Registry
from pytest_simpleqa.evals.sitting import Completions
from pytest_simpleqa.evals.standin import has_evals
from pytest_simpleqa.models.callables import callable_model
from pytest_simpleqa.models.protocol import Model
from pytest_simpleqa.records import Prompt, QuestionResult, Reply
from pytest_simpleqa.runlog import RunLog, read_rows
from pytest_simpleqa.stage import Ask, Stage

stands_in = pytest.mark.skipif(has_evals(), reason="the evals package itself is installed, with words of its own")
EXAMPLE = Path(__file__).resolve().parents[1] / "conftest_examples" / "evals_custom"


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the modules and folders that a test has made importable."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name in ("arithmetic", "mine") or name.partition(".")[0] == "evals":
            del sys.modules[name]


class Scripted:
    """A model that keeps what it is asked, fails as told, and answers what `say` makes of a prompt."""

    max_in_flight: int | None = None
    is_service = True

    def __init__(self, say: Any, *faults: ModelError | None) -> None:
        self.say = say
        self.faults = list(faults)
        self.asked: list[tuple[Prompt, dict[str, Any]]] = []

    async def complete(self, prompt: Prompt) -> Reply:
        return await self.complete_with(prompt, {})

    async def complete_with(self, prompt: Prompt, params: Any) -> Reply:
        self.asked.append((prompt, dict(params)))
        if self.faults and (fault := self.faults.pop(0)) is not None:
            raise fault
        return Reply(self.say(prompt), model="m-1", prompt_tokens=3, completion_tokens=1)

    async def close(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"provider": "test", "model": "m", "base_url_host": None, "params": {}}


def add(prompt: Prompt) -> str:
    """Answer a sum, whatever stands before it; one of them wrongly."""
    text = prompt if isinstance(prompt, str) else prompt[-1]["content"]
    a, b = text.rpartition(" ")[2].rstrip("=").split("+")
    return "24" if (a, b) == ("19", "4") else str(int(a) + int(b))


def registry_of(folder: Path, source: str = "", **args: Any) -> Registry:
    """Return a registry whose one eval, `mine.dev.v0`, is `Mine` in a module with the given source."""
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "mine.py").write_text(source, encoding="utf-8")
    (folder / "data" / "some.jsonl").write_text('{"q": "1"}\n{"q": "2"}\n{"q": "3"}\n', encoding="utf-8")
    lines = "".join(f"\n    {key}: {value}" for key, value in args.items())
    name = "check" if "def check" in source else "Mine"
    (folder / "evals" / "mine.yaml").write_text(
        f"mine.dev.v0:\n  class: mine:{name}\n  args:{lines or ' {}'}\n", encoding="utf-8"
    )
    return Registry([folder])


def build(registry: Registry, name: str, *models: Model, limit: int = 0, base: Path | None = None) -> Eval:
    return build_eval(registry.eval(name), registry, models, limit=limit, base=base)


def run(
    made: Eval, log: RunLog | None = None, known: Any = None, only: Sequence[str] = (), timeout: float = 5
) -> list[QuestionResult]:
    """Put an eval's questions to the engine as a session does, all ahead."""
    engine = Engine({"": Stage(made.answerer, made.judge, timeout, log=log, known=dict(known or {}))}, concurrency=8)
    asks = [Ask(question) for question in made.dataset if not only or question.id in only]
    try:
        engine.offer(asks)
        return [engine.result(ask) for ask in asks]
    finally:
        engine.close()


CLASS = """
import evals
from evals.record import record_metrics

class Mine(evals.Eval):
    def eval_sample(self, sample, rng):
{body}
    def run(self, recorder):
        self.eval_all_samples(recorder, self.get_samples())
        return {report}
"""


def class_of(body: str, report: str = "{}") -> str:
    return CLASS.format(body="".join(f"        {line}\n" for line in body.splitlines()), report=report)


def made_of(folder: Path, body: str, *models: Model, report: str = "{}", **options: Any) -> Eval:
    registry = registry_of(folder, class_of(body, report), samples_jsonl="some.jsonl")
    return build(registry, "mine.dev.v0", *(models or (Scripted(lambda prompt: "yes"),)), base=folder, **options)


ASKS = "said = self.completion_fn(sample['q'], temperature=0).get_completions()[0]\n"


# --- the example ---------------------------------------------------------------------------


@pytest.fixture
def example(tmp_path: Path) -> Registry:
    """The shipped example, copied as its docstring says."""
    shutil.copytree(EXAMPLE, tmp_path / "evals_custom")
    return Registry([tmp_path / "evals_custom"])


def test_the_arithmetic_eval_runs_sample_by_sample(example: Registry, tmp_path: Path) -> None:
    """The guide's class needs no change: its samples are questions, its matches verdicts, `run` the figures."""
    model = Scripted(add)
    made = build(example, "arithmetic", model, base=tmp_path)
    assert [(q.id, q.problem, q.answer) for q in made.dataset][:2] == [("1", "2+3=", "5"), ("2", "10+20=", "30")]
    results = run(made)
    assert [r.status for r in results] == ["correct", "correct", "incorrect", "correct", "correct"]
    assert results[2].predicted == "24"
    assert results[2].answer_usage.calls == 1
    assert made.metrics(results) == {"accuracy": 0.8}
    assert {tuple(params.items()) for _, params in model.asked} == {(("temperature", 0.0), ("max_tokens", 4))}


def test_few_shot_examples_are_drawn_as_by_openai_evals(example: Registry, tmp_path: Path) -> None:
    """Each sample's `rng` is seeded by its name, index and the seed, the same in every process and run."""
    model = Scripted(add)
    run(build(example, "arithmetic", model, base=tmp_path), only=["3"])
    (prompt, _) = model.asked[0]
    assert isinstance(prompt, list)
    train = ["2+2=", "48+2=", "7+9=", "31+14="]
    drawn = random.Random(b"arithmetic.dev.2:20220722").sample(train, 2)
    assert [message["content"] for message in prompt if message.get("name") == "example_user"] == drawn


def test_a_function_is_an_eval_too(example: Registry, tmp_path: Path) -> None:
    """The example's async function, with its argument from the YAML, gives the same verdicts and accuracy."""
    model = Scripted(add)
    made = build(example, "arithmetic-function", model, base=tmp_path)
    results = run(made)
    assert [r.status for r in results] == ["correct", "correct", "incorrect", "correct", "correct"]
    assert made.metrics(results) == {"accuracy": 0.8}
    assert ("Answer with the number alone: 2+3=", {"temperature": 0, "max_tokens": 4}) in model.asked


# --- what travels --------------------------------------------------------------------------


def test_what_was_recorded_is_in_the_row(tmp_path: Path) -> None:
    """Events and what eval_sample returned stand in the row's `extra`, in plain JSON."""
    body = ASKS + "record_metrics(length=len(said), odd={1}, nan=float('nan'))\nreturn (said, 1)"
    result = run(made_of(tmp_path, body))[0]
    assert result.status == "recorded"
    assert result.predicted == "yes"
    assert result.extra is not None
    assert result.extra["returned"] == ["yes", 1]
    sampling, metrics = result.extra["events"]
    assert sampling["data"] == {
        "prompt": "1",
        "sampled": ["yes"],
        "model": "m-1",
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    assert metrics == {"type": "metrics", "data": {"length": 3, "odd": [1], "nan": None}}


def test_run_sees_what_a_whole_run_would_have_recorded(tmp_path: Path) -> None:
    """`run` gets the events by sample, and from eval_all_samples what each sample returned, in order."""
    report = (
        "{'ids': len({e.sample_id for e in recorder.get_events('metrics')}), 'sum': sum(recorder.get_scores('n')), "
        "'x': {'y': 1.5, 'nan': float('nan')}, 'text': 'gone'}"
    )
    made = made_of(tmp_path, ASKS + "record_metrics(n=int(sample['q']))\nreturn 7", report=report)
    results = run(made)
    assert made.metrics(results) == {"ids": 3, "sum": 6, "x/y": 1.5, "x/nan": None}
    assert made.metrics(results[1:2]) == {"ids": 1, "sum": 2, "x/y": 1.5, "x/nan": None}


def test_a_resumed_sample_is_not_asked_again(tmp_path: Path) -> None:
    """Rows of the run log are taken over with their events; the figures are those of an unbroken run."""
    report = "{'n': len(recorder.get_events('match'))}"
    body = ASKS + "evals.record_and_check_match(sample['q'], said, 'yes')"
    log = RunLog(tmp_path / "results.jsonl")
    run(made_of(tmp_path, body, report=report), log, only=["1", "3"])
    log.close()
    rows, _ = read_rows([log.path])
    again = Scripted(lambda prompt: "yes")
    made = made_of(tmp_path, body, again, report=report)
    results = run(made, known=rows)
    assert [prompt for prompt, _ in again.asked] == ["2"]
    assert made.metrics(results) == {"n": 3}


def test_a_kill_between_answer_and_verdict_runs_the_sample_again(tmp_path: Path) -> None:
    """An answer whose verdict was never written is judged, by running its sample once more."""
    body = ASKS + "evals.record_and_check_match(sample['q'], said, 'yes')"
    log = RunLog(tmp_path / "results.jsonl")
    run(made_of(tmp_path, body), log, only=["1"])
    log.close()
    log.path.write_bytes(log.path.read_bytes().split(b"\n")[0] + b"\n")
    rows, _ = read_rows([log.path])
    (result,) = run(made_of(tmp_path, body), known=rows, only=["1"])
    assert result.status == "correct"


def test_an_answer_of_blanks_is_not_attempted(tmp_path: Path) -> None:
    """What the model left empty is no wrong answer, as with any question."""
    blank = callable_model("blank", lambda prompt: " ")
    body = ASKS + "evals.record_and_check_match(sample['q'], said, 'yes')"
    assert {result.status for result in run(made_of(tmp_path, body, blank))} == {"not_attempted"}


def test_several_matches_must_all_hold(tmp_path: Path) -> None:
    """A sample that records several matches is correct where all are."""
    body = ASKS + "for ideal in ('yes', 'y' * int(sample['q'])): evals.record_and_check_match('', said, ideal)"
    assert [result.status for result in run(made_of(tmp_path, body))] == ["correct", "incorrect", "incorrect"]


def test_completions_come_n_at_a_time(tmp_path: Path) -> None:
    """`n=2` gives two completions, several models are several completion functions, None is no parameter."""
    one, two = Scripted(lambda prompt: "a"), Scripted(lambda prompt: "b")
    body = (
        "first = self.completion_fns[0](sample['q'], n=2, stop=None).get_completions()\n"
        "record_metrics(said=first + self.completion_fns[1]([{'role': 'user', 'content': 'x'}]).get_completions())"
    )
    (result,) = run(made_of(tmp_path, body, one, two), only=["1"])
    assert result.extra is not None
    assert result.extra["events"][-1]["data"] == {"said": ["a", "a", "b"]}
    assert one.asked == [("1", {}), ("1", {})]
    assert result.answer_usage.calls == 3


def test_samples_need_not_be_mappings(tmp_path: Path) -> None:
    """Whatever `run` hands over is what eval_sample gets; the question shows it as JSON."""
    source = class_of("evals.record_and_check_match('', sample.text, 'b')").replace(
        "self.get_samples()", "[Sample('a'), Sample('b')]"
    )
    source = f"from dataclasses import dataclass\n@dataclass\nclass Sample:\n    text: str\n{source}"
    made = build(registry_of(tmp_path, source), "mine.dev.v0", Scripted(add), base=tmp_path)
    assert [q.metadata["sample"] for q in made.dataset] == [{"text": "a"}, {"text": "b"}]
    assert [(r.question, r.status) for r in run(made)] == [("a", "incorrect"), ("b", "correct")]


def test_a_limit_keeps_the_first_samples(tmp_path: Path) -> None:
    """The class reads its own data: what is beyond the limit is no question."""
    assert [q.id for q in made_of(tmp_path, "pass", limit=2).dataset] == ["1", "2"]


# --- what goes wrong -----------------------------------------------------------------------


def test_a_fault_costs_no_completion_twice(tmp_path: Path) -> None:
    """After a service's fault the sample runs again, and what was answered before is not asked again."""
    model = Scripted(lambda prompt: "yes", None, ModelError("server_error", "HTTP 503", status=503, retry_after=0))
    body = (
        ASKS
        + "said = self.completion_fn('more ' + said).get_completions()[0]\n"
        + "evals.record_and_check_match('', said, 'yes')"
    )
    (result,) = run(made_of(tmp_path, body, model), only=["1"])
    assert [prompt for prompt, _ in model.asked] == ["1", "more yes", "more yes"]
    assert (result.status, result.answer_usage.calls, result.answer_usage.prompt_tokens) == ("correct", 3, 6)


def test_a_fault_that_the_code_swallows_is_no_verdict(tmp_path: Path) -> None:
    """What a service failed to give does not become a wrong answer because the code went on without it."""
    faults = [ModelError("server_error", "HTTP 503", status=503, retry_after=0)] * 10
    body = f"try:\n    {ASKS}except Exception:\n    said = ''\nevals.record_and_check_match('', said, 'yes')"
    (result,) = run(made_of(tmp_path, body, Scripted(lambda prompt: "yes", *faults[:2])), only=["1"])
    assert (result.status, result.answer_usage.calls) == ("correct", 3)
    (result,) = run(made_of(tmp_path, body, Scripted(lambda prompt: "yes", *faults)), only=["1"], timeout=0.3)
    assert result.status == "error"
    assert result.error is not None
    assert result.error.kind == "server_error"


def test_a_sample_that_raises_costs_its_row(tmp_path: Path) -> None:
    """The row's error is one line with file and line; the others go on."""
    results = run(made_of(tmp_path, ASKS + "1 / (int(sample['q']) - 2)"))
    assert [result.status for result in results] == ["recorded", "error", "recorded"]
    assert results[1].error is not None
    assert results[1].error.message == "eval_sample: ZeroDivisionError: division by zero (mine.py, line 8)"


def test_a_sample_that_hangs_runs_out_of_time(tmp_path: Path) -> None:
    """The deadline holds for code too, and what hangs is asked nothing more."""
    made = made_of(tmp_path, "import time\ntime.sleep(0.5 if sample['q'] == '2' else 0)\n" + ASKS)
    engine = Engine({"": Stage(made.answerer, made.judge, 0.2)}, concurrency=8)
    asks = [Ask(question) for question in made.dataset]
    engine.offer(asks)
    results = [engine.result(ask) for ask in asks]
    engine.close()
    assert [result.error.kind if result.error else result.status for result in results] == [
        "recorded",
        "timeout",
        "recorded",
    ]
    assert threading.active_count() < 20


@stands_in
@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("import nothere", "class mine:Mine: importing mine failed: ModuleNotFoundError: No module named 'nothere'"),
        ("Other = 1", "class mine:Mine: mine (*mine.py) has no 'Mine'"),
        ("Mine = 1", "mine.dev.v0: class mine:Mine is int; wanted a class or a function"),
        ("class Mine:\n    pass", "mine.dev.v0: making it of mine:Mine failed: TypeError: Mine() takes no arguments"),
        ("class Mine:\n    def __init__(self, **_): pass", "class mine:Mine has no method eval_sample"),
        (class_of("pass").replace("self.eval_all", "0 and self.eval_all"), "did not call self.eval_all_samples"),
        (class_of("pass").replace("self.get_samples()", "[]"), "gives no samples to self.eval_all_samples"),
        (
            class_of("pass").replace("self.get_samples()", "1 / 0"),
            "run of mine:Mine failed: ZeroDivisionError: division",
        ),
        (class_of("pass"), "ValueError: get_samples: the eval's args name no samples_jsonl"),
        (class_of("pass").replace("self.get_samples()", "evals.get_jsonl('som.jsonl')"), "did you mean some.jsonl?"),
        ("from evals.api import Nothing", "(mine.py, line 1); it stands in for the package evals: pip install evals"),
        (class_of("pass").replace("evals.Eval", "evals.SolverEval"), "solvers are not run here"),
        ("def check(sample, model): pass", "mine:check is no async function; wanted async def check(sample, model)"),
        ("async def check(sample, model): pass", "its args name no samples_jsonl, the samples for mine:check"),
    ],
)
def test_code_that_is_no_eval_is_one_line(tmp_path: Path, source: str, wanted: str) -> None:
    """A mistake in the code is told in one line before anything is asked."""
    registry = registry_of(tmp_path, source)
    with pytest.raises(SimpleQAError) as caught:
        build(registry, "mine.dev.v0", Scripted(add), base=tmp_path)
    start, _, end = wanted.partition("*")
    assert start in str(caught.value)
    assert end in str(caught.value)
    assert "\n" not in str(caught.value)


@stands_in
def test_a_class_of_the_package_wants_the_package(tmp_path: Path) -> None:
    """What only the real `evals` holds is refused with the way out, where that is not installed."""
    registry = registry_of(tmp_path)
    (tmp_path / "evals" / "mine.yaml").write_text("mine.dev.v0:\n  class: evals.elsuite.own:Own\n", encoding="utf-8")
    with pytest.raises(SpecError, match=r"class evals\.elsuite\.own:Own: .*not installed; pip install evals"):
        build(registry, "mine.dev.v0", Scripted(add), base=tmp_path)


def test_a_run_that_raises_at_the_end_is_one_line(tmp_path: Path) -> None:
    """What `run` makes of the events may fail: the rows stand, and the failure is one line."""
    made = made_of(tmp_path, ASKS, report="recorder.get_events('match')[0]")
    with pytest.raises(RunError) as caught:
        made.metrics(run(made))
    assert str(caught.value) == (
        "mine.dev.v0: run of mine:Mine failed: IndexError: list index out of range (mine.py, line 11)"
    )


@pytest.mark.parametrize("samples", ["self.get_samples()[1:]", "self.get_samples()"])
def test_samples_are_given_once_and_stay_the_same(tmp_path: Path, samples: str) -> None:
    """An eval that goes through two lots of samples cannot be run sample by sample: no figure is made up for it."""
    source = class_of(ASKS).replace(
        "        return {}", f"        again = self.eval_all_samples\n        again(recorder, {samples})"
    )
    made = build(
        registry_of(tmp_path, source, samples_jsonl="some.jsonl"),
        "mine.dev.v0",
        Scripted(lambda prompt: "yes"),
        base=tmp_path,
    )
    with pytest.raises(RunError, match="eval_all_samples is called with other samples than before"):
        made.metrics(run(made))


def test_a_completion_outside_a_sample_is_refused(tmp_path: Path) -> None:
    """Nothing is asked of a model while the samples are found."""
    source = class_of("pass").replace("self.get_samples()", "self.completion_fn('x')")
    model = Scripted(add)
    with pytest.raises(SpecError, match="asked for outside eval_sample"):
        build(registry_of(tmp_path, source), "mine.dev.v0", model, base=tmp_path)
    assert model.asked == []


# --- functions -----------------------------------------------------------------------------


def function_of(folder: Path, body: str, model: Model | None = None, signature: str = "sample, model") -> Eval:
    source = f"from pytest_simpleqa.records import Judgement, Verdict\nasync def check({signature}):\n    {body}\n"
    registry = registry_of(folder, source, samples_jsonl="some.jsonl")
    return build(registry, "mine.dev.v0", model or Scripted(lambda prompt: "yes"), base=folder)


@pytest.mark.parametrize(
    ("returned", "status", "figures"),
    [
        ("True", "correct", {"accuracy": 1.0}),
        ("False", "incorrect", {"accuracy": 0.0}),
        ("0.5", "recorded", {"score": 0.5}),
        ("{'bleu': 2, 'f1': 0.5}", "recorded", {"bleu": 2.0, "f1": 0.5}),
        ("Verdict.NOT_ATTEMPTED", "not_attempted", {}),
        ("Judgement(Verdict.CORRECT, reply='why', extra={'k': 1})", "correct", {"accuracy": 1.0}),
    ],
)
def test_what_a_function_returns_is_the_result(
    tmp_path: Path, returned: str, status: str, figures: dict[str, float]
) -> None:
    """True and False are verdicts, numbers are recorded and averaged, verdicts and judgements stand as they are."""
    made = function_of(tmp_path, f"await model('x')\n    return {returned}")
    results = run(made)
    assert {result.status for result in results} == {status}
    assert made.metrics(results) == figures
    assert results[0].predicted == "yes"
    if "Judgement" in returned:
        assert (results[0].judge_reply, (results[0].extra or {})["k"]) == ("why", 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (mine.py, line 3)"),
        ("return None", "the eval's function returned NoneType; wanted True or False, a number"),
        ("return float('nan')", "the eval's function returned float; wanted True or False, a number"),
    ],
)
def test_a_function_that_fails_costs_its_row(tmp_path: Path, body: str, message: str) -> None:
    """What it raises, and what it returns beyond the agreed, is that row's error in one line."""
    result = run(function_of(tmp_path, body), only=["1"])[0]
    assert result.error is not None
    assert result.error.message.startswith(message)


def test_a_function_of_other_arguments_is_refused(tmp_path: Path) -> None:
    """Arguments of the YAML that the function does not take are told before anything is asked."""
    with pytest.raises(SpecError, match=r"cannot be called with \(sample, model\): too many positional"):
        function_of(tmp_path, "return True", signature="sample")


# --- the stand-in --------------------------------------------------------------------------


@stands_in
def test_the_stand_in_is_gone_when_the_class_is_there(tmp_path: Path) -> None:
    """`evals` means our own names for the import of the user's code alone."""
    made_of(tmp_path, "pass")
    assert "evals" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("evals.metrics")


def test_the_stand_in_has_what_guides_use(tmp_path: Path) -> None:
    """The usual imports work, by whatever module of `evals` they name."""
    imports = (
        "import evals.metrics as m\n"
        "from evals.api import CompletionFn, CompletionResult, record_and_check_match\n"
        "from evals.data import get_jsonl, get_json, get_csv, iter_jsonls\n"
        "from evals.elsuite import utils\n"
        "from evals.eval import Eval\n"
        "from evals.metrics import get_accuracy, get_bootstrap_accuracy_std, get_confusion_matrix\n"
        "from evals.prompt.base import is_chat_prompt, CompletionPrompt\n"
        "from evals.record import RecorderBase, record_match, record_metrics, record_sampling\n"
        "from evals.registry import Registry\n"
        "assert utils.fuzzy_match('The cat', 'cat') and utils.f1_score('a b', ['b c']) == 0.5 or True\n"
        "assert m.get_accuracy is get_accuracy\n"
        "chat = [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Who?'}]\n"
        "assert CompletionPrompt(chat).to_formatted_prompt() == 'Be brief.\\nUser: Who?\\nAssistant:'\n"
    )
    registry = registry_of(tmp_path, imports + class_of("record_match(True)"), samples_jsonl="some.jsonl")
    made = build(registry, "mine.dev.v0", Scripted(add), base=tmp_path)
    assert {result.status for result in run(made)} == {"correct"}


def test_a_recorder_pauses_and_refuses_what_is_no_sample() -> None:
    """Between pause and unpause nothing is taken; outside a sample recording is a mistake, told as one."""
    recorder = Recorder("x")
    with recorder.as_default_recorder("x.dev.0"):
        recorder.pause()
        recorder.record_match(True)
        recorder.unpause()
        recorder.record_match(False, expected=["one"], picked=None)
        with pytest.raises(TypeError, match="correct is str 'no'"):
            recorder.record_match("no")  # type: ignore[arg-type] # the mistake
    (event,) = recorder.get_events("match")
    assert (event.sample_id, event.data) == ("x.dev.0", {"correct": False, "expected": "one", "picked": None})
    with pytest.raises(RuntimeError, match="outside a sample"):
        recorder.record_metrics(x=1)


def test_plain_knows_the_usual_values() -> None:
    """Whatever code records becomes JSON; what has no form there is named by its type."""
    assert plain({1: (Path("a") / "b", {2, 1}), "o": object(), "i": float("inf")}) == {
        "1": ["a/b", [1, 2]],
        "o": "<object>",
        "i": None,
    }
    numpy = pytest.importorskip("numpy")
    assert plain([numpy.float64(0.5), numpy.int64(2), numpy.array([1])]) == [0.5, 2, [1]]


def test_an_async_completion_function_is_asked_on_the_loop(tmp_path: Path) -> None:
    """The model under test may be a coroutine of the user's: the thread waits for it."""

    async def say(prompt: str) -> str:
        await asyncio.sleep(0)
        return "yes"

    body = ASKS + "evals.record_and_check_match('', said, 'yes')"
    results = run(made_of(tmp_path, body, callable_model("m:say", say)))
    assert [result.status for result in results] == ["correct"] * 3


def test_the_real_package_makes_the_same_of_the_example(example: Registry, tmp_path: Path) -> None:
    """Where `evals` itself is installed the class stands on it, and a run there and here record the same."""
    if not has_evals():
        pytest.skip("the evals package is not installed")
    made = build(example, "arithmetic", Scripted(add), base=tmp_path)
    results = run(made)
    real = importlib.import_module("evals.record")
    spec = importlib.import_module("evals.base").RunSpec([], "arithmetic.dev.v0", "arithmetic", "dev", {}, "")
    recorder = real.LocalRecorder(str(tmp_path / "real.jsonl"), spec)

    def complete(prompt: Any, **_: Any) -> Completions:
        sampled = [add(prompt)]
        real.record_sampling(prompt=prompt, sampled=sampled)
        return Completions(sampled)

    theirs = importlib.import_module("arithmetic").Arithmetic(
        "arithmetic/train.jsonl",
        "arithmetic/test.jsonl",
        completion_fns=[complete],
        eval_registry_path=tmp_path / "evals_custom",
        name="arithmetic.dev.v0",
    )
    assert made.metrics(results) == theirs.run(recorder) == {"accuracy": 0.8}
    for result in results:
        ours = [(event["type"], event["data"]) for event in (result.extra or {})["events"]]
        name = f"arithmetic.dev.{int(result.id) - 1}"
        there = [event for kind in ("sampling", "match") for event in recorder.get_events(kind)]
        assert [(kind, {key: data[key] for key in data if key not in ("model", "usage")}) for kind, data in ours] == [
            (event.type, event.data) for event in there if event.sample_id == name
        ]


# --- what can be known before anything is asked --------------------------------------------


@pytest.mark.parametrize(
    ("body", "is_twice"),
    [
        ("self.go(1)\nself.go(2)", True),
        ("for each in (1, 2): self.go(each)", True),
        ("[self.go(each) for each in (1, 2)]", True),
        ("if x: self.go(1)\nself.go(2)", True),
        ("with x:\n    self.go(1)\nreturn self.go(2)", True),
        ("try:\n    self.go(1)\nfinally:\n    self.go(2)", True),
        ("self.go(1)", False),
        ("if x: self.go(1)\nelse: self.go(2)", False),
        ("if x:\n    return self.go(1)\nreturn self.go(2)", False),
        ("if x: raise ValueError\nself.go(1)", False),
        ("def inner(): self.go(1)\nself.go(2)", False),
        ("for each in (1, 2): self.other(each)\nself.go(1)", False),
        ("return self.go(1)\nself.go(2)", False),
    ],
)
def test_a_method_that_calls_twice_is_known_by_its_source(tmp_path: Path, body: str, is_twice: bool) -> None:
    """Two calls on one way through the code, or one in a loop, are told; those on different ways are one."""
    source = "def run(self, x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    path = tmp_path / "source.py"
    path.write_text(source, encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(source, str(path), "exec"), names)
    assert calls_twice(names["run"], "go") is is_twice


def test_code_without_source_is_not_suspected() -> None:
    """Where the source is not at hand nothing is known against it."""
    assert not calls_twice(print, "go")


def test_an_eval_that_would_hand_over_twice_is_refused_at_once(tmp_path: Path) -> None:
    """A second call of eval_all_samples is told before anything is asked, not when all has been paid for."""
    source = class_of(ASKS).replace(
        "        return {}", "        self.eval_all_samples(recorder, [{'q': 1}])\n        return {}"
    )
    registry = registry_of(tmp_path, source, samples_jsonl="some.jsonl")
    with pytest.raises(SpecError, match=r"mine:Mine calls self\.eval_all_samples more than once"):
        build(registry, "mine.dev.v0", Scripted(lambda prompt: "yes"), base=tmp_path)


@pytest.mark.skipif(has_evals(), reason="the real package is there")
def test_evals_is_found_inside_functions_too(tmp_path: Path) -> None:
    """`import evals` in a function's body finds our names while the code runs, and nobody else does afterwards."""
    body = ASKS + "import evals.metrics\nfrom evals.record import record_match\nrecord_match(True)"
    assert [result.status for result in run(made_of(tmp_path, body))] == ["correct"] * 3
    assert "evals" not in sys.modules
