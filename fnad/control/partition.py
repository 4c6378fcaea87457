"""What one pass through a region saves for the way back, and what is computed again there.

A joint program (x…, ct…) -> (y…, x̄…) is cut in two, as `fnad.transforms.split` does, but by another measure: a
residual is written once for each step of a loop, so that all that costs little is rather computed again. Saved are
results of expensive equations (products of matrices, library calls, transcendental functions, reductions); arithmetic
and views of what is there already are not; nor are residual stacks, which have no place in an array of rows: the loop
that writes one is run again. What the second part needs of the inputs is left to the caller to hand over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fnad.ir.primitive import Concatenation, IndexMap, Iota, Scalar
from fnad.ir.program import Equation, Program, Var
from fnad.transforms.dce import dce, has_effect
from fnad.transforms.differentiation import joint
from fnad.transforms.pipeline import simplify
from fnad.transforms.split import halves

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
    first, second = halves(program, inputs)
    again, residuals = _resolved(first, _needed(second, program.outputs[outputs:]), set(program.inputs[:inputs]))
    used = [i for i, var in enumerate(program.inputs[:inputs]) if var in again.inputs]
    forward = Program(program.name, program.inputs[:inputs], tuple(first), (*program.outputs[:outputs], *residuals))
    crossing = (*[program.inputs[i] for i in used], *residuals, *program.inputs[inputs:])
    equations = (*[e for e in first if e in again.equations], *second)
    backward = Program(f"{program.name}_back", crossing, equations, program.outputs[outputs:])
    return Parts(dce(forward), dce(backward), tuple(used), len(residuals))


def _needed(second: Sequence[Equation], outputs: Sequence[object]) -> list[Var]:
    """What the second part takes from outside, without what none of its outputs needs."""
    live = {atom for atom in outputs if isinstance(atom, Var)}
    for equation in reversed(second):
        if live.intersection(equation.results) or has_effect(equation):
            live.update(atom for atom in equation.operands if isinstance(atom, Var))
    defined = {var for equation in second for var in equation.results}
    return [var for var in live if var not in defined]


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
            operand, result = equation.operands[0], equation.results[0]
            return operand in inputs or operand.aval.size <= result.aval.size
        case Iota() | Concatenation():
            return True
        case _:
            return False
