"""Promises of `evals.data`: an address becomes samples, and samples questions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pytest_simpleqa.errors import DatasetError
from pytest_simpleqa.evals.data import Samples, count_samples, eval_dataset, read_samples

from .registries import SAMPLES, write_registry, write_samples


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return write_registry(tmp_path / "registry")


def error_of(address: str, registry: Path, base: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        read_samples(address, [registry], base)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_address_is_looked_for_from_the_invocation_directory_then_in_the_registries(
    registry: Path, tmp_path: Path
) -> None:
    """A relative address is a path of the user's, else one below `data/` of the first registry that has it."""
    other = write_registry(tmp_path / "other", sums=[{"input": "x"}], more=[{"input": "y"}])
    assert read_samples("sums/samples.jsonl", [registry, other], tmp_path) == SAMPLES
    assert read_samples("more/samples.jsonl", [registry, other], tmp_path) == [{"input": "y"}]
    write_samples(tmp_path / "sums" / "samples.jsonl", [{"input": "mine"}])
    assert read_samples("sums/samples.jsonl", [registry, other], tmp_path) == [{"input": "mine"}]
    absolute = str(other / "data" / "more" / "samples.jsonl")
    assert read_samples(absolute, [registry], tmp_path / "elsewhere") == [{"input": "y"}]


def test_packed_and_other_formats_are_read(registry: Path, tmp_path: Path) -> None:
    """JSON Lines, JSON and CSV give the same samples, packed or not."""
    row = {"input": "One?", "ideal": "1"}
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    (tmp_path / "a.json").write_text(json.dumps([row]), encoding="utf-8")
    (tmp_path / "a.csv").write_text("input,ideal\nOne?,1\n", encoding="utf-8")
    assert all(read_samples(name, [registry], tmp_path) == [row] for name in ("a.jsonl.gz", "a.json", "a.csv"))


def test_a_folder_means_all_of_its_files(registry: Path, tmp_path: Path) -> None:
    """All JSON Lines files of a folder count, sorted, also those further down; each row knows its file."""
    write_samples(registry / "data" / "many" / "b.jsonl", [{"input": "2"}])
    write_samples(registry / "data" / "many" / "a" / "x.jsonl", [{"input": "1"}])
    samples = read_samples("many", [registry], tmp_path)
    assert samples == [{"input": "1"}, {"input": "2"}]
    assert samples.place(1) == "many/b.jsonl, line 1"
    assert count_samples(registry / "data" / "many") == 2


def test_missing_data_are_told_with_what_is_near(registry: Path, tmp_path: Path) -> None:
    """A file that is not there is told with where was looked and the name that is near."""
    assert error_of("sums/sample.jsonl", registry, tmp_path) == (
        f"there is no data file 'sums/sample.jsonl' in {registry / 'data'} or {tmp_path}; did you mean samples.jsonl?"
    )


def test_a_git_lfs_pointer_is_recognised(registry: Path, tmp_path: Path) -> None:
    """A pointer in place of the data is told with the command that fetches them."""
    path = registry / "data" / "sums" / "samples.jsonl"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", encoding="utf-8")
    said = error_of("sums/samples.jsonl", registry, tmp_path)
    assert said.endswith(f"a Git LFS pointer stands here instead of the data; run 'git lfs pull' in {path.parent}")
    with pytest.raises(DatasetError, match="Git LFS"):
        count_samples(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.jsonl: there are no samples in it"),
        ('{"input": "a"}{"input": "b"}', "x.jsonl, line 1: not JSON"),
        ("[1]", "x.jsonl, line 1: an array found, an object wanted"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(registry: Path, tmp_path: Path, text: str, said: str) -> None:
    """What is wrong with a file is told with its line."""
    (tmp_path / "x.jsonl").write_text(text, encoding="utf-8")
    assert error_of("x.jsonl", registry, tmp_path).startswith(said)


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"input": "a"}, "x.jsonl, line 2: found 'input', not 'ideal'; every sample of this eval needs one"),
        ({}, "x.jsonl, line 2: found nothing, not 'input'; every sample of this eval needs one"),
        ({"input": None}, "x.jsonl, line 2: null stands at 'input'; every sample of this eval needs one"),
    ],
)
def test_a_sample_that_lacks_something_is_named(
    registry: Path, tmp_path: Path, sample: dict[str, str], said: str
) -> None:
    """A sample without what its eval needs is told with file and line."""
    write_samples(tmp_path / "x.jsonl", [SAMPLES[0], sample])
    with pytest.raises(DatasetError) as caught:
        read_samples("x.jsonl", [registry], tmp_path).require("input", "ideal")
    assert str(caught.value) == said


def test_samples_become_questions_with_their_numbers(registry: Path, tmp_path: Path) -> None:
    """An eval's questions are numbered from 1 and carry their sample; the dataset has the hash of the file."""
    samples = read_samples("sums/samples.jsonl", [registry], tmp_path)
    dataset = eval_dataset("sums.dev.v0", samples, lambda sample: (sample["input"], str(sample["ideal"])))
    assert [question.id for question in dataset] == ["1", "2"]
    assert [question.metadata["sample"] for question in dataset] == SAMPLES
    assert (dataset.name, dataset.sha256) == ("sums.dev.v0", samples.sha256)
    assert samples.sha256
    assert samples.first(1) == SAMPLES[:1]
    assert Samples() == []
