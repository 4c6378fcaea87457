"""Derivatives of draws in the parameters of their distributions."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad import errors, random

KEY = random.key(3)


def test_uniform_draws_move_with_their_bounds():
    unit = random.uniform(KEY, (5,))
    _, pull = fnad.vjp(lambda low, high: random.uniform(KEY, (5,), minval=low, maxval=high), -1.0, np.full(5, 2.0))
    low_ct, high_ct = pull(np.ones(5))
    assert_allclose(low_ct, np.sum(1 - unit), rtol=1e-15)
    assert_allclose(high_ct, unit, rtol=1e-15)


def test_scaled_normal_draws_move_with_mean_and_deviation():
    z = random.normal(KEY, (4,))
    gradient = fnad.grad(lambda m, s: np.sum(m + s * random.normal(KEY, (4,))), argnums=(0, 1))(1.0, 2.0)
    assert_allclose(gradient, (4.0, np.sum(z)), rtol=1e-15)


@pytest.mark.parametrize("draw", [random.normal, random.uniform, random.bits])
def test_there_is_no_derivative_in_a_key(draw):
    with pytest.raises(errors.NonDifferentiableArgumentError):
        fnad.grad(lambda k: np.sum(draw(k, (3,)) * 1.0))(KEY)


# ---- gamma -----------------------------------------------------------------------------------------------------------


def quantile_slopes(a: float, x: float) -> tuple[float, float]:
    """Return dx/da and d²x/da² at a fixed value of the distribution function, by differences of its inverse."""
    with mpmath.workdps(50):
        h, start = mpmath.mpf(10) ** -12, mpmath.mpf(float(x))
        p = mpmath.gammainc(a, 0, start, regularized=True)

        def quantile(shape: mpmath.mpf) -> mpmath.mpf:
            return mpmath.findroot(lambda t: mpmath.gammainc(shape, 0, t, regularized=True) - p, start)

        below, above = quantile(a - h), quantile(a + h)
        return float((above - below) / (2 * h)), float((above - 2 * start + below) / h**2)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("a", [0.3, 0.9, 1.0, 2.5, 20.0])
def test_a_gamma_draw_moves_as_the_quantile(a, compiled):
    gradient = fnad.grad(lambda a: np.sum(random.gamma(KEY, a)))
    shapes = np.full(4, a)
    found = (fnad.jit(gradient) if compiled else gradient)(shapes)
    expected = [quantile_slopes(a, x)[0] for x in random.gamma(KEY, shapes)]
    assert_allclose(found, expected, rtol=1e-9)


def test_the_slope_at_shape_one_in_closed_form():
    """At a = 1 the density is exp(-x), and -∂P/∂a is -∫ log t exp(-t) dt over (0, x), less Euler's constant times P."""
    x = float(random.gamma(KEY, 1.0))
    integral = mpmath.quad(lambda t: mpmath.log(t) * mpmath.exp(-t), [0, x])
    expected = -(integral + mpmath.euler * (1 - mpmath.exp(-x))) * mpmath.exp(x)
    assert_allclose(fnad.grad(lambda a: random.gamma(KEY, a))(1.0), float(expected), rtol=1e-11)


def test_second_derivatives_of_gamma_draws():
    def square(a):
        return random.gamma(KEY, a) ** 2

    x = random.gamma(KEY, 2.5)
    slope, curvature = quantile_slopes(2.5, x)
    assert_allclose(fnad.jvp(square, (2.5,), (1.0,))[1], 2 * x * slope, rtol=1e-9)
    assert_allclose(fnad.grad(square)(2.5), 2 * x * slope, rtol=1e-9)
    assert_allclose(fnad.grad(fnad.grad(square))(2.5), 2 * (slope**2 + x * curvature), rtol=1e-8)


def test_gradients_of_an_expectation_are_unbiased():
    """E x = a and E x² = a (a + 1): their slopes, from draws."""
    a, n = 1.7, 4000
    moments = fnad.jit(fnad.grad(lambda a: np.mean(random.gamma(KEY, a, (n,)))))(a)
    squares = fnad.jit(fnad.grad(lambda a: np.mean(random.gamma(KEY, a, (n,)) ** 2)))(a)
    assert abs(moments - 1.0) < 0.05
    assert abs(squares - (2 * a + 1)) < 0.4


def test_single_precision_parameters_have_single_precision_derivatives():
    a = np.float32(2.0)
    found = fnad.grad(lambda a: random.gamma(KEY, a, dtype=np.float32))(a)
    assert found.dtype == np.float32
    assert_allclose(found, quantile_slopes(2.0, random.gamma(KEY, 2.0))[0], rtol=1e-6)


def test_a_draw_that_underflows_stays_at_zero():
    value, slope = fnad.value_and_grad(lambda a: np.sum(random.gamma(KEY, a, (50,))))(1e-4)
    assert np.isfinite(value)
    assert np.isfinite(slope)


@pytest.mark.parametrize("a", [0.0, -0.5, -3.0, np.nan, -np.inf])
def test_a_traced_shape_that_there_is_not_gives_nan(a):
    assert_array_equal(fnad.jit(lambda a: random.gamma(KEY, a, (3,)))(a), np.full(3, np.nan))
