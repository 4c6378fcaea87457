"""The tests for a GPU on a machine that has pytest, and none of the other packages for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ABSENT = ("hypothesis", "mpmath", "pandas", "sklearn", "matplotlib", "xdist", "pytest_timeout")
SCRIPT = f"import sys; sys.modules.update(dict.fromkeys({ABSENT})); import pytest; sys.exit(pytest.main(sys.argv[1:]))"


@pytest.mark.slow
def test_the_tests_for_a_gpu_take_pytest_alone() -> None:
    arguments = ["-m", "cuda", "--collect-only", "-q", "--numprocesses=4"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests/cuda/test_gpu.py::test_the_catalogue[0]" in done.stdout
