"""Values of a program under construction, computed on demand, each at most once.

A value is available if everything it depends on is; to compute it runs the equations that were not needed before.
Subclasses say what values are, arrays or symbols, and which values from outside are available. The result of an effect
is not, since the effect may happen only once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeAlias, TypeVar

from fnad.ir.builder import Builder, Captured
from fnad.ir.program import Atom, Equation, Literal, Var
from fnad.ir.walk import acts_outside

T = TypeVar("T")
Origin: TypeAlias = "Equation | Captured"


class OnDemand(ABC, Generic[T]):
    """The dependences of a builder's values, and the values computed so far."""

    def __init__(self) -> None:
        self._origins: dict[Var, Origin] = {}
        self._values: dict[Var, T] = {}
        self._equations = self._captured = 0

    @abstractmethod
    def admits(self, value: Captured) -> bool:
        """True if a value from outside is available."""

    @abstractmethod
    def outside(self, value: Captured) -> T:
        """An available value from outside."""

    @abstractmethod
    def literal(self, literal: Literal) -> T:
        """A constant."""

    @abstractmethod
    def compute(self, equation: Equation, operands: Sequence[T]) -> Sequence[T]:
        """The results of an equation."""

    def can_compute(self, equation: Equation) -> bool:
        """True if the results of an equation are available where its operands are."""
        return not acts_outside(equation)

    # ---- what there is -------------------------------------------------------------------------------------------

    def extend(self, builder: Builder) -> None:
        """Register what was added to the builder since the last call."""
        if len(builder.captured) > self._captured:
            known = self._captured
            for var, value in zip(builder.captured_variables[known:], builder.captured[known:], strict=True):
                self.enter(var, value)
            self._captured = len(builder.captured)
        if len(builder.equations) > self._equations:
            self._register(builder.equations[self._equations :])
            self._equations = len(builder.equations)

    def _register(self, equations: Sequence[Equation]) -> None:
        origins = self._origins
        for equation in equations:
            for operand in equation.operands:  # in most, one depends on an input
                if operand not in origins and not isinstance(operand, Literal):
                    break
            else:
                if self.can_compute(equation):
                    origins.update(dict.fromkeys(equation.results, equation))

    def enter(self, var: Var, value: Captured) -> None:
        """Bind an input to a value from outside."""
        if self.admits(value):
            self._origins[var] = value

    def has(self, atom: Atom) -> bool:
        """True if the value of an atom is available."""
        return isinstance(atom, Literal) or atom in self._origins

    # ---- computing -----------------------------------------------------------------------------------------------

    def value(self, atom: Atom) -> T:
        """The value of an atom that is available."""
        if isinstance(atom, Literal):
            return self.literal(atom)
        if atom in self._values:
            return self._values[atom]
        pending: list[Var] = [atom]
        while pending:
            missing = self._missing(self._origins[pending[-1]])
            if missing:
                pending.extend(missing)
            else:
                self._compute(pending.pop())
        return self._values[atom]

    def _missing(self, origin: Origin) -> list[Var]:
        if not isinstance(origin, Equation):
            return []
        return [atom for atom in origin.operands if isinstance(atom, Var) and atom not in self._values]

    def _compute(self, var: Var) -> None:
        if var in self._values:
            return
        origin = self._origins[var]
        if isinstance(origin, Equation):
            operands = [self.literal(a) if isinstance(a, Literal) else self._values[a] for a in origin.operands]
            self._values.update(zip(origin.results, self.compute(origin, operands), strict=True))
        else:
            self._values[var] = self.outside(origin)
