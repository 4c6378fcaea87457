"""Folds over rows, and what is computed from their results, by blocks that keep a strip of neighbouring columns.

    for column: for row: s += x[row, column]              a normalization over the first axis: x is read once
                for row: q += (x[row, column] - s/n)²
                for row: y[row, column] = f(x[row, column], s, q)

It is what a block does with a row, across: neighbouring threads have neighbouring columns, so that they touch whole
sectors of memory, and a thread keeps its elements in registers from one pass to the next.

Note [Blocks that share a strip]
    If a strip is too long for the registers of a block, several blocks have a share of its rows each. A block
    publishes its fold of each column and waits for those of the others, as in Note [Tiles in one pass], and adds them
    in the order of the shares: the result is the same at each call.

    Blocks end, though they wait for later ones: the number of a share is a ticket, and those of a strip follow one
    another. Of the strips that are not finished, let the first be s. A block that begins draws a ticket before it
    waits, and one of a later strip only if all of s are drawn. So if one of s is not drawn, all blocks that wait are of
    s, and fewer than it has shares: the device has room for one more, if it has for as many blocks as share a strip.
    Programs on k streams need room for k times as many. `Grid.together` is a fourth of the multiprocessors, which have
    room for a block each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from fnad.kernel.accumulators import Folded
from fnad.kernel.barriers import by_groups
from fnad.kernel.device import BLOCK, THREAD
from fnad.kernel.device_build import SECTOR, DeviceBuilder
from fnad.kernel.moments import read_with_folds
from fnad.kernel.pieces import Piece
from fnad.kernel.registers import LONGEST, WORDS, words_for, words_of
from fnad.kernel.running import Published, lane_and_group, times
from fnad.kernel.statements import Assign, Expression, Name, Statement, apply, integer
from fnad.kernel.writer import plus
from fnad.lower.independence import chain, is_free, written_addresses
from fnad.lower.interchange import nest_of, ordered
from fnad.lower.loop_ir import (
    BufferStore,
    Effect,
    Item,
    NestLoop,
    Reduce,
    SequentialFor,
    SequentialWhile,
    Switch,
    reads,
    writes,
)
from fnad.lower.nodes import Buffer
from fnad.lower.sharing import loop_effects, reads_along, roles, size
from fnad.lower.target import Grid, Target
from fnad.scalar.operation import INDEX, Dtype
from fnad.scalar.operations import ADD, MIN

STRIP, SHARE = Name("strip", INDEX), Name("share", INDEX)
"""The numbers of a block's strip, and of its share of the rows."""

FEWEST = 4
"""The fewest rows of a share for each thread, if blocks share a strip only to be more."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a strip, the blocks that share it, and the threads of each."""

    columns: int
    shares: int
    threads: int


# ---- which nests -------------------------------------------------------------------------------------------------


def in_strips(items: Sequence[Item], target: Target) -> list[Item]:
    """The items, with nests over the same rows and columns in one nest of columns where blocks can keep these."""
    found: list[Item] = []
    rest = [_inside(item, target) for item in items]
    while rest:
        nest, count = _first_strip(rest, target)
        found.append(nest)
        rest = rest[count:]
    return found


def _inside(item: Item, target: Target) -> Item:
    """An item with the nests in control flow changed."""
    match item:
        case NestLoop():
            loops = chain(item)
            nest, count = _first_strip(loops[-1].items, target, loops)
            return nest if count == len(loops[-1].items) else item
        case SequentialFor() | SequentialWhile():
            return replace(item, items=in_strips(item.items, target))
        case Switch():
            return replace(item, branches=tuple(in_strips(branch, target) for branch in item.branches))
        case _:
            return item


