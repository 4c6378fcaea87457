"""Sums of cotangents: one that is zero except in parts of the array is added to these parts alone.

The cotangent of reading parts of an array at run-time indices is zero elsewhere. Building and adding it takes time in
proportion to the array, so the reverse sweep over a loop that reads an array element by element would be quadratic.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from fnad.ir.builder import atom_keys
from fnad.ir.primitive import Primitive
from fnad.ir.program import Atom, Equation, Literal
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import add
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice, scatter_add
from fnad.ops.shape import broadcast_in_dim


class Part(NamedTuple):
    """An addition to an array at a place: the update and the operands of the place."""

    primitive: Primitive
    update: Atom
    places: tuple[Atom, ...]


class Sums:
    """Adds symbols of one program under construction, depending on the equations that define them."""

    def __init__(self) -> None:
        self._definitions: dict[Atom, Equation] = {}
        self._seen = 0

    def add(self, first: Symbol, second: Symbol) -> Symbol:
        """The sum of two cotangents, up to the sign of zeros."""
        self._see(first.builder.equations)
        for whole, other in ((first, second), (second, first)):
            parts = self._parts(other.atom)
            if parts:
                return reduce(_with_part, reversed(parts), whole)
        return add(first, second)

    def _see(self, equations: Sequence[Equation]) -> None:
        self._definitions.update((var, equation) for equation in equations[self._seen :] for var in equation.results)
        self._seen = len(equations)

    def _parts(self, atom: Atom) -> list[Part]:
        """The parts of an array that is zero elsewhere, the last one first; none if several exceed it."""
        found: list[Part] = []
        left = atom.aval.size
        while not (found and self._is_zero(atom)):
            equation = self._definitions.get(atom)
            part = None if equation is None else self._part(equation)
            if equation is None or part is None:
                return []
            found.append(part)
            left -= part.update.aval.size
            if left < 0 and len(found) > 1:
                return []
            atom = equation.operands[0]
        return found

    def _part(self, equation: Equation) -> Part | None:
        """The part that an equation adds to its first operand, if that is zero there or what is there is read."""
        primitive = equation.primitive
        if primitive not in (dynamic_update_slice, scatter_add):
            return None
        array, update, *places = equation.operands
        if primitive is scatter_add or self._is_zero(array):
            return Part(primitive, update, tuple(places))
        sum_ = self._definitions.get(update)
        if sum_ is None or sum_.primitive is not add:
            return None
        there = self._definitions.get(sum_.operands[0])
        if there is None or there.primitive is not dynamic_slice:
            return None
        is_there = atom_keys(there.operands) == atom_keys((array, *places))
        return Part(primitive, sum_.operands[1], tuple(places)) if is_there else None

    def _is_zero(self, atom: Atom) -> bool:
        definition = self._definitions.get(atom)
        if definition is None or definition.primitive is not broadcast_in_dim:
            return False
        (value,) = definition.operands
        return isinstance(value, Literal) and value.value == 0


def _with_part(total: Symbol, part: Part) -> Symbol:
    """The total with a part added at its place."""
    update, *places = (Symbol(total.builder, atom, atom.aval) for atom in (part.update, *part.places))
    if part.primitive is scatter_add:
        return scatter_add(total, update, *places)
    there = dynamic_slice(total, *places, sizes=update.shape)
    return dynamic_update_slice(total, add(there, update), *places)
