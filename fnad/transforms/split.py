"""Cutting a joint program in two: what runs now, and what runs when the cotangents are given.

The values that cross are the residuals: inputs and results of the first part that the second needs.
"""

from __future__ import annotations

from fnad.ir.program import Equation, Program, Var
from fnad.transforms.dce import dce


def split(program: Program, inputs: int, outputs: int) -> tuple[Program, Program]:
    """Cut (x…, ct…) -> (y…, x̄…) after the first `inputs` inputs and `outputs` outputs.

    Returns (x…) -> (y…, residuals…) and (residuals…, ct…) -> (x̄…).
    """
    first, second = halves(program, inputs)
    late = {*program.inputs[inputs:], *(var for equation in second for var in equation.results)}
    whole = Program(program.name, program.inputs, tuple(second), program.outputs[outputs:])
    backward = dce(whole)
    crossing = _residuals(backward, late)
    return (
        dce(Program(program.name, program.inputs[:inputs], tuple(first), (*program.outputs[:outputs], *crossing))),
        Program(
            f"{program.name}_pullback", (*crossing, *program.inputs[inputs:]), backward.equations, backward.outputs
        ),
    )


def halves(program: Program, inputs: int) -> tuple[list[Equation], list[Equation]]:
    """The equations that depend on the first `inputs` inputs alone, and the others."""
    late = set(program.inputs[inputs:])
    first: list[Equation] = []
    second: list[Equation] = []
    for equation in program.equations:
        if late.isdisjoint(equation.operands):
            first.append(equation)
        else:
            second.append(equation)
            late.update(equation.results)
    return first, second


def _residuals(backward: Program, late: set[Var]) -> tuple[Var, ...]:
    used = [atom for equation in backward.equations for atom in equation.operands] + list(backward.outputs)
    return tuple(dict.fromkeys(atom for atom in used if isinstance(atom, Var) and atom not in late))
