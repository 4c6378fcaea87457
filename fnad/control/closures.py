"""Loops written as functions on symbols that use what is around them, for rules that are solvers themselves.

What the functions use from around them becomes operands of the equation, so that the regions are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.control.scan import scan
from fnad.control.while_loop import Failure, while_loop
from fnad.ir.builder import Builder, Captured, current_builder, is_tracing
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.arithmetic import mul
from fnad.ops.comparison import bitwise_not
from fnad.ops.conversion import convert_to
from fnad.ops.shape import broadcast_to, concatenate, full_like, reshape_to, slice_axis

Values: TypeAlias = Sequence[Symbol]
Function: TypeAlias = Callable[..., Values]


class Closed(NamedTuple):
    """A program (captured…, arguments…) -> results, and what it captured."""

    program: Program
    captured: tuple[Captured, ...]


def closed(function: Function, avals: Sequence[Aval], name: str) -> Closed:
    """Return the program of a function on symbols that may use those around it."""
    builder = Builder()
    builder.source = current_builder().source if is_tracing() else None
    with builder.active():
        program = builder.finish(name, function(*map(builder.input, avals)))
    count = len(avals)
    inputs = (*program.inputs[count:], *program.inputs[:count])
    return Closed(Program(name, inputs, program.equations, program.outputs), tuple(builder.captured))


def repeat(test: Callable[..., Symbol], body: Function, init: Values, **limit: Any) -> list[Symbol]:
    """Return the values after `values = body(*values)` as long as `test(*values)`.

    `limit` are the params `max_steps` and `failure` of `while_loop`.
    """
    avals = [value.aval for value in init]
    tested, step = closed(lambda *values: [test(*values)], avals, "test"), closed(body, avals, "step")
    counts = {"test_consts": len(tested.captured), "body_consts": len(step.captured)}
    operands = *tested.captured, *step.captured, *init
    params = {"max_steps": None, **counts, **limit}
    return list(while_loop(*operands, **params, regions=(tested.program, step.program))[: len(init)])


def demand(x: Symbol, holds: Symbol, failure: Failure) -> Symbol:
    """Return x, floats, where `holds`; else end in the failure. It is a loop that may not take its first step."""
    return repeat(lambda x: bitwise_not(holds), lambda x: [full_like(x, np.nan)], [x], max_steps=0, failure=failure)[0]


def over(body: Function, init: Values, rows: Values, *, reverse: bool = False) -> list[Symbol]:
    """Return (carry…, ys…) of `body(*carry, *row) -> (carry…, y…)` over the rows of one array or more."""
    avals = [*[value.aval for value in init], *[row.aval.with_shape(row.shape[1:]) for row in rows]]
    step = closed(body, avals, "step")
    params = {"consts": len(step.captured), "carry": len(init), "length": rows[0].shape[0], "reverse": reverse}
    return list(scan(*step.captured, *init, *rows, **params, regions=(step.program,)))


def scaled(factor: Symbol, x: Symbol) -> Symbol:
    """Return x times a scalar."""
    return mul(broadcast_to(factor, x.shape), x)


class Flat(NamedTuple):
    """How values of these avals lie in one vector, of the dtype they promote to."""

    avals: tuple[Aval, ...]

    @classmethod
    def of(cls, avals: Sequence[Aval]) -> Flat:
        """Return the layout of these avals, one after the other."""
        return cls(tuple(avals))

    @property
    def aval(self) -> Aval:
        """The aval of the vector."""
        dtype = max((aval.dtype for aval in self.avals), key=lambda dtype: dtype.itemsize)
        return Aval(dtype, (sum(aval.size for aval in self.avals),))

    def ravel(self, values: Values) -> Symbol:
        """Return the values as one vector."""
        dtype = self.aval.dtype
        pieces = [reshape_to(convert_to(value, dtype), (value.aval.size,)) for value in values]
        return pieces[0] if len(pieces) == 1 else concatenate(*pieces, axis=0)

    def unravel(self, vector: Symbol) -> list[Symbol]:
        """Return the values that a vector holds."""
        values: list[Symbol] = []
        start = 0
        for aval in self.avals:
            piece = slice_axis(vector, 0, start, start + aval.size)
            values.append(reshape_to(convert_to(piece, aval.dtype), aval.shape))
            start += aval.size
        return values
