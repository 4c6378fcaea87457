"""Running folds on the threads of a block: sums and products of all elements up to each.

Each thread folds a part, then what comes before it, by warps, and runs over its part again. A long running fold is one
of tiles, each of a block: a first kernel folds each tile, a second one runs over what the tiles come to, in place, and
a third runs over each tile, which begins with what comes before it. The folds are sums and products, whose parts may be
put together in any order.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from fnad.kernel.device import SHUFFLE_DOWN, THREAD
from fnad.kernel.statements import Assign, Constant, Expression, For, If, Load, Name, Statement, Store, apply, integer
from fnad.kernel.writer import counter, plus
from fnad.lower.loop_ir import NestLoop, Scan
from fnad.records import dataclass
from fnad.scalar.operation import INDEX
from fnad.scalar.operations import ADD, EQUAL, FLOOR_DIVIDE, LESS, MIN, MULTIPLY, REMAINDER, SUBTRACT

if TYPE_CHECKING:
    from fnad.kernel.device_build import DeviceBuilder


class Elements(Protocol):
    """A sequence, whose elements a variable numbers."""

    @property
    def number(self) -> Name: ...

    def each(self, builder: DeviceBuilder) -> AbstractContextManager[tuple[list[Statement], Expression]]:
        """Write what is done for each element: the statements, and the element."""
        ...

    def keep(self, builder: DeviceBuilder, value: Expression) -> None:
        """Write the store of what an element becomes."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class OfLoop:
    """What a loop computes and stores."""

    loop: NestLoop
    effect: Scan

    @property
    def number(self) -> Name:
        return counter(self.loop.depth)

    @contextmanager
    def each(self, builder: DeviceBuilder) -> Generator[tuple[list[Statement], Expression], None, None]:
        with builder.block() as body, builder.inside([self.loop], self.number):
            yield body, builder.value(self.effect.node)

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

    def place(self, number: Expression) -> Expression:
        return plus(times(number, self.step), self.start)

    @contextmanager
    def each(self, builder: DeviceBuilder) -> Generator[tuple[list[Statement], Expression], None, None]:
        with builder.block(level=False) as body:
            yield body, builder.assign("v", Load(self.array, self.place(self.number)))

    def keep(self, builder: DeviceBuilder, value: Expression) -> None:
        builder.add(Store(self.array, self.place(self.number), value))


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """What comes before a tile, if there is anything."""

    is_there: Expression
    value: Expression


def run_over(
    builder: DeviceBuilder, effect: Scan, elements: Elements, first: Expression, stop: Expression, extent: int,
    before: Before | None = None,
) -> None:  # fmt: skip
    """Write the running fold of the elements from the first one on, so many at most."""
    length = -(-extent // builder.threads)
    start = plus(times(apply(THREAD), length), first)
    stop = apply(MIN, apply(ADD, start, integer(length)), stop)
    total = builder.folds[effect] = changing(builder, effect)
    with elements.each(builder) as (body, value):
        longer = builder.folded(effect, total, value)
        builder.add(Assign((total,), builder.select(apply(EQUAL, elements.number, start), value, longer)))
    builder.add(For(elements.number, start, stop, 1, body))
    earlier = before_thread(builder, effect, total)
    if before is not None:
        both = builder.folded(effect, before.value, earlier)
        joined = builder.select(apply(EQUAL, apply(THREAD), integer(0)), before.value, both)
        earlier = builder.select(before.is_there, joined, earlier)
    builder.add(Assign((total,), earlier))
    with elements.each(builder) as (body, value):
        longer = builder.folded(effect, total, value)
        builder.add(Assign((total,), builder.select(apply(EQUAL, elements.number, integer(0)), value, longer)))
        elements.keep(builder, total)
    builder.add(For(elements.number, start, stop, 1, body))


def before_thread(builder: DeviceBuilder, effect: Scan, total: Name) -> Expression:
    """What the threads before each one come to; for the first one that is any number."""
    lanes, warps = builder.warp, builder.threads // builder.warp
    lane, warp = (apply(operation, apply(THREAD), integer(lanes)) for operation in (REMAINDER, FLOOR_DIVIDE))
    near = builder.shared(total, builder.threads)
    builder.add(If(apply(LESS, apply(THREAD), integer(builder.threads)), [Store(near, apply(THREAD), total)]))
    start = apply(SUBTRACT, apply(THREAD), lane)
    in_warp = before_number(builder, effect, near, start, lane, lanes)
    if warps == 1:
        return in_warp
    far = builder.shared(total, warps)
    whole = builder.folded(effect, in_warp, total)
    builder.add(If(apply(EQUAL, lane, integer(lanes - 1)), [Store(far, warp, whole)]))
    outside = before_number(builder, effect, far, integer(0), warp, warps)
    both = builder.select(apply(EQUAL, lane, integer(0)), outside, builder.folded(effect, outside, in_warp))
    return builder.select(apply(EQUAL, warp, integer(0)), in_warp, both)


def before_number(
    builder: DeviceBuilder, effect: Scan, array: Name, start: Expression, number: Expression, count: int
) -> Name:
    """The fold of so many of the elements of a shared array, from one on."""
    total, other = changing(builder, effect), Name("q", INDEX)
    builder.add(Assign((total,), Load(array, start)))
    with builder.block(level=False) as body:
        longer = builder.folded(effect, total, builder.assign("v", Load(array, plus(other, start))))
        builder.add(Assign((total,), builder.select(apply(LESS, other, number), longer, total)))
    builder.add(For(other, integer(1), integer(count), 1, body))
    return total


def fold_tile(builder: DeviceBuilder, effect: Scan, elements: Elements, first: Expression, extent: int) -> Name:
    """Write the fold of a tile, of which each thread has as many elements, in turns with the others."""
    total, number = changing(builder, effect), elements.number
    start = plus(apply(THREAD), first)
    with elements.each(builder) as (body, value):
        longer = builder.folded(effect, total, value)
        builder.add(Assign((total,), builder.select(apply(EQUAL, number, start), value, longer)))
    builder.add(For(number, start, apply(ADD, first, integer(extent)), builder.threads, body))
    lanes = builder.warp // 2
    while lanes:
        other = builder.assign("v", apply(SHUFFLE_DOWN, total, integer(lanes)))
        builder.add(Assign((total,), builder.folded(effect, total, other)))
        lanes //= 2
    warps = builder.threads // builder.warp
    far, warp = builder.shared(total, warps), apply(FLOOR_DIVIDE, apply(THREAD), integer(builder.warp))
    is_first = apply(EQUAL, apply(REMAINDER, apply(THREAD), integer(builder.warp)), integer(0))
    builder.add(If(is_first, [Store(far, warp, total)]))
    return before_number(builder, effect, far, integer(0), integer(warps), warps)


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
