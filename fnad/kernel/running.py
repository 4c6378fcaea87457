"""Running folds on the threads of a block: sums and products of all elements up to each.

A block runs over its elements in chunks, of which each thread has a few neighbouring elements: it folds them, gets the
fold of the threads before it by shuffles and in shared memory, and adds the fold of the chunks before. The folds are
sums and products, whose parts may be put together in any order.

Note [Tiles in one pass]
    A long running fold is one of tiles, each of a block, which keeps its elements in registers until it has the fold of
    the tiles before: elements are read once. A block publishes the fold of its own tile before it waits for others; the
    last block of each group of tiles then publishes the fold of the group, from those of its tiles. The fold of all
    tiles before one is that of the groups before its own and of the tiles before it in its group, which threads take in
    turns and join in a tree. So what is added to what follows from the number of the tile alone, whatever comes first.

    Blocks end: the number of a tile is a ticket that the block draws when it runs, so the blocks of all earlier tiles
    run already, and a thread that has begun goes on (CUDA Programming Guide, forward progress of threads from compute
    capability 7.0). They publish their tiles without waiting, and groups need tiles alone. A launch before clears the
    tickets and marks, in the order of the stream or the graph. Programs on two streams have arrays of their own.

    Blocks see what they wait for: the thread that stores a fold marks it by a store with release semantics, and the
    thread that loads it has read the mark by a load with acquire semantics, both at the scope of the device. Such a
    store and a load synchronize (PTX ISA, memory consistency model). Nothing is stored twice in a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import TYPE_CHECKING

from fnad.kernel.device import PUBLISH, PUBLISHED, SHUFFLE_UP, THREAD, TICKET
from fnad.kernel.registers import own_array
from fnad.kernel.statements import (
    Assign,
    Constant,
    Evaluate,
    Expression,
    For,
    If,
    Load,
    LoopKind,
    Name,
    Store,
    apply,
    integer,
)
from fnad.kernel.writer import block_of, counter, local, plus
from fnad.lower.loop_ir import NestLoop, Reduce, Scan
from fnad.lower.sharing import vector_width
from fnad.scalar.operation import INDEX
from fnad.scalar.operations import ADD, FLOOR_DIVIDE, REMAINDER

if TYPE_CHECKING:
    from fnad.kernel.device_build import DeviceBuilder


CHUNKS = 4
"""The vectors of a tile that each thread has."""


@dataclass(frozen=True, slots=True, eq=False)
class OfLoop:
    """The results that a loop computes and stores."""

    loop: NestLoop

    @property
    def width(self) -> int:
        width = vector_width([self.loop])
        while self.loop.extent % width:
            width //= 2
        return width

    @contextmanager
    def vector(self, builder: DeviceBuilder, number: Expression) -> Generator[None, None, None]:
        """Write what is done for each element of a vector with this number, if there is one."""
        element, place = Name("j0", INDEX), counter(self.loop.depth)
        with builder.block() as body, builder.inside([self.loop], place):
            builder.add(Assign((place,), times(number, self.width) + element))
            yield
        loop = For(element, integer(0), integer(self.width), 1, body, LoopKind.VECTOR)
        builder.add(If(number < self.loop.extent // self.width, [loop]))

    @contextmanager
    def vectors(self, builder: DeviceBuilder, first: Expression) -> Generator[None, None, None]:
        """Write what is done for each element of a tile, which begins at a vector with this number."""
        turn, number = Name("n0", INDEX), block_of(self.loop.depth)
        vector = plus(first, times(turn, builder.threads)) + apply(THREAD)
        with builder.loop_over(turn, CHUNKS, kind=LoopKind.ELEMENTS), builder.own_iterations():
            builder.add(Assign((number,), vector))
            with self.vector(builder, number):
                yield


def run_over(builder: DeviceBuilder, effect: Scan, elements: OfLoop) -> None:
    """Write the running fold of the elements, by chunks of the block's threads."""
    width, carry = elements.width, changing(builder, effect)
    own = own_array(next(builder.own_numbers), effect.buffer.dtype)
    counter_of_chunks, element, end = Name("c", INDEX), Name("j0", INDEX), elements.loop.extent // width
    is_one = end <= builder.threads
    chunk = integer(0) if is_one else counter_of_chunks
    builder.add(local(own, width))
    with builder.block(level=False) as body:
        total = builder.folds.names[effect] = changing(builder, effect)
        vector = chunk + apply(THREAD)
        with elements.vector(builder, vector):
            value = builder.value(effect.node)
            fold_in(builder, effect, total, value, element.equals(0))
            builder.add(Store(own, element, total))
        earlier, whole = before_thread(builder, effect, total)
        is_first, is_later = apply(THREAD).equals(0), chunk > 0
        is_later = builder.assign("v", is_later)
        with_carry = builder.select(is_first, carry, builder.folds.folded(effect, carry, earlier))
        earlier = builder.assign("v", builder.select(is_later, with_carry, earlier))
        has_earlier = builder.assign("v", is_later | (apply(THREAD) > 0))
        with elements.vector(builder, vector):
            value = builder.assign("v", Load(own, element))
            result = builder.select(has_earlier, builder.folds.folded(effect, earlier, value), value)
            builder.store(effect, result)
        builder.add(Assign((carry,), builder.select(is_later, builder.folds.folded(effect, carry, whole), whole)))
    builder.add(*body if is_one else (For(counter_of_chunks, integer(0), integer(end), builder.threads, body),))


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The folds of tiles, and behind them those of groups of tiles, each with a mark; the last mark has the tickets.

    There are some for each of several results, side by side. A block has as many `columns` of them.
    """

    values: Name
    marks: Name
    tiles: int
    results: int = 1
    columns: int = 1

    @property
    def group(self) -> int:
        """The number of tiles of a group: about as many as there are groups."""
        return isqrt(self.tiles) + 1

    @property
    def size(self) -> int:
        return (self.tiles + self.tiles // self.group) * self.results

    def draw(self, builder: DeviceBuilder) -> Name:
        """Write that a block draws the number of its tile."""
        shared = builder.new_shared(INDEX, 1)
        drawn = Store(shared, integer(0), apply(TICKET, self.marks, integer(self.size)))
        builder.add(If(apply(THREAD) < 1, [drawn]))
        return builder.assign("v", Load(shared, integer(0)))

    def publish(self, builder: DeviceBuilder, number: Expression, result: Expression, value: Expression) -> None:
        """Write that the first thread of a block, of each column, publishes a fold."""
        place = plus(times(number, self.results), result)
        publication = Evaluate(apply(PUBLISH, self.values, self.marks, place, value))
        builder.add(If(apply(THREAD) < self.columns, [publication]))

    def fold(
        self, builder: DeviceBuilder, effect: Scan | Reduce, result: Expression, count: Expression,
        number_of: Callable[[Expression], Expression],
    ) -> Name:  # fmt: skip
        """Write the fold of as many published ones, of these numbers, for each of which a thread waits."""
        turn, total = Name("q", INDEX), changing(builder, effect)
        _, first = lane_and_group(self.columns)
        builder.folds.names[effect] = total
        with builder.loop_over(turn, count, first, builder.threads // self.columns):
            place = plus(times(number_of(turn), self.results), result)
            value = builder.assign("v", apply(PUBLISHED, self.values, self.marks, place))
            fold_in(builder, effect, total, value, turn.equals(first))
        builder.folds.join(effect, times(count, self.columns), self.columns)
        return total

    def before(
        self, builder: DeviceBuilder, effect: Scan, tile: Expression, result: Expression, value: Expression
    ) -> Name:  # fmt: skip
        """Write that the fold of a tile is published, and the fold of all before it."""
        self.publish(builder, tile, result, value)
        group, place = (builder.assign("v", apply(o, tile, integer(self.group))) for o in (FLOOR_DIVIDE, REMAINDER))
        first = builder.assign("v", times(group, self.group))
        with builder.where(place.equals(self.group - 1)):
            whole = self.fold(builder, effect, result, integer(self.group), partial(apply, ADD, first))
            self.publish(builder, group + self.tiles, result, whole)

        def number_of(turn: Expression) -> Expression:
            of_tile = first + (turn - group)
            return builder.select(turn < group, turn + self.tiles, of_tile)

        return self.fold(builder, effect, result, builder.assign("v", group + place), number_of)


def run_over_tile(
    builder: DeviceBuilder, effect: Scan, elements: OfLoop, published: Published, tile: Expression, result: Expression
) -> None:
    """Write the running fold of a tile, of which each thread has a vector in every chunk."""
    width, dtype, element, turn = elements.width, effect.buffer.dtype, Name("j0", INDEX), Name("n0", INDEX)
    own, before = (own_array(next(builder.own_numbers), dtype) for _ in range(2))
    builder.add(local(own, CHUNKS * width), local(before, CHUNKS))
    first = builder.assign("v", times(tile, CHUNKS * builder.threads))
    slot = plus(times(turn, width), element)
    with elements.vectors(builder, first):
        builder.add(Store(own, slot, builder.value(effect.node)))
    carry: Expression | None = None
    for n in range(CHUNKS):
        total = builder.folds.names[effect] = changing(builder, effect)
        here = plus(element, integer(n * width))
        with builder.loop_over(element, width, kind=LoopKind.VECTOR):
            value = builder.assign("v", Load(own, here))
            fold_in(builder, effect, total, value, element.equals(0))
            builder.add(Store(own, here, total))
        earlier, whole = before_thread(builder, effect, total)
        if carry is not None:
            both = builder.folds.folded(effect, carry, earlier)
            earlier = builder.select(apply(THREAD).equals(0), carry, both)
        builder.add(Store(before, integer(n), earlier))
        carry = whole if carry is None else builder.assign("v", builder.folds.folded(effect, carry, whole))
    assert carry is not None
    outside = published.before(builder, effect, tile, result, carry)
    is_later = builder.assign("v", tile > 0)
    with elements.vectors(builder, first):
        value, earlier = builder.assign("v", Load(own, slot)), builder.assign("v", Load(before, turn))
        is_first = (turn + apply(THREAD)).equals(0)
        inside = builder.assign("v", builder.select(is_first, value, builder.folds.folded(effect, earlier, value)))
        builder.store(effect, builder.select(is_later, builder.folds.folded(effect, outside, inside), inside))


def fold_in(
    builder: DeviceBuilder, effect: Scan | Reduce, total: Name, value: Expression, is_first: Expression
) -> None:  # fmt: skip
    """Write the fold of a total and a value; the total of the first value is the value."""
    longer = builder.folds.folded(effect, total, value)
    builder.add(Assign((total,), builder.select(is_first, value, longer)))


def before_thread(builder: DeviceBuilder, effect: Scan, total: Name) -> tuple[Expression, Expression]:
    """The fold of the threads before each one, which is any number for the first one, and that of all threads."""
    lanes, warps = builder.warp, builder.threads // builder.warp
    lane, warp = lane_and_group(lanes)
    distance = 1
    while distance < lanes:
        other = builder.assign("v", apply(SHUFFLE_UP, total, integer(distance)))
        is_in_warp = lane >= distance
        builder.add(Assign((total,), builder.select(is_in_warp, builder.folds.folded(effect, other, total), total)))
        distance *= 2
    in_warp = builder.assign("v", apply(SHUFFLE_UP, total, integer(1)))
    far = builder.shared(total, warps)
    builder.add(If(lane.equals(lanes - 1), [Store(far, warp, total)]))
    outside, whole = changing(builder, effect), changing(builder, effect)
    builder.add(Assign((whole,), Load(far, integer(0))))
    for n in range(1, warps):
        builder.add(Assign((outside,), builder.select(warp.equals(n), whole, outside)))
        builder.add(Assign((whole,), builder.folds.folded(effect, whole, builder.assign("v", Load(far, integer(n))))))
    both = builder.select(lane.equals(0), outside, builder.folds.folded(effect, outside, in_warp))
    return builder.assign("v", builder.select(warp.equals(0), in_warp, both)), whole


def lane_and_group(lanes: int) -> tuple[Expression, Expression]:
    """The number of a thread in its group of `lanes` threads, and the number of the group."""
    if lanes == 1:
        return integer(0), apply(THREAD)
    return apply(THREAD) % lanes, apply(THREAD) // lanes


def times(number: Expression, factor: int) -> Expression:
    """A product, unless the factor is 1; of two constants a constant."""
    if isinstance(number, Constant):
        return integer(int(number.value) * factor)
    return number if factor == 1 else number * factor


def changing(builder: DeviceBuilder, effect: Scan | Reduce) -> Name:
    """A variable for a fold."""
    dtype = effect.init.dtype if isinstance(effect, Reduce) else effect.buffer.dtype
    name = builder.name("acc", dtype)
    builder.changing.add(name.name)
    builder.add(Assign((name,), Constant(dtype.type(0))))
    return name
