"""SciPy by its own names on traced values: values are SciPy's, derivatives those of its function."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.special
import scipy.stats
from scipy.integrate import solve_ivp
from scipy.optimize import (
    LinearConstraint,
    NonlinearConstraint,
    brentq,
    least_squares,
    linear_sum_assignment,
    minimize,
    root,
)
from scipy.spatial import ConvexHull, cKDTree, distance

import fnad
from fnad.config import override
from fnad.errors import ConvergenceError, DomainError, ShapeError, TracerEscapeError, UnsupportedFunctionError
from fnad.trace.scipy_table import TABLE
from tests.scipy.own_names import CASES, FINE, GRIDS, SEARCHED, Case
from tests.together import some_of, together

AXIS = np.arange(6.0)

STENCIL = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
"""The weights of a central difference of order 6."""


def slope(case: Case, direction: list[Any], h: float = 1e-3) -> Any:
    """The directional derivative of SciPy's function by differences."""

    def at(t: float) -> Any:
        return np.asarray(case.function(*[x + t * u for x, u in zip(case.args, direction, strict=True)]))

    return sum(weight * (at(k * h) - at(-k * h)) for k, weight in STENCIL.items()) / h


def directions(case: Case) -> list[Any]:
    rng = np.random.default_rng(7)
    return [rng.standard_normal(np.shape(x))[()] for x in case.args]


