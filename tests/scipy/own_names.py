"""Calls of SciPy's functions by their own names: a function of arrays and the arrays, by the name of SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import integrate, linalg, optimize, signal, special, stats


class Case(NamedTuple):
    """A function, its arguments, and the relative errors of its values and of the differences it is compared with."""

    function: Callable[..., Any]
    args: list[Any]
    rtol: float = 1e-12
    precision: float = 1e-9


def of(function: Callable[..., Any], *args: Any, **options: Any) -> Case:
    return Case(function, [np.asarray(x, dtype=float)[()] for x in args], **options)


X, Y = [0.3, 1.2, 2.1], [1.5, 0.4, 0.9]
SPD = [[2.0, 0.5, 0.1], [0.5, 3.0, 0.3], [0.1, 0.3, 1.5]]
LONG = [0.1, 0.4, -0.3, 0.8, 1.1]

CASES: dict[str, list[Case]] = {
    "special": [
        of(lambda x, b: special.logsumexp(x, b=b), X, Y),
        of(lambda x: special.logsumexp(x, axis=0, keepdims=True), SPD),
        of(lambda x: special.softmax(x, axis=1), SPD),
        of(lambda x: special.log_softmax(x), X),
        of(lambda x: special.polygamma(2, x), X),
        of(lambda x: special.multigammaln(x[2] + 3, 2), X),
        of(lambda x: special.spherical_jn(1, x), X),
        of(lambda x: special.comb(5, x), X),
    ],
    "linalg": [
        of(lambda a: linalg.cholesky(a @ a.T, lower=True), SPD),
        of(lambda a, b: linalg.solve(a, b), SPD, X),
        of(lambda a, b: linalg.cho_solve(linalg.cho_factor(a @ a.T), b), SPD, X),
        of(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), SPD, X),
        of(lambda a, b: linalg.solve_triangular(a, b, lower=True), SPD, X),
        of(lambda a: linalg.expm(a), SPD),
        of(lambda a: linalg.inv(a), SPD),
        of(lambda a: linalg.det(a), SPD),
        of(lambda a: linalg.qr(a, mode="economic")[1], SPD),
        of(lambda a: linalg.svd(a)[1], SPD),
        of(lambda c: linalg.toeplitz(c), X),
        of(lambda a, b: linalg.block_diag(a, b), SPD, X),
        of(lambda a: linalg.norm(a), SPD),
    ],
    "signal": [
        of(lambda x, y: signal.convolve(x, y), X, Y),
        of(lambda x, y: signal.correlate(x, y, mode="same"), X, Y),
        of(lambda x, y: signal.fftconvolve(x, y), X, Y),
    ],
    "integrate": [
        of(lambda y, x: integrate.trapezoid(y, x), LONG, np.cumsum([1.0, 0.5, 0.7, 0.2, 0.4])),
        of(lambda y: integrate.trapezoid(y, dx=0.1, axis=0), SPD),
        of(lambda y, x: integrate.cumulative_trapezoid(y, x, initial=0), X, [0.0, 0.3, 1.0]),
        of(lambda y, x: integrate.simpson(y, x=x), LONG, np.cumsum([1.0, 0.5, 0.7, 0.2, 0.4])),
        of(lambda y, x: integrate.simpson(y, x=x), LONG[:4], [0.0, 0.3, 1.0, 1.2]),
        of(lambda y: integrate.simpson(y, dx=0.1), LONG),
        of(lambda y, x: integrate.cumulative_simpson(y, x=x), LONG, np.cumsum([1.0, 0.5, 0.7, 0.2, 0.4])),
        of(lambda y: integrate.romb(y, dx=0.5), LONG),
    ],
    "optimize.rosen": [
        of(optimize.rosen, LONG),
        of(optimize.rosen, SPD),
        of(optimize.rosen_der, LONG),
        of(optimize.rosen_hess, LONG),
        of(optimize.rosen_hess_prod, LONG, LONG),
    ],
    "stats by rules": [
        of(lambda x, m, s: stats.norm.logpdf(x, m, s), X, 0.4, 1.3),
        of(lambda x, m, s: stats.norm(m, scale=s).logcdf(x), X, 0.4, 1.3),
        of(lambda x, a: stats.gamma(a, scale=2.0).logpdf(x), X, 1.7),
        of(lambda x, a, b: stats.beta.logpdf(x / 3, a, b), X, 1.7, 2.5),
        of(lambda x, df: stats.t.logpdf(x, df, loc=0.1), X, 3.5),
        of(lambda p: stats.binom.logpmf([1, 2, 3], 5, p), 0.4),
        of(lambda m: stats.poisson(m).pmf([1, 2, 3]), 2.4),
        of(lambda s: stats.norm(scale=s).entropy(), 1.3),
        of(lambda x, m: stats.multivariate_normal.logpdf(x, m, np.eye(3)), X, Y),
        of(lambda x, m, c: stats.multivariate_normal(m, c @ c.T).logpdf(x), X, Y, SPD),
        of(lambda x: stats.multivariate_normal(Y, SPD).logpdf(x), X),
        of(lambda x: stats.multivariate_normal(Y, SPD).pdf(x), X),
        of(lambda a: stats.dirichlet.logpdf([0.2, 0.5, 0.3], a), X),
        of(lambda a: stats.dirichlet(a).entropy(), X),
    ],
    "stats by SciPy's formulas": [
        of(lambda x, c, s: stats.weibull_min.logpdf(x, c, scale=s), X, 1.7, 2.5),
        of(lambda x, c, s: stats.weibull_min(c, scale=s).sf(x), X, 1.7, 2.5),
        of(lambda c, s: stats.weibull_min(c, 0.3, s).mean(), 1.7, 2.5),
        of(lambda c, s: stats.weibull_min.std(c, scale=s), 1.7, 2.5),
        of(lambda c, s: stats.weibull_min.median(c, scale=s), 1.7, 2.5),
        of(lambda c, s: stats.weibull_min.stats(c, 0.2, s, moments="v"), 1.7, 2.5),
        of(lambda c, s: stats.weibull_min.entropy(c, scale=s), 1.7, 2.5),
        of(lambda q, c: stats.weibull_min.ppf(q / 3, c), X, 1.7),
        of(lambda q, c: stats.weibull_min.isf(q / 3, c), X, 1.7),
        of(lambda q, m, s: stats.norm.ppf(q / 3, m, s), X, 1.7, 0.6),
        of(lambda q, a: stats.gamma.ppf(q / 3, a), X, 1.7, precision=1e-7),
        of(lambda x, c: stats.genextreme.logpdf(x, c), X, 0.2),
        of(lambda x, c: stats.genpareto.logcdf(x, c), X, 0.2),
        of(lambda x, a: stats.skewnorm.logpdf(x, a), X, 1.2),
        of(lambda x, m, s: stats.gumbel_r.logsf(x, m, s), X, 0.3, 1.4),
        of(lambda x, k: stats.vonmises.logpdf(x, k), X, 1.2),
        of(lambda x, a: stats.invgamma.pdf(x, a), X, 2.2),
        of(lambda x, a, b: stats.f.logpdf(x, a, b), X, 3.2, 4.1),
        of(lambda n, p: stats.nbinom.logpmf([0, 1, 4], n, p), 3.5, 0.4),
        of(lambda p: stats.geom(p).cdf([1, 2, 5]), 0.4),
        of(lambda a, b: stats.betabinom.pmf([0, 1, 4], 5, a, b), 1.5, 0.7),
    ],
}

GRIDS: dict[str, tuple[float, ...]] = {
    "laplace": (),
    "gumbel_r": (),
    "hypsecant": (),
    "laplace_asymmetric": (2.0,),
    "dweibull": (2.1,),
    "skewcauchy": (0.5,),
    "johnsonsu": (2.5, 2.25),
    "crystalball": (2.0, 3.0),
    "weibull_min": (1.8,),
    "loggamma": (0.4,),
    "arcsine": (),
    "semicircular": (),
    "wrapcauchy": (0.3,),
    "exponnorm": (1.5,),
}
"""Distributions with their shape parameters, by name."""

SEARCHED = {"exponnorm", "semicircular"}
"""Those of them whose quantiles have no rule."""
