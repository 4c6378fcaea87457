"""fnad.scipy.stats beside scipy.stats: values in and outside the support, derivatives in every parameter."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.stats

import fnad
from fnad.errors import DomainError, DtypeError, ShapeError, UnsupportedFunctionError
from fnad.scipy import stats
from fnad.testing import difference, mixed_difference, step
from tests.numpy.against_numpy import traced
from tests.together import in_groups, some_of

EPS = 2.0**-52
INF, NAN = np.inf, np.nan
DENSITIES = ("pdf", "logpdf")
MASSES = ("pmf", "logpmf")
PROBABILITIES = ("cdf", "logcdf", "sf", "logsf")


class Case(NamedTuple):
    """A distribution: shape parameters to compare values at, and operands within to compare derivatives at."""

    shapes: tuple[tuple[float, ...], ...] = ((),)
    x: tuple[float, ...] = (-1.3, 0.4, 2.2)
    inside: tuple[float, ...] = ()
    fixed: tuple[str, ...] = ()


CONTINUOUS: dict[str, Case] = {
    "norm": Case(),
    "laplace": Case(),
    "cauchy": Case(),
    "logistic": Case(),
    "expon": Case(x=(0.9, 2.0, 5.0)),
    "uniform": Case(x=(0.9, 1.2, 1.9)),
    "lognorm": Case(((0.3,), (1.0,), (-1.0,)), (0.9, 2.0, 5.0), (0.7,)),
    "t": Case(((0.5,), (1.0,), (30.0,), (1e5,), (INF,), (-1.0,), (NAN,)), inside=(3.5,)),
    "gamma": Case(((0.3,), (1.0,), (2.0,), (300.0,), (0.0,)), (0.9, 2.0, 5.0), (2.5,)),
    "chi2": Case(((0.5,), (2.0,), (4.0,), (300.0,), (-2.0,)), (0.9, 2.0, 5.0), (3.5,)),
    "beta": Case(((0.5, 0.5), (1.0, 1.0), (2.0, 1.0), (5.0, 80.0), (-1.0, 1.0)), (0.9, 1.2, 1.9), (2.5, 1.5)),
}
DISCRETE: dict[str, Case] = {
    "poisson": Case(((0.0,), (0.3,), (2.0,), (30.0,), (-1.0,)), (1.0, 2.0, 5.0), (2.5,), ("k", "loc")),
    "bernoulli": Case(((0.0,), (0.3,), (1.0,), (1.2,), (NAN,)), (0.0, 0.0, 0.0), (0.3,), ("k", "loc")),
    "binom": Case(
        ((0.0, 0.3), (1.0, 0.0), (4.0, 0.5), (5.0, 1.0), (20.0, 0.2), (4.5, 0.3)),
        (1.0, 2.0, 4.0),
        (5.0, 0.4),
        ("k", "loc", "n"),
    ),
}
ALL = CONTINUOUS | DISCRETE
X = np.array(
    [
        -INF,
        -50,
        -3,
        -1,
        -0.5,
        -1e-3,
        -0.0,
        0,
        1e-10,
        0.1,
        0.3,
        0.5,
        0.7,
        0.99,
        1,
        1 + 1e-9,
        1.5,
        3,
        10,
        40,
        200,
        INF,
        NAN,
    ]
)
K = np.array([-INF, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 3.5, 4, 5, 7, 20, 100, NAN])


def methods(name: str) -> tuple[str, ...]:
    return (*(DENSITIES if name in CONTINUOUS else MASSES), *PROBABILITIES)


CALLS = [(name, method) for name in ALL for method in methods(name)]


def both(name: str, method: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return fnad's method and SciPy's."""
    return getattr(getattr(stats, name), method), getattr(getattr(scipy.stats, name), method)


# ---- values ----------------------------------------------------------------------------------------------------------


