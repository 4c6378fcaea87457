"""odeint against the matrix exponential, closed forms and SciPy, its derivatives both ways, and its errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from scipy.linalg import expm

import fnad
import fnad.scipy.integrate
from fnad.errors import (
    ArgumentTypeError,
    ConvergenceError,
    DomainError,
    DtypeError,
    ShapeError,
    StructureError,
    TracerEscapeError,
    UnsupportedFunctionError,
)

adjoints = pytest.mark.parametrize("adjoint", ["discrete", "continuous"])

A = np.array([[-0.3, 1.0], [-1.0, -0.1]])
Y0 = np.array([1.0, 0.5])
TIMES = {
    "forwards and repeated": np.array([0.0, 0.0, 0.5, 1.7, 1.7]),
    "backwards": np.array([1.0, 0.8, -0.5]),
    "one": np.array([1.0]),
}
times = pytest.mark.parametrize("name", TIMES)


def linear(a: Any, y0: Any, t: Any, adjoint: str, tol: float = 1e-11) -> Any:
    return fnad.odeint(lambda y, t, a: a @ y, y0, t, a, rtol=tol, atol=tol, adjoint=adjoint)


def exact(a: Any, y0: Any, t: Any) -> Any:
    return np.stack([expm(a * (end - t[0])) @ y0 for end in t])


def complex_step(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient of an analytic function."""
    steps = 1e-30j * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([np.imag(f(x + step)) / 1e-30 for step in steps]).reshape(x.shape)


# ---- against closed forms --------------------------------------------------------------------------------------------


@pytest.mark.slow
@adjoints
@times
def test_solution_of_a_linear_equation_and_its_derivatives_are_exact(name: str, adjoint: str) -> None:
    t = TIMES[name]
    weights = np.cos(np.arange(2 * len(t))).reshape(-1, 2)

    def loss(a: Any, y0: Any, t: Any) -> Any:
        return np.sum(weights * linear(a, y0, t, adjoint))

    def exact_loss(a: Any, y0: Any, t: Any) -> Any:
        return np.sum(weights * exact(a, y0, t))

    np.testing.assert_allclose(linear(A, Y0, t, adjoint), exact(A, Y0, t), rtol=0, atol=2e-10)
    gradient = fnad.grad(loss, argnums=(0, 1, 2))(A, Y0, t)
    expected = [
        complex_step(lambda a: exact_loss(a, Y0, t), A),
        complex_step(lambda y0: exact_loss(A, y0, t), Y0),
        complex_step(lambda t: exact_loss(A, Y0, t), t),
    ]
    for found, wanted in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-8)
    direction = np.array([[0.1, 0.2], [0.3, -0.4]]), np.array([1.0, -2.0]), np.sin(np.arange(len(t)))
    tangent = fnad.jvp(loss, (A, Y0, t), direction)[1]
    np.testing.assert_allclose(tangent, sum(np.sum(g * d) for g, d in zip(expected, direction, strict=True)), atol=1e-7)


@pytest.mark.slow
@adjoints
def test_second_derivatives_in_all_nestings(adjoint: str) -> None:
    """y = exp(s (t - t₀)): of s -> y at s t it is known."""
    t = np.array([0.2, 1.1])

    def f(s: Any) -> Any:
        return fnad.odeint(lambda y, t: s * y, 1.0, s * t, rtol=1e-9, atol=1e-9, adjoint=adjoint)[-1]

    value = np.exp(0.9 * 1.3**2)
    first, second = 1.8 * 1.3 * value, (1.8 + (1.8 * 1.3) ** 2) * value
    forward = lambda g: lambda s: fnad.jvp(g, (s,), (1.0,))[1]  # noqa: E731
    np.testing.assert_allclose([f(1.3), fnad.grad(f)(1.3), forward(f)(1.3)], [value, first, first], rtol=1e-7)
    nested = [outer(inner(f))(1.3) for outer in (fnad.grad, forward) for inner in (fnad.grad, forward)]
    np.testing.assert_allclose(nested, [second] * 4, rtol=1e-6)


@pytest.mark.slow
@adjoints
def test_time_in_the_equation(adjoint: str) -> None:
    """y' = k y cos t has y = exp(k sin t)."""

    def f(k: Any, end: Any) -> Any:
        return fnad.odeint(lambda y, t: k * np.cos(t) * y, 1.0, [0.0, end], adjoint=adjoint)[-1]

    value = np.exp(2 * np.sin(1.5))
    np.testing.assert_allclose(f(2.0, 1.5), value, rtol=1e-7)
    slopes = fnad.grad(f, argnums=(0, 1))(2.0, 1.5)
    np.testing.assert_allclose(slopes, [np.sin(1.5) * value, 2 * np.cos(1.5) * value], rtol=1e-6)


