"""Powers and products in NumPy programs, where a base, an exponent or a factor is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad import grad, jit, jvp
from tests.edge_cases.ways import check

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])
NAN = np.nan


@floats
@pytest.mark.parametrize("exponents", [np.arange(3), np.arange(3.0), np.arange(3, dtype=np.float32), [0, 1, 2]])
def test_row_18_polynomial_at_zero(exponents: Any, dtype: Any) -> None:
    check(lambda x: np.sum(x**exponents), dtype(0), value=1, gradient=[1], hessian=[[2]])


@floats
@pytest.mark.parametrize("zero", [0, 0.0, np.float32(0)])
def test_row_19_zeroth_power(zero: Any, dtype: Any) -> None:
    check(lambda x: x**zero, dtype(0), value=1, gradient=[0], hessian=[[0]])
    check(lambda x: np.sum(np.power(x, zero)), np.array([0, -1, np.inf, NAN], dtype), value=4, gradient=[0, 0, 0, 0])


@pytest.mark.slow
@floats
def test_row_19_square(dtype: Any) -> None:
    for f in (lambda x: x**2, lambda x: x**2.0, np.square, lambda x: np.power(x, 2), lambda x: x ** np.array(2)):
        check(f, dtype(0), value=0, gradient=[0], hessian=[[2]])
    check(lambda x: np.sum(x ** np.full(1, 2.0)), dtype(0), value=0, gradient=[0], hessian=[[2]])


@floats
def test_root_as_a_power_at_minus_zero_and_minus_infinity(dtype: Any) -> None:
    """NumPy takes square roots of arrays to the number 0.5, powers of scalars and if the exponents are an array."""
    array = np.array([-0.0, -np.inf, 4], dtype)
    halves = np.full(3, 0.5, dtype)
    cases = [(f, x) for f in (lambda x: x**0.5, lambda x: np.power(x, 0.5)) for x in (array, *array)]
    for f, x in (*cases, (lambda x: np.power(x, halves), array)):
        compiled = jit(f)
        with np.errstate(invalid="ignore"):
            expected, *found = f(x), compiled(x), compiled(x)
        for result in found:
            np.testing.assert_array_equal(result, expected)
            np.testing.assert_array_equal(np.copysign(expected == 0, result), np.copysign(expected == 0, expected))


@pytest.mark.slow
@floats
def test_row_20_zero_to_a_power(dtype: Any) -> None:
    check(lambda y: dtype(0) ** y, dtype(2), value=0, gradient=[0], hessian=[[0]])
    check(np.power, dtype(0), dtype(2), value=0, gradient=[0, 0], hessian=[[2, 0], [0, 0]])
    check(np.power, dtype(0), dtype(0), value=1, gradient=[0, 0])
    check(lambda y: 0**y, dtype(0), value=1, gradient=[0])


@pytest.mark.slow
@floats
def test_row_20_exponent_of_a_negative_base(dtype: Any) -> None:
    """Its derivative is not defined, and does not spoil that of the base."""
    check(np.power, dtype(-2), dtype(3), value=-8, gradient=[12, NAN])
    check(lambda x: x**3.0, dtype(-2), value=-8, gradient=[12], hessian=[[-12]])
    assert grad(lambda x, y: x**y)(dtype(-2), dtype(3)) == 12


@pytest.mark.slow
@floats
def test_row_21_product_with_zeros(dtype: Any) -> None:
    check(np.prod, np.array([0, 2, 3], dtype), value=0, gradient=[6, 0, 0], hessian=[[0, 3, 2], [3, 0, 0], [2, 0, 0]])
    check(np.prod, np.array([0, 0, 3], dtype), value=0, gradient=[0, 0, 0], hessian=[[0, 3, 0], [3, 0, 0], [0, 0, 0]])
    check(lambda x: np.sum(np.prod(x, axis=1)), np.array([[0, 2], [3, 0]], dtype), value=0, gradient=[2, 0, 0, 3])
    check(np.multiply.reduce, np.array([0, 2, 3], dtype), value=0, gradient=[6, 0, 0])


@pytest.mark.slow
@floats
def test_row_22_cumprod_at_zeros(dtype: Any) -> None:
    x = np.array([0, 2, 3], dtype)
    once = {"value": 0, "gradient": [9, 0, 0], "hessian": [[0, 4, 2], [4, 0, 0], [2, 0, 0]]}
    for f in (np.cumprod, lambda x: np.multiply.accumulate(x), np.cumulative_prod, np.nancumprod):
        check(lambda x, f=f: np.sum(f(x)), x, **once)
    twice = {"value": 0, "gradient": [1, 0, 0], "hessian": [[0, 4, 0], [4, 0, 0], [0, 0, 0]]}
    check(lambda x: np.sum(np.cumprod(x)), np.array([0, 0, 3], dtype), **twice)


@pytest.mark.slow
@floats
def test_row_23_sinc(dtype: Any) -> None:
    check(np.sinc, dtype(0), value=1, gradient=[0], hessian=[[-(np.pi**2) / 3]], rtol=1e-6)


@pytest.mark.parametrize("y", [0.0, 0.5, 1.0, 2.0])
def test_row_20_second_derivative_of_a_power_of_zero_in_the_exponent(y: float) -> None:
    def f(y: Any) -> Any:
        return 0.0**y

    def slope(y: Any) -> Any:
        return jvp(f, (y,), (1.0,))[1]

    for second in (grad(grad(f)), grad(slope)):
        np.testing.assert_array_equal([second(y), jit(second)(y)], 0)
    for first in (grad(f), slope):
        np.testing.assert_array_equal(jvp(first, (y,), (1.0,))[1], 0)


def test_row_14_second_derivative_of_a_hypotenuse_at_the_origin_is_infinite() -> None:
    """|x| has slope 0 at 0 by choice; that the slope jumps there is not hidden, in any nesting."""

    def f(x: Any) -> Any:
        return np.hypot(x, 0.0)

    def slope(x: Any) -> Any:
        return jvp(f, (x,), (1.0,))[1]

    assert grad(f)(0.0) == slope(0.0) == 0
    assert [grad(grad(f))(0.0), grad(slope)(0.0), jit(grad(grad(f)))(0.0)] == [np.inf] * 3
    assert [jvp(first, (0.0,), (1.0,))[1] for first in (grad(f), slope)] == [np.inf] * 2