def compare(found: Any, expected: Any, terms: float = 0.0) -> None:
    """Compare to rounding errors: for a density those of its logarithm, whose `terms` may be larger than their sum."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    finite = np.isfinite(expected) & (expected != 0)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    size = np.abs(expected[finite])
    allowed = EPS * (64 + 4 * (terms + np.abs(np.log(size)))) * size + np.finfo(np.float64).tiny
    assert np.all(np.abs(found[finite] - expected[finite]) <= allowed)


def shifts(name: str) -> Iterator[tuple[Any, ...]]:
    """Yield positions, with scales of a continuous distribution; a scale that is not positive gives nan."""
    yield ()
    if name in DISCRETE:
        yield from ((2,), (-3.0,))
    else:
        yield from ((0.7, 1.3), (np.array(-1.0), np.array([2.5])), (0.0, -1.0), (0.0, NAN))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@in_groups(("name", "method"), CALLS)
def test_methods_of_distributions_are_scipys(name: str, method: str):
    ours, scipys = both(name, method)
    x = X if name in CONTINUOUS else K
    for shapes in ALL[name].shapes:
        for shift in some_of([*shifts(name)], f"{name} {method} {shapes}", 2):
            found = traced(lambda x, *s: ours(x, *s, *shift), x, *shapes)[0]  # noqa: B023
            expected = scipys(x, *shapes, *shift)
            if method in ("logcdf", "logsf") and name in DISCRETE:
                valid = ~np.isnan(found)  # SciPy has 0 beyond the support of a distribution that is none
                np.testing.assert_allclose(found[valid], expected[valid], rtol=1e-12, atol=1e-15)
            else:
                compare(found, expected, max([s for s in shapes if np.isfinite(s)], default=0.0))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", ALL)
def test_entropies_of_distributions_are_scipys(name: str):
    ours, scipys = both(name, "entropy")
    for shapes in ALL[name].shapes:
        for shift in shifts(name):
            if name in DISCRETE:
                found = traced(lambda p, n=shapes[:-1]: ours(*n, p), shapes[-1])[0] if shapes[0] != 4.5 else NAN
                np.testing.assert_allclose(found, scipys(*shapes), rtol=1e-13, atol=1e-15)
            elif shapes or shift:
                found = traced(lambda *p: ours(*p), *map(np.asarray, (*shapes, *shift)))[0]
                np.testing.assert_allclose(found, scipys(*shapes, *shift), rtol=1e-13, atol=1e-13)


def test_untraced_calls_are_scipys():
    for name, method in CALLS:
        ours, scipys = both(name, method)
        inside = ALL[name].inside
        assert ours(1.0, *inside) == scipys(1.0, *inside)
    assert stats.norm.ppf(0.3) == scipy.stats.norm.ppf(0.3)
    np.testing.assert_array_equal(stats.zscore([1.0, 2.0]), scipy.stats.zscore([1.0, 2.0]))
    assert repr(stats.norm) == "fnad.scipy.stats.norm"


def test_signatures_are_scipys():
    assert str(inspect.signature(stats.beta.logpdf)) == "(x, a, b, loc=0, scale=1)"
    assert str(inspect.signature(stats.poisson.pmf)) == "(k, mu, loc=0)"
    assert str(inspect.signature(stats.t.entropy)) == "(df, loc=0, scale=1)"
    assert traced(lambda x: stats.beta.logpdf(x, b=2.0, a=3.0, scale=2.0), 0.5)[0] == pytest.approx(
        scipy.stats.beta.logpdf(0.5, b=2.0, a=3.0, scale=2.0)
    )
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        stats.t.pdf(1.0)


def test_operands_are_broadcast_in_double_precision():
    x, loc = np.array([1, 2], np.float32), np.array([[0.0], [1.0], [2.0]])
    compare(traced(stats.norm.logpdf, x, loc, 2)[0], scipy.stats.norm.logpdf(x, loc, 2))
    compare(traced(stats.poisson.pmf, np.arange(3), 2)[0], scipy.stats.poisson.pmf(np.arange(3), 2))
    compare(traced(lambda t: stats.norm.pdf([t, 0.5], loc=t), 1.0)[0], scipy.stats.norm.pdf([1.0, 0.5], loc=1.0))
    assert fnad.grad(lambda x: np.sum(stats.norm.logpdf(x)))(x).dtype == np.float32
    with pytest.raises(DtypeError, match="distributions do not take complex128"):
        traced(stats.norm.pdf, np.array([1j]))


def test_frozen_distributions_have_gradients_in_their_shapes():
    found = fnad.grad(lambda m, s: stats.norm(m, scale=s).logpdf(1.5), argnums=(0, 1))(1.0, 2.0)
    np.testing.assert_allclose(found, (0.125, -0.46875), rtol=1e-14)
    assert traced(lambda df: stats.t(df).entropy(), 3.0)[0] == pytest.approx(scipy.stats.t(3.0).entropy())


def test_methods_take_traced_values_in_code_without_source():
    made: dict[str, Any] = {"stats": stats}
    exec("def f(x): return stats.gamma(2.0).logpdf(x) + stats.norm.ppf(x) + stats.norm(x).entropy()", made)
    x, h = 0.4, 1e-5
    scipys = [scipy.stats.gamma.logpdf(t, 2.0) + scipy.stats.norm.ppf(t) for t in (x - h, x + h)]
    assert fnad.grad(made["f"])(x) == pytest.approx((scipys[1] - scipys[0]) / (2 * h), rel=1e-8)


def test_a_logarithm_is_finite_where_the_density_is_0():
    assert traced(stats.laplace.logpdf, 800.0)[0] == -800 - np.log(2)
    assert fnad.grad(stats.laplace.logpdf)(800.0) == -1
    assert traced(stats.pareto.logpdf, 1e200, 2.0)[0] == pytest.approx(np.log(2) - 600 * np.log(10))
    assert traced(stats.cauchy.logpdf, 1e200)[0] == pytest.approx(-np.log(np.pi) - 400 * np.log(10))


# ---- derivatives -----------------------------------------------------------------------------------------------------


def operands(name: str) -> tuple[list[str], list[Any]]:
    """Return the names of the operands of a distribution's methods, and values within the support."""
    case = ALL[name]
    names = list(inspect.signature(getattr(getattr(stats, name), methods(name)[0])).parameters)
    rest = (0.8, 1.5) if name in CONTINUOUS else (0.0,)
    return names, [np.array(case.x), *map(np.float64, (*case.inside, *rest))]


