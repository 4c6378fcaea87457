"""Cutting a joint program in two: what runs now, and what runs when the cotangents are given.

The values that cross are the residuals: inputs and results of the first part that the second needs. Which results these
are, and what is computed again from them instead, is chosen in `fnad.transforms.residuals`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from fnad.ir.program import Equation, Program, Var
from fnad.transforms.dce import dce, effectless
from fnad.transforms.residuals import chosen, price_of


class Parts(NamedTuple):
    """The first part (x…) -> (y…, r…), the second (x[inputs]…, r…, ct…) -> (x̄…), with so many `residuals` r."""

    forward: Program
    backward: Program
    inputs: tuple[int, ...]
    residuals: int


def split(program: Program, inputs: int, outputs: int) -> tuple[Program, Program]:
    """Cut (x…, ct…) -> (y…, x̄…) after the first `inputs` inputs and `outputs` outputs.

    Returns (x…) -> (y…, residuals…) and (residuals…, ct…) -> (x̄…), where residuals may be inputs.
    """
    forward, backward, given, _ = partition(program, inputs, outputs)
    crossing = [*[forward.inputs[i] for i in given], *forward.outputs[outputs:]]
    return replace(forward, outputs=(*forward.outputs[:outputs], *crossing)), backward


def partition(program: Program, inputs: int, outputs: int, price: Callable[[Var], int] = price_of) -> Parts:
    """The same, where the caller hands over what the second part needs of the inputs."""
    first, second = _by_cotangents(program, inputs, outputs)
    saved, again = chosen(first.equations, second, price)
    repeated = [effectless(equation) for equation in first.equations if equation in again]
    backward = dce(replace(second, equations=(*repeated, *second.equations)))
    read = {atom for equation in backward.equations for atom in equation.operands}.union(backward.outputs)
    used = [i for i, var in enumerate(first.inputs) if var in read]
    kept = [var for var in saved if var in read]
    crossing = (*[first.inputs[i] for i in used], *kept, *program.inputs[inputs:])
    forward = dce(replace(first, outputs=(*first.outputs, *kept)))
    return Parts(forward, replace(backward, inputs=crossing), tuple(used), len(kept))


def _by_cotangents(program: Program, inputs: int, outputs: int) -> tuple[Program, Program]:
    """The part that depends on the first inputs alone, and the part that the last outputs need of the rest."""
    late = set(program.inputs[inputs:])
    first: list[Equation] = []
    second: list[Equation] = []
    for equation in program.equations:
        if late.isdisjoint(equation.operands):
            first.append(equation)
        else:
            second.append(equation)
            late.update(equation.results)
    forward = Program(program.name, program.inputs[:inputs], tuple(first), program.outputs[:outputs])
    backward = Program(f"{program.name}_pullback", program.inputs, tuple(second), program.outputs[outputs:])
    return forward, dce(backward)
