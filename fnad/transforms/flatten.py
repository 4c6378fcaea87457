"""Concatenations of concatenations along one axis become one, where nothing else needs the inner ones.

A rule that merged two at a time would copy a growing list of operands at each step; this takes linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fnad.ir.program import Atom, Equation, Program
from fnad.ir.walk import use_counts
from fnad.ops.shape import concatenate
from fnad.transforms.dce import dce


def flatten(program: Program) -> Program:
    """Return the program with nested concatenations merged."""
    inner = _inner(program)
    equations = tuple(
        replace(equation, operands=tuple(_pieces(equation, inner)))
        if equation.primitive is concatenate and equation.results[0] not in inner
        else equation
        for equation in program.equations
    )
    return dce(Program(program.name, program.inputs, equations, program.outputs))


def _inner(program: Program) -> dict[Atom, Equation]:
    """Return the concatenations whose only use is in another one along the same axis, by their results."""
    uses = use_counts(program)
    concatenations: dict[Atom, Equation] = {
        equation.results[0]: equation for equation in program.equations if equation.primitive is concatenate
    }
    return {
        atom: concatenations[atom]
        for outer in concatenations.values()
        for atom in outer.operands
        if atom in concatenations and uses[concatenations[atom].results[0]] == 1
        if concatenations[atom].params == outer.params
    }


def _pieces(equation: Equation, inner: Mapping[Atom, Equation]) -> Iterator[Atom]:
    """Yield the operands of a concatenation, in place of an inner one its own operands, and so on."""
    pending = [*reversed(equation.operands)]
    while pending:
        atom = pending.pop()
        if atom in inner:
            pending.extend(reversed(inner[atom].operands))
        else:
            yield atom
