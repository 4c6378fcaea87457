"""Derivatives of the first three orders where the usual formulas of them would cancel, against mpmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import fnad

DIGITS = 80


class Truth(NamedTuple):
    """A function, the same in mpmath, points, and the relative error allowed of the derivatives there.

    The error is largest just below the bound from which the series is used.
    """

    function: Callable[..., Any]
    exact: Callable[..., Any]
    points: tuple[float, ...]
    error: float = 1e-12


def scaled(exact: Callable[..., Any], sign: int) -> Callable[..., Any]:
    return lambda x: exact(x) * mp.exp(sign * abs(x))


def dawson(x: Any) -> Any:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def log_normal(x: Any) -> Any:
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def integral(sign: int) -> Callable[..., Any]:
    """That of (1 - J₀(t))/t, or of (I₀(t) - 1)/t, from 0."""
    return lambda x: x * x / 8 * mp.hyp2f3(1, 1, 2, 2, 2, sign * x * x / 4)


special = scipy.special
NEAR = (1e-8, -1e-8, 1e-3, 0.3, -0.999, 1.001, 3.0)
FAR = (31.0, 340.0, 1e5, 1e8)
TRUTHS = {
    "it2j0": Truth(lambda x: special.it2j0y0(x)[0], integral(-1), NEAR, error=1e-11),
    "it2i0": Truth(lambda x: special.it2i0k0(x)[0], integral(1), NEAR, error=1e-11),
    "erfcx": Truth(special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), (-3.0, 0.5, 8.5, 26.0, 340.0, 1e5, 1e8)),
    "erfcx, near": Truth(special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), (2.0, 7.99), error=5e-9),
    "dawsn": Truth(special.dawsn, dawson, (0.3, -8.5, 26.0, 340.0)),
    "dawsn, near": Truth(special.dawsn, dawson, (-2.0, 7.99), error=5e-9),
    "log_ndtr": Truth(special.log_ndtr, log_normal, (-1e4, -340.0, -21.0, 0.5, 3.0, 10.0)),
    "log_ndtr, near": Truth(special.log_ndtr, log_normal, (-3.0, -19.9), error=1e-9),
    "i0e": Truth(special.i0e, scaled(lambda x: mp.besseli(0, x), -1), (*FAR, -31.0, -1e8)),
    "i1e": Truth(special.i1e, scaled(lambda x: mp.besseli(1, x), -1), (*FAR, -31.0, -1e8)),
    "ive": Truth(lambda x: special.ive(3.0, x), scaled(lambda x: mp.besseli(3, x), -1), (80.0, 1e5, -1e8)),
    "k0e": Truth(special.k0e, scaled(lambda x: mp.besselk(0, x), 1), FAR[1:]),
    "k1e": Truth(special.k1e, scaled(lambda x: mp.besselk(1, x), 1), FAR[1:]),
    "kve": Truth(lambda x: special.kve(2.5, x), scaled(lambda x: mp.besselk(mp.mpf(2.5), x), 1), (80.0, 1e5, 1e8)),
    "i0e, near": Truth(special.i0e, scaled(lambda x: mp.besseli(0, x), -1), (0.5, -5.0, 29.9), error=1e-9),
    "i1e, near": Truth(special.i1e, scaled(lambda x: mp.besseli(1, x), -1), (0.5, -5.0, 29.9), error=1e-9),
    "k0e, near": Truth(special.k0e, scaled(lambda x: mp.besselk(0, x), 1), (29.9,), error=1e-9),
    "k1e, near": Truth(special.k1e, scaled(lambda x: mp.besselk(1, x), 1), (29.9,), error=1e-9),
}


def derivatives(exact: Callable[..., Any], x: float) -> list[float]:
    """Those of the first three orders, by central differences in so many digits that a double's are right."""
    with mp.workdps(DIGITS):
        h = abs(mp.mpf(x)) * mp.mpf(10) ** -15
        a, b, c, d, e = (exact(x + k * h) for k in (-2, -1, 0, 1, 2))
        return [float(v) for v in ((d - b) / (2 * h), (d - 2 * c + b) / h**2, (e - 2 * d + 2 * b - a) / (2 * h**3))]


def check(truth: Truth, points: np.ndarray[Any, Any], found: list[Any]) -> None:
    expected = np.array([derivatives(truth.exact, x) for x in points]).T
    np.testing.assert_allclose(found, expected, rtol=truth.error, atol=0)


def nested(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    first = fnad.grad(function)
    second = fnad.grad(first)
    return [first, second, fnad.grad(second)]


@pytest.mark.parametrize("name", TRUTHS)
def test_derivatives_do_not_cancel(name: str) -> None:
    truth = TRUTHS[name]
    points = np.array(truth.points)
    with fnad.config.override(executor="interpreter"):
        check(truth, points, [fnad.vmap(derivative)(points) for derivative in nested(truth.function)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erfcx", "i0e", "log_ndtr"])
def test_compiled_derivatives_do_not_cancel(name: str) -> None:
    truth = TRUTHS[name]
    points = np.array(truth.points)
    compiled = fnad.jit(lambda x: [fnad.vmap(derivative)(x) for derivative in nested(truth.function)])
    check(truth, points, compiled(points))


def test_derivatives_of_log_ndtr_are_zero_far_above() -> None:
    points = np.array([40.0, 100.0, 400.0])
    with fnad.config.override(executor="interpreter"):
        for derivative in nested(special.log_ndtr):
            np.testing.assert_array_equal(fnad.vmap(derivative)(points), 0.0)
