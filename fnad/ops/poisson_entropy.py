"""The entropy of the Poisson distribution, and its derivatives to all orders.

The mean of a function of a Poisson variable k has the slope E[f(k+1) - f(k)] in the mean μ. The entropy is
μ - μ log μ + E[log k!]. As E[k] = μ and E[1 / (k+1)] = (1 - exp(-μ)) / μ, its slopes are sums without cancellation:

    H'(μ) = E[log((k+1) / μ) - (k - μ) / μ],   H''(μ) = E[g(k)] - exp(-μ) / μ,   g(k) = log(1 + 1/(k+1)) - 1/(k+1)

and the further slopes of E[g(k)] are those of its differences. The means are sums over the counts within twelve
standard deviations, what lies beyond is below 1e-30; of a mean above 1e10, where that would be many, the first term in
1/μ is left (Evans & Boersma, "The entropy of a Poisson distribution", SIAM Review 30, 1988).
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from fnad.ir.types import I64
from fnad.ops.formula import word
from fnad.ops.shape import constant
from fnad.ops.special_function import POSITIVE, special
from fnad.scalar.scipy_ufunc import scipy_function

LARGE = 1e10


def _entropy(mean: Any) -> Any:
    return np.asarray(import_module("scipy.stats").poisson.entropy(np.asarray(mean, np.float64)), mean.dtype)


def _masses(mean: float) -> tuple[Any, Any]:
    """The counts around a mean and their probabilities."""
    width = 12 * math.sqrt(mean) + 40
    k = np.arange(math.floor(max(mean - width, 0)), math.ceil(mean + width))
    logarithm = scipy_function("xlogy")(k, mean) - scipy_function("gammaln")(k + 1.0) - mean
    masses = np.exp(logarithm)
    return k, masses / np.sum(masses)


def _slope(mean: float) -> float:
    """E[log((k+1) / μ)]."""
    if not 0 < mean < math.inf:
        return {0.0: math.inf, math.inf: 0.0}.get(mean, math.nan)
    if mean > LARGE:
        return 0.5 / mean
    k, masses = _masses(mean)
    return float(np.sum(masses * (np.log1p((k + 1 - mean) / mean) - (k - mean) / mean)))


def _difference(order: int, mean: float) -> float:
    """The mean of the differences of g, of an order from 0 on."""
    if not 0 <= mean < math.inf:
        return 0.0 if mean == math.inf else math.nan
    if mean > LARGE:
        return (-1) ** (order + 1) * math.factorial(order + 1) / (2 * mean ** (order + 2))
    k, masses = _masses(mean)
    values = scipy_function("_log1pmx")(1 / np.arange(k[0] + 1.0, k[-1] + order + 2))
    return float(np.sum(masses * np.diff(values, order)))


def _slopes(mean: Any) -> Any:
    return np.asarray(np.vectorize(_slope, otypes=[np.float64])(mean) if mean.size else mean, mean.dtype)


def _differences(order: Any, mean: Any) -> Any:
    found = np.vectorize(_difference, otypes=[np.float64])(order, mean) if mean.size else mean
    return np.asarray(found, mean.dtype)


# fmt: off
poisson_entropy = special("poisson_entropy(mean)", "Entropy of the Poisson distribution of this mean.", (POSITIVE,),
    evaluate=_entropy, mean="poisson_entropy_slope(mean)")
poisson_entropy_slope = special("poisson_entropy_slope(mean)",
    "Derivative of poisson_entropy: the mean of log((k+1) / mean).", (POSITIVE,), evaluate=_slopes,
    mean="poisson_difference(order_0(mean), mean) - exp(-mean) / mean")
poisson_difference = special("poisson_difference(order: int, mean)",
    "Mean of the differences, of this order, of log(1 + 1/(k+1)) - 1/(k+1) in a Poisson distribution of this mean.",
    (POSITIVE,), evaluate=_differences, mean="poisson_difference(order + 1, mean)")
# fmt: on

word("order_0", lambda mean: constant(0, I64, mean.shape))
