"""Residual stacks are never written beyond their end: CPython puts guard bytes around memory, and checks them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import fnad
from fnad.kernel import residual_stack

fnad.config.set_default(executor="compiled", disk_cache=False)
in_python = IN_PYTHON
same = (lambda y: np.fft.ifft(np.fft.fft(y)).real) if in_python else (lambda y: y)  # Python calls it, backwards too
step = lambda y: same(y) * 1.001 + 0.01 * np.sin(y)

def loop(x, n):
    return np.sum(fnad.while_loop(lambda c: c[1] < n, lambda c: (step(c[0]), c[1] + 1), (x, 0))[0])

slope = fnad.jit(fnad.grad(loop))
bend = fnad.jit(fnad.grad(lambda x, n: np.sum(fnad.grad(loop)(x, n))))
for size in SIZES:
    row = 8 * size
    for capacity in (residual_stack.SMALLEST, 2 * residual_stack.SMALLEST):
        for n in (capacity // row, capacity // row + 1, capacity // row + 2):
            x = np.linspace(0.1, 0.2, size)
            y, first, second = x, np.ones(size), np.zeros(size)
            for _ in range(n):
                one, two = 1.001 + 0.01 * np.cos(y), -0.01 * np.sin(y)
                second, first, y = two * first**2 + one * second, one * first, step(y)
            np.testing.assert_allclose(slope(x, n), first, rtol=1e-9)
            np.testing.assert_allclose(bend(x, n), second, rtol=1e-9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("in_python", [False, True])
def test_no_row_is_written_beyond_the_end_of_a_stack(in_python: bool) -> None:
    """Loops whose last row is the first one for which a stack has to grow, natively and where Python runs the loop."""
    program = PROGRAM.replace("IN_PYTHON", str(in_python)).replace("SIZES", "(3, 64)" if in_python else "(1, 3)")
    environment = os.environ | {"PYTHONMALLOC": "debug"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=200
    )
    assert (done.returncode, done.stderr) == (0, "")
