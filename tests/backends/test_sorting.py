"""Orders and conditions in native code: NumPy's stable order of any row, and the error of a condition that fails."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import fnad
from fnad.backends.cpu.executor import NativeExecutor, compile_program
from fnad.errors import DomainError
from fnad.ir.builder import trace
from fnad.ir.types import Aval
from fnad.kernel.steps import Chunk
from fnad.ops.sorting import SHORT, argsort
from tests.together import drawn, in_groups

SPECIAL = (np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 5e-324)


def numbers(dtype: str, *shape: int) -> np.ndarray:
    """Numbers with many ties, and the special ones of floats."""
    rng = np.random.default_rng(shape)
    if dtype[0] != "f":
        return rng.integers(-9, 9, shape).astype(dtype)
    x = rng.standard_normal(shape).round(1)
    return np.where(rng.random(shape) < 0.4, rng.choice(SPECIAL, shape), x).astype(dtype)


def sorts(shape: tuple[int, ...], dtype: str, axis: int, *, stable: bool) -> NativeExecutor:
    aval = Aval(np.dtype(dtype), shape)
    return compile_program(trace(lambda x: [argsort(x, axis=axis, stable=stable)], aval, name="f"))


LENGTHS = (1, 2, 3, 7, 16, 17, 31, 32, 33, 100, 1000, 4097)
DRAWN = drawn(product(LENGTHS, ("f8", "f4", "i8", "i4", "?")), lambda case: case[0], 2)


@in_groups(("n", "dtype"), DRAWN)
def test_the_order_is_the_stable_one(n: int, dtype: str) -> None:
    x, run = numbers(dtype, 2, n), sorts((2, n), dtype, 1, stable=True)
    assert all(isinstance(step, Chunk) for step in run.plan.steps)
    for given in (x, np.sort(x), np.sort(x)[:, ::-1].copy()):
        np.testing.assert_array_equal(run([given])[0], np.argsort(given, kind="stable"))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_is_sorted(axis: int) -> None:
    x = numbers("f8", 5, 19, 3)
    run = sorts(x.shape, "f8", axis, stable=False)
    assert all(isinstance(step, Chunk) for step in run.plan.steps)
    np.testing.assert_array_equal(run([x])[0], np.argsort(x, axis, kind="stable"))


def test_numpy_sorts_long_rows_in_any_order() -> None:
    x = numbers("f8", SHORT + 1)
    order = sorts(x.shape, "f8", 0, stable=False)([x])[0]
    np.testing.assert_array_equal(x[order], np.sort(x))


@pytest.mark.parametrize("n", [4, SHORT, SHORT + 1])
def test_a_partition_has_the_same_order_in_every_run(n: int) -> None:
    x = numbers("i8", n)
    found = []
    for executor in ("interpreter", "compiled"):
        with fnad.config.override(executor=executor):
            found.append(fnad.jit(lambda x: np.partition(x, n // 2))(x))
    np.testing.assert_array_equal(*found)


def test_a_condition_is_one_of_native_code() -> None:
    def mean(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.average(x, axis=1, weights=w)

    x = np.arange(6.0).reshape(2, 3)
    with fnad.config.override(executor="compiled"):
        run = fnad.jit(fnad.vmap(mean, in_axes=(None, 0)))
        np.testing.assert_allclose(run(x, np.ones((2, 3))), [x.mean(1)] * 2)
        with pytest.raises(DomainError, match=r"(?s)Weights sum to zero.*test_sorting.py"):
            run(x, np.array([[1.0, 1, 1], [1, 0, -1]]))
