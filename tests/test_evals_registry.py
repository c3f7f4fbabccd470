"""Promises of `evals.registry` and `evals.shelf`: what stands behind a name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_simpleqa.errors import SpecError
from pytest_simpleqa.evals import shelf
from pytest_simpleqa.evals.registry import SHIPPED, EvalSpec, Registry, registry_dirs

from .registries import MATCH, an_eval, write_registry


def error_of(registry: Registry, name: str) -> str:
    with pytest.raises(SpecError) as caught:
        registry.eval(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- names ----------------------------------------------------------------------------------------


def test_an_alias_and_a_full_name_mean_the_same(tmp_path: Path) -> None:
    """An eval is found by its full name and by its alias, which adds what it says of it."""
    registry = Registry([write_registry(tmp_path)])
    args = {"samples_jsonl": "sums/samples.jsonl"}
    assert registry.eval("sums") == EvalSpec("sums.dev.v0", "sums", MATCH, args, tmp_path, "About sums.", ("accuracy",))
    assert registry.eval("sums.dev.v0") == EvalSpec("sums.dev.v0", "sums", MATCH, args, tmp_path)
    assert registry.aliases == {"sums.dev.v0": ("sums",)}
    assert registry.file_of("sums") == tmp_path / "evals" / "sums.yaml"


def test_aliases_may_lead_to_aliases(tmp_path: Path) -> None:
    """A chain of aliases is followed to its end; of what they say the first wins."""
    text = "all: {id: best, metrics: f1}\nbest: {id: sums, metrics: [x], description: The best.}\n" + an_eval("sums")
    spec = Registry([write_registry(tmp_path, {"evals/a.yaml": text})]).eval("all")
    assert (spec.name, spec.metrics, spec.description) == ("sums.dev.v0", ("f1",), "The best.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sums: {id: nothing}", "{file}, 'sums': the alias leads nowhere: no eval 'nothing' in {top}"),
        ("sums: {id: b}\nb: {id: sums}", "{file}, 'sums': the alias leads back to itself, by way of 'b'"),
        ("sums: {args: {}}", "{file}, 'sums': no class found, 'class: module:Class' wanted"),
        ("sums: {class: match}", "{file}, 'sums': the class 'match' found, 'class: module:Class' wanted"),
        ("sums: {class: 'a:B', args: [1]}", "{file}, 'sums': 'args' is no mapping of names to values"),
        ("sums: 3", "{file}, 'sums': no class found, 'class: module:Class' wanted"),
        ("sums: {id: a\nb: 1", "{file}, line 2: not YAML (did not find expected ',' or '}')"),
        ("- sums", "{file}: names with what stands behind them wanted at the outermost level"),
        ("sums: !!python/name:os.system", "{file}, line 1: not YAML (could not determine a constructor"),
        ("sums: 2024-99-99", "{file}: not YAML (ValueError)"),
    ],
)
def test_what_is_wrong_with_an_entry_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    """A mistake in the YAML is told with its file, and its line or name."""
    pytest.importorskip("yaml").CSafeLoader  # noqa: B018  # the slower reader words its messages otherwise
    registry = Registry([write_registry(tmp_path, {"evals/sums.yaml": text})])
    wanted = said.replace("{file}", str(tmp_path / "evals" / "sums.yaml")).replace("{top}", str(tmp_path))
    assert error_of(registry, "sums").startswith(wanted)


def test_a_wrong_name_has_suggestions(tmp_path: Path) -> None:
    """A name that is not there is told with those that are near, and with the command that lists all."""
    registry = Registry([write_registry(tmp_path)])
    assert error_of(registry, "smus") == f"no eval 'smus' in {tmp_path}; did you mean sums?; see simpleqa evals list"


def test_a_set_is_no_eval(tmp_path: Path) -> None:
    """Who names a set for an eval, or an eval for a set, is told the option for it."""
    files = {"evals/sums.yaml": an_eval("sums"), "eval_sets/all.yaml": "all: {evals: [sums]}"}
    registry = Registry([write_registry(tmp_path, files)])
    assert "it is an eval set: --simpleqa-eval-set" in error_of(registry, "all")
    with pytest.raises(SpecError, match=r"it is an eval: --simpleqa-eval$"):
        registry.eval_set("sums")


def test_a_broken_file_stops_nobody_else(tmp_path: Path) -> None:
    """An eval whose own file can be read is found beside files that cannot."""
    files = {"evals/sums.yaml": an_eval("sums"), "evals/torn.yaml": "torn: [sums", "evals/empty.yaml": ""}
    registry = Registry([write_registry(tmp_path, files)])
    (tmp_path / "evals" / "latin.yaml").write_bytes(b"sums:\n  description: \xe9\n")
    assert registry.eval("sums").name == "sums.dev.v0"
    assert error_of(registry, "torn").startswith(f"{tmp_path / 'evals' / 'torn.yaml'}, line 2: not YAML")
    assert sorted(fault.partition(": ")[2][:9] for fault in registry.faults) == ["not UTF-8", "not YAML "]


def test_only_files_that_may_hold_a_name_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for one name parses the files that have it in their text, each once."""
    files = {f"evals/{name}.yaml": an_eval(name) for name in ("one", "two", "three")}
    parsed: list[str] = []
    plain = shelf._File._parsed

    def counted(file: shelf._File) -> object:
        parsed.append(file._path.stem)
        return plain(file)

    monkeypatch.setattr(shelf._File, "_parsed", counted)
    registry = Registry([write_registry(tmp_path, files)])
    registry.eval("two")
    registry.eval("two.dev.v0")
    assert parsed == ["two"]


