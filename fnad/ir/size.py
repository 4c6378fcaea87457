"""Sizes that are symbols: polynomials in the sizes of axes, and the intervals of sizes for which a program is right.

A program for all sizes is traced and lowered once. Each comparison of a size is decided for large sizes, by exact
arithmetic, and its `SizeScope` keeps an interval for each axis in which all comparisons have the same result.
Comparisons without one, such as `n < m`, are errors. A size that a function in C takes as a number, as `range(n)`
does, has no other value, and is an error. No other decision depends on a size, so the program is right within
the intervals.

Sizes such as n and m, which are equal for some numbers only, are unequal for fnad, and cannot be compared by user code:
fnad computes the same with arrays of shapes that it takes for different, or raises an error.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from fnad.errors import ExportError
from fnad.tracebacks import OWN
from fnad.upward import UPWARD

T = TypeVar("T")
Powers: TypeAlias = tuple[int, ...]
Polynomial: TypeAlias = tuple[tuple[Powers, Any], ...]
"""Terms of powers of the sizes and a coefficient, sorted by powers, without zeros."""

LONGEST = 2**40
"""The end of an interval without a limit: no array has an axis of so many elements."""

EXAMPLE = 1_000_003
"""A size that programs hardly ever compare with."""

FEW = 16
"""The least sizes are below this number where several sizes are compared."""


class SizeScope:
    """Intervals `low` to `high` of the sizes of axes, for which all decisions are those for large sizes.

    Of the names, those of `fixed` sizes are numbers in this program.
    """

    def __init__(self, names: Sequence[str], fixed: Iterable[str] = ()) -> None:
        self.names, self.open = tuple(names), [name for name in names if name not in fixed]
        self.low, self.high = dict.fromkeys(self.open, 0), dict.fromkeys(self.open, LONGEST)

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes of the axes, by name."""
        return {name: Size(self, ((tuple(int(own == name) for own in self.names), 1),)) for name in self.open}

    @property
    def intervals(self) -> dict[str, tuple[int, int]]:
        """The least and the greatest size, by name."""
        return {name: (self.low[name], self.high[name]) for name in self.open}

    @property
    def is_for_one(self) -> bool:
        """True if the interval of an axis has one size or none."""
        return any(low >= high for low, high in self.intervals.values())

    def sign(self, polynomial: Polynomial) -> int | None:
        """The sign of a polynomial for large sizes; narrows the intervals to sizes that have this sign.

        None for one without a sign, such as n - m.
        """
        involved = [name for k, name in enumerate(self.names) if any(powers[k] for powers, _ in polynomial)]
        if not involved:
            value = sum(c for _, c in polynomial)
            return (value > 0) - (value < 0)
        if len(involved) == 1:
            return self._sign_of_one(involved[0], _coefficients(polynomial, self.names.index(involved[0])))
        for least in range(FEW):
            low = {name: max(low, least) if name in involved else low for name, low in self.low.items()}
            shifted = _shifted(polynomial, [low.get(name, 0) for name in self.names])
            signs = {c > 0 for _, c in shifted}
            if len(signs) == 1 and not any(shifted[0][0]):
                self.low = low
                return 1 if signs == {True} else -1
        return None

    def is_never_negative(self, polynomial: Polynomial) -> bool:
        """True if a polynomial is shown to be 0 or more in the intervals."""
        return all(c > 0 for _, c in _shifted(polynomial, [self.low.get(name, 0) for name in self.names]))

    def _sign_of_one(self, name: str, coefficients: Sequence[Any]) -> int:
        """The sign of a polynomial in one size."""
        value = _value(coefficients, EXAMPLE)
        sign = (value > 0) - (value < 0)
        if sign == 0:
            self.limit(name, EXAMPLE, EXAMPLE)
        else:
            positive = [sign * c for c in coefficients]
            low, high = (_last_positive(positive, end) for end in (self.low[name], self.high[name]))
            self.limit(name, low, high)
        return sign

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Raise `ExportError`, and leave no interval."""
        for name in self.open:
            self.limit(name, EXAMPLE, EXAMPLE)
        raise ExportError(what, remedy=remedy)

    def number(self, size: Size) -> NoReturn:
        """Raise `ExportError`, because a size has no number."""
        self.refuse(f"the size {size!r} is used as a number, which it is not in a program for all sizes", ARITHMETIC)

    def limit(self, name: str, low: int, high: int) -> None:
        """Narrow an interval."""
        self.low[name], self.high[name] = max(low, self.low[name]), min(high, self.high[name])


ARITHMETIC = (
    "use it in arithmetic, shapes and slices; write a loop over the axis by fnad.scan or fnad.fori_loop, or export for "
    "each size"
)


def _last_positive(coefficients: Sequence[Any], end: int) -> int:
    """The size next to `end` up to which, from the example, a polynomial is shown to be positive."""
    if _is_positive(coefficients, end):
        return end
    inside, outside = EXAMPLE, end
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        if _is_positive(coefficients, middle):
            inside = middle
        else:
            outside = middle
    return inside


def _is_positive(coefficients: Sequence[Any], end: int) -> bool:
    """True if the Taylor series of a polynomial shows that it is positive between the example and `end`."""
    length, series = abs(EXAMPLE - end), list(coefficients)
    for k in range(len(series)):  # Horner's scheme: the coefficients around the lower end
        for i in range(len(series) - 2, k - 1, -1):
            series[i] += min(EXAMPLE, end) * series[i + 1]
    return series[0] + sum(min(c, 0) * length**k for k, c in enumerate(series) if k) > 0


def _coefficients(polynomial: Polynomial, k: int) -> list[Any]:
    """The coefficients of a polynomial in one size, the constant one first."""
    found = {powers[k]: c for powers, c in polynomial}
    return [found.get(power, 0) for power in range(max(found) + 1)]


def _value(coefficients: Sequence[Any], n: int) -> Any:
    return sum(c * n**k for k, c in enumerate(coefficients))


def _polynomial(terms: Iterable[tuple[Powers, Any]]) -> Polynomial:
    """The sum of terms."""
    found: dict[Powers, Any] = {}
    for powers, c in terms:
        found[powers] = found.get(powers, 0) + c
    return tuple(sorted((powers, c) for powers, c in found.items() if c))


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    return _polynomial((*a, *b))


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    return _polynomial((tuple(map(operator.add, p, q)), x * y) for p, x in a for q, y in b)


def _negative(a: Polynomial) -> Polynomial:
    return tuple((powers, -c) for powers, c in a)


class Size:
    """A polynomial with integers as coefficients in the sizes of axes, in the place of an int.

    It passes as an int where Python code tests the type. With floats it makes traced numbers.
    """

    __slots__ = ("polynomial", "scope")

    def __init__(self, scope: SizeScope, polynomial: Polynomial) -> None:
        self.scope, self.polynomial = scope, polynomial

    @property
    def __class__(self) -> Any:
        return int

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise TypeError("a size keeps its class")

    # ---- arithmetic

    def _with(
        self, other: Any, combine: Callable[[Polynomial, Polynomial], Polynomial], operation: Callable[[Any, Any], Any]
    ) -> Any:
        known = self._known(other)
        if known is not None:
            return _size(self.scope, combine(self.polynomial, known))
        is_number = isinstance(other, float | complex | np.inexact)
        return operation(UPWARD.number_of_size(self), other) if is_number else NotImplemented

    def _known(self, other: Any) -> Polynomial | None:
        """An integer as a polynomial."""
        if type(other) is Size:
            return other.polynomial if other.scope is self.scope else None
        is_integer = issubclass(type(other), int | np.integer)
        return _constant(self.scope, int(other)) if is_integer else None

    def __add__(self, other: Any) -> Any:
        return self._with(other, _sum, operator.add)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, _product, operator.mul)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: _sum(a, _negative(b)), operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: _sum(b, _negative(a)), lambda a, b: b - a)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else round(self.scope.number(self), digits)

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __pow__(self, exponent: Any) -> Any:
        if issubclass(type(exponent), int) and exponent in (0, 1, 2, 3):
            return reduce(operator.mul, [self] * exponent, 1)
        return UPWARD.number_of_size(self) ** exponent

    def __rpow__(self, base: Any) -> Any:
        return base ** UPWARD.number_of_size(self)

    def __truediv__(self, other: Any) -> Any:
        if _is_called_by_fnad():
            return self.scope.number(self)  # the step of `np.arange(n)`
        return UPWARD.number_of_size(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / UPWARD.number_of_size(self)

    def __divmod__(self, other: Any) -> Any:
        return self._quotient(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return self._quotient(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return divmod(self, other)[0]

    def __mod__(self, other: Any) -> Any:
        return divmod(self, other)[1]

    def __rfloordiv__(self, other: Any) -> Any:
        return divmod(other, self)[0]

    def __rmod__(self, other: Any) -> Any:
        return divmod(other, self)[1]

    def _quotient(self, a: Any, b: Any) -> tuple[Any, Any]:
        dividend, divisor = self._known(a), self._known(b)
        if dividend is None or divisor is None:
            a, b = (UPWARD.number_of_size(x) if type(x) is Size else x for x in (a, b))
            return a // b, a % b
        found = self.divided(dividend, divisor)
        return found or self.scope.refuse(
            f"a quotient or remainder of the size {a!r} by {b!r} is not a polynomial",
            "divide by / where a float is meant, or export for each size",
        )

    def divided(self, dividend: Polynomial, divisor: Polynomial) -> tuple[Any, Any] | None:
        """The quotient and the remainder, if they are polynomials."""
        if not divisor:
            return None
        (highest, first), rest = divisor[-1], dict(dividend)
        quotient, left = dict[Powers, int](), dict[Powers, int]()
        while rest:
            powers = max(rest)
            c = rest.pop(powers)
            times = c // first if all(map(operator.ge, powers, highest)) else 0
            if kept := c - times * first:
                left[powers] = kept
            if times:
                lower = tuple(map(operator.sub, powers, highest))
                quotient[lower] = times
                product = _product(((lower, -times),), divisor[:-1])
                rest = dict(_sum(tuple(rest.items()), product))
        remainder, sign = _polynomial(left.items()), self.scope.sign
        for more, one in ((0, remainder), (-1, _sum(remainder, divisor))):
            if sign(one) != -1 and sign(_sum(divisor, _negative(one))) == 1 and sign(one) in (0, 1):
                total = _sum(_polynomial(quotient.items()), _constant(self.scope, more))
                return _size(self.scope, total), _size(self.scope, one)
        return None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        is_exact = method == "__call__" and ufunc.__name__ in EXACT
        if is_exact and all(self._known(x) is not None for x in inputs):
            return EXACT[ufunc.__name__](*inputs)
        return getattr(ufunc, method)(*[UPWARD.number_of_size(x) if type(x) is Size else x for x in inputs], **options)

    # ---- comparisons

    def _compared(self, other: Any) -> float | None:
        """The sign of the difference to a number; raises `ExportError` if it has none."""
        if isinstance(other, float) and not math.isfinite(other):
            return -other
        if isinstance(other, float):
            from fractions import Fraction  # noqa: PLC0415 - it loads slowly

            known = _constant(self.scope, Fraction(other))
        else:
            known = self._known(other)
        if known is None:
            return None
        found = self.scope.sign(_sum(self.polynomial, _negative(known)))
        return self._refuse(other) if found is None else found

    def _refuse(self, other: Any) -> NoReturn:
        self.scope.refuse(
            f"the sizes {self!r} and {other!r} are compared, which has not one result for all sizes",
            "give axes of the same size the same name, or give numbers",
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is Size and self.scope is other.scope:
            sign = self.scope.sign(_sum(self.polynomial, _negative(other.polynomial)))
            if sign is None and not _is_called_by_fnad():
                self._refuse(other)
            return sign == 0
        return self._compared(other) == 0

    def __hash__(self) -> int:
        return hash((id(self.scope), self.polynomial))

    def __lt__(self, other: Any) -> bool:
        sign = self._compared(other)
        return NotImplemented if sign is None else sign < 0

    def __le__(self, other: Any) -> bool:
        sign = self._compared(other)
        return NotImplemented if sign is None else sign <= 0

    def __gt__(self, other: Any) -> bool:
        sign = self._compared(other)
        return NotImplemented if sign is None else sign > 0

    def __ge__(self, other: Any) -> bool:
        sign = self._compared(other)
        return NotImplemented if sign is None else sign >= 0

    def __bool__(self) -> bool:
        return self != 0

    # ---- numbers

    def __index__(self) -> int:
        return self.scope.number(self)

    __int__ = __float__ = __complex__ = __index__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(int, name):
            raise AttributeError(f"'int' object has no attribute {name!r}")
        return getattr(self.scope.number(self), name)

    def __repr__(self) -> str:
        terms = [_term(self.scope.names, *term) for term in reversed(self.polynomial)]
        return "".join(term if n == 0 or term[0] == "-" else f"+{term}" for n, term in enumerate(terms))


def _is_called_by_fnad() -> bool:
    """True if the caller of the calling method is code of fnad, not of a user."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return frame.f_code.co_filename.startswith(OWN)


