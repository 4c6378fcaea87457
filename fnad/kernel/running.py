"""Running folds on the threads of a block: sums and products of all elements up to each.

A block runs over its elements in chunks, of which each thread has a few neighbouring elements: it folds them, gets the
fold of the threads before it by shuffles and in shared memory, and adds the fold of the chunks before. A long running
fold is one of tiles, each of a block: a first kernel folds each tile, a second one runs over the folds of the tiles, in
place, and a third runs over each tile, which begins with what comes before it. The folds are sums and products, whose
parts may be put together in any order.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from fnad.kernel.device import SHUFFLE_UP, THREAD
from fnad.kernel.registers import made, own_array
from fnad.kernel.statements import (
    Assign,
    Constant,
    Expression,
    For,
    If,
    Load,
    LoopKind,
    Name,
    Statement,
    Store,
    apply,
    integer,
)
from fnad.kernel.writer import counter, plus
from fnad.lower.loop_ir import NestLoop, Scan
from fnad.lower.sharing import vector_width
from fnad.records import dataclass
from fnad.scalar.operation import INDEX
from fnad.scalar.operations import (
    ADD,
    EQUAL,
    FLOOR_DIVIDE,
    GREATER,
    GREATER_EQUAL,
    LESS,
    MULTIPLY,
    OR,
    REMAINDER,
)

if TYPE_CHECKING:
    from fnad.kernel.device_build import DeviceBuilder


class ElementSequence(Protocol):
    """A sequence, whose elements a variable numbers; a thread takes `width` of them at once."""

    @property
    def number(self) -> Name: ...

    @property
    def width(self) -> int: ...

    def each(self, builder: DeviceBuilder) -> AbstractContextManager[list[Statement]]:
        """Write the statements for each element."""
        ...

    def value(self, builder: DeviceBuilder) -> Expression:
        """Write what computes an element."""
        ...

    def keep(self, builder: DeviceBuilder, value: Expression) -> None:
        """Write the store of what an element becomes."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class OfLoop:
    """The results that a loop computes and stores."""

    loop: NestLoop
    effect: Scan

    @property
    def number(self) -> Name:
        return counter(self.loop.depth)

    @property
    def width(self) -> int:
        width = vector_width([self.loop])
        while self.loop.extent % width:
            width //= 2
        return width

    @contextmanager
    def each(self, builder: DeviceBuilder) -> Generator[list[Statement], None, None]:
        with builder.block() as body, builder.inside([self.loop], self.number):
            yield body

    def value(self, builder: DeviceBuilder) -> Expression:
        return builder.value(self.effect.node)

    def keep(self, builder: DeviceBuilder, value: Expression) -> None:
        builder.store(self.effect, value)


@dataclass(frozen=True, slots=True, eq=False)
class InArray:
    """Every so many elements of an array, from one on."""

    array: Name
    step: int
    start: Expression

    @property
    def number(self) -> Name:
        return Name("q", INDEX)

    @property
    def width(self) -> int:
        return 1

    def place(self, number: Expression) -> Expression:
        return plus(times(number, self.step), self.start)

    @contextmanager
    def each(self, builder: DeviceBuilder) -> Generator[list[Statement], None, None]:
        with builder.block(level=False) as body:
            yield body

    def value(self, builder: DeviceBuilder) -> Expression:
        return builder.assign("v", Load(self.array, self.place(self.number)))

    def keep(self, builder: DeviceBuilder, value: Expression) -> None:
        builder.add(Store(self.array, self.place(self.number), value))


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """The value before a tile, if there is one."""

    is_there: Expression
    value: Expression


