"""Short matrices and stacks of them in native code, by formulas: NumPy's values up to rounding, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_triangular

import fnad
from fnad.errors import FactorizationError

COUNTS = (3, 19)
"""Stacks of fewer matrices than a vector has lanes, and of more."""

SYSTEMS: dict[str, Callable[..., Any]] = {
    "solve": np.linalg.solve,
    "lower": lambda a, b: solve_triangular(a, b, lower=True),
    "upper": lambda a, b: solve_triangular(a, b),
    "unit lower": lambda a, b: solve_triangular(a, b, lower=True, unit_diagonal=True),
    "unit upper": lambda a, b: solve_triangular(a, b, unit_diagonal=True),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "inv": np.linalg.inv,
    "cholesky": np.linalg.cholesky,
    "upper cholesky": lambda a: np.linalg.cholesky(a, upper=True),
    "sign": lambda a: np.linalg.slogdet(a)[0],
    "logarithm": lambda a: np.linalg.slogdet(a)[1],
}


def positive(count: int, n: int, dtype: str) -> Any:
    x = np.random.default_rng(n).standard_normal((count, n, n))
    return (x @ np.swapaxes(x, 1, 2) + np.eye(n)).astype(dtype)


def assert_close(found: Any, expected: Any, dtype: str) -> None:
    assert found.dtype == dtype
    atol = 200 * np.finfo(dtype).eps * np.max(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def each_result(a: Any, b: Any) -> list[Any]:
    small = a / (4 * a.shape[-1])  # products of large elements would be ill-conditioned with ones on the diagonal
    found = [fnad.vmap(system)(small if name[:4] == "unit" else a, b) for name, system in SYSTEMS.items()]
    return found + [function(a) for function in FUNCTIONS.values()]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_values_are_those_of_numpy(n: int, dtype: str) -> None:
    for count in COUNTS:
        a, b = positive(count, n, dtype), positive(count, n, dtype)[:, :, : 1 + n // 2]
        with fnad.config.override(executor="interpreter"):
            truth = each_result(a.astype("f8"), b.astype("f8"))
        for found, expected in zip(fnad.jit(each_result)(a, b), truth, strict=True):
            assert_close(found, expected, dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_are_exchanged_for_the_largest_pivots(dtype: str) -> None:
    a = np.array([[1e-6, 1.0, 2.0], [2.0, 0.0, 1.0], [-3.0, 1.0, 0.0]], dtype)
    stack = np.stack([a[order] for order in ([0, 1, 2], [2, 0, 1], [1, 0, 2]) * 6])
    found, sign = fnad.jit(lambda a: (np.linalg.inv(a), np.linalg.slogdet(a)[0]))(stack)
    assert_close(found, np.linalg.inv(stack.astype("f8")), dtype)
    np.testing.assert_array_equal(sign, np.linalg.slogdet(stack)[0])


@pytest.mark.slow
@pytest.mark.parametrize(("n", "count"), [(1, 3), (3, 1), (3, 19), (6, 19)])
def test_one_matrix_without_a_result_is_an_error(n: int, count: int) -> None:
    inverse, factor = (fnad.jit(FUNCTIONS[name]) for name in ("inv", "cholesky"))
    others = fnad.jit(lambda a: [*np.linalg.slogdet(a), np.linalg.cond(a, 1)])
    for bad in {0, count - 1}:
        a = np.zeros((count, n, n)) + 2 * np.eye(n)
        a[bad, n - 1] = 0
        for function in (inverse, factor):
            with pytest.raises(FactorizationError):
                function(a)
        for found, expected in zip(others(a), [*np.linalg.slogdet(a), np.linalg.cond(a, 1)], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("shape", "is_called"), [((4, 4), False), ((20, 6, 6), False), ((6, 6), True), ((20, 7, 7), True)]
)
def test_lapack_is_called_for_longer_matrices(shape: tuple[int, ...], is_called: bool) -> None:
    assert ("linalg_inv_dd_loop" in fnad.jit(np.linalg.inv).lower(np.ones(shape)).as_text("llvm")) == is_called


def test_matrices_of_nan_have_results_of_nan() -> None:
    a = np.full((20, 2, 2), np.nan)
    for name in ("inv", "cholesky"):
        np.testing.assert_array_equal(fnad.jit(FUNCTIONS[name])(a), FUNCTIONS[name](a))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 20])
def test_derivatives_are_those_of_differences(count: int) -> None:
    a, b = positive(count, 3, "f8"), positive(count, 3, "f8")[:, :, :1]
    rng = np.random.default_rng(0)
    direction, h = rng.standard_normal(a.shape), 1e-6

    def total(a: Any) -> Any:
        parts = np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.cholesky(a), np.linalg.slogdet(a)[1]
        return sum(np.sum(np.sin(part)) for part in parts)

    value, gradient = fnad.jit(fnad.value_and_grad(total))(a)
    np.testing.assert_allclose(value, total(a), rtol=1e-12)
    difference = (total(a + h * direction) - total(a - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient * direction), difference, rtol=1e-6)
