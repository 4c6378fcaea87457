"""Scans in blocks: a loop over blocks of a few steps each, and one over the steps that are left.

A block is a body of its own, which takes as many rows of each array as it takes steps; it may be those steps one after
the other, in straight-line code, or a loop.
"""

from __future__ import annotations

from fnad.control.loop import Groups
from fnad.control.rows import raised, row
from fnad.control.scan import bind_scan
from fnad.control.signatures import Symbols
from fnad.ir.builder import inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.shape import concatenate, reshape_to, slice_axis


def in_blocks(
    block: Program, step: Program, groups: Groups, operands: Symbols, length: int, width: int, *, reverse: bool
) -> list[Symbol]:
    """The results of a scan over `length` rows, `width` of them in a block."""
    consts, carry, xs = groups.split(operands)
    count, whole = groups.carry, length // width * width
    head = [reshape_to(slice_axis(x, 0, 0, whole), (whole // width, width, *x.shape[1:])) for x in xs]
    tail = [slice_axis(x, 0, whole, length) for x in xs]

    def run(body: Program, carry: Symbols, xs: Symbols, steps: int) -> list[Symbol]:
        return bind_scan(body, groups, (), [*consts, *carry, *xs], steps, reverse)

    if reverse:
        last = run(step, carry, tail, length - whole)
        first = run(block, last[:count], head, whole // width)
    else:
        first = run(block, carry, head, whole // width)
        last = run(step, first[:count], tail, length - whole)
    rows = [_joined(y, z) for y, z in zip(first[count:], last[count:], strict=True)]
    return [*(first if reverse else last)[:count], *rows]


def block_avals(body: Program, groups: Groups, width: int) -> list[Aval]:
    """The operands of a block of so many steps of a body."""
    consts, carry, rows = groups.split(body.in_avals)
    return [*consts, *carry, *[aval.with_shape((width, *aval.shape)) for aval in rows]]


def unrolled(body: Program, groups: Groups, width: int, *, reverse: bool) -> Program:
    """The block that takes its steps one after the other."""
    order = range(width)[::-1] if reverse else range(width)

    def run(*args: Symbol) -> list[Symbol]:
        consts, state, xs = groups.split(args)
        rows: dict[int, Symbols] = {}
        for i in order:
            found = inline(body, [*consts, *state, *[row(x, i) for x in xs]])
            state, rows[i] = found[: groups.carry], found[groups.carry :]
        ys = zip(*[rows[i] for i in range(width)], strict=True)
        return [*state, *[concatenate(*map(raised, stack), axis=0) for stack in ys]]

    return trace(run, *block_avals(body, groups, width), name=f"{body.name}_block")


def _joined(blocks: Symbol, rest: Symbol) -> Symbol:
    rows = blocks.shape[0] * blocks.shape[1]
    return concatenate(reshape_to(blocks, (rows, *rest.shape[1:])), rest, axis=0)
