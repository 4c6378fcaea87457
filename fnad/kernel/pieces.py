"""The pieces of nests, each a kernel: what the threads of a grid of blocks do. `grid.py` makes them of nests."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from fnad.kernel import accumulators
from fnad.kernel import statements as code
from fnad.kernel.accumulators import Accumulator, Folded
from fnad.kernel.barriers import by_groups, by_threads
from fnad.kernel.device import BLOCK, THREAD
from fnad.kernel.device_build import DeviceBuilder, part_of, row_of_group
from fnad.kernel.forward import forward
from fnad.kernel.registers import kept, own_array
from fnad.kernel.running import OfLoop, Published, lane_and_group, run_over_tile, times
from fnad.kernel.runs import Runs
from fnad.kernel.writer import block_of, counter, local, plus
from fnad.lower.loop_ir import Item, NestLoop, Reduce, Scan, Update
from fnad.lower.nodes import BufferLoad
from fnad.lower.sharing import loop_effects, size
from fnad.lower.target import Target
from fnad.scalar.operation import INDEX


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Items that one kernel computes, within `depth` loops that the host runs: here those of one block."""

    items: Sequence[Item]
    depth: int
    blocks: int = 1
    threads: int = 1

    @property
    def together(self) -> int:
        """The number of blocks that wait for one another."""
        return 1

    def write(self, builder: DeviceBuilder) -> None:
        """Write its statements."""
        builder.items(self.items)

    def shared_out(self, statements: Sequence[code.Statement]) -> list[code.Statement]:
        """The statements with barriers, and with stores by one thread of what all compute."""
        return by_threads(statements) if self.threads > 1 else list(statements)


@dataclass(frozen=True, slots=True, eq=False)
class OnThreads(Piece):
    """Free loops, whose iterations all threads of the grid take in turns, `width` at a time."""

    loops: tuple[NestLoop, ...] = ()
    width: int = 1

    def write(self, builder: DeviceBuilder) -> None:
        with builder.own_iterations():
            builder.turns(self.loops, builder.number_in_grid, self.blocks * self.threads, self.width)


@dataclass(frozen=True, slots=True, eq=False)
class Additions(OnThreads):
    """Loops around an update in any order, which several threads may make to one element."""

    def write(self, builder: DeviceBuilder) -> None:
        builder.adds_atomically = True
        OnThreads.write(self, builder)


