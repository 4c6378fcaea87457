"""The distribution function of two normal variables with a correlation.

Its value is Owen's (1956, eq. 2.1), its slopes in the limits and in the correlation are densities times distribution
functions of one variable (Plackett, "A reduction formula for normal multivariate integrals", 1954):

    ∂Φ₂/∂h = φ(h) Φ((k - ρ h) / s),   ∂Φ₂/∂ρ = exp(-((h - ρ k)² / s² + k²) / 2) / (2π s),   s² = 1 - ρ²
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ops.comparison import isinf, le, select
from fnad.ops.elementary import exp, sqrt
from fnad.ops.kinds import LINE
from fnad.ops.library import INF, NAN, scipy_function, special
from fnad.ops.piecewise import abs_
from fnad.ops.shape import full_like, ones_like
from fnad.ops.special import ndtr


def _owen(at: Any, other: Any, correlation: Any) -> Any:
    """Return T(h, (k / h - ρ) / s), of Owen's function; its limits at h = 0 and h = ±inf."""
    rest = np.sqrt((1 - correlation) * (1 + correlation))
    found = scipy_function("owens_t")(at, (other / at - correlation) / rest)
    return np.where(np.isinf(at), 0.0, np.where(at == 0, np.sign(other) / 4, found))


def _bivariate_normal(correlation: Any, h: Any, k: Any) -> Any:
    with np.errstate(all="ignore"):
        normal = scipy_function("ndtr")
        is_split = (np.sign(h) * np.sign(k) < 0) | ((h == 0) | (k == 0)) & (h + k < 0)
        total = (normal(h) + normal(k)) / 2 - _owen(h, k, correlation) - _owen(k, h, correlation) - is_split / 2
        at_center = 0.25 + np.arcsin(correlation) / (2 * math.pi)
        found = np.where((h == 0) & (k == 0), at_center, total)
        is_below = (h == -np.inf) | (k == -np.inf)
        found = np.where(np.isnan(found) | ~is_below, found, 0.0)
        return np.asarray(np.where(np.abs(correlation) <= 1, found, np.nan), k.dtype)


def _density(x: Symbol) -> Symbol:
    return exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _rest(correlation: Symbol) -> Symbol:
    return sqrt((1.0 - correlation) * (1.0 + correlation))


def _given(correlation: Symbol, h: Symbol, k: Symbol) -> Symbol:
    """Return (k - ρ h) / s; k where h is infinite, at which every function of it has a density of 0 for a factor."""
    return select(isinf(h), k, (k - correlation * h) / _rest(correlation))


def _domain(correlation: Symbol) -> Symbol:
    """Return 1, or nan outside of -1 <= ρ <= 1, as a factor, so that derivatives are nan there too."""
    one = ones_like(correlation)
    return select(le(abs_(correlation), one), one, full_like(one, NAN))


def _slope(correlation: Symbol, h: Symbol, k: Symbol) -> Symbol:
    return _domain(correlation) * (_density(h) * ndtr(_given(correlation, h, k)))


def _slope_in_correlation(correlation: Symbol, h: Symbol, k: Symbol) -> Symbol:
    return _density(k) * _density(_given(correlation, k, h)) / _rest(correlation)


bivariate_normal = special(
    "bivariate_normal",
    "The probability of X <= h, Y <= k, for normal variables X and Y of this correlation, which comes first.",
    lambda y, correlation, h, k: _slope_in_correlation(correlation, h, k),
    lambda y, correlation, h, k: _slope(correlation, h, k),
    lambda y, correlation, h, k: _slope(correlation, k, h),
    over=((-0.8, 0.8), LINE, LINE),
    edges=((0.5, INF, INF), (0.5, -INF, INF), (0.0, 1.0, INF), (0.5, INF, 1.0), (1.0, INF, 1.0), (2.0, INF, 1.0)),
    evaluate=_bivariate_normal,
)
