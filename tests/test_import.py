"""`import fnad` stays light: what compiles, solves, plots, parses or finds files is loaded when it is needed."""

import subprocess
import sys

import pytest

HEAVY = ("optree", "numba", "llvmlite", "scipy", "matplotlib", "jax", "torch")
SLOW = ("asyncio", "difflib", "json", "logging", "pathlib", "string", "subprocess", "tempfile", "urllib")


def loaded(statement: str, among: tuple[str, ...]) -> list[str]:
    """Return which of these modules a statement loads beyond NumPy."""
    program = f"""
import sys, numpy
before = set(sys.modules)
{statement}
print(*sorted(set({among}) & (set(sys.modules) - before)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("module", ["fnad", "fnad.numpy", "fnad.cli"])
def test_import_loads_no_heavy_library(module: str) -> None:
    assert loaded(f"import {module}", HEAVY) == []


@pytest.mark.parametrize("module", ["fnad", "fnad.numpy"])
def test_import_loads_no_slow_module(module: str) -> None:
    assert loaded(f"import {module}", SLOW) == []


def test_the_sparse_jacobian_of_a_stencil_loads_no_numba() -> None:
    stencil = "import fnad; fnad.sparse_jacobian(lambda u: u[1:] * u[:-1])(numpy.arange(9.0))"
    assert loaded(stencil, ("numba",)) == []
