"""Box and Cox's transforms, and the slope of (exp(x) - 1) / x that their slopes are made of.

The logarithm L and its product with λ are sums of two floats, because an exponential multiplies the error of its
exponent. (exp(λL) - 1) / λ may be finite where the exponential is not, so that a power of two is left for later.
"""

from __future__ import annotations

import math

from fnad.backends.llvm.formulas import twofold
from fnad.backends.llvm.formulas.exponential import (
    BEYOND,
    INF,
    exp_of,
    format_of,
    half_expm1,
    log_at_limits,
    log_of,
    reduced,
)
from fnad.backends.llvm.formulas.twofold import Twofold, choose, exact_sum, paired
from fnad.backends.llvm.lane import Lane, where

LATER = 93.0
"""The exponent of the power of two that is left for later."""


def boxcox(x: Lane, power: Lane) -> Lane:
    logarithm = log_of(x)
    return transformed(logarithm._replace(high=log_at_limits(x, logarithm.high)), power)


def boxcox1p(x: Lane, power: Lane) -> Lane:
    one = exact_sum(x, 1.0)
    logarithm = log_of(one.high, one.low)
    found = logarithm._replace(high=log_at_limits(one.high, logarithm.high))
    return transformed(choose(abs(x) < 2.0**-60, twofold.of(x), found), power)


def transformed(logarithm: Twofold, power: Lane) -> Lane:
    """The number (exp(λL) - 1) / λ, which is L where λL is small or λ is 0."""
    f, z = format_of(power), logarithm.times(power)
    size = abs(z.high)
    z = z._replace(low=where(size < INF, z.low, 0.0))
    parts = reduced(z, -40.0, f.largest + BEYOND)
    is_far = parts.exponent > f.bias - 1.0
    parts = parts._replace(exponent=parts.exponent - where(is_far, power.number(LATER), 0.0))
    ratio = half_expm1(parts).total() / power * where(is_far, power.number(2.0 ** (LATER + 1)), 2.0)
    bounded = where(z.high < f.largest + BEYOND, ratio, (z.high + INF) / power)
    is_near = (size < 2.0 ** -(f.mantissa + 8)) | power.equals(0.0)
    return where(is_near, logarithm.total(), bounded)


def exprel_slope(x: Lane) -> Lane:
    """The slope of (exp(x) - 1) / x: its power series from -3/2 to 1, else by its definition."""
    terms = 22 if x.is_double else 14
    near = paired([1 / (math.factorial(k) * (k + 2)) for k in range(terms)], x)
    is_large, within = x > format_of(x).largest - 9.0, where(x < -1e3, -1e3, x)
    power = exp_of(twofold.of(where(is_large, within - 64.0, within)))
    product = power._replace(value=power.value.times(within - 1.0)).total()
    inverse = 1.0 / x
    far = (product + 1.0) * inverse * inverse * where(is_large, x.number(math.exp(64.0)), 1.0)
    return where(abs(x + 0.25) < 1.25, near, where(x < 1e3, far, x + INF))
