"""The accumulators of the folds in a nest.

A fold runs over some of the loops around it. Over the innermost of them, as far as they follow each other without a
gap, it has a scalar accumulator; if it also runs over loops further out, it accumulates in memory there.

Note [Accurate sums]
    A sum goes in blocks of `Target.sum_block` elements, which are added in vector lanes; the blocks are added with
    compensation (Neumaier 1974). That is as accurate as NumPy's pairwise sum. A block goes over the rows of short inner
    loops, because a compensated addition for each of them would take longer than their elements. A sum in memory, such
    as that of a column, has no blocks. On the CPU it is in double precision if it is longer than a block, and so is a
    sum of more than `MOST_NARROW` numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from fnad.ir.size import estimate
from fnad.ir.types import Dtype
from fnad.lower.loop_ir import ArgReduce, BufferStore, Effect, NestLoop, Reduce, Scan, Update

Folded: TypeAlias = Reduce | ArgReduce | Scan


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The accumulator of a fold, initialised before the loop at depth `start`; `depth` loops are around the fold."""

    effect: Folded
    depth: int
    start: int
    closing: int = 0
    """The number of loops around which the last one is divided into blocks; 0 without compensation, as a fold of no
    more than a block is. See Note [Accurate sums]."""
    length: int = 0
    """The iterations of that loop in a block."""

    @property
    def compensated(self) -> bool:
        return self.closing > 0


def below(loop: NestLoop, around: Sequence[NestLoop], sum_block: Callable[[Dtype], int]) -> list[Accumulator]:
    """The accumulators of the folds below a loop; `around` are the open loops, this one the last.

    `sum_block` is the length of a sum of a dtype without compensation.
    """
    found: list[Accumulator] = []
    for effect, loops in effects_in_loops(loop, around):
        depth = len(loops)
        if isinstance(effect, ArgReduce | Scan):
            found.append(Accumulator(effect, depth, depth - 1))
        elif isinstance(effect, Reduce) and depth - 1 in effect.depths:
            start, block = first_loop(effect, depth), sum_block(effect.dtype)
            is_long = prod(estimate(inner.extent) for inner in loops[start:]) > block
            compensated = is_long and may_be_compensated(effect)
            found.append(Accumulator(effect, depth, start, *(blocks(loops, start, block) if compensated else ())))
    return found


def may_be_compensated(effect: Reduce) -> bool:
    """True for a sum of numbers that are no coarser than the accumulator."""
    return effect.is_sum and effect.node.dtype == effect.dtype


def blocks(loops: Sequence[NestLoop], start: int, block: int) -> tuple[int, int]:
    """The number of loops around the blocks of a sum, and the iterations of the last of these loops in a block."""
    closing, elements = len(loops), 1
    while (
        closing - 1 > start
        and not loops[closing - 2].tile
        and 2 * elements * estimate(loops[closing - 1].extent) <= block
    ):
        elements *= loops[closing - 1].extent
        closing -= 1
    return closing, block // elements


def first_loop(effect: Reduce, depth: int) -> int:
    """The outermost of the loops that the fold runs over without a gap, counted outwards; `depth` if none."""
    start = depth
    while start - 1 in effect.depths:
        start -= 1
    return start


def effects_in_loops(loop: NestLoop, around: Sequence[NestLoop]) -> Iterator[tuple[Effect, Sequence[NestLoop]]]:
    """The effects below a loop with all the loops around them; `around` are the open ones, this one the last."""
    for item in loop.items:
        if isinstance(item, NestLoop):
            yield from effects_in_loops(item, [*around, item])
        elif isinstance(item, BufferStore | Reduce | ArgReduce | Scan | Update):
            yield item, around
