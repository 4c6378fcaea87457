"""What LLVM makes of kernels for a GPU gives what the interpreter gives: nothing has been moved across a barrier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.special import ndtr

import fnad
from fnad.backends.cuda import executor
from fnad.backends.cuda.executor import DeviceExecutor
from fnad.kernel.launches import Launch
from fnad.testing import assert_close, tolerance
from fnad.transforms.interpret import interpret
from tests.cuda import native, test_graphs
from tests.cuda.test_grid import PROGRAMS, SMALL, plan_of, traced, waits
from tests.cuda.test_ptx import has_libdevice
from tests.gpu import SMALL as FEW_THREADS
from tests.gpu import driver
from tests.kernel_text import parse_kernel
from tests.together import drawn, some_of, together

pytestmark = pytest.mark.skipif(not has_libdevice(), reason="nvidia-nvvm, which has libdevice, is for Linux on x86-64")

F64 = np.dtype(float)
EXCHANGES: dict[str, tuple[str, Any]] = {
    "one stores, all load": (
        """
    if thread() == 0:
        t[0] = x[0] * 2.0
    barrier()
    out[thread()] = t[0]
""",
        lambda x, t: 0 * x + 2 * x[0],
    ),
    "loaded before as well": (
        """
    v0 = t[0]
    barrier()
    if thread() == 0:
        t[0] = v0 + x[3]
    barrier()
    out[thread()] = t[0]
""",
        lambda x, t: 0 * x + t[0] + x[3],
    ),
    "stored again": (
        """
    t[thread()] = x[thread()]
    barrier()
    v0 = t[(thread() + 1) % 8]
    barrier()
    t[thread()] = v0 * 2.0
    barrier()
    out[thread()] = t[(thread() + 2) % 8]
""",
        lambda x, t: 2 * np.roll(x, -3),
    ),
    "in each iteration": (
        """
    for i0 in range(5):
        v0 = t[(thread() + 1) % 8]
        barrier()
        t[thread()] = v0 + x[i0]
        barrier()
    out[thread()] = t[thread()]
""",
        lambda x, t: np.roll(t, -5) + np.sum(x[:5]),
    ),
    "in shared memory": (
        """
    near = shared_f64(i64(8))
    near[thread()] = x[thread()]
    barrier()
    v0 = near[0]
    barrier()
    if thread() == 3:
        near[0] = v0 + x[1]
    barrier()
    out[thread()] = near[0] + v0
""",
        lambda x, t: 0 * x + 2 * x[0] + x[1],
    ),
    "by lanes": (
        """
    v0 = x[thread()]
    v1 = v0 + shuffle_down(v0, 2)
    v2 = v1 + shuffle_down(v1, 1)
    t[thread()] = shuffle_first(v2, 4)
    warp_barrier()
    out[thread()] = t[thread() ^ 1]
""",
        lambda x, t: np.repeat([np.sum(x[:4]), np.sum(x[4:])], 4),
    ),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_what_threads_leave_for_others_is_found(name: str) -> None:
    text, wanted = EXCHANGES[name]
    x, t, out = np.arange(8.0) + 1, np.arange(8.0) * 10, np.zeros(8)
    expected = wanted(x, t.copy())
    kernel = parse_kernel(f"def kernel(x, t, out):{text}", "kernel", [F64, F64, F64])
    native.run(Launch(kernel, 1, 8), [array.ctypes.data for array in (x, t, out)], warp=4)
    np.testing.assert_array_equal(out, expected)


ALONE = replace(SMALL, grid=replace(SMALL.grid, together=1))
"""A device whose blocks run one after the other, so that none may wait for those behind it."""


@pytest.mark.slow
def test_programs_compiled_for_a_gpu_are_interpreted() -> None:
    """Programs whose threads wait for others, in half of the combinations of ways."""
    plans = {name: plan_of(name, ALONE) for name in PROGRAMS}
    with together() as check:
        waiting = drawn([name for name in plans if waits(plans[name])], lambda name: waits(plans[name]))
        for name in some_of(waiting, "native", (len(waiting) + 1) // 2):
            with check(name):
                program, plan, arguments = traced(name), plans[name], PROGRAMS[name][1]
                run = DeviceExecutor(plan, native.Compiled(warp=ALONE.grid.warp))
                found = run(list(map(np.asarray, arguments)))
                for a, b in zip(found, interpret(program, list(arguments)), strict=True):
                    assert_close(a.memory, np.asarray(b, a.dtype), tolerance(a.dtype))


@pytest.mark.slow
def test_loops_of_the_host_and_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "CUDA", FEW_THREADS)
    with driver.using(native.Compiled(warp=4)), together() as check:
        for name in ("branches", "unknown length", "residual stacks"):  # which have kernels of their own
            function, arguments = test_graphs.PROGRAMS[name]
            with check(name):
                test_graphs.run_again(function, tuple(map(shortened, arguments)))


def shortened(x: Any) -> Any:
    """Rows of more than one block of a GPU, of more than one block of few threads."""
    return x[..., :80] if np.shape(x)[-1:] == test_graphs.LONGER.shape else x


@pytest.mark.slow
def test_the_normal_distribution_in_single_precision() -> None:
    """It has a formula of its own, within 4 units in the last place where powers of two are rounded correctly."""
    x = np.linspace(-15, 6, 3000, dtype=np.float32)
    ends = np.array([0, -0.0, 1e-40, -14.5, np.inf, -np.inf, 1e20, -3e38, np.nan], np.float32)
    with driver.using(native.Compiled()):
        found, found_ends = fnad.to_host(fnad.jit(lambda *of: [ndtr(x) for x in of], device="cuda")(x, ends))
    assert_array_equal(found_ends, np.float32([0.5, 0.5, 0.5, 0, 1, 0, 1, 0, np.nan]))
    wanted = np.array([float(mpmath.erfc(-mpmath.mpf(float(p)) / mpmath.sqrt(2)) / 2) for p in x])
    unit = np.spacing(np.maximum(wanted, np.finfo(np.float32).tiny).astype(np.float32))
    assert np.max(np.abs(found - wanted) / unit) < 4
