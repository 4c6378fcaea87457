"""Store forwarding: a load of what was stored before, at the same address, is the value that was stored.

A stored value is known if it is a constant or a variable that is assigned once. A store to an array ends what is known
of its other elements, except at addresses that differ by a number; so does a loop that stores into it, before its
first iteration and after its last, and a call that writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from fnad.kernel import statements as code
from fnad.kernel.routines import GEMM, GEMV
from fnad.kernel.unroll import split
from fnad.scalar.operation import Pointer

Key: TypeAlias = tuple[code.Expression | None, int]
"""An address: what it is computed from, and a number that is added to that."""

Known: TypeAlias = dict[str, dict[Key, code.Expression]]
"""The values stored, by array and address."""


def forward(statements: Sequence[code.Statement]) -> list[code.Statement]:
    """The statements with loads of stored values replaced."""
    return _Forwarding(statements).block(statements, {})


class _Forwarding:
    """The pass; `aliases` are the variables that were loaded, with what was stored there."""

    def __init__(self, statements: Sequence[code.Statement]) -> None:
        self.assignments = Counter(target.name for target in code.assigned(statements))
        self.aliases: dict[str, code.Expression] = {}

    def block(self, statements: Sequence[code.Statement], known: Known) -> list[code.Statement]:
        found = (self.statement(statement.with_operands(self.renamed), known) for statement in statements)
        return [statement for statement in found if statement is not None]

    def statement(self, statement: code.Statement, known: Known) -> code.Statement | None:
        match statement:
            case code.Assign(targets, code.Load(array, index)):
                stored = None if (key := _key(index)) is None else known.get(array.name, {}).get(key)
                return statement if stored is None else self.alias(targets, stored)
            case code.Store(array, index, value):
                key, elements = _key(index), self.apart(known.get(array.name, {}), index)
                known[array.name] = elements | {key: value} if key is not None and self.stays(value) else elements
            case code.Evaluate(call):
                _forget(written(call), known)
            case code.For() | code.While() | code.If():
                return self.nested(statement, known)
            case _:
                pass
        return statement

    def apart(self, elements: Mapping[Key, code.Expression], index: code.Expression) -> dict[Key, code.Expression]:
        """The elements at addresses that differ from this one by a number: any others may be equal to it."""
        names = (part.name for part in code.subexpressions(index) if isinstance(part, code.Name))
        key = _key(index)
        if key is None or any(self.assignments[name] > 1 for name in names):
            return {}
        base, number = key
        return {other: value for other, value in elements.items() if other[0] == base and other[1] != number}

    def stays(self, value: code.Expression) -> bool:
        """True if a value is the same wherever it is read."""
        return isinstance(value, code.Constant) or (isinstance(value, code.Name) and self.assignments[value.name] == 1)

    def alias(self, targets: tuple[code.Name, ...], stored: code.Expression) -> code.Statement | None:
        """Replace a variable by what was stored; one that is assigned elsewhere too is assigned here."""
        (target,) = targets
        if self.assignments[target.name] > 1:
            return code.Assign(targets, stored)
        self.aliases[target.name] = stored
        return None

    def renamed(self, expression: code.Expression) -> code.Expression:
        if isinstance(expression, code.Name):
            return self.aliases.get(expression.name, expression)
        return expression.with_parts(self.renamed)

    def nested(self, statement: code.For | code.While | code.If, known: Known) -> code.Statement:
        """A loop or a branch; after it nothing is known of the arrays that it writes."""
        arrays = set(stored_arrays([statement]))
        # The first iteration may find what was stored before the loop, the others what they stored themselves.
        if not isinstance(statement, code.If):
            _forget(arrays, known)
        inner = statement.with_bodies(lambda body: self.block(body, _copy(known)))
        _forget(arrays, known)
        return inner


def _key(index: code.Expression) -> Key | None:
    """A key that equal addresses share; None for one computed from a load, because the load may change."""
    return None if any(isinstance(part, code.Load) for part in code.subexpressions(index)) else split(index)


def _copy(known: Known) -> Known:
    return {array: dict(elements) for array, elements in known.items()}


def _forget(arrays: Iterable[str], known: Known) -> None:
    for array in arrays:
        known.pop(array, None)


def stored_arrays(statements: Sequence[code.Statement]) -> Iterator[str]:
    """The names of the arrays that statements write."""
    for statement in code.walk(statements):
        if isinstance(statement, code.Store):
            yield statement.array.name
        elif isinstance(statement, code.Evaluate):
            yield from written(statement.call)


def written(call: code.Apply) -> list[str]:
    """The arrays that a routine may write: of a matrix product the last of its operands, else any of them."""
    arrays = [o.name for o in call.operands if isinstance(o, code.Name) and isinstance(o.kind, Pointer)]
    return arrays[-1:] if call.operation in (GEMM, GEMV) else arrays
