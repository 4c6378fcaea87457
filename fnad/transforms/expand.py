"""Expansion: an equation that only holds a region is replaced by the region's equations.

It is the last pass: what such an equation keeps separate, like the second run of a `checkpoint`, other passes would
merge again. An equation for a library that is other primitives in native code is replaced by these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnad.ir.builder import current_builder, rebuilt, trace
from fnad.ir.primitive import Inlined, Library
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.symbol import Symbol
from fnad.transforms.pipeline import simplify


def expand(program: Program) -> Program:
    """The program, regions included, with these equations replaced."""
    if not any(equation.regions or _expansion(equation) for equation in program.equations):
        return program
    values: dict[Atom, Atom] = {}
    equations: list[Equation] = []
    _append(program, values, equations)
    return Program(program.name, program.inputs, tuple(equations), tuple(values.get(a, a) for a in program.outputs))


def _append(program: Program, values: dict[Atom, Atom], equations: list[Equation]) -> None:
    """Add the equations of a program, whose atoms are mapped to `values`."""
    for equation in program.equations:
        operands = tuple(values.get(atom, atom) for atom in equation.operands)
        if isinstance(equation.primitive.lower, Inlined):
            _open(equation, equation.regions[0], operands, values, equations)
        elif _expansion(equation):
            _open(equation, _expanded(equation), operands, values, equations)
        else:
            results = tuple(values.get(var, var) for var in equation.results)
            regions = tuple(map(expand, equation.regions))
            made = rebuilt(equation, operands=operands, results=_variables(results), regions=regions)
            equations.append(made)


def _expansion(equation: Equation) -> Callable[..., Any] | None:
    """What an equation is in native code, if it is other primitives."""
    lower = equation.primitive.lower
    has_elements = all(atom.aval.size for atom in (*equation.operands, *equation.results))
    return lower.expansion if isinstance(lower, Library) and has_elements else None


def _expanded(equation: Equation) -> Program:
    expansion = _expansion(equation)
    assert expansion is not None

    def results(*operands: Symbol) -> list[Symbol]:
        current_builder().source = equation.source
        return [expansion(*operands, **equation.params)]

    avals = [atom.aval for atom in equation.operands]
    return simplify(trace(results, *avals, name=equation.primitive.name))


def _open(
    equation: Equation,
    region: Program,
    operands: tuple[Atom, ...],
    values: dict[Atom, Atom],
    equations: list[Equation],
) -> None:
    """Add the equations of a region in place of an equation."""
    inner: dict[Atom, Atom] = dict(zip(region.inputs, operands, strict=True))
    inner.update((var, Var(var.aval)) for e in region.equations for var in e.results)
    _append(region, inner, equations)
    values.update(zip(equation.results, (inner.get(a, a) for a in region.outputs), strict=True))


def _variables(atoms: tuple[Atom, ...]) -> tuple[Var, ...]:
    return tuple(atom for atom in atoms if isinstance(atom, Var))
