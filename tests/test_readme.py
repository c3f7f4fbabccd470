"""The README against the code: whatever it names is there, and whatever a user can say is in it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_simpleqa import hookspecs
from pytest_simpleqa.catalogue import list_evals
from pytest_simpleqa.evals.registry import Registry
from pytest_simpleqa.models.providers import PROVIDERS
from pytest_simpleqa.models.settings import Settings, read_settings
from pytest_simpleqa.optiontable import OPTIONS
from pytest_simpleqa.records import QuestionResult
from pytest_simpleqa.reportbuild import build_report
from pytest_simpleqa.screen import WORDS
from pytest_simpleqa.secret import Secret
from pytest_simpleqa.testing import fake_dataset

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def readme() -> str:
    """The README's text."""
    return (ROOT / "README.md").read_text(encoding="utf-8")


def section(readme: str, title: str) -> str:
    """Return what stands below the heading `title`, up to the next heading of the same level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title!r}"
    return found[1]


def code_blocks(readme: str, language: str) -> Iterator[str]:
    """Yield the fenced blocks of a language."""
    for found in re.finditer(rf"^```{language}\n(.*?)^```", readme, re.MULTILINE | re.DOTALL):
        yield found[1]


def test_every_option_has_its_row(readme: str) -> None:
    """Each option of the table in the code begins a row of the README's table."""
    rows = section(readme, "Options")
    missing = [spec.flag for spec in OPTIONS if not re.search(rf"^\| `{spec.flag}[` ]", rows, re.MULTILINE)]
    assert missing == []


def test_no_unknown_option_is_named(readme: str) -> None:
    """Every `--simpleqa-*` flag and ini key that the README mentions exists."""
    flags = set(re.findall(r"--(?:no-)?simpleqa-[a-z-]*[a-z]|--(?:answer|judge)-llm[a-z-]*", readme))
    assert flags <= {spec.flag for spec in OPTIONS}
    keys = set(re.findall(r"^((?:no_)?simpleqa_\w+|(?:answer|judge)_llm\w*) *=", readme, re.MULTILINE))
    assert keys <= {spec.name for spec in OPTIONS if spec.ini}


def test_every_provider_is_named(readme: str) -> None:
    """Each known provider stands in the section on specs, with the variable of its key or address."""
    text = section(readme, "Models")
    for provider in PROVIDERS.values():
        assert f"`{provider.name}" in text, provider.name
        assert (provider.key_variables[0] if provider.needs_key else provider.url_variable or "") in text


def test_the_connection_json_is_read_and_has_every_key(readme: str) -> None:
    """The README's JSON of a connection is accepted, and shows every key that there is."""
    (text,) = re.findall(r"SIMPLEQA_MINE='(\{.*?\})'", section(readme, "Models"), re.DOTALL)
    assert read_settings("SIMPLEQA_MINE", Secret(text)).model
    assert set(json.loads(text)) == {field.name for field in fields(Settings)}


def test_the_registry_it_shows_can_be_run(readme: str, tmp_path: Path) -> None:
    """The files of the README's registry, written where their first lines say, are an eval with data and a set."""
    for found in re.finditer(r"^# (my-registry/[\w/.-]+).*\n((?:(?!```).*\n)*)", readme, re.MULTILINE):
        file = tmp_path / found[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(found[2], encoding="utf-8")
    registry = Registry([tmp_path / "my-registry"])
    (capitals,) = list_evals(registry, "capitals", tmp_path)
    assert (capitals.name, capitals.samples, capitals.reason) == ("capitals.dev.v0", 2, None)
    assert registry.eval_set("mine") == ("capitals.dev.v0",)
    assert registry.modelgraded("tone")["choice_strings"] == ["Rude", "Neutral", "Polite"]


def test_every_key_of_the_report_is_explained(readme: str) -> None:
    """Each key of the Report, and of a sample, begins or shares a line of the schema."""
    dataset = fake_dataset(1)
    document = build_report(
        dataset="d", model="m", judge="j", started_at=datetime.now(UTC), duration_s=1, population=dataset.questions,
        results={},
    ).to_json()  # fmt: skip
    sample = QuestionResult.for_question(dataset.questions[0]).to_sample()
    text = section(readme, "The Report")
    named = set(re.findall(r"`(\w+)`", text))
    assert {*document, *sample} <= named


def test_every_outcome_has_its_row(readme: str) -> None:
    """Each letter and word that pytest shows stands in the table of outcomes."""
    text = section(readme, "Outcomes and exit status")
    for letter, word, _ in WORDS.values():
        assert re.search(rf"\| `{re.escape(letter)}` {word} \|", text), word


def test_every_hook_is_named(readme: str) -> None:
    """Each hook stands in the section on hooks."""
    text = section(readme, "Hooks")
    hooks = [name for name in vars(hookspecs) if name.startswith("pytest_simpleqa_")]
    assert len(hooks) >= 6
    assert [name for name in hooks if name not in text] == []


def test_every_module_has_its_line(readme: str) -> None:
    """Each module of the package stands in "Where things live", and nothing that is not there does."""
    text = section(readme, "Where things live")
    package = ROOT / "pytest_simpleqa"
    modules = {path.relative_to(package).as_posix() for path in package.rglob("*.py")}
    modules = {name for name in modules if not name.endswith("__init__.py")}
    named = set(re.findall(r"`((?:\w+/)?\w+\.py)`", text))
    assert named == modules


def test_the_test_command_is_the_one_of_ci(readme: str) -> None:
    """The README's test command is what CI runs."""
    assert "pytest -n 2" in section(readme, "Development")
    ci = ROOT / ".ci" / "run"
    if ci.is_file():
        assert "pytest -n 2" in ci.read_text(encoding="utf-8")


def test_python_blocks_are_python(readme: str) -> None:
    """Every Python block compiles."""
    blocks = list(code_blocks(readme, "python"))
    assert blocks
    for block in blocks:
        compile(block, "README.md", "exec")


def test_the_library_example_runs(readme: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of a run without pytest does what it says."""
    (block,) = [block for block in code_blocks(readme, "python") if "FakeModel" in block]
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})  # the README's own code
    assert "1 of 60" in capsys.readouterr().out


def test_links_lead_to_files_and_headings(readme: str) -> None:
    """Every relative link leads to a file of the repository, every `#` link to a heading."""
    headings = re.findall(r"^#+ (.*)$", readme, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    for target in re.findall(r"\]\(([^)]+)\)", readme):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif "://" not in target:
            assert (ROOT / target).exists(), target


def test_tables_are_whole(readme: str) -> None:
    """Every row of a table has as many cells as its head, so that it is shown as one."""
    for table in re.findall(r"(?:^\|.*\|\n)+", readme, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


def test_the_sample_has_the_size_that_is_told(readme: str) -> None:
    """The README's number of shipped questions is that of the shipped file."""
    with (ROOT / "pytest_simpleqa" / "data" / "sample.csv").open(encoding="utf-8", newline="") as file:
        count = sum(1 for _ in csv.reader(file)) - 1
    assert f"{count} questions to local" in readme
