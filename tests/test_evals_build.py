"""Promises of `evals.build`: from a description to an eval that can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_simpleqa.errors import DatasetError, SimpleQAError, SpecError
from pytest_simpleqa.evals.build import build_eval, data_address
from pytest_simpleqa.evals.refused import why_refused
from pytest_simpleqa.evals.registry import SHIPPED, Registry
from pytest_simpleqa.testing import FakeModel

from .registries import SAMPLES, an_eval, write_registry


def registry_of(tmp_path: Path, text: str) -> Registry:
    return Registry([write_registry(tmp_path, {"evals/sums.yaml": text}), SHIPPED])


def test_an_eval_is_built_of_its_samples(tmp_path: Path) -> None:
    """Each sample becomes a question, in order; a limit keeps the first."""
    registry = registry_of(tmp_path, an_eval("sums"))
    built = build_eval(registry.eval("sums"), registry, [FakeModel()], base=tmp_path)
    assert built.name == built.dataset.name == "sums.dev.v0"
    assert [question.metadata["sample"] for question in built.dataset] == SAMPLES
    assert len(build_eval(registry.eval("sums"), registry, [FakeModel()], limit=1).dataset) == 1


def test_parameters_are_laid_over_the_args(tmp_path: Path) -> None:
    """What the user says of an eval wins over what its registry says, also where its samples lie."""
    registry = registry_of(tmp_path, an_eval("sums", samples_jsonl="nowhere.jsonl"))
    params = {"samples_jsonl": "sums/samples.jsonl"}
    built = build_eval(registry.eval("sums"), registry, [FakeModel()], params=params, base=tmp_path)
    assert len(built.dataset) == 2


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (an_eval("sums", "evals.elsuite.bluff.eval:BluffEval"), SpecError, "sums.dev.v0 cannot be run here: a solver"),
        (an_eval("sums", samples_jsonl="none.jsonl"), DatasetError, "there is no data file 'none.jsonl'"),
        (an_eval("sums", samples_jsonl=None), SpecError, "sums.dev.v0: its args name no samples; samples_jsonl"),
        (an_eval("sums", num_shots=3), SimpleQAError, "num_shots"),
        (an_eval("sums", "no_such_module:Eval"), SimpleQAError, "no_such_module"),
    ],
)
def test_an_eval_that_cannot_be_asked_is_one_line(
    tmp_path: Path, text: str, error: type[SimpleQAError], said: str
) -> None:
    """Whatever is wrong with an eval is told before anything is asked."""
    registry = registry_of(tmp_path, text)
    with pytest.raises(error) as caught:
        build_eval(registry.eval("sums"), registry, [FakeModel()], base=tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sample_without_ideal_is_named(tmp_path: Path) -> None:
    """A basic template needs `input` and `ideal` in every sample."""
    top = write_registry(tmp_path, sums=[{"input": "a"}])
    registry = Registry([top])
    with pytest.raises(DatasetError, match=r"sums/samples\.jsonl, line 1: found 'input', not 'ideal'"):
        build_eval(registry.eval("sums"), registry, [FakeModel()])


def test_the_smoke_test_of_openai_evals_has_its_samples_here(tmp_path: Path) -> None:
    """`TestMatch`, whose samples are code over there, runs on three that come with the package."""
    registry = registry_of(tmp_path, "sums: {class: 'evals.elsuite.test.match:TestMatch'}")
    assert len(build_eval(registry.eval("sums"), registry, [FakeModel()]).dataset) == 3


def test_data_in_the_hub_are_refused_whoever_wants_them() -> None:
    """A dataset behind `hf://` is refused; one in a file is not."""
    choice = "evals.elsuite.multiple_choice:MultipleChoice"
    assert why_refused(choice, {"dataset": "hf://hellaswag"})
    assert why_refused(choice, {"dataset": "mine.jsonl"}) is None
    assert data_address(choice, {"dataset": "mine.jsonl"}) == "mine.jsonl"
