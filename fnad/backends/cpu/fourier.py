"""Fourier transforms in native code: one transform in each lane of a vector (`fnad.backends.cpu.fourier_passes`).

Real numbers of an even count are transformed as half as many complex ones. The inverse exchanges real and imaginary
parts before and after. One long transform is made in two parts, each of which is a stack.
"""

from __future__ import annotations

from functools import partial
from math import isqrt
from typing import NamedTuple

import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu.fourier_passes import Passes, is_smooth, padded, roots
from fnad.backends.cpu.lanes import Block, Complex, StackLayout, Write
from fnad.backends.cpu.matrices import each, memory
from fnad.backends.cpu.ufunc_loops import LONG
from fnad.backends.llvm.emitter import Builder, Dtype, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import memory_type
from fnad.kernel.fourier import FOURIER
from fnad.scalar.operation import real_dtype

LONG_TRANSFORM = 2048
"""The length from which one transform is made in two parts."""


class FourierCall(NamedTuple):
    """A routine on arrays of these dtypes: the numbers it takes."""

    name: str
    source: Dtype
    target: Dtype
    rows: int
    n: int
    columns: int
    inverse: bool
    factor: float

    @property
    def symbol(self) -> str:
        numbers = (self.rows, self.n, self.columns, int(self.inverse), self.factor)
        return f"fnad.{self.name}.{self.source.char}{self.target.char}.{'.'.join(map(str, numbers))}"


def emit(name: str, builder: Builder, kinds: Kinds, values: Values) -> None:
    """Emit the call of a routine."""
    *sizes, factor = (value.constant for value in values[2:])
    rows, n, columns, inverse = map(int, sizes)
    given = FourierCall(name, kinds[0].dtype, kinds[1].dtype, rows, n, columns, bool(inverse), float(factor))
    builder.call(_function(builder.module, given), values[:2])


def _function(module: ir.Module, given: FourierCall) -> ir.Function:
    known = module.globals.get(given.symbol)
    if known is not None:
        return known
    pointers = [memory_type(dtype).as_pointer() for dtype in (given.source, given.target)]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), pointers), name=given.symbol)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _transform(builder, given, *function.args)
    builder.ret_void()
    return function


