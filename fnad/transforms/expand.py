"""Expansion: an equation that only holds a region is replaced by the region's equations.

It is the last pass: what such an equation keeps separate, like the second run of a `checkpoint`, other passes would
merge again. An equation for a library that is other primitives in native code is replaced by these, and so are updates
of an array that are to be sorted by the element that they change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

from fnad.ir.builder import current_builder, rebuilt, trace
from fnad.ir.primitive import Inlined, Library, Scatter
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.symbol import Symbol
from fnad.transforms.by_rows import rows_of
from fnad.transforms.pipeline import simplify

Chosen: TypeAlias = Callable[[Equation], bool]
"""Which updates are sorted."""


def expand(program: Program, sorts: Chosen = lambda _: False) -> Program:
    """The program, regions included, with these equations replaced."""
    if not any(equation.regions or _expansion(equation, sorts) for equation in program.equations):
        return program
    values: dict[Atom, Atom] = {}
    equations: list[Equation] = []
    _append(program, values, equations, sorts)
    return Program(program.name, program.inputs, tuple(equations), tuple(values.get(a, a) for a in program.outputs))


def _append(program: Program, values: dict[Atom, Atom], equations: list[Equation], sorts: Chosen) -> None:
    """Add the equations of a program, whose atoms are mapped to `values`."""
    chosen = _without_rows(program, sorts)
    for equation in program.equations:
        operands = tuple(values.get(atom, atom) for atom in equation.operands)
        if isinstance(equation.primitive.lower, Inlined):
            _open(equation, equation.regions[0], operands, values, equations, sorts)
        elif (expansion := _expansion(equation, chosen)) and (region := _expanded(equation, expansion)):
            _open(equation, region, operands, values, equations, sorts)
        else:
            results = tuple(values.get(var, var) for var in equation.results)
            regions = tuple(map(partial(expand, sorts=sorts), equation.regions))
            made = rebuilt(equation, operands=operands, results=_variables(results), regions=regions)
            equations.append(made)


def _without_rows(program: Program, sorts: Chosen) -> Chosen:
    """The updates of a program that are sorted, without those that are one in each row."""

    @cache
    def definitions() -> dict[Var, Equation]:
        return {var: equation for equation in program.equations for var in equation.results}

    return lambda equation: sorts(equation) and rows_of(equation, definitions()) is None


def _expansion(equation: Equation, sorts: Chosen) -> Callable[..., Any] | None:
    """The native form of an equation that consists of other primitives."""
    match equation.primitive.lower:
        case Library(expansion=expansion):
            has_elements = all(atom.aval.size for atom in (*equation.operands, *equation.results))
            return expansion if has_elements or not equation.operands else None
        case Scatter(_, in_runs) if in_runs is not None and sorts(equation):
            return in_runs
        case _:
            return None


def _expanded(equation: Equation, expansion: Callable[..., Any]) -> Program | None:
    def results(*operands: Symbol) -> list[Symbol]:
        current_builder().source = equation.source
        found = expansion(*operands, **equation.params)
        return [] if found is None else list(found) if isinstance(found, tuple) else [found]

    avals = [atom.aval for atom in equation.operands]
    program = trace(results, *avals, name=equation.primitive.name)
    return simplify(program) if program.outputs else None


def _open(
    equation: Equation,
    region: Program,
    operands: tuple[Atom, ...],
    values: dict[Atom, Atom],
    equations: list[Equation],
    sorts: Chosen,
) -> None:
    """Add the equations of a region in place of an equation."""
    inner: dict[Atom, Atom] = dict(zip(region.inputs, operands, strict=True))
    inner.update((var, Var(var.aval)) for e in region.equations for var in e.results)
    _append(region, inner, equations, sorts)
    values.update(zip(equation.results, (inner.get(a, a) for a in region.outputs), strict=True))


def _variables(atoms: tuple[Atom, ...]) -> tuple[Var, ...]:
    return tuple(atom for atom in atoms if isinstance(atom, Var))
