"""Loops whose iterations run one after the other, in no vectors."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from fnad.kernel.statements import (
    Apply,
    Assign,
    Break,
    Constant,
    Expression,
    For,
    If,
    Load,
    Name,
    Return,
    Statement,
    Store,
    assigned,
    subexpressions,
    walk,
)
from fnad.records import NamedTuple
from fnad.scalar.operation import Kind
from fnad.scalar.operations import ADD, DIVIDE, MULTIPLY, STRONG_MULTIPLY, SUBTRACT

ORDERED = frozenset({ADD, SUBTRACT, MULTIPLY, DIVIDE, STRONG_MULTIPLY})
"""Operations on floating-point numbers that LLVM may not put into another order."""

Cell: TypeAlias = "Name | tuple[Name, int]"
"""A variable, or an element of an array at a fixed place."""


class Origins(NamedTuple):
    """The cells, as the iteration before left them, that a value depends on; those by `arithmetic` in order."""

    cells: frozenset[Cell] = frozenset()
    arithmetic: frozenset[Cell] = frozenset()


def is_unvectorised(loop: For) -> bool:
    """True if LLVM cannot vectorise a loop.

    A branch leaves it, or stores at a place that the iterations share, such as a fault; or a number that it carries is
    computed of itself.
    """
    changing = {loop.counter, *assigned(loop.body)}
    inside = walk([statement for statement in walk(loop.body) if isinstance(statement, If)])
    return any(_is_for_all(statement, changing) for statement in inside) or _is_recurrent(loop)


def _is_for_all(statement: Statement, changing: set[Name]) -> bool:
    """True if a statement leaves the loop, or stores at a place that the iterations share."""
    if isinstance(statement, Store):
        return changing.isdisjoint(subexpressions(statement.index))
    return isinstance(statement, (Break, Return))


def _is_recurrent(loop: For) -> bool:
    changing, known = {*assigned(loop.body)}, dict[Cell, Origins]()
    for statement in loop.body:
        match statement:
            case Assign((target,), value):
                cell: Cell = target
            case Store(array, Constant(index), value):
                cell = array, int(index)
            case _:
                continue
        origins = _origins(value, known, changing)
        if cell in origins.arithmetic:
            return True
        known[cell] = origins
    return False


def _origins(value: Expression, known: dict[Cell, Origins], changing: set[Name]) -> Origins:
    match value:
        case Name() if value in changing:
            return known.get(value) or Origins(frozenset({value}))
        case Load(array, Constant(index)):
            cell = array, int(index)
            return known.get(cell) or Origins(frozenset({cell}))
        case Apply(operation, operands, kind):
            found = [_origins(operand, known, changing) for operand in operands]
            cells = frozenset[Cell]().union(*(origins.cells for origins in found))
            arithmetic = frozenset[Cell]().union(*(origins.arithmetic for origins in found))
            return Origins(cells, arithmetic | cells if operation in ORDERED and is_float(kind) else arithmetic)
        case _:
            return Origins()


def is_float(kind: Kind) -> bool:
    return isinstance(kind, np.dtype) and kind.kind == "f"