def free(name: str) -> list[int]:
    """Return the positions of the operands with a derivative: all but counts."""
    names, _ = operands(name)
    return [i for i, operand in enumerate(names) if operand not in ALL[name].fixed]


@pytest.mark.slow
@in_groups(("name", "method"), CALLS)
def test_derivatives_of_methods_of_distributions_are_differences(name: str, method: str):
    """First and second derivatives against differences of SciPy's function, reverse mode against forward mode."""
    ours, scipys = both(name, method)
    _, xs = operands(name)
    moving = free(name)

    def on_moving(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: function(*[dict(zip(moving, given, strict=True)).get(i, x) for i, x in enumerate(xs)])

    f, points = on_moving(ours), tuple(xs[i] for i in moving)
    us = tuple(np.cos(np.arange(p.size) + 2 * i).reshape(p.shape) for i, p in enumerate(points))
    vs = tuple(np.sin(np.arange(p.size) + 1 + 2 * i).reshape(p.shape) for i, p in enumerate(points))
    (h, error), (h2, error2) = step(EPS, 1), step(EPS, 2)

    value, tangent = fnad.jvp(f, points, us)
    truth = difference(on_moving(scipys), points, us, h)
    np.testing.assert_allclose(tangent, truth.astype(float), rtol=10 * error, atol=10 * error * np.max(np.abs(value)))

    ct = np.array([1.0, -0.7, 0.4])
    pulled = fnad.vjp(f, *points)[1](ct)
    inner = sum(np.sum(p * u) for p, u in zip(pulled, us, strict=True))
    np.testing.assert_allclose(inner, np.sum(ct * tangent), rtol=1e-11, atol=1e-13)

    second = fnad.jvp(lambda *p: fnad.jvp(f, p, us)[1], points, vs)[1]
    truth = mixed_difference(on_moving(scipys), points, us, vs, h2).astype(float)
    np.testing.assert_allclose(second, truth, rtol=10 * error2, atol=10 * error2 * np.max(np.abs(value)))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_derivative_of_entropy(name: str):
    ours, scipys = both(name, "entropy")
    points = tuple(map(np.float64, (*CONTINUOUS[name].inside, 0.8, 1.5)))
    us = tuple(np.float64(1 + i) for i in range(len(points)))
    h, error = step(EPS, 1)
    truth = difference(lambda *p: np.asarray(scipys(*p)), points, us, h)
    np.testing.assert_allclose(fnad.jvp(ours, points, us)[1], float(truth), rtol=10 * error, atol=10 * error)


def test_derivative_of_the_entropy_of_counts():
    assert fnad.grad(stats.bernoulli.entropy)(0.3) == pytest.approx(np.log(0.7 / 0.3))
    assert fnad.grad(lambda p: stats.binom.entropy(1, p))(0.3) == pytest.approx(np.log(0.7 / 0.3))


FIXED = [(name, method, operand) for name, case in ALL.items() for method in methods(name) for operand in case.fixed]


@in_groups(("name", "method", "operand"), FIXED)
def test_no_formula_is_an_error_that_names_the_parameter(name: str, method: str, operand: str):
    names, xs = operands(name)
    way = names.index(operand)
    with pytest.raises(UnsupportedFunctionError) as raised:
        fnad.jvp(lambda p: both(name, method)[0](*xs[:way], p, *xs[way + 1 :]), (xs[way],), (np.ones_like(xs[way]),))
    first, place, _ = str(raised.value).splitlines()
    assert first == f"there is no formula for the derivative of {name}.{method} with respect to {operand}"
    assert "test_stats.py" in place


def test_integer_counts_need_no_derivative():
    found = fnad.grad(lambda mu, k: np.sum(stats.poisson.logpmf(k, mu)))(2.0, np.array([1, 3]))
    assert found == pytest.approx(1 / 2 - 1 + 3 / 2 - 1)


# ---- at the ends -----------------------------------------------------------------------------------------------------


def test_outside_the_support_derivatives_are_zero():
    for name in ("expon", "gamma", "chi2", "beta", "lognorm", "uniform"):
        inside = CONTINUOUS[name].inside
        for method in (*DENSITIES, *PROBABILITIES):
            for x in (-1.0, *([2.0] if name in ("beta", "uniform") else [])):
                f = both(name, method)[0]
                arguments = (x, *inside, 0.0, 1.0)
                assert not any(fnad.grad(f, argnums=tuple(range(len(arguments) - 1)))(*arguments))


def test_parameters_that_are_not_allowed_have_derivative_nan():
    assert np.isnan(fnad.grad(stats.norm.logpdf, argnums=2)(1.0, 0.0, -1.0))
    assert np.isnan(fnad.grad(lambda x: stats.gamma.logpdf(x, -1.0))(1.0))
    assert np.isnan(fnad.grad(lambda p: stats.bernoulli.pmf(1, p))(1.5))


def test_derivatives_at_the_ends_of_the_range():
    assert fnad.grad(lambda x: stats.gamma.pdf(x, 2.0))(0.0) == 1
    assert fnad.grad(lambda x: stats.chi2.pdf(x, 4.0))(0.0) == pytest.approx(0.25)
    assert fnad.grad(lambda x: stats.beta.pdf(x, 2.0, 2.0))(1.0) == pytest.approx(-6)
    assert fnad.grad(lambda x: stats.gamma.cdf(x, 1.0))(0.0) == 1
    assert fnad.grad(lambda mu: stats.poisson.pmf(1, mu))(0.0) == 1
    assert fnad.grad(lambda mu: stats.poisson.pmf(0, mu))(0.0) == -1
    assert [fnad.grad(lambda p: stats.bernoulli.pmf(k, p))(0.0) for k in (0, 1)] == [-1, 1]  # noqa: B023
    assert fnad.grad(lambda p: stats.binom.pmf(1, 3, p))(0.0) == pytest.approx(3)
    assert fnad.grad(stats.laplace.logpdf)(0.0) == 0
    assert fnad.grad(stats.norm.logsf)(40.0) == pytest.approx(-40.025, rel=1e-4)


def test_a_masked_arm_stays_masked():
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, stats.gamma.logpdf(x, 2.0), 0.0))

    np.testing.assert_array_equal(fnad.grad(f)(np.array([-1.0, 0.0, 1.0])), [0, 0, 0])


