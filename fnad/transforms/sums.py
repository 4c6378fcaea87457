"""Sums of cotangents: one that is zero except in a part of the array is added to that part alone.

The cotangent of reading a part of an array at run-time indices is zero elsewhere. Building and adding it takes time in
proportion to the array, so the reverse sweep over a loop that reads an array element by element would be quadratic.
"""

from __future__ import annotations

from fnad.ir.program import Atom, Equation, Literal
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import add
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice, scatter_add
from fnad.ops.shape import broadcast_in_dim


class Sums:
    """Adds symbols of one program under construction, depending on the equations that define them."""

    def __init__(self) -> None:
        self._definitions: dict[Atom, Equation] = {}
        self._seen = 0

    def add(self, first: Symbol, second: Symbol) -> Symbol:
        """The sum of two cotangents, up to the sign of zeros."""
        for total, part in ((first, second), (second, first)):
            definition = self._definition(part)
            if definition is not None and self._is_written_into_zeros(definition):
                return _add_part(total, definition)
        return add(first, second)

    def _definition(self, symbol: Symbol) -> Equation | None:
        equations = symbol.builder.equations
        self._definitions.update((var, equation) for equation in equations[self._seen :] for var in equation.results)
        self._seen = len(equations)
        return self._definitions.get(symbol.atom)

    def _is_written_into_zeros(self, equation: Equation) -> bool:
        if equation.primitive not in (dynamic_update_slice, scatter_add):
            return False
        zeros = self._definitions.get(equation.operands[0])
        if zeros is None or zeros.primitive is not broadcast_in_dim:
            return False
        (value,) = zeros.operands
        return isinstance(value, Literal) and value.value == 0


def _add_part(total: Symbol, equation: Equation) -> Symbol:
    """The total with an equation's update of zeros added at the place of the update."""
    _, update, *places = (Symbol(total.builder, atom, atom.aval) for atom in equation.operands)
    if equation.primitive is scatter_add:
        return scatter_add(total, update, *places)
    there = dynamic_slice(total, *places, sizes=update.shape)
    return dynamic_update_slice(total, add(there, update), *places)
