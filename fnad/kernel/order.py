"""Loops whose iterations run one after the other, in no vectors."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from fnad.kernel import statements as code
from fnad.scalar.operation import Kind
from fnad.scalar.operations import ADD, DIVIDE, MULTIPLY, STRONG_MULTIPLY, SUBTRACT

ORDERED = frozenset({ADD, SUBTRACT, MULTIPLY, DIVIDE, STRONG_MULTIPLY})
"""Operations on floating-point numbers that LLVM may not put into another order."""

Cell: TypeAlias = "code.Name | tuple[code.Name, int | None]"
"""A variable, or an element of an array at a fixed place."""


class Origins(NamedTuple):
    """The cells, as the iteration before left them, that a value depends on; those by `arithmetic` in order."""

    cells: frozenset[Cell] = frozenset()
    arithmetic: frozenset[Cell] = frozenset()


def is_unvectorised(loop: code.For) -> bool:
    """True if LLVM cannot vectorise a loop.

    A branch leaves it, or stores at a place that the iterations share, such as a fault; or a number that it carries is
    computed of itself.
    """
    changing = {loop.counter, *code.assigned(loop.body)}
    inside = code.walk([statement for statement in code.walk(loop.body) if isinstance(statement, code.If)])
    return any(_is_for_all(statement, changing) for statement in inside) or _is_recurrent(loop)


def _is_for_all(statement: code.Statement, changing: set[code.Name]) -> bool:
    """True if a statement leaves the loop, or stores at a place that the iterations share."""
    if isinstance(statement, code.Store):
        return changing.isdisjoint(code.subexpressions(statement.index))
    return isinstance(statement, (code.Break, code.Return))


def _is_recurrent(loop: code.For) -> bool:
    changing: set[Cell] = {*code.assigned(loop.body), *((s.array, s.index.number) for s in code.stores(loop.body))}
    known = dict[Cell, Origins]()
    for statement in loop.body:
        match statement:
            case code.Assign((target,), value):
                cell: Cell = target
            case code.Store(array, code.Constant(index), value):
                cell = array, int(index)
            case _:
                continue
        origins = _origins(value, known, changing)
        if cell in origins.arithmetic:
            return True
        known[cell] = origins
    return False


def _origins(value: code.Expression, known: dict[Cell, Origins], changing: set[Cell]) -> Origins:
    match value:
        case code.Apply(operation, operands, kind):
            found = {_origins(operand, known, changing) for operand in operands}
            cells = frozenset[Cell]().union(*(origins.cells for origins in found))
            arithmetic = frozenset[Cell]().union(*(origins.arithmetic for origins in found))
            return Origins(cells, arithmetic | cells if operation in ORDERED and is_float(kind) else arithmetic)
        case code.Name():
            cell: Cell = value
        case code.Load(array, code.Constant(index)):
            cell = array, int(index)
        case _:
            return Origins()
    return known.get(cell) or Origins(frozenset({cell} & changing))


def is_float(kind: Kind) -> bool:
    return isinstance(kind, np.dtype) and kind.kind == "f"
