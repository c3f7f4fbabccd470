"""Model-graded evals from a registry's YAML to choices, verdicts and metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa import run
from pytest_simpleqa.errors import ModelError, SimpleQAError
from pytest_simpleqa.evals.build import build_eval
from pytest_simpleqa.evals.protocol import Eval
from pytest_simpleqa.evals.registry import SHIPPED, Registry
from pytest_simpleqa.models.protocol import Model
from pytest_simpleqa.records import Prompt, Reply, Verdict
from pytest_simpleqa.report import Report
from pytest_simpleqa.testing import FakeModel

from .registries import an_eval, write_registry

CLASSIFY = "evals.elsuite.modelgraded.classify:ModelBasedClassify"
HUMOR: Mapping[str, Any] = {
    "prompt": "Is it funny?\n{completion}",
    "choice_strings": ["Yes", "No", "Unsure"],
    "choice_scores": {"Yes": 1.0, "No": 0.0, "Unsure": 0.5},
    "input_outputs": {"input": "completion"},
}
BEST: Mapping[str, Any] = {
    "prompt": "Which of {n} is best for {input}?\n{completion}",
    "choice_strings": "from_n",
    "input_outputs": {"input": "completion"},
    "output_template": "{i}/{i_abc}/{i_ABC} of {n}: {output}\n",
}
JOKES: list[Any] = [{"input": "A joke on apples."}, {"input": [{"role": "user", "content": "A joke on pears."}]}]


def made(
    top: Path,
    spec: Mapping[str, Any] | str,
    samples: list[Any],
    models: Sequence[Model] | None = None,
    judge: Model | None = None,
    **args: Any,
) -> Eval:
    """Write a registry with one eval and return it, ready to be asked."""
    name = spec if isinstance(spec, str) else "mine"
    files = {"evals/jokes.yaml": an_eval("jokes", CLASSIFY, modelgraded_spec=name, **args)}
    if not isinstance(spec, str):
        files["modelgraded/mine.yaml"] = json.dumps({"mine": spec})
    registry = Registry((write_registry(top, files, jokes=samples), SHIPPED))
    answering = [FakeModel("Knock, knock.")] if models is None else models
    return build_eval(registry.eval("jokes"), registry, answering, judge=FakeModel("Yes") if judge is None else judge)


def asked(found: Eval) -> Report:
    return run(found.dataset, found.answerer, found.judge, max_samples=-1, concurrency=1)


class Tunable(FakeModel):
    """A fake that takes request parameters with a prompt, and keeps them."""

    def __init__(self, says: Any) -> None:
        super().__init__(says)
        self.params: list[Mapping[str, Any]] = []

    async def complete_with(self, prompt: Prompt, params: Mapping[str, Any]) -> Reply:
        self.params.append(params)
        return await self.complete(prompt)


# -- verdicts and metrics -------------------------------------------------------------------------


def test_the_highest_score_is_correct_and_the_others_are_not(tmp_path: Path) -> None:
    """Scores decide the verdict, and their mean is the eval's; choice and score stand beside each row."""
    judge = FakeModel(["Well.\nYes", "Well.\nUnsure"])
    found = made(tmp_path, HUMOR, JOKES, judge=judge, eval_type="cot_classify")
    report = asked(found)
    assert (report.correct, report.incorrect, report.recorded) == (1, 1, 0)
    assert [row.extra for row in report.samples] == [
        {"choice": "Yes", "score": 1.0},
        {"choice": "Unsure", "score": 0.5},
    ]
    assert found.metrics(report.samples) == {"counts/Unsure": 1, "counts/Yes": 1, "score": 0.75}


def test_without_scores_a_choice_is_only_recorded(tmp_path: Path) -> None:
    """A choice among equals is no verdict on the answer: the row passes, and there is no score."""
    samples = [{"input": "Capital of France?", "ideal": "Paris"}]
    found = made(tmp_path, "fact", samples, judge=FakeModel("C"), eval_type="classify")
    report = asked(found)
    assert (report.recorded, report.accuracy) == (1, None)
    assert report.samples[0].verdict is Verdict.RECORDED
    assert found.metrics(report.samples) == {"counts/C": 1}


def test_a_reply_without_a_choice_is_a_judge_failure(tmp_path: Path) -> None:
    """It is asked for once more, counted apart, and never given the lowest score."""
    judge = FakeModel(["I cannot tell.", "I still cannot.", "Yes"])
    found = made(tmp_path, HUMOR, JOKES, judge=judge, eval_type="classify")
    report = asked(found)
    assert (report.judge_failures, report.correct) == (1, 1)
    first = report.samples[0]
    assert first.error is not None
    assert first.error.kind == "judge_unreadable"
    assert "I still cannot." in first.error.message
    assert first.judge_usage.calls == 2
    assert found.metrics(report.samples) == {"counts/Yes": 1, "counts/__invalid__": 1, "score": 1.0}


