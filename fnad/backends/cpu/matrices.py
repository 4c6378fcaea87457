"""Loops over matrices in memory, as code that kernels call: copies, transposes and arrays for a while."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import llvmlite.ir as ir

from fnad.backends.cpu.blas import address
from fnad.backends.cpu.ufunc_loops import ADDRESS, LONG, place
from fnad.backends.llvm.emitter import Builder, Dtype, Value
from fnad.backends.llvm.scalar import call, memory_type
from fnad.backends.llvm.transposes import SIDE, copy_square


@contextmanager
def repeat(builder: Builder, condition: Callable[[], Value]) -> Generator[None]:
    """Write the body of a loop that runs while a condition holds."""
    test, body, after = (builder.append_basic_block(name) for name in ("test", "body", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    builder.cbranch(condition(), body, after)
    builder.position_at_end(body)
    yield
    builder.branch(test)
    builder.position_at_end(after)


@contextmanager
def each(builder: Builder, count: int | Value) -> Generator[Value]:
    """Write the body of a loop over the numbers from 0 to `count`."""
    number, end = place(builder, LONG), LONG(count) if isinstance(count, int) else count
    builder.store(LONG(0), number)
    with repeat(builder, lambda: builder.icmp_signed("<", builder.load(number), end)):
        value = builder.load(number)
        yield value
        builder.store(builder.add(value, LONG(1)), number)


def at(builder: Builder, array: Value, row: Value, stride: int, column: Value) -> Value:
    """The place of an element of a matrix with `stride` elements from row to row."""
    return builder.gep(array, [builder.add(builder.mul(row, LONG(stride)), column)])


def copy(builder: Builder, dtype: Dtype, source: Value, target: Value, count: int) -> None:
    places = [address(builder, array) for array in (target, source)]
    call(builder, "memcpy", ADDRESS, *places, LONG(count * dtype.itemsize))


def transpose(builder: Builder, source: Value, target: Value, rows: int, columns: int) -> None:
    """Transpose a matrix, whole squares of real numbers in registers."""
    last_row, last_column = rows - rows % SIDE, columns - columns % SIDE
    if isinstance(source.type.pointee, ir.FloatType | ir.DoubleType):
        with each(builder, rows // SIDE) as row, each(builder, columns // SIDE) as column:
            first, start = (builder.mul(number, LONG(SIDE)) for number in (row, column))
            places = at(builder, source, first, columns, start), at(builder, target, start, rows, first)
            copy_square(builder, *places, columns, rows)
    else:
        last_row = last_column = 0
    for top, bottom, left in ((0, last_row, last_column), (last_row, rows, 0)):
        with each(builder, bottom - top) as row, each(builder, columns - left) as column:
            here, there = builder.add(row, LONG(top)), builder.add(column, LONG(left))
            value = builder.load(at(builder, source, here, columns, there))
            builder.store(value, at(builder, target, there, rows, here))


LARGEST_ON_STACK = 2**15
"""Bytes of an array from which its memory is allocated: the stack of a thread may be small."""


@contextmanager
def memory(builder: Builder, *arrays: tuple[Dtype, int]) -> Generator[list[Value]]:
    """Arrays of so many elements of a dtype, for a while."""
    allocated: list[Value] = []

    def array(dtype: Dtype, count: int) -> Value:
        type_ = memory_type(dtype)
        if count * dtype.itemsize <= LARGEST_ON_STACK:
            return builder.bitcast(place(builder, ir.ArrayType(type_, count)), type_.as_pointer())
        allocated.append(call(builder, "malloc", ADDRESS, LONG(count * dtype.itemsize)))
        return builder.bitcast(allocated[-1], type_.as_pointer())

    yield [array(dtype, max(count, 1)) for dtype, count in arrays]
    for taken in allocated:
        call(builder, "free", ir.VoidType(), taken)
