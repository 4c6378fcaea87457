"""Expansion: an equation that only holds a region is replaced by the region's equations.

It is the last pass: what such an equation keeps separate, like the second run of a `checkpoint`, other passes would
merge again.
"""

from __future__ import annotations

from fnad.ir.builder import rebuilt
from fnad.ir.primitive import Inlined
from fnad.ir.program import Atom, Equation, Program, Var


def expand(program: Program) -> Program:
    """The program, regions included, with these equations replaced."""
    if not any(equation.regions for equation in program.equations):
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
            _open(equation, operands, values, equations)
        else:
            results = tuple(values.get(var, var) for var in equation.results)
            regions = tuple(map(expand, equation.regions))
            made = rebuilt(equation, operands=operands, results=_variables(results), regions=regions)
            equations.append(made)


def _open(equation: Equation, operands: tuple[Atom, ...], values: dict[Atom, Atom], equations: list[Equation]) -> None:
    region, *_ = equation.regions
    inner: dict[Atom, Atom] = dict(zip(region.inputs, operands, strict=True))
    inner.update((var, Var(var.aval)) for e in region.equations for var in e.results)
    _append(region, inner, equations)
    values.update(zip(equation.results, (inner.get(a, a) for a in region.outputs), strict=True))


def _variables(atoms: tuple[Atom, ...]) -> tuple[Var, ...]:
    return tuple(atom for atom in atoms if isinstance(atom, Var))