# ---- of several variables --------------------------------------------------------------------------------------------

MEAN = np.array([0.3, -1.0, 0.5])
COV = np.array([[2.0, 0.3, -0.4], [0.3, 1.0, 0.2], [-0.4, 0.2, 1.5]])
POINTS = np.array([[0.0, 0.1, 0.2], [1.0, -2.0, 3.0]])


@pytest.mark.parametrize("method", DENSITIES)
@pytest.mark.parametrize(
    "arguments",
    [
        (POINTS, MEAN, COV),
        (POINTS[0], MEAN, COV),
        (POINTS[None], MEAN, COV),
        (POINTS, None, COV),
        (POINTS, MEAN),
        (POINTS, MEAN, 2.0),
        (POINTS, MEAN, np.array([1.0, 2.0, 3.0])),
        (POINTS[0], 0.5, 2.0),
        (np.array(0.7),),
    ],
    ids=lambda a: "-".join(str(np.shape(x)) for x in a),
)
def test_methods_of_multivariate_normal_are_scipys_with_gradients(method: str, arguments: tuple[Any, ...]):
    ours, scipys = both("multivariate_normal", method)
    given = {i: x for i, x in enumerate(arguments) if x is not None}

    def call(*xs: Any) -> Any:
        return ours(*[dict(zip(given, xs, strict=True)).get(i) for i in range(len(arguments))])

    found, expected = np.asarray(traced(call, *given.values())[0]), np.asarray(scipys(*arguments))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_derivatives_of_the_multivariate_normal():
    def f(x: Any, mean: Any, root: Any) -> Any:
        return stats.multivariate_normal.logpdf(x, mean, root @ root.T)

    root = np.linalg.cholesky(COV)
    us = (np.cos(POINTS), np.sin(MEAN), np.cos(root))
    h, error = step(EPS, 1)
    truth = difference(
        lambda x, mean, root: scipy.stats.multivariate_normal.logpdf(x, mean, root @ root.T),
        (POINTS, MEAN, root),
        us,
        h,
    )
    _, found = fnad.jvp(f, (POINTS, MEAN, root), us)
    np.testing.assert_allclose(found, truth.astype(float), rtol=100 * error)
    pulled = fnad.vjp(f, POINTS, MEAN, root)[1](np.array([1.0, -0.4]))
    inner = sum(np.sum(p * u) for p, u in zip(pulled, us, strict=True))
    assert inner == pytest.approx(found[0] - 0.4 * found[1], rel=1e-11)


