"""The harness finds what a device would run without a word: races, barriers that not all reach, bad indices."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fnad.kernel.launches import Launch
from fnad.kernel.python_source import kernel_text
from fnad.kernel.statements import Kernel
from tests.cuda.harness import Array, KernelError, run
from tests.kernel_text import parse_kernel

F64 = np.dtype(np.float64)

EXCHANGE = """
def kernel(x, out):
    near = shared_f64(i64(8))
    near[thread()] = x[block() * 8 + thread()]
    barrier()
    out[block() * 8 + thread()] = near[(thread() + 1) % 8]
"""
SUM = """
def kernel(x, out):
    v0 = x[block() * 8 + thread()]
    v1 = v0 + shuffle_down(v0, 2)
    v2 = v1 + shuffle_down(v1, 1)
    if thread() % 4 == 0:
        out[block() * 2 + thread() // 4] = v2
"""


def kernel(text: str) -> Kernel:
    return parse_kernel(text, "kernel", [F64, F64])


def ran(text: str, seed: int = 0, blocks: int = 2) -> Array:
    x, out = np.arange(8.0 * blocks), np.full(16, -1.0)
    run(Launch(kernel(text), blocks, 8), [x, out], random.Random(seed), warp=4)
    return out


@pytest.mark.parametrize("seed", range(3))
def test_barriers_and_shuffles(seed: int) -> None:
    np.testing.assert_array_equal(ran(EXCHANGE, seed), [*np.roll(np.arange(8), -1), *np.roll(np.arange(8, 16), -1)])
    np.testing.assert_array_equal(ran(SUM, seed)[:4], [6, 22, 38, 54])


@pytest.mark.parametrize("text", [EXCHANGE, SUM])
def test_a_printed_kernel_is_read_back(text: str) -> None:
    assert kernel_text(kernel(kernel_text(kernel(text)))) == kernel_text(kernel(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (EXCHANGE.replace("    barrier()\n", ""), r"a race for shared0\[\d\]: thread \d of block \d"),
        (EXCHANGE.replace("out[block() * 8 + thread()]", "out[thread()]"), r"a race for out\[\d\]: .* of block 0"),
        (EXCHANGE.replace("out[block() * 8 + thread()]", "out[0]"), r"a race for out\[0\]"),
        (
            EXCHANGE[: EXCHANGE.index("    barrier")] + "    if thread() < 4:\n        barrier()\n",
            "not all threads come",
        ),
        (SUM.replace("    v2 = v1", "    if thread() < 2:\n        return\n    v2 = v1"), "not all threads come"),
        (EXCHANGE.replace("x[block() * 8 + thread()]", "x[thread() - 1]"), r"x\[-1\] is out of bounds"),
    ],
)
def test_what_a_kernel_must_not_do(text: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        ran(text)


def test_a_shared_array_is_the_same_one_in_each_iteration() -> None:
    text = """
def kernel(x, out):
    for i0 in range(2):
        near = shared_f64(i64(8))
        near[thread()] = x[thread()]
        barrier()
        out[i0 * 8 + thread()] = near[(thread() + 1) % 8]
"""
    with pytest.raises(KernelError, match="a race for shared0"):
        ran(text, blocks=1)


def test_what_nobody_stored_in_shared_memory_is_no_number() -> None:
    assert np.isnan(
        ran("def kernel(x, out):\n    near = shared_f64(i64(8))\n    out[thread()] = near[0]\n", blocks=1)[0]
    )


def test_what_comes_after_a_barrier_is_printed_after_it() -> None:
    text = "def kernel(x, out):\n    v0 = x[thread()]\n    barrier()\n    out[thread()] = v0\n"
    assert kernel_text(kernel(text)) == text


@pytest.mark.parametrize(("blocks", "threads"), [(0, 8), (2**31, 8), (1, 1025), (1, 0)])
def test_grids_that_cuda_refuses(blocks: int, threads: int) -> None:
    with pytest.raises(KernelError, match=f"kernel has {blocks} blocks of {threads} threads"):
        run(Launch(kernel(SUM), blocks, threads), [np.zeros(16), np.zeros(16)], random.Random(0))
