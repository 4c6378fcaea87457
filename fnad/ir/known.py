"""What is known while a program is under construction: values that depend on none of its inputs.

Traced code computes with constants too: counters, tables, masks, buffers that are still empty. Where their number is
asked for, the equations they come from are evaluated; what follows from an input has none.
"""

from __future__ import annotations

from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from fnad.errors import FnadError
from fnad.ir.builder import Builder, Captured
from fnad.ir.program import Atom, Equation, Literal, Var
from fnad.ir.symbol import Symbol

Array: TypeAlias = "np.ndarray[Any, Any]"


def known_value(symbol: Symbol) -> Array | None:
    """Return the value of a symbol of a trace under way where it depends on no input, else None."""
    if isinstance(symbol.atom, Literal):
        return np.asarray(symbol.atom.value)
    if not symbol.builder.alive:
        return None
    constants = _constants_of(symbol.builder)
    return constants.value(symbol.atom) if constants.has(symbol.atom) else None


class Constants:
    """The constant values of a builder: where each comes from, and what it is, for those that somebody asked for."""

    def __init__(self) -> None:
        self._origins: dict[Var, Equation | Captured] = {}
        self._values: dict[Var, Array] = {}
        self._equations = self._captured = 0

    def extend(self, builder: Builder) -> None:
        """Take in what was added to the builder since the last time."""
        if len(builder.captured) > self._captured:
            self._extend_captured(builder)
        for equation in builder.equations[self._equations :]:
            if all(map(self.has, equation.operands)) and not equation.regions:
                self._origins.update(dict.fromkeys(equation.results, equation))
        self._equations = len(builder.equations)

    def _extend_captured(self, builder: Builder) -> None:
        for var, value in zip(builder.captured_variables, builder.captured, strict=True):
            if not isinstance(value, Symbol) or is_known(value):
                self._origins[var] = value
        self._captured = len(builder.captured)

    def has(self, atom: Atom) -> bool:
        """Say whether the value of an atom is constant."""
        return isinstance(atom, Literal) or atom in self._origins

    def value(self, var: Var) -> Array:
        """Return a constant value; the equations it needs are evaluated, each once."""
        pending = [var]
        while pending:
            origin = self._origins[pending[-1]]
            missing = self._missing(origin)
            if missing:
                pending.extend(missing)
            else:
                self._enter(pending.pop(), origin)
        return self._values[var]

    def _missing(self, origin: Equation | Captured) -> list[Var]:
        if not isinstance(origin, Equation):
            return []
        return [atom for atom in origin.operands if not isinstance(atom, Literal) and atom not in self._values]

    def _enter(self, var: Var, origin: Equation | Captured) -> None:
        if var in self._values:
            return
        if isinstance(origin, Equation):
            self._values.update(zip(origin.results, map(np.asarray, self._evaluate(origin)), strict=True))
        else:
            value = known_value(origin) if isinstance(origin, Symbol) else origin
            assert value is not None
            self._values[var] = value

    def _evaluate(self, equation: Equation) -> tuple[Any, ...]:
        operands = [atom.value if isinstance(atom, Literal) else self._values[atom] for atom in equation.operands]
        try:
            with np.errstate(all="ignore"):
                results = equation.primitive.evaluate(*operands, **equation.keywords)
        except FnadError as error:
            raise error.at(equation.source) from None
        return results if isinstance(results, tuple) else (results,)


_CONSTANTS: WeakKeyDictionary[Builder, Constants] = WeakKeyDictionary()


def _constants_of(builder: Builder) -> Constants:
    constants = _CONSTANTS.setdefault(builder, Constants())
    constants.extend(builder)
    return constants


def is_known(symbol: Symbol) -> bool:
    """Say whether a symbol of a trace under way depends on no input."""
    return isinstance(symbol.atom, Literal) or (symbol.builder.alive and _constants_of(symbol.builder).has(symbol.atom))
