"""Arithmetic on complex numbers in the lanes of vectors, one lane a member of a stack, and its arrays.

A buffer has a vector of real parts and one of imaginary parts for each index. A stack in memory is copied to a buffer
by its `StackLayout`: members that are next to each other by vectors, others by squares that are transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu.matrices import each, memory
from fnad.backends.cpu.ufunc_loops import LONG
from fnad.backends.cpu.vector_math import preferred_bytes
from fnad.backends.llvm.emitter import Builder, Dtype, Value
from fnad.backends.llvm.scalar import llvm_type

Complex: TypeAlias = tuple[Value, Value]
Buffers: TypeAlias = tuple[Value, Value]
Block: TypeAlias = tuple[Value, Value]
Read: TypeAlias = Callable[[Value], Complex]
Write: TypeAlias = Callable[[Value, Complex], None]


class StackLayout(NamedTuple):
    """A stack in an array of complex numbers: element i of the member (row, column) is at a sum of multiples."""

    rows: int
    columns: int
    row: int
    column: int
    element: int

    @staticmethod
    def of(rows: int, size: int, columns: int) -> StackLayout:
        """The middle axis of a contiguous array."""
        return (
            StackLayout(rows, columns, size * columns, 1, columns) if columns > 1 else StackLayout(1, rows, 0, size, 1)
        )


class Lanes:
    """Vectors of floats of a dtype, and instructions on them, for a stack of `count` members."""

    def __init__(self, builder: Builder, dtype: Dtype, count: int) -> None:
        self.builder, self.dtype, self.number = builder, dtype, llvm_type(dtype)
        self.lanes = min(preferred_bytes() // dtype.itemsize, max(2, 1 << (count - 1).bit_length()))
        self.vector = ir.VectorType(self.number, self.lanes)

    # ---- arithmetic

    def add(self, a: Value, b: Value) -> Value:
        return self.builder.fadd(a, b, flags=("contract",))

    def sub(self, a: Value, b: Value) -> Value:
        return self.builder.fsub(a, b, flags=("contract",))

    def mul(self, a: Value, b: Value) -> Value:
        return self.builder.fmul(a, b, flags=("contract",))

    def sum(self, a: Complex, b: Complex) -> Complex:
        return self.add(a[0], b[0]), self.add(a[1], b[1])

    def difference(self, a: Complex, b: Complex) -> Complex:
        return self.sub(a[0], b[0]), self.sub(a[1], b[1])

    def product(self, a: Complex, b: Complex) -> Complex:
        real = self.sub(self.mul(a[0], b[0]), self.mul(a[1], b[1]))
        return real, self.add(self.mul(a[0], b[1]), self.mul(a[1], b[0]))

    def conjugate(self, a: Complex) -> Complex:
        return a[0], self.builder.fneg(a[1])

    def scaled(self, a: Complex, number: float) -> Complex:
        return a if number == 1 else (self.mul(a[0], self.constant(number)), self.mul(a[1], self.constant(number)))

    def constant(self, number: float) -> Value:
        return ir.Constant(self.vector, [self.number(number)] * self.lanes)

    # ---- memory

    def shuffled(self, a: Value, b: Value, order: Sequence[int]) -> Value:
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), list(order))
        return self.builder.shuffle_vector(a, b, mask)

    def place(self, array: Value, offset: Value, count: int) -> Value:
        """The address of a vector of `count` numbers that begins at a number of an array."""
        return self.builder.bitcast(self.builder.gep(array, [offset]), ir.VectorType(self.number, count).as_pointer())

    def load(self, array: Value, offset: Value, count: int) -> Value:
        return self.builder.load(self.place(array, offset, count), align=self.dtype.itemsize)

    def store(self, value: Value, array: Value, offset: Value) -> None:
        self.builder.store(value, self.place(array, offset, value.type.count), align=self.dtype.itemsize)

    @contextmanager
    def buffers(self, size: int) -> Generator[Buffers]:
        """Two buffers of so many vectors of complex numbers.

        Each begins with a line of the cache, at different places in a page: vectors across two lines take longer.
        """
        builder, line, apart = self.builder, 64 // self.dtype.itemsize, 2112 // self.dtype.itemsize
        count = -(-2 * size * self.lanes // line) * line
        with memory(builder, (self.dtype, 2 * count + apart + line)) as (whole,):
            number = builder.add(builder.ptrtoint(whole, LONG), LONG(63))
            first = builder.inttoptr(builder.and_(number, LONG(-64)), whole.type)
            yield first, builder.gep(first, [LONG(count + apart)])

    def at(self, buffer: Value, index: Value) -> list[tuple[Value, Value]]:
        first = self.builder.mul(index, LONG(2 * self.lanes))
        return [(buffer, first), (buffer, self.builder.add(first, LONG(self.lanes)))]

    def read(self, buffer: Value, index: Value) -> Complex:
        real, imaginary = (self.load(*place, self.lanes) for place in self.at(buffer, index))
        return real, imaginary

    def write(self, buffer: Value, index: Value, number: Complex) -> None:
        for part, place in zip(number, self.at(buffer, index), strict=True):
            self.store(part, *place)

    def table(self, name: str, numbers: Callable[[], np.ndarray]) -> Value:
        """A constant array of complex numbers."""
        symbol = f"fnad.{name}.{self.dtype.char}"
        known = self.builder.module.globals.get(symbol)
        if known is None:
            flat = numbers().view(np.float64).astype(self.dtype).tolist()
            type_ = ir.ArrayType(self.number, len(flat))
            known = ir.GlobalVariable(self.builder.module, type_, symbol)
            known.linkage, known.global_constant, known.initializer = "internal", True, ir.Constant(type_, flat)
        return self.builder.bitcast(known, self.number.as_pointer())

    def integer(self, name: str, numbers: np.ndarray, index: Value) -> Value:
        """An element of a constant array of integers."""
        symbol = f"fnad.{name}"
        known = self.builder.module.globals.get(symbol)
        if known is None:
            type_ = ir.ArrayType(LONG, len(numbers))
            known = ir.GlobalVariable(self.builder.module, type_, symbol)
            known.linkage, known.global_constant = "internal", True
            known.initializer = ir.Constant(type_, numbers.tolist())
        return self.builder.load(self.builder.gep(known, [LONG(0), index]))

    def same(self, table: Value, index: Value) -> Complex:
        """An element of a table in all lanes."""
        first = self.builder.mul(index, LONG(2))
        both = self.load(table, first, 2)
        real, imaginary = (self.shuffled(both, both, [part] * self.lanes) for part in (0, 1))
        return real, imaginary

    def complex_at(self, array: Value, offset: Value) -> Complex:
        """The complex numbers that are next to each other in an array."""
        both = self.load(array, self.builder.mul(offset, LONG(2)), 2 * self.lanes)
        real, imaginary = (self.shuffled(both, both, range(part, 2 * self.lanes, 2)) for part in (0, 1))
        return real, imaginary

    def store_complex(self, value: Complex, array: Value, offset: Value) -> None:
        order = [part * self.lanes + lane for lane in range(self.lanes) for part in (0, 1)]
        self.store(self.shuffled(*value, order), array, self.builder.mul(offset, LONG(2)))

    # ---- arrays

    def offsets(self, layout: StackLayout, row: Value, column: Value) -> list[Value]:
        """The places of the first elements of a block of members; of one, if the members are next to each other."""
        builder = self.builder
        count = 1 if self.is_vector(layout) else self.lanes
        found: list[Value] = []
        for lane in range(count):
            number = self.least(builder.add(column, LONG(lane)), layout.rows * layout.columns - 1)
            if layout.rows > 1 and count > 1:
                row, number = builder.udiv(number, LONG(layout.columns)), builder.urem(number, LONG(layout.columns))
            row_start = builder.mul(row, LONG(layout.row))
            found.append(builder.add(row_start, builder.mul(number, LONG(layout.column))))
        return found

    def is_vector(self, layout: StackLayout) -> bool:
        return layout.column == 1 and layout.columns >= self.lanes

    def least(self, number: Value, limit: int) -> Value:
        return self.builder.select(self.builder.icmp_signed("<", number, LONG(limit)), number, LONG(limit))

    @contextmanager
    def blocks(self, layout: StackLayout) -> Generator[Block]:
        """Write the body of a loop over blocks of members by row and column; the last one overlaps another one."""
        builder, is_cut = self.builder, layout.columns >= self.lanes
        rows, columns = (layout.rows, layout.columns) if is_cut else (1, layout.rows * layout.columns)
        with each(builder, rows) as row, each(builder, -(-columns // self.lanes)) as block:
            first = builder.mul(block, LONG(self.lanes))
            yield row, self.least(first, columns - self.lanes) if is_cut else first

    def reader(self, array: Value, layout: StackLayout, block: Block, order: int) -> Read:
        """The elements of a block of members that are next to each other; the order -1 exchanges the parts."""
        (first,) = self.offsets(layout, *block)

        def read(index: Value) -> Complex:
            offset = self.builder.add(first, self.builder.mul(index, LONG(layout.element)))
            return self.complex_at(array, offset)[::order]

        return read

    def writer(self, array: Value, layout: StackLayout, block: Block, order: int, factor: float) -> Write:
        """As `reader`, times a factor."""
        (first,) = self.offsets(layout, *block)

        def write(index: Value, number: Complex) -> None:
            offset = self.builder.add(first, self.builder.mul(index, LONG(layout.element)))
            self.store_complex(self.scaled(number, factor)[::order], array, offset)

        return write

    def copy_in(self, array: Value, layout: StackLayout, block: Block, buffer: Value, count: int, order: int) -> None:
        """Copy elements of a block into a buffer; the order -1 exchanges the parts."""
        builder = self.builder
        if self.is_vector(layout):
            with each(builder, count) as index:
                self.write(buffer, index, self.reader(array, layout, block, order)(index))
            return
        firsts = self.offsets(layout, *block)
        with self.squares(layout, firsts, count) as (offsets, index, width):
            rows = [self.load(array, offset, 2 * width) for offset in offsets]
            columns = self.transposed(rows)
            for part in range(width):
                real, imaginary = columns[2 * part : 2 * part + 2]
                self.write(buffer, builder.add(index, LONG(part)), (real, imaginary)[::order])

    def copy_out(
        self, buffer: Value, array: Value, layout: StackLayout, block: Block, count: int, order: int, factor: float
    ) -> None:
        """Copy a buffer, times a factor, to the elements of a block; the order -1 exchanges the parts."""
        builder = self.builder
        if self.is_vector(layout):
            with each(builder, count) as index:
                self.writer(array, layout, block, order, factor)(index, self.read(buffer, index))
            return
        firsts = self.offsets(layout, *block)
        with self.squares(layout, firsts, count) as (offsets, index, width):
            numbers = [self.read(buffer, builder.add(index, LONG(part))) for part in range(width)]
            columns = [part for number in numbers for part in self.scaled(number, factor)[::order]]
            for offset, row in zip(offsets, self.transposed(columns), strict=True):
                self.store(row, array, offset)

    @contextmanager
    def squares(
        self, layout: StackLayout, firsts: Sequence[Value], count: int
    ) -> Generator[tuple[list[Value], Value, int]]:
        """Write the body of a loop over as many elements as have a number for each lane, and their places."""
        builder = self.builder
        width = min(self.lanes // 2, 1 << (count.bit_length() - 1)) if layout.element == 1 else 1
        with each(builder, -(-count // width)) as number:
            index = self.least(builder.mul(number, LONG(width)), count - width)
            along = builder.mul(index, LONG(layout.element))
            yield [builder.mul(builder.add(first, along), LONG(2)) for first in firsts], index, width

    def transposed(self, rows: list[Value]) -> list[Value]:
        """The columns of a matrix of numbers, whose extents are powers of 2."""
        count, width = len(rows), rows[0].type.count
        if count == 1:
            return [self.shuffled(rows[0], rows[0], [column]) for column in range(width)]
        if count != width:
            upper, lower = self.transposed(rows[: count // 2]), self.transposed(rows[count // 2 :])
            return [self.shuffled(a, b, range(count)) for a, b in zip(upper, lower, strict=True)]
        step = 1
        while step < count:  # exchange blocks beside the diagonal (Eklundh, "A fast computer method", 1972)
            upper_order = [n - step + width if n & step else n for n in range(width)]
            lower_order = [n + width if n & step else n + step for n in range(width)]
            for n in range(count):
                if not n & step:
                    a, b = rows[n], rows[n + step]
                    rows[n], rows[n + step] = self.shuffled(a, b, upper_order), self.shuffled(a, b, lower_order)
            step *= 2
        return rows
