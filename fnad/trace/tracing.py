"""Tracing: a Python function, run once on traced values, becomes a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ArgumentTypeError, DtypeError
from fnad.ir.builder import Builder, Captured
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.numpy.operands import HalfSymbol, as_symbol, as_weak
from fnad.trace import callbacks, log, objects  # noqa: F401 - for what they enter
from fnad.trace.capture import Array, Guard, Trace, Write
from fnad.trace.containers import misused
from fnad.trace.escape import forget_escape, hidden_escape, refused
from fnad.trace.hooks import replaced
from fnad.trace.shadow import Raised
from fnad.trace.tracer import Tracer
from fnad.trace.user_methods import exchanged


class Traced(NamedTuple):
    """The findings of a trace.

    `program` takes the leaves, then the values of `captured`: what was drawn, what arrays contained when they were
    first used, or symbols of the trace around this one. `guards` are what Python was told of values of the program.
    `baked` has the arrays that shapes in the program depend on (masks, numbers of repetitions), each with its content.
    `writes` are those into traced arrays.
    """

    program: Program
    captured: tuple[Captured, ...]
    guards: tuple[Guard, ...]
    baked: tuple[tuple[Array, Array], ...]
    writes: tuple[Write, ...]


def trace_function(
    call: Callable[[list[Tracer]], Sequence[Any]],
    avals: Sequence[Aval],
    *,
    name: str,
    weak: Sequence[bool] = (),
    arrays: Sequence[bool] = (),
    values: Sequence[Captured | None] = (),
    raised: Callable[[Builder], Raised] = Raised,
) -> Traced:
    """Run `call` on one tracer for each aval and return the program of what it returned; it calls the user's by `seen`.

    `weak` marks leaves that stand for Python numbers (of shape ()), `arrays` those that stand for arrays without
    dimensions, which can be written to. `values` are what the leaves stand for this time, where that is known, else
    None: Python may decide by them; `raised` makes those of the trace around this one. `call` returns the leaves of its
    result: traced values, arrays, numbers. Raises `ArgumentTypeError` for a leaf that is none of these, and whatever
    `call` raises.
    """
    trace = Trace(raised)
    start = log.begin_trace() if trace.outer is None else perf_counter()
    with exchanged(), trace.active():
        if values:
            pairs = zip(avals, values, strict=True)
            symbols = [trace.input(aval) if v is None else trace.argument(aval, v) for aval, v in pairs]
        else:
            symbols = [trace.input(aval) for aval in avals]
        none = [False] * len(avals)
        leaves = list(map(_argument, symbols, weak or none, arrays or none))
        results = _run(replaced(call), leaves)
        program = trace.finish(name, [symbol_of(result) for result in results])
    log.traced(program, perf_counter() - start, is_outermost=trace.outer is None)
    if trace.guards:
        program = Program(program.name, program.inputs, program.equations, program.outputs, frozenset(trace.guards))
    guards, baked, writes = trace.guards.values(), trace.baked, trace.writes
    return Traced(program, (*trace.drawn, *trace.captured), tuple(guards), tuple(baked), tuple(writes))


def _run(call: Callable[[list[Tracer]], Sequence[Any]], leaves: list[Tracer]) -> Sequence[Any]:
    forget_escape()
    try:
        return call(leaves)
    except Exception as error:
        escape = hidden_escape(error) or refused(error) or misused(error)
        if escape is None:
            raise
        raise escape from error


def _argument(symbol: Symbol, weak: bool, is_array: bool) -> Tracer:
    if weak:
        symbol = as_weak(symbol)
    return Tracer(symbol, is_scalar=weak or not (symbol.shape or is_array))


RESULT = "the body of a loop, a branch or vmap gives float16, which is not supported"


def symbol_of(value: Any) -> Symbol:
    """The symbol of a traced value, an array or a number, in the trace under way."""
    if isinstance(value, Tracer):
        if type(value.symbol) is HalfSymbol:
            raise DtypeError.here(RESULT, remedy="convert it with astype(np.float32)")
        return value.symbol
    if isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
        return as_symbol(value)
    raise ArgumentTypeError(
        f"a traced function returned {type(value).__name__}, which is not an array or a number",
        remedy="return arrays and numbers, in tuples, lists and dicts",
    )
