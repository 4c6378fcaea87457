"""Loops over narrow rows by tiles, each of which copies the matrices that it reads and those that it writes.

    for i < n:                                      for i < n by 64:
      for j < k:                                      for j < k:
        s[i] = s[i] + exp(x[i, j])    is                u[i, j] = x[i, j]
                                                      for j < k:
                                                        for i in the tile:
                                                          s[i] = s[i] + exp(uᵀ[j, i])

Then the loops along rows run across the tile (`across.py`), because the copies have memory for a tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from fnad.ir.size import is_size
from fnad.lower.across import WIDEST, accesses_of, is_along_row, is_narrow, is_simple, lies_well
from fnad.lower.expressions import Shared
from fnad.lower.footprint import aligned
from fnad.lower.index import Counter, Index, Quotient, Remainder, counter
from fnad.lower.loop_ir import BufferStore, Item, NestLoop, Reduce, effects, writes
from fnad.lower.nodes import Buffer, Nodes
from fnad.lower.parallel import nanoseconds
from fnad.lower.rewrite import Rewrite

TILE = 64
"""The rows of a tile."""

LEAST, VECTOR = 1.0, 32
"""The least work on an element, in nanoseconds, that is worth a copy of it, and the bytes of a vector.

Rows of whole vectors take less time along the row, the less the longer they are: for these it is the work per vector.
"""

UNROLLED, OF_UNROLLED = 4, 6.0
"""The most elements of a row that LLVM unrolls in a loop over rows, and the least work on an element of these."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a matrix that loops along rows access, `first` and those after it."""

    stride: int
    first: int
    count: int

    def place(self, depth: int) -> Index:
        """The place in its row of an element, by the counter of the loop at this depth."""
        return counter(depth, self.count) + self.first


def by_tiles(item: Item, own: AbstractSet[Buffer], shared: Shared) -> Item:
    """A loop over narrow rows by tiles, if its work is worth the copies; temporaries of its `own` need none."""
    if not isinstance(item, NestLoop) or not _has_narrow_rows(item):
        return item
    loops = [inner for inner in item.items if isinstance(inner, NestLoop)]
    parts = {buffer: _columns(buffer, item) for buffer in _lying_by_rows(item, loops, own)}
    known = {buffer: part for buffer, part in parts.items() if part is not None}
    if len(known) < len(parts) or not _is_worth(loops, parts):
        return item
    copies = {buffer: shared.temporary(buffer.aval, buffer.depth) for buffer in known}
    written = {other for effect in effects(item) for other, _ in writes(effect)}
    copied, nodes = _Copied(shared.nodes, item, copies), shared.nodes
    before = [_copy(x, copies[x], columns, item, nodes) for x, columns in known.items() if x not in written]
    after = [_copy(copies[x], x, columns, item, nodes) for x, columns in known.items() if x in written]
    return replace(item, items=[*before, *map(copied.item, item.items), *after], tile=TILE)


def _is_worth(loops: Sequence[NestLoop], copied: Iterable[Buffer]) -> bool:
    """True if the work on an element takes longer than copies."""
    work = sum(nanoseconds(loop) / loop.extent for loop in loops)
    count = max(loop.extent for loop in loops)
    return work >= sum(_least_work(count, count * buffer.dtype.itemsize) for buffer in copied)


def _least_work(count: int, nbytes: int) -> float:
    """The least time of the work on an element that is worth a copy, by the elements and bytes of a row."""
    if count <= UNROLLED:
        return OF_UNROLLED
    vectors, rest = divmod(nbytes, VECTOR)
    return LEAST * (1 if rest else vectors)


def _has_narrow_rows(loop: NestLoop) -> bool:
    """True if a loop has loops over narrow rows, some of which fold along these, and simple effects."""
    if loop.tile or loop.span is not None or is_size(loop.extent) or loop.extent < 2 * TILE:
        return False
    inner = [item for item in loop.items if isinstance(item, NestLoop)]
    return (
        all(isinstance(item, NestLoop | BufferStore | Reduce) for item in loop.items)
        and all(is_narrow(item) and all(is_simple(effect, item, loop) for effect in item.items) for item in inner)
        and any(is_along_row(effect, item) for item in inner for effect in item.items)
    )


def _lying_by_rows(item: NestLoop, loops: Sequence[NestLoop], own: AbstractSet[Buffer]) -> list[Buffer]:
    """The buffers that loops along rows access and whose elements of a column do not lie together."""
    row = Counter(item.depth, item.extent)
    return [
        *dict.fromkeys(
            access[0]
            for loop in loops
            for effect in loop.items
            for access in accesses_of(effect)
            if not lies_well(access, row, Counter(loop.depth, loop.extent), own)
        )
    ]


def _columns(buffer: Buffer, item: NestLoop) -> Columns | None:
    """The columns of a buffer that a loop over rows accesses, if they are few, and all are stored where one is."""
    row = Counter(item.depth, item.extent)
    found = [access for access in accesses_of(item) if access[0].root is buffer.root]
    addresses = [address for _, address in found if address is not None]
    moving = [address for address in addresses if address.coefficient(row)]
    stored = [address for effect in effects(item) for other, address in writes(effect) if other is buffer]
    fixed = [] if stored else [address for address in addresses if not address.coefficient(row)]
    is_known = len(moving) + len(fixed) == len(found) and all(other is buffer for other, _ in found)
    if not (is_known and moving and aligned(moving, item.depth, item.extent)) or is_size(buffer.aval.size):
        return None
    if min(a.range[0] for a in moving) < 0 or max(a.range[1] for a in moving) >= buffer.aval.size:
        return None  # they are read under a condition, where copies would be made without it
    if any(not isinstance(atom, Counter) for address in fixed for atom, _ in address.terms):
        return None
    stride = moving[0].coefficient(row)
    places = {address: address - counter(item.depth, item.extent) * stride for address in moving}
    if any(isinstance(atom, Quotient | Remainder) for place in places.values() for atom, _ in place.terms):
        return None
    first, last = min(p.range[0] for p in places.values()), max(p.range[1] for p in places.values())
    columns = Columns(stride, first, last + 1 - first)
    whole = columns.place(item.depth + 1)
    is_whole = all(address in places and places[address] == whole for address in stored)
    return columns if is_whole and 1 < columns.count <= WIDEST else None


def _copy(source: Buffer, target: Buffer, columns: Columns, item: NestLoop, nodes: Nodes) -> NestLoop:
    """The loop that copies these columns of a row."""
    depth = item.depth + 1
    address = counter(item.depth, item.extent) * columns.stride + columns.place(depth)
    return NestLoop(depth, columns.count, [BufferStore(target, address, nodes.load(source, address))])


class _Copied(Rewrite):
    """The change of accesses to rows of matrices into accesses to their copies, at the same addresses."""

    def __init__(self, nodes: Nodes, rows: NestLoop, copies: Mapping[Buffer, Buffer]) -> None:
        super().__init__(nodes, rows.depth)
        self.row = Counter(rows.depth, rows.extent)
        self.copies = copies

    def place(self, buffer: Buffer, address: Index) -> tuple[Buffer, Index]:
        copy = self.copies.get(buffer, buffer) if address.coefficient(self.row) else buffer
        return copy, self.index(address)