# ---- against SciPy ---------------------------------------------------------------------------------------------------


def lotka_volterra(y: Any, t: Any, p: Any) -> Any:
    hare, lynx = y
    return np.array([p[0] * hare - p[1] * hare * lynx, -p[2] * lynx + p[3] * hare * lynx])


def lotka_volterra_traced(y: Any, t: Any, p: Any) -> Any:
    return np.stack([p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]])


def by_scipy(p: Any, t: Any) -> Any:
    found = scipy.integrate.solve_ivp(
        lambda t, y: lotka_volterra(y, t, p), (t[0], t[-1]), [30.0, 4.0], "DOP853", t, rtol=1e-12, atol=1e-12
    )
    return found.y.T


@pytest.mark.slow
@adjoints
def test_predators_and_prey(adjoint: str) -> None:
    p, t = np.array([0.5, 0.028, 0.84, 0.026]), np.linspace(0, 6, 4)

    def f(p: Any) -> Any:
        y = fnad.odeint(lotka_volterra_traced, np.array([30.0, 4.0]), t, p, rtol=1e-10, atol=1e-10, adjoint=adjoint)
        return np.sum(np.log(y))

    np.testing.assert_allclose(f(p), np.sum(np.log(by_scipy(p, t))), rtol=1e-9)
    steps = np.diag(p * 1e-4)
    differences = [
        (8 * (g(p + h) - g(p - h)) - (g(p + 2 * h) - g(p - 2 * h))) / (12 * h.sum())
        for h in steps
        for g in [lambda p: np.sum(np.log(by_scipy(p, t)))]
    ]
    np.testing.assert_allclose(fnad.grad(f)(p), differences, rtol=1e-6)
    np.testing.assert_allclose(fnad.jvp(f, (p,), (p,))[1], differences @ p, rtol=1e-6)


@pytest.mark.slow
@adjoints
def test_derivative_is_as_precise_as_the_solution(adjoint: str) -> None:
    for tol in (1e-4, 1e-6, 1e-8, 1e-10):

        def f(k: Any, tol: float = tol) -> Any:
            return fnad.odeint(lambda y, t: -k * y, 1.0, [0, 1], rtol=tol, atol=tol, adjoint=adjoint)[-1]

        slopes = fnad.jvp(f, (2.0,), (1.0,))[1], fnad.grad(f)(2.0)
        np.testing.assert_allclose(slopes, -np.exp(-2), rtol=0, atol=20 * tol)


def van_der_pol(y: Any, t: Any, mu: Any) -> Any:
    return np.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


@pytest.mark.slow
def test_continuous_adjoint_of_a_damped_equation_takes_close_times_or_ends_in_an_error() -> None:
    def f(mu: Any, count: int, adjoint: str) -> Any:
        return fnad.odeint(van_der_pol, np.array([2.0, 0.0]), np.linspace(0, 15, count), mu, adjoint=adjoint)[-1, 0]

    gradient = fnad.jit(fnad.grad(f), static_argnums=(1, 2))
    with fnad.config.override(executor="compiled"):
        expected = gradient(5.0, 4, "discrete")
        np.testing.assert_allclose(gradient(5.0, 61, "continuous"), expected, rtol=1e-5)
        with raises(ConvergenceError, "odeint did not come to the next time"):
            gradient(5.0, 4, "continuous")


# ---- what it takes and returns ---------------------------------------------------------------------------------------


@pytest.mark.slow
@adjoints
def test_odeint_solves_for_a_pytree(adjoint: str) -> None:
    def swing(y: Any, t: Any, w: Any) -> Any:
        return {"q": y["p"], "p": -w["w"] * y["q"]}

    def f(w: Any) -> Any:
        y0 = {"q": np.ones((2, 1)), "p": np.zeros((2, 1))}
        return fnad.odeint(swing, y0, np.array([0.0, 1.0, 2.0]), {"w": w}, adjoint=adjoint)

    y = f(4.0)
    assert list(y) == ["q", "p"]
    assert y["q"].shape == (3, 2, 1)
    np.testing.assert_allclose(y["q"][:, 0, 0], np.cos([0, 2, 4]), atol=1e-6)
    slope = fnad.grad(lambda w: f(w)["q"][1, 0, 0])(4.0)
    np.testing.assert_allclose(slope, -np.sin(2) / 4, atol=1e-6)


@pytest.mark.slow
@adjoints
def test_odeint_stays_in_single_precision(adjoint: str) -> None:
    def f(k: Any) -> Any:
        return fnad.odeint(lambda y, t: k * np.cos(t) * y, np.float32([1]), [0.0, 1.0], adjoint=adjoint)[-1, 0]

    value = np.exp(np.sin(1.0))
    found, slope = fnad.value_and_grad(f)(np.float32(1))
    assert found.dtype == slope.dtype == np.float32
    np.testing.assert_allclose([found, slope], [value, np.sin(1.0) * value], rtol=1e-4)


