"""Promises of `simpleqa evals`: what registries hold, told on the screen."""

from __future__ import annotations

import json
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_simpleqa.catalogue import list_evals
from pytest_simpleqa.errors import SimpleQAError
from pytest_simpleqa.evals.build import build_eval
from pytest_simpleqa.evals.registry import SHIPPED, Registry
from pytest_simpleqa.testing import FakeModel

from .kept import Command, command
from .registries import an_eval, write_registry


@pytest.fixture
def simpleqa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    files = {
        "evals/sums.yaml": an_eval("sums") + an_eval("gone") + an_eval("game", "evals.elsuite.bluff.eval:BluffEval"),
        "evals/mine.yaml": an_eval("mine", "my_evals:Mine", samples_jsonl="https://127.0.0.1/never-fetched.jsonl"),
        "eval_sets/all.yaml": "all: {evals: [sums, mine]}",
    }
    write_registry(tmp_path / "registry", files)
    monkeypatch.setenv("HOME", str(tmp_path))
    return command(tmp_path, monkeypatch, capsys)


def test_the_list_tells_what_runs_and_why_the_rest_does_not(simpleqa: Command) -> None:
    """Every eval has a line: its class, then its number of samples or the reason; nothing is fetched or imported."""
    status, out, err = simpleqa("evals", "list", "--registry-path", "registry")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert lines[0] == "game.dev.v0 BluffEval a solver plays it over several turns, and solvers are not run here"
    assert lines[1].startswith("gone.dev.v0 Match there is no data file 'gone/samples.jsonl' in ")
    assert lines[2:] == ["mine.dev.v0 my_evals:Mine", "sums.dev.v0 Match 2 samples", "4 evals: 2 run, 2 cannot"]


def test_the_list_may_be_narrowed_counted_and_read_by_programs(simpleqa: Command) -> None:
    """A pattern fits names and aliases; `--json` gives the same as objects, `--classes` a line per class."""
    _, out, _ = simpleqa("evals", "list", "su*", "--json", "--registry-path", "registry")
    assert json.loads(out) == [
        {"name": "sums.dev.v0", "class": "evals.elsuite.basic.match:Match", "samples": 2, "reason": None}
    ]
    _, out, _ = simpleqa("evals", "list", "--classes", "--simpleqa-registry-path", "registry")
    assert [" ".join(line.split()) for line in out.splitlines()][1].startswith("Match 2 1 there is no data file")


def test_registries_without_an_eval_say_what_to_type(tmp_path: Path) -> None:
    """Where there is nothing to list, the line says where was looked and how a registry is named."""
    with pytest.raises(SimpleQAError) as caught:
        list_evals(Registry([tmp_path]), "*", tmp_path)
    assert str(caught.value) == (f"there is no eval in {tmp_path}; say where your registry lies: --registry-path DIR")


def test_show_tells_what_is_said_of_one_eval(simpleqa: Command) -> None:
    """`show` gives an eval's class, arguments, file and samples, behind its alias too."""
    status, out, err = simpleqa("evals", "show", "sums", "--registry-path", "registry")
    assert (status, err) == (0, "")
    said = dict(line.split(maxsplit=1) for line in out.splitlines()[1:])
    assert out.startswith("sums.dev.v0\n")
    assert said["aliases"] == "sums"
    assert said["args"] == '{"samples_jsonl": "sums/samples.jsonl"}'
    assert said["samples"] == "sums/samples.jsonl, 2 samples"
    assert said["description"] == "About sums."


def test_show_tells_what_a_set_holds(simpleqa: Command) -> None:
    """`show` of a set lists its evals by their full names."""
    _, out, _ = simpleqa("evals", "show", "all", "--registry-path", "registry")
    assert out.splitlines() == ["all: an eval set", "  sums.dev.v0", "  mine.dev.v0"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["show", "smus", "--registry-path", "registry"], "did you mean sums?"),
        (["list", "x*", "--registry-path", "registry"], "without a pattern simpleqa evals list shows them all"),
        (["list", "--registry-path", "nowhere"], "--registry-path nowhere: no such directory"),
        ([], "the following arguments are required: ACTION"),
    ],
)
def test_a_mistake_is_one_line(simpleqa: Command, args: list[str], said: str, tmp_path: Path) -> None:
    """A wrong name, pattern or directory is one line and exit status 4."""
    status, out, err = simpleqa("evals", *args)
    assert (status, out) == (4, "")
    assert said in err.replace(f"{tmp_path}/", "")
    assert err.count("\n") == 1


def test_files_that_cannot_be_read_are_noted(simpleqa: Command, tmp_path: Path) -> None:
    """A broken file costs its own evals alone, and a note."""
    (tmp_path / "registry" / "evals" / "torn.yaml").write_text("torn: [", encoding="utf-8")
    status, out, err = simpleqa("evals", "list", "--registry-path", "registry")
    assert (status, out.splitlines()[-1]) == (0, "4 evals: 2 run, 2 cannot")
    assert err.startswith("simpleqa: note: ")
    assert "torn.yaml, line 2: not YAML" in err


# -- the registry of OpenAI Evals itself ----------------------------------------------------------


@pytest.fixture(scope="session")
def real_registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The registry of the wheel `evals` 3.0.1, or of an installed `evals`; a test that needs it is skipped without."""
    named = os.environ.get("SIMPLEQA_EVALS_WHEEL")
    if named and Path(named).is_file():
        folder = tmp_path_factory.mktemp("wheel")
        with zipfile.ZipFile(named) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith("evals/registry/")])
        return folder / "evals" / "registry"
    places = (spec.submodule_search_locations if (spec := find_spec("evals")) else None) or ()
    found = [Path(named)] if named else [Path(place) / "registry" for place in places]
    if not found or not (found[0] / "evals").is_dir():
        pytest.skip("the registry of OpenAI Evals is not here (set SIMPLEQA_EVALS_WHEEL to its wheel or its folder)")
    return found[0]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_whole_registry_of_openai_evals_is_known(real_registry: Path, tmp_path: Path) -> None:
    """All 849 evals load; 564 of the template classes run, and each of the others is refused with a reason."""
    registry = Registry([real_registry, SHIPPED])
    listed = list_evals(registry, "*", tmp_path)
    assert (len(listed), registry.faults, registry.notes) == (849, (), ())
    runs = [each.class_path or "" for each in listed if each.reason is None]
    counted = {name.rpartition(":")[2]: runs.count(name) for name in runs}
    assert counted == {
        "Match": 288, "Includes": 173, "ModelBasedClassify": 61, "FuzzyMatch": 38, "JsonMatch": 3, "TestMatch": 1,
    }  # fmt: skip
    broken = [each.name for each in listed if each.reason and "no data file" in each.reason]
    assert len(broken) == 2  # their YAML misspells the names of their files


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_eval_of_openai_evals_that_can_be_run_is_built(real_registry: Path, tmp_path: Path) -> None:
    """All evals that run are built with all of their samples, but for one whose file is no JSON Lines."""
    registry = Registry([real_registry, SHIPPED])
    bad = []
    for each in list_evals(registry, "*", tmp_path):
        if each.reason is None:
            try:
                spec = registry.eval(each.name)
                models = [FakeModel()] * (2 if spec.args.get("multicomp_n") == "from_models" else 1)
                built = build_eval(spec, registry, models, judge=FakeModel(), base=tmp_path)
                assert len(built.dataset) == each.samples
            except SimpleQAError as error:
                bad.append(f"{each.name}: {error}")
    assert len(bad) == 1, bad
    assert bad[0].startswith("Chinese_character_riddles.dev.v0: ")
