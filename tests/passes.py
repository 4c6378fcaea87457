"""The passes over programs that run in any order."""

from __future__ import annotations

from collections.abc import Callable

from fnad.ir.program import Program
from fnad.transforms.cse import reuse_commuted
from fnad.transforms.dce import dce
from fnad.transforms.flatten import flatten
from fnad.transforms.fold import fold_constants
from fnad.transforms.hoist import broadcast_late
from fnad.transforms.pattern import by_rules
from fnad.transforms.pipeline import RULES, simplify, sweep
from fnad.transforms.rewrite import rewrite


def cse(program: Program) -> Program:
    """Return the program without equations that compute a value a second time."""
    return rewrite(program, reuse_commuted)


def fold(program: Program) -> Program:
    """Return the program with constants computed."""
    return rewrite(program, fold_constants)


def hoist(program: Program) -> Program:
    """Return the program with elementwise equations moved before the broadcasts of their operands."""
    return rewrite(program, broadcast_late)


PASSES: dict[str, Callable[[Program], Program]] = {
    "dce": dce,
    "cse": cse,
    "fold": fold,
    "rules": lambda program: rewrite(program, by_rules(RULES)),
    "hoist": hoist,
    "flatten": flatten,
    "sweep": sweep,
    "simplify": simplify,
}
