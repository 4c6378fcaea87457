"""The distribution function of two normal variables with a correlation.

Its value is Owen's (1956, eq. 2.1), its slopes in the limits and in the correlation are densities times distribution
functions of one variable (Plackett, "A reduction formula for normal multivariate integrals", 1954):

    ∂Φ₂/∂h = φ(h) Φ((k - ρ h) / s),   ∂Φ₂/∂ρ = exp(-((h - ρ k)² / s² + k²) / 2) / (2π s),   s² = 1 - ρ²
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.ops.constructors import LINE
from fnad.ops.formula import formula
from fnad.ops.special_function import INF, special
from fnad.scalar.scipy_ufunc import scipy_function


def _owen(at: Any, other: Any, correlation: Any) -> Any:
    """T(h, (k / h - ρ) / s), Owen's function; its limits at h = 0 and h = ±inf."""
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


# fmt: off
formula("bvn_rest(rho)", "sqrt((1.0 - rho) * (1.0 + rho))")
# (k - ρ h) / s; k where h is infinite, at which every function of it has a density of 0 for a factor.
formula("bvn_given(rho, h, k)", "select(isinf(h), k, (k - rho * h) / bvn_rest(rho))")
formula("bvn_density(x)", "exp(-0.5 * x * x) / sqrt_2pi")
# The factor is nan outside of -1 <= ρ <= 1, so that derivatives are nan there too.
formula("bvn_slope(rho, h, k)",
        "select(le(abs(rho), 1.0), ones_like(rho), nan) * (bvn_density(h) * ndtr(bvn_given(rho, h, k)))")

bivariate_normal = special("bivariate_normal(rho, h, k)",
    "The probability of X <= h, Y <= k, for normal variables X and Y of this correlation, which comes first.",
    ((-0.8, 0.8), LINE, LINE), evaluate=_bivariate_normal,
    edges=((0.5, INF, INF), (0.5, -INF, INF), (0.0, 1.0, INF), (0.5, INF, 1.0), (1.0, INF, 1.0), (2.0, INF, 1.0)),
    rho="bvn_density(k) * bvn_density(bvn_given(rho, k, h)) / bvn_rest(rho)",
    h="bvn_slope(rho, h, k)", k="bvn_slope(rho, k, h)")
# fmt: on
