"""Rewriting: one forward sweep that offers every equation to rewrites as it is made.

A rewrite looks at an equation about to be added, its primitive, operands and params, and returns the symbol to use in
its place, or None. What it builds on the way goes through the same rewrites, so one sweep reaches everything that can
be seen from operands to results; its time is linear in the number of equations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.builder import Builder, atom_keys
from fnad.ir.primitive import Primitive
from fnad.ir.program import Equation, Literal, Params, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.walk import use_counts
from fnad.ops.shape import broadcast_in_dim

Rewrite: TypeAlias = Callable[[Primitive, Sequence[Symbol], Params], Symbol | None]


class Rewriter(Builder):
    """A builder that offers each equation to rewrites and knows the definitions of its values."""

    def __init__(self, rewrites: Sequence[Rewrite]) -> None:
        super().__init__()
        self.rewrites = rewrites
        self.uses: Counter[Var] = Counter()
        self._definitions: dict[Var, Equation] = {}

    def bind(
        self, primitive: Primitive, operands: Sequence[Any], params: Params, regions: tuple[Program, ...] = ()
    ) -> Any:
        symbols = [self.lift(operand) for operand in operands]
        for rewrite in self.rewrites:
            found = rewrite(primitive, symbols, params)
            if found is not None:
                return found
        results = super().bind(primitive, symbols, params, regions)
        equation = self.equations[-1]
        self._definitions.update(dict.fromkeys(equation.results, equation))
        return results

    def definition(self, symbol: Symbol) -> Equation | None:
        """Return the equation whose only result is this value; None for inputs and literals."""
        equation = None if isinstance(symbol.atom, Literal) else self._definitions.get(symbol.atom)
        return equation if equation is not None and len(equation.results) == 1 else None

    def numbered(self, primitive: Primitive, operands: Sequence[Symbol]) -> Symbol | None:
        """Return the result of an equation without params, if it is there already."""
        found = self._numbered.get((primitive, atom_keys([operand.atom for operand in operands]), (), ()))
        return None if found is None else Symbol(self, found[0], found[0].aval)

    def symbols(self, equation: Equation) -> list[Symbol]:
        """Return the operands of an equation of this builder."""
        return [Symbol(self, atom, atom.aval) for atom in equation.operands]


def definition(symbol: Symbol) -> tuple[Primitive, list[Symbol], Params] | None:
    """Return what defines a value: primitive, operands and params; None for inputs and literals."""
    builder = symbol.builder
    if not isinstance(builder, Rewriter) or (equation := builder.definition(symbol)) is None:
        return None
    return equation.primitive, builder.symbols(equation), equation.params


def application(symbol: Symbol, primitive: Primitive) -> tuple[list[Symbol], Params] | None:
    """Return operands and params of the equation that defines a value; None if it is none of this primitive."""
    builder = symbol.builder
    if not isinstance(builder, Rewriter) or (equation := builder.definition(symbol)) is None:
        return None
    return (builder.symbols(equation), equation.params) if equation.primitive is primitive else None


def constant_of(symbol: Symbol) -> np.generic | None:
    """Return the scalar that a value is filled with: a literal or a broadcast one; None for others."""
    if isinstance(symbol.atom, Literal):
        return symbol.atom.value
    builder = symbol.builder
    equation = builder.definition(symbol) if isinstance(builder, Rewriter) else None
    if equation is None or equation.primitive is not broadcast_in_dim:
        return None
    operand = equation.operands[0]
    return operand.value if isinstance(operand, Literal) else None


def used_once(symbol: Symbol) -> bool:
    """Say whether a value has at most one use in the program being rewritten."""
    builder = symbol.builder
    return isinstance(builder, Rewriter) and isinstance(symbol.atom, Var) and builder.uses[symbol.atom] <= 1


def rewrite(program: Program, *rewrites: Rewrite) -> Program:
    """Return the program with its equations rewritten, in one forward sweep."""
    builder = Rewriter(rewrites)
    uses = use_counts(program)
    with builder.active():
        values = {var: builder.input(var.aval) for var in program.inputs}
        for equation in program.equations:
            builder.source = equation.source
            operands = [a.value if isinstance(a, Literal) else values[a] for a in equation.operands]
            bound = builder.bind(equation.primitive, operands, equation.params, equation.regions)
            results: Sequence[Symbol] = bound if isinstance(bound, tuple) else (bound,)
            for var, result in zip(equation.results, results, strict=True):
                values[var] = result
                if isinstance(result.atom, Var):
                    builder.uses[result.atom] += uses[var]
        outputs = [builder.lift(a.value if isinstance(a, Literal) else values[a]) for a in program.outputs]
        return builder.finish(program.name, outputs)