def _term(names: Sequence[str], powers: Powers, c: Any) -> str:
    factors = [name for name, power in zip(names, powers, strict=True) for _ in range(power)]
    return "*".join(factors if c == 1 and factors else [str(c), *factors])


EXACT: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "maximum": max, "minimum": min,
}  # fmt: skip
"""The ufuncs that make polynomials or decisions of sizes."""


def is_size(value: object) -> bool:
    """True for a size that is a symbol."""
    return type(value) is Size


def computed(
    size: Any, sizes: Sequence[T], constant: Callable[[int], T], add: Callable[[T, T], T], multiply: Callable[[T, T], T]
) -> T:
    """A size that is a symbol from the sizes of the axes, by operations on values of any class."""
    terms: list[T] = []
    for powers, c in reversed(size.polynomial):
        factors = [n for n, power in zip(sizes, powers, strict=False) for _ in range(power)]
        terms.append(reduce(multiply, factors if c == 1 and factors else [constant(c), *factors]))
    return reduce(add, terms)


def axis_sizes(size: Any) -> Sequence[Any]:
    """The sizes of the axes in which a size that is a symbol is a polynomial; 0 for fixed ones."""
    sizes = size.scope.sizes
    return [sizes.get(name, 0) for name in size.scope.names]


def estimate(size: Any) -> Any:
    """The size, or the value of a symbol for an example: for decisions that only cost or save time."""
    return at_sizes(size, dict.fromkeys(size.scope.names, EXAMPLE)) if type(size) is Size else size


