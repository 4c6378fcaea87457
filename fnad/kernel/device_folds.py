"""Folds over loops that threads share out.

A fold has accumulators in each thread; behind the loop those of a warp are put together by shuffles, and those of the
warps in memory that the block shares, by every thread in the same order: so all of them have the result, and it is the
same in every run. A thread compensates its part of a long sum, vector by vector; the parts of threads are added
plainly, because a tree of additions has small errors, and a compensated addition at each step takes longer than reading
the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from fnad.kernel import accumulators
from fnad.kernel.accumulators import Accumulator, Folded
from fnad.kernel.device import BLOCK, SHUFFLE_DOWN, SHUFFLE_FIRST, THREAD
from fnad.kernel.folds import Folds
from fnad.kernel.registers import own_array
from fnad.kernel.routines import COMPENSATED_ADD
from fnad.kernel.running import lane_and_group, times
from fnad.kernel.statements import Assign, Constant, Expression, If, Load, LoopKind, Name, Store, apply, integer
from fnad.kernel.writer import counter, local, plus
from fnad.lower.loop_ir import NestLoop, Reduce, Scan
from fnad.scalar.operation import INDEX

if TYPE_CHECKING:
    from fnad.kernel.device_build import DeviceBuilder


class DeviceFolds(Folds):
    """The strategy for folds on threads; `scattered` are those with an accumulator in each thread.

    `own_columns` are the folds over rows, with accumulators for each element that a thread has of a row.
    """

    writer: DeviceBuilder

    def __init__(self, writer: DeviceBuilder) -> None:
        super().__init__(writer)
        self.own_columns: dict[Folded, tuple[Name, ...]] = {}
        self.scattered: set[Folded] = set()
        self.opened: dict[Folded, Accumulator] = {}
        self.directly_compensated: set[Folded] = set()

    def from_loop(self, loop: NestLoop, threads: int = 1) -> list[Accumulator]:
        """The folds whose accumulators are opened before a loop, of which each of so many threads has a part."""
        longest = threads * self.writer.target.costs.sum_block
        folds = accumulators.below(loop, [*self.writer.loops, loop], lambda _: longest)
        return [replace(f, length=max(1, f.length // threads)) for f in folds if f.start == loop.depth]

    def below(self, loop: NestLoop) -> list[Accumulator]:
        return [self.opened.get(fold.effect, fold) for fold in super().below(loop)]

    def open(self, fold: Accumulator) -> None:
        self.opened[fold.effect] = fold
        super().open(fold)

    def settled(self, fold: Accumulator) -> Accumulator:
        """A fold when a thread has folded its part: one number, to which those of others are added."""
        if fold.compensated:
            self.writer.add(Assign((self.names[fold.effect],), self.sum_of(*self.parts(fold))))
        return replace(fold, closing=0)

    def closed_by(self, loop: NestLoop) -> list[Accumulator]:
        """The sums over a loop: the iterations of the loops around it may be on several threads."""
        return [fold for fold in self.below(loop) if fold.compensated and fold.depth == len(self.writer.loops)]

    def begin_block(self, folds: Sequence[Accumulator]) -> None:
        """Begin the sums of a vector with -0, to which LLVM adds nothing."""
        for fold in folds:
            self.writer.add(Assign((self.names[fold.effect],), Constant(np.negative(self.zero(fold).value))))

    def reduce(self, effect: Reduce) -> None:
        if effect in self.own_columns:
            self.reduce_column(effect)
            return
        if effect not in self.directly_compensated:
            super().reduce(effect)
            return
        self.fold_in(self.opened[effect], self.writer.cast(self.writer.value(effect.node), effect.dtype))

    def sum_of(self, total: Expression, rest: Expression) -> Expression:
        """The total alone where it is not finite: `rest` is nan then."""
        is_finite = (total - total).equals(Constant(total.dtype.type(0)))
        return self.writer.select(is_finite, total + rest, total)

    def reduce_column(self, effect: Reduce) -> None:
        """Write a fold over the rows of a block, for an element that this thread has of each."""
        arrays = self.own_columns[effect]
        assert self.writer.element is not None
        element = self.writer.cast(self.writer.value(effect.node), effect.dtype)
        before = [self.writer.assign("v", Load(array, self.writer.element)) for array in arrays]
        if len(arrays) == 1:
            after = [self.writer.assign("v", self.folded(effect, before[0], element))]
        else:
            after = [self.writer.name("v", effect.dtype) for _ in arrays]
            self.writer.add(Assign(tuple(after), apply(COMPENSATED_ADD, *before, element)))
        self.writer.add(*(Store(array, self.writer.element, value) for array, value in zip(arrays, after, strict=True)))

    def open_column(self, effect: Reduce, loop: NestLoop, *, compensated: bool) -> None:
        """Make the accumulators of a fold over the rows of a block, one for each element that a thread has of a row."""
        elements, numbers = self.writer.elements_of([loop]), islice(self.writer.own_numbers, 1 + compensated)
        self.own_columns[effect] = tuple(own_array(number, effect.dtype) for number in numbers)
        number = Name("n", INDEX)
        for array in self.own_columns[effect]:
            self.writer.add(local(array, elements))
            with self.writer.loop_over(number, elements, kind=LoopKind.ELEMENTS):
                # a sum's, which is 0, where the second one is of rounding errors
                self.writer.add(Store(array, number, Constant(effect.init)))

    def close_column(self, effect: Reduce, loop: NestLoop, array: Name) -> None:
        """Store the accumulators as the part of this block."""
        place = apply(BLOCK) * loop.extent + counter(loop.depth)

        def write() -> None:
            assert self.writer.element is not None
            sums = [self.writer.assign("v", Load(own, self.writer.element)) for own in self.own_columns[effect]]
            self.writer.add(
                Store(array, place, self.writer.assign("v", self.sum_of(*sums)) if len(sums) > 1 else sums[0])
            )

        self.writer.elements([loop], self.writer.width_of([loop]), write)

    def close(self, fold: Accumulator) -> None:
        if fold.effect in self.scattered:
            fold = self.settled(fold)
            if self.writer.strip is None:
                self.join(fold.effect)
            else:
                self.writer.strip.join(self.writer, fold.effect)
        super().close(fold)

    def join(self, effect: Folded, count: Expression | None = None, columns: int = 1) -> None:
        """Put the accumulators of all threads of a group together, in each; with a count, those of the first ones.

        Neighbouring threads may have neighbouring columns, whose accumulators are put together for each.
        """
        variable, lanes, warps = self.names[effect], self.writer.warp, self.writer.threads // self.writer.warp
        self.join_lanes(effect, columns, count)
        if self.writer.group <= lanes and columns == 1:
            self.writer.add(Assign((variable,), apply(SHUFFLE_FIRST, variable, integer(self.writer.group))))
            return
        (lane, warp), (column, _) = map(lane_and_group, (lanes, columns))
        array = self.writer.shared(variable, warps * columns)
        is_first = lane.equals(0) if columns == 1 else lane < columns
        self.writer.add(If(is_first, [Store(array, plus(times(warp, columns), column), variable)]))
        self.writer.add(Assign((variable,), Load(array, column)))
        if isinstance(count, Constant):
            warps, count = min(warps, -(-int(count.value) // lanes)), None
        for n in range(1, warps):
            is_there = None if count is None else integer(n * lanes) < count
            self.join_value(effect, Load(array, plus(integer(n * columns), column)), is_there)

    def join_lanes(self, effect: Folded, columns: int, count: Expression | None = None) -> None:
        """Put the accumulators of a warp or a group together, of as many columns; the first lanes get one each."""
        lanes = (self.writer.warp if columns > 1 else min(self.writer.warp, self.writer.group)) // 2
        while lanes >= columns:
            is_there = None if count is None else apply(THREAD) + lanes < count
            self.join_value(effect, apply(SHUFFLE_DOWN, self.names[effect], integer(lanes)), is_there)
            lanes //= 2

    def join_value(self, effect: Folded, value: Expression, is_there: Expression | None = None) -> None:
        """Put a value and the accumulator of a thread together."""
        assert isinstance(effect, Reduce | Scan)
        variable = self.names[effect]
        both = self.folded(effect, variable, self.writer.assign("v", value))
        self.writer.add(Assign((variable,), both if is_there is None else self.writer.select(is_there, both, variable)))
