"""scipy.integrate.quad and its relatives on traced values, against closed forms and mpmath."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
import scipy.stats
from scipy.integrate import IntegrationWarning, dblquad, fixed_quad, nquad, quad, quad_vec, tplquad
from scipy.optimize import brentq

import fnad
from fnad.errors import FnadError, NonScalarOutputError, ShapeError, UnsupportedFunctionError
from tests.together import together

T = 0.7


class Known(NamedTuple):
    """An integral, and its closed form, of which mpmath has derivatives."""

    function: Callable[[Any], Any]
    closed: Callable[[Any], Any]
    order: int = 2


CASES = [
    Known(lambda t: quad(lambda x: np.exp(-t * x), 0, np.inf)[0], lambda t: 1 / t),
    Known(
        lambda t: quad(lambda x, t: math.exp(-t * x * x), -math.inf, math.inf, (t,))[0],
        lambda t: mpmath.sqrt(mpmath.pi / t),
    ),
    Known(lambda t: quad(lambda x: math.exp(x), -np.inf, t)[0], mpmath.exp),
    Known(lambda t: quad(np.cos, t, t * t)[0], lambda t: mpmath.sin(t * t) - mpmath.sin(t)),
    Known(lambda t: quad(lambda x, s: s * x**t, 0, 1, args=(t,))[0], lambda t: t / (t + 1)),
    Known(lambda t: quad(lambda x: np.sin(t * x), 0, t, epsabs=1e-12)[0], lambda t: (1 - mpmath.cos(t * t)) / t),
    Known(lambda t: quad(lambda x: 1.0, t, 2.0)[0], lambda t: 2 - t),
    Known(lambda t: quad(lambda x: t, 0, t)[0], lambda t: t * t),
    Known(lambda t: quad(lambda x: abs(x - t), 0, 1, points=[t])[0], lambda t: t * t / 2 + (1 - t) ** 2 / 2, 1),
    Known(lambda t: quad(lambda x: np.maximum(x - t, 0.0), 0, 1)[0], lambda t: (1 - t) ** 2 / 2, 1),
    Known(lambda t: quad(lambda x: np.where(x > t, (x - t) ** 2, 0.0), 0, 1)[0], lambda t: (1 - t) ** 3 / 3, 2),
    Known(lambda t: quad(lambda x: scipy.stats.expon.pdf(x, scale=t) * x, 0, np.inf)[0], lambda t: t, 2),
    Known(lambda t: quad(lambda x: np.log(x) * t**2, 0, 1)[0], lambda t: -(t**2)),
    Known(lambda t: dblquad(lambda y, x: t * x * y**2, 0, t, 0, lambda x: t * x)[0], lambda t: t**9 / 15),
    Known(
        lambda t: tplquad(lambda z, y, x, s: s * z, 0, t, 0, lambda x: t, 0, lambda x, y: x * y, args=(t,))[0],
        lambda t: t**7 / 18,
        2,
    ),
    Known(
        lambda t: nquad(lambda x, y: np.exp(t * x + y), [lambda y: (0, y), (0, 1)])[0],
        lambda t: ((mpmath.exp(t + 1) - 1) / (t + 1) - mpmath.e + 1) / t,
        2,
    ),
    Known(lambda t: quad_vec(lambda x: np.exp(-t * x) * np.ones(2), 0, np.inf)[0][1], lambda t: 1 / t),
    Known(
        lambda t: quad_vec(lambda x: np.sin(t * x), 0, t, points=[0.2 * t])[0], lambda t: (1 - mpmath.cos(t * t)) / t
    ),
    Known(
        lambda t: quad_vec(lambda x, s: np.array([[s, x**s], [0.0, x]]), 0, t, norm="max", args=(t,))[0][0, 1],
        lambda t: t ** (t + 1) / (t + 1),
        2,
    ),
    Known(lambda t: fixed_quad(lambda x: t * x**3, 0, t)[0], lambda t: t**5 / 4),
]


@pytest.mark.slow
def test_derivatives_are_those_of_closed_forms() -> None:
    with together() as named, warnings.catch_warnings():
        warnings.simplefilter("ignore", IntegrationWarning)  # of a kink that is not announced
        for i, case in enumerate(CASES):
            derivative = case.function
            for order in range(case.order + 1):
                with named(f"{i}, order {order}"), mpmath.workdps(30):
                    expected = float(mpmath.diff(case.closed, T, order))
                    np.testing.assert_allclose(derivative(T), expected, rtol=1e-7, atol=1e-7)
                derivative = fnad.grad(derivative)


def test_in_forward_mode_on_stacks_and_compiled() -> None:
    """In one compiled program, at another point than the one it was traced at."""

    def every(t: Any) -> Any:
        tangents = [fnad.jvp(fnad.grad(case.function), (t,), (1e-9,))[1] for case in CASES[:8]]
        return tangents, fnad.vmap(fnad.grad(CASES[0].function))(t * np.arange(1.0, 4.0))

    compiled = fnad.jit(every)
    compiled(1.1)
    with fnad.config.override(executor="compiled"):
        found, rows = compiled(T)
    with mpmath.workdps(30):
        expected = [1e-9 * float(mpmath.diff(case.closed, T, 2)) for case in CASES[:8]]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-16)
    np.testing.assert_allclose(rows, -1 / (T * np.arange(1.0, 4.0)) ** 2, rtol=1e-9)


def test_an_infinite_limit_that_is_traced_does_not_move() -> None:
    gauss = lambda a, b: quad(lambda x: np.exp(-x * x), a, b)[0]  # noqa: E731
    np.testing.assert_allclose(fnad.grad(gauss, (0, 1))(0.3, np.inf), (-np.exp(-0.09), 0.0), rtol=1e-12)
    np.testing.assert_allclose(fnad.grad(gauss, (0, 1))(-np.inf, 0.2), (0.0, np.exp(-0.04)), rtol=1e-12)


def test_a_gradient_in_many_elements_takes_one_evaluation_at_each_place() -> None:
    w, v = np.linspace(0.1, 1.0, 40), np.sin(np.arange(40.0))
    f = lambda w: quad(lambda x: np.sum(np.cos(w * x)), 0, 1)[0]  # noqa: E731
    np.testing.assert_allclose(fnad.grad(f)(w), np.cos(w) / w - np.sin(w) / w**2, rtol=1e-10)
    second = 2 * np.sin(w) / w**3 - 2 * np.cos(w) / w**2 - np.sin(w) / w
    np.testing.assert_allclose(fnad.jvp(fnad.grad(f), (w,), (1e-12 * v,))[1], 1e-12 * v * second, rtol=1e-7)


def test_value_and_error_are_scipys() -> None:
    assert fnad.jit(lambda t: quad(lambda x: np.exp(t * x), 0, 1))(T) == quad(lambda x: np.exp(T * x), 0, 1)
    assert fnad.grad(lambda t: quad(lambda x: np.exp(t * x), 0, 1)[1])(T) == 0.0
    rows = lambda t: quad_vec(lambda x: np.exp(x * np.array([[t], [-t]])), 0, 1)  # noqa: E731
    np.testing.assert_array_equal(fnad.jit(lambda t: rows(t)[0])(T), rows(T)[0])
    assert fnad.jit(lambda t: rows(t)[1])(T) == rows(T)[1]
    assert fnad.grad(lambda t: t * quad(lambda x: 2 * x if x > 0.5 else 0.0, 0, 1, full_output=True)[0])(T) == 0.75


def test_where_the_integrand_jumps_at_a_place_that_moves_there_is_no_derivative() -> None:
    over = lambda f: quad(f, 0, 1, limit=3)[0]  # noqa: E731
    jumping: list[tuple[Callable[[Any], Any], int]] = [
        (lambda t: over(lambda x: np.where(x > t, 1.0, 0.0)), 1),
        (lambda t: over(lambda x: np.where(x > t, x * x, 0.0)), 1),
        (lambda t: over(lambda x: np.floor(5 * x * t)), 1),
        (lambda t: over(lambda x: np.mod(3 * x, t)), 1),
        (lambda t: over(lambda x: np.fmod(3 * x, t)), 1),
        (lambda t: over(lambda x: np.copysign(x, x - t)), 1),
        (lambda t: over(lambda x: np.sign(x - t)), 1),
        (lambda t: over(lambda x: np.array([1.0, 3.0])[np.argmax(np.array([t, x]))]), 1),
        (lambda t: over(lambda x: scipy.stats.uniform.pdf(x, 0.0, t)), 1),
        (lambda t: over(lambda x: abs(x - t)), 2),
        (lambda t: over(lambda x: np.maximum(x - t, 0.0)), 2),
        (lambda t: over(lambda x: np.clip(x, 0.2, t)), 2),
        (lambda t: nquad(lambda y, x: np.where(y > t * x, 1.0, 0.0), [(0, 1)] * 2, opts={"limit": 2})[0], 1),
        (lambda t: over(lambda x: fnad.fori_loop(0, 3, lambda i, s: np.where(x > t, s + 1, s), 0.0)), 1),
    ]
    with together() as named, warnings.catch_warnings():
        warnings.simplefilter("ignore", IntegrationWarning)
        for i, (f, order) in enumerate(jumping):
            for mode in (fnad.grad, lambda f: lambda t, f=f: fnad.jvp(f, (t,), (1.0,))[1]):
                derivative = f
                for _ in range(order):
                    derivative = mode(derivative)
                with named(i), pytest.raises(UnsupportedFunctionError, match="integrate the parts on either side"):
                    derivative(T)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (UnsupportedFunctionError, "option weight=", lambda t: quad(lambda x: t * x, 0, 1, weight="cos", wvar=3.0)),
        (UnsupportedFunctionError, "option full_output=", lambda t: quad(lambda x: t * x, 0, 1, full_output=True)),
        (NonScalarOutputError, "returns one real number", lambda t: quad(lambda x: np.array([t, x]), 0, 1)),
        (NonScalarOutputError, "returns one real number", lambda t: quad(lambda x: 1j * t, 0, 1)),
        (ShapeError, r"f64\[2\], not a number", lambda t: quad(lambda x: t, np.zeros(2), 1)),
        (UnsupportedFunctionError, "option workers=", lambda t: quad_vec(lambda x: t * x, 0, 1, workers=2)),
        (NonScalarOutputError, "an array of real numbers", lambda t: quad_vec(lambda x: 1j * t * x, 0, 1)),
        (
            UnsupportedFunctionError,
            "jumps at x = 0.7",
            lambda t: quad_vec(lambda x: np.where(x > t, 1.0, [t, 0]), 0, 1)[0],
        ),
        (FnadError, "choose with fnad.cond", lambda t: quad(lambda x: x if x > t else 0.0, 0, 1)),
        (FnadError, "choose with fnad.cond", lambda t: quad(lambda x: 0.0 if x < 0.5 or x > t else 1.0, 0, 1)),
        (FnadError, "choose with fnad.cond", lambda t: quad(lambda x: 0.0 if x < 0.5 else t, 0, 1)),
        (FnadError, "choose with fnad.cond", lambda t: [brentq(lambda x: 1.0 if x > t else -1.0, 0, 1)]),
    ],
)
def test_what_has_no_rule_says_so(error: type[Exception], message: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(error, match=message) as caught:
        fnad.grad(lambda t: call(t)[0])(T)
    assert "test_quadrature.py" in str(caught.value)
