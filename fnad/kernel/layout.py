"""Applying a memory layout to a kernel: buffers become parts of arrays, and those of one element become variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fnad.kernel.statements import Assign, Expression, Load, Name, Statement, Store
from fnad.scalar.operation import Pointer


@dataclass(frozen=True, slots=True)
class Layout:
    """The array that holds each buffer, and the variables of one-element buffers that need no memory."""

    arrays: Mapping[str, str] = field(default_factory=dict[str, str])
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def place(self, statements: Sequence[Statement]) -> list[Statement]:
        """The statements with buffers replaced by their arrays and variables."""
        return [self._statement(statement) for statement in statements]

    def _statement(self, statement: Statement) -> Statement:
        statement = statement.with_operands(self._expression)
        match statement:
            case Store(array, _, value) if array.name in self.variables:
                return Assign((self._variable(array),), value)
            case Store(array, index, value):
                return Store(self._array(array), index, value)
            case Assign((Name(_, Pointer()) as array,), value):
                return Assign((self._array(array),), value)
            case _:
                return statement.with_bodies(self.place)

    def _expression(self, expression: Expression) -> Expression:
        if isinstance(expression, Load):
            if expression.array.name in self.variables:
                return self._variable(expression.array)
            return Load(self._array(expression.array), self._expression(expression.index), expression.source)
        if isinstance(expression, Name):
            return self._array(expression) if isinstance(expression.kind, Pointer) else expression
        return expression.with_parts(self._expression)

    def _array(self, array: Name) -> Name:
        place = self.arrays.get(array.name)
        return array if place is None else Name(place, array.kind)

    def _variable(self, array: Name) -> Name:
        return Name(self.variables[array.name], array.dtype)
