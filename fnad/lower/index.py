"""Index expressions: integers that a loop nest computes to address its arrays.

An index is an affine combination of atoms, constant + Σ coefficient · atom. Its form is canonical, so that equal
addresses are equal objects and a store can be recognised in a later load. An atom is a loop counter, an integer loaded
at run time, or a quotient or remainder that did not simplify. Every atom has a range, from which

    (n·q + r) // n = q,   (n·q + r) % n = r        where 0 <= r < n
    (g·a + r) // (g·m) = a // m                    where 0 <= r < g
    n·(a // n) + a % n = a
    m·(a // (n·m)) + (a // n) % m = a // n

follow: with these the address of a reshape of a row-major array becomes that of the array itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any, TypeAlias

from fnad.ir.size import common_divisor, divided
from fnad.ir.types import Shape

Range: TypeAlias = tuple[int, int]
"""The least and the greatest value."""

ENDLESS = 2**48
"""The extent of a loop whose length is known only at run time."""


@dataclass(frozen=True, slots=True)
class Counter:
    """The counter of the loop at this depth, 0 <= counter < extent."""

    depth: int
    extent: int

    @property
    def range(self) -> Range:
        return 0, max(self.extent - 1, 0)


@dataclass(frozen=True, slots=True)
class Loaded:
    """An integer known only at run time: the value of a scalar node, 0 <= value < extent after its check."""

    node: Any
    extent: int

    @property
    def range(self) -> Range:
        return 0, max(self.extent - 1, 0)


@dataclass(frozen=True, slots=True)
class Quotient:
    """dividend // divisor, rounded down."""

    dividend: Index
    divisor: int

    @property
    def range(self) -> Range:
        low, high = self.dividend.range
        return low // self.divisor, high // self.divisor


@dataclass(frozen=True, slots=True)
class Remainder:
    """dividend % divisor, not negative."""

    dividend: Index
    divisor: int

    @property
    def range(self) -> Range:
        return 0, self.divisor - 1


Atom: TypeAlias = Counter | Loaded | Quotient | Remainder