def in_the_lower_triangle(symmetric: Any) -> Any:
    """Return the derivative of a function that reads the lower triangle, from that of one that reads both."""
    return 2 * np.tril(symmetric) - np.diag(np.diag(symmetric))


def test_gradient_of_the_covariance_is_in_the_triangle_that_is_read():
    found = fnad.grad(lambda c: stats.multivariate_normal.logpdf(POINTS[0], MEAN, c))(COV)
    whitened = np.linalg.solve(COV, POINTS[0] - MEAN)
    np.testing.assert_allclose(
        found, in_the_lower_triangle(np.outer(whitened, whitened) - np.linalg.inv(COV)) / 2, rtol=1e-12
    )
    found = fnad.grad(lambda c: stats.multivariate_normal.entropy(MEAN, c))(COV)
    np.testing.assert_allclose(found, in_the_lower_triangle(np.linalg.inv(COV)) / 2, rtol=1e-12)


FACTOR = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]])


def test_a_singular_covariance():
    cov = FACTOR @ FACTOR.T
    points = np.stack([FACTOR @ [1.0, -2.0], FACTOR @ [0.3, 0.1], np.ones(3)])
    for method, c in itertools.product(("pdf", "logpdf"), (cov, COV, cov.astype("f4"))):
        ours, scipys = both("multivariate_normal", method)
        found, _ = traced(lambda x, c: ours(x, None, c, allow_singular=True), points, c)  # noqa: B023
        np.testing.assert_allclose(
            found, scipys(points, None, c, allow_singular=True), rtol=1e-11 if c.dtype == "f8" else 1e-7
        )
    with pytest.raises(DomainError, match="positive semidefinite"):
        traced(lambda x: stats.multivariate_normal.logpdf(x, None, -COV, True), POINTS)


