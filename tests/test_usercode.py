"""Promises of what tells one machine's code from another's."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_simpleqa.usercode import user_code


def a_module(path: Path, text: str, **names: object) -> ModuleType:
    path.write_bytes(text.encode())
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    vars(module).update(names)
    return module


def test_files_that_answer_are_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of each `python:` spec is named by its path, several models of an eval included; no other spec is."""
    (tmp_path / "app").mkdir()
    monkeypatch.setitem(sys.modules, "app.one", a_module(tmp_path / "app" / "one.py", "x = 1\n"))
    monkeypatch.setitem(sys.modules, "two", a_module(tmp_path / "two.py", "x = 2\n"))
    content = {"answer": {"spec": "openai:gpt,python:app.one:answer"}, "judge": {"spec": "python:two:make()"}}
    found = user_code([content, {"answer": {"spec": None}}], [], tmp_path)
    assert list(found) == ["app/one.py", "two.py"]
    assert len(set(found.values())) == 2


def test_conftests_with_hooks_of_ours_are_hashed(tmp_path: Path) -> None:
    """A conftest counts where it answers, judges or wraps; line ends of another system make no difference."""
    hooking = a_module(tmp_path / "conftest.py", "a\nb\n", pytest_simpleqa_wrap=None)
    (tmp_path / "tests").mkdir()
    other = a_module(tmp_path / "tests" / "conftest.py", "c\n", pytest_addoption=None)
    found = user_code([], [hooking, other, object()], tmp_path)
    assert list(found) == ["conftest.py"]
    (tmp_path / "conftest.py").write_bytes(b"a\r\nb\r\n")
    assert user_code([], [hooking], tmp_path) == found
