"""Rows of `vmap` that Python takes different ways for: one loop over the rows, whose steps call the function.

A function whose rows decide alike, or differ in loops alone, is traced once for all rows. Where rows decide otherwise,
the trace begins again, and `vmap` is a loop of Python (`fnad.api.staging.python_loop`) that writes the results of each
row into arrays. Types of results are known once each row has been traced; a row that returns others begins it again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from fnad.api.staging.leaves import Function, Structure, flatten, is_weak
from fnad.api.staging.loop_items import Items
from fnad.api.staging.marshalling import LeafType, as_tracer, joined
from fnad.api.staging.python_loop import Known, PythonLoop, values_of
from fnad.api.staging.python_loops import PythonLoops
from fnad.api.staging.stage import output_leaves
from fnad.ir.builder import current_builder
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.numpy.operands import as_symbol
from fnad.ops.shape import constant
from fnad.records import NamedTuple
from fnad.trace.capture import Trace
from fnad.trace.looping import LOOPING, Parted, Refused
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer

MOST_DECISIONS = 32
"""The most decisions of a row, because the branches of its derivative are nested as deeply."""


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
            raise Refused("rows of vmap return values of different structures or shapes")
        return Results(self.structure, list(map(joined, self.types, other.types)))

    def _is_like(self, other: Results) -> bool:
        own, others = ([t.aval.shape for t in results.types] for results in (self, other))
        return self.structure == other.structure and own == others


def in_turn(
    f: Function,
    key: Hashable,
    types: Sequence[LeafType],
    rows: Sequence[tuple[Symbol, bool]],
    count: int,
    call: Callable[[list[Tracer]], Any],
) -> tuple[Results, list[Symbol]] | None:
    """The results of `call`, which calls `f`, for one row after the other, stacked; None if rows decide alike.

    Of the `rows`, those that are marked are stacks. The `key` is that of the call of `vmap`.
    """
    loops = LOOPING.loops
    if not isinstance(loops, PythonLoops) or key not in loops.by_rows or (source := current_source()) is None:
        return None
    known = loops.known.setdefault((source.file, source.line, hash(key)), Known(source))
    if known.refused is not None:
        return None
    results, builder = loops.by_rows[key], current_builder()
    stacks = tuple(Tracer(_zeros(t.aval, count)) for t in results.types) if results else ()
    given: list[tuple[Any, bool]] = [
        (Tracer(x) if is_row else as_tracer(x, t), is_row) for (x, is_row), t in zip(rows, types, strict=True)
    ]
    place, items = (source.line, -1, source.line, source.line, (), ()), Items(count, lambda number: number)
    loops.spread()
    for i in PythonLoop(loops, known, place, sys._getframe(), items).run():  # pyright: ignore[reportPrivateUsage]
        output = call([x[i] if is_row else x for x, is_row in given])
        step = current_builder()
        assert isinstance(step, Trace)
        if len(step.guards) > MOST_DECISIONS:
            raise Refused(f"a row of vmap decides more than {MOST_DECISIONS} times outside of loops")
        values, structure = output_leaves(output, f)
        leaf_types = list(map(_type_of, values, flatten(output)[0]))
        found, at_hand = Results(structure, leaf_types), values_of(step)
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


def _zeros(aval: Aval, count: int) -> Symbol:
    return constant(aval.dtype.type(0), aval.dtype, (count, *aval.shape))


def _type_of(value: Any, leaf: Any) -> LeafType:
    aval = as_symbol(value.symbol if isinstance(value, Tracer) else value).aval
    weak = leaf.is_weak if isinstance(leaf, Tracer) else is_weak(leaf)
    return LeafType(aval, weak and not aval.shape)
