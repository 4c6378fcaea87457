"""From loop nests to the statements of device kernels, which all threads of a block run.

A loop is shared out if each thread runs iterations of its own. What is outside of such loops is the same for all
threads of a block, and `barriers.py` orders its stores. `device_folds.py` has the folds over such loops.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import count
from math import gcd
from typing import TYPE_CHECKING

from fnad.kernel.accumulators import Accumulator
from fnad.kernel.build import KernelBuilder
from fnad.kernel.device import ATOMIC_ADD, BLOCK, SHARED_ARRAYS, THREAD
from fnad.kernel.device_folds import DeviceFolds
from fnad.kernel.registers import LONGEST
from fnad.kernel.running import OfLoop, run_over, times
from fnad.kernel.statements import Assign, Evaluate, Expression, For, If, LoopKind, Name, Statement, apply, integer
from fnad.kernel.writer import Block, block_of, counter
from fnad.lower.independence import chain, is_free
from fnad.lower.index import Counter
from fnad.lower.interchange import nest_of, ordered
from fnad.lower.loop_ir import Effect, NestLoop, Reduce, Scan, Update, reads, writes
from fnad.lower.sharing import groups, loop_effects, roles, size
from fnad.lower.target import Target
from fnad.scalar.operation import INDEX, Dtype, Kind
from fnad.scalar.operations import AND, MIN, OR

if TYPE_CHECKING:
    from fnad.kernel.strips import Strips

MOST_SHARED = 2**14
"""The bytes from which on a block uses the arrays that it shares again: it may have 48 KB, others need room, too."""

SECTOR = 32
"""The bytes of memory that are read and written together."""

AT_ONCE = 4
"""The most arrays of one kind that are in use at the same time."""


class DeviceBuilder(KernelBuilder):
    """Writes the statements of one kernel.

    Where blocks have rows, a thread takes `row_width` neighbouring elements at once; `element` is the number of one
    among those that it has of a row. A row has a `group` of threads: all of a block, or some of a warp. What is `made`
    first are the arrays that a block shares.
    """

    folds: DeviceFolds

    def __init__(self, depth: int, blocks: int, threads: int, target: Target) -> None:
        super().__init__(depth, (), {}, target)
        assert target.grid is not None
        self.number_of_blocks, self.threads = blocks, threads
        self.warp = min(target.grid.warp, threads)
        self.group = threads
        self.is_shared_out = threads == 1
        self.row_width = 0
        self.there: Expression | None = None
        self.row_loop: NestLoop | None = None
        self.strip: Strips | None = None
        self.own_numbers = count()
        self.element: Expression | None = None
        self.adds_atomically = False
        self.shared_arrays: defaultdict[tuple[Kind, int], deque[Name]] = defaultdict(deque)
        self.shared_bytes = 0
        self.made: list[Statement] = []

    def strategy(self) -> DeviceFolds:
        return DeviceFolds(self)

    # ---- loops ---------------------------------------------------------------------------------------------------

    @property
    def number_in_grid(self) -> Expression:
        """The number of a thread in the grid."""
        if self.number_of_blocks == 1:
            return apply(THREAD)
        return apply(BLOCK) * self.threads + apply(THREAD)

    @property
    def number_in_group(self) -> Expression:
        """The number of a thread among those that have a row, or a column of a strip."""
        if self.strip is not None:
            return self.strip.line
        return apply(THREAD) if self.group == self.threads else apply(THREAD) % self.group

    @contextmanager
    def inside(self, loops: Sequence[NestLoop], index: Expression) -> Generator[None, None, None]:
        """Write what is in an iteration of loops, at this joint index of them, into the open block."""
        outer, depth = self.blocks, len(self.loops)
        self.blocks = [*outer, *[self.here] * (1 + depth + len(loops) - len(outer))]
        for n, loop in enumerate(loops):
            self.loops.append(loop)
            if index != counter(loop.depth):
                self.add(Assign((counter(loop.depth),), part_of(index, loops, n)))
        yield
        self.blocks = outer
        del self.loops[depth:]

    def turns(self, loops: Sequence[NestLoop], first: Expression, step: int, width: int = 1) -> None:
        """Write every step-th iteration of loops that follow one another, or every step-th vector of iterations."""
        total, depth = size(loops), loops[0].depth
        whole = total - total % width
        if width > 1:
            vector = block_of(depth)
            body = self.iterations_from(loops, vector, width)
            unit = unit_of(loops, width)
            self.add(For(vector, times(first, unit), integer(whole // width * unit), step * unit, body))
        if whole < total or width == 1:
            index = counter(depth) if len(loops) == 1 else Name(f"g{depth}", INDEX)
            rest = first + whole if width > 1 else first
            self.add(For(index, rest, integer(total), step, self.iterations_from(loops, index)))

    def iterations_from(
        self, loops: Sequence[NestLoop], index: Expression, width: int = 1, write: Callable[[], None] | None = None
    ) -> list[Statement]:
        """The statements of the iteration at a joint index of loops, or of a vector of iterations.

        They are what `write` writes, or the items of the loops. The index of a vector is that of its first iteration,
        or of several loops its number, because LLVM detects the alignment of 4 * (n % 250), but not of n % 1000.
        """
        outer, depth = self.blocks, len(self.loops)
        block = Block(self.here)
        inner = block if width == 1 else Block(block)
        self.blocks = [*outer, *[block] * (len(loops) - 1), inner]
        for n, loop in enumerate(loops):
            self.loops.append(loop)
            place = part_of(index, loops, n, width if len(loops) > 1 else 1)
            if n == len(loops) - 1 and width > 1:
                if place != index:
                    base = block_of(loop.depth)
                    block.statements.append(Assign((base,), place))
                    place = base
                place = times(place, width // unit_of(loops, width)) + Name(f"j{loop.depth}", INDEX)
            if place != counter(loop.depth):
                target = inner if n == len(loops) - 1 else block
                target.statements.append(Assign((counter(loop.depth),), place))
        opened: list[Accumulator] = []
        if write is None:
            opened = self.folds.closed_by(loops[-1])
            self.folds.directly_compensated |= {fold.effect for fold in opened if width == 1}
            self.items(loops[-1].items)
        else:
            write()
        del self.loops[depth:]
        if width > 1:  # the elements of a vector are one sum, which is added with compensation
            self.blocks = [*outer, block]
            self.folds.begin_block(opened)
            self.add(
                For(
                    Name(f"j{loops[-1].depth}", INDEX), integer(0), integer(width), 1, inner.statements, LoopKind.VECTOR
                )
            )
            self.folds.end_block(opened)
        self.blocks = outer
        return block.statements

    def elements(self, loops: Sequence[NestLoop], width: int, write: Callable[[], None] | None = None) -> None:
        """Write loops over a row, of which each thread has the same few elements in all passes."""
        total, depth, lanes = size(loops), loops[-1].depth, self.group * width
        number, start = Name(f"n{loops[0].depth}", INDEX), block_of(loops[0].depth)
        outer = self.element
        vector = number * width if width > 1 else number
        self.element = vector + Name(f"j{depth}", INDEX) if width > 1 else vector
        first = number * self.group + self.number_in_group
        index = start if width > 1 or len(loops) > 1 else counter(depth)
        body = self.iterations_from(loops, index, width, write)
        unit = unit_of(loops, width)
        conditions = [index < total // width * unit] if total % lanes else []
        if conditions and self.strip is not None and total > lanes:  # no branch but in the last round: loads come first
            conditions = [apply(OR, number < total // lanes, *conditions)]
        start = times(first, unit)
        if (before := self.before_row(loops)) is not None:
            start = start - before
            conditions.append(index >= 0)
        if there := [*conditions, *([self.there] if self.there else [])]:
            body = list[Statement]([If(reduce(partial(apply, AND), there), body)])
        body = [Assign((index,), start), *body]
        self.add(For(number, integer(0), integer(-(-total // lanes)), 1, body, LoopKind.ELEMENTS))
        self.element = outer

    def before_row(self, loops: Sequence[NestLoop]) -> Expression | None:
        """The elements between the last sector of memory that begins before a group's row and the row.

        The first threads of the group leave them out, so that all accesses begin with sectors. None if rows do, or if
        the threads would need another turn.
        """
        if self.row_loop is None or len(loops) > 1:
            return None
        row, place = (Counter(loop.depth, loop.extent) for loop in (self.row_loop, loops[0]))
        touched = [access for effect in loop_effects(loops[0]) for access in (*reads(effect), *writes(effect))]
        along = [(b.dtype.itemsize, a.coefficient(row)) for b, a in touched if a and a.coefficient(place) == 1]
        for itemsize, stride in along[:1]:
            sector, width, total = SECTOR // itemsize, self.width_of(loops), size(loops)
            step = gcd(stride, sector)
            if step < sector and step % width == 0 and sector - step <= -total % (self.group * width):
                return counter(self.row_loop.depth) * stride % sector
        return None

    def rows_of_groups(
        self, loops: Sequence[NestLoop], blocks: int, group: int, there: Expression | None
    ) -> None:  # fmt: skip
        """Write loops over rows, several of which a block has at once; `there` is whether a thread has one of them.

        All come to the same shuffles, so those beyond the last row do that one again, and store nothing.
        """
        self.group, self.there = group, there
        self.row_loop = loops[0] if len(loops) == 1 else None
        together, depth = self.threads // group, loops[0].depth
        row = row_of_group(depth, group)
        body = self.iterations_from(loops, apply(MIN, row, integer(size(loops) - 1)) if there else row)
        start = apply(BLOCK) * together
        self.add(For(first_row(depth), start, integer(size(loops)), blocks * together, body, LoopKind.ROWS))

    @contextmanager
    def in_grid(self, count: int) -> Generator[Name, None, None]:
        """Write what the threads of the grid do for numbers up to a count, which they take in turns."""
        number = Name("g", INDEX)
        with self.loop_over(number, count, self.number_in_grid, self.number_of_blocks * self.threads):
            yield number

    def width_of(self, loops: Sequence[NestLoop]) -> int:
        """The number of neighbouring elements of a row that a thread takes at once."""
        return self.row_width if loops[-1].extent % self.row_width == 0 else 1

    def elements_of(self, loops: Sequence[NestLoop]) -> int:
        """The number of elements of a row that a thread has."""
        width = self.width_of(loops)
        return -(-size(loops) // (self.group * width)) * width

    @contextmanager
    def own_iterations(self) -> Generator[None, None, None]:
        """Write what a thread does by itself."""
        outer, self.is_shared_out = self.is_shared_out, True
        yield
        self.is_shared_out = outer

    def share_out(self, loops: Sequence[NestLoop], first: Expression, step: int) -> None:
        """Write loops whose joint iterations threads take in turns."""
        folds = self.folds.from_loop(loops[0], self.group)
        self.folds.open_all(folds)
        depths = {loop.depth for loop in loops}
        reduces = [effect for effect in loop_effects(loops[-1]) if isinstance(effect, Reduce)]
        self.folds.scattered |= {effect for effect in reduces if not depths.isdisjoint(effect.depths)}
        with self.own_iterations():
            if self.row_width and self.elements_of(loops) <= LONGEST:
                self.elements(loops, self.width_of(loops))
            else:
                self.turns(loops, first, step, self.width_of(loops) if self.row_width else 1)
        for fold in folds:
            self.folds.close(fold)

    def loop(self, loop: NestLoop) -> None:
        """Write a nest: by a thread alone where iterations are shared out already, else by all threads of the block."""
        if self.is_shared_out:
            super().loop(loop)
            return
        loops = chain(loop)
        items = loops[-1].items
        effects = [item for item in items if isinstance(item, Effect)]
        if len(effects) < len(items):
            self.mixed(loop)
        else:
            for group in groups(effects, loops[0].depth):
                self.of_effects(nest_of(loops, group))

    def mixed(self, loop: NestLoop) -> None:
        """Write a loop with several nests inside: each is shared out, unless they are short."""
        inner = max(size(chain(item)) for item in loop.items if isinstance(item, NestLoop))
        if is_free(loop, loop.items) and inner < self.warp <= loop.extent:
            self.share_out([loop], apply(THREAD), self.threads)
        else:
            super().loop(loop)

    def of_effects(self, nest: NestLoop) -> None:
        """Write a nest of loops that follow one another."""
        loops = chain(nest)
        found = roles(loops)
        if len(loops) == 1 and isinstance(effect := loops[0].items[0], Scan):
            run_over(self, effect, OfLoop(loops[0]))
            return
        if found.ordered or not found.folded:
            outer, rest = found.free, (*found.folded, *found.ordered)
        else:
            rows_first = found.length < max(found.results, self.warp)
            outer, rest = (found.free, found.folded) if rows_first else ((), (*found.free, *found.folded))
        nest = ordered(loops, [*outer, *rest])
        if outer:
            self.share_out(chain(nest)[: len(outer)], apply(THREAD), self.threads)
        elif rest == found.folded:
            self.share_out(chain(nest), apply(THREAD), self.threads)
        elif found.ordered:
            self.by_first_thread(nest)
        else:
            super().loop(nest)

    def by_first_thread(self, nest: NestLoop) -> None:
        """Write a nest whose iterations run in order, for one thread."""
        with self.where(apply(THREAD).equals(0)), self.own_iterations():
            super().loop(nest)

    def combine(self, effect: Update) -> None:
        if not self.adds_atomically:
            super().combine(effect)
            return
        value = self.value(effect.node)
        self.add(Evaluate(apply(ATOMIC_ADD, *self.destination(effect), value)))

    def shared(self, variable: Name, elements: int) -> Name:
        """An array that the threads of a block share: a new one, or, if there are many, that used longest ago."""
        arrays = self.shared_arrays[variable.kind, elements]
        if self.shared_bytes > MOST_SHARED and len(arrays) >= AT_ONCE:
            arrays.rotate(-1)
            return arrays[-1]
        arrays.append(self.new_shared(variable.dtype, elements))
        return arrays[-1]

    def new_shared(self, dtype: Dtype, elements: int) -> Name:
        """A new array that the threads of a block share."""
        array = self.part(dtype)
        self.shared_bytes += elements * dtype.itemsize
        self.made.append(Assign((array,), apply(SHARED_ARRAYS[dtype], integer(elements))))
        return array


def first_row(depth: int) -> Name:
    """The first of the rows that the groups of a block have at once."""
    return Name(f"r{depth}", INDEX)


def row_of_group(depth: int, group: int) -> Expression:
    """The row of a thread, of which there may be no more."""
    return first_row(depth) + apply(THREAD) // group


def unit_of(loops: Sequence[NestLoop], width: int) -> int:
    """The distance of the indices of neighbouring vectors of iterations."""
    return width if len(loops) == 1 else 1


def part_of(index: Expression, loops: Sequence[NestLoop], n: int, width: int = 1) -> Expression:
    """The counter of one of the loops at a joint index of them, or of the vectors of the last one."""
    inner = size(loops[n + 1 :]) // width if n + 1 < len(loops) else 1
    own = index % (size(loops[n:]) // width) if n else index
    return own // inner if inner > 1 else own
