"""Scans in blocks: a loop over blocks of a few steps each, and one over the steps that are left.

A block is a body of its own, which takes as many rows of each array as it takes steps; it may be those steps one after
the other, in straight-line code, or a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fnad.control.loop import Groups
from fnad.control.scan import scan
from fnad.ir.builder import inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.shape import broadcast_in_dim, concatenate, reshape_to, slice_axis

Symbols: TypeAlias = Sequence[Symbol]


def in_blocks(
    block: Program, step: Program, groups: Groups, operands: Symbols, length: int, width: int, *, reverse: bool
) -> list[Symbol]:
    """Return the results of a scan over `length` rows, `width` of them in a block."""
    consts, carry, xs = groups.split(operands)
    count, whole = groups.carry, length // width * width
    head = [reshape_to(slice_axis(x, 0, 0, whole), (whole // width, width, *x.shape[1:])) for x in xs]
    tail = [slice_axis(x, 0, whole, length) for x in xs]
    blocks = scan_of(block, groups, whole // width, reverse=reverse)
    steps = scan_of(step, groups, length - whole, reverse=reverse)
    if reverse:
        last = steps(*consts, *carry, *tail)
        first = blocks(*consts, *last[:count], *head)
    else:
        first = blocks(*consts, *carry, *head)
        last = steps(*consts, *first[:count], *tail)
    rows = [_joined(y, z) for y, z in zip(first[count:], last[count:], strict=True)]
    return [*(first if reverse else last)[:count], *rows]


def scan_of(body: Program, groups: Groups, length: int, *, reverse: bool) -> Callable[..., list[Symbol]]:
    """Return the function that scans with this body."""
    params: dict[str, Any] = {"consts": groups.consts, "carry": groups.carry, "length": length, "reverse": reverse}
    return lambda *operands: list(scan(*operands, **params, regions=(body,)))


def block_avals(body: Program, groups: Groups, width: int) -> list[Aval]:
    """Return what a block of so many steps of a body takes."""
    consts, carry, rows = groups.split(body.in_avals)
    return [*consts, *carry, *[aval.with_shape((width, *aval.shape)) for aval in rows]]


def unrolled(body: Program, groups: Groups, width: int, *, reverse: bool) -> Program:
    """Return the block that takes its steps one after the other."""
    order = range(width)[::-1] if reverse else range(width)

    def run(*args: Symbol) -> list[Symbol]:
        consts, state, xs = groups.split(args)
        rows: dict[int, Symbols] = {}
        for i in order:
            found = inline(body, [*consts, *state, *[_row(x, i) for x in xs]])
            state, rows[i] = found[: groups.carry], found[groups.carry :]
        return [*state, *[_stacked([rows[i][j] for i in range(width)]) for j in range(len(rows[0]))]]

    return trace(run, *block_avals(body, groups, width), name=f"{body.name}_block")


def _row(x: Symbol, index: int) -> Symbol:
    return reshape_to(slice_axis(x, 0, index, index + 1), x.shape[1:])


def _stacked(rows: Symbols) -> Symbol:
    shape = (1, *rows[0].shape)
    raised = [broadcast_in_dim(row, shape=shape, dims=tuple(range(1, len(shape)))) for row in rows]
    return concatenate(*raised, axis=0)


def _joined(blocks: Symbol, rest: Symbol) -> Symbol:
    rows = blocks.shape[0] * blocks.shape[1]
    return concatenate(reshape_to(blocks, (rows, *rest.shape[1:])), rest, axis=0)
