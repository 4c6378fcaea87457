"""Unrolling: a short loop that runs often, within others, becomes its iterations, one after the other.

Then what the iterations store in a small array, a vector of three or a matrix of two by two, is at addresses that
differ by numbers, so store forwarding makes variables of its elements. Indices are in a form in which that is seen: the
number comes last. Branches on the counter are decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import count
from math import inf
from typing import TypeAlias

import numpy as np

from fnad.kernel import statements as code
from fnad.scalar.operation import INDEX, Operation, Pointer
from fnad.scalar.operations import (
    ADD,
    AND,
    EQUAL,
    GREATER_EQUAL,
    LESS,
    MULTIPLY,
    NEGATIVE,
    NOT_EQUAL,
    STRONG_MULTIPLY,
    SUBTRACT,
)
from fnad.scalar.template import CASTS, cast_to

MOST = 4
"""The most iterations of a loop that is unrolled."""

SELDOM = 4
"""So many runs of a loop are few: to unroll it takes longer than all of them."""

LARGEST = 256
"""The most statements that unrolling adds: more take longer to compile than they save."""

FAR = 2**62
"""Numbers in indices are smaller; user's integers may not be, and wrap."""

FOLDED = frozenset(
    {ADD, SUBTRACT, MULTIPLY, NEGATIVE, LESS, GREATER_EQUAL, EQUAL, NOT_EQUAL, AND, *map(cast_to, CASTS)}
)
"""The operations on numbers that are folded: addresses, conditions of branches, and elements of an identity."""

Names: TypeAlias = Mapping[str, code.Expression]
"""The replacements of variables."""


def unroll(statements: Sequence[code.Statement]) -> list[code.Statement]:
    """The statements of a kernel with short loops within others unrolled."""
    return _Unrolling(statements).block(statements, 1)


class _Unrolling:
    """The pass; what only a loop assigns has another name in each iteration."""

    def __init__(self, statements: Sequence[code.Statement]) -> None:
        self.assigned = Counter(code.assigned(statements))
        self.numbers = count()

    def block(self, statements: Sequence[code.Statement], runs: float) -> list[code.Statement]:
        return [found for statement in statements for found in self.statement(statement, runs)]

    def statement(self, statement: code.Statement, runs: float) -> list[code.Statement]:
        """A statement that runs so many times, at most."""
        inside = runs * _iterations(statement)
        statement = statement.with_bodies(lambda body: self.block(body, inside))
        if not (runs > SELDOM and isinstance(statement, code.For) and (counted := _short(statement)) is not None):
            return [statement]
        inner = Counter(code.assigned(statement.body))
        own = {name: times for name, times in inner.items() if times == self.assigned[name]}
        self.assigned -= inner
        parts = [part for number in counted for part in self.iteration(statement, number, own)]
        self.assigned.update(code.assigned(parts))
        return parts

    def iteration(self, loop: code.For, number: int, own: Mapping[code.Name, int]) -> Iterator[code.Statement]:
        suffix = f"u{next(self.numbers)}"
        names: dict[str, code.Expression] = {name.name: code.Name(name.name + suffix, name.kind) for name in own}
        once = {name.name for name, times in own.items() if times == 1}
        return _replaced(loop.body, {**names, loop.counter.name: code.integer(number)}, once)


def iteration_of(
    statements: Sequence[code.Statement], counter: code.Name, value: code.Expression, suffix: str
) -> list[code.Statement]:
    """The statements with a value for a counter, and with other names for what they assign."""
    own = {name.name: code.Name(name.name + suffix, name.kind) for name in code.assigned(statements)}
    return list(_replaced(statements, {**own, counter.name: value}, ()))


def _iterations(statement: code.Statement) -> float:
    """The most runs of the blocks in a statement."""
    match statement:
        case code.For():
            return inf if statement.counted is None else len(statement.counted)
        case code.While():
            return inf
        case _:
            return 1


