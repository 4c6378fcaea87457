"""Systems and Cholesky factors of real matrices of a few rows, in registers.

A call of LAPACK takes longer than the arithmetic of such a matrix. The formulas have no branches, so that they compute
vectors of an element of several matrices, whose elements are side by side in a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import nan, prod
from operator import or_
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import llvmlite.ir as ir

from fnad.backends.cpu.blas import least
from fnad.backends.cpu.matrices import each, memory, transpose
from fnad.backends.cpu.ufunc_loops import LONG, WORD, place
from fnad.backends.llvm.lane import Lane, where
from fnad.kernel.linalg import SIGNATURES, TRIANGULAR, are_short, core_dimensions

if TYPE_CHECKING:
    from fnad.backends.cpu.linalg import RoutineCall
    from fnad.backends.llvm.emitter import Builder, Value

VECTOR = 64
"""Bytes of a vector that has an element of each of some matrices."""

Rows: TypeAlias = list[list[Lane]]
Found: TypeAlias = tuple[Rows, list[Lane]]
"""The elements of a result, and conditions: there is no result where one of them holds."""


class Vector(Lane):
    """A float of each of some matrices."""

    @property
    def is_float(self) -> bool:
        return True

    def constant(self, other: Any) -> Value:
        return other.value if isinstance(other, Lane) else ir.Constant(self.value.type, [other] * self.value.type.count)

    def number(self, other: float) -> Self:
        return self.with_value(self.constant(other))


def are_small(given: RoutineCall) -> bool:
    """True if there is code for the matrices of a routine."""
    has_formula = given.name in FORMULAS and given.dtypes[0].kind == "f"
    return has_formula and are_short(given.matrices, max(given.sizes.values()))


def lanes_of(given: RoutineCall) -> int:
    """The number of matrices that are computed at once."""
    lanes = VECTOR // given.dtypes[0].itemsize
    return lanes if given.matrices >= lanes else 1


def small(builder: Builder, given: RoutineCall, *arrays: Value) -> Value:
    """1 if a matrix has no result. The last vectors are of the last matrices, of which some were in others."""
    lanes, dtype = lanes_of(given), given.dtypes[0]
    shapes = [[given.sizes[size] for size in core] for core in core_dimensions(SIGNATURES[given.name])]
    sizes = [prod(shape) for shape in shapes]
    failed = place(builder, WORD)
    builder.store(WORD(0), failed)
    tile_sizes = [(dtype, size * lanes if lanes > 1 else 0) for size in sizes]
    with memory(builder, *tile_sizes) as tiles, each(builder, -(-given.matrices // lanes)) as number:
        first = least(builder, builder.mul(number, LONG(lanes)), LONG(given.matrices - lanes))
        stacks = [builder.gep(array, [builder.mul(first, LONG(n))]) for array, n in zip(arrays, sizes, strict=True)]
        if lanes == 1:
            failure = computed(builder, given.name, lanes, stacks, shapes)
        else:
            for stack, tile, size in zip(stacks[:-1], tiles[:-1], sizes[:-1], strict=True):
                transpose(builder, stack, tile, lanes, size)
            failure = computed(builder, given.name, lanes, tiles, shapes)
            transpose(builder, tiles[-1], stacks[-1], sizes[-1], lanes)
        builder.store(builder.or_(builder.load(failed), failure), failed)
    return builder.load(failed)


def computed(
    builder: Builder, name: str, lanes: int, arrays: Sequence[Value], shapes: Sequence[Sequence[int]]
) -> Value:
    """Store the results for so many matrices; 1 if one has none, whose elements are nan."""
    lane = Vector if lanes > 1 else Lane

    def places(array: Value, m: int, n: int) -> list[list[Value]]:
        found = [[builder.gep(array, [LONG(lanes * (n * i + j))]) for j in range(n)] for i in range(m)]
        vector = ir.VectorType(array.type.pointee, lanes).as_pointer()
        return [[builder.bitcast(x, vector) for x in row] for row in found] if lanes > 1 else found

    *operands, result = (places(array, *shape) for array, shape in zip(arrays, shapes, strict=True))
    found, failures = FORMULAS[name](
        *([[lane(builder, builder.load(x, align=4)) for x in row] for row in rows] for rows in operands)
    )
    fails = reduce(or_, failures) if failures else None
    for row, targets in zip(found, result, strict=True):
        for number, target in zip(row, targets, strict=True):
            value = where(fails, number.number(nan), number) if fails else number
            builder.store(value.value, target, align=4)
    if not fails:
        return WORD(0)
    bits = builder.bitcast(fails.value, ir.IntType(lanes))
    return builder.zext(builder.icmp_unsigned("!=", bits, bits.type(0)), WORD)


def inverse(a: Rows) -> Found:
    number = a[0][0].number
    return solution(a, [[number(float(i == j)) for j in range(len(a))] for i in range(len(a))])


def solution(a: Rows, b: Rows) -> Found:
    """By Gaussian elimination with partial pivoting."""
    rest = [left + right for left, right in zip(a, b, strict=True)]
    done: Rows = []
    for k in range(len(a)):
        pivot, *others = rest
        for n, row in enumerate(others):
            is_larger = abs(pivot[k]) < abs(row[k])
            others[n] = [where(is_larger, x, y) for x, y in zip(pivot, row, strict=True)]
            pivot = [where(is_larger, y, x) for x, y in zip(pivot, row, strict=True)]
        factors = [row[k] / pivot[k] for row in others]
        rest = [[y - z * x for x, y in zip(pivot, row, strict=True)] for z, row in zip(factors, others, strict=True)]
        done.append(pivot)
    return substituted([row[: len(a)] for row in done], [row[len(a) :] for row in done], is_lower=False, unit=False)


def substituted(a: Rows, b: Rows, *, is_lower: bool, unit: bool) -> Found:
    """The solution of a triangular system."""
    numbers = range(len(a)) if is_lower else range(len(a))[::-1]
    found: dict[int, list[Lane]] = {}
    for i in numbers:
        row = b[i]
        for j, known in found.items():
            row = [y - a[i][j] * x for x, y in zip(known, row, strict=True)]
        found[i] = row if unit else [y / a[i][i] for y in row]
    return [found[i] for i in range(len(a))], [] if unit else [a[i][i].equals(0.0) for i in numbers]


def factor(a: Rows, *, is_lower: bool) -> Found:
    """The Cholesky factor; there is none if a square on its diagonal is not positive."""
    numbers = range(len(a))
    found: Rows = [[a[0][0].number(0.0)] * len(a) for _ in numbers]
    failures: list[Lane] = []
    for j in numbers:
        for i in numbers[j:]:
            rest = a[i][j] if is_lower else a[j][i]
            for k in range(j):
                rest -= found[i][k] * found[j][k]
            if i == j:
                failures.append(rest <= 0.0)
            found[i][j] = rest.sqrt() if i == j else rest / found[j][j]
    return found if is_lower else [list(column) for column in zip(*found, strict=True)], failures


FORMULAS: dict[str, Callable[..., Found]] = {
    "inv": inverse,
    "solve": solution,
    "cholesky_lo": partial(factor, is_lower=True),
    "cholesky_up": partial(factor, is_lower=False),
    **{name: partial(substituted, is_lower=is_lower, unit=unit) for name, (is_lower, unit) in TRIANGULAR.items()},
}
