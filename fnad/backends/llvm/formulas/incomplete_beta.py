"""The incomplete beta function of f32 and its complement, for parameters of a moderate size.

The continued fraction DLMF 8.17.22 without quotients: its level j is multiplied by a + j. A fixed number of levels is
evaluated forwards in f64, as numerators and denominators. Where it converges slowly, the complement has another one.
"""

from __future__ import annotations

from fnad.backends.llvm.formulas.exponential import exp, log_of
from fnad.backends.llvm.formulas.gamma import beta_parts
from fnad.backends.llvm.lane import Lane, where

SMALL, LARGE = 2.0**-10, 32.0
"""Bounds of the parameters: below, complements cancel; above, the fraction has more levels."""

LEVELS = 40
"""The number of levels after which the rest is less than 4e-9 of the fraction."""


def betainc(a: Lane, b: Lane, x: Lane) -> Lane:
    value, is_complement = smaller(a, b, x)
    return where(is_complement, 1.0 - value, value).as_single()


def betaincc(a: Lane, b: Lane, x: Lane) -> Lane:
    value, is_complement = smaller(a, b, x)
    return where(is_complement, value, 1.0 - value).as_single()


def smaller(a: Lane, b: Lane, x: Lane) -> tuple[Lane, Lane]:
    """The function on this side of its mean in f64, or else its complement, and True of the complement."""
    a, b, x = a.as_double(), b.as_double(), x.as_double()
    y = 1.0 - x
    logarithm, factor = beta_parts(a, b)
    density = exp(a * log_of(x).total() + b * log_of(y).total() - logarithm) / factor
    is_complement = (a + b + 2.0) * x > a + 1.0
    return density * inverse_fraction(
        where(is_complement, b, a), where(is_complement, a, b), where(is_complement, y, x)
    ), is_complement


def inverse_fraction(a: Lane, b: Lane, x: Lane) -> Lane:
    """The inverse of a + c₁ / (a + 1 + c₂ / (a + 2 + …))."""
    above, below = (a.number(1.0), a), (a.number(0.0), a.number(1.0))
    bx, total_x = b * x, (a + b) * x
    for level in range(1, LEVELS + 1):
        m = level // 2
        c = x.muladd(-m, bx) * m if level % 2 == 0 else x.muladd(m, total_x) * -(a + m)
        factor = a + level
        above, below = ((last, last.muladd(factor, c * before)) for before, last in (above, below))
    return below[1] / above[1]


def are_moderate(a: Lane, b: Lane, x: Lane) -> Lane:
    """True if the parameters are within the bounds and x is between 0 and 1."""
    inside = [(value >= SMALL) & (value <= LARGE) for value in (a, b)]
    return inside[0] & inside[1] & (x > 0.0) & (x < 1.0)