def _first_strip(items: Sequence[Item], target: Target, around: Sequence[NestLoop] = ()) -> tuple[Item, int]:
    """The first item, with those after it that go together, within loops, and the number of these."""
    first = items[0]
    if isinstance(first, NestLoop) and (found := roles(chain(first))).folded and found.free and not found.ordered:
        together: list[NestLoop] = []
        best: tuple[Item, int] = first, 0 if around else 1
        for count, item in enumerate(items, 1):
            is_large = sum(len(loop_effects(nest)) for nest in together) > target.costs.largest_nest
            if is_large or not isinstance(item, NestLoop) or (across := _by_columns(item, first)) is None:
                break
            together.append(across)
            loops = found.free
            columns = chain(across)[: len(loops)]
            inner = [inner for nest in together for inner in chain(nest)[len(loops) - 1].items]
            joined = nest_of([*around, *columns], inner)
            is_one_pass = sum(isinstance(each, NestLoop) for each in inner) == 2 and read_with_folds(items[:count])
            if not is_one_pass and shape_of(joined, target.grid) is not None:
                best = joined, count
        return best
    return first, 0 if around else 1


def _by_columns(nest: NestLoop, first: NestLoop) -> NestLoop | None:
    """A nest with the columns of the first one outside; None if it does not run over these, or over other rows."""
    loops, found = chain(nest), roles(chain(first))
    if [(x.depth, x.extent) for x in loops] == [(x.depth, x.extent) for x in chain(first)]:
        places = [n for kind in (found.free, found.folded) for n, loop in enumerate(chain(first)) if loop in kind]
        return ordered(loops, [loops[n] for n in places])
    is_of_columns = [x.extent for x in loops] == [x.extent for x in found.free]
    return nest if is_of_columns and loops[0].depth == first.depth else None


