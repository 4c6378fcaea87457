"""The passes that make a program simple, and their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fnad.ir.program import Program
from fnad.transforms.cse import reuse_commuted
from fnad.transforms.dce import dce
from fnad.transforms.fold import fold_constants
from fnad.transforms.pattern import by_rules
from fnad.transforms.rewrite import rewrite
from fnad.transforms.rules.algebra import ALGEBRA, STRONG
from fnad.transforms.rules.movement import MOVEMENT

Pass: TypeAlias = Callable[[Program], Program]

SWEEPS = 4
"""At most so many sweeps; hardly any program needs more than two."""

RULES = (*ALGEBRA, *STRONG, *MOVEMENT)
_apply_rules = by_rules(RULES)


def sweep(program: Program) -> Program:
    """Return the program after one forward sweep of the rules, constant folding and common subexpressions."""
    return rewrite(program, fold_constants, _apply_rules, reuse_commuted)


def simplify(program: Program) -> Program:
    """Return a program of the same values with less to do: swept until nothing more is found."""
    program = dce(program)
    for _ in range(SWEEPS):
        simpler = dce(sweep(program))
        if len(simpler.equations) == len(program.equations):
            return simpler
        program = simpler
    return program
