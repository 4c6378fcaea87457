"""The simplification passes and their order."""

from __future__ import annotations

from fnad.ir.builder import with_regions
from fnad.ir.program import Program
from fnad.ir.walk import equal_up_to_names
from fnad.transforms.cse import reuse_commuted
from fnad.transforms.dce import dce
from fnad.transforms.deviations import without_deviations
from fnad.transforms.directions import selected
from fnad.transforms.finite import plain
from fnad.transforms.flatten import flatten
from fnad.transforms.fold import fold_constants
from fnad.transforms.hoist import broadcast_late, transpose_late
from fnad.transforms.ordering import on_diagonal, ordered
from fnad.transforms.pattern import by_rules
from fnad.transforms.quotients import factored
from fnad.transforms.rewrite import rewrite
from fnad.transforms.row_updates import computed_from_updates
from fnad.transforms.rules.algebra import ALGEBRA, POWER, STRONG
from fnad.transforms.rules.choice import CONVERT, LOGIC, SELECT
from fnad.transforms.rules.contraction import CONTRACTION
from fnad.transforms.rules.exponentials import BY_PARTS
from fnad.transforms.rules.indexing import INDEXING
from fnad.transforms.rules.movement import MOVEMENT
from fnad.transforms.rules.reduction import REDUCTION

SWEEPS = 4
"""The most sweeps; hardly any program needs more than two."""

RULES = (
    *ALGEBRA,
    *STRONG,
    *POWER,
    *SELECT,
    *LOGIC,
    *CONVERT,
    *MOVEMENT,
    *REDUCTION,
    *BY_PARTS,
    *CONTRACTION,
    *INDEXING,
)
_by_rules = by_rules(RULES)


def sweep(program: Program) -> Program:
    """The program after one forward sweep of the rules, constant folding and common subexpressions."""
    return rewrite(
        program,
        fold_constants,
        selected,
        _by_rules,
        plain,
        on_diagonal,
        ordered,
        factored,
        without_deviations,
        computed_from_updates,
        broadcast_late,
        transpose_late,
        reuse_commuted,
    )


def simplify(program: Program) -> Program:
    """An equivalent program that does less: swept until nothing changes, its regions too."""
    if program.is_simple:
        return program
    program = dce(program)
    if not _has_simple_regions(program):
        program = with_regions(program, simplify)
    for _ in range(SWEEPS):
        simpler = dce(sweep(program))
        if len(simpler.equations) == len(program.equations):
            found = flatten(simpler)
            if found is simpler and _has_simple_regions(found) and equal_up_to_names(found, program):
                object.__setattr__(found, "is_simple", True)
            return found
        program = simpler
    return flatten(program)


def _has_simple_regions(program: Program) -> bool:
    return all(region.is_simple for equation in program.equations for region in equation.regions)
