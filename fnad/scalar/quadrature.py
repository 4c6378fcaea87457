"""Slopes of any order of the incomplete gamma and beta functions in their parameters, by quadrature.

The functions are integrals of densities, whose slopes in a parameter are the densities times polynomials of log t:

    ∂P/∂a = ∫ γ(t) (log t - ψ(a)) dt over (0, x),           γ(t) = t**(a-1) exp(-t) / Γ(a)
    ∂I/∂a = ∫ β(t) (log t - ψ(a) + ψ(a+b)) dt over (0, x),  β(t) = t**(a-1) (1-t)**(b-1) / B(a, b)

Over all t they vanish, so that beyond the mean it is minus the integral over the rest that is taken: there, as below
it, the density falls. With t = x exp(-s), t = x + s and logit t = logit x - s these integrals extend over s > 0. With
s = h exp(π/2 sinh τ) the trapezoidal rule converges exponentially (Takahasi & Mori, Publ. RIMS 9 (1974), 721); h is
about the length over which the density falls. For x <= 1 the series of P is shorter. Against fifty digits the error of
first slopes is below 1e-12 for parameters from 1e-3 to 1e3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from fnad.scalar.scipy_ufunc import scipy_function

Array: TypeAlias = Any
Orders: TypeAlias = tuple[int, ...]
"""The orders of differentiation with respect to each parameter."""

TINY, HUGE = 1e-300, 1e300
SMALL = 1e-100
"""A parameter to which the slope of P is that at 0, within rounding; a density there is not 0."""
LARGE = 1000.0
TERMS = 30
BLOCK = 1024
STEP = 1 / 30
TAUS = np.arange(-120, 97) * STEP
NODES = np.exp(math.pi / 2 * np.sinh(TAUS))
WEIGHTS = STEP * math.pi / 2 * np.cosh(TAUS) * NODES


def differentiated(orders: Orders, density: Any, times: Callable[[Orders, Any], Any]) -> Any:
    """The derivative of a density in its parameters; `times` multiplies by a derivative of its logarithm.

    For f = exp(g) it is Leibniz' rule on ∂f = f ∂g. What multiplies may be arrays or symbols.
    """
    axis = next((i for i, n in enumerate(orders) if n), None)
    if axis is None:
        return density
    lower = _moved(orders, axis, -1)
    terms: list[Any] = []
    for inner in product(*[range(n + 1) for n in lower]):
        outer = tuple(n - k for n, k in zip(lower, inner, strict=True))
        ways = math.prod(map(math.comb, lower, inner))
        terms.append(float(ways) * times(_moved(inner, axis, 1), differentiated(outer, density, times)))
    return sum(terms[1:], terms[0])


def _moved(orders: Orders, axis: int, by: int) -> Orders:
    return tuple(n + by * (i == axis) for i, n in enumerate(orders))


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma (DLMF 25.11.12)."""
    if n == 0:
        return scipy_function("psi")(x)
    return (-1.0) ** (n + 1) * math.factorial(n) * scipy_function("_zeta")(n + 1.0, x)


# ---- quadrature --------------------------------------------------------------------------------------------------


def integral(integrand: Callable[[Array], Array], length: Array) -> Array:
    """The integral over s > 0 of a function of s, of columns, that falls over a length."""
    terms = integrand(length * NODES)
    return length * np.sum(np.where(np.isfinite(terms), WEIGHTS * terms, 0.0), axis=-1, keepdims=True)


def blockwise(function: Callable[..., Array], *operands: Array) -> Array:
    """The results of a function on operands of one shape, given to it as columns that are not too long."""
    columns = [np.asarray(x).astype(np.float64, casting="safe").reshape(-1, 1) for x in operands]
    result = np.empty(columns[0].shape)
    for start in range(0, len(result), BLOCK):
        block = slice(start, start + BLOCK)
        result[block] = function(*[column[block] for column in columns])
    return result.reshape(np.shape(operands[-1])).astype(operands[-1].dtype)


# ---- gamma -------------------------------------------------------------------------------------------------------


def gamma_slope(a: Array, x: Array, *, order: int) -> Array:
    """The derivative of P(a, x) of this order, at least 1, in a."""
    return blockwise(lambda a, x: _gamma_slope(a, x, order), a, x)


def _gamma_slope(a: Array, x: Array, order: int) -> Array:
    is_valid, a, t = (a > 0) & (a < np.inf) & (x >= 0), np.clip(a, SMALL, HUGE), np.clip(x, TINY, HUGE)
    value = np.where(t <= a, _gamma_below(a, t, order), -_gamma_above(a, t, order))
    value = np.where(t <= 1, _gamma_series(a, np.minimum(t, 1), order), value)
    value = np.where((x > 0) & (x < np.inf), value, 0.0)
    return np.where(is_valid, value, np.nan)