def test_derivatives_with_a_singular_covariance():
    logpdf = stats.multivariate_normal.logpdf
    for c in (COV, np.eye(3)):
        regular = fnad.grad(lambda x, c: logpdf(x, MEAN, c), (0, 1))(POINTS[0], c)
        for r, s in zip(regular, fnad.grad(lambda x, c: logpdf(x, MEAN, c, True), (0, 1))(POINTS[0], c), strict=True):
            np.testing.assert_allclose(s, r, rtol=1e-9, atol=1e-12)
    x, dx = FACTOR @ [1.0, -2.0], FACTOR @ [0.4, 0.7]

    def along(s, logpdf=logpdf):
        factor = FACTOR * (1 + s)
        return logpdf(x + s * dx, None, factor @ factor.T, allow_singular=True)

    scipys = partial(along, logpdf=scipy.stats.multivariate_normal.logpdf)
    truth = (8 * (scipys(1e-3) - scipys(-1e-3)) - scipys(2e-3) + scipys(-2e-3)) / 12e-3
    assert fnad.grad(along)(0.0) == pytest.approx(truth, rel=1e-8)


def test_what_the_multivariate_normal_refuses():
    with pytest.raises(UnsupportedFunctionError, match="has no rule for allow_singular, lower_limit and rng"):
        traced(lambda x: stats.multivariate_normal.cdf(x, MEAN, COV, lower_limit=MEAN), POINTS)
    with pytest.raises(UnsupportedFunctionError, match="of 3 variables is an integral over random points"):
        traced(lambda x: stats.multivariate_normal.cdf(x, np.zeros(3)), np.ones(3))
    with pytest.raises(np.linalg.LinAlgError):
        traced(lambda c: stats.multivariate_normal.logpdf(POINTS, MEAN, c), -COV)
    for mean, cov in ((COV, COV), (MEAN, COV[:2]), (MEAN, COV[:2, :2]), (MEAN, COV[None])):
        with pytest.raises(ShapeError):
            traced(lambda x: stats.multivariate_normal.logpdf(x, mean, cov), POINTS)  # noqa: B023


ALPHA = np.array([0.5, 2.0, 3.5])
SIMPLEX = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]).T


@pytest.mark.parametrize("method", DENSITIES)
@pytest.mark.parametrize("x", [SIMPLEX, SIMPLEX[:, 0], SIMPLEX[:2], SIMPLEX[:2, 0]], ids=lambda x: str(x.shape))
def test_densities_of_dirichlet_are_scipys(method: str, x: Any):
    ours, scipys = both("dirichlet", method)
    np.testing.assert_allclose(traced(ours, x, ALPHA)[0], scipys(x, ALPHA), rtol=1e-13)
    assert stats.dirichlet.entropy(ALPHA) == traced(stats.dirichlet.entropy, ALPHA)[0]


def test_derivatives_of_the_dirichlet_distribution():
    x, h = SIMPLEX[:2], step(EPS, 1)[0]
    us = (np.cos(x), np.sin(ALPHA))
    truth = difference(scipy.stats.dirichlet.logpdf, (x, ALPHA), us, h)
    np.testing.assert_allclose(fnad.jvp(stats.dirichlet.logpdf, (x, ALPHA), us)[1], truth.astype(float), rtol=1e-9)
    truth = difference(lambda a: np.asarray(scipy.stats.dirichlet.entropy(a)), (ALPHA,), us[1:], h)
    np.testing.assert_allclose(fnad.jvp(stats.dirichlet.entropy, (ALPHA,), us[1:])[1], float(truth), rtol=1e-9)


