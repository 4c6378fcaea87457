"""Methods of ufuncs: of lists, and `hypot.reduce` and `hypot.accumulate` where elements are 0, and far from 1."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from fnad import grad, jit, jvp


def filled_by_at(x: Any) -> Any:
    y = np.zeros(3)
    np.add.at(y, [0, 2], [x, x * x])
    return np.sum(y * [1.0, 2.0, 3.0])


def of_arrays(x: Any) -> Any:
    rows = [np.array([x, 2.0]), np.array([1.0, x * x])]
    return np.sum(np.multiply.reduce(rows, axis=0) + np.logaddexp.reduce(rows, where=[[True, x > 0], [True, True]]))


def with_out(x: Any) -> Any:
    out = np.zeros(2) * x
    np.add.reduce([[x, 2.0], [x * x, 1.0]], axis=0, out=(out,))
    return out[0] * np.add.accumulate((x, out[1], x))[2]


OF_LISTS: dict[str, Any] = {
    "reduce": lambda x: np.maximum.reduce([x, x * x, 1.0]) * np.add.reduce((x, 2.0)),
    "of masks": lambda x: np.logical_and.reduce([x > 1, x < 9]) * x + np.logical_or.reduce([x > 9, x < 1]),
    "accumulate": lambda x: np.logaddexp.accumulate([x, 2.0, x * x])[1:].sum(),
    "reduceat": lambda x: np.multiply.reduceat([x, 2.0, x], [0, 1])[1] ** 2,
    "outer": lambda x: np.subtract.outer([x, 1.0], [2.0, x * x]).prod(),
    "at": filled_by_at,
    "of arrays": of_arrays,
    "out": with_out,
    "a name for it": lambda x, reduced=np.minimum.reduce: reduced([x, 7.0]),
    "partial": lambda x: partial(np.add.reduce, axis=0)([x, [x, 1.0][0]]),
}


@pytest.mark.parametrize("kind", [float, np.float64, np.array])
@pytest.mark.parametrize("name", OF_LISTS)
def test_of_lists_with_traced_values(name: str, kind: Any) -> None:
    f, x, h = OF_LISTS[name], kind(1.5), 1e-5
    slope = (f(1.5 + h) - f(1.5 - h)) / (2 * h)
    np.testing.assert_allclose(jit(f)(x), f(x), rtol=1e-14)
    np.testing.assert_allclose([grad(f)(x), jvp(f, (x,), (kind(1.0),))[1]], [slope, slope], rtol=1e-8)


def hessians(f: Any, x: Any) -> list[Any]:
    columns = np.eye(x.size).astype(x.dtype)
    return [
        np.array([grad(lambda x, c=c: np.sum(grad(f)(x) * c))(x) for c in columns]),
        np.array([jvp(grad(f), (x,), (c,))[1] for c in columns]),
        np.array([jit(lambda x, c=c: jvp(grad(f), (x,), (c,))[1])(x) for c in columns]),
        np.array([grad(lambda x, c=c: jvp(f, (x,), (c,))[1])(x) for c in columns]),
    ]


@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
@pytest.mark.parametrize("x", [[3, 0, 0, 0], [0, 0, 3, 4], [0, 4, 0], [1, 2, 3, 4, 5]], ids=str)
def test_hessian_of_a_length(x: list[int], scale: float) -> None:
    x_ = np.array(x, float) * scale
    r = np.hypot.reduce(x_)
    exact = (np.eye(len(x)) - np.outer(x_ / r, x_ / r)) / r
    assert grad(np.hypot.reduce)(x_) == pytest.approx(x_ / r, rel=1e-15)
    for found in hessians(np.hypot.reduce, x_):
        np.testing.assert_allclose(found, exact, rtol=1e-14, atol=1e-15 / r)


@pytest.mark.slow
def test_all_derivatives_are_zero_at_zero() -> None:
    for f in (np.hypot.reduce, np.linalg.norm, lambda x: np.sum(np.hypot.accumulate(x)[1:])):
        assert not grad(f)(np.zeros(3)).any()
        for found in hessians(f, np.zeros(3)):
            assert not found.any()


@pytest.mark.slow
def test_hessian_of_running_lengths() -> None:
    x = np.array([0.0, 0, 3, 0])
    lengths = lambda x: np.sum(np.hypot.accumulate(x) * [1, 2, 3, 4])  # noqa: E731
    np.testing.assert_allclose(grad(lengths)(x), [1, 0, 7, 0], rtol=1e-15)
    for found in hessians(lengths, x):
        np.testing.assert_allclose(found, np.diag([7, 7, 0, 4]) / 3, rtol=1e-15)


def test_values_are_those_of_hypotenuses() -> None:
    rows = np.array(
        [[3.0, 4, 0], [np.inf, np.nan, 1], [-np.inf, 2, 1], [np.nan, 1, 2], [0, -0.0, 0], [1e300, 1e300, 5]]
    )
    for f in (lambda x: np.hypot.reduce(x, axis=1), lambda x: np.hypot.accumulate(x, axis=1)):
        np.testing.assert_allclose(jit(f)(rows), f(rows), rtol=1e-15)


def test_operands_by_keyword() -> None:
    """NumPy gives them to `__array_ufunc__` twice."""
    x, f = np.arange(1.0, 7.0).reshape(2, 3), np.add
    for g in (
        lambda x: f.reduce(array=x),
        lambda x: f.reduce(array=x, axis=1, keepdims=True, initial=2.0, where=x > 2),
        lambda x: np.hypot.accumulate(array=x, axis=1),
        lambda x: f.reduceat(x, indices=[0, 1, 0], axis=1),
        lambda x: np.multiply.reduceat(array=[x[0], x[1]], indices=[0, 1]),
    ):
        np.testing.assert_allclose(jit(g)(x), g(x), rtol=1e-15)


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": -1}, {"initial": 2.0}, {"keepdims": True}, {"axis": ()}])
@pytest.mark.parametrize("ufunc", [np.arctan2, np.power, np.nextafter, np.remainder, np.divide])
def test_reductions_of_no_axis(ufunc: np.ufunc, options: dict[str, Any]) -> None:
    x = np.array(1.5)
    found, expected = jit(lambda x: ufunc.reduce(x, **options))(x), ufunc.reduce(x, **options)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_array_equal(found, expected)
