"""The error function, its complements, Dawson's integral, the normal distribution function and its logarithm.

Far from 0 all are exp(-x²) or exp(-x²/2) times a function that falls as 1/x. As (1/2 + x) times this function varies
little, one polynomial in t = 1 - 8 / (4 + x) is enough for all large x (Shepherd & Laframboise, Math. Comp. 36 (1981),
249). The square is a sum of two floats, since its error is one of the exponential. Near 0 they are odd polynomials.
"""

from __future__ import annotations

from fnad.backends.llvm.formulas import twofold
from fnad.backends.llvm.formulas.coefficients import table
from fnad.backends.llvm.formulas.exponential import (
    BIASED,
    INF,
    clamped,
    exp2m1,
    exp_of,
    log_of,
    power_of_bits,
)
from fnad.backends.llvm.formulas.twofold import (
    Twofold,
    choose,
    exact_product,
    exact_sum,
    polynomial,
    precise,
    sorted_sum,
)
from fnad.backends.llvm.lane import Lane, where

FARTHEST = 40.0
"""The argument from which all tails are 0."""

LARGE = 2.0**40
"""A number whose square is finite in f32, and beyond which only the first terms of asymptotic series are left."""


def over_decay(name: str, x: Lane) -> Twofold:
    """A tail over its exponential, from 0.75 on."""
    ratio = twofold.of(x.number(8.0)).over(exact_sum(x, 4.0))
    t = (1.0 - ratio.high) - ratio.low
    return precise(name, t).over(exact_sum(x, 0.5))


def decayed(tail: Twofold, exponent: Twofold) -> Twofold:
    """The product of a number and an exponential, which may be subnormal."""
    decay = exp_of(exponent)
    product = decay._replace(value=tail.times_twofold(decay.value))
    return Twofold(product.scaled(product.value.high), product.scaled(product.value.low))


# ---- the error function ------------------------------------------------------------------------------------------


def erfc_far(size: Lane, farthest: float = FARTHEST) -> Twofold:
    within = clamped(size, 0.0, farthest)
    return decayed(over_decay("erfcx", within), exact_product(within, -within))


def erf(x: Lane) -> Lane:
    size = abs(x)
    far = 1.0 - erfc_far(size, 6.0).total()  # beyond it is 1
    return where(size < 0.75, precise("erf", x * x).product(size), far).signed(x)


def erf_f32(x: Lane) -> Lane:
    """The error function in single floats: far from 0 the errors of its complement are small beside 1."""
    size = clamped(abs(x), 0.0, 4.0)  # beyond it is 1
    exponent = polynomial(table("log2_erfc", size), size) * size
    shifted = exponent + BIASED
    scale = power_of_bits(shifted)
    far = exp2m1(exponent - (shifted - BIASED)).muladd(-scale, 1.0 - scale)
    near = polynomial(table("erf_near", x), x * x).muladd(size, size)
    return where(size < 0.75, near, far).signed(x)


def erfc(x: Lane) -> Lane:
    size = abs(x)
    near, far = precise("erf", x * x).times(-x).plus(x.number(1.0)), erfc_far(size)
    above = where(x < 0.0, sorted_sum(x.number(2.0), -far.high).high, far.total())
    return where(size < 0.75, near.total(), above)


def erfcx(x: Lane) -> Lane:
    """The product exp(x²) erfc(x)."""
    size = abs(x)
    within = clamped(size, 0.0, FARTHEST)
    growth = exp_of(exact_product(within, within))
    near = growth._replace(
        value=precise("erf", x * x).times(-x).plus(x.number(1.0)).times_twofold(growth.value)
    ).total()
    far = over_decay("erfcx", size)
    above = where(size >= INF, 0.0, far.total())
    twice = Twofold(growth.scaled(growth.value.high), growth.scaled(growth.value.low)).scaled(2.0)
    below = where(twice.high < INF, twice.plus_twofold(far.negative()).total(), twice.high)
    return where(size < 0.75, near, where(x < 0.0, below, above))


def dawsn(x: Lane) -> Lane:
    """Dawson's integral, by polynomials in three intervals and in 1/x².

    As in W. J. Cody, K. A. Paciorek & H. C. Thacher, "Chebyshev approximations for Dawson's integral", Math. Comp. 24
    (1970), 171.
    """
    size = abs(x)
    inverse = 1.0 / size
    far = precise("dawsn_far", inverse * inverse).over(twofold.of(size))
    middle = choose(size < 3.0, precise("dawsn_1", size - 2.0), precise("dawsn_2", size - 4.5))
    above = where(size < LARGE, choose(size < 6.0, middle, far).total(), inverse * 0.5)
    return where(size < 1.0, precise("dawsn_0", x * x).product(size), above).signed(x)


# ---- the normal distribution -------------------------------------------------------------------------------------


def mills_ratio(size: Lane) -> Twofold:
    """The tail over exp(-x²/2), from 1 on."""
    return over_decay("mills", clamped(size, 0.0, LARGE))


def tail_far(size: Lane, ratio: Twofold) -> Twofold:
    within = clamped(size, 0.0, FARTHEST)
    return decayed(ratio, exact_product(within, within * -0.5))


def ndtr(x: Lane) -> Lane:
    size = abs(x)
    near = precise("normal", x * x).times(x).plus(x.number(0.5)).total()
    far = tail_far(size, mills_ratio(size)).total()
    return where(size < 1.0, near, where(x < 0.0, far, 1.0 - far))


def log_ndtr(x: Lane) -> Lane:
    """The logarithm of the distribution function, for x < -1 that of Mills' ratio less x²/2."""
    size = abs(x)
    near = precise("normal", x * x).times(x).plus(x.number(0.5))
    ratio = mills_ratio(size)
    above = tail_far(size, ratio).negative().plus(x.number(1.0))
    number = choose(size < 1.0, near, choose(x < 0.0, ratio, above))
    within = clamped(x, -LARGE, 0.0)
    square = choose(x <= -1.0, exact_product(within, within * -0.5), twofold.of(x.number(0.0)))
    value = square.plus_twofold(log_of(number.high, number.low)).total()
    return -abs(where(x > -LARGE, value, x * (x * 0.5)))
