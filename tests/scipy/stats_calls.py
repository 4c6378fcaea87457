"""Calls of the methods of distributions, by name: a function of arrays and the arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.scipy import stats

CONTINUOUS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "norm": ((-1.3, 0.4, 2.2), ()),
    "laplace": ((-1.3, 0.4, 2.2), ()),
    "cauchy": ((-1.3, 0.4, 2.2), ()),
    "logistic": ((-1.3, 0.4, 2.2), ()),
    "expon": ((0.9, 2.0, 5.0), ()),
    "uniform": ((0.9, 1.2, 1.9), ()),
    "lognorm": ((0.9, 2.0, 5.0), (0.7,)),
    "t": ((-1.3, 0.4, 2.2), (3.5,)),
    "gamma": ((0.9, 2.0, 5.0), (2.5,)),
    "chi2": ((0.9, 2.0, 5.0), (3.5,)),
    "beta": ((0.9, 1.2, 1.9), (2.5, 1.5)),
}
"""Points of the support, and parameters of the shape."""

COUNTS: dict[str, tuple[tuple[int, ...], float]] = {
    "poisson": ((1, 2, 5), 2.5),
    "bernoulli": ((0, 0), 0.3),
    "binom": ((1, 2, 4), 0.4),
}
"""Numbers of events, and the parameter that is real."""

LOC, SCALE = np.float64(0.7), np.float64(1.3)
METHODS = ("cdf", "logcdf", "sf", "logsf")


def of_continuous(name: str, method: str) -> tuple[Any, ...]:
    x, shapes = CONTINUOUS[name]
    call = getattr(getattr(stats, name), method)
    return (lambda *xs: call(*xs), np.array(x), *map(np.float64, shapes), LOC, SCALE)


def of_counts(name: str, method: str) -> tuple[Any, ...]:
    k, p = COUNTS[name]
    call, size = getattr(getattr(stats, name), method), (5,) if name == "binom" else ()
    return (lambda p: (call(np.array(k), *size, p), call(np.array(k) + 2, *size, p, 2)), np.float64(p))


def of_entropy(name: str) -> tuple[Any, ...]:
    call = getattr(stats, name).entropy
    if name in COUNTS:
        size = (5,) if name == "binom" else ()
        return (lambda p: call(*size, p), np.float64(COUNTS[name][1]))
    return (lambda *xs: call(*xs), *map(np.float64, CONTINUOUS[name][1]), LOC, SCALE)


ONE_VARIABLE = {
    f"{name}.{method}": build(name, method)
    for names, build, own in (
        (CONTINUOUS, of_continuous, ("pdf", "logpdf")),
        (COUNTS, of_counts, ("pmf", "logpmf")),
    )
    for name in names
    for method in (*own, *METHODS)
} | {f"{name}.entropy": of_entropy(name) for name in (*CONTINUOUS, *COUNTS)}

POINTS, MEAN = np.array([[0.3, -0.5], [1.1, 0.4], [-0.2, 0.9]]), np.array([0.1, 0.2])
COVARIANCE, CONCENTRATION = np.array([[1.3, 0.5], [0.3, 0.9]]), np.array([1.5, 2.5, 0.7])
SIMPLEX = np.array([0.2, 0.5])


SEVERAL_VARIABLES = {
    f"multivariate_normal.{method}": (
        lambda x, m, c, call=call: call(x, m, c),
        POINTS,
        MEAN,
        COVARIANCE,
    )
    for method in ("pdf", "logpdf", "cdf", "logcdf")
    for call in [getattr(stats.multivariate_normal, method)]
} | {
    "multivariate_normal.cdf of one variable": (
        lambda x, m, v: (stats.multivariate_normal.cdf(x, m, v), stats.multivariate_normal.cdf(x[0], m, v)),
        MEAN,
        np.float64(0.3),
        np.float64(1.7),
    ),
    "multivariate_normal.cdf at the middle": (
        lambda x, c: stats.multivariate_normal.cdf([x, [0, 0.4]], [0, 0], c),
        np.zeros(2),
        COVARIANCE,
    ),
    "multivariate_normal.entropy": (lambda m, c: stats.multivariate_normal.entropy(m, c), MEAN, COVARIANCE),
    "dirichlet.pdf": (lambda x, a: stats.dirichlet.pdf(x, a), SIMPLEX, CONCENTRATION),
    "dirichlet.logpdf": (lambda x, a: stats.dirichlet.logpdf(x, a), SIMPLEX, CONCENTRATION),
    "dirichlet.entropy": (lambda a: stats.dirichlet.entropy(a), CONCENTRATION),
}

STATS = ONE_VARIABLE | SEVERAL_VARIABLES
