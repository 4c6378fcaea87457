"""Rewriting: one forward sweep that offers every equation to rewrites as it is made.

A rewrite looks at an equation about to be added, its primitive, operands and params, and returns the symbol to use in
its place, or None; an equation with regions has one of its own, `reduce`. What a rewrite builds goes through the
same rewrites, so one sweep reaches everything that can be seen from operands to results; its time is linear in the
number of equations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.builder import Builder
from fnad.ir.primitive import Primitive
from fnad.ir.program import Equation, Literal, Params, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.walk import use_counts
from fnad.ops.shape import broadcast_in_dim, reshape
from fnad.transforms.dce import dce

Rewrite: TypeAlias = Callable[[Primitive, Sequence[Symbol], Params], Symbol | None]

Head: TypeAlias = "Primitive | type[Literal] | None"
"""The primitive whose only result a value is, `Literal` for a literal, None for other values."""

DEEPEST = 40
"""The deepest chain of rewrites that trigger one another; the next sweep continues."""


class Rewriter(Builder):
    """A builder that offers each equation to rewrites and knows the definitions of its values."""

    def __init__(self, rewrites: Sequence[Rewrite]) -> None:
        super().__init__()
        self.rewrites = rewrites
        self.uses: Counter[Var] = Counter()
        self._depth = 0

    def bind(
        self, primitive: Primitive, operands: Sequence[Any], params: Params, regions: tuple[Program, ...] = ()
    ) -> Any:
        symbols = [self.lift(operand) for operand in operands]
        found = self._reduced(primitive, symbols, params, regions)
        if found is not None:
            return found
        results = super().bind(primitive, symbols, params, regions)
        self._record_definition()
        return results

    def bind_again(self, equation: Equation, operands: Sequence[Symbol]) -> Sequence[Symbol]:
        """Add an equation of another program, rewritten, on operands of the same avals; return its results."""
        found = self._reduced(equation.primitive, operands, equation.params, equation.regions)
        if found is not None:
            return found if isinstance(found, tuple) else (found,)
        results = self.add(equation, tuple([operand.atom for operand in operands]))
        self._record_definition()
        return [Symbol(self, var, var.aval) for var in results]

    def _record_definition(self) -> None:
        equation = self.equations[-1]
        if len(equation.results) == 1:
            self.definitions[equation.results[0]] = equation

    def _reduced(
        self, primitive: Primitive, operands: Sequence[Symbol], params: Params, regions: tuple[Program, ...]
    ) -> Any:
        if regions:
            return None if primitive.reduce is None else primitive.reduce(operands, params, regions)
        return None if primitive.effect or self._depth == DEEPEST else self._rewritten(primitive, operands, params)

    def _rewritten(self, primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
        self._depth += 1
        try:
            for rewrite in self.rewrites:
                found = rewrite(primitive, operands, params)
                if found is not None:
                    return found
        finally:
            self._depth -= 1
        return None


def definition(symbol: Symbol) -> Equation | None:
    """The equation whose only result is this value; None for inputs and literals."""
    return symbol.builder.definitions.get(symbol.atom)


def head_of(symbol: Symbol) -> Head:
    """The head of a value."""
    if isinstance(symbol.atom, Literal):
        return Literal
    equation = definition(symbol)
    return None if equation is None else equation.primitive


def operands_of(symbol: Symbol, equation: Equation) -> list[Symbol]:
    """The operands of the equation that defines a value."""
    return [Symbol(symbol.builder, atom, atom.aval) for atom in equation.operands]


def application(symbol: Symbol, primitive: Primitive) -> tuple[list[Symbol], Params] | None:
    """The operands and params of the equation that defines a value; None if it has another primitive."""
    equation = definition(symbol)
    if equation is None or equation.primitive is not primitive:
        return None
    return operands_of(symbol, equation), equation.params


def unreshaped(x: Symbol) -> Symbol:
    """The operand of reshapes."""
    found = application(x, reshape)
    return x if found is None else unreshaped(found[0][0])


def constant_of(symbol: Symbol) -> np.generic | None:
    """The scalar that a value is filled with, a literal or a broadcast literal; None for others."""
    atom = symbol.atom
    if isinstance(atom, Literal):
        return atom.value
    equation = definition(symbol)
    if equation is None or equation.primitive is not broadcast_in_dim:
        return None
    operand = equation.operands[0]
    return operand.value if isinstance(operand, Literal) else None


def is_square(equation: Equation) -> bool:
    """True for a commutative function of a value and itself."""
    return equation.primitive.commutative and equation.operands[0] is equation.operands[1]


def used_once(symbol: Symbol) -> bool:
    """True if a value has at most one use in the program being rewritten."""
    builder = symbol.builder
    return isinstance(builder, Rewriter) and isinstance(symbol.atom, Var) and builder.uses[symbol.atom] <= 1


def rewrite(program: Program, *rewrites: Rewrite) -> Program:
    """The program with its equations rewritten, in one forward sweep."""
    builder = Rewriter(rewrites)
    uses = use_counts(program)
    with builder.active():
        values = {var: builder.input(var.aval) for var in program.inputs}
        for equation in program.equations:
            builder.source = equation.source
            operands = [Symbol(builder, a, a.aval) if isinstance(a, Literal) else values[a] for a in equation.operands]
            for var, result in zip(equation.results, builder.bind_again(equation, operands), strict=True):
                values[var] = result
                if isinstance(result.atom, Var):
                    builder.uses[result.atom] += uses[var]
        outputs = [builder.lift(a.value if isinstance(a, Literal) else values[a]) for a in program.outputs]
        return builder.finish(program.name, outputs)


def reduced(program: Program) -> Program:
    """The program with its loops and branches reduced: what moves out of a loop is differentiated once."""
    return dce(rewrite(program)) if any(equation.regions for equation in program.equations) else program
