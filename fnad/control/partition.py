"""What one pass through a region saves for the way back, and what is computed again there.

A joint program (x…, ct…) -> (y…, x̄…) is cut in two, as `fnad.transforms.split` does, but by another measure: a
residual is written once for each step of a loop, so that all that costs little is rather computed again. Saved are
results of expensive equations (products of matrices, library calls, transcendental functions, reductions); arithmetic
and views of what is there already are not; nor are residual stacks, which have no place in an array of rows: the loop
that writes one is run again. What the second part needs of the inputs is left to the caller to hand over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from fnad.ir.primitive import Concatenation, IndexMap, Iota, Scalar
from fnad.ir.program import Equation, Program, Var
from fnad.transforms.dce import dce
from fnad.transforms.differentiation import joint
from fnad.transforms.pipeline import simplify
from fnad.transforms.split import cut

CHEAP = 8
"""The cost of a scalar operation, in additions, up to which it is computed again."""


class Parts(NamedTuple):
    """The first part (x…) -> (y…, r…), the second (x[inputs]…, r…, ct…) -> (x̄…), with so many `residuals` r."""

    forward: Program
    backward: Program
    inputs: tuple[int, ...]
    residuals: int


def partitioned(region: Program, marked: Sequence[bool]) -> Parts:
    """The parts of a region whose `marked` inputs carry a derivative."""
    return partition(simplify(joint(region, marked)), len(region.inputs), len(region.outputs))


def partition(program: Program, inputs: int, outputs: int) -> Parts:
    """Cut a joint program after its first `inputs` inputs and `outputs` outputs."""
    first, needed, second = cut(program, inputs, outputs)
    again, residuals = _resolved(first.equations, needed, set(first.inputs))
    used = [i for i, var in enumerate(first.inputs) if var in again.inputs]
    crossing = (*[first.inputs[i] for i in used], *residuals, *program.inputs[inputs:])
    equations = (*[e for e in first.equations if e in again.equations], *second.equations)
    backward = Program(f"{program.name}_back", crossing, equations, second.outputs)
    return Parts(dce(replace(first, outputs=(*first.outputs, *residuals))), dce(backward), tuple(used), len(residuals))


class _Again(NamedTuple):
    equations: set[Equation]
    inputs: set[Var]


def _resolved(first: Sequence[Equation], needed: Sequence[Var], inputs: set[Var]) -> tuple[_Again, tuple[Var, ...]]:
    """The equations to run again with the inputs they lead to, and the results to save, in order."""
    makers = {var: equation for equation in first for var in equation.results}
    again = _Again(set(), set())
    saved: set[Var] = set()
    pending = list(needed)
    while pending:
        var = pending.pop()
        if var in inputs:
            again.inputs.add(var)
        elif var in makers and var not in saved:
            equation = makers[var]
            # no array has residual stacks for rows, however expensive they are: the loop that writes them runs again
            if not var.aval.is_residual_stack and not _is_cheap(equation, inputs):
                saved.add(var)
            elif equation not in again.equations:
                again.equations.add(equation)
                pending.extend(atom for atom in equation.operands if isinstance(atom, Var))
    return again, tuple(var for var in makers if var in saved)


def _is_cheap(equation: Equation, inputs: set[Var]) -> bool:
    match equation.primitive.lower:
        case Scalar(_, cost):
            return cost <= CHEAP
        case IndexMap():
            # a part of a large result is saved itself, lest all of it be
            operand, result = equation.operands[0], equation.results[0]
            return operand in inputs or operand.aval.size <= result.aval.size
        case Iota() | Concatenation():
            return True
        case _:
            return False
