"""Loops written as functions on symbols that use what is around them, for rules that are solvers themselves.

What the functions use from around them becomes operands of the equation, so that the regions are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.control.loop import Groups
from fnad.control.scan import bind_scan
from fnad.control.signatures import Symbols
from fnad.control.while_loop import while_loop
from fnad.errors import Failure
from fnad.ir.builder import Builder, current_builder, is_tracing
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.numpy.operands import as_symbol
from fnad.ops.comparison import bitwise_not
from fnad.ops.shape import full_like

Function: TypeAlias = Callable[..., Symbols]


class Closed(NamedTuple):
    """A program (captured…, arguments…) -> results, and what it captured."""

    program: Program
    captured: tuple[Symbol, ...]


def closed(function: Function, avals: Sequence[Aval], name: str) -> Closed:
    """The program of a function on symbols that may use those around it."""
    builder = Builder()
    builder.source = current_builder().source if is_tracing() else None
    with builder.active():
        program = builder.finish(name, function(*map(builder.input, avals)))
    count = len(avals)
    inputs = (*program.inputs[count:], *program.inputs[:count])
    return Closed(Program(name, inputs, program.equations, program.outputs), tuple(map(as_symbol, builder.captured)))


def repeat(test: Callable[..., Symbol], body: Function, init: Symbols, **limit: Any) -> list[Symbol]:
    """The values after `values = body(*values)` as long as `test(*values)`.

    `limit` are the params `max_steps` and `failure` of `while_loop`.
    """
    avals = [value.aval for value in init]
    tested, step = closed(lambda *values: [test(*values)], avals, "test"), closed(body, avals, "step")
    counts = {"test_consts": len(tested.captured), "body_consts": len(step.captured)}
    operands = *tested.captured, *step.captured, *init
    params = {"max_steps": None, **counts, **limit}
    return list(while_loop(*operands, **params, regions=(tested.program, step.program))[: len(init)])


def demand(x: Symbol, holds: Symbol, failure: Failure) -> Symbol:
    """Floats x where `holds`; else the run ends in the failure. It is a loop that may not take its first step."""
    return repeat(lambda x: bitwise_not(holds), lambda x: [full_like(x, np.nan)], [x], max_steps=0, failure=failure)[0]


def over(body: Function, init: Symbols, rows: Symbols, *, reverse: bool = False) -> list[Symbol]:
    """(carry…, ys…) of `body(*carry, *row) -> (carry…, y…)` over the rows of one array or more."""
    avals = [*[value.aval for value in init], *[row.aval.with_shape(row.shape[1:]) for row in rows]]
    step = closed(body, avals, "step")
    groups = Groups(len(step.captured), len(init), len(rows))
    return bind_scan(step.program, groups, (), [*step.captured, *init, *rows], rows[0].shape[0], reverse)
