"""Rows of `vmap` that Python takes different ways for: one loop over the rows, whose steps call the function.

A function whose rows decide alike, or differ in loops alone, is traced once for all rows. Where rows decide otherwise,
the trace begins again, and `vmap` is a loop of Python (`fnad.api.staging.python_loop`) that writes the results of each
row into arrays. Types of results are known once each row has been traced; a row that returns others begins it again.
Rows that cannot be steps of one loop are traced one by one, and the trace holds for rows that decide as these do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from typing import Any, NamedTuple

from fnad.api.staging.leaves import Function, Structure, flatten, is_weak
from fnad.api.staging.loop_items import Items
from fnad.api.staging.marshalling import LeafType, as_tracer, joined
from fnad.api.staging.python_loop import Known, PythonLoop, values_of
from fnad.api.staging.python_loops import PythonLoops
from fnad.api.staging.stage import output_leaves
from fnad.errors import BatchAxisError
from fnad.ir.builder import current_builder
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Dtype
from fnad.numpy.joining import stack
from fnad.numpy.operands import as_symbol
from fnad.ops.shape import constant
from fnad.trace.capture import Trace
from fnad.trace.looping import LOOPING, ROWS, Parted, Refused, unhidden
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer
from fnad.trace.writes import undoing

MOST_DECISIONS = 32
"""The most decisions of a row, because the branches of its derivative are nested as deeply."""

MOST_ROWS = 256
"""The most rows that are traced one by one."""


class Results(NamedTuple):
    """The structure of the results of a row, and the types of its leaves."""

    structure: Structure
    types: list[LeafType]

    def takes(self, other: Results) -> bool:
        """True if these are the results of both."""
        return self._is_like(other) and self.together(other) == self

    def together(self, other: Results) -> Results:
        """The results of both."""
        if not self._is_like(other):
            raise BatchAxisError.here(
                "rows of vmap return values of different structures or shapes",
                remedy="return arrays of the same shapes for each row, or call the function in a loop",
            )
        return Results(self.structure, list(map(joined, self.types, other.types)))

    def _is_like(self, other: Results) -> bool:
        own, others = ([t.aval.shape for t in results.types] for results in (self, other))
        return self.structure == other.structure and own == others


class MappedRows(NamedTuple):
    """The arguments of `call`, which calls `f`, for each of so many rows; those that are marked are stacks."""

    f: Function
    types: Sequence[LeafType]
    arguments: Sequence[tuple[Symbol, bool]]
    number: int
    call: Callable[[list[Tracer]], Any]

    def results(self, row: Any) -> tuple[Results, list[Any]]:
        """The results of one row."""
        pairs = zip(self.arguments, self.types, strict=True)
        output = self.call([Tracer(x)[row] if is_stack else as_tracer(x, type_) for (x, is_stack), type_ in pairs])
        values, structure = output_leaves(output, self.f)
        return Results(structure, list(map(_type_of, values, flatten(output)[0]))), values

    def one_by_one(self) -> Stacked:
        """The results of all rows, each of which is traced on its own."""
        found = [self.results(row) for row in range(self.number)]
        results = reduce(Results.together, [each for each, _ in found])
        columns = zip(*[values for _, values in found], strict=True)
        symbols = [[*map(_symbol, column)] for column in columns]
        differ = [len({getattr(x.atom, "key", x.atom) for x in column}) > 1 for column in symbols]
        given = zip(symbols, results.types, differ, strict=True)
        stacks = [_stack(column, t.aval.dtype) if several else column[0] for column, t, several in given]
        return results, stacks, differ


Stacked = tuple[Results, list[Symbol], list[bool]]
"""The types of results, their values for all rows, and marks of those that are stacks."""


def unless_parted(together: Callable[[], Stacked], rows: MappedRows, key: Hashable) -> Stacked:
    """The results of `together`, which traces all rows at once; those of one row after the other if they part.

    Under `jit` the trace begins again where they part, and what `together` changes is undone otherwise.
    """
    if LOOPING.loops is not None or not 0 < rows.number <= MOST_ROWS:
        with ROWS.holding(None if LOOPING.loops is None else key):
            return together()
    with undoing() as changes:
        try:
            with ROWS.holding(key):
                return unhidden(together)
        except Parted:
            changes.undo()
    return rows.one_by_one()


def in_turn(rows: MappedRows, key: Hashable) -> Stacked | None:
    """The results of one row after the other, stacked; None if rows can be traced together.

    The `key` is that of the call of `vmap`.
    """
    loops, source = LOOPING.loops, current_source()
    if loops is None or key not in loops.by_rows or source is None:
        return None
    if isinstance(loops, PythonLoops):
        known = loops.known.setdefault((source.file, source.line, hash(key)), Known(source))
        if known.refused is None:
            return _as_steps(rows, loops, key, known)
    return rows.one_by_one() if rows.number <= MOST_ROWS else None


def _as_steps(rows: MappedRows, loops: PythonLoops, key: Hashable, known: Known) -> Stacked:
    """The results of all rows, which are steps of one loop."""
    results, builder = loops.by_rows[key], current_builder()
    stacks = tuple(Tracer(_zeros(t.aval, rows.number)) for t in results.types) if results else ()
    line, items = known.source.line, Items(rows.number, lambda number: number)
    loops.spread()
    loop = PythonLoop(loops, known, (line, -1, line, line, (), ()), sys._getframe(), items)  # pyright: ignore[reportPrivateUsage]
    for i in loop.run():
        found, values = rows.results(i)
        step = current_builder()
        assert isinstance(step, Trace)
        if len(step.guards) > MOST_DECISIONS:
            raise Refused(f"a row of vmap decides more than {MOST_DECISIONS} times outside of loops")
        at_hand = values_of(step)
        if results is None or not results.takes(found):
            if at_hand.is_given:  # the answers are those of no row
                at_hand.has_strayed = True
                continue
            loops.by_rows[key] = found if results is None else results.together(found)
            raise Parted
        for made, value in zip(stacks, values, strict=True):
            made[i] = value
    assert results is not None
    return results, [builder.lift(made.symbol) for made in stacks], [True] * len(stacks)


def _stack(column: list[Symbol], dtype: Dtype) -> Symbol:
    return stack(column, dtype=dtype, casting="unsafe")


def _symbol(value: Any) -> Symbol:
    return as_symbol(value.symbol if isinstance(value, Tracer) else value)


def _zeros(aval: Aval, count: int) -> Symbol:
    return constant(aval.dtype.type(0), aval.dtype, (count, *aval.shape))


def _type_of(value: Any, leaf: Any) -> LeafType:
    aval = _symbol(value).aval
    weak = leaf.is_weak if isinstance(leaf, Tracer) else is_weak(leaf)
    return LeafType(aval, weak and not aval.shape)
