"""The order of equations: what reads an array comes before what may overwrite it.

An update takes the memory of its operand if nobody reads that later (see `reuse`). So an update, or a loop that carries
an array, is put off until the others that read the same array, and do not need its result, have been.
"""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.program import Atom, Equation, Program, Var
from fnad.lower.reuse import takers
from fnad.transforms.dce import has_effect


def reads_first(program: Program) -> Program:
    """Return the program with its updates put off."""
    equations = list(program.equations)
    last = {atom: n for n, equation in enumerate(equations) for atom in equation.operands}
    last.update(dict.fromkeys(program.outputs, 0))  # nothing comes before what is returned is overwritten
    for n, equation in enumerate(program.equations):
        for taker in takers(equation):
            if taker.operand.aval.size > 1 and last[taker.operand] > n:
                equations = _put_off(equation, taker.operand, equations)
    return Program(program.name, program.inputs, tuple(equations), program.outputs)


def _put_off(equation: Equation, operand: Var, equations: list[Equation]) -> list[Equation]:
    """Return the equations with those that read an operand, and what they need, before an equation."""
    start = equations.index(equation)
    before, behind = equations[:start], equations[start + 1 :]
    readers = [other for other in behind if operand in other.operands]
    if not readers:
        return equations
    needed = _needed(readers, behind)
    if any(set(other.operands).intersection(equation.results) or has_effect(other) for other in needed):
        return equations
    moved = set(needed)
    return [*before, *needed, equation, *(other for other in behind if other not in moved)]


def _needed(readers: Sequence[Equation], equations: Sequence[Equation]) -> list[Equation]:
    """Return the readers and all of the equations that they depend on, in order."""
    wanted: set[Atom] = {var for reader in readers for var in reader.results}
    found: list[Equation] = []
    for equation in reversed(equations):
        if wanted.intersection(equation.results):
            wanted.update(equation.operands)
            found.append(equation)
    return found[::-1]
