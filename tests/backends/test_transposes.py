"""Loops that read along columns, in blocks: their results, and which loops are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import fnad
from fnad.backends.cpu.compiler import module_of
from fnad.backends.cpu.target import CPU
from fnad.backends.llvm.transposes import SIDE, SQUARE, are_fast
from fnad.config import override
from tests.kernel_text import compile_source, parse_kernel
from tests.together import in_groups


def loops(rows: int, columns: int, body: str) -> str:
    """Return a kernel whose innermost loop runs along the columns of x."""
    return f"""
def program(x, y, out):
    for i in range(0, {rows}):
        for j in range(0, {columns}):
            {body}
"""


def run(source: str, dtype: str, *, is_native: bool) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, 10_000).astype(dtype) for _ in range(3)]
    if is_native:
        compile_source(source, "program", [np.dtype(dtype)] * 3).call(*arrays)
    else:
        namespace: dict[str, Any] = {}
        exec(source, namespace)
        namespace["program"](*arrays)
    return arrays[2]


def is_in_blocks(source: str, dtype: str) -> bool:
    return "shufflevector" in str(module_of(parse_kernel(source, "program", [np.dtype(dtype)] * 3)))


SHAPES = ((8, 16), (9, 17), (21, 33), (40, 32), (23, 71), (64, 100))


@in_groups(("rows", "columns", "dtype"), [(*shape, dtype) for shape in SHAPES for dtype in ("f8", "f4", "i8", "i4")])
def test_blocks_have_the_results_of_loops(rows: int, columns: int, dtype: str) -> None:
    body = f"out[{columns} * i + j] = x[i + {rows} * j + 5] - y[{columns} * i + j] * y[i + {rows + 3} * j]"
    source = loops(rows, columns, body)
    np.testing.assert_array_equal(run(source, dtype, is_native=True), run(source, dtype, is_native=False))


@in_groups(
    ("rows", "columns", "body", "expected"),
    [
        (32, 32, "out[32 * i + j] = x[i + 32 * j]", True),
        (37, 50, "out[50 * i + j] = x[-i + 37 * j + 36]", True),
        (37, 50, "out[50 * i + j] = x[i + 2000 - 37 * j] + y[2000 - i - 37 * j]", True),
        (SIDE - 1, 64, "out[64 * i + j] = x[i + 64 * j]", False),
        (32, SIDE, "out[8 * i + j] = x[i + 32 * j]", False),
        (32, 32, "out[32 * i + j] = x[2 * i + 64 * j]", False),
        (32, 32, "out[32 * i + j] = x[32 * i + j]", False),
        # An iteration may depend on another one.
        (32, 32, "out[32 * i + j] = out[i + 32 * j]", False),
        (32, 32, "out[i + j] = x[i + 32 * j]", False),
        (32, 32, "out[j] = x[i + 32 * j]", False),
        (32, 32, "out[32 * i + j] = x[i + 32 * j]\n            out[32 * i + j + 1] = y[i + 32 * j]", False),
        # The place of a line is computed.
        (32, 32, "v = 31 - j\n            out[32 * i + j] = x[i + 32 * v]", False),
    ],
)
def test_blocks_take_the_place_of_loops_whose_order_is_free(rows: int, columns: int, body: str, expected: bool) -> None:
    source = loops(rows, columns, body)
    assert is_in_blocks(source, "f8") == (expected and are_fast(CPU))
    np.testing.assert_array_equal(run(source, "f8", is_native=True), run(source, "f8", is_native=False))


def test_no_square_is_copied_of_complex_numbers() -> None:
    body = "out[32 * i + j] = x[i + 32 * j]"
    found, expected = (run(loops(32, 32, body), "c8", is_native=is_native) for is_native in (True, False))
    np.testing.assert_array_equal(found, expected)


def test_a_square_is_copied_as_stated() -> None:
    source, tile = np.arange(400), np.zeros(SIDE * 20, int)
    SQUARE(source, 3, 40, tile, 10, 20)
    whole = source.reshape(10, 40)[:SIDE, 3 : 3 + SIDE]
    np.testing.assert_array_equal(tile.reshape(SIDE, 20)[:, 10 : 10 + SIDE], whole.T)


@pytest.mark.parametrize("shape", [(397, 400), (100, 1000)])
def test_transposes_in_tasks_have_the_results_of_numpy(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    with override(executor="compiled"):
        np.testing.assert_array_equal(fnad.jit(lambda x: x.T * 2.0)(x), x.T * 2.0)
        found = fnad.jit(fnad.grad(lambda x: np.sum(np.sin(x.T) * x.reshape(x.T.shape))))(x)
    same = x.ravel().reshape(x.T.shape)
    expected = (np.cos(x.T) * same).T + np.sin(x.T).reshape(shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@in_groups("shape", [(8, 8), (19, 13), (16, 27), (7, 30)])
def test_matrices_for_lapack_are_transposed(shape: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == "c16" else 0)).astype(dtype)
    with override(executor="compiled"):
        basis, upper = fnad.jit(np.linalg.qr)(a)
        left, right = fnad.jit(lambda a: scipy.linalg.lu(a, permute_l=True))(a)
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(basis @ upper, a, atol=tolerance)
    np.testing.assert_allclose(left @ right, a, atol=tolerance)
