"""Our basic templates beside those of the real `evals` package."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .benchmarks import evals_agreement


@pytest.mark.slow
def test_verdicts_are_those_of_the_real_package() -> None:
    """Prompts, parameters, verdicts and F1 agree sample by sample; skipped where no environment has the package."""
    python = os.environ.get("SIMPLEQA_EVALS_PYTHON")
    if not python:
        pytest.skip("set SIMPLEQA_EVALS_PYTHON to the python of an environment with the package evals 3.0.1")
    names = ["anagrams.test.v1", "rock-climbing.dev.v0", "finnish-rhyme.dev.v0", "icelandic-inflection-hard.dev.v0"]
    command = [sys.executable, evals_agreement.__file__, "--python", python, "--samples=20", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 evals" in done.stdout
