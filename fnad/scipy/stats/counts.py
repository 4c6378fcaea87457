"""Poisson, Bernoulli and binomial distribution.

Probabilities are the densities of the gamma and the beta distribution in their other variable, whose slopes are exact
where a parameter is at the end of its range (Johnson, Kemp & Kotz, Univariate Discrete Distributions, 3.4 and 4.2):

    P(k; mu) = γ(mu; k+1),   P(k; n, p) = β(p; k+1, n-k+1) / (n+1)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_symbol, static_int
from fnad.ops.arithmetic import neg
from fnad.ops.comparison import eq, ge, le
from fnad.ops.entropy import entr, xlog1py, xlogy
from fnad.ops.gamma import beta_density, gamma_density, gammaln
from fnad.ops.incomplete import betainc, betaincc, gammainc, gammaincc
from fnad.ops.piecewise import floor
from fnad.ops.poisson_entropy import poisson_entropy
from fnad.ops.shape import broadcast_to, full_like, ones_like, reshape_to, sum_over, zeros_like
from fnad.scipy.stats.discrete import Discrete
from fnad.scipy.stats.operands import INF, checked, real_symbol

poisson = Discrete(
    "poisson",
    ["mu"],
    last=lambda mu: INF,
    conditions=lambda mu: [ge(mu, zeros_like(mu))],
    pmf=lambda k, mu: gamma_density(k + 1.0, mu),
    logpmf=lambda k, mu: xlogy(k, mu) - gammaln(k + 1.0) - mu,
    cdf=lambda k, mu: gammaincc(k + 1.0, mu),
    sf=lambda k, mu: gammainc(k + 1.0, mu),
    entropy=lambda mu: poisson_entropy(real_symbol(mu)),
)

# ---- successes in n trials ---------------------------------------------------------------------------------------


def _is_probability(p: Symbol) -> list[Symbol]:
    return [ge(p, zeros_like(p)), le(p, ones_like(p))]


def _mass(k: Symbol, n: Symbol, p: Symbol) -> Symbol:
    return beta_density(k + 1.0, n - k + 1.0, p) / (n + 1.0)


def _log_mass(k: Symbol, n: Symbol, p: Symbol) -> Symbol:
    combinations = gammaln(n + 1.0) - (gammaln(k + 1.0) + gammaln(n - k + 1.0))
    return combinations + xlogy(k, p) + xlog1py(n - k, neg(p))


def _binomial_entropy(n: Any, p: Any) -> Symbol:
    """-Σ P log P over all counts, which needs n to be known."""
    trials = static_int(int(n) if isinstance(n, float) and n.is_integer() else n, "a number of trials")
    probability = real_symbol(p)
    shape = (*probability.shape, trials + 1)
    k = broadcast_to(as_symbol(np.arange(trials + 1.0)), shape)
    column = broadcast_to(reshape_to(probability, (*probability.shape, 1)), shape)
    masses = _mass(k, full_like(k, trials), column)
    return checked(sum_over(entr(masses), (probability.ndim,)), _is_probability(probability))


binom = Discrete(
    "binom",
    ["n", "p"],
    last=lambda n, p: n,
    conditions=lambda n, p: [ge(n, zeros_like(n)), eq(n, floor(n)), *_is_probability(p)],
    fixed=["n"],
    pmf=_mass,
    logpmf=_log_mass,
    cdf=lambda k, n, p: betaincc(k + 1.0, n - k, p),
    sf=lambda k, n, p: betainc(k + 1.0, n - k, p),
    entropy=_binomial_entropy,
)
bernoulli = Discrete(
    "bernoulli",
    ["p"],
    last=lambda p: 1.0,
    conditions=_is_probability,
    pmf=lambda k, p: _mass(k, ones_like(p), p),
    logpmf=lambda k, p: _log_mass(k, ones_like(p), p),
    cdf=lambda k, p: betaincc(k + 1.0, 1.0 - k, p),
    sf=lambda k, p: betainc(k + 1.0, 1.0 - k, p),
    entropy=lambda p: _bernoulli_entropy(real_symbol(p)),
)


def _bernoulli_entropy(p: Symbol) -> Symbol:
    return checked(entr(p) + entr(1.0 - p), _is_probability(p))
