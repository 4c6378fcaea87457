"""Loop nests on the threads of a device: which loop runs on which threads.

A nest becomes a piece, a kernel on a grid of blocks. Its outermost free loops (`lower/independence.py`) are one index,
whose values neighbouring threads take in turns, so that they touch neighbouring elements; each thread goes on with the
index as many places further as there are threads. What nothing of this fits is computed by a single thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

from fnad.kernel.build import Builder, counter
from fnad.kernel.device import BLOCK, THREAD
from fnad.kernel.statements import COUNTERS, Assign, Expression, For, Load, Name, Statement, apply, integer
from fnad.lower.independence import chain, is_free
from fnad.lower.loop_ir import Item, NestLoop
from fnad.lower.target import Grid, Target
from fnad.scalar.operation import INDEX
from fnad.scalar.operations import ADD, FLOOR_DIVIDE, MULTIPLY, REMAINDER


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Items that one kernel computes, within `depth` loops that the host runs; its threads share those of `loops`."""

    items: Sequence[Item]
    depth: int
    loops: tuple[NestLoop, ...] = ()
    blocks: int = 1
    threads: int = 1


def pieces(items: Sequence[Item], depth: int, target: Target) -> list[Piece]:
    """The pieces of items within this many loops: one of each nest, and of effects in a row."""
    found: list[Piece] = []
    single: list[Item] = []
    for item in items:
        piece = of_nest(item, depth, target) if isinstance(item, NestLoop) else None
        if piece is None:
            single.append(item)
        else:
            found += [*of_one_thread(single, depth), piece]
            single = []
    return [*found, *of_one_thread(single, depth)]


def of_one_thread(items: Sequence[Item], depth: int) -> list[Piece]:
    return [Piece(items, depth)] if items else []


def of_nest(nest: NestLoop, depth: int, target: Target) -> Piece | None:
    """The piece of a nest; None if a single thread has to compute it."""
    loops = chain(nest)
    free = tuple(takewhile(lambda loop: is_free(loop, loops[-1].items), loops))
    if not free:
        return None
    blocks, threads = shape(prod(loop.extent for loop in free), grid_of(target))
    return Piece([nest], depth, free, blocks, threads)


def grid_of(target: Target) -> Grid:
    assert target.grid is not None
    return target.grid


def shape(size: int, grid: Grid) -> tuple[int, int]:
    """The blocks and the threads of each for so many independent values: whole warps."""
    threads = min(grid.threads, -(-size // grid.warp) * grid.warp)
    return min(grid.blocks, -(-size // threads)), threads


def statements_of_piece(piece: Piece, target: Target) -> list[Statement]:
    """The statements of a piece."""
    builder = DeviceBuilder(piece, target)
    builder.write()
    return builder.body.statements


class DeviceBuilder(Builder):
    """Writes the statements of one piece."""

    def __init__(self, piece: Piece, target: Target) -> None:
        super().__init__(piece.depth, (), {}, target)
        self.piece = piece

    def write(self) -> None:
        self.add(*(Assign((counter(d),), Load(COUNTERS, integer(d))) for d in range(self.piece.depth)))
        if self.piece.loops:
            self.spread(self.piece.loops, self.number_in_grid(), self.piece.blocks * self.piece.threads)
        else:
            self.items(self.piece.items)

    def number_in_grid(self) -> Expression:
        """The number of a thread in the grid."""
        if self.piece.blocks == 1:
            return apply(THREAD)
        return apply(ADD, apply(MULTIPLY, apply(BLOCK), integer(self.piece.threads)), apply(THREAD))

    def spread(self, loops: Sequence[NestLoop], first: Expression, step: int) -> None:
        """Write nested loops as one, over every step-th value of their joint index from the first one on."""
        depth = loops[0].depth
        index = counter(depth) if len(loops) == 1 else Name(f"g{depth}", INDEX)
        self.loops += loops
        with self.block() as body:
            self.blocks += [self.here] * (len(loops) - 1)
            self.unravel(loops, index)
            self.items(loops[-1].items)
        del self.loops[len(self.loops) - len(loops) :]
        self.add(For(index, first, integer(prod(loop.extent for loop in loops)), step, body))

    def unravel(self, loops: Sequence[NestLoop], index: Name) -> None:
        """Assign the counters of loops that are one."""
        if len(loops) == 1:
            return
        rest: Expression = index
        for n, loop in enumerate(loops):
            size = prod(inner.extent for inner in loops[n + 1 :])
            value = apply(FLOOR_DIVIDE, rest, integer(size)) if size > 1 else rest
            self.add(Assign((counter(loop.depth),), value))
            if size > 1:
                rest = self.assign("v", apply(REMAINDER, rest, integer(size)))
