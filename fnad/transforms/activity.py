"""The values that carry a derivative: those of inexact dtype that depend, differentiably, on the chosen inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress

from fnad.ir.primitive import Bilinear, Linear, NonDifferentiable, Partials, Primitive, Structured
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.types import is_inexact


def active_vars(program: Program, wrt: Sequence[bool]) -> set[Var]:
    """The variables that the inputs marked in `wrt` reach through differentiable operands."""
    active = {var for var, marked in zip(program.inputs, wrt, strict=True) if marked and is_inexact(var.aval.dtype)}
    for equation in program.equations:
        operands = active_operands(equation, active)
        if any(operands):
            reached = _reached(equation, operands)
            active.update(var for var in reached if is_inexact(var.aval.dtype))
    return active


def _reached(equation: Equation, active: Sequence[bool]) -> Iterable[Var]:
    """The results that carry a derivative where the active operands do."""
    match equation.primitive.derivative:
        case Structured(reach=reach):
            return compress(equation.results, reach(equation, active))
        case _:
            return equation.results


def needed_vars(program: Program, outputs: Iterable[Atom]) -> set[Var]:
    """The variables from which a derivative reaches one of these outputs, which are inexact."""
    needed = {atom for atom in outputs if isinstance(atom, Var)}
    for equation in reversed(program.equations):
        if not needed.isdisjoint(equation.results):
            passes = differentiable_in(equation.primitive, len(equation.operands))
            reached = (atom for p, atom in zip(passes, equation.operands, strict=True) if p and isinstance(atom, Var))
            needed.update(var for var in reached if is_inexact(var.aval.dtype))
    return needed


def active_operands(equation: Equation, active: set[Var]) -> tuple[bool, ...]:
    """For each operand, whether the equation propagates its derivative."""
    passes = differentiable_in(equation.primitive, len(equation.operands))
    return tuple(p and atom in active for p, atom in zip(passes, equation.operands, strict=True))


def differentiable_in(primitive: Primitive, arity: int) -> tuple[bool, ...]:
    """For each operand, whether the primitive has a derivative with respect to it."""
    match primitive.derivative:
        case NonDifferentiable():
            return (False,) * arity
        case Partials(functions):
            return tuple(function is not None for function in functions)
        case Linear(_, wrt) if wrt is not None:
            return tuple(i in wrt for i in range(arity))
        case Bilinear():
            return (True, True)
        case _:
            return (True,) * arity
