"""Compiled functions give back the memory that they took."""

import gc
from pathlib import Path

import numpy as np
import pytest

import fnad

pytestmark = [
    pytest.mark.usefixtures("_few_objects"),
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="what is resident is read from Linux"),
]


def resident() -> float:
    """Return the megabytes of memory that the process has in use."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def test_functions_that_are_gone_leave_nothing():
    """Not even what LLVM takes for a compilation: its passes alone were 70 KB each."""

    def run_many(count: int) -> None:
        for n in range(count):
            f = fnad.jit(fnad.grad(lambda x, n=n: np.sum(np.sin(x) * (n + 0.5))))
            f(np.ones(3))

    run_many(30)
    before = resident()
    run_many(40)
    assert resident() - before < 1.5