@pytest.mark.slow
@adjoints
def test_single_precision_with_numbers_of_python(adjoint: str) -> None:
    """A number gives way to float32 beside it, and its gradient is its own."""
    y0, t = np.float32([1, 2]), np.linspace(0.0, 0.5, 3)

    def f(k: float, t: Any) -> Any:
        return np.sum(fnad.odeint(lambda y, _, k: -k * y, y0, t, k, adjoint=adjoint)[-1])

    rate, last = 1.5, 3.0 * np.exp(-0.75)
    found, to_rate = fnad.value_and_grad(f)(rate, t)
    assert found.dtype == np.float32
    np.testing.assert_allclose([found, to_rate], [last, -0.5 * last], rtol=2e-5)
    np.testing.assert_allclose(fnad.grad(f, 1)(rate, t), [rate * last, 0, -rate * last], rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(fnad.jvp(lambda k: f(k, t), (rate,), (1.0,))[1], -0.5 * last, rtol=2e-5)


def test_dtypes_are_promoted() -> None:
    rate = np.array([-1.0])
    assert fnad.odeint(lambda y, t: rate * y, np.float32([1]), [0.0, 1.0]).dtype == np.float64
    assert fnad.odeint(lambda y, t: -0.5 * y, 1, [0, 1]).dtype == np.float64


def test_odeint_of_an_empty_state_is_empty() -> None:
    assert fnad.odeint(lambda y, t: y, (), [0.0, 1.0]) == ()
    assert fnad.odeint(lambda y, t: y, np.zeros((0, 2)), [0.0, 1.0, 2.0]).shape == (3, 0, 2)


@adjoints
def test_times_that_are_traced(adjoint: str) -> None:
    f = lambda end: fnad.odeint(lambda y, t: -y, 1.0, [0.0, end], adjoint=adjoint)[-1]  # noqa: E731
    np.testing.assert_allclose(fnad.grad(f)(1.0), -np.exp(-1), rtol=1e-6)


@pytest.mark.slow
@adjoints
def test_compiled_twice_and_unchanged(adjoint: str) -> None:
    f = fnad.jit(fnad.value_and_grad(lambda a, y0, t: np.sum(linear(a, y0, t, adjoint))))
    times = TIMES["backwards"]
    a, y0, t = A.copy(), Y0.copy(), times.copy()
    with fnad.config.override(executor="compiled"):
        first, second, others = f(a, y0, t), f(a, y0, t), f(2 * a, y0, t)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    for given, kept in ((a, A), (y0, Y0), (t, times)):
        np.testing.assert_array_equal(given, kept)
    np.testing.assert_allclose(others[0], np.sum(exact(2 * A, Y0, t)), rtol=1e-8)


def test_solution_that_stands_still_and_one_that_starts_at_zero() -> None:
    np.testing.assert_array_equal(fnad.odeint(lambda y, t: y * 0, 0.0, [0.0, 1.0, 7.0]), [0, 0, 0])
    np.testing.assert_allclose(fnad.odeint(lambda y, t: y * 0 + 1, 0.0, [0.0, 1.0, 7.0]), [0, 1, 7], atol=1e-12)


def test_no_evaluation_beyond_the_last_time() -> None:
    """√(1 - t) is a nan after it."""
    y = fnad.odeint(lambda y, t: np.sqrt(1 - t) + 0 * y, 0.0, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(y, [0, 2 / 3 * (1 - 0.5**1.5), 2 / 3], rtol=1e-6)


# ---- SciPy's signature -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_signature_of_scipy() -> None:
    t = np.linspace(0, 2, 5)
    pendulum = lambda y, t, b, c: [y[1], -b * y[1] - c * np.sin(y[0])]  # noqa: E731
    given = pendulum, [2, 0], t, (0.25, 5.0)
    expected = scipy.integrate.odeint(*given)
    np.testing.assert_allclose(fnad.scipy.integrate.odeint(*given), expected, atol=1e-6)
    flipped = lambda t, y, b, c: pendulum(y, t, b, c)  # noqa: E731
    np.testing.assert_allclose(fnad.scipy.integrate.odeint(flipped, *given[1:], tfirst=True), expected, atol=1e-6)

    def end(b: Any) -> Any:
        return fnad.scipy.integrate.odeint(pendulum, [2, 0], t, (b, 5.0), rtol=1e-10, atol=1e-10)[-1, 0]

    np.testing.assert_allclose(fnad.grad(end)(0.25), (end(0.2501) - end(0.2499)) / 2e-4, rtol=1e-6)


def test_a_number_is_one_row_element() -> None:
    assert fnad.scipy.integrate.odeint(lambda y, t: -y, 1, [0, 1]).shape == (2, 1)
    with raises(ConvergenceError, "max_steps=3"):
        fnad.scipy.integrate.odeint(lambda y, t: -y, 1, [0, 9], mxstep=3)


@pytest.mark.parametrize("where", ["y0", "args", "around"])
def test_scipy_by_its_own_name(where: str) -> None:
    calls = {
        "y0": lambda x: scipy.integrate.odeint(lambda y, t: -y, x, [0, 1]),
        "args": lambda x: scipy.integrate.odeint(lambda y, t, k: -k * y, 1.0, [0, 1], (x,)),
        "around": lambda x: scipy.integrate.odeint(lambda y, t: -x * y, 1.0, [0, 1]),
    }
    expected = np.exp(-1.0) if where == "y0" else -np.exp(-1.0)
    np.testing.assert_allclose(fnad.grad(lambda x: calls[where](x)[-1, 0])(1.0), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "solve", [scipy.optimize.fmin_slsqp, lambda f, x: scipy.optimize.fmin_tnc(f, x, approx_grad=True)]
)
def test_other_solvers_of_scipy_are_errors_that_name_the_way_out(solve: Callable[..., Any]) -> None:
    with raises(TracerEscapeError, "SciPy computes on ordinary arrays: use scipy.optimize.minimize"):
        fnad.grad(lambda x: solve(lambda y: np.sum((y - x) ** 2), [1.0])[0])(1.0)


# ---- what does not work ----------------------------------------------------------------------------------------------


def raises(kind: type[Exception], *parts: str) -> Any:
    return pytest.raises(kind, match="(?s)" + ".*".join(map(re.escape, parts)))


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_a_pole_and_too_few_steps(executor: Any) -> None:
    for f, options in (
        (lambda y, t: y * y, {}),
        (lambda y, t: y + np.nan, {}),
        (lambda y, t: -y, {"max_steps": 3}),
    ):
        solve = fnad.jit(lambda y0, f=f, options=options: fnad.odeint(f, y0, [0.0, 2.0], **options))
        with (
            fnad.config.override(executor=executor),
            raises(ConvergenceError, "odeint did not come to the next time in max_steps=", "or its steps vanished"),
        ):
            solve(1.0)


def test_times_that_turn_back() -> None:
    for t in ([0.0, 1.0, 0.5], [0.0, -1.0, -0.5]):
        with raises(DomainError, "the times of odeint go up and down", "sort them"):
            fnad.odeint(lambda y, t: -y, 1.0, t)


def test_odeint_refuses_a_slope_of_another_structure() -> None:
    with raises(StructureError, "the result of <lambda> (test_ode.py:", ") is (*, *), and y0 is *", "at test_ode.py"):
        fnad.odeint(lambda y, t: (y, y), 1.0, [0.0, 1.0])
    with raises(StructureError, "y0['b'] is f64[3]", "f64[2]", "test_ode.py"):
        fnad.odeint(lambda y, t: {"b": y["b"][:2]}, {"b": np.zeros(3)}, [0.0, 1.0])


def test_odeint_refuses_unsuitable_arguments_by_name() -> None:
    decay = lambda y, t: -y  # noqa: E731
    for y0, name in ((1, "y0 is i64[]"), (np.ones(2, complex), "y0 is c128[2]")):
        with raises(DtypeError, name, "start with floats"):
            fnad.odeint(decay, y0, [0.0, 1.0])
    for t in (1.0, np.zeros((2, 2)), np.zeros(0)):
        with raises(ShapeError, "t is f64", "times along one axis"):
            fnad.odeint(decay, 1.0, t)
    with raises(DtypeError, "t is c128[1], and times are real"):
        fnad.odeint(decay, 1.0, np.ones(1, complex))
    for options, what in (
        ({"adjoint": "both"}, "adjoint is 'both'"),
        ({"rtol": -1.0}, "rtol of odeint is -1.0"),
        ({"max_steps": 0}, "max_steps of odeint is 0"),
    ):
        with raises(ArgumentTypeError, what):
            fnad.odeint(decay, 1.0, [0.0, 1.0], **options)  # type: ignore[arg-type]


def test_continuous_adjoint_in_a_complex_value() -> None:
    def f(z: Any) -> Any:
        return fnad.odeint(lambda y, t: -np.abs(z) * y, 1.0, [0.0, 1.0], adjoint="continuous")[-1]

    with raises(UnsupportedFunctionError, "continuous adjoint of odeint", "c128", 'adjoint="discrete"'):
        fnad.grad(f)(1.0 + 1j)
