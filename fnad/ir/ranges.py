"""Intervals that values lie in, and where operations are singular: what a static analysis knows without numbers.

A primitive declares `bounds`, from the ranges of its operands to that of its result, and `singular`, where it or its
derivative is not finite (`fnad/ir/primitive.py`); `fnad/control/singular.py` puts them together. Ranges are those of
real numbers: exp(x) is positive, although it underflows. One object stands for one number: x * x is a square.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, TypeAlias

INF = float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """The numbers from `low` to `high`, without the former if `above`, the latter if `below`, and 0 if `nonzero`."""

    low: float = -INF
    high: float = INF
    above: bool = False
    below: bool = False
    nonzero: bool = False

    @classmethod
    def of(cls, value: float) -> Range:
        """A number alone; anything for a nan."""
        return cls() if math.isnan(value) else cls(value, value)

    @property
    def is_nonzero(self) -> bool:
        """True if 0 is not in it."""
        return (
            self.nonzero
            or not (self.low <= 0 <= self.high)
            or ((self.low == 0 and self.above) or (self.high == 0 and self.below))
        )

    @property
    def is_positive(self) -> bool:
        """True if all in it is larger than 0."""
        return self.low >= 0 and self.is_nonzero

    def lies_in(self, other: Range) -> bool:
        """True if all in it is in the other."""
        is_above = self.low > other.low or (self.low == other.low and (self.above or not other.above))
        is_below = self.high < other.high or (self.high == other.high and (self.below or not other.below))
        from_low = is_above or other.low == -INF or (self.low == other.low == 0 and self.is_nonzero)
        from_high = is_below or other.high == INF or (self.high == other.high == 0 and self.is_nonzero)
        return from_low and from_high and (not other.nonzero or self.is_nonzero)

    def same(self, other: Range) -> bool:
        """True if the two are equal."""
        return self.lies_in(other) and other.lies_in(self)

    def __or__(self, other: Range) -> Range:
        """The range of what is in either."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        above = all(r.above or r.low > low for r in (self, other))
        below = all(r.below or r.high < high for r in (self, other))
        return Range(low, high, above, below, self.is_nonzero and other.is_nonzero)

    def __and__(self, other: Range) -> Range:
        """The range of what is in both."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        above = any(r.above and r.low == low for r in (self, other))
        below = any(r.below and r.high == high for r in (self, other))
        return Range(low, high, above, below, self.is_nonzero or other.is_nonzero)

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low, self.below, self.above, self.nonzero)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high, self.above or other.above, self.below or other.below)

    def __sub__(self, other: Range) -> Range:
        return self + -other

    def __mul__(self, other: Range) -> Range:
        if self is other:
            return self.power(2)
        corners = [
            0.0 if 0 in pair else pair[0] * pair[1] for pair in product(*[(r.low, r.high) for r in (self, other)])
        ]
        return Range(min(corners), max(corners), nonzero=self.is_nonzero and other.is_nonzero)

    def __truediv__(self, other: Range) -> Range:
        """The range of quotients; where the divisor is 0 there is none."""
        if other.low < 0 < other.high or other.low == other.high == 0:
            return Range(nonzero=self.is_nonzero)
        low, high = (
            1.0 / end if end else math.copysign(INF, other.low + other.high) for end in (other.high, other.low)
        )
        return self * Range(low, high, nonzero=True)

    def power(self, exponent: int) -> Range:
        """The range of a power."""
        if exponent < 0:
            return Range.of(1.0) / self.power(-exponent)
        if exponent % 2 == 0:
            size = self.magnitude()
            return Range(_power(size.low, exponent), _power(size.high, exponent), nonzero=size.is_nonzero)
        low, high = _power(self.low, exponent), _power(self.high, exponent)
        return Range(low, high, self.above, self.below, self.nonzero)

    def magnitude(self) -> Range:
        """The range of the absolute value."""
        if self.low >= 0 or self.high <= 0:
            return self if self.low >= 0 else -self
        return Range(0.0, max(-self.low, self.high), nonzero=self.is_nonzero)

    def larger(self, other: Range) -> Range:
        """The range of the larger of two."""
        low, high = max(self.low, other.low), max(self.high, other.high)
        above = all(r.above or r.low < low for r in (self, other)) or any(
            r.above and r.low == low for r in (self, other)
        )
        return Range(low, high, above=above, nonzero=self.is_positive or other.is_positive)

    def smaller(self, other: Range) -> Range:
        """The range of the smaller of two."""
        return -(-self).larger(-other)

    def summed(self) -> Range:
        """The range of a sum of some of it, one at least."""
        low, high = (self.low if self.low >= 0 else -INF), (self.high if self.high <= 0 else INF)
        return Range(low, high, self.above, self.below, self.is_nonzero and (low >= 0 or high <= 0))

    def widened(self, before: Range) -> Range:
        """The range with the ends that have moved since `before` as far as their sign allows."""
        low = self.low if self.low >= before.low else 0.0 if self.low >= 0 else -INF
        high = self.high if self.high <= before.high else 0.0 if self.high <= 0 else INF
        return Range(low, high, self.above and low == self.low, self.below and high == self.high, self.is_nonzero)

    def __str__(self) -> str:
        left, right = "(" if self.above or self.low == -INF else "[", ")" if self.below or self.high == INF else "]"
        without = " without 0" if self.nonzero and self.low <= 0 <= self.high else ""
        return f"{left}{self.low:g}, {self.high:g}{right}{without}"


def _power(value: float, exponent: int) -> float:
    try:
        return float(value**exponent)
    except OverflowError:
        return math.copysign(INF, value)


Bounds: TypeAlias = Callable[..., Range]
"""From the ranges of the operands, and the params, to that of the result."""

POSITIVE = Range(0.0, above=True)
NONNEGATIVE = Range(0.0)
NONZERO = Range(nonzero=True)
WITHIN_ONE = Range(-1.0, 1.0, above=True, below=True)


class Singular(NamedTuple):
    """The range of an operand in which an operation, or its derivative, is finite, and its value elsewhere.

    The range may depend on the other operands and the params: a function of the ranges, and None if it is everywhere.
    """

    operand: int
    finite: Range | Callable[..., Range | None]
    elsewhere: str

    def required(self, *operands: Range, **params: Any) -> Range | None:
        """The range that the operand has to lie in."""
        return self.finite if isinstance(self.finite, Range) else self.finite(*operands, **params)


def increasing(f: Callable[[float], float]) -> Bounds:
    """The bounds of an increasing function of a real variable."""

    def bounds(x: Range, **_: Any) -> Range:
        low, high = _limit(f, x.low), _limit(f, x.high)
        return Range(low, high, x.above or x.low == -INF, x.below or x.high == INF)

    return bounds


def _limit(f: Callable[[float], float], x: float) -> float:
    try:
        return float(f(x))
    except OverflowError:
        return INF
    except ValueError:  # outside of its domain, which begins with -inf or a value there
        return -INF


def always(low: float, high: float, *, above: bool = False, below: bool = False) -> Bounds:
    """The bounds of a function of which all values are in one range."""
    return lambda *_, **__: Range(low, high, above, below)
