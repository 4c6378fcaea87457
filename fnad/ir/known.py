"""Known values of a program under construction: those that depend on none of its inputs.

Traced code computes with constants too: counters, tables, masks, new buffers. Where such a number is needed, the
equations that it depends on are evaluated; a value that depends on an input is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.errors import FnadError
from fnad.ir.builder import Builder, Captured
from fnad.ir.demand import OnDemand
from fnad.ir.program import Equation, Literal
from fnad.ir.size import sizes_in
from fnad.ir.symbol import Symbol
from fnad.placement import on_host

Array: TypeAlias = "np.ndarray[Any, Any]"


def known_value(symbol: Symbol) -> Array | None:
    """The value of a symbol of a trace under way if it depends on no input, else None."""
    if isinstance(symbol.atom, Literal):
        return np.asarray(symbol.atom.value)
    if not symbol.builder.alive:
        return None
    constants = _constants_of(symbol.builder)
    return constants.value(symbol.atom) if constants.has(symbol.atom) else None


class Evaluated(OnDemand[Array]):
    """Values that are arrays: NumPy evaluates the equations."""

    def literal(self, literal: Literal) -> Array:
        return np.asarray(literal.value)

    def can_compute(self, equation: Equation) -> bool:
        return super().can_compute(equation) and not sizes_in([var.aval.shape for var in equation.results])

    def compute(self, equation: Equation, operands: Sequence[Array]) -> Sequence[Array]:
        try:
            with np.errstate(all="ignore"):
                results = equation.primitive.evaluate(*operands, **equation.keywords)
        except FnadError as error:
            raise error.at(equation.source) from None
        return [np.asarray(result) for result in (results if isinstance(results, tuple) else (results,))]


class Constants(Evaluated):
    """The constant values of a builder."""

    def admits(self, value: Captured) -> bool:
        return not isinstance(value, Symbol) or is_known(value)

    def outside(self, value: Captured) -> Array:
        found = known_value(value) if isinstance(value, Symbol) else on_host(value)
        assert found is not None
        return found


def _constants_of(builder: Builder) -> Constants:
    constants = builder.constants
    if not isinstance(constants, Constants):
        constants = builder.constants = Constants()
    constants.extend(builder)
    return constants


def any_known(symbols: Sequence[Symbol]) -> bool:
    """True if one of some symbols of a trace under way is known; mostly they are of one builder, and none is."""
    builder: Builder | None = None
    constants: Constants | None = None
    for symbol in symbols:
        if isinstance(symbol.atom, Literal):
            return True
        if symbol.builder is not builder:
            builder = symbol.builder
            constants = _constants_of(builder) if builder.alive else None
        if constants is not None and constants.has(symbol.atom):
            return True
    return False


def is_known(symbol: Symbol) -> bool:
    """True if a symbol of a trace under way depends on no input."""
    atom, builder = symbol.atom, symbol.builder
    return isinstance(atom, Literal) or (builder.alive and _constants_of(builder).has(atom))
