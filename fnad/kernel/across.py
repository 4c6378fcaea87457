"""Loops over narrow rows in kernels, around the loop over the rows of a tile: see `fnad/lower/across.py`.

Folds along rows accumulate in arrays with an element for each row, the lanes. Such arrays also hold what is the same in
a whole row and takes work, such as the reciprocal of a sum, so that it is computed once for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

from fnad.ir.types import BOOL, Dtype
from fnad.kernel.accumulators import Accumulator
from fnad.kernel.folds import Folds
from fnad.kernel.interrupts import stops_in_steps
from fnad.kernel.statements import Assign, Constant, Expression, For, Load, Name, Store, integer
from fnad.kernel.unroll import iteration_of
from fnad.kernel.writer import Writer, block_of, counter, local
from fnad.lower.across import folds_columns
from fnad.lower.loop_ir import ArgReduce, Effect, NestLoop, Reduce
from fnad.lower.nodes import Branch, Checked, Node, ScalarOperation, children, indices
from fnad.scalar.operation import INDEX, Pointer

TOGETHER, STATEMENTS = 4, 24
"""The most elements of a row, and the most statements, that are computed one after the other in a loop over rows."""


class Across:
    """The strategy for loops across tiles; `lanes` are the arrays that they need, made before the loop over tiles."""

    def __init__(self, writer: Writer, folds: Folds) -> None:
        self.writer, self.folds = writer, folds
        self.lanes: list[tuple[Name, int]] = []

    def make_lanes(self) -> None:
        """Make the arrays that the loops written so far need."""
        self.writer.add(*(local(array, size) for array, size in self.lanes))
        self.lanes.clear()

    def loop(self, tile: NestLoop, loop: NestLoop, first: Expression, stop: Expression) -> None:
        """Write a loop over the elements of rows, and in it one over the rows of a tile, from `first` on."""
        effects = [effect for effect in loop.items if isinstance(effect, Effect)]
        rows = RowLoop(tile, loop, counter(tile.depth) - first)
        kept = {node: self.lane(tile, node.dtype) for node in rows.work([effect.node for effect in effects])}
        folds = {effect: self.lanes_of(effect, tile) for effect in effects if folds_columns(effect, loop)}
        each_row: _EachRow = partial(self.writer.loop_over, counter(tile.depth), stop, first, level=True)
        with each_row():
            self.begin(rows, kept, folds)
        rows.kept = kept
        self.writer.loop_over_rows = rows
        if not any(isinstance(effect, Reduce) and effect not in folds for effect in effects):
            self.columns(tile, loop, partial(self.effects_across, effects, rows, folds, {}), each_row)
        else:
            self.columns_with_sums(loop, effects, rows, folds, each_row)
        self.writer.loop_over_rows = None
        self.end(rows, folds, each_row)

    def columns(self, tile: NestLoop, loop: NestLoop, write: Callable[[], None], each_row: _EachRow) -> None:
        """Write a loop over the elements of rows, several at a time: lanes are loaded and stored once for these."""
        with self.writer.block() as outer, each_row():
            write()
        (over_rows,) = outer
        assert isinstance(over_rows, For)
        first = block_of(loop.depth)
        together = max(1, min(TOGETHER, STATEMENTS // len(over_rows.body)))
        rest, check = loop.extent % together, stops_in_steps(self.writer, tile, loop, first)
        for start, stop, count in ((0, loop.extent - rest, together), (loop.extent - rest, loop.extent, rest)):
            if start < stop:
                values = [first, *(first + n for n in range(1, count))]
                body = [
                    statement
                    for n, value in enumerate(values)
                    for statement in iteration_of(over_rows.body, counter(loop.depth), value, f"n{n}")
                ]
                whole = replace(over_rows, body=body)
                self.writer.add(For(first, integer(start), integer(stop), count, [*check, whole]))

    def columns_with_sums(
        self, loop: NestLoop, effects: Sequence[Effect], rows: RowLoop, folds: _Folds, each_row: _EachRow
    ) -> None:
        """Write a loop over the elements of rows, with folds over the rows for each of them."""
        with self.writer.loop_over(counter(loop.depth), loop.extent, level=True):
            self.writer.add(*stops_in_steps(self.writer, rows.tile, loop, counter(loop.depth)))
            sums = [effect for effect in effects if isinstance(effect, Reduce) and effect not in folds]
            totals: dict[Effect, Name] = {effect: self.total(effect) for effect in sums}
            with each_row():
                self.effects_across(effects, rows, folds, totals)
            for effect in sums:
                self.folds.combine_in_memory(effect, totals[effect])

    # ---- lanes -------------------------------------------------------------------------------------------------------

    def lane(self, tile: NestLoop, dtype: Dtype) -> Name:
        """A new array with an element for each row of a tile."""
        array = Name(f"lane{next(self.writer.numbers['lane'])}", Pointer(dtype))
        self.lanes.append((array, tile.tile))
        return array

    def lanes_of(self, effect: Effect, tile: NestLoop) -> list[tuple[Name, Constant]]:
        """The arrays that a fold along rows accumulates in, and how they begin."""
        if isinstance(effect, ArgReduce):
            return [
                (self.lane(tile, INDEX), Constant(INDEX.type(0))),
                (self.lane(tile, effect.node.dtype), Constant(effect.init)),
            ]
        assert isinstance(effect, Reduce)
        return [(self.lane(tile, effect.dtype), Constant(effect.init))]

    def begin(self, rows: RowLoop, kept: Mapping[Node, Name], folds: _Folds) -> None:
        for node, lane in kept.items():
            self.writer.add(Store(lane, rows.number, self.writer.value(node)))
        for lanes in folds.values():
            self.writer.add(*(Store(lane, rows.number, init) for lane, init in lanes))

    def end(self, rows: RowLoop, folds: _Folds, each_row: _EachRow) -> None:
        """Store what was folded along each row; a fold over all rows takes what the rows of the tile are folded to."""
        accumulators: dict[Effect, Accumulator] = {
            fold.effect: fold for fold in self.folds.below(rows.tile) if fold.start <= rows.depth
        }
        totals: dict[Effect, Name] = {effect: self.total(effect) for effect in folds if effect in accumulators}
        with each_row():
            for effect, lanes in folds.items():
                found = self.writer.assign("v", Load(lanes[0][0], rows.number))
                if effect in totals:
                    self.add_to_total(effect, totals[effect], found)
                else:
                    self.writer.store(effect, self.writer.cast(found, effect.buffer.dtype))
        for effect, total in totals.items():
            self.folds.fold_in(accumulators[effect], total)

    # ---- effects -----------------------------------------------------------------------------------------------------

    def effects_across(
        self, effects: Sequence[Effect], rows: RowLoop, folds: _Folds, totals: Mapping[Effect, Name]
    ) -> None:
        for effect in effects:
            self.writer.comment(effect)
            value = self.writer.value(effect.node)
            if effect in totals:
                self.add_to_total(effect, totals[effect], value)
            elif effect in folds:
                self.fold_across(effect, rows.number, [lane for lane, _ in folds[effect]], value)
            else:
                self.writer.store(effect, value)

    def total(self, effect: Effect) -> Name:
        """The variable of a fold over the rows of a tile."""
        assert isinstance(effect, Reduce)
        name = self.writer.name("acc", effect.dtype)
        self.writer.changing.add(name.name)
        self.writer.add(Assign((name,), Constant(effect.init)))
        return name

    def add_to_total(self, effect: Effect, total: Name, value: Expression) -> None:
        assert isinstance(effect, Reduce)
        self.writer.add(Assign((total,), self.folds.folded(effect, total, self.writer.cast(value, effect.dtype))))

    def fold_across(self, effect: Effect, row: Expression, lanes: Sequence[Name], value: Expression) -> None:
        if isinstance(effect, Reduce):
            (lane,) = lanes
            old = self.writer.assign("v", Load(lane, row))
            new = self.folds.folded(effect, old, self.writer.cast(value, effect.dtype))
            self.writer.add(Store(lane, row, self.writer.assign("v", new)))
            return
        assert isinstance(effect, ArgReduce)
        (position, place), (best, so_far) = ((lane, self.writer.assign("v", Load(lane, row))) for lane in lanes)
        better = self.writer.assign("v", self.writer.step(effect.better, BOOL, **{"0": value, "best": so_far}))
        number = counter(self.writer.loops[-1].depth + 1)
        self.writer.add(Store(position, row, self.writer.assign("v", self.writer.select(better, number, place))))
        self.writer.add(Store(best, row, self.writer.assign("v", self.writer.select(better, value, so_far))))


_EachRow = Callable[[], AbstractContextManager[None]]
_Folds = Mapping[Effect, Sequence[tuple[Name, Constant]]]


@dataclass(slots=True, eq=False)
class RowLoop:
    """The loop over a tile's rows within one over their elements; `number` is that of the row in the tile."""

    tile: NestLoop
    loop: NestLoop
    number: Expression
    kept: Mapping[Node, Name] = field(default_factory=dict[Node, Name])
    known: dict[Node, bool] = field(default_factory=dict[Node, bool])

    @property
    def depth(self) -> int:
        return self.tile.depth

    def varies(self, node: Node) -> bool:
        """True if a value is another one for each row."""
        found = self.known.get(node)
        if found is None:
            inside = any(index.reads(self.tile.depth) for index in indices(node))
            found = self.known[node] = inside or any(map(self.varies, children(node)))
        return found

    def work(self, roots: Sequence[Node]) -> Iterator[Node]:
        """The largest operations and checks that vary by row alone; those in a branch may be invalid outside."""
        pending, seen = list(roots), set[Node]()
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, ScalarOperation | Checked) and self.varies(node) and node.depth <= self.loop.depth:
                yield node
            elif not isinstance(node, Branch):
                pending += children(node)
