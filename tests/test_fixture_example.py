"""The example of questions in one's own tests, copied into an empty folder and run as its README says."""

from __future__ import annotations

import re
import shlex
import shutil

import pytest

from .small_run import run_dirs
from .test_examples import ANSWERS, EXAMPLES

FOLDER = EXAMPLES / "suite"


def test_the_commands_of_the_readme_run(pytester: pytest.Pytester) -> None:
    """Two functions are two runs, the dataset a third; without a model they are two skips."""
    shutil.copytree(FOLDER, pytester.path, dirs_exist_ok=True)
    pytester.makepyfile(answers=ANSWERS)
    (block,) = re.findall(r"^```bash\n(.*?)^```", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for number, line in enumerate(block.splitlines()):
        words = [word.replace("local", "python:answers:answer") for word in shlex.split(line)]
        result = pytester.runpytest_subprocess(*words[1:], "-W", "error", timeout=100)
        result.stdout.fnmatch_lines(["*4 failed, 8 passed*"])
        assert len(run_dirs(pytester.path)) == (2, 5)[number]
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=2, skipped=2)
