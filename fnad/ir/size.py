"""Sizes that are symbols: polynomials in the size of an axis, and the interval of sizes for which a program is right.

A program for all sizes is traced and lowered for one of them, the example. Each comparison of a size is decided for the
example, and its `Scope` keeps the interval of sizes for which all comparisons have the same result. A size that a
function in C takes as a number, as `range(n)` does, has no other value, and is an error. No other decision depends on
the size, so the program is right for the whole interval.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NoReturn, TypeAlias

import numpy as np

from fnad.errors import ExportError
from fnad.upward import UPWARD

Polynomial: TypeAlias = tuple[Any, ...]
"""Coefficients, the constant one first, without zeros at the end."""

LONGEST = 2**40
"""The end of an interval without a limit: no array has an axis of so many elements."""

EXAMPLE = 1_000_003
"""The example: a size that programs hardly ever compare with."""


class Scope:
    """The sizes `low` to `high` of an axis for which all decisions are those for the example."""

    def __init__(self, name: str) -> None:
        self.name, self.low, self.high = name, 0, LONGEST

    @property
    def size(self) -> Any:
        """The size of the axis."""
        return Size(self, (0, 1))

    def sign(self, polynomial: Polynomial) -> int:
        """The sign of a polynomial for the example; narrows the interval to sizes that have this sign."""
        value = _value(polynomial, EXAMPLE)
        sign = (value > 0) - (value < 0)
        if len(polynomial) > 1 and sign == 0:
            self._limit(EXAMPLE, EXAMPLE)
        elif len(polynomial) > 1:
            positive = tuple(sign * c for c in polynomial)
            self._limit(_last_positive(positive, self.low), _last_positive(positive, self.high))
        return sign

    def number(self, size: Size) -> int:
        """Raise `ExportError`, because a size has no number."""
        self._limit(EXAMPLE, EXAMPLE)
        raise ExportError(
            f"the size {size!r} is used as a number, which it is not in a program for all sizes",
            remedy="use x.shape[0] in arithmetic, shapes and slices alone, not in len(x), range or Python loops",
        )

    def _limit(self, low: int, high: int) -> None:
        self.low, self.high = max(low, self.low), min(high, self.high)


def _last_positive(polynomial: Polynomial, end: int) -> int:
    """The size next to `end` up to which, from the example, a polynomial is shown to be positive."""
    if _is_positive(polynomial, end):
        return end
    inside, outside = EXAMPLE, end
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        if _is_positive(polynomial, middle):
            inside = middle
        else:
            outside = middle
    return inside


def _is_positive(polynomial: Polynomial, end: int) -> bool:
    """True if the Taylor series of a polynomial shows that it is positive between the example and `end`."""
    first, length = min(EXAMPLE, end), abs(EXAMPLE - end)
    series: Polynomial = ()
    for c in reversed(polynomial):
        series = _sum(_product(series, (first, 1)), (c,))
    lowest = series[0] if series else 0
    return lowest + sum(min(c, 0) * length**k for k, c in enumerate(series) if k) > 0


def _value(polynomial: Polynomial, n: int) -> Any:
    return sum(c * n**k for k, c in enumerate(polynomial))


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    return _trimmed([x + y for x, y in zip_longest(a, b, fillvalue=0)])


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    found = [0] * (len(a) + len(b))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] += x * y
    return _trimmed(found)


def _negative(a: Polynomial) -> Polynomial:
    return tuple(-c for c in a)


def _trimmed(coefficients: list[Any]) -> Polynomial:
    while coefficients and coefficients[-1] == 0:
        coefficients.pop()
    return tuple(coefficients)


class Size:
    """A polynomial in the size of an axis, in the place of a number.

    It passes as an int, or as a float if it has such coefficients, where Python code tests the type.
    """

    __slots__ = ("polynomial", "scope")

    def __init__(self, scope: Scope, polynomial: Polynomial) -> None:
        self.scope, self.polynomial = scope, polynomial

    @property
    def __class__(self) -> Any:
        return float if any(isinstance(c, float) for c in self.polynomial) else int

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise TypeError("a size keeps its class")

    # ---- arithmetic

    def _with(self, other: Any, combine: Callable[[Polynomial, Polynomial], Polynomial]) -> Any:
        known = self._known(other)
        return NotImplemented if known is None else _size(self.scope, combine(self.polynomial, known))

    def _known(self, other: Any) -> Polynomial | None:
        """A number as a polynomial."""
        if type(other) is Size:
            return other.polynomial if other.scope is self.scope else None
        if isinstance(other, np.integer | np.floating):
            other = other.item()
        return _trimmed([other]) if issubclass(type(other), int | float) else None

    def __add__(self, other: Any) -> Any:
        return self._with(other, _sum)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, _product)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: _sum(a, _negative(b)))

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: _sum(b, _negative(a)))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __pow__(self, exponent: Any) -> Any:
        if exponent not in (1, 2, 3):
            return UPWARD.number_of_size(self) ** exponent
        return self if exponent == 1 else self * self ** (exponent - 1)

    def __rpow__(self, base: Any) -> Any:
        return base ** UPWARD.number_of_size(self)

    def __truediv__(self, other: Any) -> Any:
        if issubclass(type(other), int | float):
            return Size(self.scope, tuple(c / other for c in self.polynomial))
        return UPWARD.number_of_size(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / UPWARD.number_of_size(self)

    def __divmod__(self, other: Any) -> Any:
        return self._divided(self.polynomial, self._known(other)) or self._raise_no_quotient()

    def __rdivmod__(self, other: Any) -> Any:
        return self._divided(self._known(other), self.polynomial) or self._raise_no_quotient()

    def __floordiv__(self, other: Any) -> Any:
        return divmod(self, other)[0]

    def __mod__(self, other: Any) -> Any:
        return divmod(self, other)[1]

    def __rfloordiv__(self, other: Any) -> Any:
        return divmod(other, self)[0]

    def __rmod__(self, other: Any) -> Any:
        return divmod(other, self)[1]

    def _divided(self, dividend: Polynomial | None, divisor: Polynomial | None) -> tuple[Any, Any] | None:
        """The quotient and the remainder, if they are polynomials."""
        if dividend is None or not divisor or any(isinstance(c, float) for c in (*dividend, *divisor)):
            return None
        rest, quotient = list(dividend), [0] * max(1, len(dividend) - len(divisor) + 1)
        for power in range(len(dividend) - len(divisor), -1, -1):
            quotient[power] = rest[power + len(divisor) - 1] // divisor[-1]
            for k, b in enumerate(divisor):
                rest[power + k] -= quotient[power] * b
        left, sign = _trimmed(rest), self.scope.sign
        for more, remainder in ((0, left), (-1, _sum(left, divisor))):
            if sign(remainder) >= 0 and sign(_sum(divisor, _negative(remainder))) > 0:
                return _size(self.scope, _sum(tuple(quotient), (more,))), _size(self.scope, remainder)
        return None

    def _raise_no_quotient(self) -> NoReturn:
        raise ExportError(
            f"a quotient or remainder of the size {self!r} is not a polynomial",
            remedy="divide by / where a float is meant, or export for each size",
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        numbers = [x.item() if isinstance(x, np.generic) else x for x in inputs]
        is_exact = method == "__call__" and ufunc.__name__ in EXACT
        if is_exact and all(issubclass(type(x), int | float | Size) for x in numbers):
            return EXACT[ufunc.__name__](*numbers)
        return getattr(ufunc, method)(*[UPWARD.number_of_size(x) if type(x) is Size else x for x in inputs], **options)

    # ---- comparisons

    def _sign(self, other: Any) -> int | None:
        known = self._known(other)
        return None if known is None else self.scope.sign(_sum(self.polynomial, _negative(known)))

    def __eq__(self, other: object) -> bool:
        return self._sign(other) == 0

    def __hash__(self) -> int:
        return hash((id(self.scope), self.polynomial))

    def __lt__(self, other: Any) -> bool:
        sign = self._sign(other)
        return NotImplemented if sign is None else sign < 0

    def __le__(self, other: Any) -> bool:
        sign = self._sign(other)
        return NotImplemented if sign is None else sign <= 0

    def __gt__(self, other: Any) -> bool:
        sign = self._sign(other)
        return NotImplemented if sign is None else sign > 0

    def __ge__(self, other: Any) -> bool:
        sign = self._sign(other)
        return NotImplemented if sign is None else sign >= 0

    def __bool__(self) -> bool:
        return self.scope.sign(self.polynomial) != 0

    # ---- numbers

    def __index__(self) -> int:
        return self.scope.number(self)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.scope.number(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.scope.number(self), name)

    def __repr__(self) -> str:
        first, *others = _terms(self.scope.name, self.polynomial)
        return first.removeprefix("1*") + "".join(term if term[0] == "-" else f"+{term}" for term in others)


def _terms(name: str, polynomial: Polynomial) -> Iterator[str]:
    for power, c in reversed(list(enumerate(polynomial))):
        if c:
            yield "*".join([str(c), *[name] * power])


EXACT: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "maximum": max, "minimum": min,
}  # fmt: skip
"""The ufuncs that make polynomials or decisions of sizes."""


def is_size(value: object) -> bool:
    """True for a size that is a symbol."""
    return type(value) is Size


def axis_of_size(size: Any) -> Any:
    """The size of the axis, in which a size that is a symbol is a polynomial."""
    return size.scope.size


def polynomial_of(size: Any) -> Polynomial:
    """The coefficients of a size that is a symbol, the constant one first."""
    return size.polynomial


def estimate(size: Any) -> Any:
    """The size, or the value of a symbol for the example: for decisions that only cost or save time."""
    return _value(size.polynomial, EXAMPLE) if type(size) is Size else size


def is_same(a: Any, b: Any) -> bool:
    """True if two sizes are equal for each size of the axis; for decisions where False is always right."""
    return type(a) is type(b) and polynomial_of(a) == polynomial_of(b) if is_size(a) or is_size(b) else a == b


def divided(a: Any, b: Any) -> tuple[Any, Any]:
    """A quotient q and a remainder r with a = q * b + r, equal to `divmod(a, b)` where that is shown."""
    if not is_size(a) and not is_size(b):
        return divmod(a, b)
    size = a if is_size(a) else b
    found = size._divided(size._known(a), size._known(b))
    return (0, a) if found is None else found


def common_divisor(a: Any, b: Any) -> int:
    """The greatest common divisor of two numbers, or a divisor of the coefficients of sizes that are symbols."""
    return math.gcd(*(int(c) for x in (a, b) for c in (polynomial_of(x) if is_size(x) else (x,))))


def at_size(size: Any, n: int) -> Any:
    """The value of a size for an axis of n elements."""
    return _value(size.polynomial, n) if type(size) is Size else size


def slice_bounds(entry: slice, n: int) -> tuple[int, int, int]:
    """`entry.indices(n)` for a size that may be a symbol."""
    if not any(map(is_size, (n, entry.start, entry.stop))):
        return entry.indices(n)
    step = 1 if entry.step is None else operator.index(entry.step)
    low, high = (0, n) if step > 0 else (-1, n - 1)

    def bound(given: int | None, default: int) -> int:
        if given is None:
            return default
        return max(given + n, low) if given < 0 else min(given, high)

    return bound(entry.start, low if step > 0 else high), bound(entry.stop, high if step > 0 else low), step


def _size(scope: Scope, polynomial: Polynomial) -> Any:
    if len(polynomial) > 1:
        return Size(scope, polynomial)
    return polynomial[0] if polynomial else 0


def sizes_in(shapes: Sequence[Sequence[Any]]) -> bool:
    """True if a size in the shapes is a symbol."""
    return any(is_size(n) for shape in shapes for n in shape)