def test_a_judge_on_trial_is_held_against_labels(tmp_path: Path) -> None:
    """With `metaeval` samples bring completion and choice: nobody is asked to answer, and agreement is measured."""
    samples = [
        {"input": "a", "completion": "b", "choice": "Yes"},
        {"input": "c", "completion": "d {ideal}", "choice": "No"},
    ]
    model, judge = FakeModel(), FakeModel("Yes")
    found = made(tmp_path, HUMOR, samples, [model], judge, eval_type="classify", metaeval=True)
    report = asked(found)
    assert model.prompts == []
    assert not found.answerer.is_service
    assert "d {ideal}" in str(judge.prompts[1])
    assert found.metrics(report.samples) == {"counts/Yes": 2, "score": 1.0, "metascore": 0.5}


def test_a_blank_completion_of_a_sample_is_graded(tmp_path: Path) -> None:
    """What stands in the sample is put to the judge as it is, nothing included."""
    judge = FakeModel("No")
    found = made(tmp_path, HUMOR, [{"input": "a", "completion": " "}], None, judge, eval_type="classify")
    assert asked(found).incorrect == 1
    assert str(judge.prompts[0]).startswith("Is it funny?\n \n\n")


# -- prompts --------------------------------------------------------------------------------------


def test_sample_and_arguments_fill_the_prompt(tmp_path: Path) -> None:
    """The criterion of the eval and the chat of the sample stand in the judge's prompt, completions verbatim."""
    judge = FakeModel("Steps.\nY\nY")
    model = FakeModel("an {input} injection")
    found = made(tmp_path, "closedqa", JOKES[1:], [model], judge, modelgraded_spec_args={"criteria": "Is it short?"})
    assert asked(found).correct == 1
    assert model.prompts == [JOKES[1]["input"]]
    for part in ("Is it short?", "an {input} injection", "A joke on pears."):
        assert str(judge.prompts[0]).count(part) == 1


def test_request_parameters_go_to_both_models(tmp_path: Path) -> None:
    """`sample_kwargs` go with the prompts, `eval_kwargs` with the grading prompts."""
    model, judge = Tunable("ha"), Tunable("Yes")
    sampling, judging = {"temperature": 0.4}, {"max_tokens": 9, "completion_kwargs": {"seed": 1}}
    found = made(
        tmp_path, HUMOR, JOKES[:1], [model], judge, eval_type="classify", sample_kwargs=sampling, eval_kwargs=judging
    )
    asked(found)
    assert (model.params, judge.params) == ([{"temperature": 0.4}], [{"max_tokens": 9, "seed": 1}])
    assert found.judge.describe()["params"] == {"max_tokens": 9, "seed": 1}


# -- several completions --------------------------------------------------------------------------


def test_one_model_completes_n_times(tmp_path: Path) -> None:
    """With `multicomp_n` the judge sees so many completions, laid out by the template."""
    model, judge = FakeModel(["x", "y", "z"]), FakeModel("2")
    found = made(tmp_path, BEST, JOKES[:1], [model], judge, eval_type="classify", multicomp_n=3)
    report = asked(found)
    assert report.samples[0].predicted == "1/a/A of 3: x\n2/b/B of 3: y\n3/c/C of 3: z"
    assert report.samples[0].answer_usage.calls == 3
    assert "Which of 3 is best" in str(judge.prompts[0])
    assert report.samples[0].extra == {"choice": "2"}


def test_several_models_complete_once_each(tmp_path: Path) -> None:
    """With `from_models` every answer model gives one completion."""
    models = [FakeModel("x", name="one"), FakeModel("y", name="two")]
    found = made(tmp_path, BEST, JOKES[:1], models, FakeModel("1"), eval_type="classify", multicomp_n="from_models")
    assert asked(found).samples[0].predicted == "1/a/A of 2: x\n2/b/B of 2: y"
    assert [each["model"] for each in found.answerer.describe()["models"]] == ["one", "two"]
    assert [model.closed for model in models] == [1, 1]


def test_a_fault_costs_no_completion_that_arrived(tmp_path: Path) -> None:
    """Tried again, a question goes on behind the completions that it has."""
    model = FakeModel(["x", ModelError("rate_limited", "slow", status=429, retry_after=0.01), "y"])
    found = made(tmp_path, BEST, JOKES[:1], [model], FakeModel("1"), eval_type="classify", multicomp_n=2)
    row = asked(found).samples[0]
    assert (row.predicted, row.answer_usage.calls) == ("1/a/A of 2: x\n2/b/B of 2: y", 3)


