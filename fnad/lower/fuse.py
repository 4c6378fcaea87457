"""Fusion: merging a new nest into the nests before it.

Nests come in the order of the program. A new one is placed as early as its dependences allow. The two loops become one
if the nest it depends on has an outermost loop of the same extent, each iteration of which touches only its own part of
the shared buffers. The loops one level further in are merged in the same way. So chains of elementwise work and folds
become one nest. A fold over rows followed by work on the rows becomes two inner loops in one outer loop, where the row
is still in the cache.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from fnad.ir.size import estimate, is_same
from fnad.lower.footprint import Footprint, aligned, footprint
from fnad.lower.loop_ir import Item, NestLoop, Scan
from fnad.lower.nodes import Buffer
from fnad.lower.parallel import calls_functions, is_parallel

CANDIDATES = 8
"""The number of nests tried among those that share data with a new one."""

LARGE = 2**16
"""The fewest bytes of an array that leaves the first cache before a later loop reads it."""


@dataclass(slots=True)
class Member:
    """An item of a sequence, with its footprint; for a loop, with the sequence inside."""

    item: Item
    footprint: Footprint
    inside: Nests | None = None
    _is_parallel: bool | None = None

    @property
    def whole(self) -> Item:
        """The item with what was merged into it."""
        if self.inside is None or not isinstance(self.item, NestLoop):
            return self.item
        return replace(self.item, items=self.inside.items())

    @property
    def is_parallel(self) -> bool:
        """True if its iterations may run on several threads."""
        if self._is_parallel is None:
            loop = self.whole
            self._is_parallel = isinstance(loop, NestLoop) and is_parallel(loop)
        return self._is_parallel

    def add(self, other: Member) -> None:
        """Merge another loop."""
        assert isinstance(other.item, NestLoop)
        assert self.inside is not None
        for inner in other.item.items:
            self.inside.place(inner)
        self.footprint.add(other.footprint)
        self._is_parallel = None


@dataclass(slots=True)
class Nests:
    """Items in order; for each buffer, the positions of the items that write it and of those that touch it.

    A nest has no more than about `largest` effects. What `is_inside` of a loop is left to the threads of that loop. It
    `has_running` folds, or not.
    """

    largest: int
    members: list[Member] = field(default_factory=list[Member])
    writers: dict[Buffer, list[int]] = field(default_factory=lambda: defaultdict[Buffer, list[int]](list))
    touchers: dict[Buffer, list[int]] = field(default_factory=lambda: defaultdict[Buffer, list[int]](list))
    is_inside: bool = False
    has_running: bool = False

    def place(self, item: Item) -> None:
        """Add an item that comes after all others in the program, merging loops where that is allowed."""
        new = Member(item, footprint(item))
        after = self._last_conflict(new.footprint)
        producer = self._producer(new, after)
        if producer is not None:
            position, order = producer
            self._reorder(position, order)
            position += order.index(position)
            for other in self._producers(new.footprint):
                if self._takes(other, new):  # else what the item reads would not be there yet
                    self._unite(other, position)
            self._merge(position, new)
            return
        # Behind `after` any position is legal; only nests that touch the same arrays gain from sharing a loop.
        for position in self._sharing(after, new.footprint):
            if self._takes(position, new):
                self._merge(position, new)
                return
        self._append(new)

    def joins(self, item: Item) -> bool:
        """True if an item would be merged with what computes an operand."""
        new = Member(item, footprint(item))
        return self._producer(new, self._last_conflict(new.footprint)) is not None

    def items(self) -> list[Item]:
        """The items; loops contain what was merged into them."""
        return [member.whole for member in self.members if member.footprint.size]

    def _producer(self, new: Member, after: int) -> tuple[int, Sequence[int]] | None:
        """An item that computes an operand of this one and can be merged with it, and the order that this needs.

        The item may run no earlier than `after`, and to merge there keeps a producer and its consumer together.
        Matrices that are multiplied may be larger than the cache: for them, items in between are moved before.
        """
        touched = new.footprint
        candidates = [after] if after >= 0 else []
        for position in self._producers(touched):
            if touched.products:
                candidates.insert(0, position)
            elif self.members[position].footprint.products:
                candidates.append(position)
        for position in dict.fromkeys(candidates):
            if self._takes(position, new):
                order = self._order_before(position, after, touched)
                if order is not None:
                    return position, order
        return None

    def _producers(self, touched: Footprint) -> list[int]:
        """The positions of the items that computed what one reads, that of its largest array last."""
        written = [buffer for buffer in touched.read if self.writers[buffer]]
        return [self.writers[buffer][-1] for buffer in sorted(written, key=lambda buffer: estimate(buffer.aval.size))]

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

    def share(self, least: int) -> None:
        """Merge items that read the same array of at least so many bytes, though none computes what another reads."""
        large = [positions for buffer, positions in self.touchers.items() if estimate(buffer.aval.nbytes) >= least]
        for positions in large:
            for position, later in pairwise(list(positions)):
                self._join(position, later)

    def _unite(self, position: int, later: int) -> None:
        """Merge two items that the next one reads where the later one is, if they have products or large results."""
        made = self.members[position].footprint
        is_large = any(estimate(buffer.aval.nbytes) >= LARGE for buffer in made.written)
        if is_large or made.products or self.members[later].footprint.products:
            self._join(position, later)

    def _join(self, position: int, later: int) -> None:
        """Merge two items where the later one is, if that is allowed."""
        member, other = self.members[position], self.members[later]
        between = range(position + 1, later)
        if (
            not 0 <= len(between) <= CANDIDATES
            or position >= later
            or any(self.members[p].footprint.conflicts(member.footprint) for p in between)
            or not self._takes(position, new := Member(other.whole, other.footprint))
        ):
            return
        self._merge(position, new)
        self.members[position], self.members[later] = Member(new.item, Footprint({}, {}, 0, 0)), member
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

    def _takes(self, position: int, new: Member) -> bool:
        """True if the loop at a position can be merged with an item, and has not grown too large."""
        member = self.members[position]
        loop, item, touched = member.item, new.item, new.footprint
        if not (isinstance(loop, NestLoop) and isinstance(item, NestLoop) and is_same(loop.extent, item.extent)):
            return False
        if loop.span != item.span or loop.across != item.across:
            return False
        if member.inside is None or member.footprint.size >= self.largest:  # one that was united with another is empty
            return False
        if not self.is_inside and _costs_threads(member, new):
            return False
        if _costs_vectors(member, item):
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

    def _merge(self, position: int, new: Member) -> None:
        self.members[position].add(new)
        self._note(position, new.footprint)

    def _append(self, new: Member) -> None:
        if isinstance(new.item, NestLoop):
            new.inside = Nests(self.largest, is_inside=True)
            for inner in new.item.items:
                new.inside.place(inner)
        self.members.append(new)
        self.has_running |= isinstance(new.item, Scan)
        self._note(len(self.members) - 1, new.footprint)

    def _note(self, position: int, touched: Footprint) -> None:
        for buffer in touched.written:
            _insert(self.writers[buffer], position)
        for buffer in (*touched.read, *touched.written):
            _insert(self.touchers[buffer], position)


def _insert(positions: list[int], position: int) -> None:
    where = bisect_right(positions, position)
    if where == 0 or positions[where - 1] != position:
        positions.insert(where, position)


def _costs_threads(member: Member, new: Member) -> bool:
    """True if a product would be on one thread for the sake of what is merged with it."""
    return any(one.footprint.products and not other.is_parallel for one, other in ((member, new), (new, member)))


def _costs_vectors(member: Member, item: NestLoop) -> bool:
    """True if functions would be called one by one because of a running fold, whose steps have an order."""
    is_running = member.inside is not None and member.inside.has_running
    is_item_running = any(isinstance(effect, Scan) for effect in item.items)
    return is_running != is_item_running and calls_functions(item if is_running else member.whole)