def test_a_density_of_zero_does_not_hide_its_derivative():
    x, alpha = np.array([0.0, 0.4, 0.6]), np.array([2.0, 2.0, 2.0])
    assert traced(lambda x: stats.dirichlet.pdf(x, alpha), x)[0] == 0
    assert np.isnan(fnad.grad(lambda x: stats.dirichlet.pdf(x, alpha))(x)[0])


@pytest.mark.parametrize(
    ("x", "alpha", "message"),
    [
        ([0.2, 0.3, 0.6], ALPHA, "must lie within the normal simplex"),
        ([-0.2, 0.6, 0.6], ALPHA, "must be between zero and one"),
        ([0.0, 0.5, 0.5], ALPHA, "must be greater than zero if its alpha"),
        ([0.2, 0.3, 0.5], -ALPHA, "All parameters must be greater than 0"),
    ],
)
def test_what_dirichlet_refuses(x: list[float], alpha: Any, message: str):
    for function in (scipy.stats.dirichlet.logpdf, lambda x, a: traced(stats.dirichlet.logpdf, x, a)):
        with pytest.raises(ValueError, match=r"simplex|entry|parameters"):
            function(np.array(x), alpha)
    with pytest.raises(DomainError, match=message):
        fnad.grad(stats.dirichlet.logpdf)(np.array(x), alpha)
    with pytest.raises(ShapeError, match="one dimensional"):
        traced(stats.dirichlet.logpdf, np.array(x), np.ones((3, 1)))
    with pytest.raises(ShapeError, match="same number of entries"):
        traced(stats.dirichlet.logpdf, np.ones(5) / 5, ALPHA)


# ---- compiled --------------------------------------------------------------------------------------------------------

COMPILED: dict[str, Callable[[Any], Any]] = {
    "regression": lambda w: np.sum(stats.norm.logpdf(POINTS @ w, 1.0, np.exp(w[0])) + stats.t.logpdf(POINTS @ w, 4.0)),
    "counts": lambda w: np.sum(
        stats.poisson.logpmf(np.arange(3), np.exp(w)) + stats.bernoulli.logpmf(1, 1 / (1 + w**2))
    ),
    "gamma and beta": lambda w: np.sum(
        stats.gamma.logpdf(2.0, w + 2, scale=2.0) + stats.beta.cdf(w * 0.2 + 0.5, 2.0, 3.0)
    ),
    "gaussian process": lambda w: stats.multivariate_normal.logpdf(POINTS[0], w, COV + np.outer(w, w)),
    "proportions": lambda w: stats.dirichlet.logpdf(np.exp(w) / np.sum(np.exp(w)), ALPHA),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_as_interpreted(name: str):
    w, results = np.array([0.3, -0.2, 0.7]), []
    for executor in ("interpreter", "compiled"):
        with fnad.config.override(executor=executor):
            results.append(fnad.value_and_grad(COMPILED[name])(w))
    (value, gradient), (compiled_value, compiled_gradient) = results
    assert compiled_value == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(compiled_gradient, gradient, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["gmean", "zscore", "hmean", "skew", "sem"])
def test_a_summary_of_no_sample_is_scipys(name: str) -> None:
    function = getattr(scipy.stats, name)
    for x in (np.empty(0), np.empty((0, 3))):
        np.testing.assert_array_equal(fnad.jit(lambda x: function(x))(x), function(x))


@pytest.mark.parametrize("name", ["pdf", "logpdf", "cdf", "sf", "ppf", "isf"])
@pytest.mark.parametrize("distribution", [scipy.stats.norm, scipy.stats.expon, scipy.stats.uniform])
def test_the_result_for_a_number_is_a_number(name: str, distribution: Any) -> None:
    for x in (np.float64(0.3), np.array(0.3)):
        found, expected = fnad.jit(getattr(distribution, name))(x), getattr(distribution, name)(x)
        assert type(found) is type(expected) is np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-14)