def test_a_battle_holds_two_answers_against_each_other(tmp_path: Path) -> None:
    """Two prompts, two answers: both stand in the row and, each in its place, in the judge's prompt."""
    samples = [{"input1": "On apples.", "input2": "On pears."}, {"input1": "a", "input2": "b", "completion1": "given"}]
    model, judge = FakeModel(["first", "second", "third"]), FakeModel("Why not.\nYes")
    found = made(tmp_path, "battle", samples, [model], judge, eval_type="cot_classify")
    report = asked(found)
    assert model.prompts == ["On apples.", "On pears.", "b"]
    assert json.loads(report.samples[0].predicted or "") == {"completion1": "first", "completion2": "second"}
    assert report.samples[1].predicted == "third"
    second = str(judge.prompts[1])
    assert second.index("given") < second.index("third")
    assert report.correct == 2


def test_long_answers_of_a_battle_stay_whole_json(tmp_path: Path) -> None:
    """Answers too long to be kept are cut each, never the object around them."""
    samples = [{"input1": "a", "input2": "b"}]
    found = made(tmp_path, "battle", samples, [FakeModel('"' * 90_000)], FakeModel("No"), eval_type="classify")
    report = asked(found)
    assert report.incorrect == 1
    assert set(json.loads(report.samples[0].predicted or "")) == {"completion1", "completion2"}


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "args", "said"),
    [
        ("humour", {}, "no model-graded spec 'humour'"),
        (HUMOR, {}, "no 'eval_type' there nor in the eval's args"),
        (HUMOR, {"eval_type": "cot"}, "eval_type='cot'; wanted one of classify, classify_cot, cot_classify"),
        (HUMOR, {"eval_type": "classify", "match_fn": "regex"}, "match_fn='regex'; wanted one of include, exact"),
        (HUMOR, {"eval_type": "classify", "multicomp_n": 2}, "wanted an 'output_template' with {output}"),
        (BEST, {"eval_type": "classify", "multicomp_n": "from_models"}, "wanted several answer models, found one"),
        (BEST, {"eval_type": "classify", "multicomp_n": 0}, "multicomp_n=0; wanted a whole number of 1 or more"),
        (HUMOR, {"eval_type": "classify", "sample_kwargs": 3}, "sample_kwargs is 3; wanted names with values"),
        (HUMOR, {"eval_type": "classify", "metaeval": True}, "'choice'"),
        ({**HUMOR, "prompt": "{criteria}"}, {"eval_type": "classify"}, "'criteria'"),
        ({**HUMOR, "input_outputs": {"text": "completion"}}, {"eval_type": "classify"}, "no 'text' to ask"),
        ({**HUMOR, "input_outputs": None}, {"eval_type": "classify"}, "'input_outputs' is None"),
        ({**BEST, "output_template": "{output} {x}"}, {"eval_type": "classify"}, "'output_template' has {x}"),
        ("fact", {"eval_type": "classify"}, "samples.jsonl, line 1.* 'ideal'"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, spec: Any, args: dict[str, Any], said: str) -> None:
    """A spec, an argument or a sample that does not fit says so before anything is asked."""
    with pytest.raises(SimpleQAError, match=said) as caught:
        made(tmp_path, spec, JOKES, **args)
    assert "\n" not in str(caught.value)


def test_a_prompt_that_cannot_be_asked_is_told(tmp_path: Path) -> None:
    """An input that is neither text nor chat names its row."""
    with pytest.raises(SimpleQAError, match=r"samples.jsonl, line 1.*'input'"):
        made(tmp_path, HUMOR, [{"input": 3}], eval_type="classify")


def test_without_a_judge_model_nothing_is_asked(tmp_path: Path) -> None:
    """Answers are graded by a model, which must be named; an eval that is only looked at needs none."""
    top = write_registry(
        tmp_path,
        {"evals/jokes.yaml": an_eval("jokes", CLASSIFY, modelgraded_spec="battle", eval_type="classify")},
        jokes=[{"input1": "a", "input2": "b"}],
    )
    registry = Registry((top, SHIPPED))
    with pytest.raises(SimpleQAError, match="add --judge-llm"):
        build_eval(registry.eval("jokes"), registry, [FakeModel()])
    assert len(build_eval(registry.eval("jokes"), registry, []).dataset) == 1


@pytest.mark.parametrize("name", ["fact", "closedqa", "battle"])
def test_the_shipped_specs_load(tmp_path: Path, name: str) -> None:
    """The specs that come with the package need no other registry."""
    sample = {"input": "a", "input1": "a", "input2": "b", "ideal": "c", "criteria": "d"}
    assert made(tmp_path, name, [sample], eval_type="cot_classify").dataset.questions[0].problem