def is_same(a: Any, b: Any) -> bool:
    """True if two sizes are equal for all sizes of the axes; for decisions where False is always right."""
    return type(a) is type(b) and a.polynomial == b.polynomial if is_size(a) or is_size(b) else a == b


def is_at_least(a: Any, b: Any) -> bool:
    """True if a size is shown to be another or more; for decisions where False is always right."""
    if not is_size(a) and not is_size(b):
        return a >= b
    difference = a - b
    return difference.scope.is_never_negative(difference.polynomial) if is_size(difference) else difference >= 0


def at_least_both(a: Any, b: Any) -> Any:
    """The larger one of two sizes, or their sum where none is shown to be the larger one."""
    return a if is_at_least(a, b) else b if is_at_least(b, a) else a + b


def divided(a: Any, b: Any) -> tuple[Any, Any]:
    """A quotient q and a remainder r with a = q * b + r, equal to `divmod(a, b)` where that is shown."""
    if not is_size(a) and not is_size(b):
        return divmod(a, b)
    size = a if is_size(a) else b
    found = size.divided(size._known(a), size._known(b))
    return (0, a) if found is None else found


def common_divisor(a: Any, b: Any) -> int:
    """The greatest common divisor of two numbers, or a divisor of the coefficients of sizes that are symbols."""
    return math.gcd(*(c for x in (a, b) for c in ([c for _, c in x.polynomial] if is_size(x) else [x])))


