"""Temporaries of which a nest needs one row at a time.

A temporary that only one nest touches, in parts that the iterations of its outermost loop keep to themselves
(Note [Aligned accesses] in `fuse.py`), needs memory for the part of one iteration: so its rows stay in the cache, where
whole arrays would stream through memory. Rows that are shorter than a vector loop are left, since the loop around them
may be the one that vectorises.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from fnad.lower.fuse import aligned, footprint
from fnad.lower.index import Counter, Index
from fnad.lower.loop_ir import Control, Item, NestLoop, touched
from fnad.lower.nodes import Buffer

SHORTEST = 32
"""The fewest elements of a row."""

LARGEST, LARGEST_ALL = 2**15, 2**17
"""The most bytes of a row, and of all rows together: they are on the stack."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The loop whose iterations have a row each, and the size of its memory: a power of two, so sizes share code."""

    loop: NestLoop
    size: int

    def place(self, address: Index) -> Index:
        """The place in the row of an address in the whole buffer."""
        counter = Counter(self.loop.depth, self.loop.extent)
        return Index(address.constant, tuple(term for term in address.terms if term[0] != counter))


def rows(items: Sequence[Item], temporaries: Sequence[Buffer]) -> dict[Buffer, Row]:
    """The temporaries that need a row only."""
    users: dict[Buffer, list[Item]] = defaultdict(list)
    for item in _flat(items):
        for buffer in {load.buffer.root for load in item.read} if isinstance(item, Control) else {*touched(item)}:
            users[buffer].append(item)
    found: dict[Buffer, Row] = {}
    room = LARGEST_ALL
    for buffer in temporaries:
        row = _row(buffer, users[buffer])
        nbytes = row.size * buffer.dtype.itemsize if row else 0
        if row and nbytes <= min(room, LARGEST):
            found[buffer], room = row, room - nbytes
    return found


def _flat(items: Sequence[Item]) -> Iterator[Item]:
    """The items, those in control flow included."""
    for item in items:
        yield item
        if isinstance(item, Control):
            yield from _flat([*chain(*item.bodies)])


def _row(buffer: Buffer, users: Sequence[Item]) -> Row | None:
    loop = users[0] if len(users) == 1 else None
    if not isinstance(loop, NestLoop):
        return None
    accessed = footprint(loop)
    addresses = [*accessed.written.get(buffer, ()), *accessed.read.get(buffer, ())]
    if not aligned(addresses, loop.depth, loop.extent):
        return None
    places = [Row(loop, 0).place(address) for address in addresses if address is not None]
    if any(isinstance(atom, Counter) and atom.depth < loop.depth for place in places for atom, _ in place.terms):
        return None
    size = max(place.range[1] for place in places) + 1
    return Row(loop, 2 ** (size - 1).bit_length()) if SHORTEST <= size < buffer.aval.size else None
