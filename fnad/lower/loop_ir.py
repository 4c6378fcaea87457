"""The loops IR: what a backend compiles.

    program ::= inputs, outputs, temporaries: [Buffer], items: [item]
    item    ::= NestLoop(depth, extent, [item], tile, span, across) | effect | Product | LibraryCall | control
    effect  ::= BufferStore | Check | Count | Reduce | ArgReduce | Scan | Update     a write of a node into a buffer
    control ::= Switch(index, [[item]]) | SequentialFor(extent, [item]) | SequentialWhile([item], predicate, [item])

The loop at depth d has the counter i<d>; sibling loops share names. All addresses are flat, row-major. A nest is
a loop with all that is in it. Control flow is outside of nests, and each level of it counts as a level of depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.primitive import Primitive, Routine
from fnad.ir.program import Source
from fnad.ir.size import estimate
from fnad.ir.types import Dtype, Shape
from fnad.lower.faults import Fault
from fnad.lower.index import Index, counter
from fnad.lower.nodes import Buffer, BufferLoad, Node, loaded, loads


@dataclass(frozen=True, slots=True, eq=False)
class BufferWrite:
    """The write of what an effect makes of a node into a buffer."""

    buffer: Buffer
    address: Index
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class BufferStore(BufferWrite):
    """buffer[address] = node."""

    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Check(BufferWrite):
    """buffer[address] = node; where that is not `expected`, the run ends and reports the value and the number."""

    expected: int
    number: int
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Count(BufferWrite):
    """buffer[address] = node, the number of steps of a loop, of which one more is counted by meter `number`."""

    number: int
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(BufferWrite):
    """buffer[address] = the fold of node over the loops at these depths; `dtype` is the accumulator's.

    `is_sum` marks a sum of floating-point numbers, the only fold whose order is free.
    """

    init: np.generic
    step: str
    is_sum: bool
    dtype: Dtype
    depths: frozenset[int]
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ArgReduce(BufferWrite):
    """buffer[address] = the counter of the innermost loop where node is first best; nothing is worse than `init`."""

    init: np.generic
    better: str
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Scan(BufferWrite):
    """buffer[address] = the running fold of node along the innermost loop."""

    step: str
    source: Source | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Update(BufferWrite):
    """buffer[address] = step(buffer[address], node), in order.

    With `in_runs`, addresses that differ in the counters of other loops alone follow one another in the innermost loop.
    The step may be applied to parts of such a run, and then to the results. If it is `in_any_order`, the step is an
    addition, and iterations need not keep their order.
    """

    step: str
    source: Source | None = None
    in_runs: bool = False
    in_any_order: bool = False


Effect: TypeAlias = BufferStore | Check | Count | Reduce | ArgReduce | Scan | Update


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A matrix in a buffer: element (r, c) is at offset + r · row_stride + c · column_stride; one of them is 1."""

    buffer: Buffer
    offset: Index
    row_stride: int
    column_stride: int


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """out[m, n] = alpha · a[m, k] · b[k, n] + beta · out, by the BLAS, where what was there is not read if beta is 0.

    Over the loops at the `depths` it is summed. Tasks of such a loop have sums of their own in `parts`. One that
    `has_rows` is a part of the rows of a product that is divided by these.
    """

    out: Matrix
    a: Matrix
    b: Matrix
    m: int
    k: int
    n: int
    source: Source | None = None
    depths: frozenset[int] = frozenset()
    parts: Buffer | None = None
    has_rows: bool = False
    alpha: float = 1.0
    beta: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LibraryCall:
    """results = primitive(operands) on whole arrays, in Python; in native code if it has a `routine` there.

    If that fails, the run ends with one of the numbers `faults`.
    """

    primitive: Primitive
    params: dict[str, Any]
    operands: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    source: Source | None = None
    routine: Routine | None = None
    faults: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class NestLoop:
    """A counted loop from 0 to extent.

    With a `tile`, so many iterations run together, one item after the other: see `tiles.py`. With a `span`, only those
    from its first value to its last one run: the others change nothing. One that runs `across` is outside of the loop
    over the tile that it is in: see `across.py`.
    """

    depth: int
    extent: int
    items: list[Item] = field(default_factory=list["Item"])
    tile: int = 0
    span: tuple[Node, Node] | None = None
    across: bool = False

    @property
    def expected(self) -> int:
        """The number of iterations that are expected to run."""
        return estimate(self.extent) if self.span is None else 1


@dataclass(frozen=True, slots=True, eq=False)
class Switch:
    """The branch whose number is loaded: the first for False or a negative number, the last for one too large."""

    depth: int
    index: BufferLoad
    branches: tuple[list[Item], ...]

    @property
    def bodies(self) -> tuple[list[Item], ...]:
        return self.branches

    @property
    def read(self) -> tuple[BufferLoad, ...]:
        return (self.index,)


@dataclass(frozen=True, slots=True, eq=False)
class SequentialFor:
    """The items for each iteration from 0 to extent, or down, then `updates`, all of whose loads precede their stores.

    Each residual stack gets one row an iteration; all are reserved at the start.
    """

    depth: int
    extent: int | BufferLoad
    reverse: bool
    items: list[Item]
    updates: list[BufferStore]
    residual_stacks: tuple[Buffer, ...] = ()

    @property
    def bodies(self) -> tuple[list[Item], ...]:
        return ([*self.items, *self.updates],)

    @property
    def read(self) -> tuple[BufferLoad, ...]:
        return () if isinstance(self.extent, int) else (self.extent,)


