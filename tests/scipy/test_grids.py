"""Interpolation and estimates by SciPy's names: batches, second derivatives, kinks, dtypes and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator, interpn

import fnad
from fnad.errors import DomainError, ShapeError, UnsupportedFunctionError
from tests.scipy.own_names import CASES, GRID, Case
from tests.together import together

NAMES = ("interpolate on grids",)


@pytest.mark.parametrize("name", NAMES)
def test_batches(name: str) -> None:
    with together() as named:
        for i, case in enumerate(CASES[name]):
            with named(i):
                rows = [[x + step for x in case.args] for step in (0.0, 1e-3)]
                found = fnad.vmap(case.function)(*[np.stack(xs) for xs in zip(*rows, strict=True)])
                expected = np.stack([case.function(*row) for row in rows])
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


def gradient(case: Case, weights: Any) -> Callable[..., Any]:
    return fnad.grad(lambda *xs: np.sum(weights * case.function(*xs)), argnums=tuple(range(len(case.args))))


def moved(case: Case, us: Any, by: float) -> list[Any]:
    return [x + by * u for x, u in zip(case.args, us, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives(name: str) -> None:
    """By forward over reverse mode, against differences of the gradient."""
    rng = np.random.default_rng(9)
    with together() as named:
        for i, case in enumerate(CASES[name]):
            with named(i):
                us = tuple(rng.standard_normal(np.shape(x))[()] for x in case.args)
                first = gradient(case, rng.standard_normal(np.shape(case.function(*case.args))))
                _, found = fnad.jvp(first, tuple(case.args), us)
                for part, *at in zip(found, *[first(*moved(case, us, k * 1e-3)) for k in (-2, -1, 1, 2)], strict=True):
                    expected = (8 * (at[2] - at[1]) - (at[3] - at[0])) / 12e-3
                    scale = np.max(np.abs(expected), initial=1.0)
                    np.testing.assert_allclose(part, expected, rtol=1e-6, atol=1e-7 * scale)


# ---- regular grids ---------------------------------------------------------------------------------------------------


def test_at_a_place_of_the_grid_the_derivative_is_that_of_the_cell_above() -> None:
    line = RegularGridInterpolator(([0.0, 1.0, 3.0],), [0.0, 2.0, 3.0])
    slopes = [fnad.grad(lambda x: line([x])[0])(x) for x in (0.0, 0.5, 1.0, 3.0)]
    assert slopes == [2.0, 2.0, 0.5, 0.5]
    assert [fnad.jvp(lambda x: line([x])[0], (x,), (1.0,))[1] for x in (1.0, 3.0)] == [0.5, 0.5]


def test_values_and_points_on_a_grid_have_scipys_dtypes() -> None:
    values, points = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([[0.3, 0.2], [np.nan, 0.2], [5.0, 0.2]])
    for method in ("linear", "nearest"):
        for kind in (np.float32, np.float64, np.complex128):

            def f(v: Any, x: Any, method: str = method) -> Any:
                return RegularGridInterpolator(GRID, v, method, bounds_error=False, fill_value=2.0)(x)

            found, expected = fnad.jit(f)(values.astype(kind), points), f(values.astype(kind), points)
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            assert found.dtype == expected.dtype


def test_what_a_grid_is_not_given() -> None:
    values, x = np.ones((4, 3)), np.array([0.3, 0.2])
    for call, error, message in (
        (lambda x: RegularGridInterpolator(GRID, values)(9 * x), DomainError, "out of bounds in dimension 0"),
        (lambda x: interpn(GRID, values, 9 * x), DomainError, "out of bounds in dimension 0"),
        (
            lambda x: RegularGridInterpolator(GRID, x[0] * values, "cubic")(x),
            UnsupportedFunctionError,
            "no rule for .*cubic",
        ),
        (lambda x: RegularGridInterpolator(GRID, values)(x, "pchip"), UnsupportedFunctionError, "no rule for .*pchip"),
        (lambda x: interpn(GRID, values, x, "splinef2d"), UnsupportedFunctionError, "no rule for method='splinef2d'"),
        (lambda x: RegularGridInterpolator(GRID, x[0] * values, "best")(x), ShapeError, "'best' is not defined"),
        (lambda x: RegularGridInterpolator(GRID, values)(x, "best"), ShapeError, "'best' is not defined"),
        (
            lambda x: RegularGridInterpolator(GRID, x[0] * values[1:])(x),
            ShapeError,
            "4 points and 3 values in dimension 0",
        ),
        (lambda x: RegularGridInterpolator(GRID, values)([x[:1]]), ShapeError, "have dimension 1"),
        (lambda x: RegularGridInterpolator(GRID, values)(x, nu=[1, 0]), ShapeError, "Can only compute derivatives"),
    ):
        with pytest.raises(error, match=message):
            fnad.grad(lambda x, call=call: np.sum(call(x)))(x)
