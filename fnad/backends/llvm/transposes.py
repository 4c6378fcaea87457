"""Loops along columns of a row-major matrix, in blocks that are transposed in registers before the loops read them.

LLVM makes a vector of elements that lie apart one by one. Here a block of eight rows of the result reads a copy, whose
squares of eight rows and columns are vectors that shuffles transpose:

    for i in range(a, b, 8):
        tile[:, :] = x[:, i : i + 8].T
        for r in range(i, i + 8):
            for c in range(n):
                out[n * r + c] = tile[r - i, c] + 1.0

The last rows, if they are fewer, and the last columns are loops as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Instructions, Kinds, Value, Values
from fnad.backends.llvm.loop_hints import step_of
from fnad.kernel import statements as code
from fnad.kernel.scratch import LOCAL_ARRAYS, makes_array
from fnad.lower.target import Target
from fnad.scalar.operation import INDEX, Operation, Pointer

SIDE = 8
"""The rows and columns of a square."""

WIDEST = 32
"""The most columns of a tile, which is in the first-level cache with the lines that it is copied from."""


def square(source: Any, first: int, step: int, tile: Any, place: int, width: int) -> None:
    """Eight neighbours in each of eight lines of an array, `step` elements apart, as columns of a tile."""
    lines = [source[first + line * step :][:SIDE] for line in range(SIDE)]
    for row, column in enumerate(zip(*lines, strict=True)):
        tile[place + row * width :][:SIDE] = column


SQUARE = Operation("transposed_square", lambda *kinds: None, square)


def are_fast(target: Target) -> bool:
    """True if a row of a square of doubles is one vector: of narrower ones a square has too many for the registers."""
    return SQUARE.name in target.instructions and target.lanes >= 2 * SIDE


def in_blocks(loop: code.For) -> list[code.Statement] | None:
    """The statements of a loop over rows that reads along columns; None of another one."""
    inner = [statement for statement in loop.body if not isinstance(statement, code.Comment)]
    if len(inner) != 1 or not isinstance(column := inner[0], code.For) or not _are_plain(loop, column):
        return None
    columns = column.counted
    if columns is None or len(columns) < 2 * SIDE or (loop.counted is not None and len(loop.counted) < SIDE):
        return None
    found = _apart(loop.counter, column, len(columns))
    if not found:
        return None
    block = code.Name(f"{loop.counter.name}_block", INDEX)
    rows = code.For(loop.counter, block, block + SIDE, 1)
    tiled = _tiled(rows, column, columns, found)
    rest = code.For(loop.counter, block, loop.stop, 1, loop.body, code.LoopKind.SPAN)
    whole = code.If(loop.stop - block >= SIDE, tiled, [rest])
    return [code.For(block, loop.start, loop.stop, SIDE, [whole])]


def _are_plain(*loops: code.For) -> bool:
    return all(loop.kind is code.LoopKind.PLAIN and loop.step == 1 for loop in loops)


def _apart(row: code.Name, column: code.For, count: int) -> dict[code.Load, int]:
    """The loads along columns, with the elements from one line to the next.

    None are found if an iteration may depend on another one, or if an index is computed.
    """
    stores, assigned = code.stores(column.body), set[code.Name]()
    for statement in column.body:
        match statement:
            case code.Assign(targets) if not makes_array(statement):
                assigned |= {*targets}
            case code.Store(_, index) if step_of(index, column.counter) == 1:
                rows = step_of(index, row)
                if rows is None or rows < count:
                    return {}
            case code.Comment():
                pass
            case _:
                return {}
    loads = code.loads(column.body)
    arrays = [store.array for store in stores]
    if len({*arrays}) < len(arrays) or not {*arrays}.isdisjoint(load.array for load in loads):
        return {}
    if not assigned.isdisjoint(name for access in (*stores, *loads) for name in code.names_read(access.index)):
        return {}
    numbers = [load for load in loads if load.dtype.kind in "iuf" and load.dtype.itemsize in (4, 8)]
    steps = {load: step_of(load.index, column.counter) for load in numbers}
    return {
        load: step for load, step in steps.items() if step and abs(step) >= SIDE and step_of(load.index, row) in (1, -1)
    }


def _tiled(rows: code.For, column: code.For, columns: range, found: Mapping[code.Load, int]) -> list[code.Statement]:
    """The statements for a block of rows: tiles of columns, one narrower tile, and fewer than eight columns."""
    first, long, rest = columns.start, len(columns) - len(columns) % WIDEST, len(columns) % SIDE
    start = code.Name(f"{column.counter.name}_first", INDEX)
    middle, last = first + long, columns.stop - rest
    statements: list[code.Statement] = []
    if long:
        tiles = _tile(rows, column, start, WIDEST, found)
        statements.append(code.For(start, code.integer(first), code.integer(middle), WIDEST, tiles))
    if middle < last:
        statements += _tile(rows, column, code.integer(middle), last - middle, found)
    if rest:
        alone = code.For(column.counter, code.integer(last), column.stop, 1, column.body)
        statements.append(rows.with_bodies(lambda _: [alone]))
    return statements


def _tile(
    rows: code.For, column: code.For, start: code.Expression, width: int, found: Mapping[code.Load, int]
) -> list[code.Statement]:
    """The statements for so many columns of a block of rows."""
    here, stop = code.Name(f"{column.counter.name}_square", INDEX), start + width
    statements: list[code.Statement] = []
    copies: list[code.Statement] = []
    within: dict[code.Expression, code.Expression] = {}
    for number, (load, step) in enumerate(found.items()):
        tile = code.Name(f"{rows.counter.name}_tile{number}_{width}", Pointer(load.dtype))
        statements.append(code.Assign((tile,), code.apply(LOCAL_ARRAYS[load.dtype], code.integer(SIDE * width))))
        is_upward = step_of(load.index, rows.counter) == 1
        least, line = (
            (rows.start, rows.counter - rows.start) if is_upward else (rows.stop - 1, rows.stop - 1 - rows.counter)
        )
        first = _replaced(load.index, {rows.counter: least, column.counter: here})
        numbers = first, code.integer(step), tile, here - start, code.integer(width)
        copies.append(code.Evaluate(code.apply(SQUARE, load.array, *numbers)))
        within[load] = code.Load(tile, line * width + (column.counter - start), load.source)
    body = [statement.with_operands(partial(_replaced, by=within)) for statement in column.body]
    inner = code.For(column.counter, start, stop, 1, body)
    return [*statements, code.For(here, start, stop, SIDE, copies), rows.with_bodies(lambda _: [inner])]


def _replaced(given: code.Expression, by: Mapping[code.Expression, code.Expression]) -> code.Expression:
    """An expression with parts replaced."""
    return by[given] if given in by else given.with_parts(partial(_replaced, by=by))


# ---- instructions ------------------------------------------------------------------------------------------------


def copy(builder: Builder, kinds: Kinds, values: Values) -> None:
    source, first, step, tile, place, width = values
    here, there = builder.gep(source, [first], inbounds=True), builder.gep(tile, [place], inbounds=True)
    copy_square(builder, here, there, step.constant, width.constant)


def copy_square(builder: Builder, source: Value, target: Value, step: int, width: int) -> None:
    """Copy a square to a place; lines of the source are `step` elements apart, rows of the target `width`."""
    size = 4  # each number is a multiple
    vectors = [builder.load(_vector(builder, source, line * step), align=size) for line in range(SIDE)]
    for row, vector in enumerate(transposed(builder, vectors)):
        builder.store(vector, _vector(builder, target, row * width), align=size)


def _vector(builder: Builder, place: Value, distance: int) -> Value:
    """The place of a vector so many elements behind another place."""
    pointer = builder.gep(place, [ir.IntType(64)(distance)], inbounds=True)
    return builder.bitcast(pointer, ir.VectorType(place.type.pointee, SIDE).as_pointer())


def transposed(builder: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of a square, whose quarters change places, then the quarters of these, and so on."""
    rows, lanes = [*rows], range(len(rows))
    width = len(rows) // 2
    while width:
        for upper in (row for row in lanes if not row & width):
            a, b = rows[upper], rows[upper + width]
            for row, shift in ((upper, 0), (upper + width, width)):
                mask = [(lane & ~width) + shift + (len(rows) if lane & width else 0) for lane in lanes]
                rows[row] = builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(rows)), mask))
        width //= 2
    return rows


INSTRUCTIONS: Instructions = {SQUARE.name: copy}
