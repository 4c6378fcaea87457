"""Compilations and compiled programs give back what they took."""

import gc
from pathlib import Path

import numpy as np
import pytest

from fnad.backends.numba.compiler import compile_source

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="what is resident is read from Linux")


def resident() -> float:
    """Return the megabytes of memory that the process has in use."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def test_a_compilation_keeps_the_code_alone():
    def compile_many(count):
        for n in range(count):
            source = f"def chunk(x, out):\n    for i in range(3):\n        out[i] = x[i] * {n}.5"
            compile_source(source, "chunk", [np.dtype("f8")] * 2)

    compile_many(40)
    before = resident()
    compile_many(60)
    assert resident() - before < 1.5
