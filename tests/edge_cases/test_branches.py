"""Branches and nan: an arm of select that was not taken does not count, in any mode and order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.ops.comparison import gt, lt, select
from fnad.ops.elementary import exp, log, sqrt
from fnad.ops.logistic import logaddexp
from fnad.ops.piecewise import abs_
from fnad.ops.power import arctan2, hypot, pow_
from fnad.ops.reduction import reduce_max
from fnad.ops.shape import broadcast_in_dim, full_like, reduce_sum, zeros_like
from fnad.testing import Run
from tests.edge_cases.derivatives import gradient, hessian, reverse
from tests.together import in_groups

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def positive(x: Any) -> Any:
    return gt(x, zeros_like(x))


ARMS: dict[str, Any] = {
    "log": log,
    "sqrt": sqrt,
    "norm": lambda x: sqrt(x * x),
    "quotient": lambda x: x / (x * x),
    "angle": lambda x: arctan2(x, x),
    "hypot": lambda x: hypot(x, x),
    "power": lambda x: pow_(x, full_like(x, -0.5)),
    "nested": lambda x: select(positive(x), log(x), sqrt(-x)),
    "abs": lambda x: abs_(log(x)),
}


@floats
def test_row_01_where_of_sqrt(dtype: Any, run: Run):
    def f(x: Any) -> Any:
        return select(lt(x, full_like(x, 1)), x, sqrt(x))

    np.testing.assert_array_equal(gradient(run, f, dtype(0)), [1])
    np.testing.assert_array_equal(hessian(run, f, dtype(0)), [[0]])


@floats
@pytest.mark.parametrize("arm", ARMS)
def test_row_02_arm_not_taken(arm: str, dtype: Any, run: Run):
    def f(x: Any) -> Any:
        return select(positive(x), ARMS[arm](x), zeros_like(x))

    np.testing.assert_array_equal(gradient(run, f, dtype(0)), [0])
    np.testing.assert_array_equal(hessian(run, f, dtype(0)), [[0]])


@floats
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@in_groups("arm", ["log", "sqrt", "norm", "quotient", "angle", "hypot", "power"])
def test_row_02_operand_not_finite(arm: str, bad: float, dtype: Any, run: Run):
    """Missing data, masked: the derivative of the arm is nan there, and not taken."""

    def f(x: Any) -> Any:
        return select(lt(abs_(x), full_like(x, 10)), ARMS[arm](x), zeros_like(x))

    np.testing.assert_array_equal(gradient(run, f, dtype(bad)), [0])


@floats
def test_row_03_product_with_infinity(dtype: Any, run: Run):
    def f(x: Any) -> Any:
        return select(positive(x), zeros_like(x), x * np.inf)

    np.testing.assert_array_equal(gradient(run, f, dtype(1)), [0])


def logsumexp(x: Any) -> Any:
    """Shift by the maximum, as every stable implementation does, where it is finite."""
    top = reduce_max(x, axes=(0,))
    shift = select(lt(abs_(top), full_like(top, np.inf)), top, zeros_like(top))
    total = reduce_sum(exp(x - broadcast_in_dim(shift, shape=x.shape, dims=())), axes=(0,))
    return log(total) + shift


@floats
def test_row_07_logaddexp_of_minus_infinity(dtype: Any, run: Run):
    inf = dtype(np.inf)
    np.testing.assert_array_equal(gradient(run, logaddexp, -inf, dtype(0)), [0, 1])
    np.testing.assert_array_equal(gradient(run, logaddexp, -inf, -inf), [0, 0])
    np.testing.assert_array_equal(gradient(run, logaddexp, inf, dtype(0)), [1, 0])
    np.testing.assert_array_equal(gradient(run, logaddexp, inf, inf), [0.5, 0.5])
    np.testing.assert_array_equal(hessian(run, logaddexp, -inf, dtype(0)), np.zeros((2, 2)))
    np.testing.assert_array_equal(hessian(run, logaddexp, -inf, -inf), np.zeros((2, 2)))


@floats
def test_row_07_logsumexp_of_a_minus_infinity(dtype: Any, run: Run):
    np.testing.assert_array_equal(reverse(run, logsumexp, np.array([-np.inf, 0], dtype)), [0, 1])
