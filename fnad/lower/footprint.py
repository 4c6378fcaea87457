"""The accesses of an item, and the test that the iterations of a loop keep to parts of their own.

Note [Aligned accesses]
    All accesses to a buffer are aligned at depth d if their addresses are  outer + stride · i<d> + rest,  with the
    same stride and the same coefficients of the outer counters, and the rests of all of them lie within less than one
    stride: then the iterations of loop d touch disjoint parts. They do too where addresses are multiples of a number
    but for less than that, as in the columns of a matrix: see `independence.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fnad.lower.independence import independent
from fnad.lower.index import Counter, Index
from fnad.lower.loop_ir import Item, LibraryCall, Product, controls, effects, reads, writes
from fnad.lower.nodes import Buffer


@dataclass(slots=True)
class Footprint:
    """The addresses an item touches, by buffer (None stands for all of it), and its effects and products counted."""

    written: dict[Buffer, list[Index | None]]
    read: dict[Buffer, list[Index | None]]
    size: int
    products: int
    has_effect: bool = False

    def add(self, other: Footprint) -> None:
        for mine, theirs in ((self.written, other.written), (self.read, other.read)):
            for buffer, addresses in theirs.items():
                mine.setdefault(buffer, []).extend(addresses)
        self.size += other.size
        self.products += other.products
        self.has_effect |= other.has_effect

    def conflicts(self, other: Footprint) -> bool:
        """True if two items have to run in their order: both have effects, or one writes what the other touches."""
        written = self.written.keys() & (other.read.keys() | other.written.keys())
        return bool((self.has_effect and other.has_effect) or written or self.read.keys() & other.written.keys())


def footprint(item: Item) -> Footprint:
    """The footprint of an item."""
    found = Footprint({}, {}, 0, 0)
    for effect in effects(item):
        found.size += 1
        found.products += isinstance(effect, Product)
        found.has_effect |= isinstance(effect, LibraryCall) and effect.primitive.effect
        for table, accesses in ((found.written, writes(effect)), (found.read, reads(effect))):
            for buffer, address in accesses:
                table.setdefault(buffer.root, []).append(address)
    for control in controls(item):
        for load in control.read:
            found.read.setdefault(load.buffer.root, []).append(None)
    return found


def aligned(addresses: Sequence[Index | None], depth: int, extent: int) -> bool:
    """True if the accesses are aligned at this depth: see Note [Aligned accesses]."""
    counter = Counter(depth, extent)
    strides: set[int] = set()
    outer: set[tuple[tuple[object, int], ...]] = set()
    ranges: list[tuple[int, int]] = []
    for address in addresses:
        if address is None:
            return False
        outside = tuple(t for t in address.terms if isinstance(t[0], Counter) and t[0].depth < depth)
        rest = tuple(t for t in address.terms if t[0] != counter and t not in outside)
        strides.add(address.coefficient(counter))
        outer.add(outside)
        ranges.append(Index(address.constant, rest).range)
    low, high = min(a for a, _ in ranges), max(b for _, b in ranges)
    is_compact = len(strides) == len(outer) == 1 and high - low < abs(next(iter(strides)))
    return is_compact or independent([address for address in addresses if address is not None], counter)
