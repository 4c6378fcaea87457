"""The tests for a GPU on a machine that has pytest, and none of the other packages for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONAL = ("bottleneck", "hypothesis", "mpmath", "pandas", "sklearn", "matplotlib")
ABSENT = (*OPTIONAL, "xdist", "pytest_timeout")
SCRIPT = f"import sys; sys.modules.update(dict.fromkeys({ABSENT})); import pytest; sys.exit(pytest.main(sys.argv[1:]))"


@pytest.mark.slow
def test_the_tests_for_a_gpu_take_pytest_alone() -> None:
    files = "tests/cuda/test_gpu.py", "tests/edge_cases", "tests/cuda/test_examples.py"
    arguments = [*files, "--collect-only", "-q", "--numprocesses=4"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests/cuda/test_gpu.py::test_each_primitive_on_the_gpu_is_interpreted[0]" in done.stdout


IMPORTS = """
import pkgutil, sys

class Absent:
    def find_spec(name, *_):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent)
import fnad
for module in pkgutil.walk_packages(fnad.__path__, "fnad."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
"""


def test_no_module_needs_an_optional_package_to_be_imported() -> None:
    absent = [*OPTIONAL, "cupy", "cupyx", "jax", "torch", "triton", "pytest", "_pytest", "xarray"]
    subprocess.run([sys.executable, "-c", IMPORTS, *absent], cwd=ROOT, check=True, capture_output=True)


PYTHON = """#!/bin/sh
echo "$*" >>"$0.log"
case "$*" in
*"-k catalogue"*) echo "3 skipped" ;;
*benchmarks*) exit 3 ;;
*pytest*) echo "3 passed" ;;
*current*) echo "a GPU" ;;
esac
"""


def ran(folder: Path, python: str, *steps: str) -> subprocess.CompletedProcess[str]:
    """The command for a machine with a GPU, with a Python of its own."""
    (folder / "python").write_text(python)
    (folder / "python").chmod(0o755)
    environment = os.environ | {"PYTHON": str(folder / "python"), "INTO": str(folder / "results")}
    return subprocess.run([ROOT / ".ci/gpu", *steps], env=environment, capture_output=True, text=True, check=False)


def test_what_fails_on_a_gpu_does_not_keep_the_rest_from_running(tmp_path: Path) -> None:
    done = ran(tmp_path, PYTHON, "doctor", "programs", "catalogue", "benchmarks", "examples")
    assert done.returncode == 1, done.stdout + done.stderr
    lines = (tmp_path / "results/summary.txt").read_text().splitlines()
    assert [line.split(" after")[0] for line in lines] == [
        "doctor: status 0", "programs: status 0", "catalogue: status 0 without a test", "benchmarks: status 3",
        "examples: status 0",
    ]  # fmt: skip
    commands = (tmp_path / "python.log").read_text()
    assert "-m fnad doctor" in commands
    assert "-k not catalogue and not edge_cases" in commands
    assert f"--markdown {tmp_path}/results/GPU.md" in commands


def test_where_there_is_no_gpu_the_doctor_says_why(tmp_path: Path) -> None:
    done = ran(tmp_path, PYTHON.replace('echo "a GPU"', "exit 1"))
    assert done.returncode == 1
    assert (tmp_path / "python.log").read_text().splitlines()[-1] == "-m fnad doctor"
    assert not (tmp_path / "results/summary.txt").exists()
