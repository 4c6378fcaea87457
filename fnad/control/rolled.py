"""A quick test for repeated equations, so that the module that finds loops is loaded only when there may be a loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import import_module

from fnad.ir.program import Equation, Program
from fnad.ir.walk import all_equations

FEWEST = 8
"""The fewest blocks that become a loop."""

SMALLEST = 64
"""The fewest equations that become a loop."""

SAMPLE = 1000
"""The equations of a longer program that are tested first: if they repeat, the whole does."""


def rolled(program: Program) -> Program:
    """The program with its repeats as loops, in regions too: see `fnad.control.reroll`."""
    if may_repeat(program) or any(equation.regions for equation in program.equations):
        found: Program = import_module("fnad.control.reroll").rolled(program)
        return found
    return program


def may_repeat(program: Program) -> bool:
    """True if enough equations come from so few lines that there may be a loop."""
    equations = program.equations
    return (len(equations) > SAMPLE and _may_repeat(equations[:SAMPLE])) or _may_repeat(equations)


def _may_repeat(equations: Sequence[Equation]) -> bool:
    counts = Counter([_line_of(equation) for equation in equations])
    weights = counts.copy()
    for equation in equations:
        if equation.regions:
            weights[_line_of(equation)] += weight(equation) - 1
    return sum(weights[line] for line, count in counts.items() if count >= FEWEST) >= SMALLEST


def _line_of(equation: Equation) -> object:
    return equation.primitive, equation.source and equation.source.line


def weight(equation: Equation) -> int:
    """The number of equations that an equation is, with those in its regions."""
    return 1 + sum(1 for region in equation.regions for _ in all_equations(region))