def _transform(builder: Builder, given: FourierCall, x: Value, y: Value) -> None:
    dtype, n = real_dtype(given.target), given.n
    lanes = Passes(builder, dtype, given.rows * given.columns)
    x, y = (builder.bitcast(array, lanes.number.as_pointer()) for array in (x, y))
    if "f" not in (given.source.kind, given.target.kind):
        (of_parts if parts_of(n, given.columns) else of_complex)(lanes, given, x, y)
        return
    length = n // 2 if n % 2 == 0 else n
    if length < n and parts_of(length, given.columns):
        of_real_parts(lanes, given, x, y)
        return
    place, half = (StackLayout.of(given.rows, size, given.columns) for size in (n, n // 2 + 1))
    with lanes.buffers(max(n + 1, room(length))) as (first, second), lanes.blocks(place) as block:
        if given.source.kind == "f":
            copy_pairs_in(lanes, given, x, block, first, length)
            found, free = lanes.chain(length, (first, second))
            separate(lanes, given, found, free, length)
            is_full = given.name.endswith("full")
            count = n if is_full else n // 2 + 1
            lanes.copy_out(free, y, place if is_full else half, block, count, 1, given.factor)
        else:
            lanes.copy_in(x, half, block, first, n // 2 + 1, 1)
            join(lanes, n, first, second, length)
            found, _ = lanes.chain(length, (second, first))
            copy_pairs_out(lanes, given, found, y, block, length)


def room(n: int) -> int:
    """The numbers in a buffer for a transform of length n."""
    return n if is_smooth(n) else padded(n)


def of_complex(lanes: Passes, given: FourierCall, x: Value, y: Value) -> None:
    n, order, factor = given.n, -1 if given.inverse else 1, given.factor
    place = StackLayout.of(given.rows, n, given.columns)
    with lanes.buffers(room(n)) as buffers, lanes.blocks(place) as block:
        if lanes.is_vector(place) and is_smooth(n) and n > 1:
            lanes.passes(n, buffers, lanes.reader(x, place, block, order), lanes.writer(y, place, block, order, factor))
        else:
            lanes.copy_in(x, place, block, buffers[0], n, order)
            found, _ = lanes.chain(n, buffers)
            lanes.copy_out(found, y, place, block, n, order, factor)


def parts_of(n: int, columns: int) -> tuple[int, int] | None:
    """The factors of the length of a transform that is made in two parts, or None."""
    found = [m for m in range(32, isqrt(n) + 1) if n % m == 0] if n >= LONG_TRANSFORM and columns == 1 else []
    return (found[-1], n // found[-1]) if found and is_smooth(n) and n // found[-1] <= LONG_TRANSFORM else None


def of_parts(lanes: Passes, given: FourierCall, x: Value, y: Value) -> None:
    """For each row of a stack, transform columns of a matrix, multiply, and transform its rows (Van Loan, 3.3.1)."""
    builder, n, order = lanes.builder, given.n, -1 if given.inverse else 1
    short, long = parts_of(n, 1) or (1, n)
    lanes = Passes(builder, lanes.dtype, short)
    turns = lanes.table(f"turns.{short}.{n}", roots(n)[np.outer(np.arange(short), np.arange(long))].ravel)
    columns, rows, result = (
        StackLayout(1, long, 0, 1, long),
        StackLayout(1, short, 0, long, 1),
        StackLayout(1, short, 0, 1, short),
    )
    with (
        memory(builder, (lanes.dtype, 2 * n)) as (work,),
        lanes.buffers(long) as buffers,
        each(builder, given.rows) as row,
    ):
        source, target = (builder.gep(array, [builder.mul(row, LONG(2 * n))]) for array in (x, y))
        with lanes.blocks(columns) as block:
            write, turn = lanes.writer(work, columns, block, 1, 1.0), lanes.reader(turns, columns, block, 1)
            turned: Write = lambda index, z: write(index, lanes.product(z, turn(index)))  # noqa: E731
            lanes.passes(short, buffers, lanes.reader(source, columns, block, order), turned)
        with lanes.blocks(result) as block:
            lanes.copy_in(work, rows, block, buffers[0], long, 1)
            lanes.passes(long, buffers, None, lanes.writer(target, result, block, order, given.factor))


def of_real_parts(lanes: Passes, given: FourierCall, x: Value, y: Value) -> None:
    """For each row of a stack, transform pairs of real numbers in two parts, before or after they are paired."""
    builder, n, length, is_forward = lanes.builder, given.n, given.n // 2, given.source.kind == "f"
    size = n if given.name.endswith("full") else length + 1
    of_pairs = given._replace(n=length, inverse=not is_forward, factor=1.0 if is_forward else given.factor)
    lanes = Passes(builder, lanes.dtype, length)
    with memory(builder, (lanes.dtype, given.rows * n)) as (work,):
        if is_forward:
            of_parts(lanes, of_pairs, x, work)
        with each(builder, given.rows) as row:
            pairs = builder.gep(work, [builder.mul(row, LONG(n))])
            spectrum = builder.gep(y if is_forward else x, [builder.mul(row, LONG(2 * size))])
            real_ends(lanes, given, *((pairs, spectrum) if is_forward else (spectrum, pairs)))
            between_ends(lanes, given, *((pairs, spectrum) if is_forward else (spectrum, pairs)))
        if not is_forward:
            of_parts(lanes, of_pairs, work, y)


def real_ends(lanes: Passes, given: FourierCall, source: Value, target: Value) -> None:
    """From the transform of pairs the two elements of a spectrum that are real, or from these the first pair."""
    builder, is_forward = lanes.builder, given.source.kind == "f"
    a, b = (builder.load(builder.gep(source, [LONG(place)])) for place in (0, 1 if is_forward else given.n))
    factor = lanes.number(given.factor if is_forward else 1.0)
    ends = [lanes.mul(end, factor) for end in (lanes.add(a, b), lanes.sub(a, b))]
    zero = lanes.number(0.0)
    found = {0: ends[0], 1: zero, given.n: ends[1], given.n + 1: zero} if is_forward else dict(enumerate(ends))
    for place, value in found.items():
        builder.store(value, builder.gep(target, [LONG(place)]))


def between_ends(lanes: Passes, given: FourierCall, source: Value, target: Value) -> None:
    """The other elements, a vector at a time; the last vector overlaps another one."""
    builder, width, length, is_forward = lanes.builder, lanes.lanes, given.n // 2, given.source.kind == "f"
    root = lanes.table(f"roots.{given.n}", lambda: roots(given.n))

    def mirrored(z: Complex) -> Complex:
        real, imaginary = (lanes.shuffled(part, part, range(width)[::-1]) for part in z)
        return lanes.conjugate((real, imaginary))

    with each(builder, -(-(length - 1) // width)) as block:
        first = builder.add(lanes.least(builder.mul(block, LONG(width)), length - 1 - width), LONG(1))
        last = builder.sub(LONG(length + 1 - width), first)
        z, other, turn = (lanes.complex_at(*place) for place in ((source, first), (source, last), (root, first)))
        found = (separated if is_forward else joined)(lanes, z, mirrored(other), turn)
        found = lanes.scaled(found, given.factor if is_forward else 1.0)
        found = lanes.conjugate(found) if is_forward and given.inverse else found
        lanes.store_complex(found, target, first)
        if given.name.endswith("full"):
            lanes.store_complex(mirrored(found), target, builder.add(last, LONG(length)))


def pairs(given: FourierCall, length: int) -> StackLayout | None:
    """The layout of pairs of real numbers that are next to each other, as complex numbers."""
    is_pairs = given.columns == 1 and length < given.n
    return StackLayout.of(given.rows, length, 1) if is_pairs else None


def copy_pairs_in(lanes: Passes, given: FourierCall, x: Value, block: Block, buffer: Value, length: int) -> None:
    """Copy real numbers into a buffer of complex ones: two into each, if their number is even."""
    builder = lanes.builder
    if (layout := pairs(given, length)) is not None:
        lanes.copy_in(x, layout, block, buffer, length, 1)
        return
    layout = StackLayout.of(given.rows, given.n, given.columns)
    firsts = lanes.offsets(layout, *block)

    def real(index: Value) -> Value:
        offsets = [builder.add(first, builder.mul(index, LONG(layout.element))) for first in firsts]
        if lanes.is_vector(layout):
            return lanes.load(x, offsets[0], lanes.lanes)
        return lanes.transposed([lanes.load(x, offset, 1) for offset in offsets])[0]

    with each(builder, length) as index:
        if length == given.n:
            lanes.write(buffer, index, (real(index), lanes.constant(0.0)))
        else:
            even = builder.mul(index, LONG(2))
            lanes.write(buffer, index, (real(even), real(builder.add(even, LONG(1)))))


def copy_pairs_out(lanes: Passes, given: FourierCall, buffer: Value, y: Value, block: Block, length: int) -> None:
    """Copy complex numbers, with the parts exchanged, to real ones."""
    builder = lanes.builder
    if (layout := pairs(given, length)) is not None:
        lanes.copy_out(buffer, y, layout, block, length, -1, given.factor)
        return
    layout = StackLayout.of(given.rows, given.n, given.columns)
    firsts = lanes.offsets(layout, *block)

    def store(value: Value, index: Value) -> None:
        offsets = [builder.add(first, builder.mul(index, LONG(layout.element))) for first in firsts]
        if lanes.is_vector(layout):
            lanes.store(value, y, offsets[0])
            return
        for lane, offset in enumerate(offsets):
            lanes.store(lanes.shuffled(value, value, [lane]), y, offset)

    with each(builder, length) as index:
        imaginary, real = lanes.scaled(lanes.read(buffer, index), given.factor)
        if length == given.n:
            store(real, index)
        else:
            even = builder.mul(index, LONG(2))
            store(real, even)
            store(imaginary, builder.add(even, LONG(1)))


def separate(lanes: Passes, given: FourierCall, source: Value, target: Value, length: int) -> None:
    """From the transform of pairs of real numbers, that of the numbers."""
    builder, n, zero = lanes.builder, given.n, lanes.constant(0.0)
    root = lanes.table(f"roots.{n}", lambda: roots(n))
    with each(builder, n // 2 + 1) as k:
        z = lanes.read(source, cyclic(lanes, k, length))
        if length < n:
            mirrored = lanes.conjugate(lanes.read(source, cyclic(lanes, builder.sub(LONG(length), k), length)))
            z = separated(lanes, z, mirrored, lanes.same(root, k))
        real, imaginary = z
        imaginary = builder.select(builder.icmp_signed("==", k, LONG(0)), zero, imaginary)
        if given.inverse:
            imaginary = lanes.sub(zero, imaginary)
        if given.name.endswith("full"):
            other = cyclic(lanes, builder.sub(LONG(n), k), n)
            lanes.write(target, other, (real, lanes.sub(zero, imaginary)))
        lanes.write(target, k, (real, imaginary))


def join(lanes: Passes, n: int, source: Value, target: Value, length: int) -> None:
    """From half a spectrum, that of pairs of the real numbers, with the parts exchanged."""
    builder, zero = lanes.builder, lanes.constant(0.0)
    root = lanes.table(f"roots.{n}", lambda: roots(n))
    with each(builder, length) as k:
        is_first = builder.icmp_signed("==", k, LONG(0))

        def element(index: Value) -> Complex:
            real, imaginary = lanes.read(source, index)
            return real, builder.select(is_first, zero, imaginary)

        if length == n:
            is_there = builder.icmp_signed("<", k, LONG(n // 2 + 1))
            z = element(builder.select(is_there, k, builder.sub(LONG(n), k)))
            real, imaginary = z[0], builder.select(is_there, z[1], builder.fneg(z[1]))
        else:
            z, mirrored = element(k), lanes.conjugate(element(builder.sub(LONG(length), k)))
            real, imaginary = joined(lanes, z, mirrored, lanes.same(root, k))
        lanes.write(target, k, (imaginary, real))


def separated(lanes: Passes, z: Complex, mirrored: Complex, turn: Complex) -> Complex:
    """An element of the spectrum of real numbers, from two of the transform of their pairs."""
    even, odd = lanes.sum(z, mirrored), lanes.difference(z, mirrored)
    return lanes.scaled(lanes.sum(even, lanes.product(turn, (odd[1], lanes.builder.fneg(odd[0])))), 0.5)


def joined(lanes: Passes, z: Complex, mirrored: Complex, turn: Complex) -> Complex:
    """Twice an element of the transform of pairs, from two of the spectrum of the real numbers."""
    even, odd = lanes.sum(z, mirrored), lanes.product(lanes.difference(z, mirrored), lanes.conjugate(turn))
    return lanes.sub(even[0], odd[1]), lanes.add(even[1], odd[0])


def cyclic(lanes: Passes, index: Value, n: int) -> Value:
    """The index, and 0 in the place of n."""
    return lanes.builder.select(lanes.builder.icmp_signed("==", index, LONG(n)), LONG(0), index)


INSTRUCTIONS: Instructions = {routine: partial(emit, routine) for routine in FOURIER}
