"""Store forwarding: a load of what was stored before, at the same address, is the value that was stored.

Known is what is stored from a constant or from a variable with one value. A store to an array ends what is known of
its other elements, for only equal addresses are compared; so does a loop that stores into it, before its first
iteration and after its last, and a call that writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

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
    walk,
    with_bodies,
    with_operands,
)
from fnad.scalar.operation import Pointer

Known: TypeAlias = dict[str, dict[Any, Expression]]
"""By array and address: what is there."""


def forward(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements with loads of stored values replaced."""
    return _Forwarding(statements).block(statements, {})


class _Forwarding:
    """The pass; `aliases` are the variables that were loaded, with what was stored there."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        assigned = (s.targets for s in walk(statements) if isinstance(s, Assign))
        self.assignments = Counter(target.name for targets in assigned for target in targets)
        self.aliases: dict[str, Expression] = {}

    def block(self, statements: Sequence[Statement], known: Known) -> list[Statement]:
        found = (self.statement(with_operands(statement, self.renamed), known) for statement in statements)
        return [statement for statement in found if statement is not None]

    def statement(self, statement: Statement, known: Known) -> Statement | None:
        match statement:
            case Assign(targets, Load(array, index)):
                stored = known.get(array.name, {}).get(_key(index))
                return statement if stored is None else self.alias(targets, stored)
            case Store(array, index, value):
                known[array.name] = {_key(index): value} if self.stays(value) else {}
            case Evaluate(call):
                known.pop(written(call).name, None)
            case For() | While() | If():
                return self.nested(statement, known)
            case _:
                pass
        return statement

    def stays(self, value: Expression) -> bool:
        """Say whether a value is the same wherever it is read."""
        return isinstance(value, Constant) or (isinstance(value, Name) and self.assignments[value.name] == 1)

    def alias(self, targets: tuple[Name, ...], stored: Expression) -> Statement | None:
        """Let a variable mean what was stored; one that has other values too is assigned."""
        (target,) = targets
        if self.assignments[target.name] > 1:
            return Assign(targets, stored)
        self.aliases[target.name] = stored
        return None

    def renamed(self, expression: Expression) -> Expression:
        match expression:
            case Name(name, _):
                return self.aliases.get(name, expression)
            case Load(array, index):
                return Load(array, self.renamed(index))
            case Apply(operation, inner, kind):
                return Apply(operation, tuple(map(self.renamed, inner)), kind)
            case _:
                return expression

    def nested(self, statement: For | While | If, known: Known) -> Statement:
        """Return a loop or a branch, after which nothing is known of the arrays that it writes."""
        arrays = set(stored_arrays([statement]))
        if not isinstance(statement, If):
            _forget(arrays, known)
        inner = with_bodies(statement, lambda body: self.block(body, _copy(known)))
        _forget(arrays, known)
        return inner


def _key(index: Expression) -> Any:
    """Return what equal addresses have in common; one that is loaded itself is like no other."""
    match index:
        case Name(name, _):
            return name
        case Constant(value):
            return int(value)
        case Apply(operation, inner, _):
            return (operation.name, *map(_key, inner))
        case Load():
            return object()


def _copy(known: Known) -> Known:
    return {array: dict(elements) for array, elements in known.items()}


def _forget(arrays: Iterable[str], known: Known) -> None:
    for array in arrays:
        known.pop(array, None)


def stored_arrays(statements: Sequence[Statement]) -> Iterator[str]:
    """Yield the names of the arrays that statements write."""
    for statement in walk(statements):
        if isinstance(statement, Store):
            yield statement.array.name
        elif isinstance(statement, Evaluate):
            yield written(statement.call).name


def written(call: Apply) -> Name:
    """Return the array that a routine writes: the last it is given."""
    *_, last = (o for o in call.operands if isinstance(o, Name) and isinstance(o.kind, Pointer))
    return last
