"""Temporaries of which a nest needs one row, or the rows of a tile, at a time.

A temporary that only one nest touches, in parts that the iterations of its outermost loop keep to themselves
(Note [Aligned accesses] in `footprint.py`), needs memory for the part of one iteration: so its rows stay in the cache,
where whole arrays would stream through memory. If that is too large for the first-level cache, a loop inside may need
less. What several pieces of a tile touch (`tiles.py`) needs memory for the tile, were it one number for each row. Other
rows that are shorter than a vector loop are left, since the loop around them may be the one that vectorises.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import chain

from fnad.ir.size import common_divisor, is_size
from fnad.lower.footprint import Footprint, aligned, footprint
from fnad.lower.index import Atom, Counter, Index
from fnad.lower.loop_ir import Control, Item, NestLoop, Product, effects, touched
from fnad.lower.nodes import Buffer
from fnad.lower.tiles import pieces

SHORTEST = 32
"""The fewest elements of a row, or of the rows of a tile."""

NEAR, NEAR_TILE = 2**15, 2**17
"""The most bytes of a row, and of the rows of a tile, that are preferred to those of a loop inside."""

LARGEST, LARGEST_ALL = 2**20, 2**21
"""The most bytes of a row, and of all rows together: what is larger is in no cache of one core."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The loop whose iterations have a row each, with `outermost` around it, and the elements of its memory.

    These are a power of two, so that sizes share code. Where it `has_tile`, the rows of a tile are there at once; where
    they are `turned`, the elements of a column lie together, as many as the tile has rows.
    """

    loop: NestLoop
    outermost: int
    has_tile: bool
    size: int
    turned: bool = False
    pitch: int = 1
    """The distance between the elements of a row that is turned."""

    def stride(self, address: Index) -> int:
        """The distance between the rows of successive iterations, if there are several."""
        stride = _stride(self.loop, address) if self.has_tile else 0
        return int(stride > 0) if self.turned else stride

    def place(self, address: Index) -> Index:
        """The place in its row of an address in the whole buffer."""
        place = _place(self.loop, self.outermost, address)
        return place // self.pitch * self.loop.tile if self.turned else place


def _stride(loop: NestLoop, address: Index) -> int:
    return address.coefficient(Counter(loop.depth, loop.extent))


def _place(loop: NestLoop, outermost: int, address: Index) -> Index:
    return Index(
        address.constant, tuple(term for term in address.terms if not _is_counter(term[0], outermost, loop.depth))
    )


def _is_counter(atom: Atom, first: int, last: int) -> bool:
    return isinstance(atom, Counter) and first <= atom.depth <= last


def rows(items: Sequence[Item], temporaries: Sequence[Buffer]) -> dict[Buffer, Row]:
    """The temporaries that need a row or a tile only."""
    users: dict[Buffer, list[Item]] = defaultdict(list)
    for item in _flat(items):
        for buffer in {load.buffer.root for load in item.read} if isinstance(item, Control) else {*touched(item)}:
            users[buffer].append(item)
    search = _RowSearch()
    found: dict[Buffer, Row] = {}
    room = LARGEST_ALL
    for buffer in temporaries:
        row = search.row(buffer, users[buffer])
        nbytes = row.size * buffer.dtype.itemsize if row else 0
        if row and nbytes <= room:
            found[buffer] = row
            room -= nbytes
    return found


def _flat(items: Sequence[Item]) -> Iterator[Item]:
    """The items, those in control flow included."""
    for item in items:
        yield item
        if isinstance(item, Control):
            yield from _flat([*chain(*item.bodies)])


class _RowSearch:
    """The search for rows; what a loop touches is found once."""

    def __init__(self) -> None:
        self.footprint = cache(footprint)

    def row(self, buffer: Buffer, users: Sequence[Item]) -> Row | None:
        """The row of a buffer in the one item that touches it, of the outermost loop with a near row or else any."""
        far: Row | None = None
        outermost = users[0] if len(users) == 1 else None
        loop = outermost
        while isinstance(loop, NestLoop) and isinstance(outermost, NestLoop):
            addresses = self.addresses(buffer, loop)
            if not addresses or not aligned(addresses, loop.depth, loop.extent):
                return far
            known = [address for address in addresses if address is not None]
            has_tile = self.needs_tile(buffer, loop)
            row = _row(buffer, loop, outermost.depth, known, has_tile, has_tile and self.is_turned(buffer, loop))
            if row is not None and row.size * buffer.dtype.itemsize <= (NEAR_TILE if row.has_tile else NEAR):
                return row
            far = far or row
            inside = [item for item in loop.items if self.addresses(buffer, item)]
            loop = inside[0] if len(inside) == 1 else None
        return far

    def needs_tile(self, buffer: Buffer, loop: NestLoop) -> bool:
        """True if several pieces of a tile, a product, or a loop across it touch a buffer."""
        users = (
            [p for p in pieces(loop) if any(self.addresses(buffer, item) for item in _items(p))] if loop.tile else []
        )
        return len(users) > 1 or any(isinstance(user, Product) or user.across for user in users)

    def is_turned(self, buffer: Buffer, loop: NestLoop) -> bool:
        """True if loops across the tile touch the rows of a buffer, and no products but of the tile's single rows."""
        users = [p for p in pieces(loop) if any(self.addresses(buffer, item) for item in _items(p))]
        found: list[Index | None] = []
        for user in users:
            if isinstance(user, Product) and not is_by_single_rows(user):
                return False
            if isinstance(user, NestLoop) and any(isinstance(effect, Product) for effect in effects(user)):
                return False
            if isinstance(user, NestLoop) and user.across:
                found += self.addresses(buffer, user)
        return any(address is not None and address.reads(loop.depth + 1) for address in found)

    def addresses(self, buffer: Buffer, item: Item) -> list[Index | None]:
        accessed: Footprint = self.footprint(item)
        return [*accessed.written.get(buffer, ()), *accessed.read.get(buffer, ())]


def _items(piece: NestLoop | Product) -> Sequence[Item]:
    return piece.items if isinstance(piece, NestLoop) else (piece,)


def is_by_single_rows(product: Product) -> bool:
    """True if an iteration of the loop that divides a product takes one row of its matrices."""
    return (product.k if product.depths else product.m) == 1


def _row(
    buffer: Buffer, loop: NestLoop, outermost: int, addresses: Sequence[Index], has_tile: bool, turned: bool
) -> Row | None:
    """The row of a loop's iterations, if it is neither too short nor too large."""
    places = [_place(loop, outermost, address) for address in addresses]
    if any(isinstance(atom, Counter) and atom.depth < outermost for place in places for atom, _ in place.terms):
        return None
    stride = _stride(loop, addresses[0])
    pitch = _pitch(places) if turned and stride == 1 else 1
    size = max(place.range[1] for place in places) // pitch + 1
    if size >= buffer.aval.size or (has_tile and stride < 0) or is_size(size):
        return None
    several = size * loop.tile if turned else size + (stride * (loop.tile - 1) if has_tile else 0)
    if several < SHORTEST and not turned:
        return None
    whole = 2 ** (several - 1).bit_length()
    return Row(loop, outermost, has_tile, whole, turned, pitch) if whole * buffer.dtype.itemsize <= LARGEST else None


def _pitch(places: Sequence[Index]) -> int:
    """The largest number of which all places are multiples."""
    numbers = [number for place in places for number in (place.constant, *(c for _, c in place.terms))]
    return reduce(common_divisor, numbers, 0) or 1