def run_over(
    builder: DeviceBuilder, effect: Scan, elements: ElementSequence, first: Expression, stop: Expression,
    before: Before | None = None,
) -> None:  # fmt: skip
    """Write the running fold of the elements from the first one on, by chunks of the block's threads."""
    width, carry = elements.width, changing(builder, effect)
    own = own_array(next(builder.own_numbers), effect.buffer.dtype)
    counter_of_chunks, element = Name("c", INDEX), Name("j0", INDEX)
    begin, end = (vector_at(builder, bound, width) for bound in (first, stop))
    is_one = isinstance(end, Constant) and int(end.value) <= builder.threads
    chunk = begin if is_one else counter_of_chunks
    builder.add(made(own, width))
    if before is not None:
        builder.add(Assign((carry,), before.value))
    with builder.block(level=False) as body:
        total = builder.folds.names[effect] = changing(builder, effect)
        vector = apply(ADD, chunk, apply(THREAD))
        place = Assign((elements.number,), apply(ADD, times(vector, width), element))
        is_there = apply(LESS, vector, end)
        with elements.each(builder) as inner:
            builder.add(place)
            value = elements.value(builder)
            longer = builder.select(
                apply(EQUAL, element, integer(0)), value, builder.folds.folded(effect, total, value)
            )
            builder.add(Assign((total,), longer), Store(own, element, total))
        builder.add(If(is_there, [For(element, integer(0), integer(width), 1, inner, LoopKind.VECTOR)]))
        earlier, whole = before_thread(builder, effect, total)
        is_first, is_later = apply(EQUAL, apply(THREAD), integer(0)), apply(GREATER, chunk, begin)
        is_later = builder.assign("v", is_later if before is None else apply(OR, before.is_there, is_later))
        with_carry = builder.select(is_first, carry, builder.folds.folded(effect, carry, earlier))
        earlier = builder.assign("v", builder.select(is_later, with_carry, earlier))
        has_earlier = builder.assign("v", apply(OR, is_later, apply(GREATER, apply(THREAD), integer(0))))
        with elements.each(builder) as inner:
            builder.add(place)
            value = builder.assign("v", Load(own, element))
            elements.keep(builder, builder.select(has_earlier, builder.folds.folded(effect, earlier, value), value))
        builder.add(If(is_there, [For(element, integer(0), integer(width), 1, inner, LoopKind.VECTOR)]))
        builder.add(Assign((carry,), builder.select(is_later, builder.folds.folded(effect, carry, whole), whole)))
    builder.add(*body if is_one else (For(counter_of_chunks, begin, end, builder.threads, body),))


def before_thread(builder: DeviceBuilder, effect: Scan, total: Name) -> tuple[Expression, Expression]:
    """The fold of the threads before each one, which is any number for the first one, and that of all threads."""
    lanes, warps = builder.warp, builder.threads // builder.warp
    lane, warp = (apply(operation, apply(THREAD), integer(lanes)) for operation in (REMAINDER, FLOOR_DIVIDE))
    distance = 1
    while distance < lanes:
        other = builder.assign("v", apply(SHUFFLE_UP, total, integer(distance)))
        is_in_warp = apply(GREATER_EQUAL, lane, integer(distance))
        builder.add(Assign((total,), builder.select(is_in_warp, builder.folds.folded(effect, other, total), total)))
        distance *= 2
    in_warp = builder.assign("v", apply(SHUFFLE_UP, total, integer(1)))
    far = builder.shared(total, warps)
    builder.add(If(apply(EQUAL, lane, integer(lanes - 1)), [Store(far, warp, total)]))
    outside, whole = changing(builder, effect), changing(builder, effect)
    builder.add(Assign((whole,), Load(far, integer(0))))
    for n in range(1, warps):
        builder.add(Assign((outside,), builder.select(apply(EQUAL, warp, integer(n)), whole, outside)))
        builder.add(Assign((whole,), builder.folds.folded(effect, whole, builder.assign("v", Load(far, integer(n))))))
    both = builder.select(apply(EQUAL, lane, integer(0)), outside, builder.folds.folded(effect, outside, in_warp))
    return builder.assign("v", builder.select(apply(EQUAL, warp, integer(0)), in_warp, both)), whole


def fold_tile(builder: DeviceBuilder, effect: Scan, elements: ElementSequence, first: Expression, extent: int) -> Name:
    """Write the fold of a tile, of which each thread has as many elements, in turns with the others."""
    number, total = elements.number, changing(builder, effect)
    builder.folds.names[effect] = total
    start = plus(apply(THREAD), first)
    with elements.each(builder) as body:
        value = elements.value(builder)
        longer = builder.folds.folded(effect, total, value)
        builder.add(Assign((total,), builder.select(apply(EQUAL, number, start), value, longer)))
    builder.add(For(number, start, apply(ADD, first, integer(extent)), builder.threads, body))
    builder.folds.join(effect)
    return total


def vector_at(builder: DeviceBuilder, number: Expression, width: int) -> Expression:
    """The number of the vector that begins at an element."""
    if isinstance(number, Constant):
        return integer(int(number.value) // width)
    return builder.assign("v", apply(FLOOR_DIVIDE, number, integer(width))) if width > 1 else number


def times(number: Expression, factor: int) -> Expression:
    """A product, unless the factor is 1."""
    return number if factor == 1 else apply(MULTIPLY, number, integer(factor))


def changing(builder: DeviceBuilder, effect: Scan) -> Name:
    """A variable for a fold."""
    dtype = effect.buffer.dtype
    name = builder.name("acc", dtype)
    builder.changing.add(name.name)
    builder.add(Assign((name,), Constant(dtype.type(0))))
    return name