# -- several registries ---------------------------------------------------------------------------


def test_the_first_registry_wins_and_says_so(tmp_path: Path) -> None:
    """Where two registries give a name another meaning, the first counts, and a note names both files."""
    first = write_registry(tmp_path / "a", {"evals/mine.yaml": an_eval("sums", max_tokens=3)})
    second = write_registry(tmp_path / "b", {"evals/sums.yaml": an_eval("sums"), "evals/other.yaml": an_eval("other")})
    registry = Registry([first, second])
    assert registry.eval("sums.dev.v0").args["max_tokens"] == 3
    assert registry.eval("other").registry_dir == second
    mine, theirs = first / "evals" / "mine.yaml", second / "evals" / "sums.yaml"
    assert registry.notes == (f"sums.dev.v0 is taken from {mine}, not from {theirs}, which differs",)


def test_a_name_twice_in_one_registry_is_a_mistake(tmp_path: Path) -> None:
    """Two files of one registry that hold the same name are told, not guessed between."""
    registry = Registry([write_registry(tmp_path, {"evals/a.yaml": an_eval("sums"), "evals/b.yaml": an_eval("sums")})])
    assert error_of(registry, "sums").endswith(
        f"stands in {tmp_path / 'evals' / 'b.yaml'}; delete or rename one of them"
    )


def test_registries_are_those_named_then_the_home_then_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The named ones come first, then `~/.evals`, an installed `evals`, ours; each once, and evals is not imported."""
    given = write_registry(tmp_path / "given")
    own = write_registry(tmp_path / "home" / ".evals")
    installed = write_registry(tmp_path / "site" / "evals" / "registry")
    (installed.parent / "__init__.py").write_text("raise SystemExit", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "site")
    dirs = registry_dirs([given, own, given / "."], home=tmp_path / "home")
    assert dirs == (given, own, installed, SHIPPED)
    assert "evals" not in sys.modules


@pytest.mark.parametrize(("name", "said"), [("none", "no such directory"), (".", "no registry")])
def test_a_directory_that_is_no_registry_is_a_mistake(tmp_path: Path, name: str, said: str) -> None:
    """A named registry must be one."""
    with pytest.raises(SpecError, match=said):
        registry_dirs([tmp_path / name], home=tmp_path)


# -- sets, patterns and the rest ------------------------------------------------------------------


def test_a_set_holds_names_patterns_and_sets(tmp_path: Path) -> None:
    """A set gives full names in its order, each once; what leads nowhere stays, for `eval` to complain of."""
    files = {
        "evals/sums.yaml": an_eval("sums") + an_eval("sums-hard"),
        "evals/words.yaml": an_eval("words"),
        "eval_sets/sets.yaml": "all: {evals: [words, 'sums*', nothing, inner]}\ninner: {evals: [words.dev.v0, 'x*']}",
    }
    registry = Registry([write_registry(tmp_path, files)])
    assert registry.eval_set("all") == ("words.dev.v0", "sums-hard.dev.v0", "sums.dev.v0", "nothing", "x*")
    assert registry.matching("sums.*") == ("sums.dev.v0",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("all: {evals: [b]}\nb: {evals: [all]}", "eval set 'all' holds itself: all -> b -> all"),
        ("all: {eval: [b]}", "the eval set has no list 'evals'"),
        ("any: {evals: []}", "no eval set 'all'"),
    ],
)
def test_what_is_wrong_with_a_set_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    """A set that holds itself, or nothing, is told."""
    with pytest.raises(SpecError, match=said):
        Registry([write_registry(tmp_path, {"eval_sets/s.yaml": text})]).eval_set("all")


def test_model_graded_specs_and_completion_functions_have_names_too(tmp_path: Path) -> None:
    """Both are found like evals; a solver is told to be one."""
    files = {
        "modelgraded/fact.yaml": "fact: {prompt: 'Is {completion} so?', choice_strings: AB}",
        "completion_fns/cot.yaml": "cot: {class: 'a.b:C', args: {inner: gpt}}",
        "solvers/s.yaml": "player: {class: 'a.b:S'}",
    }
    registry = Registry([write_registry(tmp_path, files)])
    assert registry.modelgraded("fact")["choice_strings"] == "AB"
    found = registry.completion_fn("cot")
    assert (found.class_path, found.args) == ("a.b:C", {"inner": "gpt"})
    for name, said in (("player", "is a solver"), ("cto", "did you mean cot")):
        with pytest.raises(SpecError, match=said):
            registry.completion_fn(name)
    with pytest.raises(SpecError, match="no model-graded spec 'facts'"):
        registry.modelgraded("facts")