@dataclass(frozen=True, slots=True, eq=False)
class SequentialWhile:
    """The test, then, while the predicate that it stores holds, the items and the updates; finally the iteration count.

    An iteration beyond the `limit` is fault number `fault`. Each iteration reserves a row of each residual stack. Where
    an iteration `may_fail`, the loop ends at the first fault, since nothing after it is valid, not even the test.
    """

    depth: int
    test: list[Item]
    predicate: BufferLoad
    items: list[Item]
    updates: list[BufferStore]
    count: BufferStore
    limit: int | None = None
    fault: int = 0
    may_fail: bool = False
    residual_stacks: tuple[Buffer, ...] = ()

    @property
    def bodies(self) -> tuple[list[Item], ...]:
        return (self.test, [*self.items, *self.updates], [self.count])

    @property
    def read(self) -> tuple[BufferLoad, ...]:
        return (self.predicate,)


Control: TypeAlias = Switch | SequentialFor | SequentialWhile
Item: TypeAlias = NestLoop | Effect | Product | LibraryCall | Control


@dataclass(frozen=True, slots=True, eq=False)
class LoopProgram:
    """A lowered program. Fault number n, which a run may report, is `faults[n - 1]`; `meters` are labels of loops."""

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    temporaries: tuple[Buffer, ...]
    residual_stacks: tuple[Buffer, ...]
    items: tuple[Item, ...]
    faults: tuple[Fault, ...]
    meters: tuple[str, ...] = ()


# ---- what an item reads and writes -------------------------------------------------------------------------------

INNERMOST = 2**16
"""A depth beyond that of any loop: that of the counter of a matrix's rows in accesses."""

Access: TypeAlias = tuple[Buffer, Index | None]
"""A buffer and the address in it; None for all of it."""


def effects(item: Item) -> Iterator[Effect | Product | LibraryCall]:
    """The effects of an item, each once, in the order of the text."""
    if isinstance(item, NestLoop):
        for inner in item.items:
            yield from effects(inner)
    elif isinstance(item, Control):
        for body in item.bodies:
            for inner in body:
                yield from effects(inner)
    else:
        yield item


def controls(item: Item) -> Iterator[Control]:
    """The control flow in an item, outer before inner."""
    if isinstance(item, Control):
        yield item
        for body in item.bodies:
            for inner in body:
                yield from controls(inner)


def touched(item: Item) -> Iterator[Buffer]:
    """The buffers whose memory an item reads or writes, one for each access."""
    for effect in effects(item):
        for buffer, _ in (*reads(effect), *writes(effect)):
            yield buffer.root
        if isinstance(effect, Product) and effect.parts is not None:
            yield effect.parts
    for control in controls(item):
        for load in control.read:
            yield load.buffer.root


def writes(item: Effect | Product | LibraryCall) -> list[Access]:
    """The accesses that an effect writes."""
    match item:
        case Product(out, _, _, m, _, n):
            return [_access(out, m, n)]
        case LibraryCall():
            return [(buffer, None) for buffer in item.results]
        case _:
            return [(item.buffer, item.address)]


def reads(item: Effect | Product | LibraryCall) -> list[Access]:
    """The accesses that an effect reads; an update reads the elements that it writes."""
    match item:
        case Product(out, a, b, m, k, n):
            changed = [_access(out, m, n)] if item.beta else []
            return [_access(a, m, k), _access(b, k, n), *changed]
        case LibraryCall():
            return [(buffer, None) for buffer in item.operands]
        case _:
            found = [(load.buffer, load.address) for load in effect_loads(item)]
            return [*found, (item.buffer, item.address)] if isinstance(item, Update) else list(found)


def _access(matrix: Matrix, rows: int, columns: int) -> Access:
    """The access to the elements of a matrix, as if by two loops inside of all others."""
    row, column = counter(INNERMOST, max(rows, 1)), counter(INNERMOST + 1, max(columns, 1))
    return matrix.buffer, matrix.offset + (row * matrix.row_stride + column * matrix.column_stride)


def effect_loads(effect: Effect) -> list[BufferLoad]:
    """The loads of an effect."""
    return loads([effect.node, *loaded(effect.address)])


def is_there(effect: Effect) -> bool:
    """True if an effect stores what is at this place already."""
    if not isinstance(effect, BufferStore) or not isinstance(effect.node, BufferLoad):
        return False
    return effect.node.buffer.root is effect.buffer.root and effect.node.address == effect.address


def nested(shape: Shape, inner: Item, start: int) -> Item:
    """The loops over a shape around an item; the first is at depth `start`."""
    (item,) = nest(shape, [inner], start)
    return item


def nest(shape: Shape, inner: list[Item], start: int) -> list[Item]:
    """The loops over a shape around items: these items where there is no loop."""
    sizes = [n for n in shape if n != 1]
    for depth in range(len(sizes) - 1, -1, -1):
        inner = [NestLoop(start + depth, sizes[depth], inner)]
    return inner
