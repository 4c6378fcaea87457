"""Dead-code elimination: dropping the equations that no output depends on, in loops and branches too."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from operator import is_

from fnad.ir.builder import rebuilt
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.walk import has_effect


def dce(program: Program) -> Program:
    """The program with only the equations its outputs need; itself if they need all."""
    if program.is_live:
        return program
    live: set[Atom] = set(program.outputs)
    kept: list[Equation] = []
    for equation in reversed(program.equations):
        if not live.isdisjoint(equation.results) or has_effect(equation):
            kept.append(pruned(equation, live))
            live.update(kept[-1].operands)
    kept.reverse()
    is_same = not program.asked and len(kept) == len(program.equations) and all(map(is_, kept, program.equations))
    found = program if is_same else Program(program.name, program.inputs, tuple(kept), program.outputs)
    object.__setattr__(found, "is_live", True)
    return found


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


def pruned(equation: Equation, live: AbstractSet[Atom]) -> Equation:
    """The equation without what only dead results need."""
    prune = equation.primitive.prune
    if prune is None:
        return equation
    found = prune(equation, [var in live for var in equation.results])
    return equation if found is equation else rebuilt(found)
