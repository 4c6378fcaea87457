"""Sums of two floats, of which the second is the rounding error of the first, and polynomials that end in one.

A function is as accurate as its last operations. A formula computes with single floats as long as errors shrink
before the result, and with sums of two floats after that, so that the only error left is the last rounding. The
algorithms are those of Joldes, Muller & Popescu, "Tight and rigorous error bounds for basic building blocks of
double-word arithmetic", ACM Trans. Math. Softw. 44 (2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import zip_longest
from typing import Any, NamedTuple

from fnad.backends.llvm.formulas.coefficients import TABLES, table
from fnad.backends.llvm.lane import Lane, where


class Twofold(NamedTuple):
    """The number high + low; the second is at most a few units in the last place of the first."""

    high: Lane
    low: Lane

    def plus(self, other: Lane) -> Twofold:
        """The sum with a float of any size."""
        total = exact_sum(self.high, other)
        return sorted_sum(total.high, total.low + self.low)

    def plus_twofold(self, other: Twofold) -> Twofold:
        total = exact_sum(self.high, other.high)
        return sorted_sum(total.high, total.low + (self.low + other.low))

    def times(self, other: Any) -> Twofold:
        """The product with a float."""
        product = exact_product(self.high, other)
        return Twofold(product.high, self.low.muladd(other, product.low))

    def times_twofold(self, other: Twofold) -> Twofold:
        high = self.high * other.high
        error = self.high.fma(other.high, -high)
        return Twofold(high, self.high.muladd(other.low, self.low.muladd(other.high, error)))

    def product(self, other: Lane) -> Lane:
        """The product with a float as a float, rounded once, also if it is subnormal."""
        return other.fma(self.high, other * self.low)

    def over(self, divisor: Twofold) -> Twofold:
        """The quotient, by one division and one Newton step."""
        inverse = 1.0 / divisor.high
        high = self.high * inverse
        rest = (-high).fma(divisor.high, self.high) + (-high).muladd(divisor.low, self.low)
        return Twofold(high, rest * inverse)

    def scaled(self, factor: Any) -> Twofold:
        """The product with a power of two."""
        return Twofold(self.high * factor, self.low * factor)

    def negative(self) -> Twofold:
        return Twofold(-self.high, -self.low)

    def total(self) -> Lane:
        return self.high + self.low


def choose(condition: Lane, a: Twofold, b: Twofold) -> Twofold:
    """The sum a where a condition holds, else b."""
    return Twofold(where(condition, a.high, b.high), where(condition, a.low, b.low))


def of(x: Lane) -> Twofold:
    """A float as a sum."""
    return Twofold(x, x.number(0.0))


def constant(like: Lane, high: float, low: float) -> Twofold:
    return Twofold(like.number(high), like.number(low))


def by_dtype(f64: tuple[float, float], f32: tuple[float, float]) -> Callable[[Lane], Twofold]:
    """A constant as a sum in the dtype of a lane."""
    return lambda x: constant(x, *(f64 if x.is_double else f32))


def sorted_sum(large: Lane, small: Any) -> Twofold:
    """The exact sum of two floats, the first of which is at least as large."""
    high = large + small
    return Twofold(high, small - (high - large))


def exact_sum(a: Lane, b: Any) -> Twofold:
    """The exact sum of two floats."""
    high = a + b
    part = high - a
    return Twofold(high, (a - (high - part)) + (b - part))


def exact_product(a: Lane, b: Any) -> Twofold:
    high = a * b
    return Twofold(high, a.fma(b, -high))


def polynomial(coefficients: Sequence[float], x: Lane) -> Lane:
    """The polynomial with these coefficients, the constant first, by Horner's rule."""
    *rest, last = coefficients
    return reduce(lambda value, coefficient: value.muladd(x, coefficient), rest[::-1], x.number(last))


def paired(coefficients: Sequence[float], x: Lane) -> Lane:
    """The polynomial by Estrin's scheme, whose terms do not wait for each other."""
    terms = [x.number(c) for c in coefficients]
    while len(terms) > 1:
        pairs = [low if high is None else high.muladd(x, low) for low, high in zip_longest(terms[::2], terms[1::2])]
        terms, x = pairs, x * x
    return terms[0]


def precise(name: str, x: Lane) -> Twofold:
    """The polynomial of a name, whose constant has two parts and is at least as large as the rest."""
    constant, *rest = table(name, x)
    low = TABLES[name].low[0 if x.is_double else 1]
    return sorted_sum(x.number(constant), x.muladd(polynomial(rest, x), low))
