"""The inverses of the error function and of the normal distribution function.

They are odd polynomials where the probability is near 1/2, and polynomials in s = √(-log p) in the tails, as in M. J.
Wichura, Appl. Statist. 37 (1988), 477, and M. Giles, "Approximating the erfinv function", GPU Computing Gems (2012).
"""

from __future__ import annotations

from fnad.backends.llvm.formulas.exponential import INF, NAN, log_of
from fnad.backends.llvm.formulas.twofold import Twofold, by_dtype, choose, precise
from fnad.backends.llvm.lane import Lane, where

PARTS = ((1.9, 1.5), (3.5, 2.625), (6.25, 4.875), (12.0, 8.75), (28.0, 19.0))
"""The end and the centre of each part of a tail, in s = √(-log p)."""

SQRT_2 = by_dtype((1.4142135623730951, -9.667293313452913e-17), (1.4142135381698608, 2.4203234971764687e-08))

CENTRAL = 0.7
"""The argument of erfinv from which there is a tail."""


def erfinv(x: Lane) -> Lane:
    size = abs(x)
    least = 1.0 - size
    value = where(size < CENTRAL, precise("erfinv", x * x).product(size), tail(least, 3).total())
    return within_unit(least, value, x)


def erfcinv(y: Lane) -> Lane:
    x, other = 1.0 - y, 2.0 - y
    least = where(y > 1.0, other, y)
    value = choose(abs(x) < CENTRAL, central(x, (1.0 - x) - y), tail(least))
    return within_unit(least, value.total(), x)


def ndtri(p: Lane) -> Lane:
    half = p - 0.5
    x = half + half
    least = where(p > 0.5, 1.0 - p, p)
    error = p - (half + 0.5)
    value = choose(abs(x) < CENTRAL, central(x, error + error), tail(least + least))
    return within_unit(least, value.times_twofold(SQRT_2(p)).total(), x)


def central(x: Lane, error: Lane) -> Twofold:
    """The size of erfinv(x + error), whose slope is close to 1.2."""
    value = precise("erfinv", x * x).times(abs(x))
    return Twofold(value.high, where(x < 0.0, -error, error).muladd(1.2, value.low))


def within_unit(least: Lane, value: Lane, x: Lane) -> Lane:
    """The value with the sign of x where the probability `least` of the tail is positive, infinite where it is 0."""
    limit = where(least < 0.0, x.number(NAN), x.number(INF))
    return where(least > 0.0, value, where(least <= 0.0, limit, least)).signed(x)


def tail(p: Lane, count: int = 5) -> Twofold:
    """The positive x whose erfc is p, for p below 0.3 and not less than the first `count` parts are for."""
    square = log_of(p).negative()
    s = square.high.sqrt()
    parts = PARTS[: count if p.is_double else min(count, 4)]
    *others, value = [precise(f"erfcinv_{n}", s - centre) for n, (_, centre) in enumerate(parts)]
    for part, (end, _) in reversed([*zip(others, parts, strict=False)]):
        value = choose(s < end, part, value)
    # The slope in s is close to 1, and s has a rounding error.
    error = (s.fma(-s, square.high) + square.low) * 0.5 / s
    return Twofold(value.high, error.muladd(SLOPE, value.low))


SLOPE = 0.95
