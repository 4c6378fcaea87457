"""Hurwitz's zeta function for q > 0, by the Euler-Maclaurin formula (DLMF 25.11.28 with first terms of the series).

ζ(s, q) = Σ_(k<n) (q+k)**-s + w**(1-s) (1/(s-1) + (1/2 + Σ_j B_2j / (2j)! (s)_(2j-1) w**(1-2j)) / w),   w = q + n
"""

from __future__ import annotations

import math

from fnad.backends.llvm.formulas import twofold
from fnad.backends.llvm.formulas.exponential import INF, NAN, exp_of, log_of
from fnad.backends.llvm.formulas.twofold import Twofold, exact_sum
from fnad.backends.llvm.lane import Lane, where

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
"""B₂, B₄, …"""

FAR = 1e4
"""The size of exponents and of s / w that leave nothing."""


def zeta(s: Lane, q: Lane) -> Lane:
    terms, order = (9, 10) if q.is_double else (5, 6)
    at = where(q < INF, q, 1.0)
    w = exact_sum(at, float(terms))
    inverse = 1.0 / w.high
    ratio = s * inverse
    ratio = where(ratio < FAR, ratio, FAR)
    series = q.number(0.0)
    for j in range(order, 0, -1):
        first = ratio if j == 1 else (ratio + (2 * j - 3) * inverse) * (ratio + (2 * j - 2) * inverse)
        series = (series + BERNOULLI[j - 1] / math.factorial(2 * j)) * first
    less = s - 1.0
    rest = twofold.of(q.number(1.0)).over(twofold.of(less))
    total = power(w, less).times_twofold(rest.plus((series + 0.5) * inverse))
    for k in range(terms - 1, 0, -1):
        total = added(total, power(exact_sum(at, float(k)), s))
    total = added(total, power(twofold.of(at), s))
    value = where(total.high < INF, total.total(), INF)
    value = where(s < INF, value, where(q > 1.0, q.number(0.0), where(q < 1.0, q.number(INF), 1.0)))
    value = where(q < INF, value, 0.0)
    return where((s > 1.0) & (q > 0.0), value, where(s.equals(1.0) & q.is_number(), s.number(INF), NAN))


def is_above(s: Lane, q: Lane) -> Lane:
    """False if q <= 0."""
    return (q <= 0.0) ^ True


def power(x: Twofold, s: Lane) -> Twofold:
    """The power x**-s."""
    exponent = log_of(x.high, x.low).times(-s)
    low = where(abs(exponent.high) < FAR, exponent.low, 0.0)
    number = exp_of(Twofold(exponent.high, low))
    return Twofold(number.scaled(number.value.high), number.scaled(number.value.low))


def added(a: Twofold, b: Twofold) -> Twofold:
    total = exact_sum(a.high, b.high)
    return Twofold(total.high, total.low + (a.low + b.low))