def _gamma_polynomial(order: int, a: Array, log_t: Array) -> Array:
    def times(orders: Orders, y: Array) -> Array:
        return (log_t - polygamma(0, a)) * y if orders == (1,) else -polygamma(orders[0] - 1, a) * y

    return differentiated((order,), np.ones_like(log_t), times)


def _gamma_series(a: Array, x: Array, order: int) -> Array:
    """The slope of Σ x**(a+n) exp(-x) / Γ(a+n+1) (DLMF 8.11.4)."""
    power = a + np.arange(TERMS)
    log_x = np.log(x)
    terms = np.exp(power * log_x - x - scipy_function("gammaln")(power + 1))
    return np.sum(terms * _gamma_polynomial(order, power + 1, log_x), axis=-1, keepdims=True)


def _log_density(a: Array, x: Array) -> Array:
    """The logarithm of x**a exp(-x) / Γ(a+1); for large a by Stirling's series, whose large terms cancel here."""
    rest = np.log(2 * math.pi * a) / 2 + 1 / (12 * a) - 1 / (360 * a) / a / a
    near = a * np.log1p((x - a) / a) - (x - a) - rest
    return np.where(a < LARGE, a * np.log(x) - x - scipy_function("gammaln")(a + 1), near)


def _gamma_below(a: Array, x: Array, order: int) -> Array:
    log_x = np.log(x)
    log_density = _log_density(a, x) + np.log(a)

    def integrand(s: Array) -> Array:
        return np.exp(log_density - a * s - x * np.expm1(-s)) * _gamma_polynomial(order, a, log_x - s)

    return integral(integrand, 1 / (np.maximum(a - x, 0) + np.sqrt(x)))


def _gamma_above(a: Array, x: Array, order: int) -> Array:
    log_x = np.log(x)
    log_density = _log_density(a, x) + np.log(a / x)

    def integrand(s: Array) -> Array:
        rise = np.log1p(s / x)
        return np.exp(log_density - s + (a - 1) * rise) * _gamma_polynomial(order, a, log_x + rise)

    return integral(integrand, 1 / (np.maximum(1 - (a - 1) / x, 0) + 1 / np.sqrt(x)))


# ---- beta --------------------------------------------------------------------------------------------------------


def beta_slope(a: Array, b: Array, x: Array, *, orders: Orders) -> Array:
    """The derivative of I_x(a, b) of these orders, at least 1 together, in a and b."""
    return blockwise(lambda a, b, x: _beta_slope(a, b, x, orders), a, b, x)


def _beta_slope(a: Array, b: Array, x: Array, orders: Orders) -> Array:
    t = np.clip(x, TINY, 1 - 2.0**-53)
    lower = _beta_below(a, b, t, 1 - t, orders)
    upper = _beta_below(b, a, 1 - t, t, orders[::-1])
    value = np.where(t <= a / (a + b), lower, -upper)
    value = np.where((x > 0) & (x < 1), value, 0.0)
    return np.where((a > 0) & (b > 0) & (x >= 0) & (x <= 1), value, np.nan)


def _beta_polynomial(orders: Orders, a: Array, b: Array, log_t: Array, log_rest: Array) -> Array:
    def times(orders: Orders, y: Array) -> Array:
        i, j = orders
        common = polygamma(i + j - 1, a + b)
        own = 0.0 if i and j else polygamma(i + j - 1, a if i else b)
        logarithm = (log_t if i else log_rest) if i + j == 1 else 0.0
        return (logarithm + common - own) * y

    return differentiated(orders, np.ones_like(log_t), times)


def _beta_below(a: Array, b: Array, x: Array, rest: Array, orders: Orders) -> Array:
    """The integral over (0, x), below the mean; `rest` is 1 - x."""
    log_x, log_rest = np.log(x), np.log(rest)
    log_density = a * log_x + b * log_rest - scipy_function("betaln")(a, b)

    def integrand(s: Array) -> Array:
        total = np.log(rest + x * np.exp(-s))
        density = np.exp(log_density - a * s - (a + b) * total)
        return density * _beta_polynomial(orders, a, b, log_x - s - total, log_rest - total)

    return integral(integrand, 1 / (np.maximum(a - (a + b) * x, 0) + np.sqrt((a + b) * x * rest)))
