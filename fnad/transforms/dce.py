"""Dead-code elimination: drop the equations that no output depends on."""

from __future__ import annotations

from fnad.ir.program import Equation, Program, Var


def dce(program: Program) -> Program:
    """Return the program with only the equations its outputs need."""
    live = {atom for atom in program.outputs if isinstance(atom, Var)}
    kept: list[Equation] = []
    for equation in reversed(program.equations):
        if live.intersection(equation.results):
            kept.append(equation)
            live.update(atom for atom in equation.operands if isinstance(atom, Var))
    return Program(program.name, program.inputs, tuple(reversed(kept)), program.outputs)
