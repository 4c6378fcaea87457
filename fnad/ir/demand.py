"""Values of a program under construction that are computed where somebody asks for them, each at most once.

As the program grows it is noted what each value comes from. A value is there where all that it comes from is; to
compute it costs the equations that nobody asked for before. What the values are, arrays or symbols, and which of those
from outside are there, subclasses say. What an effect returns is not there: it may happen once only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeAlias, TypeVar

from fnad.ir.builder import Builder, Captured
from fnad.ir.program import Atom, Equation, Literal, Var
from fnad.ir.walk import has_effect

T = TypeVar("T")
Origin: TypeAlias = "Equation | Captured"


class OnDemand(ABC, Generic[T]):
    """Where the values of a builder come from, and what they are, for those that somebody asked for."""

    def __init__(self) -> None:
        self._origins: dict[Var, Origin] = {}
        self._values: dict[Var, T] = {}
        self._equations = self._captured = 0

    @abstractmethod
    def admits(self, value: Captured) -> bool:
        """Whether a value from outside is there."""

    @abstractmethod
    def outside(self, value: Captured) -> T:
        """A value from outside that is there."""

    @abstractmethod
    def literal(self, literal: Literal) -> T:
        """A constant."""

    @abstractmethod
    def compute(self, equation: Equation, operands: Sequence[T]) -> Sequence[T]:
        """The results of an equation."""

    # ---- what there is -------------------------------------------------------------------------------------------

    def extend(self, builder: Builder) -> None:
        """Take in what was added to the builder since the last time."""
        if len(builder.captured) > self._captured:
            for var, value in zip(builder.captured_variables, builder.captured, strict=True):
                self.enter(var, value)
            self._captured = len(builder.captured)
        for equation in builder.equations[self._equations :]:
            if all(map(self.has, equation.operands)) and not has_effect(equation):
                self._origins.update(dict.fromkeys(equation.results, equation))
        self._equations = len(builder.equations)

    def enter(self, var: Var, value: Captured) -> None:
        """Note that an input stands for a value from outside."""
        if self.admits(value):
            self._origins[var] = value

    def has(self, atom: Atom) -> bool:
        """Whether the value of an atom is there."""
        return isinstance(atom, Literal) or atom in self._origins

    # ---- computing -----------------------------------------------------------------------------------------------

    def value(self, atom: Atom) -> T:
        """A value that is there."""
        if isinstance(atom, Literal):
            return self.literal(atom)
        pending = [atom]
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
