"""The exponential integrals Ei and E1.

Near the zero z of Ei, Ei(x) = log |x / z| + (x - z) P(x). Farther out it is exp(x) / x times a polynomial in 1/x, as in
W. J. Cody & H. C. Thacher, "Chebyshev approximations for the exponential integral Ei(x)", Math. Comp. 23 (1969), 289,
and "Rational Chebyshev approximations for the exponential integral E1(x)", Math. Comp. 22 (1968), 641.
"""

from __future__ import annotations

from fnad.backends.llvm.formulas import twofold
from fnad.backends.llvm.formulas.exponential import BEYOND, INF, NAN, clamped, exp_of, format_of, log_of
from fnad.backends.llvm.formulas.twofold import Twofold, by_dtype, choose, precise, sorted_sum
from fnad.backends.llvm.lane import Lane, where

ZERO = by_dtype((0.3725074107813666, 1.3140183414386028e-17), (0.3725074231624603, -1.2381093483782024e-08))
INVERSE = by_dtype((2.6845103508207075, 1.0538757532845968e-16), (2.6845104694366455, -1.1861593662843006e-07))
"""The zero of Ei, and its inverse."""

EULER = by_dtype((0.5772156649015329, -4.942915152430645e-18), (0.5772156715393066, -6.637773886097875e-09))

LARGE = 2.0**40


def expi(x: Lane) -> Lane:
    within = clamped(x, -LARGE, format_of(x).largest + BEYOND)
    inverse = 1.0 / within
    above = choose(x < 6.0, precise("expi_0", inverse - 0.25), precise("expi_1", inverse - 0.125))
    above = choose(x < 12.0, above, precise("expi_2", inverse - 0.0625))
    above = choose(x < 24.0, above, precise("expi_3", inverse - 0.02))
    far = grown(choose(x < 0.0, below(inverse), above), within)
    return where((x > -1.0) & (x < 3.0), near_zero(x), far)


def exp1(x: Lane) -> Lane:
    within = clamped(-x, -LARGE, 0.0)
    near = at_zero(x, by_logarithm(within, log_of(x)).total())
    value = -where(x < 1.0, near, grown(below(1.0 / within), within))
    return where(x < 0.0, NAN, value)


def near_zero(x: Lane) -> Lane:
    is_below, zero = x < 2.0**-10, ZERO(x)
    number = choose(is_below, twofold.of(abs(x)), INVERSE(x).times(x))
    logarithm = log_of(number.high, number.low)
    distance = sorted_sum(x - zero.high, -zero.low)
    above = precise("expi", x - 1.5).times_twofold(distance).plus_twofold(logarithm)
    return at_zero(x, choose(is_below, by_logarithm(x, logarithm), above).total())


def by_logarithm(x: Lane, logarithm: Twofold) -> Twofold:
    """The sum of log |x|, Euler's constant and a product, for -1 <= x, up to small numbers above 0."""
    return logarithm.plus_twofold(EULER(x)).plus_twofold(precise("expi_below_0", x).times(x))


def at_zero(x: Lane, value: Lane) -> Lane:
    return where(x.equals(0.0), -INF, value)


def below(inverse: Lane) -> Twofold:
    """The quotient of Ei(x) and exp(x) / x for x <= -1, of 1/x."""
    return choose(inverse < -0.25, precise("expi_below_1", inverse + 0.625), precise("expi_below_2", inverse + 0.125))


def grown(ratio: Twofold, x: Lane) -> Lane:
    """The product with exp(x) / x."""
    growth = exp_of(twofold.of(x))
    return growth.scaled(ratio.times_twofold(growth.value).over(twofold.of(x)).total())
