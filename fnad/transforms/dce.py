"""Dead-code elimination: dropping the equations that no output depends on, in loops and branches too."""

from __future__ import annotations

from fnad.ir.builder import rebuilt
from fnad.ir.program import Equation, Program, Var
from fnad.ir.walk import has_effect


def dce(program: Program) -> Program:
    """The program with only the equations its outputs need."""
    live = {atom for atom in program.outputs if isinstance(atom, Var)}
    kept: list[Equation] = []
    for equation in reversed(program.equations):
        if live.intersection(equation.results) or has_effect(equation):
            kept.append(pruned(equation, live))
            live.update(atom for atom in kept[-1].operands if isinstance(atom, Var))
    return Program(program.name, program.inputs, tuple(reversed(kept)), program.outputs)


def without_effects(program: Program) -> Program:
    """The program as it runs again: what happened only for its effect does not happen a second time."""
    live = {atom for atom in program.outputs if isinstance(atom, Var)}
    kept: list[Equation] = []
    for equation in reversed(program.equations):
        if live.intersection(equation.results):
            kept.append(pruned(effectless(equation), live))
            live.update(atom for atom in kept[-1].operands if isinstance(atom, Var))
    return Program(program.name, program.inputs, tuple(reversed(kept)), program.outputs)


def effectless(equation: Equation) -> Equation:
    """The equation with such regions."""
    if not has_effect(equation):
        return equation
    return rebuilt(equation, regions=tuple(map(without_effects, equation.regions)))


def pruned(equation: Equation, live: set[Var]) -> Equation:
    """The equation without what only dead results need."""
    prune = equation.primitive.prune
    return equation if prune is None else rebuilt(prune(equation, [var in live for var in equation.results]))