def shape_of(nest: NestLoop, grid: Grid | None) -> Shape | None:
    """The shape of the strips of a nest of columns; None if blocks cannot keep these, or if nothing is read again."""
    assert grid is not None
    loops = chain(nest)
    passes = [chain(item) for item in loops[-1].items if isinstance(item, NestLoop)]
    extents = {tuple(loop.extent for loop in rows) for rows in passes}
    if len(passes) < 2 or len(extents) > 1 or not all(is_free(loop, loops[-1].items) for loop in loops):
        return None
    if any(len({*places}) > 1 for places in written_addresses(loop_effects(nest)).values()):
        return None  # what a thread has written, others would read
    again = _kept(loops, passes)
    depths = frozenset(loop.depth for loop in passes[0])
    folds = [effect for effect in loop_effects(nest) if isinstance(effect, Reduce)]
    others = [effect for effect in loop_effects(nest) if not isinstance(effect, Reduce)]
    is_simple = all(isinstance(each, BufferStore) for each in others) and all(fold.depths == depths for fold in folds)
    if not is_simple or not again or any(roles(rows).ordered for rows in passes):
        return None
    if any(reads_along(rows[-1], loops) for rows in passes if roles(rows).folded):
        return None
    most = grid.together if all(fold.init.dtype.kind in "fiu" for fold in folds) else 1
    narrowest = min(SECTOR // max(dtype.itemsize for between in again for dtype in between), grid.warp)
    words = max(sum(map(words_of, between)) for between in again)
    return _shape(size(loops), size(passes[0]), words, narrowest, grid, most)


def _kept(columns: Sequence[NestLoop], passes: Sequence[Sequence[NestLoop]]) -> list[list[Dtype]]:
    """The dtypes of the elements that are kept behind each pass: those touched before that a later one reads."""
    found: list[tuple[set[Buffer], set[Buffer]]] = []
    for rows in passes:
        depths = {loop.depth for loop in (*columns, *rows)}
        read, written = (
            {b.root for e in loop_effects(rows[0]) for b, place in of(e) if place and all(map(place.reads, depths))}
            for of in (reads, writes)
        )
        found.append((read, written))
    behind = [
        set[Buffer]().union(*(r | w for r, w in found[:n])) & set[Buffer]().union(*(r for r, _ in found[n:]))
        for n in range(1, len(found))
    ]
    return [[buffer.dtype for buffer in kept] for kept in behind if kept]


def _shape(columns: int, rows: int, words: int, narrowest: int, grid: Grid, most: int) -> Shape | None:
    """The shape without blocks that wait, if it has threads enough, else that with the smallest blocks."""
    if rows < grid.warp or not columns:
        return None
    enough, found = grid.blocks * grid.threads // 4, list[tuple[bool, Shape]]()
    threads = grid.threads
    while threads <= max(grid.threads, grid.most_threads):
        width, elements = grid.warp, min(LONGEST, WORDS // words, words_for(threads) // words)
        while elements and width >= narrowest and width > 1:
            lines = threads // width
            shares, strips = -(-rows // (lines * elements)), -(-columns // width)
            is_enough = strips * shares * threads >= enough
            if not is_enough:
                shares = max(shares, min(most, rows // (FEWEST * lines), -(-enough // (strips * threads))))
            if shares <= most:
                found.append((shares > 1 or not is_enough, Shape(width, shares, threads)))
            width //= 2
        threads *= 2
    return min(found, key=lambda one: one[0])[1] if found else None


# ---- the kernel --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Strips(Piece):
    """Free loops, of which a block has a strip of neighbouring iterations: see Note [Blocks that share a strip]."""

    loops: tuple[NestLoop, ...] = ()
    columns: int = 1
    shares: int = 1
    values: Mapping[Dtype, Name] = field(default_factory=dict[Dtype, Name])
    marks: Name | None = None

    @property
    def together(self) -> int:
        return self.shares

    @property
    def folds(self) -> list[Effect]:
        return [effect for effect in loop_effects(self.loops[0]) if isinstance(effect, Reduce)]

    def published(self, dtype: Dtype) -> Published:
        assert self.marks is not None
        tiles = len(self.folds) * self.blocks
        return Published(self.values[dtype], self.marks, tiles, results=self.columns, columns=self.columns)

    @property
    def partial(self) -> Iterator[tuple[Name, int]]:
        """The arrays of what blocks publish, and of the marks, with their sizes."""
        for dtype, values in self.values.items():
            yield values, self.published(dtype).size
            if self.marks is not None:
                yield self.marks, self.published(dtype).size + 1

    @property
    def number(self) -> Expression:
        """The number of a thread's column, which may be beyond the last one."""
        lane, _ = lane_and_group(self.columns)
        return plus(times(STRIP, self.columns), lane)

    @property
    def there(self) -> Expression | None:
        """True if a thread has a column; None if all have."""
        total = size(self.loops)
        return self.number < total if total % self.columns else None

    @property
    def line(self) -> Expression:
        """The number of a thread among those with the same column, in all blocks of a strip."""
        _, line = lane_and_group(self.columns)
        return line if self.shares == 1 else times(SHARE, self.threads // self.columns) + line

    def write(self, builder: DeviceBuilder) -> None:
        ticket: Expression = apply(BLOCK)
        if self.shares > 1:
            ticket = self.published(next(iter(self.values))).draw(builder)
            builder.add(Assign((SHARE,), ticket % self.shares))
            ticket = ticket // self.shares
        builder.add(Assign((STRIP,), ticket))
        builder.strip, builder.row_width, builder.there = self, 1, self.there
        builder.group = self.shares * self.threads // self.columns
        number = apply(MIN, self.number, integer(size(self.loops) - 1)) if self.there else self.number
        with builder.inside(self.loops, number):
            builder.items(self.loops[-1].items)

    def join(self, builder: DeviceBuilder, effect: Folded) -> None:
        """Put the accumulators of each column together, in all threads that have it."""
        assert isinstance(effect, Reduce)
        builder.folds.join(effect, columns=self.columns)
        if self.shares > 1:
            published, (lane, _) = self.published(effect.init.dtype), lane_and_group(self.columns)
            first = plus(times(STRIP, self.shares), integer(self.folds.index(effect) * self.blocks))
            published.publish(builder, first + SHARE, lane, builder.folds.names[effect])
            published.fold(builder, effect, lane, integer(self.shares), partial(apply, ADD, first))

    def shared_out(self, statements: Sequence[Statement]) -> list[Statement]:
        is_first = apply(THREAD) < self.columns
        if self.shares > 1:
            is_first = is_first & SHARE.equals(0)
        if self.there is not None:
            is_first = is_first & self.there
        return by_groups(statements, is_first, each_has_a_row=False)
