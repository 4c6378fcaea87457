"""Loop nests on the threads of a device: which loops run on which threads.

A nest becomes pieces, kernels on a grid of blocks. How, follows from the roles of its loops (`lower/sharing.py`):

- Free loops are one index, whose values neighbouring threads take in turns, so that they touch neighbouring elements;
  each thread goes on with the index as many places further as there are threads (`OnThreads`). So do the free loops
  around a fold if that is short, or if results next to each other are of elements next to each other.
- A fold along rows has a block for each result, and several nests in a free loop have one for each of its iterations,
  as the passes of a softmax over a row (`OnBlocks`). Of short rows, a few threads of a warp have one (`OnGroups`).
- A fold with few results is divided: its parts are stored, and a second kernel folds them (`FoldParts`, `Whole`).
  A later fold of squared differences from its result reads the elements with it (`moments.py`).
- What must run in order is computed by a single thread; but updates of an array are sorted by the element that they
  change, and a thread has a part of them (`runs.py`).
- Updates in any order (`Target.adds_atomically`) are shared out among all threads, which add at once.
- A loop of control flow is run by the host, unless one block does what is inside as fast: then it is part of a kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain as joined
from itertools import count, takewhile
from math import isqrt, prod

from fnad.kernel.moments import PartsWithMoments, WholeSquares, moments, read_with_folds
from fnad.kernel.pieces import (
    Additions,
    ClearedMarks,
    FoldParts,
    OnBlocks,
    OnGroups,
    OnThreads,
    PartsOfRuns,
    Piece,
    RowFold,
    Tiles,
    Transposing,
    Whole,
    WholeRuns,
)
from fnad.kernel.registers import LONGEST, words_for, words_of
from fnad.kernel.running import CHUNKS, OfLoop
from fnad.kernel.statements import Name
from fnad.kernel.strips import Shape, Strips, shape_of
from fnad.lower.collapse import collapse
from fnad.lower.independence import chain, is_free
from fnad.lower.interchange import distributed, nest_of, ordered
from fnad.lower.loop_ir import (
    BufferStore,
    Control,
    Effect,
    Item,
    LibraryCall,
    NestLoop,
    Product,
    Reduce,
    Scan,
    Update,
    effects,
    touched,
)
from fnad.lower.nodes import Buffer, Nodes
from fnad.lower.sharing import (
    Roles,
    groups,
    loads_across,
    loop_effects,
    reads_along,
    roles,
    row_folds,
    row_width,
    size,
    vector_width,
)
from fnad.lower.target import Target
from fnad.scalar.operation import INDEX, Pointer

OF_A_THREAD = 8
"""The most iterations of a nest for each thread of a block that runs all of a loop around it."""

FEWEST = 8
"""The fewest iterations of a nest for which there are several threads."""

LEAST = 64
"""The fewest elements of a part of a fold that a thread computes."""

MOST_SHARED = 2**15
"""The most bytes of the tiles of a block."""

MOST_WORDS = 128
"""The most registers of a thread for sums over rows, which it has while it goes over a row."""


class Mapping:
    """Makes the pieces of one program."""

    def __init__(self, target: Target) -> None:
        assert target.grid is not None
        self.target, self.grid = target, target.grid
        self.numbers = count()

    def pieces(self, items: Sequence[Item], depth: int) -> list[Piece]:
        """The pieces of items within this many loops: those of nests, and of what one block does, in a row."""
        found: list[Piece] = []
        single: list[Item] = []
        squares = {folds: nest for nest, folds in read_with_folds(items).items()}
        later: dict[NestLoop, Piece] = {}
        for item in items:
            if isinstance(item, NestLoop) and width(item) > self.grid.threads:
                found += self.of_one_block(single, depth)
                single = []
                if item in later:
                    found.append(later[item])
                elif item in squares and (pieces := self.with_moments(item, squares[item], depth)):
                    *now, later[squares[item]] = pieces
                    found += now
                else:
                    found += self.of_nest(item, depth)
            else:
                single.append(item)
        return [*found, *self.of_one_block(single, depth)]

    def fits_a_block(self, item: Item) -> bool:
        """True if one block does all of an item, control flow with short nests inside."""
        is_called = any(isinstance(effect, Product | LibraryCall) for effect in effects(item))
        return not is_called and width(item) <= OF_A_THREAD * self.grid.threads

    def of_one_block(self, items: Sequence[Item], depth: int) -> Iterator[Piece]:
        """The pieces, mostly one, of short nests, of effects and of control flow in a row."""
        for few in self.of_few_arrays(items):
            widest = max(map(width, few))
            # one thread computes a few numbers
            yield Piece(few, depth, 1, self.threads_for(4 * widest) if widest >= FEWEST else 1)

    def of_few_arrays(self, items: Sequence[Item]) -> Iterator[list[Item]]:
        """The items in groups, each of which has no more arrays than a kernel takes."""
        group, arrays = list[Item](), set[Buffer]()
        for item in items:
            own = {*touched(item)}
            if group and len(arrays | own) > self.grid.most_arrays:
                yield group
                group, arrays = [], set()
            group.append(item)
            arrays |= own
        if group:
            yield group

    def of_nest(self, nest: NestLoop, depth: int) -> Iterator[Piece]:
        """The pieces of a nest."""
        loops = chain(nest)
        items = loops[-1].items
        effects = [item for item in items if isinstance(item, Effect)]
        if len(effects) < len(items):
            yield from self.of_several(loops, depth)
        else:
            for part in distributed(loops, groups(effects)):
                yield from self.of_effects(part, depth)

    def of_several(self, loops: Sequence[NestLoop], depth: int) -> Iterator[Piece]:
        """The pieces of loops around several nests: one, if there are rows enough, else a nest becomes several."""
        items = loops[-1].items
        free = tuple(takewhile(lambda loop: is_free(loop, items), loops))
        inner = max(size(chain(item)) for item in items if isinstance(item, NestLoop))
        nest = nest_of(loops, items)
        if (shape := shape_of(nest, self.grid)) is not None:
            yield from self.in_strips(nest, tuple(loops), shape, depth)
        elif free and inner < self.grid.warp:
            yield self.on_threads(nest, free, depth)
        elif free and size(free) >= self.few(inner) and not any(map(self.is_across, items)):
            yield self.on_blocks(nest, free, inner, depth, self.threads_for_row(inner, items))
        elif not free and (pieces := self.of_rows(loops, inner, depth)):
            yield from pieces
        elif len(items) > 1:
            for part in distributed(loops, runs(loops[0], items)):
                yield from self.of_nest(part, depth)
        else:
            yield Piece([nest], depth, 1, self.grid.threads)

    def of_rows(self, loops: Sequence[NestLoop], inner: int, depth: int) -> list[Piece]:
        """The pieces of a loop over rows that are also folded: one with the blocks' parts, then those of the folds."""
        (loop, *others), items = loops, loops[0].items
        effects = row_folds(loop)
        if others or not effects or not self.grid.warp <= inner or loop.extent < self.few(inner):
            return []
        nests = [item for item in items if isinstance(item, NestLoop)]
        width = row_width(loop)
        together: dict[tuple[NestLoop | None, frozenset[int]], list[Reduce]] = defaultdict(list)
        for effect in effects:
            inside = next((nest for nest in nests if effect in nest.items), None)
            if effect not in items and inside is None:
                return []
            together[inside, effect.depths].append(effect)
        columns = {
            inside: group for (inside, depths), group in together.items() if inside and inside.depth not in depths
        }
        threads = self.threads_for(inner) if columns else self.threads_for_row(inner, items)
        elements = {inside: self.elements(inside, width, threads) for inside in columns}
        if not all(map(is_row, columns)) or max(elements.values(), default=0) > LONGEST:
            return []
        words = sum(elements[inside] * 2 * words_of(e.dtype) for inside, group in columns.items() for e in group)
        if words > MOST_WORDS:
            return []
        rounds = Fraction(4, max(4, *elements.values())) if elements else self.grid.rounds
        blocks = min(loop.extent, max(1, int(rounds * self.grid.blocks) * self.grid.threads // threads))
        folds: list[RowFold] = []
        wholes: list[Piece] = []
        for (inside, depths), group in together.items():
            nest = nest_of([loop, inside] if inside else [loop], group)
            found = roles(chain(nest))
            nest = ordered(chain(nest), [*found.free, *found.folded])
            found = roles(chain(nest))
            arrays = self.arrays(group)
            is_column = inside is not None and inside.depth not in depths
            folds += [RowFold(e, inside if is_column else None, own) for e, own in zip(group, arrays, strict=True)]
            wholes.append(self.whole(nest, found, depth, blocks, arrays))
        return [OnBlocks([nest_of([loop], items)], depth, blocks, threads, (loop,), width, tuple(folds)), *wholes]

    def is_across(self, item: Item) -> bool:
        """True for long folds whose neighbouring results read neighbouring elements: a block would read strides."""
        if not isinstance(item, NestLoop) or not all(isinstance(inner, Effect) for inner in chain(item)[-1].items):
            return False
        found = roles(chain(item))
        is_long = found.length >= max(found.results, self.grid.warp)
        return bool(found.free and found.folded) and is_long and not reads_along(found.folded[-1], found.free)

    @staticmethod
    def elements(loop: NestLoop, width: int, threads: int) -> int:
        """The elements of a row that a thread has."""
        lanes = threads * (width if loop.extent % width == 0 else 1)
        return -(-loop.extent // lanes) * lanes // threads

    def few(self, length: int) -> int:
        """The number of rows of this length that are too few for a block each: more threads would do them sooner."""
        return min(self.grid.blocks // 8, -(-length // (4 * self.grid.threads)))

    def of_effects(self, nest: NestLoop, depth: int) -> Iterator[Piece]:
        """The pieces of loops that follow one another around effects that run over them in one way."""
        found = roles(chain(nest))
        if may_be_added_at_once(nest) and found.results < self.grid.blocks * self.grid.threads:
            loops = tuple(chain(as_few_loops(nest)))
            yield Additions([loops[0]], depth, *self.shape(size(loops)), loops)
            return
        nest, found = self.canonical(nest)
        free = found.free
        if found.folded and not found.ordered:
            yield from self.of_folds(nest, found, depth)
        elif is_in_runs(nest, found):
            yield from self.of_runs(nest, found, depth)
        elif self.runs_in_tiles(nest, found):
            yield from self.in_tiles(nest, found, depth)
        elif self.runs_in_parts(nest, found):
            yield self.on_blocks(nest, free, found.ordered[0].extent, depth)
        elif free:
            yield self.transposing(free, depth) or self.on_threads(nest, free, depth)
        else:
            yield Piece([nest], depth)

    def transposing(self, free: tuple[NestLoop, ...], depth: int) -> Piece | None:
        """The piece of loops around stores that read elements across, of which there are tiles; else None."""
        side, last = self.grid.warp, free[-1]
        others = [loop for loop in free[:-1] if loop.extent >= side]
        if last.extent < side or not all(isinstance(item, BufferStore) for item in last.items):
            return None
        for loop in others:
            loops = tuple(chain(ordered(free, [*(x for x in free[:-1] if x is not loop), loop, last])))
            across = tuple(loads_across(*loops[-2:]))
            if across and sum(load.dtype.itemsize for load in across) * side * (side + 1) <= MOST_SHARED:
                tiles = size(loops[:-2]) * prod(-(-loop.extent // side) for loop in loops[-2:])
                blocks = min(tiles, self.grid.rounds * self.grid.blocks)
                return Transposing([loops[0]], depth, blocks, self.grid.threads, loops, across)
        return None

    def of_runs(self, nest: NestLoop, found: Roles, depth: int) -> Iterator[Piece]:
        """The two pieces of updates in runs."""
        (effect,), (loop,) = loop_effects(nest), found.ordered
        most = self.grid.blocks * self.grid.threads // found.results
        length = max(self.grid.warp, isqrt(loop.extent) // 4, loop.extent // max(1, most))
        parts = -(-loop.extent // length)
        arrays = tuple(Name(f"fold{next(self.numbers)}", Pointer(effect.buffer.dtype)) for _ in range(2))
        divided = found.free, found.ordered, parts, arrays
        yield PartsOfRuns([nest], depth, *self.shape(parts * found.results), *divided)
        yield WholeRuns([nest], depth, *self.shape(parts * found.results), *divided)

    def runs_in_parts(self, nest: NestLoop, found: Roles) -> bool:
        """True if a running fold is so long that a block does it sooner than a thread: of few, or along rows."""
        (effect, *_) = loop_effects(nest)
        is_running = isinstance(effect, Scan) and len(found.ordered) == 1
        is_long = is_running and found.ordered[0].extent >= 4 * self.grid.warp
        return is_long and (found.results <= self.grid.blocks or reads_along(found.ordered[0], found.free))

    def runs_in_tiles(self, nest: NestLoop, found: Roles) -> bool:
        """True if one block for a running fold would leave most of the device idle for long."""
        is_long = self.runs_in_parts(nest, found) and found.ordered[0].extent >= 4 * self.tile(found)
        return is_long and 4 * found.results <= self.grid.blocks

    def tile(self, found: Roles) -> int:
        """The elements of a tile of a running fold."""
        return CHUNKS * OfLoop(found.ordered[0]).width * self.grid.threads

    def in_tiles(self, nest: NestLoop, found: Roles, depth: int) -> Iterator[Piece]:
        """The two pieces of a running fold in tiles."""
        (effect,), threads = loop_effects(nest), self.grid.threads
        tiles = -(-found.ordered[0].extent // self.tile(found))
        arrays = tuple(Name(f"fold{next(self.numbers)}", Pointer(dtype)) for dtype in (effect.buffer.dtype, INDEX))
        divided = found.free, found.ordered, tiles, arrays, False
        piece = Tiles([nest], depth, tiles * found.results, threads, *divided)
        yield self.cleared(nest, arrays[-1], piece.published.size + 1, depth)
        yield piece

    def cleared(self, nest: NestLoop, marks: Name, count: int, depth: int) -> Piece:
        """The piece that clears marks and tickets for a nest."""
        return ClearedMarks([nest], depth, *self.shape(count), marks, count)

    def in_strips(self, nest: NestLoop, loops: tuple[NestLoop, ...], shape: Shape, depth: int) -> Iterator[Piece]:
        """The piece of columns that blocks keep, behind one that clears marks if several share them."""
        blocks = -(-size(loops) // shape.columns) * shape.shares
        folds = self.arrays(loop_effects(nest)) if shape.shares > 1 else ()
        values = {fold.dtype: fold for fold in folds}
        marks = Name(f"fold{next(self.numbers)}", Pointer(INDEX)) if folds else None
        piece = Strips([nest], depth, blocks, shape.threads, loops, shape.columns, shape.shares, values, marks)
        if marks is not None:
            yield self.cleared(nest, marks, max(count for array, count in piece.partial if array is marks), depth)
        yield piece

    def of_folds(self, nest: NestLoop, found: Roles, depth: int) -> Iterator[Piece]:
        """The pieces of folds within free loops."""
        free, folded = found.free, found.folded
        by_threads, parts = self.parts(found)
        if parts > 1:
            yield from self.divided(nest, free, folded, parts, depth, by_threads=by_threads)
        elif by_threads:
            yield self.on_threads(nest, free, depth)
        else:
            yield self.on_blocks(nest, free, found.length, depth)

    def parts(self, found: Roles) -> tuple[bool, int]:
        """True if threads have the parts of a fold, not blocks, and the number of parts."""
        if found.free and (found.length < self.grid.warp or not reads_along(found.folded[-1], found.free)):
            return True, min(self.grid.blocks * self.grid.threads // found.results, found.length // LEAST)
        longest = -(-found.length // (4 * self.grid.threads))
        return False, min(self.grid.rounds * self.grid.blocks // found.results, longest)

    def with_moments(self, nest: NestLoop, squares: NestLoop, depth: int) -> list[Piece]:
        """The pieces of folds with the moments for a later fold of squared differences, and the last one of that.

        There are none if the parts of such folds are not those of threads.
        """
        loops = chain(nest)
        together = nest_of(loops, [*loops[-1].items, *moments(squares)])
        (together, found), (nest, of_nest), (squares, of_squares) = map(self.canonical, (together, nest, squares))
        by_threads, parts = self.parts(found)
        if not by_threads or parts < 2 or len(found.folded) > 1 or found.ordered:
            return []
        arrays = (*self.arrays(loop_effects(together)), *self.arrays(loop_effects(squares)))
        divided = found.free, found.folded, parts, arrays, True
        return [
            PartsWithMoments([together], depth, *self.shape(parts * found.results), *divided),
            self.whole(nest, of_nest, depth, parts, arrays[:-3], by_threads=True),
            self.whole(squares, of_squares, depth, parts, arrays[-3:], by_threads=True, make=WholeSquares),
        ]

    @staticmethod
    def canonical(nest: NestLoop) -> tuple[NestLoop, Roles]:
        """A nest with its free loops outside, as few as possible, and the roles of its loops."""
        found = roles(chain(nest))
        nest = as_few_loops(ordered(chain(nest), [*found.free, *found.folded, *found.ordered]))
        return nest, roles(chain(nest))

    def divided(
        self, nest: NestLoop, free: tuple[NestLoop, ...], folded: tuple[NestLoop, ...], parts: int, depth: int,
        *, by_threads: bool,
    ) -> Iterator[Piece]:  # fmt: skip
        """The two pieces of a fold in parts."""
        arrays, results = self.arrays(loop_effects(nest)), size(free)
        divided = (free, folded, parts, arrays, by_threads)
        if by_threads:
            yield FoldParts([nest], depth, *self.shape(parts * results), *divided)
        else:
            width = self.width_for(folded, parts * self.grid.threads)
            yield FoldParts([nest], depth, parts * results, self.grid.threads, *divided, width)
        yield self.whole(nest, roles(chain(nest)), depth, parts, arrays, by_threads=by_threads)

    def whole(
        self, nest: NestLoop, found: Roles, depth: int, parts: int, arrays: tuple[Name, ...],
        *, by_threads: bool | None = None, make: type[Whole] = Whole,
    ) -> Whole:  # fmt: skip
        """The piece that folds parts: by threads where there are several results side by side."""
        divided = found.free, found.folded, parts, arrays, bool(found.free) if by_threads is None else by_threads
        if not divided[-1]:
            return make([nest], depth, found.results, self.threads_for(parts), *divided)
        if parts <= self.grid.warp:
            return make([nest], depth, *self.shape(found.results), *divided)
        columns = self.grid.warp // 4  # a sector of memory in single precision
        threads = max(self.grid.threads, self.grid.most_threads)
        return make([nest], depth, -(-found.results // columns), threads, *divided, columns=columns)

    def arrays(self, folds: Sequence[Effect]) -> tuple[Name, ...]:
        """New arrays for the parts of folds, in their order."""
        reduces = (fold for fold in folds if isinstance(fold, Reduce))
        return tuple(Name(f"fold{next(self.numbers)}", Pointer(fold.init.dtype)) for fold in reduces)

    def on_threads(self, nest: NestLoop, free: tuple[NestLoop, ...], depth: int) -> Piece:
        width = self.width_for(free, self.grid.blocks * self.grid.threads)
        return OnThreads([nest], depth, *self.shape(-(-size(free) // width)), free, width)

    def width_for(self, loops: Sequence[NestLoop], threads: int) -> int:
        """The number of neighbouring iterations that each of so many threads takes at once, if all have work then."""
        width = vector_width(loops)
        while len(loops) > 1 and loops[-1].extent % width:
            width //= 2
        return width if size(loops) >= width * threads else 1

    def on_blocks(self, nest: NestLoop, free: tuple[NestLoop, ...], length: int, depth: int, threads: int = 0) -> Piece:
        """A block for each iteration of free loops, with threads for work of this length; one if there are none."""
        threads = threads or self.threads_for(length)
        if not free:
            return Piece([nest], depth, 1, threads)
        if threads == self.grid.warp and size(free) >= self.grid.blocks:
            group = 2 ** max(0, (-(-length // 4) - 1).bit_length())
            if all(self.is_for_group(item, group) for item in free[-1].items):
                blocks, threads = self.shape(size(free) * group)
                return OnGroups([nest], depth, blocks, self.grid.threads, free, row_width(free[-1]), group=group)
        blocks = min(size(free), max(1, self.grid.rounds * self.grid.blocks * self.grid.threads // threads))
        return OnBlocks([nest], depth, blocks, threads, free, row_width(free[-1]))

    @staticmethod
    def is_for_group(item: Item, group: int) -> bool:
        """True if a group of threads can do an item of a row by itself, with all of the row in registers."""
        if isinstance(item, BufferStore):
            return True
        if not isinstance(item, NestLoop) or item.extent > LONGEST * group:
            return False
        return all(isinstance(effect, BufferStore | Reduce) for effect in item.items) and not roles([item]).ordered

    def shape(self, number: int) -> tuple[int, int]:
        """The blocks and the threads of each for so many independent values: whole warps."""
        threads = min(self.grid.threads, -(-number // self.grid.warp) * self.grid.warp)
        return min(self.grid.rounds * self.grid.blocks, -(-number // threads)), threads

    def threads_for(self, length: int) -> int:
        """The threads of a block for a fold of this length: a power of two, of which each has a few elements."""
        wanted = 2 ** max(0, (-(-length // 4) - 1).bit_length())
        return max(self.grid.warp, min(self.grid.threads, wanted))

    def threads_for_row(self, length: int, items: Sequence[Item]) -> int:
        """The threads of a block for passes over rows of this length: if possible, so many that they keep a row."""
        threads = few = self.threads_for(length)
        while threads < self.grid.most_threads and length > LONGEST * threads:
            threads *= 2
        words = max(words_of(e.node.dtype) for item in items for e in effects(item) if isinstance(e, Effect))
        elements = -(-length // threads)
        return threads if elements <= LONGEST and elements * words <= words_for(threads) else few


def is_row(loop: NestLoop) -> bool:
    """True if the threads of a block have the same elements in all that a loop contains."""
    found = [item for item in loop.items if isinstance(item, Effect)]
    alike = [roles([NestLoop(loop.depth, loop.extent, list[Item](group))]) for group in groups(found, loop.depth)]
    return len(found) == len(loop.items) and not any(each.ordered for each in alike)


def as_few_loops(nest: NestLoop) -> NestLoop:
    """The nest with loops collapsed, as they may be in another order or with fewer effects."""
    collapsed = collapse(nest, Nodes())
    assert isinstance(collapsed, NestLoop)
    return collapsed


def is_in_runs(nest: NestLoop, found: Roles) -> bool:
    """True if a nest has updates in runs, and one element of each update for each iteration of the free loops."""
    (effect, *_) = loop_effects(nest)
    return isinstance(effect, Update) and effect.in_runs and len(found.ordered) == 1


def may_be_added_at_once(nest: NestLoop) -> bool:
    """True if all threads may share out the updates of a nest."""
    (effect, *_) = loop_effects(nest)
    return isinstance(effect, Update) and effect.in_any_order


def runs(loop: NestLoop, items: Sequence[Item]) -> list[list[Item]]:
    """The items of a loop, in order, in runs for which it is free; each by itself if that is one run."""
    found: list[list[Item]] = []
    for item in items:
        if found and is_free(loop, [*found[-1], item]):
            found[-1].append(item)
        else:
            found.append([item])
    return found if len(found) > 1 else [[item] for item in items]


def width(item: Item) -> int:
    """The most iterations of a nest in an item."""
    if isinstance(item, NestLoop):
        return item.extent * max(map(width, item.items), default=1)
    bodies = joined(*item.bodies) if isinstance(item, Control) else ()
    return max(map(width, bodies), default=1)
