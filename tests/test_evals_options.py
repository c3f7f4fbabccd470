"""The options that name evals, as `Options` holds them."""

from __future__ import annotations

import pytest

from pytest_simpleqa.errors import OptionError
from pytest_simpleqa.options import Options
from tests.small_run import ASKED, write_files


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a dataset, so that the options are read."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    write_files(pytester.path)
    return pytester


def options_of(folder: pytest.Pytester, *args: str) -> Options:
    options = Options.from_config(folder.parseconfig(*ASKED, *args))
    assert options is not None
    return options


def test_evals_are_named_on_the_command_line(folder: pytest.Pytester) -> None:
    """Evals, arguments and registries may be given several times; an argument is JSON, else text."""
    options = options_of(
        folder, "--simpleqa-eval=coqa-match", "--simpleqa-eval=chess.match.dev.v0", "--simpleqa-eval-set=test-basic",
        "--simpleqa-eval-param=max_tokens=3", "--simpleqa-eval-param=eval_type=cot_classify",
        "--simpleqa-registry-path=mine", "--simpleqa-registry-path=/theirs",
    )  # fmt: skip
    assert (options.evals, options.eval_set) == (("coqa-match", "chess.match.dev.v0"), "test-basic")
    assert options.eval_params == {"max_tokens": 3, "eval_type": "cot_classify"}
    assert [path.as_posix() for path in options.registry_paths] == [f"{folder.path.as_posix()}/mine", "/theirs"]


def test_evals_are_named_in_the_ini_file(folder: pytest.Pytester) -> None:
    """In an ini file a registry counts from that file."""
    folder.makeini("[pytest]\nsimpleqa_eval = coqa-match\nsimpleqa_registry_path =\n    mine\n    ours\n")
    options = options_of(folder)
    assert options.evals == ("coqa-match",)
    assert options.registry_paths == (folder.path / "mine", folder.path / "ours")


def test_an_argument_without_a_value_is_a_mistake(folder: pytest.Pytester) -> None:
    """What is no KEY=VALUE is told in one line."""
    with pytest.raises(OptionError, match="--simpleqa-eval-param 'max_tokens': wanted NAME=VALUE"):
        options_of(folder, "--simpleqa-eval-param=max_tokens")
