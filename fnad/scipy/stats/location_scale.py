"""Continuous distributions whose only parameters are location and scale."""

from __future__ import annotations

import math

from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import neg
from fnad.ops.comparison import lt, select
from fnad.ops.elementary import exp, expm1, log, log1p
from fnad.ops.error_functions import log_ndtr, ndtr
from fnad.ops.logistic import logaddexp
from fnad.ops.logistic import logistic as expit
from fnad.ops.piecewise import abs_
from fnad.ops.power import arctan2
from fnad.ops.shape import full_like, ones_like, zeros_like
from fnad.scipy.stats.continuous import Continuous
from fnad.scipy.stats.operands import INF

LOG_PI = math.log(math.pi)
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def normal_log_density(z: Symbol) -> Symbol:
    """Log φ(z)."""
    return -0.5 * (z * z) - HALF_LOG_2PI


norm = Continuous(
    "norm",
    pdf=lambda z: exp(-0.5 * (z * z)) * (1 / math.sqrt(2 * math.pi)),
    logpdf=normal_log_density,
    cdf=ndtr,
    logcdf=log_ndtr,
    sf=lambda z: ndtr(neg(z)),
    logsf=lambda z: log_ndtr(neg(z)),
    entropy=lambda z: full_like(z, HALF_LOG_2PI + 0.5),
)

# ---- exponential tails -------------------------------------------------------------------------------------------


def _laplace_below(z: Symbol) -> Symbol:
    """The probability of a value of at most z: exp(z) / 2 for z <= 0."""
    tail = 0.5 * exp(neg(abs_(z)))
    return select(lt(zeros_like(z), z), 1.0 - tail, tail)


def _laplace_log_below(z: Symbol) -> Symbol:
    size = abs_(z)
    return select(lt(zeros_like(z), z), log1p(-0.5 * exp(neg(size))), neg(size) - math.log(2))


laplace = Continuous(
    "laplace",
    logpdf=lambda z: neg(abs_(z)) - math.log(2),
    cdf=_laplace_below,
    sf=lambda z: _laplace_below(neg(z)),
    logcdf=_laplace_log_below,
    logsf=lambda z: _laplace_log_below(neg(z)),
    entropy=lambda z: full_like(z, math.log(2) + 1),
)


def _logistic_log_density(z: Symbol) -> Symbol:
    y = neg(abs_(z))
    return y - 2.0 * log1p(exp(y))


def _log_expit(z: Symbol) -> Symbol:
    return neg(logaddexp(zeros_like(z), neg(z)))


logistic = Continuous(
    "logistic",
    logpdf=_logistic_log_density,
    cdf=expit,
    sf=lambda z: expit(neg(z)),
    logcdf=_log_expit,
    logsf=lambda z: _log_expit(neg(z)),
    entropy=lambda z: full_like(z, 2.0),
)
expon = Continuous(
    "expon",
    support=(0.0, INF),
    logpdf=neg,
    cdf=lambda z: neg(expm1(neg(z))),
    sf=lambda z: exp(neg(z)),
    logsf=neg,
    entropy=ones_like,
)

# ---- others ------------------------------------------------------------------------------------------------------


def _cauchy_log_density(z: Symbol) -> Symbol:
    """-log π(1 + z²), for large z as -log π - 2 log z - log(1 + z⁻²), in which nothing overflows."""
    size = abs_(z)
    small = lt(size, ones_like(size))
    inverse = 1.0 / select(small, ones_like(size), size)
    large = 2.0 * log(select(small, ones_like(size), size)) + log1p(inverse * inverse)
    near = select(small, z, zeros_like(z))
    return neg(select(small, log1p(near * near), large)) - LOG_PI


cauchy = Continuous(
    "cauchy",
    pdf=lambda z: (1 / math.pi) / (z * z + 1.0),
    logpdf=_cauchy_log_density,
    cdf=lambda z: arctan2(ones_like(z), neg(z)) * (1 / math.pi),
    sf=lambda z: arctan2(ones_like(z), z) * (1 / math.pi),
    entropy=lambda z: full_like(z, math.log(4 * math.pi)),
)
uniform = Continuous(
    "uniform",
    support=(0.0, 1.0),
    pdf=lambda z: (z - z) + 1.0,
    logpdf=lambda z: z - z,
    cdf=lambda z: z,
    sf=lambda z: 1.0 - z,
    entropy=zeros_like,
)
