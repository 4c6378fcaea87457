"""`import fnad` stays light: what compiles, solves or plots is loaded when it is needed."""

import subprocess
import sys

import pytest

HEAVY = ("numba", "llvmlite", "scipy", "matplotlib", "jax", "torch")


@pytest.mark.parametrize("module", ["fnad", "fnad.numpy", "fnad.cli"])
def test_import_loads_no_heavy_library(module: str) -> None:
    program = f"import sys, {module}; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
