"""Store forwarding: a load of what was stored before, at the same address, is the value that was stored.

A store to an array ends what is known of its other elements, for only equal addresses are compared; so does a loop that
stores into it, before its first turn and after its last, and a call that writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
)
from fnad.scalar.operation import Pointer

Known: TypeAlias = dict[str, dict[Any, Expression]]
"""By array and address: what is there."""


def forward(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements with loads of stored values replaced."""
    return _block(statements, {})


def _block(statements: Sequence[Statement], known: Known) -> list[Statement]:
    return [_statement(statement, known) for statement in statements]


def _statement(statement: Statement, known: Known) -> Statement:
    match statement:
        case Assign(targets, Load(array, index)):
            stored = known.get(array.name, {}).get(_key(index))
            return statement if stored is None else Assign(targets, stored)
        case Store(array, index, value):
            known[array.name] = {_key(index): value}
        case Evaluate(call):
            known.pop(written(call).name, None)
        case For() | While():
            return _loop(statement, known)
        case If():
            branch = with_bodies(statement, lambda body: _block(body, _copy(known)))
            _forget(statement, known)
            return branch
        case _:
            pass
    return statement


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


def _loop(loop: For | While, known: Known) -> Statement:
    _forget(loop, known)
    return with_bodies(loop, lambda body: _block(body, _copy(known)))


def _copy(known: Known) -> Known:
    return {array: dict(elements) for array, elements in known.items()}


def _forget(statement: Statement, known: Known) -> None:
    for array in stored_arrays([statement]):
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
