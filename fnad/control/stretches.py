"""Loops in stretches, so that reverse mode keeps one carry a stretch: about √n stretches of √n steps.

Going back, a stretch is run again from its carry, and keeps the carries of its own steps only. Where nobody knows the
number of steps before, stretch j takes j steps: after k of them the loop is at step k (k + 1) / 2, so that again there
are of the order of √n stretches, none longer than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import TypeAlias

import numpy as np

from fnad.control.blocks import block_avals, in_blocks, scan_of
from fnad.control.checkpoint import checkpoint
from fnad.control.loop import Groups
from fnad.control.scan import scan
from fnad.control.while_loop import while_loop
from fnad.ir.builder import current_builder, inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ops.comparison import bitwise_and, gt
from fnad.ops.piecewise import minimum

Symbols: TypeAlias = Sequence[Symbol]


def boxed(program: Program) -> Program:
    """Return the program such that reverse mode keeps nothing of it but its inputs."""
    return trace(lambda *args: checkpoint(*args, regions=(program,)), *program.in_avals, name=program.name)


def scan_in_stretches(body: Program, groups: Groups, operands: Symbols, length: int, *, reverse: bool) -> list[Symbol]:
    """Return the results of a scan of the body, whose steps are boxed."""
    step = boxed(body)
    width = max(isqrt(length), 1)
    avals = block_avals(body, groups, width)
    stretch = boxed(trace(scan_of(step, groups, width, reverse=reverse), *avals, name=f"{body.name}_stretch"))
    return in_blocks(stretch, step, groups, operands, length, width, reverse=reverse)


# ---- of unknown length -----------------------------------------------------------------------------------------------


def count_in_stretches(body: Program, consts: Symbols, carry: Symbols, steps: Symbol) -> list[Symbol]:
    """Return the carry after so many steps of the body, which has no rows; they are boxed."""
    step = boxed(body)
    size = len(consts)
    params = {"consts": size, "carry": len(carry), "length": None, "reverse": False}

    def stretch(*args: Symbol) -> list[Symbol]:
        given, (number, left), state = args[:size], args[size : size + 2], args[size + 2 :]
        taken = minimum(number, left)
        return [number + 1, left - taken, *scan(taken, *given, *state, **params, regions=(step,))]

    numbers = Aval(I64), Aval(I64)
    avals = [*[c.aval for c in consts], *numbers, *[c.aval for c in carry]]
    regions = (
        trace(lambda _, left, *state: [gt(left, _zero())], *avals[size:], name="test"),
        boxed(trace(stretch, *avals, name=f"{body.name}_stretch")),
    )
    found = while_loop(*consts, _one(), steps, *carry, test_consts=0, body_consts=size, max_steps=None, regions=regions)
    return list(found[2 : 2 + len(carry)])


def while_in_stretches(
    test: Program, body: Program, test_consts: Symbols, consts: Symbols, carry: Symbols
) -> list[Symbol]:
    """Return the carry of a while loop, whose steps are boxed."""
    step = boxed(body)
    first, size = len(test_consts), len(test_consts) + len(consts)
    state_avals = [c.aval for c in carry]

    def goes_on(*args: Symbol) -> list[Symbol]:
        (holds,) = inline(test, [*args[:first], *args[first + 1 :]])
        return [bitwise_and(holds, gt(args[first], _zero()))]

    def one(*args: Symbol) -> list[Symbol]:
        given, left, state = args[: len(consts)], args[len(consts)], args[len(consts) + 1 :]
        return [left - 1, *inline(step, [*given, *state])]

    of_test, of_body = [c.aval for c in test_consts], [c.aval for c in consts]
    inner = (
        trace(goes_on, *of_test, Aval(I64), *state_avals, name=test.name),
        trace(one, *of_body, Aval(I64), *state_avals, name=body.name),
    )

    def stretch(*args: Symbol) -> list[Symbol]:
        given, number, state = args[:size], args[size], args[size + 1 :]
        found = while_loop(
            *given, number, *state, test_consts=first, body_consts=len(consts), max_steps=None, regions=inner
        )
        return [number + 1, *found[1 : 1 + len(carry)]]

    outer = (
        trace(
            lambda *args: inline(test, [*args[:first], *args[first + 1 :]]),
            *of_test,
            Aval(I64),
            *state_avals,
            name=test.name,
        ),
        boxed(trace(stretch, *of_test, *of_body, Aval(I64), *state_avals, name=f"{body.name}_stretch")),
    )
    found = while_loop(
        *test_consts,
        *test_consts,
        *consts,
        _one(),
        *carry,
        test_consts=first,
        body_consts=size,
        max_steps=None,
        regions=outer,
    )
    return list(found[1 : 1 + len(carry)])


def _zero() -> Symbol:
    return current_builder().literal(np.int64(0))


def _one() -> Symbol:
    return current_builder().literal(np.int64(1))
