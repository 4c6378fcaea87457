"""Powers and products where a base, an exponent or a factor is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.errors import DomainError
from fnad.ops.power import constant_pow, int_pow, integer_pow, pow_
from fnad.ops.reduction import reduce_prod
from fnad.ops.shape import broadcast_to, full_like, iota, reduce_sum
from fnad.testing import Run
from tests.edge_cases.derivatives import gradient, hessian, value

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])
inexact = pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])


@inexact
def test_row_18_sum_of_powers_at_zero(dtype: Any, run: Run):
    def by_floats(x: Any) -> Any:
        exponents = iota(dtype=x.dtype, shape=(3,), axis=0)
        return reduce_sum(pow_(broadcast_to(x, (3,)), exponents), axes=(0,))

    def by_integers(x: Any) -> Any:
        return integer_pow(x, exponent=0) + integer_pow(x, exponent=1) + integer_pow(x, exponent=2)

    for f in (by_floats, by_integers):
        np.testing.assert_array_equal(value(run, f, dtype(0)), 1)
        np.testing.assert_array_equal(gradient(run, f, dtype(0)), [1])
        np.testing.assert_array_equal(hessian(run, f, dtype(0)), [[2]])


@inexact
@pytest.mark.parametrize("exponent", [0, 1, 2, 3])
def test_row_19_powers_of_zero(exponent: int, dtype: Any, run: Run):
    first, second = {0: (0, 0), 1: (1, 0), 2: (0, 2), 3: (0, 0)}[exponent]
    for f in (lambda x: pow_(x, full_like(x, exponent)), lambda x: integer_pow(x, exponent=exponent)):
        np.testing.assert_array_equal(gradient(run, f, dtype(0)), [first])
        np.testing.assert_array_equal(hessian(run, f, dtype(0)), [[second]])


@floats
@pytest.mark.parametrize("x", [-np.inf, -1.5, 0, 2, np.inf, np.nan])
def test_row_19_zeroth_power_is_constant(x: float, dtype: Any, run: Run):
    for f in (lambda x: pow_(x, full_like(x, 0)), lambda x: integer_pow(x, exponent=0)):
        np.testing.assert_array_equal(gradient(run, f, dtype(x)), [0])


@floats
def test_row_20_powers_in_both_operands(dtype: Any, run: Run):
    np.testing.assert_array_equal(gradient(run, pow_, dtype(0), dtype(2)), [0, 0])
    np.testing.assert_array_equal(hessian(run, pow_, dtype(0), dtype(2)), [[2, 0], [0, 0]])
    np.testing.assert_array_equal(hessian(run, pow_, dtype(0), dtype(3)), [[0, 0], [0, 0]])
    np.testing.assert_array_equal(gradient(run, pow_, dtype(0), dtype(0)), [0, 0])
    np.testing.assert_array_equal(gradient(run, pow_, dtype(-2), dtype(3)), [12, np.nan])
    np.testing.assert_array_equal(hessian(run, pow_, dtype(-2), dtype(3))[0, 0], -12)


@pytest.mark.slow
@inexact
def test_row_21_products_with_zeros(dtype: Any, run: Run):
    def prod(x: Any) -> Any:
        return reduce_prod(x, axes=(0,))

    np.testing.assert_array_equal(gradient(run, prod, np.array([0, 2, 3], dtype)), [6, 0, 0])
    np.testing.assert_array_equal(hessian(run, prod, np.array([0, 0, 3], dtype)), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])


def test_row_21_product_of_many_by_blocks(run: Run):
    """Every length takes another path down the tree of pairs."""
    for count in range(1, 10):
        x = np.arange(1.0, count + 1)
        x[count // 2] = 0.0
        expected = np.where(x == 0, np.prod(x[x != 0]), 0.0)
        np.testing.assert_allclose(gradient(run, lambda x: reduce_prod(x, axes=(0,)), x), expected)


def test_row_56_negative_integer_power_of_an_integer(run: Run):
    with pytest.raises(DomainError, match="Integers to negative integer powers are not allowed") as raised:
        value(run, lambda x: integer_pow(x, exponent=-1), np.int64(2))
    assert isinstance(raised.value, ValueError)
    with pytest.raises(DomainError, match="Integers to negative integer powers are not allowed"):
        value(run, int_pow, np.int64(2), np.int64(-1))


@pytest.mark.parametrize("exponent", [-7, -1, 0, 1, 2, 5, 16, 63])
def test_integer_powers_are_those_of_numpy(exponent: int, run: Run):
    x = np.array([-1.5, -1.0, 0.5, 1.1, 2.0])
    np.testing.assert_allclose(
        value(run, lambda x: integer_pow(x, exponent=exponent), x), np.power(x, exponent), rtol=64 * np.finfo(float).eps
    )


@pytest.mark.parametrize("exponent", [65, 200, -100])
def test_large_constant_powers(exponent: int, run: Run):
    x = np.array([-1.01, 0.9, 1.02])
    np.testing.assert_allclose(value(run, lambda x: constant_pow(x, exponent), x), np.power(x, float(exponent)))
    if exponent > 0:
        n = np.array([2, -3, 5], np.int32)
        np.testing.assert_array_equal(value(run, lambda n: constant_pow(n, exponent), n), np.power(n, exponent))
