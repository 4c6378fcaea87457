"""Fusion: merging a new nest into the nests before it.

Nests come in the order of the program. A new one is placed as early as its dependences allow. If the nest it depends on
has an outermost loop of the same extent, and each iteration of that loop touches only its own part of the shared
buffers, the two loops become one, and the same question is asked again one level further in. So chains of elementwise
work and folds become one nest, and a fold over rows followed by work on the rows becomes two inner loops in one outer
loop, where the row is still in the cache.

Note [Aligned accesses]
    All accesses to a buffer are aligned at depth d if their addresses are  outer + stride · i<d> + rest,  with the
    same stride and the same coefficients of the outer counters, and the rests of all of them lie within less than one
    stride: then the iterations of loop d touch disjoint parts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fnad.lower.index import Counter, Index
from fnad.lower.loop_ir import Item, NestLoop, Product, controls, effects, reads, writes
from fnad.lower.nodes import Buffer

CANDIDATES = 8
"""How many of the nests that share data with a new one are tried."""


@dataclass(slots=True)
class Footprint:
    """The addresses an item touches, by buffer (None stands for all of it), and its effects and products counted."""

    written: dict[Buffer, list[Index | None]]
    read: dict[Buffer, list[Index | None]]
    size: int
    products: int

    def add(self, other: Footprint) -> None:
        for mine, theirs in ((self.written, other.written), (self.read, other.read)):
            for buffer, addresses in theirs.items():
                mine.setdefault(buffer, []).extend(addresses)
        self.size += other.size
        self.products += other.products

    def conflicts(self, other: Footprint) -> bool:
        """Whether two items have to run in their order, since one writes what the other touches."""
        return bool(
            self.written.keys() & (other.read.keys() | other.written.keys()) or self.read.keys() & other.written.keys()
        )


def footprint(item: Item) -> Footprint:
    """The footprint of an item."""
    found = Footprint({}, {}, 0, 0)
    for effect in effects(item):
        found.size += 1
        found.products += isinstance(effect, Product)
        for table, accesses in ((found.written, writes(effect)), (found.read, reads(effect))):
            for buffer, address in accesses:
                table.setdefault(buffer.root, []).append(address)
    for control in controls(item):
        for load in control.read:
            found.read.setdefault(load.buffer.root, []).append(None)
    return found


@dataclass(slots=True)
class Member:
    """An item of a sequence, with its footprint; for a loop, with the sequence inside."""

    item: Item
    footprint: Footprint
    inside: Nests | None


@dataclass(slots=True)
class Nests:
    """Items in order; for each buffer, the positions of the items that write it and of those that touch it.

    A nest has no more than about `largest` effects.
    """

    largest: int
    members: list[Member] = field(default_factory=list[Member])
    writers: dict[Buffer, list[int]] = field(default_factory=lambda: defaultdict[Buffer, list[int]](list))
    touchers: dict[Buffer, list[int]] = field(default_factory=lambda: defaultdict[Buffer, list[int]](list))

    def place(self, item: Item) -> None:
        """Add an item that comes after all others in the program, merging loops where that is allowed."""
        touched = footprint(item)
        after = self._last_conflict(touched)
        producer = self._producer(item, touched, after)
        if producer is not None:
            position, order = producer
            self._reorder(position, order)
            position += order.index(position)
            for other in self._producers(touched):
                self._unite(other, position)
            self._merge(position, item, touched)
            return
        # Behind `after` any position is legal; only nests that touch the same arrays gain from sharing a loop.
        for position in self._sharing(after, touched):
            if self._takes(position, item, touched):
                self._merge(position, item, touched)
                return
        self._append(item, touched)

    def joins(self, item: Item) -> bool:
        """Whether an item would be merged with what computes an operand."""
        touched = footprint(item)
        return self._producer(item, touched, self._last_conflict(touched)) is not None

    def items(self) -> list[Item]:
        """The items; loops contain what was merged into them."""
        return [_item(member) for member in self.members if member.footprint.size]

    def _producer(self, item: Item, touched: Footprint, after: int) -> tuple[int, Sequence[int]] | None:
        """An item that computes an operand of this one and can be merged with it, and the order that this needs.

        The item may run no earlier than `after`, and to merge there keeps a producer and its consumer together.
        Matrices that are multiplied may be larger than the cache: for them, items in between are moved before.
        """
        candidates = [after] if after >= 0 else []
        for position in self._producers(touched):
            if touched.products:
                candidates.insert(0, position)
            elif self.members[position].footprint.products:
                candidates.append(position)
        for position in dict.fromkeys(candidates):
            if self._takes(position, item, touched):
                order = self._order_before(position, after, touched)
                if order is not None:
                    return position, order
        return None

    def _producers(self, touched: Footprint) -> list[int]:
        """The positions of the items that computed what one reads, that of its largest array last."""
        written = [buffer for buffer in touched.read if self.writers[buffer]]
        return [self.writers[buffer][-1] for buffer in sorted(written, key=lambda buffer: buffer.aval.size)]

    def _order_before(self, position: int, after: int, touched: Footprint) -> Sequence[int] | None:
        """An order of the items from a position to `after` in which this one can follow that at the position.

        It is None if what depends on that item has to come before.
        """
        if after - position > CANDIDATES:
            return None
        stays = [position]
        for other in range(position + 1, after + 1):
            if any(self.members[other].footprint.conflicts(self.members[p].footprint) for p in stays):
                stays.append(other)
        if any(touched.conflicts(self.members[p].footprint) for p in stays[1:]):
            return None
        return [*(p for p in range(position, after + 1) if p not in stays), *stays]

    def _reorder(self, first: int, order: Sequence[int]) -> None:
        """Put the items from a position on into another order."""
        numbers = {old: first + new for new, old in enumerate(order)}
        if all(old == new for old, new in numbers.items()):
            return
        moved = [self.members[position] for position in order]
        self.members[first : first + len(order)] = moved
        buffers = dict.fromkeys(b for m in moved for b in (*m.footprint.read, *m.footprint.written))
        for table in (self.writers, self.touchers):
            for buffer in buffers:
                table[buffer] = sorted(numbers.get(position, position) for position in table[buffer])

    def _unite(self, position: int, later: int) -> None:
        """Merge two items with products that the next one reads, where the later one is."""
        member, other = self.members[position], self.members[later]
        between = range(position + 1, later)
        if (
            not (member.footprint.products or other.footprint.products)
            or not 0 <= len(between) <= CANDIDATES
            or position >= later
            or any(self.members[p].footprint.conflicts(member.footprint) for p in between)
            or not self._takes(position, whole := _item(other), other.footprint)
        ):
            return
        self._merge(position, whole, other.footprint)
        self.members[position], self.members[later] = Member(whole, Footprint({}, {}, 0, 0), None), member
        for table in (self.writers, self.touchers):
            for buffer in (*member.footprint.read, *member.footprint.written):
                if position in table[buffer]:
                    table[buffer].remove(position)
                    _insert(table[buffer], later)

    def _last_conflict(self, touched: Footprint) -> int:
        before = [self.writers[b][-1] for b in touched.read if self.writers[b]]
        return max([*before, *[self.touchers[b][-1] for b in touched.written if self.touchers[b]]], default=-1)

    def _sharing(self, after: int, touched: Footprint) -> Sequence[int]:
        """The first positions behind `after` whose items touch an array that this one touches."""
        shared: set[int] = set()
        for buffer in (*touched.read, *touched.written):
            if buffer.aval.size > 1:
                positions = self.touchers[buffer]
                start = bisect_right(positions, after)
                shared.update(positions[start : start + CANDIDATES])
        return sorted(shared)[:CANDIDATES]

    def _takes(self, position: int, item: Item, touched: Footprint) -> bool:
        """Whether the loop at a position can be merged with an item, and has not grown too large."""
        member = self.members[position]
        loop = member.item
        if not (isinstance(loop, NestLoop) and isinstance(item, NestLoop) and loop.extent == item.extent):
            return False
        if member.inside is None or member.footprint.size >= self.largest:  # one that was united with another is empty
            return False
        old = member.footprint
        # Two reads never conflict; where either writes, the iterations of both must touch the same parts in step.
        shared = (old.written.keys() & (touched.read.keys() | touched.written.keys())) | (
            old.read.keys() & touched.written.keys()
        )
        tables = (old.written, old.read, touched.written, touched.read)
        return all(
            aligned([a for table in tables for a in table.get(buffer, ())], loop.depth, loop.extent)
            for buffer in shared
        )

    def _merge(self, position: int, item: Item, touched: Footprint) -> None:
        member = self.members[position]
        assert isinstance(item, NestLoop)
        assert member.inside is not None
        for inner in item.items:
            member.inside.place(inner)
        member.footprint.add(touched)
        self._note(position, touched)

    def _append(self, item: Item, touched: Footprint) -> None:
        inside: Nests | None = None
        if isinstance(item, NestLoop):
            inside = Nests(self.largest)
            for inner in item.items:
                inside.place(inner)
        self.members.append(Member(item, touched, inside))
        self._note(len(self.members) - 1, touched)

    def _note(self, position: int, touched: Footprint) -> None:
        for buffer in touched.written:
            _insert(self.writers[buffer], position)
        for buffer in (*touched.read, *touched.written):
            _insert(self.touchers[buffer], position)


def _insert(positions: list[int], position: int) -> None:
    where = bisect_right(positions, position)
    if where == 0 or positions[where - 1] != position:
        positions.insert(where, position)


def _item(member: Member) -> Item:
    if member.inside is None or not isinstance(member.item, NestLoop):
        return member.item
    loop = member.item
    return replace(loop, items=member.inside.items())


def aligned(addresses: Sequence[Index | None], depth: int, extent: int) -> bool:
    """Whether the accesses are aligned at this depth: see Note [Aligned accesses]."""
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
    return len(strides) == len(outer) == 1 and high - low < abs(next(iter(strides)))
