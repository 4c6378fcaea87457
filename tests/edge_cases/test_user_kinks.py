"""Points where a function of NumPy is not smooth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad import errors, grad, jvp, value_and_grad
from tests.edge_cases.ways import check

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])
INF = np.inf


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


@pytest.mark.slow
@floats
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_row_08_abs(zero: float, dtype: Any) -> None:
    for f in (np.abs, abs, np.fabs, lambda x: np.sum(np.abs(np.stack([x])))):
        check(f, dtype(zero), value=0, gradient=[0], hessian=[[0]])


@floats
def test_row_09_relu(dtype: Any) -> None:
    check(relu, dtype(0), value=0, gradient=[0.5], hessian=[[0]])
    check(lambda x: relu(x) - relu(-x), dtype(0), value=0, gradient=[1])


@floats
@pytest.mark.parametrize("f", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_row_09_ties(f: Any, dtype: Any) -> None:
    check(f, dtype(2), dtype(2), value=2, gradient=[0.5, 0.5])
    check(lambda x, y: np.sum(f(x, y)), np.array([1, 2], dtype), dtype(2), value=f(1, 2) + 2.0,
          gradient=[*([0, 0.5, 1.5] if f in (np.maximum, np.fmax) else [1, 0.5, 0.5])])  # fmt: skip


@floats
@pytest.mark.parametrize("sign", [1, -1])
def test_row_10_extremum_of_several(sign: int, dtype: Any) -> None:
    f = np.max if sign == 1 else np.min
    check(f, sign * np.array([1, 1, 0], dtype), value=sign, gradient=[0.5, 0.5, 0])
    check(lambda x: np.sum(f(x, axis=1, keepdims=True)), sign * np.array([[1, 1, 0], [2, 3, 3]], dtype), value=sign * 4,
          gradient=[0.5, 0.5, 0, 0, 0.5, 0.5])  # fmt: skip
    check(np.ptp, np.array([1, 1, 0], dtype), value=1, gradient=[0.5, 0.5, -1])


@floats
def test_row_11_clip(dtype: Any) -> None:
    check(
        lambda x: np.sum(np.clip(x, 0, 1)), np.array([-1, 0, 0.5, 1, 2], dtype), value=2.5, gradient=[0, 0.5, 1, 0.5, 0]
    )
    check(lambda x: x.clip(max=1), dtype(1), value=1, gradient=[0.5])


@pytest.mark.slow
@floats
def test_row_12_order(dtype: Any) -> None:
    weights = np.array([1, 10, 100], dtype)
    check(lambda x: np.sum(np.sort(x) * weights), np.array([2, 2, 1], dtype), value=221, gradient=[10, 100, 1])
    for f in (np.median, np.nanmedian, lambda x: np.quantile(x, 0.5), lambda x: np.percentile(x, 50)):
        check(f, np.array([1, 4, 3, 2], dtype), value=2.5, gradient=[0, 0, 0.5, 0.5])
    check(np.median, np.array([3, 1, 1, 3], dtype), value=2, gradient=[0.5, 0, 0.5, 0])


@pytest.mark.slow
@floats
def test_row_13_poles(dtype: Any) -> None:
    check(np.sqrt, dtype(0), value=0, gradient=[INF])
    check(np.cbrt, dtype(0), value=0, gradient=[INF])
    check(np.arcsin, dtype(1), value=np.arcsin(dtype(1)), gradient=[INF], rtol=1e-6)
    check(np.log, dtype(0), value=-INF, gradient=[INF])
    check(lambda x: np.sqrt(x * x), dtype(0), value=0, gradient=[np.nan])


@floats
def test_row_14_norm(dtype: Any) -> None:
    zeros = np.zeros(2, dtype)
    check(np.linalg.norm, zeros, value=0, gradient=[0, 0])
    check(lambda x: np.linalg.norm(x) ** 2, zeros, value=0, gradient=[0, 0])
    check(lambda x: np.sum(np.linalg.norm(x, axis=1)), np.array([[0, 0], [3, 4]], dtype), value=5,
          gradient=[0, 0, 0.6, 0.8], rtol=1e-6)  # fmt: skip


@floats
def test_row_14_deviation_of_equal_numbers(dtype: Any) -> None:
    check(np.std, np.full(3, 0.5, dtype), value=0, gradient=[0, 0, 0])
    check(lambda x: np.std(x, ddof=1), np.full(3, 0.5, dtype), value=0, gradient=[0, 0, 0])
    check(np.var, np.full(3, 0.5, dtype), value=0, gradient=[0, 0, 0])


@pytest.mark.slow
@floats
def test_row_14_polar_coordinates(dtype: Any) -> None:
    check(np.hypot, dtype(0), dtype(0), value=0, gradient=[0, 0])
    check(np.arctan2, dtype(0), dtype(0), value=0, gradient=[0, 0])
    check(lambda x, y: np.hypot(x, y) ** 2, dtype(0), dtype(0), value=0, gradient=[0, 0])


STEPS: dict[str, Any] = {
    "round": np.round,
    "rint": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "sign": np.sign,
    "floor_divide": lambda x: x // 2,
    "comparison": lambda x: (x > 1) * 1.0,
    "argmax": lambda x: np.argmax(x) * 1.0,
    "heaviside": lambda x: np.heaviside(x, 0.5),
    "isnan": lambda x: np.isnan(x).astype(float),
    "count": lambda x: np.count_nonzero(x) * 1.0,
}


@floats
@pytest.mark.parametrize("name", STEPS)
def test_row_15_steps(name: str, dtype: Any) -> None:
    x = np.array([-1.5, -0.0, 0.5, 1, 2.5], dtype)
    f = lambda x: np.sum(STEPS[name](x))  # noqa: E731
    check(f, x, value=f(x), gradient=np.zeros(5))


@pytest.mark.slow
@floats
def test_row_16_remainders(dtype: Any) -> None:
    check(np.mod, dtype(5), dtype(3), value=2, gradient=[1, -1])
    check(lambda x, y: x % y, dtype(6), dtype(3), value=0, gradient=[1, -2])
    check(np.mod, dtype(-5), dtype(3), value=1, gradient=[1, 2])
    check(np.fmod, dtype(-5), dtype(3), value=-2, gradient=[1, 1])
    check(lambda x, y: np.divmod(x, y)[1], dtype(5), dtype(3), value=2, gradient=[1, -1])
    check(lambda x: np.modf(x)[0], dtype(2.5), value=0.5, gradient=[1])


@pytest.mark.filterwarnings("ignore::fnad.errors.ControlFlowWarning")
def test_row_17_branch_on_equality() -> None:
    """The derivative of the arm Python takes, or no answer: never that of the other."""
    try:
        found = grad(lambda x: 0.0 * x if x == 0 else x)(0.0)
    except errors.TracerEscapeError:
        return
    assert found == 0


@floats
@pytest.mark.parametrize("f", [lambda x: x * np.sqrt(x), lambda x: np.sqrt(x**3)])
def test_row_72_products_of_zero_and_infinity(f: Any, dtype: Any) -> None:
    x = dtype(0)
    for found in (grad(f)(x), value_and_grad(f)(x)[1], jvp(f, (x,), (dtype(1),))[1]):
        assert np.isnan(found) or found == 0
