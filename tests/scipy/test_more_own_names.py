"""Interpolation and estimates by SciPy's names: batches, second derivatives, kinks, dtypes and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, sparse
from scipy.interpolate import (
    Akima1DInterpolator,
    BarycentricInterpolator,
    KroghInterpolator,
    RBFInterpolator,
    RectBivariateSpline,
    RegularGridInterpolator,
    SmoothBivariateSpline,
    UnivariateSpline,
    interpn,
)
from scipy.sparse import linalg

import fnad
from fnad.config import override
from fnad.errors import (
    ConvergenceError,
    DomainError,
    FactorizationError,
    ShapeError,
    TracerEscapeError,
    UnsupportedFunctionError,
)
from tests.scipy.own_names import CASES, GRID, HEIGHTS, NODES, Case
from tests.scipy.test_own_names import STENCIL
from tests.together import some_of, together

NAMES = (
    "interpolate on grids",
    "ndimage, between elements",
    "density estimates",
    "interpolate, splines of FITPACK",
    "interpolate, Akima and polynomials",
    "interpolate, radial",
    "sparse, solved",
)


@pytest.mark.parametrize("name", NAMES)
def test_vmap_of_an_own_name_stacks_its_calls(name: str) -> None:
    """Of a sixth of its calls, which are drawn."""
    with together() as named:
        for i, case in some_of([*enumerate(CASES[name])], name, (len(CASES[name]) + 5) // 6):
            with named(i):
                rows = [[x + step for x in case.args] for step in (0.0, 1e-3)]
                found = fnad.vmap(case.function)(*[np.stack(xs) for xs in zip(*rows, strict=True)])
                expected = np.stack([case.function(*row) for row in rows])
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


def gradient(case: Case, weights: Any) -> Callable[..., Any]:
    return fnad.grad(lambda *xs: np.sum(weights * case.function(*xs)), argnums=tuple(range(len(case.args))))


def moved(case: Case, us: Any, by: float) -> list[Any]:
    return [x + by * u for x, u in zip(case.args, us, strict=True)]


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")  # SciPy orders the places of a polynomial at random
@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives_of_an_own_name_are_differences(name: str) -> None:
    """By forward over reverse mode, against differences of the gradient; of a quarter of its calls, which are drawn."""
    rng = np.random.default_rng(9)
    with together() as named, override(executor="interpreter"):
        for i, case in some_of([*enumerate(CASES[name])], name, (len(CASES[name]) + 3) // 4):
            with named(i):
                us = tuple(rng.standard_normal(np.shape(x))[()] for x in case.args)
                first = fnad.jit(gradient(case, rng.standard_normal(np.shape(case.function(*case.args)))))
                _, found = fnad.jvp(first, tuple(case.args), us)
                steps = [
                    (weight / 1e-3, first(*moved(case, us, k * 1e-3)), first(*moved(case, us, k * -1e-3)))
                    for k, weight in STENCIL.items()
                ]
                for n, part in enumerate(found):
                    expected = sum(weight * (high[n] - low[n]) for weight, high, low in steps)
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


# ---- images ----------------------------------------------------------------------------------------------------------

EVERY_MODE = ("nearest", "wrap", "reflect", "mirror", "constant", "grid-wrap", "grid-constant", "grid-mirror")


@pytest.mark.slow
@pytest.mark.parametrize("mode", EVERY_MODE)
def test_images_have_scipys_values_far_beyond_their_edges_and_at_them(mode: str) -> None:
    """In each mode two orders of each image."""
    rng = np.random.default_rng(3)
    steps = [rng.integers(-18, 25, (2, 60)) / 2, np.array([[0.0, 4.0, 0.0, 4.0], [0.0, 2.0, 2.0, 0.0]])]
    coordinates = np.concatenate([rng.uniform(-30, 30, (2, 60)), *steps], axis=1)
    images = (rng.standard_normal((5, 3)), rng.standard_normal((60, 1)), rng.standard_normal((3, 55)))

    def values(*images: Any) -> Any:
        first = EVERY_MODE.index(mode)
        return [
            ndimage.map_coordinates(images[(first + order) % 3], coordinates, order=order, mode=mode, cval=0.7)
            for order in range(6)
        ]

    for found, expected in zip(fnad.jit(values)(*images), values(*images), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_at_an_element_the_derivative_is_that_of_the_cell_above_and_at_an_end_within() -> None:
    x = np.array([0.0, 1.0, 3.0, 7.0])

    def slope(at: float, mode: str) -> Any:
        value = lambda t: ndimage.map_coordinates(x, [[t]], order=1, mode=mode)[0]  # noqa: E731
        assert fnad.grad(value)(at) == fnad.jvp(value, (at,), (1.0,))[1]
        return fnad.grad(value)(at)

    assert [slope(at, "constant") for at in (0.0, 1.0, 3.0, 3.5)] == [1.0, 2.0, 4.0, 0.0]
    assert [slope(at, "wrap") for at in (0.0, 3.0, 3.5)] == [1.0, 4.0, 1.0]
    assert [slope(at, "nearest") for at in (-0.5, 0.0, 3.0, 3.5)] == [0.0, 1.0, 0.0, 0.0]
    assert [slope(at, "mirror") for at in (-0.5, 0.0, 3.0)] == [-1.0, 1.0, -4.0]
    assert [slope(at, "reflect") for at in (-0.7, -0.2, 3.2)] == [0.0, 0.0, 0.0]
    assert [slope(at, "grid-wrap") for at in (-0.5, 3.0, 3.5)] == [-7.0, -7.0, -7.0]


def test_images_keep_their_dtype_and_nan() -> None:
    x, c = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([[1.2, np.nan], [0.7, 0.3]], dtype=np.float32)
    for output in (None, np.float64, "f4"):
        f = lambda x, c, o=output: ndimage.map_coordinates(x, c, output=o)  # noqa: E731
        found, expected = fnad.jit(f)(x, c), f(x, c)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def into(x: Any) -> Any:
        out = np.zeros((4, 3), np.float32)
        ndimage.shift(x, 0.3, output=out)
        return out

    np.testing.assert_allclose(fnad.jit(into)(x), into(x), rtol=1e-6)


def test_what_images_are_not_given() -> None:
    x = np.ones((4, 3))
    for call, error, message in (
        (lambda x: ndimage.map_coordinates(np.ones((3, 3), int), x[:2]), UnsupportedFunctionError, "results of int64"),
        (lambda x: ndimage.map_coordinates(x, x[:2], order=6), RuntimeError, "spline order not supported"),
        (lambda x: ndimage.map_coordinates(x, x[:2], mode="edge"), RuntimeError, "boundary mode not supported"),
        (lambda x: ndimage.map_coordinates(x, x[:1]), RuntimeError, "invalid shape for coordinate array"),
        (lambda x: ndimage.map_coordinates(x, 1j * x[:2]), TypeError, "Complex type not supported"),
        (lambda x: ndimage.shift(x, [1.0, 2.0, 3.0]), RuntimeError, "length equal to input rank"),
        (lambda x: ndimage.affine_transform(x, x[:, :2]), RuntimeError, "wrong number of rows"),
        (lambda x: ndimage.affine_transform(x, x[:2, :1]), RuntimeError, "wrong number of columns"),
        (lambda x: ndimage.affine_transform(x, 1.0), RuntimeError, "no proper affine matrix"),
        (lambda x: ndimage.affine_transform(x, np.stack([x[0]] * 3)), DomainError, r"last row of the matrix"),
        (
            lambda x: ndimage.geometric_transform(x, lambda p: p),
            UnsupportedFunctionError,
            "geometric_transform has no rule",
        ),
    ):
        with pytest.raises(error, match=message):
            fnad.grad(lambda x, call=call: np.sum(call(x)))(x)


# ---- splines and polynomials -----------------------------------------------------------------------------------------


def test_at_its_places_a_polynomial_has_its_derivatives() -> None:
    x = np.array([0.0, 1.0, 2.0, 4.0])
    for kind in (BarycentricInterpolator, KroghInterpolator):
        cube = kind(x, x**3)
        for at in (0.0, 1.0, 1.5, 4.0):
            first = fnad.grad(cube)
            np.testing.assert_allclose([first(at), fnad.grad(first)(at)], [3 * at**2, 6 * at], rtol=1e-12, atol=1e-12)


def test_at_the_edge_of_a_surface_the_derivative_is_that_within() -> None:
    x = np.arange(5.0)
    surface = RectBivariateSpline(x, x, np.outer(x**2, x))
    slopes = [float(fnad.grad(lambda t: surface.ev(t, 1.0))(t)) for t in (-0.1, 0.0, 2.0, 4.0, 4.1)]
    np.testing.assert_allclose(slopes, [0.0, 0.0, 4.0, 8.0, 0.0], atol=1e-12)


def test_what_splines_are_not_given() -> None:
    x = np.arange(6.0)
    for call, error, message in (
        (lambda y: UnivariateSpline(x, y)(0.5), UnsupportedFunctionError, "no rule for s > 0"),
        (
            lambda y: RectBivariateSpline(x, x, y * y[:, None], s=1.0)(x, x),
            UnsupportedFunctionError,
            "no rule for s > 0",
        ),
        (lambda y: UnivariateSpline(x, x, s=0)(y, nu=4), ShapeError, "0<=der=4<=k=3 must hold"),
        (lambda y: UnivariateSpline(x, x, s=0)(y, ext="none"), ShapeError, "Unknown extrapolation mode none"),
        (lambda y: UnivariateSpline(x, x, s=0, ext=2)(y + 3), DomainError, "not in the domain"),
        (lambda y: UnivariateSpline(x, y[:3], s=0)(0.5), ShapeError, "same length"),
        (lambda y: UnivariateSpline(x, x, s=0).derivatives(y[0] - 1), DomainError, "must hold"),
        (
            lambda y: SmoothBivariateSpline(*np.tile([x, y, x], 9)),
            TracerEscapeError,
            "SmoothBivariateSpline has no rule",
        ),
        (lambda y: RectBivariateSpline(x, x, np.outer(x, x))(y[::-1], x), DomainError, "x must be strictly increasing"),
        (lambda y: Akima1DInterpolator(x, y * 1j)(0.5), ShapeError, "only works with real values"),
        (lambda y: Akima1DInterpolator(x, y, method="other")(0.5), NotImplementedError, "unsupported"),
        (lambda y: BarycentricInterpolator(x, y[:3])(0.5), ShapeError, "equal in length"),
    ):
        with pytest.raises(error, match=message):
            fnad.grad(lambda y, call=call: np.sum(np.real(call(y))))(x)


def test_where_a_radial_interpolant_is_asked_at_its_places() -> None:
    for kernel in ("thin_plate_spline", "cubic", "quintic", "gaussian"):
        made = RBFInterpolator(NODES, HEIGHTS, kernel=kernel, epsilon=0.7)
        value = lambda x, made=made: made(x[None])[0]  # noqa: E731
        first, h = fnad.grad(value)(NODES[1]), 1e-6
        expected = [(value(NODES[1] + h * e) - value(NODES[1] - h * e)) / (2 * h) for e in np.eye(2)]
        np.testing.assert_allclose(first, expected, rtol=1e-4)
        second = fnad.hessian(value)(NODES[1])
        assert np.all(np.isfinite(second) == (kernel in ("quintic", "gaussian")))
    for call, message in (
        (lambda d: RBFInterpolator(NODES, d, neighbors=3)(NODES), "no rule for neighbors="),
        (lambda x: RBFInterpolator(NODES, HEIGHTS, neighbors=3)(x[:, None] * NODES), "no rule for neighbors="),
    ):
        with pytest.raises(UnsupportedFunctionError, match=message):
            fnad.grad(lambda x, call=call: np.sum(call(x)))(HEIGHTS)


# ---- sparse equations ------------------------------------------------------------------------------------------------


def test_a_large_sparse_matrix_is_transposed_for_the_gradient() -> None:
    n = 400
    matrix = sparse.diags_array([-1.0, 3.2, -1.3], offsets=[-1, 0, 1], shape=(n, n)).tocsc()
    b, w = np.sin(np.arange(n)), np.cos(np.arange(n))
    for solve in (linalg.spsolve, lambda a, b: linalg.gmres(a, b, rtol=1e-13)[0]):
        found = fnad.jit(fnad.grad(lambda b, solve=solve: w @ solve(matrix, b)))(b)
        np.testing.assert_allclose(found, linalg.spsolve(matrix.T.tocsc(), w), rtol=1e-9, atol=1e-11)
    x, info = linalg.bicgstab(matrix, b)
    found = fnad.jit(lambda b: linalg.bicgstab(matrix, b))(b)
    np.testing.assert_allclose(found[0], x, rtol=1e-12)
    assert found[1] == info == 0
    single = fnad.jit(lambda b: linalg.spsolve(matrix.astype(np.float32), b))(b.astype(np.float32))
    assert single.dtype == np.float32


def test_what_sparse_equations_are_not_given() -> None:
    a, b = sparse.csc_array(np.diag([1.0, 2.0, 3.0]) + 0.1), np.ones(3)
    for call, error, message in (
        (lambda b: linalg.spsolve(a[:2], b), ShapeError, "matrix must be square"),
        (lambda b: linalg.spsolve(a, b[:2]), ShapeError, "dimension mismatch"),
        (lambda b: linalg.spsolve(0 * a, b), FactorizationError, "exactly singular"),
        (lambda b: linalg.spsolve(np.outer(b, b), b), FactorizationError, "exactly singular"),
        (lambda b: linalg.cg(linalg.aslinearoperator(a), b)[0], UnsupportedFunctionError, "MatrixLinearOperator"),
        (lambda b: linalg.cg(a, b, M=a)[0], UnsupportedFunctionError, "no rule for the option M="),
        (lambda b: linalg.cg(a, b, x0=b)[0], UnsupportedFunctionError, "no rule for the option x0="),
        (lambda b: linalg.cg(a, b, maxiter=1)[0], ConvergenceError, "cg did not succeed: info is 1"),
    ):
        with pytest.raises(error, match=message):
            fnad.grad(lambda b, call=call: np.sum(call(b)))(b)