def check(case: Case, *, in_reverse: bool) -> None:
    """Values, and the derivative in one mode against differences."""
    expected = np.asarray(case.function(*case.args))
    us = directions(case)
    by_difference = slope(case, us)
    weights = np.random.default_rng(8).standard_normal(expected.shape)
    if in_reverse:
        value, pullback = fnad.vjp(case.function, *case.args)
        found = sum(np.sum(g * u) for g, u in zip(pullback(weights[()]), us, strict=True))
        by_difference, size = np.sum(weights * by_difference), np.sum(np.abs(weights * by_difference))
    else:
        value, found = fnad.jvp(case.function, tuple(case.args), tuple(us))
        size = np.max(np.abs(by_difference), initial=0.0)
    np.testing.assert_allclose(value, expected, rtol=case.rtol, atol=1e-14)
    assert np.shape(value) == expected.shape
    np.testing.assert_allclose(found, by_difference, rtol=case.precision, atol=case.precision * max(size, 1.0))


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str) -> None:
    """Of a third of the calls, which are drawn, in reverse mode."""
    in_reverse = some_of(range(len(CASES[name])), name, (len(CASES[name]) + 2) // 3)
    with together() as named, override(executor="interpreter"):
        for i, case in enumerate(CASES[name]):
            with named(i):
                check(case, in_reverse=i in in_reverse)


@pytest.mark.parametrize("name", CASES)
def test_calls_of_an_own_name_compile_to_its_values(name: str) -> None:
    """A sixth of the calls of a name, which are drawn, in one compiled function."""
    cases = some_of(CASES[name], name, (len(CASES[name]) + 5) // 6)
    compiled: Any = fnad.jit(lambda args: [case.function(*xs) for case, xs in zip(cases, args, strict=True)])
    with override(executor="compiled"):
        results = compiled([tuple(case.args) for case in cases])
    for case, found in zip(cases, results, strict=True):
        np.testing.assert_allclose(found, case.function(*case.args), rtol=case.rtol, atol=1e-14)


# ---- whose function it is --------------------------------------------------------------------------------------------


def is_copy(module: str) -> bool:
    """Whether it is one of the layer of the array API standard, which packages have or not."""
    return "array_api_compat" in module


def test_each_name_of_the_table_is_there() -> None:
    for module, offers in TABLE.items():
        try:
            import_module(module)
        except ImportError:
            assert is_copy(module)
            continue
        for offering, names in offers.items():
            for name in names:
                assert callable(resolve_name(f"{offering}:{name}")), name
                assert callable(resolve_name(f"{module}:{name}"))


BEFORE = """
from scipy.special import logsumexp, softmax as soft
from scipy.linalg import cholesky
from scipy.stats import norm, weibull_min
from scipy.integrate import simpson
from scipy.optimize import rosen

import numpy as np, fnad
x = np.array([1.0, 2.0, 3.5])
for f in (logsumexp, lambda x: soft(x)[0], lambda x: cholesky(np.diag(x))[1, 1], lambda x: norm.logpdf(x)[0], simpson,
          lambda x: weibull_min(x[0], scale=x[1]).logpdf(x[2]), rosen):
    expected = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(fnad.grad(f)(x), expected, rtol=1e-6, atol=1e-8)

def imported_meanwhile(x):
    from scipy.signal import convolve
    return convolve(x, x)[2]

np.testing.assert_allclose(fnad.grad(imported_meanwhile)(x), [7.0, 4.0, 2.0])
"""


def run_in_a_file(folder: Path, code: str) -> None:
    (folder / "program.py").write_text(code)
    subprocess.run([sys.executable, folder / "program.py"], check=True)


def test_names_bound_before_fnad_is_imported_and_modules_imported_in_a_trace(tmp_path: Path) -> None:
    run_in_a_file(tmp_path, BEFORE)


def test_what_fnad_has_is_there_without_an_import() -> None:
    code = (
        "import fnad; fnad.scipy.stats.norm; fnad.scipy.linalg.expm; fnad.testing.difference; fnad.scipy.optimize.rosen"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fnad.scipy.nothing


def test_what_fnad_has_calls_scipys_own_in_a_trace() -> None:
    def f(x: Any) -> Any:
        mvn = fnad.scipy.stats.multivariate_normal.logpdf([0.0, 1.0], cov=np.eye(2))
        return x * (fnad.scipy.special.logsumexp([0.0, 0.0]) + fnad.scipy.stats.norm.cdf(0.0) + mvn)

    expected = np.log(2) + 0.5 + scipy.stats.multivariate_normal.logpdf([0.0, 1.0], cov=np.eye(2))
    np.testing.assert_allclose(fnad.grad(f)(1.0), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        (
            "scipy.spatial.distance.cdist has no rule for metric='jaccard'",
            lambda x: distance.cdist([[x]], [[1]], "jaccard"),
        ),
        (
            "optimize.minimize has no rule for method='trust-constr' with bounds",
            lambda x: minimize(lambda p: p[0] * x, [1], bounds=[(0, 1)], method="trust-constr").x,
        ),
        (
            "optimize.minimize has no rule for method='cobyla' with constraints",
            lambda x: minimize(lambda p: p[0] * x, [1], constraints={"type": "eq", "fun": sum}, method="COBYLA").x,
        ),
        (
            "optimize.minimize has no rule for the option hess=",
            lambda x: minimize(lambda p: p[0] * x, [1], method="Newton-CG", hess=lambda x: 0).x,
        ),
        (
            "optimize.curve_fit has no rule for the option loss=",
            lambda x: scipy.optimize.curve_fit(lambda t, a: a * t, AXIS, x * AXIS, method="trf", loss="cauchy")[0][0],
        ),
        (
            "optimize.brentq has no rule for the option disp=",
            lambda x: brentq(lambda p: p - x, 0, 1, disp=False),
        ),
        (
            "integrate.solve_ivp has no rule for the option events=",
            lambda x: solve_ivp(lambda t, y: x * y, (0, 1), [1.0], events=lambda t, y: y[0]).y,
        ),
        (
            "integrate.solve_ivp has no rule for method='BDF'",
            lambda x: solve_ivp(lambda t, y: x * y, (0, 1), [1.0], "BDF").y,
        ),
        ("interpolate.splrep has no rule for s > 0", lambda x: scipy.interpolate.splrep(AXIS, x * AXIS, s=1.0)[1]),
        (
            "scipy.interpolate.interp1d",
            lambda x: scipy.interpolate.interp1d(AXIS, x * AXIS, "next", fill_value="extrapolate")(1),
        ),
        (
            "scipy.interpolate.make_interp_spline",
            lambda x: scipy.interpolate.make_interp_spline(AXIS, x * AXIS, bc_type="natural").c,
        ),
        ("scipy.spatial.distance.pdist", lambda x: distance.pdist([[x], [1.0]], "seuclidean")),
        (
            "traced results of uint8",
            lambda x: scipy.ndimage.gaussian_filter(x * np.ones(4), 1.0, output=np.uint8),
        ),
        ("scipy.stats.gennorm", lambda x: scipy.stats.gennorm.cdf(x, 1.3)),
        ("scipy.stats.argus", lambda x: scipy.stats.argus.ppf(x, 1.3)),
        ("scipy.stats.nbinom.logpmf", lambda x: scipy.stats.nbinom.logpmf(x, 3, 0.3)),
        ("scipy.stats.weibull_min.stats", lambda x: scipy.stats.weibull_min.stats(x, moments="mvs")),
        ("_nct_pdf", lambda x: scipy.stats.nct.logpdf(x, 2.0, 1.0)),
        (
            "scipy.linalg.eigvals has no rule for the option b=",
            lambda x: scipy.linalg.eigvals(x * np.eye(2), np.eye(2)),
        ),
    ],
)
def test_what_has_no_rule_is_named_with_its_line(name: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedFunctionError) as caught:
        fnad.grad(lambda x: np.sum(np.real(call(x))))(0.4)
    assert name in str(caught.value)
    assert "test_own_names.py" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("scipy.stats.genhyperbolic.logpdf", lambda x: scipy.stats.genhyperbolic.logpdf(x, 1.0, 1.0, 0.3)),
        ("scipy.stats.genhyperbolic.logpdf", lambda x: scipy.stats.genhyperbolic(1.0, 1.0, 0.3).logpdf(x)),
        ("scipy.stats.kendalltau", lambda x: scipy.stats.kendalltau([x, 2.0], [0.0, 1.0])[0]),
        (
            "scipy.interpolate.SmoothBivariateSpline",
            lambda x: scipy.interpolate.SmoothBivariateSpline(*np.tile([x * AXIS, AXIS, AXIS], 4)),
        ),
        ("scipy.ndimage.generic_filter", lambda x: scipy.ndimage.generic_filter(x * np.ones(4), np.ptp, 3)[0]),
        ("scipy.linalg.funm", lambda x: scipy.linalg.funm(x * np.eye(2), np.sin)[0, 0]),
    ],
)
def test_what_has_no_rule_and_asks_for_numbers_is_named(name: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises((TracerEscapeError, UnsupportedFunctionError)) as caught:
        fnad.grad(call)(0.4)
    assert f"{name} has no rule for traced values" in str(caught.value)
    assert "test_own_names.py" in str(caught.value)


def test_a_distribution_of_the_users() -> None:
    class Triangle(scipy.stats.rv_continuous):  # pyright: ignore[reportUntypedBaseClass]
        def _pdf(self, x: Any, c: Any) -> Any:
            return c * 2 * x

    triangle = Triangle(a=0.0, b=1.0, name="norm")
    np.testing.assert_allclose(fnad.grad(lambda c: triangle.logpdf(0.5, c, 0.1, 2.0))(3.0), 1 / 3)
    with pytest.raises(UnsupportedFunctionError, match="no formula for its distribution function"):
        fnad.grad(lambda c: triangle.cdf(0.5, c))(3.0)


# ---- distributions ---------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of elements that a formula is not meant for
@pytest.mark.parametrize("name", GRIDS)
def test_the_slope_of_a_distribution_function_is_the_density(name: str) -> None:
    """At round points too, where formulas have kinks; and the slope of quantiles its inverse."""
    distribution, shapes = getattr(scipy.stats, name), GRIDS[name]
    low, high = distribution.support(*shapes)
    x = np.array([-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0])
    x = x[(x > low) & (x < high)]
    density = distribution.pdf(x, *shapes)
    for method, sign in (("cdf", 1), ("sf", -1)):
        found = fnad.grad(lambda x, m=method: np.sum(getattr(distribution, m)(x, *shapes)))(x)
        np.testing.assert_allclose(found, sign * density, rtol=1e-7, atol=1e-11, err_msg=method)
    q = np.array([0.1, 0.5, 0.75])
    if name not in SEARCHED:
        found = fnad.grad(lambda q: np.sum(distribution.ppf(q, *shapes)))(q)
        np.testing.assert_allclose(found, 1 / distribution.pdf(distribution.ppf(q, *shapes), *shapes), rtol=1e-7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["genextreme", "genpareto", "skewnorm"])
def test_where_the_formula_is_another_one_there_is_no_finite_derivative_in_the_shape(name: str) -> None:
    density = getattr(scipy.stats, name).logpdf
    x = np.array([0.3, 0.8])
    value, found = fnad.jvp(lambda c: density(x, c), (0.0,), (1.0,))
    np.testing.assert_allclose(value, density(x, 0.0), rtol=1e-14)
    assert not np.any(np.isfinite(found))
    np.testing.assert_allclose(
        fnad.grad(lambda x: np.sum(density(x, 0.0)))(x), fnad.grad(lambda x: np.sum(density(x, 1e-9)))(x), rtol=1e-6
    )


def test_filters_keep_the_dtype_and_write_into_an_output() -> None:
    x = np.arange(4, dtype=np.float32)
    assert fnad.jit(lambda x: scipy.ndimage.gaussian_filter(x, 1.0))(x).dtype == np.float32
    assert fnad.jit(lambda x: scipy.ndimage.gaussian_filter(x, 1.0, output=np.float64))(x).dtype == np.float64

    def into(x: Any) -> Any:
        out = np.zeros_like(x)
        scipy.ndimage.correlate1d(x, [1.0, 2.0, 1.0], output=out)
        return out

    np.testing.assert_array_equal(fnad.jit(into)(x), into(x))
    for dtype in (np.int64, np.float64):
        mean = lambda x, dtype=dtype: scipy.ndimage.uniform_filter(x, 3, output=dtype)  # noqa: E731
        np.testing.assert_allclose(fnad.jit(mean)(np.arange(5)), mean(np.arange(5)), rtol=1e-15)
    with pytest.raises(RuntimeError, match="boundary mode not supported"):
        fnad.jit(lambda x: scipy.ndimage.gaussian_filter(x, 1.0, mode="nothing"))(x)


SUMMARIES = ("entropy", "gmean", "iqr", "kurtosis", "median_abs_deviation", "moment", "sem", "skew", "variation")


@pytest.mark.parametrize("name", SUMMARIES)
def test_summaries_decide_by_no_value_and_have_the_axes_and_the_dtype_of_scipys(name: str) -> None:
    x = np.arange(1.0, 13.0, dtype=np.float32).reshape(3, 4) ** 2
    f = getattr(scipy.stats, name)
    for axis, keepdims in ((0, False), (1, True), (-1, False), (None, False), (None, True)):
        summary = fnad.jit(lambda x, a=axis, k=keepdims: f(x, axis=a, keepdims=k))
        found, expected = np.asarray(summary(x)), np.asarray(f(x, axis=axis, keepdims=keepdims))
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert "guard" not in summary.lower(x).as_text()


def test_a_traced_number_times_a_sparse_matrix_scales_it() -> None:
    matrix = scipy.sparse.csr_matrix(np.diag([1.0, 3.0]))
    assert fnad.value_and_grad(lambda t: np.sum((matrix * t) @ np.ones(2)))(2.0) == (8.0, 4.0)
    with pytest.raises(ShapeError, match="dimension mismatch"):
        fnad.grad(lambda x: np.sum(scipy.sparse.csr_array(np.eye(2)) @ x))(np.ones(3))


def test_where_points_coincide_the_derivative_is_zero() -> None:
    x = np.array([[1.0, 2.0]])
    for metric in ("euclidean", "cityblock", "minkowski"):
        np.testing.assert_array_equal(fnad.grad(lambda a, m=metric: distance.cdist(a, x, m)[0, 0])(x), [[0.0, 0.0]])


def test_points_beyond_the_ends_are_an_error_when_the_program_runs() -> None:
    line = scipy.interpolate.interp1d(AXIS, AXIS)
    compiled = fnad.jit(lambda x: line(x))
    assert compiled(1.5) == 1.5
    for call in (compiled, fnad.jit(lambda x: scipy.interpolate.splev(x, scipy.interpolate.splrep(AXIS, AXIS), ext=2))):
        with pytest.raises(DomainError):
            call(7.0)


def test_places_that_do_not_increase_are_an_error_when_the_program_runs() -> None:
    for make in (scipy.interpolate.CubicSpline, scipy.interpolate.make_interp_spline):
        compiled = fnad.jit(lambda t, make=make: make([0.0, t, 2.0, 3.0], AXIS[:4])(0.5))
        compiled(1.0)
        with pytest.raises(DomainError, match="strictly increasing"):
            compiled(2.5)


# ---- solvers ---------------------------------------------------------------------------------------------------------


def test_a_solver_of_nothing_traced_is_scipys_own() -> None:
    def f(x: Any) -> Any:
        result = minimize(lambda p: p @ p, [1.0, 2.0])
        assert type(result.x) is np.ndarray
        assert type(brentq(lambda z: float(z) - 1 if z > 0 else -1.0, 0.0, 3.0, full_output=True)[0]) is float
        return x * result.x[0]

    np.testing.assert_allclose(fnad.grad(f)(1.0), minimize(lambda p: p @ p, [1.0, 2.0]).x[0])


def test_second_derivatives_of_a_root() -> None:
    cube_root = lambda a: brentq(lambda x: x**3 - a, 0.0, 10.0)  # noqa: E731
    np.testing.assert_allclose(fnad.grad(fnad.grad(cube_root))(2.0), -2 / 9 * 2 ** (-5 / 3), rtol=1e-9)


ROUND = [[1.0, 0.3], [0.3, 2.0]]
PRECISE: dict[str, Any] = {"tol": 1e-11}
ENDS = [(-1.0, 0.5), (None, 2.0)]
DISC = {"type": "ineq", "fun": lambda x: 1.0 - x @ x}
TOTAL = {"type": "eq", "fun": lambda x, s: np.sum(x) - s}
SUM, WITHIN = LinearConstraint([[1, 1]], 1, 1), NonlinearConstraint(lambda x: x @ x, -np.inf, 4)

MET: list[tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = [
    (lambda a: minimize(lambda x: (x[0] - a) ** 2, [0.1], bounds=[(0.0, 1.0)], **PRECISE).x[0], lambda a: a, 0.4),
    (lambda a: minimize(lambda x: (x[0] - a) ** 2, [0.1], bounds=[(0.0, 1.0)], **PRECISE).x[0], lambda a: 1.0, 1.7),
    (lambda a: minimize(lambda x: x[0] ** 2, [9.0], bounds=[(a**2, None)], **PRECISE).x[0], lambda a: a**2, 1.7),
    (lambda a: minimize(lambda x: x[0] ** 2, [9.0], bounds=[(a**2, None)], **PRECISE).fun, lambda a: a**4, 1.7),
    (lambda a: minimize(lambda x: x[0] ** 2, [2.0], bounds=[(a, a)], **PRECISE).x[0], lambda a: a, 2.0),
    # x[0] = 1/2, and along it 0.3 * 1/2 + 2 x[1] = a
    (
        lambda a: minimize(lambda x: x @ ROUND @ x / 2 - x @ [4.0, a], [0.0, 0.0], bounds=ENDS, **PRECISE).x[1],
        lambda a: (a - 0.15) / 2,
        1.3,
    ),
    # the point of the disc that is nearest to (3, a), which is on its edge
    (
        lambda a: minimize(lambda x: (x[0] - 3) ** 2 + (x[1] - a) ** 2, [0.5, 0.5], constraints=DISC, tol=1e-9).x[0],
        lambda a: 3 / (9 + a * a) ** 0.5,
        4.0,
    ),
    (
        lambda a: minimize(lambda x: x @ x, [1, 2], constraints=[DISC, {**TOTAL, "args": (a,)}], **PRECISE).x[1],
        lambda a: a / 2,
        0.7,
    ),
    (
        lambda a: minimize(lambda x: x @ x - a * x[0], [1, 2], constraints=SUM, bounds=[(0, 1)] * 2, **PRECISE).x[0],
        lambda a: 0.5 + a / 4,
        0.6,
    ),
    (
        lambda a: minimize(lambda x: x[0] * a - x[1], [0.1, 0.1], constraints=WITHIN, **PRECISE).x[1],
        lambda a: 2 / (1 + a * a) ** 0.5,
        0.6,
    ),
    (
        lambda a: least_squares(lambda x: [x[0] - a, x[1] * x[0] - 3], [0.2, 0.2], bounds=(0, [1.5, 3]), **FINE).x[1],
        lambda a: 3 / 1.5,
        1.9,
    ),
    (
        lambda a: least_squares(lambda x: [x[0] - 2, x[1] * x[0] - 3], [0.2, 0.2], bounds=(0, [a, 9]), **FINE).x[1],
        lambda a: 3 / a,
        1.5,
    ),
]


@pytest.mark.slow
def test_at_bounds_and_constraints_what_is_met_is_held() -> None:
    h, twice = 1e-3, some_of(range(len(MET)), "second derivatives", 6)
    with together() as named:
        for i, (found, closed, at) in enumerate(MET):
            first = sum(weight * (closed(at + k * h) - closed(at - k * h)) for k, weight in STENCIL.items()) / h
            second = (closed(at + h) - 2 * closed(at) + closed(at - h)) / h**2
            with named(i):
                value, slope = fnad.value_and_grad(found)(at)
                np.testing.assert_allclose(value, closed(at), rtol=1e-6)
                np.testing.assert_allclose(slope, first, rtol=1e-5, atol=1e-6)
                if abs(second) > 1e-6 and i in twice:  # the others are linear
                    np.testing.assert_allclose(fnad.jvp(fnad.grad(found), (at,), (1.0,))[1], second, rtol=1e-4)
    compiled = fnad.jit(lambda *at: [fnad.grad(found)(a) for (found, _, _), a in zip(MET[5:7], at, strict=True)])
    with override(executor="compiled"):
        np.testing.assert_allclose(compiled(1.3, 4.0), [0.5, -12 / 125], rtol=1e-5)


@pytest.mark.parametrize(
    "solve",
    [
        lambda a: minimize(lambda x: (x[0] - a) ** 2, [1.0], bounds=[(0, None)], **PRECISE).x[0],
        lambda a: minimize(lambda x: (x[0] - a) ** 2, [1.0], bounds=[(None, 0)], method="SLSQP", **PRECISE).x[0],
        lambda a: minimize(lambda x: (x[0] - a) ** 2, [1.0], constraints={"type": "ineq", "fun": sum}, **PRECISE).x[0],
        lambda a: least_squares(lambda x: x - a, [1.0], bounds=(0.0, 3.0), method="dogbox").x[0],
    ],
)
def test_where_a_multiplier_vanishes_there_is_a_value_and_no_derivative(solve: Any) -> None:
    assert abs(fnad.jit(solve)(0.0)) < 1e-9
    for derivative in (fnad.grad(solve), lambda a: fnad.jvp(solve, (a,), (1.0,))):
        with pytest.raises(DomainError, match="multiplier cannot be told from 0"):
            derivative(0.0)


def test_a_result_says_that_it_is_one_or_is_an_error() -> None:
    def f(a: Any) -> Any:
        result = root(lambda x: x**3 - a, 1.0)
        assert result.success
        return result["x"][0]

    np.testing.assert_allclose(fnad.jit(f)(2.0), 2 ** (1 / 3), rtol=1e-9)
    with pytest.raises(ConvergenceError, match=r"scipy\.optimize\.root did not succeed"):
        fnad.grad(lambda a: root(lambda x: x * x + a, [1.0]).x[0])(1.0)
    with pytest.raises(ValueError, match="different signs"):
        fnad.grad(lambda a: brentq(lambda x: x * x + a, -1.0, 5.0))(1.0)


@pytest.mark.slow
def test_the_steps_of_a_differential_equation_are_scipys() -> None:
    """As many as it takes, for any values; each derivative is that at a fixed time, but for the ends."""

    def decay(k: Any, end: Any) -> Any:
        result = solve_ivp(lambda t, y: -k * y, (0, end), [1.0])
        return result.t, result.y[0]

    jitted, lengths = fnad.jit(decay), set[int]()
    for k in (0.7, 9.0, 0.7):
        t, y = jitted(k, 2.0)
        expected = solve_ivp(lambda t, y: -k * y, (0, 2.0), [1.0])  # noqa: B023
        np.testing.assert_allclose(t, expected.t, rtol=1e-12)
        np.testing.assert_allclose(y, np.exp(-k * t), rtol=1e-6, atol=1e-7)
        lengths.add(len(t))
    assert len(lengths) == 2
    (t, y), (t_slopes, y_slopes) = fnad.jvp(decay, (0.7, 2.0), (1.0, 0.0))
    np.testing.assert_allclose(y_slopes, -t * np.exp(-0.7 * t), rtol=1e-6)
    assert not t_slopes.any()
    (t, y), (t_slopes, y_slopes) = fnad.jvp(decay, (0.7, 2.0), (0.0, 1.0))
    np.testing.assert_allclose(y_slopes[-1], -0.7 * np.exp(-1.4), rtol=1e-6)
    assert t_slopes.tolist() == [0.0] * (len(t) - 1) + [1.0]
    with pytest.raises(TracerEscapeError, match="without t_eval= takes steps that depend on arguments without numbers"):
        fnad.vmap(decay, in_axes=(0, None))(np.ones(2), 2.0)
    with pytest.raises(ConvergenceError, match=r"solve_ivp did not succeed: Required step size.*\n  at test_own_names"):
        fnad.grad(lambda x: solve_ivp(lambda t, y: x * y**2, (0, 10), [1.0]).y[0, -1])(1.0)


def test_the_layer_of_the_array_api_solves_by_numpys_function() -> None:
    solve = pytest.importorskip("scipy._lib.array_api_compat.numpy.linalg").solve
    a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    gradient = fnad.grad(lambda a: np.sum(solve(a, b)))(a)
    np.testing.assert_allclose(gradient, -np.outer(np.linalg.solve(a.T, np.ones(2)), np.linalg.solve(a, b)), rtol=1e-14)
    assert solve(a, b).tolist() == np.linalg.solve(a, b).tolist()


@pytest.mark.parametrize(
    "place",
    [
        lambda a: scipy.optimize.minimize_scalar(lambda x: (x - a) ** 2, bounds=(0.0, 1.0)).x,
        lambda a: scipy.optimize.fminbound(lambda x: (x - a) ** 2, 0.0, 1.0),
        lambda a: scipy.optimize.golden(lambda x: abs(x - a) + x**2 / 9),
    ],
)
def test_a_minimum_at_a_bound_or_kink_has_no_derivative(place: Callable[[Any], Any]) -> None:
    with pytest.raises(DomainError, match=r"the derivative is not 0 where .* ends, as at a bound or a kink"):
        fnad.grad(place)(1.3)


def test_records_of_solvers() -> None:
    """What is asked for besides a solution."""

    def f(a: Any) -> Any:
        root, record = scipy.optimize.newton(lambda x: x**3 - a, 1.5, full_output=True)
        x, found, status, _ = scipy.optimize.fsolve(lambda x: x**3 - a, [1.5], full_output=True)
        least, value, steps, calls = scipy.optimize.brent(lambda x: (x - a) ** 2, full_output=True)
        assert status == 1
        assert record.converged
        return root, record.iterations, record.function_calls, x, found["nfev"], least, value, steps, calls

    for found, expected in zip(fnad.jit(f)(2.0), f(2.0), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(ConvergenceError, match=r"scipy\.optimize\.fsolve did not succeed"):
        fnad.grad(lambda a: scipy.optimize.fsolve(lambda x: x**2 + a, 1.0, full_output=True)[0][0])(1.0)


def test_what_root_scalar_and_eigh_are_not_given() -> None:
    cube = lambda x, a: x**3 - a  # noqa: E731
    with pytest.raises(DomainError, match="neither bracket nor starting point"):
        fnad.grad(lambda a: scipy.optimize.root_scalar(cube, (a,)).root)(2.0)
    with pytest.raises(ShapeError, match="looks for a number"):
        fnad.grad(lambda a: scipy.optimize.root_scalar(cube, (a,), x0=np.ones(2)).root)(2.0)
    with pytest.raises(ConvergenceError, match="root_scalar did not succeed"):
        fnad.grad(lambda a: scipy.optimize.root_scalar(cube, (a,), x0=9.0, x1=8.0, maxiter=2).root)(2.0)
    found = fnad.jit(lambda a: vars(scipy.optimize.root_scalar(cube, (a,), bracket=(0, 2))))(2.0)
    expected = vars(scipy.optimize.root_scalar(cube, (2.0,), bracket=(0, 2)))
    assert {name: found[name] for name in expected} == expected
    with pytest.raises(DomainError, match='"type" keyword only accepts 1, 2, and 3, got 4'):
        fnad.grad(lambda a: np.sum(scipy.linalg.eigvalsh(a, a, type=4)))(np.eye(2))
    with pytest.raises(IndexError, match="indices are not valid"):
        fnad.grad(lambda a: np.sum(scipy.linalg.eigvalsh(a, subset_by_index=(0, 2))))(np.eye(2))


def test_numbers_of_transforms_that_are_none() -> None:
    for f in (
        lambda x: scipy.fft.dct(x, 5),
        lambda x: scipy.fft.dctn(x, norm="both"),
        lambda x: scipy.fft.dst(x, n=0),
        lambda x: scipy.fft.dctn(x, s=(2, 2), axes=(0,)),
        lambda x: scipy.fft.fft(x, 0),
    ):
        for way in (f, lambda x, f=f: fnad.jvp(f, (x,), (x,))):
            with pytest.raises(ValueError, match=r"(?i)invalid|not defined|same length|not supported"):
                way(np.ones(3))
    with pytest.raises(ShapeError, match="Invalid number of data points"):
        fnad.grad(lambda x: scipy.fft.dct(x, 1)[0])(np.ones(1))


TREE = cKDTree(np.eye(2))

COMPILED: dict[str, tuple[str, Any]] = {
    "of a module": ("optimize.linear_sum_assignment", lambda x: x[scipy.optimize.linear_sum_assignment(x)].sum()),
    "a name": ("optimize.linear_sum_assignment", lambda x: x[linear_sum_assignment(x)].sum()),
    "a method": ("spatial.cKDTree.query", lambda x: TREE.query(x)[0].sum()),
    "a method of what is made": (
        r"spatial.cKDTree\(np.eye\(2\)\).query",
        lambda x: cKDTree(np.eye(2)).query(x)[0].sum(),
    ),
    "a class": ("spatial.ConvexHull", lambda x: ConvexHull(x).volume),
}


@pytest.mark.parametrize("what", COMPILED)
def test_compiled_code_which_has_no_frame_is_named(what: str) -> None:
    name, f = COMPILED[what]
    with pytest.raises(TracerEscapeError, match=rf"scipy\.{name} has no rule for traced values"):
        fnad.grad(f)(np.array([[0.5, 2.0], [1.0, 0.3], [1.5, 1.6]]))


@pytest.mark.parametrize("function", [scipy.stats.kstest, scipy.stats.ks_1samp])
def test_decorators_of_scipy_read_the_signature_behind_others(function):
    """They bind arguments by it: the error is about what the body computes."""
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.nditer"):
        fnad.grad(lambda x: function(x, scipy.stats.norm.cdf).statistic)(np.array([0.1, 0.5, -0.3, 0.9]))