@dataclass(frozen=True, slots=True, eq=False)
class Transposing(Piece):
    """Free loops around stores that read some elements across: tile by tile, by way of memory that a block shares.

    The stores go along the last loop, `across` are the loads that go along the loop before it.
    """

    loops: tuple[NestLoop, ...] = ()
    across: tuple[BufferLoad, ...] = ()

    def write(self, builder: DeviceBuilder) -> None:
        side, number = builder.warp, code.Name("t", INDEX)
        *others, rows, columns = self.loops
        tiles = [*others, *(replace(loop, extent=-(-loop.extent // side)) for loop in (rows, columns))]
        arrays = {load: builder.new_shared(load.dtype, side * (side + 1)) for load in self.across}
        own = {load: own_array(next(builder.own_numbers), load.dtype) for load in self.across}
        builder.made += [local(array, side * side // self.threads) for array in own.values()]
        with builder.loop_over(number, size(tiles), code.apply(BLOCK), self.blocks), ExitStack() as stack:
            places = [part_of(number, tiles, n) for n in range(len(tiles))]
            for loop, place in zip(others, places, strict=False):
                stack.enter_context(builder.inside([loop], place))
            first = [builder.assign("v", place * side) for place in places[-2:]]
            turn, line, lane = code.Name("n0", INDEX), block_of(0), code.apply(THREAD) % side
            with self.sweep(builder, first, lane, line):  # all loads come first
                for load in self.across:
                    builder.add(code.Store(own[load], turn, builder.value(load)))
            with self.sweep(builder, first, lane, line):
                for load, array in arrays.items():
                    value = builder.assign("v", code.Load(own[load], turn))
                    builder.add(code.Store(array, plus(times(line, side + 1), lane), value))
            with self.sweep(builder, first, line, lane):
                for load, array in arrays.items():
                    place = plus(times(lane, side + 1), line)
                    builder.here.names[load] = builder.assign("v", code.Load(array, place))
                builder.items(columns.items)

    @contextmanager
    def sweep(
        self, builder: DeviceBuilder, first: Sequence[code.Expression], row: code.Expression, column: code.Expression
    ) -> Generator[None, None, None]:
        """Write what is done for each element of a tile: of a row if the column is the number of a lane."""
        side, loops = builder.warp, self.loops[-2:]
        places = [start + place for start, place in zip(first, (row, column), strict=True)]
        are_inside = [p < x.extent for p, x in zip(places, loops, strict=True) if x.extent % side]
        turn, lines = code.Name("n0", INDEX), self.threads // side
        with builder.own_iterations(), builder.loop_over(turn, side // lines, kind=code.LoopKind.ELEMENTS):
            builder.add(code.Assign((block_of(0),), times(turn, lines) + code.apply(THREAD) // side))
            with (
                builder.where(*are_inside), builder.inside(loops[:1], places[0]), builder.inside(loops[1:], places[1]),
            ):  # fmt: skip
                yield


@dataclass(frozen=True, slots=True, eq=False)
class RowFold:
    """A fold over rows, for each element of a row if there is an `inner` loop; a block's part is kept in an array."""

    effect: Reduce
    inner: NestLoop | None
    array: code.Name


@dataclass(frozen=True, slots=True, eq=False)
class OnBlocks(Piece):
    """Free loops, whose iterations the blocks take in turns; what is inside, the threads of a block share.

    Such an iteration is a row. A loop may also be one of folds, whose parts the blocks have.
    """

    loops: tuple[NestLoop, ...] = ()
    width: int = 1
    folds: tuple[RowFold, ...] = ()

    @property
    def partial(self) -> Iterator[tuple[code.Name, int]]:
        """The arrays of the blocks' parts, with their sizes."""
        for fold in self.folds:
            yield fold.array, self.blocks * (fold.inner.extent if fold.inner else 1)

    def write(self, builder: DeviceBuilder) -> None:
        builder.row_width = self.width
        columns = [(fold.effect, fold.inner, fold.array) for fold in self.folds if fold.inner is not None]
        single: dict[Folded, code.Name] = {f.effect: f.array for f in self.folds if f.inner is None}
        is_long = self.loops[0].extent > self.blocks * builder.target.costs.sum_block
        for effect, inner, _ in columns:
            builder.folds.open_column(effect, inner, compensated=is_long and accumulators.may_be_compensated(effect))
        opened = [fold for fold in builder.folds.from_loop(self.loops[0], self.blocks) if fold.effect in single]
        builder.folds.open_all(opened)
        self.rows(builder)
        for found in map(builder.folds.settled, opened):
            if found.effect in builder.folds.scattered:
                builder.folds.join(found.effect)
            builder.add(code.Store(single[found.effect], code.apply(BLOCK), builder.folds.names[found.effect]))
        for column in columns:
            builder.folds.close_column(*column)

    def rows(self, builder: DeviceBuilder) -> None:
        if self.blocks < size(self.loops) or self.folds:
            builder.turns(self.loops, code.apply(BLOCK), self.blocks)
            return
        with builder.inside(self.loops, code.apply(BLOCK)):
            builder.items(self.loops[-1].items)


@dataclass(frozen=True, slots=True, eq=False)
class OnGroups(OnBlocks):
    """Free loops with short rows, each for a `group` of the threads of a warp."""

    group: int = 1

    @property
    def there(self) -> code.Expression | None:
        """True if a thread has a row; None if all have."""
        row, total = row_of_group(self.loops[0].depth, self.group), size(self.loops)
        return row < total if total % (self.threads // self.group) else None

    def rows(self, builder: DeviceBuilder) -> None:
        builder.rows_of_groups(self.loops, self.blocks, self.group, self.there)

    def shared_out(self, statements: Sequence[code.Statement]) -> list[code.Statement]:
        is_first = (code.apply(THREAD) % self.group).equals(0)
        if self.there is None:
            return by_groups(statements, is_first, each_has_a_row=True)
        return by_groups(statements, is_first & self.there, each_has_a_row=False)


@dataclass(frozen=True, slots=True, eq=False)
class Divided(Piece):
    """Folds within free loops that are computed in parts, each kept in an array: of each result part after part.

    A part is a thread's, or a block's.
    """

    free: tuple[NestLoop, ...] = ()
    folded: tuple[NestLoop, ...] = ()
    parts: int = 1
    arrays: tuple[code.Name, ...] = ()
    by_threads: bool = True
    width: int = 1

    @property
    def results(self) -> int:
        return size(self.free)

    def split(self, builder: DeviceBuilder, number: code.Expression) -> tuple[code.Expression, code.Expression]:
        """The part and the result of a number: the parts of the same number for all results are neighbours."""
        if self.results == 1:
            return number, code.integer(0)
        part = builder.assign("v", number // self.results)
        return part, builder.assign("v", number % self.results)


@dataclass(frozen=True, slots=True, eq=False)
class FoldParts(Divided):
    """The parts of folds."""

    @property
    def partial(self) -> Iterator[tuple[code.Name, int]]:
        """The arrays of the parts, with their sizes."""
        return ((array, self.parts * self.results) for array in self.arrays)

    def write(self, builder: DeviceBuilder) -> None:
        if not self.by_threads:
            self.part(builder, code.apply(BLOCK))
            return
        with builder.own_iterations(), builder.in_grid(self.parts * self.results) as number:
            self.part(builder, number)

    def part(self, builder: DeviceBuilder, number: code.Expression) -> None:
        """Write one part."""
        part, result = self.split(builder, number)
        with builder.inside(self.free, result):
            self.prepare(builder, part, number)
            threads = 1 if self.by_threads else self.threads
            folds = builder.folds.from_loop(self.folded[0], self.parts * threads)
            builder.folds.open_all(folds)
            if self.by_threads:
                builder.turns(self.folded, part, self.parts)
            else:
                first = part * self.threads + code.apply(THREAD)
                with builder.own_iterations():
                    builder.turns(self.folded, first, self.parts * self.threads, self.width)
            for fold, array in zip(map(builder.folds.settled, folds), self.arrays, strict=False):
                if not self.by_threads:
                    builder.folds.join(fold.effect)
                builder.add(code.Store(array, number, builder.folds.names[fold.effect]))

    def prepare(self, builder: DeviceBuilder, part: code.Expression, number: code.Expression) -> None:
        """Write what comes before the folds of a part."""


@dataclass(frozen=True, slots=True, eq=False)
class Whole(Divided):
    """The results of folds from their parts, which are folded in order.

    A block may have a few neighbouring results, and several threads for each.
    """

    columns: int = 0

    def write(self, builder: DeviceBuilder) -> None:
        if not self.by_threads:
            self.result(builder, code.apply(BLOCK))
            return
        if self.columns:
            self.side_by_side(builder)
            return
        with builder.in_grid(self.results) as number:
            self.result(builder, number)

    def result(self, builder: DeviceBuilder, number: code.Expression) -> None:
        """Write the folds of one result: a block has all of its threads at work on it."""
        with builder.inside(self.free, number):
            folds = self.fold(
                builder, number, *((code.integer(0), 1) if self.by_threads else (code.apply(THREAD), self.threads))
            )
            for fold in folds:
                if not self.by_threads:
                    builder.folds.join(fold.effect)
                builder.folds.close(fold)

    def side_by_side(self, builder: DeviceBuilder) -> None:
        """Write the folds of neighbouring results: the threads of each have every so many parts of it."""
        lane, line = lane_and_group(self.columns)
        number = code.apply(BLOCK) * self.columns + lane
        is_result = number < self.results
        is_first = code.apply(THREAD) < self.columns
        with builder.inside(self.free, number):
            for fold in self.fold(builder, number, line, self.threads // self.columns, is_result):
                builder.folds.join(fold.effect, columns=self.columns)
                with builder.where(is_first & is_result):
                    builder.folds.close(fold)

    def fold(
        self,
        builder: DeviceBuilder,
        result: code.Expression,
        first: code.Expression,
        step: int,
        *conditions: code.Expression,
    ) -> list[Accumulator]:
        """Write the folds of every so many parts from the first one on, where there is a result."""
        part, is_long = code.Name("q", INDEX), self.parts > step * builder.target.costs.sum_block
        folds = builder.folds.from_loop(self.folded[0])
        folds = folds if is_long else [replace(fold, closing=0) for fold in folds]
        builder.folds.open_all(folds)
        with builder.where(*conditions), builder.loop_over(part, self.parts, first, step):
            place = builder.assign("v", part * self.results + result)
            for number, fold in enumerate(folds):
                builder.folds.fold_in(fold, builder.assign("v", self.term(builder, number, fold.effect, part, place)))
        return [builder.folds.settled(fold) for fold in folds]

    def term(
        self, builder: DeviceBuilder, number: int, fold: Folded, part: code.Expression, place: code.Expression
    ) -> code.Expression:  # fmt: skip
        """A part of one of the folds."""
        return code.Load(self.arrays[number], place)


@dataclass(frozen=True, slots=True, eq=False)
class PartsOfRuns(FoldParts):
    """The parts of runs of updates, of which a thread has one."""

    def part(self, builder: DeviceBuilder, number: code.Expression) -> None:
        part, result = self.split(builder, number)
        with builder.inside(self.free, result):
            self.runs.fold_part(builder, part, number)

    @property
    def runs(self) -> Runs:
        (loop,), (begun, is_open) = self.folded, self.arrays
        (effect,) = loop_effects(loop)
        assert isinstance(effect, Update)
        return Runs(loop, effect, -(-loop.extent // self.parts), begun, is_open)


@dataclass(frozen=True, slots=True, eq=False)
class WholeRuns(PartsOfRuns):
    """The runs that go on in other parts than that in which they begin."""

    def part(self, builder: DeviceBuilder, number: code.Expression) -> None:
        part, result = self.split(builder, number)
        with builder.inside(self.free, result):
            self.runs.finish(builder, part, number, self.results)


@dataclass(frozen=True, slots=True, eq=False)
class Tiles(FoldParts):
    """A running fold in tiles, each of a block: see Note [Tiles in one pass]. The arrays are of values and marks."""

    @property
    def published(self) -> Published:
        values, marks = self.arrays
        return Published(values, marks, self.parts, self.results)

    @property
    def partial(self) -> Iterator[tuple[code.Name, int]]:
        values, marks = self.arrays
        return iter([(values, self.published.size), (marks, self.published.size + 1)])

    def write(self, builder: DeviceBuilder) -> None:
        tile, result = self.split(builder, self.published.draw(builder))
        (loop,) = self.folded
        (effect,) = loop_effects(loop)
        assert isinstance(effect, Scan)
        with builder.inside(self.free, result):
            run_over_tile(builder, effect, OfLoop(loop), self.published, tile, result)


@dataclass(frozen=True, slots=True, eq=False)
class ClearedMarks(Piece):
    """Marks and tickets before blocks wait for others."""

    marks: code.Name = code.STATUS
    count: int = 0

    def write(self, builder: DeviceBuilder) -> None:
        with builder.in_grid(self.count) as number:
            builder.add(code.Store(self.marks, number, code.integer(0)))


def statements_of_piece(piece: Piece, target: Target) -> list[code.Statement]:
    """The statements of a piece, with loads of stored values replaced."""
    builder = DeviceBuilder(piece.depth, piece.blocks, piece.threads, target)
    builder.add(*(code.Assign((counter(d),), code.Load(code.COUNTERS, code.integer(d))) for d in range(piece.depth)))
    piece.write(builder)
    return kept(forward([*builder.made, *builder.finished()]), piece.threads)
