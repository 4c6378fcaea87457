"""The values of a trace for the arguments at hand.

The outermost trace knows the arrays that its inputs stand for, so any value of it can be evaluated. The inputs of a
trace inside it, in `grad` within `jit` say, stand for values of the trace around: there its values are asked for, and
the equations that they need are made there too. Such equations cost nothing, since the derivative, which becomes part
of the trace around in the end, begins with the same ones. A value of the rows of `vmap` is a stack there.

The body of a loop is traced for arguments that nobody has yet: what depends on these has no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.builder import Builder, Captured
from fnad.ir.demand import OnDemand
from fnad.ir.known import Evaluated
from fnad.ir.program import Equation, Literal, Var
from fnad.ir.symbol import Symbol
from fnad.placement import is_on_device, on_host

Array: TypeAlias = "np.ndarray[Any, Any]"


class Shadow(Evaluated):
    """The values of an outermost trace, as arrays.

    `is_given` if they are answers to what Python asks, and nothing else is known; `has_strayed` if one was missing.
    """

    is_given = has_strayed = False

    def admits(self, value: Captured) -> bool:
        return not isinstance(value, Symbol)

    def outside(self, value: Captured) -> Array:
        assert not isinstance(value, Symbol)
        return on_host(value)

    def put(self, atom: Var, value: Array) -> None:
        """Enter the value of a result that is known already."""
        self._values[atom] = value


class Raised(OnDemand[Symbol]):
    """The values of an inner trace, as values of the trace around it."""

    def __init__(self, outer: Builder) -> None:
        super().__init__()
        self.outer = outer

    def admits(self, value: Captured) -> bool:
        return True

    def outside(self, value: Captured) -> Symbol:
        if isinstance(value, Symbol):
            return self.outer.lift(value)
        if value.ndim or is_on_device(value):
            return self.outer.capture(value)
        return self.outer.literal(value.flat[0])

    def literal(self, literal: Literal) -> Symbol:
        return self.outer.literal(literal.value)

    def compute(self, equation: Equation, operands: Sequence[Symbol]) -> Sequence[Symbol]:
        outer, source = self.outer, self.outer.source
        outer.source = equation.source or source
        results = outer.bind(equation.primitive, operands, equation.params, equation.regions)
        outer.source = source
        return results if isinstance(results, tuple) else (results,)
