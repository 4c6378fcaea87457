"""The discrete distributions: Poisson, Bernoulli and binomial.

Probabilities are the densities of the gamma and the beta distribution in their other variable (Johnson, Kemp & Kotz,
Univariate Discrete Distributions, 3.4 and 4.2). Their slopes are exact where a parameter is at the end of its range:

    P(k; mu) = γ(mu; k+1),   P(k; n, p) = β(p; k+1, n-k+1) / (n+1)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_symbol, static_int
from fnad.ops.comparison import ge, le
from fnad.ops.entropy import entr
from fnad.ops.formula import formula
from fnad.ops.poisson_entropy import poisson_entropy
from fnad.ops.shape import broadcast_to, full_like, ones_like, reshape_to, sum_over, zeros_like
from fnad.scipy.stats.distribution import real_symbol
from fnad.scipy.stats.univariate import INF, Discrete, checked

mass = formula("binomial_mass(k, n, p)", "beta_density(k + 1.0, n - k + 1.0, p) / (n + 1.0)")
formula("binomial_log_mass(k, n, p)", "log_combinations(k, n) + xlogy(k, p) + xlog1py(n - k, -p)")
formula("log_combinations(k, n)", "gammaln(n + 1.0) - (gammaln(k + 1.0) + gammaln(n - k + 1.0))")

PROBABILITY = ("ge(p, 0.0)", "le(p, 1.0)")


def _is_probability(p: Symbol) -> list[Symbol]:
    return [ge(p, zeros_like(p)), le(p, ones_like(p))]


def _bernoulli_entropy(p: Any) -> Symbol:
    probability = real_symbol(p)
    return checked(entr(probability) + entr(1.0 - probability), _is_probability(probability))


def _binomial_entropy(n: Any, p: Any) -> Symbol:
    """-Σ P log P over all counts, which needs n to be known."""
    trials = static_int(int(n) if isinstance(n, float) and n.is_integer() else n, "a number of trials")
    probability = real_symbol(p)
    shape = (*probability.shape, trials + 1)
    k = broadcast_to(as_symbol(np.arange(trials + 1.0)), shape)
    column = broadcast_to(reshape_to(probability, (*probability.shape, 1)), shape)
    masses = mass(k, full_like(k, trials), column)
    return checked(sum_over(entr(masses), (probability.ndim,)), _is_probability(probability))


# fmt: off
poisson = Discrete("poisson(k, mu)", INF, ["ge(mu, 0.0)"], lambda mu: poisson_entropy(real_symbol(mu)),
    pmf="gamma_density(k + 1.0, mu)", logpmf="xlogy(k, mu) - gammaln(k + 1.0) - mu",
    cdf="gammaincc(k + 1.0, mu)", sf="gammainc(k + 1.0, mu)")
binom = Discrete("binom(k, n, p)", "n", ["ge(n, 0.0)", "eq(n, floor(n))", *PROBABILITY], _binomial_entropy, ["n"],
    pmf="binomial_mass(k, n, p)", logpmf="binomial_log_mass(k, n, p)",
    cdf="betaincc(k + 1.0, n - k, p)", sf="betainc(k + 1.0, n - k, p)")
bernoulli = Discrete("bernoulli(k, p)", 1.0, PROBABILITY, _bernoulli_entropy,
    pmf="binomial_mass(k, ones_like(p), p)", logpmf="binomial_log_mass(k, ones_like(p), p)",
    cdf="betaincc(k + 1.0, 1.0 - k, p)", sf="betainc(k + 1.0, 1.0 - k, p)")
# fmt: on
