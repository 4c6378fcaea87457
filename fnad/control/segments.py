"""Loops in segments, so that reverse mode saves one carry a segment: about √n segments of √n steps.

Going back, a segment is run again from its carry, and saves the carries of its own steps only. Where nobody knows the
number of steps before, segment j takes j steps: after k of them the loop is at step k (k + 1) / 2, so that again there
are of the order of √n segments, none longer than that.
"""

from __future__ import annotations

from functools import partial
from math import isqrt

from fnad.control.blocks import block_avals, in_blocks
from fnad.control.checkpoint import checkpoint
from fnad.control.closures import Function, closed, repeat
from fnad.control.loop import Groups
from fnad.control.scan import bind_scan
from fnad.control.signatures import Symbols
from fnad.ir.builder import inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.ops.comparison import bitwise_and, gt
from fnad.ops.piecewise import minimum
from fnad.ops.shape import constant, zeros_like


def checkpointed(program: Program) -> Program:
    """The program such that reverse mode saves nothing of it but its inputs."""
    return trace(lambda *args: checkpoint(*args, regions=(program,)), *program.in_avals, name=program.name)


def scan_in_segments(body: Program, groups: Groups, operands: Symbols, length: int, *, reverse: bool) -> list[Symbol]:
    """The results of a scan of the body, whose steps are checkpointed."""
    step = checkpointed(body)
    width = max(isqrt(length), 1)

    def run(*args: Symbol) -> list[Symbol]:
        return bind_scan(step, groups, (), args, width, reverse)

    segment = checkpointed(trace(run, *block_avals(body, groups, width), name=f"{body.name}_segment"))
    return in_blocks(segment, step, groups, operands, length, width, reverse=reverse)


# ---- of unknown length -----------------------------------------------------------------------------------------------


def count_in_segments(body: Program, consts: Symbols, carry: Symbols, steps: Symbol) -> list[Symbol]:
    """The carry after so many steps of the body, which has no rows; they are checkpointed."""
    step, groups = checkpointed(body), Groups(len(consts), len(carry), 0)

    def segment(number: Symbol, left: Symbol, *state: Symbol) -> list[Symbol]:
        taken = minimum(number, left)
        return [number + 1, left - taken, *bind_scan(step, groups, [taken], [*consts, *state], None, reverse=False)]

    init = [constant(1, I64), steps, *carry]
    return repeat(lambda _, left, *state: _is_positive(left), partial(_recomputed, segment), init)[2:]


def while_in_segments(
    test: Program, body: Program, test_consts: Symbols, consts: Symbols, carry: Symbols
) -> list[Symbol]:
    """The carry of a while loop, whose steps are checkpointed."""
    step = checkpointed(body)

    def goes_on(_: Symbol, *state: Symbol) -> Symbol:
        return inline(test, [*test_consts, *state])[0]

    def segment(number: Symbol, *state: Symbol) -> list[Symbol]:
        _, *found = repeat(
            lambda left, *state: bitwise_and(goes_on(left, *state), _is_positive(left)),
            lambda left, *state: [left - 1, *inline(step, [*consts, *state])],
            [number, *state],
        )
        return [number + 1, *found]

    return repeat(goes_on, partial(_recomputed, segment), [constant(1, I64), *carry])[1:]


def _recomputed(segment: Function, *values: Symbol) -> list[Symbol]:
    """The function, of which reverse mode saves nothing but what it is given."""
    found = closed(segment, [value.aval for value in values], "segment")
    return list(checkpoint(*found.captured, *values, regions=(found.program,)))


def _is_positive(number: Symbol) -> Symbol:
    return gt(number, zeros_like(number))
