"""Sorted orders, places in sorted rows, and conditions on values that a run checks, in native code.

A sort compares integers in the order of the elements, and moves positions with them. The elements of a block are placed
by their ranks, which vectors count without a branch. Runs of blocks are merged, which keeps the order of equal
elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu.linalg import RoutineCall, emit
from fnad.backends.cpu.matrices import at, copy, each, memory, repeat
from fnad.backends.cpu.ufunc_loops import LONG, WORD, place
from fnad.backends.llvm.emitter import Builder, Instructions, Value
from fnad.kernel.linalg import PREFIX

BLOCK = 16
"""The elements of a block, each of which is compared with all others."""

POSITION = np.dtype(np.int32)

# ---- orders ----------------------------------------------------------------------------------------------------------


class KeyedPositions(NamedTuple):
    """Integers in the order of elements, and the positions of the elements."""

    keys: Value
    positions: Value

    def load(self, builder: Builder, index: Value) -> tuple[Value, Value]:
        key, position = (builder.load(builder.gep(array, [index])) for array in self)
        return key, position

    def store(self, builder: Builder, index: Value, values: Sequence[Value]) -> None:
        for value, array in zip(values, self, strict=True):
            builder.store(value, builder.gep(array, [index]))


def argsort(builder: Builder, given: RoutineCall, x: Value, order: Value) -> Value:
    """The stable order of each row: blocks are sorted, then runs are merged; behind the row are largest keys."""
    n = given.sizes["n"]
    width = min(BLOCK, 1 << (n - 1).bit_length())
    padded = -(-n // width) * width
    dtype = np.dtype(f"i{given.dtypes[0].itemsize}")
    sizes = (dtype, padded), (POSITION, padded), (dtype, padded), (POSITION, padded)
    with memory(builder, *sizes) as arrays, each(builder, given.matrices) as row:
        run, free = KeyedPositions(*arrays[:2]), KeyedPositions(*arrays[2:])
        with each(builder, n) as i:
            builder.store(ordinal(builder, builder.load(at(builder, x, row, n, i))), builder.gep(run.keys, [i]))
        with each(builder, padded - n) as i:
            builder.store(largest(run.keys.type.pointee), builder.gep(run.keys, [builder.add(i, LONG(n))]))
        with each(builder, padded // width) as block:
            sort_block(builder, run, builder.mul(block, LONG(width)), width)
        if padded > width:
            merge_all(builder, run, free, width, padded)
        with each(builder, n) as i:
            _, position = run.load(builder, i)
            builder.store(builder.zext(position, LONG), at(builder, order, row, n, i))
    return WORD(0)


def largest(word: ir.IntType) -> Value:
    return word((1 << word.width - 1) - 1)


def ordinal(builder: Builder, element: Value) -> Value:
    """An integer in the order of elements: of floats their bits, reversed below 0, and the largest for nan."""
    if isinstance(element.type, ir.IntType):
        return element
    word = ir.IntType(64 if isinstance(element.type, ir.DoubleType) else 32)
    bits = builder.bitcast(builder.fadd(element, element.type(0.0)), word)
    sign = builder.ashr(bits, word(word.width - 1))
    ordered = builder.xor(bits, builder.and_(sign, largest(word)))
    return builder.select(builder.fcmp_unordered("uno", element, element), largest(word), ordered)


def sort_block(builder: Builder, run: KeyedPositions, first: Value, width: int) -> None:
    """Store each key of a block at its rank: the number of keys below it, and of those equal to it before it."""
    vector, flags = ir.VectorType(run.keys.type.pointee, width), ir.VectorType(ir.IntType(1), width)
    address = builder.bitcast(builder.gep(run.keys, [first]), vector.as_pointer())
    keys = builder.load(address, align=run.keys.type.pointee.width // 8)
    ranks = ir.Constant(ir.VectorType(WORD, width), None)
    for n in range(width):
        key = builder.shuffle_vector(keys, keys, ir.Constant(ir.VectorType(WORD, width), [n] * width))
        below, not_above = (builder.icmp_signed(relation, key, keys) for relation in ("<", "<="))
        is_behind = ir.Constant(flags, [lane > n for lane in range(width)])
        ranks = builder.add(ranks, builder.zext(builder.select(is_behind, not_above, below), ranks.type))
    start = builder.trunc(first, WORD)
    for n in range(width):
        key, rank = (builder.extract_element(values, WORD(n)) for values in (keys, ranks))
        index = builder.add(first, builder.zext(rank, LONG))
        run.store(builder, index, (key, builder.add(start, WORD(n))))


def merge_all(builder: Builder, run: KeyedPositions, free: KeyedPositions, length: int, end: int) -> None:
    """Merge neighbouring runs of this length, then of twice the length, until there is one."""
    size, start = place(builder, LONG), place(builder, LONG)
    builder.store(LONG(length), size)
    with repeat(builder, lambda: builder.icmp_signed("<", builder.load(size), LONG(end))):
        count = builder.load(size)
        builder.store(LONG(0), start)
        with repeat(builder, lambda: builder.icmp_signed("<", builder.add(builder.load(start), count), LONG(end))):
            first = builder.load(start)
            middle = builder.add(first, count)
            behind = builder.add(middle, count)
            last = builder.select(builder.icmp_signed("<", behind, LONG(end)), behind, LONG(end))
            before, _ = run.load(builder, builder.sub(middle, LONG(1)))
            after, _ = run.load(builder, middle)
            with builder.if_then(builder.icmp_signed(">", before, after)):
                merge(builder, run, free, first, middle, last)
            builder.store(behind, start)
        builder.store(builder.shl(count, LONG(1)), size)


def merge(
    builder: Builder, run: KeyedPositions, free: KeyedPositions, first: Value, middle: Value, last: Value
) -> None:
    """Merge two runs in place of them, from a copy of the first."""
    count = builder.sub(middle, first)
    with each(builder, count) as n:
        free.store(builder, n, run.load(builder, builder.add(first, n)))
    left, right = place(builder, LONG), place(builder, LONG)
    builder.store(LONG(0), left)
    builder.store(middle, right)

    def places() -> tuple[Value, Value]:
        return builder.load(left), builder.load(right)

    def has_both() -> Value:
        i, j = places()
        return builder.and_(builder.icmp_signed("<", i, count), builder.icmp_signed("<", j, last))

    def target() -> Value:
        i, j = places()
        return builder.add(first, builder.add(i, builder.sub(j, middle)))

    with repeat(builder, has_both):
        (i, j), index = places(), target()
        ours, theirs = free.load(builder, i), run.load(builder, j)
        is_right = builder.icmp_signed("<", theirs[0], ours[0])
        chosen = [builder.select(is_right, b, a) for a, b in zip(ours, theirs, strict=True)]
        for value in chosen:
            value.set_metadata("unpredictable", builder.module.add_metadata([]))
        run.store(builder, index, chosen)
        step = builder.zext(is_right, LONG)
        builder.store(builder.add(i, builder.sub(LONG(1), step)), left)
        builder.store(builder.add(j, step), right)
    with repeat(builder, lambda: builder.icmp_signed("<", builder.load(left), count)):
        i = builder.load(left)
        run.store(builder, target(), free.load(builder, i))
        builder.store(builder.add(i, LONG(1)), left)


# ---- places in sorted rows -------------------------------------------------------------------------------------------


def searchsorted(is_left: bool, builder: Builder, given: RoutineCall, a: Value, v: Value, places: Value) -> Value:
    """By bisection; nan, which is equal to nothing, belongs after the numbers, and after other nan unless `is_left`."""
    n, m = given.sizes.values()
    with each(builder, given.matrices) as row:
        elements = builder.gep(a, [builder.mul(row, LONG(n))])
        numbers = LONG(n)
        if is_left and given.dtypes[0].kind == "f":
            numbers = bisected(builder, elements, n, ir.Constant(elements.type.pointee, float("inf")), "<=")
        with each(builder, m) as column:
            value = builder.load(at(builder, v, row, m, column))
            found = bisected(builder, elements, n, value, "<" if is_left else "<=")
            if given.dtypes[0].kind == "f":
                found = builder.select(builder.fcmp_unordered("uno", value, value), numbers, found)
            builder.store(found, at(builder, places, row, m, column))
    return WORD(0)


def bisected(builder: Builder, elements: Value, count: int, value: Value, relation: str) -> Value:
    """The number of elements in this relation to a value, without branches: there are as many steps for each value."""
    compare = builder.icmp_signed if isinstance(value.type, ir.IntType) else builder.fcmp_ordered
    first = LONG(0)
    while count:
        step = max(count // 2, 1)
        after = builder.add(first, LONG(step))
        element = builder.load(builder.gep(elements, [builder.sub(after, LONG(1))]))
        first = builder.select(compare(relation, element, value), after, first)
        first.set_metadata("unpredictable", builder.module.add_metadata([]))
        count = count - step if count > 1 else 0
    return first


# ---- conditions ------------------------------------------------------------------------------------------------------


def require(builder: Builder, given: RoutineCall, x: Value, holds: Value, result: Value) -> Value:
    """Copy numbers; 1 if a condition does not hold."""
    copy(builder, given.dtypes[0], x, result, given.sizes["n"])
    return builder.zext(builder.icmp_signed("==", builder.load(holds), LONG(0)), WORD)


BODIES: Mapping[str, Callable[..., Value]] = {
    "argsort": argsort,
    "searchsorted_left": partial(searchsorted, True),
    "searchsorted_right": partial(searchsorted, False),
    "require": require,
}

INSTRUCTIONS: Instructions = {PREFIX + name: partial(emit, name, body) for name, body in BODIES.items()}
