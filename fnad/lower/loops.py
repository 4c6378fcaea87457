"""The loops IR: what a backend compiles.

    program ::= inputs, outputs, temporaries: [Buffer], items: [item]
    item    ::= Loop(depth, extent, [item]) | effect | Product | Call | control
    effect  ::= Store | Check | Reduce | ArgReduce | Running | Combine       a write of a node into a buffer
    control ::= Choice(index, [[item]]) | Repeat(extent, [item]) | While([item], predicate, [item])

The loop at depth d has the counter i<d>; loops side by side share names. All addresses are flat, row-major. A nest is
a loop with all that is in it. Control flow stands outside of nests, and a level of it is a level of depth too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.primitive import Primitive
from fnad.ir.program import Source
from fnad.ir.types import Dtype
from fnad.lower.faults import Fault
from fnad.lower.index import Index
from fnad.lower.nodes import Buffer, Load, Node, loaded, loads


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """buffer[address] = node."""

    buffer: Buffer
    address: Index
    node: Node
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """buffer[address] = node; the run ends here where that is not `expected`, and reports it and the number."""

    buffer: Buffer
    address: Index
    node: Node
    expected: int
    number: int
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reduce:
    """buffer[address] = the fold of node over the loops at these depths; `dtype` is the accumulator's.

    `is_sum` marks a sum of floating-point numbers, the only fold whose order is free.
    """

    buffer: Buffer
    address: Index
    node: Node
    init: np.generic
    step: str
    is_sum: bool
    dtype: Dtype
    depths: frozenset[int]
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ArgReduce:
    """buffer[address] = the counter of the innermost loop where node is first the best; none is worse than `init`."""

    buffer: Buffer
    address: Index
    node: Node
    init: np.generic
    better: str
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """buffer[address] = the fold of node so far, along the innermost loop."""

    buffer: Buffer
    address: Index
    node: Node
    step: str
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Combine:
    """buffer[address] = step of what is there and node, in order."""

    buffer: Buffer
    address: Index
    node: Node
    step: str
    source: Source | None = None


Effect: TypeAlias = Store | Check | Reduce | ArgReduce | Running | Combine


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A matrix in a buffer: element (r, c) at offset + r · row_stride + c · column_stride; one of them is 1."""

    buffer: Buffer
    offset: Index
    row_stride: int
    column_stride: int


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """out[m, n] = a[m, k] · b[k, n], by the BLAS."""

    out: Matrix
    a: Matrix
    b: Matrix
    m: int
    k: int
    n: int
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """results = primitive(operands) on whole arrays, outside native code."""

    primitive: Primitive
    params: dict[str, Any]
    operands: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    source: Source | None = None


@dataclass(slots=True, eq=False)
class Loop:
    """A counted loop from 0 to extent; where it is `independent`, no turn touches what another one writes."""

    depth: int
    extent: int
    items: list[Item] = field(default_factory=list["Item"])
    independent: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of the branches: that of the number loaded, False or below 0 the first, at the end or beyond it the last."""

    depth: int
    index: Load
    branches: tuple[list[Item], ...]

    @property
    def bodies(self) -> tuple[list[Item], ...]:
        return self.branches

    @property
    def read(self) -> tuple[Load, ...]:
        return (self.index,)


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """The items for each turn from 0 to extent, or down; then `updates`, whose loads all come before their stores.

    The rows of the tapes, one for each turn, are asked for at the start.
    """

    depth: int
    extent: int | Load
    reverse: bool
    items: list[Item]
    updates: list[Store]
    tapes: tuple[Buffer, ...] = ()

    @property
    def bodies(self) -> tuple[list[Item], ...]:
        return (self.items, list(self.updates))

    @property
    def read(self) -> tuple[Load, ...]:
        return () if isinstance(self.extent, int) else (self.extent,)


@dataclass(frozen=True, slots=True, eq=False)
class While:
    """The test, then, while what it stores says so, the items and the updates; at the end the count of turns.

    A turn beyond the `limit` is fault number `fault`. A row of each tape is asked for in each turn. Where a turn
    `may_fail` the loop ends with the first fault, for what it does then, the test included, means nothing.
    """

    depth: int
    test: list[Item]
    predicate: Load
    items: list[Item]
    updates: list[Store]
    count: Store
    limit: int | None = None
    fault: int = 0
    may_fail: bool = False
    tapes: tuple[Buffer, ...] = ()

    @property
    def bodies(self) -> tuple[list[Item], ...]:
        return (self.test, self.items, [*self.updates, self.count])

    @property
    def read(self) -> tuple[Load, ...]:
        return (self.predicate,)


Control: TypeAlias = Choice | Repeat | While
Item: TypeAlias = Loop | Effect | Product | Call | Control


@dataclass(frozen=True, slots=True, eq=False)
class LoopProgram:
    """A lowered program. Fault number n, which a run may note, is `faults[n - 1]`."""

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    temporaries: tuple[Buffer, ...]
    tapes: tuple[Buffer, ...]
    items: tuple[Item, ...]
    faults: tuple[Fault, ...]


# ---- what an item reads and writes -------------------------------------------------------------------------------

Access: TypeAlias = tuple[Buffer, Index | None]
"""A buffer and the address in it; None for all of it."""


def effects(item: Item) -> Iterator[Effect | Product | Call]:
    """Yield what an item does, loops unrolled in the text, not in time."""
    if isinstance(item, Loop):
        for inner in item.items:
            yield from effects(inner)
    elif isinstance(item, Control):
        for body in item.bodies:
            for inner in body:
                yield from effects(inner)
    else:
        yield item


def controls(item: Item) -> Iterator[Control]:
    """Yield the control flow in an item, the outer before the inner."""
    if isinstance(item, Control):
        yield item
        for body in item.bodies:
            for inner in body:
                yield from controls(inner)


def touched(item: Item) -> Iterator[Buffer]:
    """Yield each memory an item reads or writes, as often as it does."""
    for effect in effects(item):
        for buffer, _ in (*reads(effect), *writes(effect)):
            yield buffer.root
    for control in controls(item):
        for load in control.read:
            yield load.buffer.root


def writes(item: Effect | Product | Call) -> list[Access]:
    """Return what is written."""
    match item:
        case Product(out, _, _, m, _, n):
            return corners(out, m, n)
        case Call():
            return [(buffer, None) for buffer in item.results]
        case _:
            return [(item.buffer, item.address)]


def reads(item: Effect | Product | Call) -> list[Access]:
    """Return what is read; a combination reads what it writes."""
    match item:
        case Product(_, a, b, m, k, n):
            return [*corners(a, m, k), *corners(b, k, n)]
        case Call():
            return [(buffer, None) for buffer in item.operands]
        case _:
            found = [(load.buffer, load.address) for load in effect_loads(item)]
            return [*found, (item.buffer, None)] if isinstance(item, Combine) else list(found)


def corners(matrix: Matrix, rows: int, columns: int) -> list[Access]:
    """Return the first and the last element of a matrix, between which all others lie."""
    last = matrix.offset + (max(rows - 1, 0) * matrix.row_stride + max(columns - 1, 0) * matrix.column_stride)
    return [(matrix.buffer, matrix.offset), (matrix.buffer, last)]


def effect_loads(effect: Effect) -> list[Load]:
    """Return the loads of an effect."""
    return loads([effect.node, *loaded(effect.address)])
