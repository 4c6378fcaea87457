"""Small walks over programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fnad.ir.content import content_key
from fnad.ir.primitive import StepCount
from fnad.ir.program import Atom, Equation, Program, Var


def all_equations(program: Program) -> Iterator[Equation]:
    """Every equation, those of its regions after it."""
    for equation in program.equations:
        yield equation
        for region in equation.regions:
            yield from all_equations(region)


def has_effect(equation: Equation) -> bool:
    """True if an equation, or one in its regions, must run even if its results are not read."""
    return equation.primitive.effect or any(has_effect(e) for region in equation.regions for e in region.equations)


def acts_outside(equation: Equation) -> bool:
    """True if an equation, or one in its regions, has an effect other than to count steps for progress."""
    own = equation.primitive
    if own.effect and not isinstance(own.lower, StepCount):
        return True
    return any(acts_outside(e) for region in equation.regions for e in region.equations)


def use_counts(program: Program) -> Counter[Var]:
    """The number of uses of each value, as an operand or an output; a region uses the operands of its equation."""
    used = [atom for equation in program.equations for atom in equation.operands]
    return Counter(atom for atom in (*used, *program.outputs) if isinstance(atom, Var))


def equal_up_to_names(first: Program, second: Program) -> bool:
    """True if two programs are the same but for names and source lines."""
    return content_key(first) == content_key(second)


def between(program: Program, inputs: Sequence[Var], outputs: Sequence[Atom]) -> Program:
    """The part of a program that computes `outputs` from `inputs`, which must suffice, each equation as it is."""
    needed, given, kept = set(outputs), frozenset(inputs), list[Equation]()
    for equation in reversed(program.equations):
        if any(var in needed and var not in given for var in equation.results):
            kept.append(equation)
            needed.update(equation.operands)
    return Program(program.name, tuple(inputs), tuple(reversed(kept)), tuple(outputs))
