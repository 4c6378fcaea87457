"""Cutting a joint program in two: what runs now, and what runs when the cotangents are given.

The values that cross are the residuals: inputs and results of the first part that the second needs.
"""

from __future__ import annotations

from dataclasses import replace

from fnad.ir.program import Equation, Program, Var
from fnad.transforms.dce import dce


def split(program: Program, inputs: int, outputs: int) -> tuple[Program, Program]:
    """Cut (x…, ct…) -> (y…, x̄…) after the first `inputs` inputs and `outputs` outputs.

    Returns (x…) -> (y…, residuals…) and (residuals…, ct…) -> (x̄…).
    """
    first, residuals, backward = cut(program, inputs, outputs)
    return dce(replace(first, outputs=(*first.outputs, *residuals))), backward


def cut(program: Program, inputs: int, outputs: int) -> tuple[Program, tuple[Var, ...], Program]:
    """The first part, (x…) -> (y…), with all that depends on the x alone; the residuals; and the second part."""
    late = set(program.inputs[inputs:])
    first: list[Equation] = []
    second: list[Equation] = []
    for equation in program.equations:
        if late.isdisjoint(equation.operands):
            first.append(equation)
        else:
            second.append(equation)
            late.update(equation.results)
    backward = dce(replace(program, equations=tuple(second), outputs=program.outputs[outputs:]))
    used = [atom for equation in backward.equations for atom in equation.operands] + list(backward.outputs)
    residuals = tuple(dict.fromkeys(atom for atom in used if isinstance(atom, Var) and atom not in late))
    forward = Program(program.name, program.inputs[:inputs], tuple(first), program.outputs[:outputs])
    crossing = (*residuals, *program.inputs[inputs:])
    return forward, residuals, replace(backward, name=f"{program.name}_pullback", inputs=crossing)
