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
from typing import Any

from fnad.api.staging.leaves import Function, Structure, flatten, is_weak
from fnad.api.staging.loop_items import Items
from fnad.api.staging.marshalling import LeafType, as_tracer, joined
from fnad.api.staging.python_loop import Known, PythonLoop, values_of
from fnad.api.staging.python_loops import PythonLoops
from fnad.api.staging.stage import output_leaves
from fnad.errors import BatchAxisError
from fnad.ir.builder import current_builder
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.numpy.joining import join
from fnad.numpy.operands import as_symbol
from fnad.ops.conversion import convert_to
from fnad.ops.shape import constant, reshape_to
from fnad.records import NamedTuple
from fnad.trace.capture import Trace
from fnad.trace.looping import LOOPING, Parted, Refused
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer

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


RowCall = Callable[[Any], tuple[Results, list[Any]]]
"""A function from the number of a row to the types of its results and these."""


def in_turn(
    f: Function,
    key: Hashable,
    types: Sequence[LeafType],
    rows: Sequence[tuple[Symbol, bool]],
    count: int,
    call: Callable[[list[Tracer]], Any],
) -> tuple[Results, list[Symbol]] | None:
    """The results of `call`, which calls `f`, for one row after the other, stacked; None if rows can be traced together.

    Of the `rows`, those that are marked are stacks. The `key` is that of the call of `vmap`.
    """
    loops = LOOPING.loops
    if loops is None or key not in loops.by_rows or (source := current_source()) is None:
        return None
    given: list[tuple[Any, bool]] = [
        (Tracer(x) if is_row else as_tracer(x, t), is_row) for (x, is_row), t in zip(rows, types, strict=True)
    ]

    def results_of(row: Any) -> tuple[Results, list[Any]]:
        output = call([x[row] if is_row else x for x, is_row in given])
        values, structure = output_leaves(output, f)
        return Results(structure, list(map(_type_of, values, flatten(output)[0]))), values

    if isinstance(loops, PythonLoops):
        known = loops.known.setdefault((source.file, source.line, hash(key)), Known(source))
        if known.refused is None:
            return _as_steps(results_of, count, loops, key, known)
    return _one_by_one(results_of, count) if count <= MOST_ROWS else None


def _as_steps(
    results_of: RowCall, count: int, loops: PythonLoops, key: Hashable, known: Known
) -> tuple[Results, list[Symbol]]:
    """The results of all rows, which are steps of one loop."""
    results, builder = loops.by_rows[key], current_builder()
    stacks = tuple(Tracer(_zeros(t.aval, count)) for t in results.types) if results else ()
    line, items = known.source.line, Items(count, lambda number: number)
    loops.spread()
    loop = PythonLoop(loops, known, (line, -1, line, line, (), ()), sys._getframe(), items)  # pyright: ignore[reportPrivateUsage]
    for i in loop.run():
        found, values = results_of(i)
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
        for stack, value in zip(stacks, values, strict=True):
            stack[i] = value
    assert results is not None
    return results, [builder.lift(stack.symbol) for stack in stacks]


def _one_by_one(results_of: RowCall, count: int) -> tuple[Results, list[Symbol]]:
    """The results of all rows, each traced on its own."""
    found = [results_of(row) for row in range(count)]
    results = reduce(Results.together, [each for each, _ in found])
    columns = zip(*[values for _, values in found], strict=True)
    return results, [_stack(values, t.aval) for values, t in zip(columns, results.types, strict=True)]


def _stack(values: Sequence[Any], aval: Aval) -> Symbol:
    rows = [convert_to(_symbol(value), aval.dtype) for value in values]
    return join([reshape_to(row, (1, *aval.shape)) for row in rows], 0)


def _symbol(value: Any) -> Symbol:
    return as_symbol(value.symbol if isinstance(value, Tracer) else value)


def _zeros(aval: Aval, count: int) -> Symbol:
    return constant(aval.dtype.type(0), aval.dtype, (count, *aval.shape))


def _type_of(value: Any, leaf: Any) -> LeafType:
    aval = _symbol(value).aval
    weak = leaf.is_weak if isinstance(leaf, Tracer) else is_weak(leaf)
    return LeafType(aval, weak and not aval.shape)