def at_sizes(size: Any, numbers: Mapping[str, int]) -> Any:
    """The value of a size for numbers of elements of the axes."""
    if type(size) is not Size:
        return size
    return computed(size, [numbers.get(name, 0) for name in size.scope.names], int, operator.add, operator.mul)


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


def _constant(scope: SizeScope, number: Any) -> Polynomial:
    return (((0,) * len(scope.names), number),) if number else ()


def _shifted(polynomial: Polynomial, low: Sequence[int]) -> Polynomial:
    """A polynomial in the sizes less the numbers `low`."""
    zero, places = (0,) * len(low), range(len(low))
    factors = [_polynomial([(tuple(int(i == k) for i in places), 1), (zero, n)]) for k, n in enumerate(low)]
    total: Polynomial = ()
    for powers, c in polynomial:
        own = [factor for factor, power in zip(factors, powers, strict=True) for _ in range(power)]
        total = _sum(total, reduce(_product, own, ((zero, c),)))
    return total


def _size(scope: SizeScope, polynomial: Polynomial) -> Any:
    if any(any(powers) for powers, _ in polynomial):
        return Size(scope, polynomial)
    return polynomial[0][1] if polynomial else 0


def sizes_in(shapes: Sequence[Sequence[Any]]) -> bool:
    """True if a size in the shapes is a symbol."""
    return any(is_size(n) for shape in shapes for n in shape)