def _short(loop: code.For) -> range | None:
    """The values of the counter of a loop of a few iterations of little, without loops or arrays of its own."""
    counted = loop.counted
    if loop.is_parallel or counted is None:
        return None
    inner = [statement for statement in code.walk(loop.body) if not isinstance(statement, code.Comment)]
    is_straight = not any(
        isinstance(s, code.For | code.While | code.Break | code.Return | code.Evaluate) for s in inner
    )
    has_arrays = any(isinstance(name.kind, Pointer) for name in code.assigned(loop.body))
    is_little = len(counted) <= MOST and (len(counted) - 1) * len(inner) <= LARGEST
    return counted if is_straight and is_little and not has_arrays else None


def _replaced(
    statements: Sequence[code.Statement], names: dict[str, code.Expression], own: Container[str]
) -> Iterator[code.Statement]:
    """The statements with other expressions for variables, and without branches that are decided by that."""
    for given in statements:
        statement = given.with_operands(lambda expression: _expression(expression, names))
        match statement:
            case code.If(code.Constant(value), then, otherwise):
                yield from _replaced(then if value else otherwise, names, own)
            case code.Assign((code.Name(name, _),), code.Constant() as number) if name in own:
                names[name] = number
            case code.Assign(targets, value):
                yield code.Assign(tuple(_target(target, names) for target in targets), value)
            case _:
                yield statement.with_bodies(lambda body: list(_replaced(body, names, own)))


def _target(target: code.Name, names: Names) -> code.Name:
    found = names.get(target.name, target)
    assert isinstance(found, code.Name)
    return found


def _expression(given: code.Expression, names: Names) -> code.Expression:
    if isinstance(given, code.Name):
        return names.get(given.name, given)
    changed = given.with_parts(lambda part: _expression(part, names))
    return _folded(changed) if isinstance(changed, code.Apply) else changed


def _folded(given: code.Apply) -> code.Expression:
    """A number for an operation on numbers, and an index with its numbers added up; another expression as it is."""
    operation, operands = given.operation, given.operands
    numbers = [operand.value for operand in operands if isinstance(operand, code.Constant)]
    if len(numbers) == len(operands) and operation in FOLDED and isinstance(given.kind, np.dtype):
        with np.errstate(all="ignore"):
            return code.Constant(given.kind.type(operation.plain(*numbers)))
    if operation is STRONG_MULTIPLY and isinstance(operands[0], code.Constant):
        return _scaled(operands[0].value, operands[1]) or given
    if given.kind != INDEX or operation not in (ADD, SUBTRACT):
        return given
    (left, m), (right, n) = map(split, operands)
    number = m + n if operation is ADD else m - n
    return given if abs(number) >= FAR else _plus(_joined(operation, left, right), number)


def _scaled(number: np.generic, value: code.Expression) -> code.Expression | None:
    """The product of a cotangent that is a number, where it needs no multiplication."""
    if number == 0:
        return code.Constant(number.dtype.type(0))
    return value if number == 1 and number.dtype.kind == "f" else None


def split(index: code.Expression) -> tuple[code.Expression | None, int]:
    """An index as an expression, None for 0, and a number that is added to it."""
    match index:
        case code.Constant(value):
            return None, int(value)
        case code.Apply(operation, (left, code.Constant(value)), _) if operation is ADD:
            return left, int(value)
        case code.Apply(operation, (left, code.Constant(value)), _) if operation is SUBTRACT:
            return left, -int(value)
        case _:
            return index, 0


def _joined(
    operation: Operation, left: code.Expression | None, right: code.Expression | None
) -> code.Expression | None:
    if left is None or right is None:
        return left if right is None else right if operation is ADD else -right
    return code.apply(operation, left, right)


def _plus(index: code.Expression | None, number: int) -> code.Expression:
    if index is None or not number:
        return code.integer(number) if index is None else index
    return code.apply(ADD if number > 0 else SUBTRACT, index, code.integer(abs(number)))
