"""The slopes of the entropy of the Poisson distribution against sums in forty digits, small and large."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import mpmath
import numpy as np
import pytest

from fnad import grad
from fnad.scipy.stats import poisson


@pytest.fixture(autouse=True)
def forty_digits() -> Generator[None, None, None]:
    with mpmath.workdps(40):
        yield


def mean_of(f: Any, mu: float) -> Any:
    """Return the mean of a function of the counts."""
    m = mpmath.mpf(mu)
    counts = range(int(mu + 14 * mu**0.5 + 60))
    return mpmath.fsum(mpmath.exp(k * mpmath.log(m) - m - mpmath.loggamma(k + 1)) * f(k) for k in counts)


@pytest.mark.parametrize("mu", [1e-3, 0.7, 2.5, 30.0, 400.0])
def test_three_derivatives_of_the_poisson_entropy_are_exact(mu: float) -> None:
    m = mpmath.mpf(mu)
    logs = [mpmath.log(k + 1) for k in range(int(mu + 14 * mu**0.5 + 70))]
    first = mean_of(lambda k: logs[k], mu) - mpmath.log(m)
    second = mean_of(lambda k: logs[k + 1] - logs[k], mu) - 1 / m
    third = mean_of(lambda k: logs[k + 2] - 2 * logs[k + 1] + logs[k], mu) + 1 / m**2
    slope = grad(poisson.entropy)
    found = [slope(mu), grad(slope)(mu), grad(grad(slope))(mu)]
    np.testing.assert_allclose(found, [float(d) for d in (first, second, third)], rtol=1e-12)


def test_ends_of_the_range() -> None:
    slope = grad(poisson.entropy)
    np.testing.assert_allclose([slope(1e8) * 2e8, slope(1e11) * 2e11], [1 + 1 / 6e8, 1], rtol=1e-8)
    np.testing.assert_allclose(grad(slope)(1e8) * -2e16, 1, rtol=1e-7)
    assert np.isnan(slope(-1.0))
