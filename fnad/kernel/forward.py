"""Store forwarding: a load of what was stored before, at the same address, is the value that was stored.

A stored value is known if it is a constant or a variable that is assigned once. A store to an array ends what is known
of its other elements, except at addresses that differ by a number; so does a loop that stores into it, before its
first iteration and after its last, and a call that writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from fnad.kernel.routines import GEMM, GEMV
from fnad.kernel.statements import (
    Apply,
    Assign,
    Constant,
    Evaluate,
    Expression,
    For,
    If,
    Load,
    Name,
    Statement,
    Store,
    While,
    assigned,
    subexpressions,
    walk,
)
from fnad.kernel.unroll import split
from fnad.scalar.operation import Pointer

Key: TypeAlias = tuple[Expression | None, int]
"""An address: what it is computed from, and a number that is added to that."""

Known: TypeAlias = dict[str, dict[Key, Expression]]
"""The values stored, by array and address."""


def forward(statements: Sequence[Statement]) -> list[Statement]:
    """The statements with loads of stored values replaced."""
    return _Forwarding(statements).block(statements, {})


class _Forwarding:
    """The pass; `aliases` are the variables that were loaded, with what was stored there."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.assignments = Counter(target.name for target in assigned(statements))
        self.aliases: dict[str, Expression] = {}

    def block(self, statements: Sequence[Statement], known: Known) -> list[Statement]:
        found = (self.statement(statement.with_operands(self.renamed), known) for statement in statements)
        return [statement for statement in found if statement is not None]

    def statement(self, statement: Statement, known: Known) -> Statement | None:
        match statement:
            case Assign(targets, Load(array, index)):
                stored = None if (key := _key(index)) is None else known.get(array.name, {}).get(key)
                return statement if stored is None else self.alias(targets, stored)
            case Store(array, index, value):
                key, elements = _key(index), self.apart(known.get(array.name, {}), index)
                known[array.name] = elements | {key: value} if key is not None and self.stays(value) else elements
            case Evaluate(call):
                _forget(written(call), known)
            case For() | While() | If():
                return self.nested(statement, known)
            case _:
                pass
        return statement

    def apart(self, elements: Mapping[Key, Expression], index: Expression) -> dict[Key, Expression]:
        """The elements at addresses that differ from this one by a number: any others may be equal to it."""
        names = (part.name for part in subexpressions(index) if isinstance(part, Name))
        key = _key(index)
        if key is None or any(self.assignments[name] > 1 for name in names):
            return {}
        base, number = key
        return {other: value for other, value in elements.items() if other[0] == base and other[1] != number}

    def stays(self, value: Expression) -> bool:
        """True if a value is the same wherever it is read."""
        return isinstance(value, Constant) or (isinstance(value, Name) and self.assignments[value.name] == 1)

    def alias(self, targets: tuple[Name, ...], stored: Expression) -> Statement | None:
        """Replace a variable by what was stored; one that is assigned elsewhere too is assigned here."""
        (target,) = targets
        if self.assignments[target.name] > 1:
            return Assign(targets, stored)
        self.aliases[target.name] = stored
        return None

    def renamed(self, expression: Expression) -> Expression:
        if isinstance(expression, Name):
            return self.aliases.get(expression.name, expression)
        return expression.with_parts(self.renamed)

    def nested(self, statement: For | While | If, known: Known) -> Statement:
        """A loop or a branch; after it nothing is known of the arrays that it writes."""
        arrays = set(stored_arrays([statement]))
        # The first iteration may find what was stored before the loop, the others what they stored themselves.
        if not isinstance(statement, If):
            _forget(arrays, known)
        inner = statement.with_bodies(lambda body: self.block(body, _copy(known)))
        _forget(arrays, known)
        return inner


def _key(index: Expression) -> Key | None:
    """A key that equal addresses share; None for one computed from a load, because the load may change."""
    return None if any(isinstance(part, Load) for part in subexpressions(index)) else split(index)


def _copy(known: Known) -> Known:
    return {array: dict(elements) for array, elements in known.items()}


def _forget(arrays: Iterable[str], known: Known) -> None:
    for array in arrays:
        known.pop(array, None)


def stored_arrays(statements: Sequence[Statement]) -> Iterator[str]:
    """The names of the arrays that statements write."""
    for statement in walk(statements):
        if isinstance(statement, Store):
            yield statement.array.name
        elif isinstance(statement, Evaluate):
            yield from written(statement.call)


def written(call: Apply) -> list[str]:
    """The arrays that a routine may write: of a matrix product the last of its operands, else any of them."""
    arrays = [o.name for o in call.operands if isinstance(o, Name) and isinstance(o.kind, Pointer)]
    return arrays[-1:] if call.operation in (GEMM, GEMV) else arrays