@dataclass(frozen=True, slots=True)
class Index:
    """constant + Σ coefficient · atom; terms are sorted, coefficients are not zero."""

    constant: int
    terms: tuple[tuple[Atom, int], ...] = ()

    def reads(self, depth: int | None) -> bool:
        """True if it depends on the counter of the loop at this depth, or may."""
        return any(_reads(atom, depth) for atom, _ in self.terms)

    def __add__(self, other: Index | int) -> Index:
        other = as_index(other)
        if not self.terms or not other.terms:
            return Index(self.constant + other.constant, self.terms or other.terms)
        total = dict(self.terms)
        for atom, coefficient in other.terms:
            total[atom] = total.get(atom, 0) + coefficient
        return rejoin(self.constant + other.constant, total)

    __radd__ = __add__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + as_index(other) * -1

    def __rsub__(self, other: int) -> Index:
        return self * -1 + other

    def __mul__(self, factor: int) -> Index:
        return canonical(self.constant * factor, {atom: c * factor for atom, c in self.terms})

    __rmul__ = __mul__

    def __floordiv__(self, n: int) -> Index:
        quotient, rest = self._divide(n)
        low, high = rest.range
        if low >= 0 and high < n:
            return quotient
        reduced, divisor = _cancel(rest, n)
        return quotient + (reduced if divisor == 1 else Index(0, ((Quotient(reduced, divisor), 1),)))

    def __mod__(self, n: int) -> Index:
        _, rest = self._divide(n)
        low, high = rest.range
        return rest if low >= 0 and high < n else Index(0, ((Remainder(rest, n), 1),))

    @property
    def remainder(self) -> Remainder | None:
        """The remainder that the index is, if it is one."""
        match self:
            case Index(0, ((Remainder() as found, 1),)):
                return found
            case _:
                return None

    def part(self, n: int) -> Index:
        """An index that is 0 where this one is a multiple of n: without a division if the counters allow it.

        Of row i and column j of a square of m rows (m·i + j) - (m + 1)·i = j - i: a multiple of m + 1 only if 0.
        """
        _, rest = self._near(n)
        return rest if _is_part(rest, n) else self % n

    def where_zero(self, remainder: Remainder) -> Index:
        """The index where a remainder is 0."""
        dividend, n = remainder.dividend, remainder.divisor
        quotient, rest = dividend._near(n)
        floor = Quotient(dividend, n)
        return self + (quotient - Index(0, ((floor, 1),))) * self.coefficient(floor) if _is_part(rest, n) else self

    def _near(self, n: int) -> tuple[Index, Index]:
        """Split into n · quotient + rest, term by term, each rest of the least size."""
        whole = {atom: (2 * c + n - 1) // (2 * n) for atom, c in self.terms}
        rest = {atom: c - n * whole[atom] for atom, c in self.terms}
        constant = (2 * self.constant + n - 1) // (2 * n)
        return canonical(constant, whole), canonical(self.constant - n * constant, rest)

    def _divide(self, n: int) -> tuple[Index, Index]:
        """Split into n · quotient + rest, term by term."""
        quotients = {atom: divided(c, n) for atom, c in self.terms}
        whole = {atom: q for atom, (q, r) in quotients.items() if r == 0}
        rest = {atom: c for atom, c in self.terms if atom not in whole}
        quotient, remainder = divided(self.constant, n)
        return canonical(quotient, whole), canonical(remainder, rest)

    @property
    def range(self) -> Range:
        low = high = self.constant
        for atom, c in self.terms:
            a, b = atom.range
            low, high = low + min(c * a, c * b), high + max(c * a, c * b)
        return low, high

    def coefficient(self, atom: Atom) -> int:
        return dict(self.terms).get(atom, 0)

    @property
    def depth(self) -> int:
        """The number of loops, from the outermost, that must be open for this to be known."""
        return max((_depth(atom) for atom, _ in self.terms), default=0)


def _is_part(rest: Index, n: int) -> bool:
    """True if the only multiple of n in the range is 0."""
    low, high = rest.range
    return -n < low and high < n


def as_index(value: Index | int) -> Index:
    """An int or an index, as an index."""
    return value if isinstance(value, Index) else Index(value)


def counter(depth: int, extent: int) -> Index:
    """The index of a loop; that of a loop with one iteration is 0."""
    return Index(0) if extent == 1 else Index(0, ((Counter(depth, extent), 1),))


def canonical(constant: int, terms: dict[Atom, int]) -> Index:
    """The index with its terms sorted and without zeros."""
    kept = [(atom, c) for atom, c in terms.items() if c]
    return Index(constant, tuple(sorted(kept, key=_order) if len(kept) > 1 else kept))


def rejoin(constant: int, terms: dict[Atom, int]) -> Index:
    """Apply n·(a // n) + a % n = a and m·(a // (n·m)) + (a // n) % m = a // n, then canonicalise."""
    for atom, c in list(terms.items()):
        if isinstance(atom, Remainder) and c:
            match atom.dividend:
                case Index(0, ((Quotient(dividend, divisor) as part, 1),)):
                    whole = Quotient(dividend, divisor * atom.divisor)
                    if terms.get(whole) == c * atom.divisor:
                        rest = {a: k for a, k in terms.items() if a not in (atom, whole)}
                        return rejoin(constant, rest | {part: rest.get(part, 0) + c})
                case _:
                    pass
            quotient = Quotient(atom.dividend, atom.divisor)
            if terms.get(quotient) == c * atom.divisor:
                rest = {a: k for a, k in terms.items() if a not in (atom, quotient)}
                return Index(constant, canonical(0, rest).terms) + atom.dividend * c
    return canonical(constant, terms)


def _cancel(rest: Index, n: int) -> tuple[Index, int]:
    """Divide dividend and divisor by their common factor, dropping terms too small to matter."""
    large = [(atom, c) for atom, c in rest.terms if common_divisor(c, n) > 1]
    factor = reduce(common_divisor, (c for _, c in large), n)
    small = canonical(rest.constant % factor, {atom: c for atom, c in rest.terms if (atom, c) not in large})
    low, high = small.range
    if factor == 1 or low < 0 or high >= factor:
        return rest, n
    return canonical(rest.constant // factor, {atom: c // factor for atom, c in large}), n // factor


def _order(term: tuple[Atom, int]) -> tuple[Any, ...]:
    atom, c = term
    match atom:
        case Counter(depth, _):
            return 0, depth, c
        case Quotient(dividend, divisor) | Remainder(dividend, divisor):
            return 1, divisor, isinstance(atom, Remainder), tuple(_order(t) for t in dividend.terms)
        case Loaded():
            return 2, atom.node.number, c


def _reads(atom: Atom, depth: int | None) -> bool:
    match atom:
        case Counter():
            return atom.depth == depth
        case Quotient(dividend, _) | Remainder(dividend, _):
            return dividend.reads(depth)
        case Loaded():
            return True


def _depth(atom: Atom) -> int:
    match atom:
        case Counter(depth, _):
            return depth + 1
        case Loaded(node, _):
            return node.depth
        case Quotient(dividend, _) | Remainder(dividend, _):
            return dividend.depth


def counters(shape: Shape, depth: int) -> list[Index]:
    """The index along each axis; the loops are numbered from a depth, and an axis of size 1 has none."""
    found = list[Index]()
    for n in shape:
        found.append(counter(depth, n))
        depth += n != 1
    return found


def count_loops(shape: Shape) -> int:
    """The number of loops of a nest over this shape."""
    return sum(n != 1 for n in shape)


def flatten(indices: Sequence[Index], shape: Shape) -> Index:
    """The row-major address of a multi-index."""
    address = Index(0)
    for index, n in zip(indices, shape, strict=True):
        address = address * n + index
    return address


def unflattened(index: Index, shape: Sequence[int]) -> list[Index]:
    """The multi-index of a row-major address."""
    return [index // prod(shape[axis + 1 :]) % n for axis, n in enumerate(shape)]
