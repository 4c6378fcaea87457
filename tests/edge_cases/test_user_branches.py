"""Branches and nan, in NumPy programs: what was not chosen does not count; what was is not hidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad import jvp, value_and_grad
from tests.edge_cases.ways import check

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@floats
def test_row_01_sqrt_in_the_arm_not_taken(dtype: Any) -> None:
    check(lambda x: np.where(x < 1, x, np.sqrt(x)), dtype(0), value=0, gradient=[1], hessian=[[0]])


ARMS: dict[str, Any] = {
    "log": np.log,
    "norm": lambda x: np.linalg.norm(np.stack([x, x])),
    "quotient": lambda x: x / x**2,
    "angle": lambda x: np.arctan2(x, x),
    "nested": lambda x: np.where(x < 0, np.sqrt(-x), np.log(x)),
}


@floats
@pytest.mark.parametrize("arm", ARMS)
def test_row_02_arm_not_taken(arm: str, dtype: Any) -> None:
    check(lambda x: np.where(x > 0, ARMS[arm](x), 0), dtype(0), value=0, gradient=[0], hessian=[[0]])


@floats
def test_row_02_masked_elements(dtype: Any) -> None:
    x = np.array([-1, 0, 4], dtype)
    hessian = np.diag([0, 0, -1 / 16])
    check(
        lambda x: np.sum(np.where(x > 0, np.log(x), 0)),
        x,
        value=np.log(dtype(4)),
        gradient=[0, 0, 0.25],
        hessian=hessian,
    )


@floats
def test_row_02_select_among_several_arms(dtype: Any) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.select([x > 0, x < 0], [np.log(x), np.sqrt(-x)], 7.0))

    check(f, np.array([1, -1, 0], dtype), value=8, gradient=[1, -0.5, 0])


@floats
def test_row_03_product_with_infinity(dtype: Any) -> None:
    check(lambda x: np.where(x > 0, 0, x * np.inf), dtype(1), value=0, gradient=[0], hessian=[[0]])


@floats
def test_row_04_nanmean(dtype: Any) -> None:
    check(lambda x: np.nanmean(x**2), np.array([np.nan, 1, 2], dtype), value=2.5, gradient=[0, 1, 2])


@floats
def test_row_05_logistic_function_far_out(dtype: Any) -> None:
    """The derivative is 0; forward mode, which multiplies 0 by inf, says that it does not know."""
    x = dtype(-1000)
    check(lambda x: 1 / (1 + np.exp(-x)), x, value=0, gradient=[0], forward=[np.nan])


@floats
def test_row_06_softplus_far_out_forward(dtype: Any) -> None:
    found = jvp(lambda x: np.log(1 + np.exp(x)), (dtype(1000),), (dtype(1),))[1]
    assert np.isnan(found) or found == 1


@floats
@pytest.mark.xfail(reason="exp overflows: 1 / inf is a cotangent of 0, which wins over the partial inf of exp")
def test_row_06_softplus_far_out_reverse(dtype: Any) -> None:
    """The true derivative is 1; nan would say that it is lost. The value is inf, which is a warning of its own."""
    value, found = value_and_grad(lambda x: np.log(1 + np.exp(x)))(dtype(1000))
    assert value == np.inf
    assert np.isnan(found) or found == 1


def logsumexp(x: Any) -> Any:
    """Shift by the maximum where it is finite."""
    top = np.max(x)
    shift = np.where(np.isfinite(top), top, 0)
    return np.log(np.sum(np.exp(x - shift))) + shift


@floats
def test_row_07_logsumexp_by_hand(dtype: Any) -> None:
    check(logsumexp, np.array([-np.inf, 0], dtype), value=0, gradient=[0, 1])
    check(logsumexp, np.array([np.log(3), 0], dtype), value=np.log(4), gradient=[0.75, 0.25], rtol=1e-6)


@floats
def test_row_07_logaddexp(dtype: Any) -> None:
    inf = dtype(np.inf)
    check(np.logaddexp, -inf, dtype(0), value=0, gradient=[0, 1], hessian=np.zeros((2, 2)))
    check(np.logaddexp, -inf, -inf, value=-np.inf, gradient=[0, 0], hessian=np.zeros((2, 2)))
