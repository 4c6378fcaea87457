"""Continuous distributions with shape parameters."""

from __future__ import annotations

import math

from fnad.ir.symbol import Symbol
from fnad.ops import gamma as gammas
from fnad.ops.arithmetic import neg
from fnad.ops.comparison import eq, isinf, lt, select
from fnad.ops.distributions import chdtr, chdtrc, stdtr
from fnad.ops.elementary import log, log1p
from fnad.ops.entropy import xlog1py, xlogy
from fnad.ops.error_functions import log_ndtr, ndtr
from fnad.ops.gamma import betaln, gammaln, poch, psi
from fnad.ops.incomplete import betainc, betaincc, gammainc, gammaincc
from fnad.ops.shape import full_like, ones_like, zeros_like
from fnad.scipy.stats.continuous import Continuous
from fnad.scipy.stats.location_scale import HALF_LOG_2PI, LOG_PI, normal_log_density
from fnad.scipy.stats.operands import INF


def _series(x: Symbol, *coefficients: float) -> Symbol:
    """The polynomial with these coefficients of x, x², …, by Horner's scheme."""
    total = full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total * x


# ---- gamma and chi-square ----------------------------------------------------------------------------------------


def _gamma_log_density(z: Symbol, a: Symbol) -> Symbol:
    return xlogy(a - 1.0, z) - z - gammaln(a)


def _gamma_entropy(z: Symbol, a: Symbol) -> Symbol:
    """ψ(a) (1 - a) + a + log Γ(a), for large a from Stirling's series (DLMF 5.11.1, 5.11.2)."""
    is_large = lt(full_like(a, 250.0), a)
    small = select(is_large, ones_like(a), a)
    large = select(is_large, a, full_like(a, 250.0))
    series = _series(1.0 / large, -1 / 3, -1 / 12, -1 / 90, 1 / 120)
    exact = psi(small) * (1.0 - small) + small + gammaln(small)
    return select(is_large, 0.5 * log(large) + (HALF_LOG_2PI + 0.5) + series, exact)


gamma = Continuous(
    "gamma",
    ["a"],
    support=(0.0, INF),
    pdf=lambda z, a: gammas.gamma_density(a, z),
    logpdf=_gamma_log_density,
    cdf=lambda z, a: gammainc(a, z),
    sf=lambda z, a: gammaincc(a, z),
    entropy=_gamma_entropy,
)
chi2 = Continuous(
    "chi2",
    ["df"],
    support=(0.0, INF),
    pdf=lambda z, df: 0.5 * gammas.gamma_density(0.5 * df, 0.5 * z),
    logpdf=lambda z, df: xlogy(0.5 * df - 1.0, z) - 0.5 * z - gammaln(0.5 * df) - (0.5 * math.log(2)) * df,
    cdf=lambda z, df: chdtr(df, z),
    sf=lambda z, df: chdtrc(df, z),
    entropy=lambda z, df: _gamma_entropy(z, 0.5 * df) + math.log(2),
)

# ---- beta --------------------------------------------------------------------------------------------------------


def _beta_entropy(z: Symbol, a: Symbol, b: Symbol) -> Symbol:
    total = a + b
    return betaln(a, b) - (a - 1.0) * psi(a) - (b - 1.0) * psi(b) + (total - 2.0) * psi(total)


beta = Continuous(
    "beta",
    ["a", "b"],
    support=(0.0, 1.0),
    pdf=lambda z, a, b: gammas.beta_density(a, b, z),
    logpdf=lambda z, a, b: xlog1py(b - 1.0, neg(z)) + xlogy(a - 1.0, z) - betaln(a, b),
    cdf=lambda z, a, b: betainc(a, b, z),
    sf=lambda z, a, b: betaincc(a, b, z),
    entropy=_beta_entropy,
)

# ---- Student's t -------------------------------------------------------------------------------------------------


def _t_log_density(z: Symbol, df: Symbol) -> Symbol:
    """The log density: of Γ((df+1)/2) / Γ(df/2) √(π df) (1 + z²/df)**(-(df+1)/2), the normal one for infinite df."""
    is_normal = isinf(df)
    finite = select(is_normal, ones_like(df), df)
    power = 0.5 * (finite + 1.0) * log1p(z * z / finite)
    student = log(poch(0.5 * finite, full_like(df, 0.5))) - 0.5 * (log(finite) + LOG_PI) - power
    return select(is_normal, normal_log_density(z), student)


def _t_entropy(z: Symbol, df: Symbol) -> Symbol:
    """The entropy, for large df from its expansion in 1/df."""
    is_large = lt(full_like(df, 100.0), df)
    small = select(is_large, ones_like(df), df)
    half, above = 0.5 * small, 0.5 * (small + 1.0)
    exact = above * (psi(above) - psi(half)) + 0.5 * log(small) + betaln(half, full_like(half, 0.5))
    series = _series(1.0 / select(is_large, df, full_like(df, 100.0)), 1.0, 1 / 4, -1 / 6, -1 / 8, 3 / 10, 1 / 4)
    return select(is_large, series + (HALF_LOG_2PI + 0.5), exact)


t = Continuous(
    "t",
    ["df"],
    logpdf=_t_log_density,
    cdf=lambda z, df: stdtr(df, z),
    sf=lambda z, df: stdtr(df, neg(z)),
    entropy=_t_entropy,
)

# ---- lognormal ---------------------------------------------------------------------------------------------------


def _lognormal_log_density(z: Symbol, s: Symbol) -> Symbol:
    at_zero = eq(z, zeros_like(z))
    x = select(at_zero, ones_like(z), z)
    ratio = log(x) / s
    return select(at_zero, full_like(z, -INF), -0.5 * (ratio * ratio) - log(s * x) - HALF_LOG_2PI)


def _deviation(z: Symbol, s: Symbol) -> Symbol:
    return log(z) / s


lognorm = Continuous(
    "lognorm",
    ["s"],
    support=(0.0, INF),
    logpdf=_lognormal_log_density,
    cdf=lambda z, s: ndtr(_deviation(z, s)),
    logcdf=lambda z, s: log_ndtr(_deviation(z, s)),
    sf=lambda z, s: ndtr(neg(_deviation(z, s))),
    logsf=lambda z, s: log_ndtr(neg(_deviation(z, s))),
    entropy=lambda z, s: log(s) + (HALF_LOG_2PI + 0.5),
)
