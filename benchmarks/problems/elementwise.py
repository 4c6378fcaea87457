"""Gradients of elementwise formulas: prices of options with their greeks, and Rosenbrock's function."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.gradients import beside, contenders

OPTIONS, UNKNOWNS = (1000, 100_000), (10, 1_000_000)


def black_scholes(np: Any, spot: Any, years: Any, rate: Any, volatility: Any, strike: Any) -> Any:
    """Return the sum of the prices of calls; its gradient is delta, theta (with the other sign), rho and vega."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    return np.sum(spot * normal(np, d1) - strike * np.exp(-rate * years) * normal(np, d1 - spread))


def normal(np: Any, x: Any) -> Any:
    """Return the distribution function of the normal distribution."""
    names = {"numpy": "scipy.special", "jax": "jax.scipy.special", "torch": "torch.special"}
    return 0.5 * beside(np, autograd="autograd.scipy.special", **names).erfc(-x * 0.5**0.5)


def greeks_by_hand(native: Any) -> Any:
    exp, log, erfc, half, inverse_root = native.exp, native.log, native.erfc, 0.5, (2 * np.pi) ** -0.5

    @native.njit
    def value_and_gradient(spot, years, rate, volatility, strike):
        delta, theta, rho, vega = np.empty_like(spot), np.empty_like(spot), np.empty_like(spot), np.empty_like(spot)
        root_half, inverse, one_half = type_of(spot, half**0.5), type_of(spot, inverse_root), type_of(spot, half)
        value = type_of(spot, 0.0)
        for i in range(spot.size):
            root = np.sqrt(years[i])
            spread = volatility[i] * root
            drift = (rate[i] + one_half * volatility[i] * volatility[i]) * years[i]
            d1 = (log(spot[i] / strike[i]) + drift) / spread
            cash = strike[i] * exp(-rate[i] * years[i])
            first, second = one_half * erfc(-d1 * root_half), one_half * erfc((spread - d1) * root_half)
            density = inverse * exp(-one_half * d1 * d1)
            value += spot[i] * first - cash * second
            delta[i] = first
            theta[i] = spot[i] * density * volatility[i] * one_half / root + rate[i] * cash * second
            rho[i] = years[i] * cash * second
            vega[i] = spot[i] * density * root
        return value, delta, theta, rho, vega

    @native.njit
    def type_of(array, number):
        return array.dtype.type(number)

    return value_and_gradient


def rosenbrock(np: Any, x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_by_hand(native: Any) -> Any:
    @native.njit
    def value_and_gradient(x):
        gradient, value, one = np.empty_like(x), x.dtype.type(0), x.dtype.type(1)
        hundred, two, n = x.dtype.type(100), x.dtype.type(2), x.size
        for i in range(n - 1):
            bend, short = x[i + 1] - x[i] * x[i], one - x[i]
            value += hundred * bend * bend + short * short
        gradient[0] = -two * (one - x[0]) - two * two * hundred * x[0] * (x[1] - x[0] * x[0])
        for i in range(1, n - 1):
            bend, before = x[i + 1] - x[i] * x[i], x[i] - x[i - 1] * x[i - 1]
            gradient[i] = two * hundred * before - two * (one - x[i]) - two * two * hundred * x[i] * bend
        gradient[n - 1] = two * hundred * (x[n - 1] - x[n - 2] * x[n - 2])
        return value, gradient

    return value_and_gradient


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for dtype, tolerance in (("float64", 1e-10), ("float32", 2e-3)):
        for n in OPTIONS:
            bounds = ((50, 150), (0.1, 2), (0.01, 0.1), (0.1, 0.5), (50, 150))
            arguments = [rng.uniform(*bound, n).astype(dtype) for bound in bounds]
            calls = contenders(black_scholes, arguments, black_scholes, greeks_by_hand, wanted=4)
            yield Case(f"{n:,} options, {dtype}", calls, tolerance)
        for n in UNKNOWNS:
            x = rng.standard_normal(n).astype(dtype)
            calls = contenders(rosenbrock, [x], rosenbrock, rosenbrock_by_hand)
            yield Case(f"Rosenbrock, {n:,} {dtype}", calls, tolerance)
