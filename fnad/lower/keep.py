"""Which values are kept in a buffer, and which are computed again wherever they are read.

Kept are the outputs, whatever is not elementwise or a view, and of the rest what would cost more to compute again than
to store and load: a value that is read several times, or many times over through a broadcast, and took some work.
A kept value costs nothing where its readers end up in the same nest: the store falls away.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from fnad.ir.primitive import Contraction, Gather, Library, Scalar, View
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.lower.expressions import is_inlined

RECOMPUTE = 12
"""The work, in additions, up to which a value that is read again is computed again."""

LOAD = 4
"""The work of loading one operand."""

LONGEST = 100
"""How many operations one expression may have."""


@dataclass(frozen=True, slots=True)
class _Effort:
    """What it takes to compute a value again from kept ones."""

    work: int
    loads: int
    length: int


def kept_values(program: Program) -> set[Var]:
    """Return the variables that get a buffer."""
    readers = _readers(program)
    outputs = {atom for atom in program.outputs if isinstance(atom, Var)}
    kept: set[Var] = set(program.inputs)
    efforts: dict[Var, _Effort] = {}
    for equation in program.equations:
        effort = _effort(equation, kept, efforts)
        var = equation.results[0]
        if (
            not is_inlined(equation)
            or var in outputs
            or effort.length > LONGEST
            or _read_whole(equation, readers[var])
            or (effort.work > 0 and _worth_keeping(var, effort, readers[var]))
        ):
            kept.update(equation.results)
        else:
            efforts[var] = effort
    return kept


def _effort(equation: Equation, kept: set[Var], efforts: dict[Var, _Effort]) -> _Effort:
    operands = [atom for atom in equation.operands if isinstance(atom, Var)]
    inlined = [efforts[atom] for atom in operands if atom not in kept]
    lower = equation.primitive.lower
    return _Effort(
        (lower.cost if isinstance(lower, Scalar) else 0) + sum(e.work for e in inlined),
        sum(atom in kept for atom in operands) + sum(e.loads for e in inlined),
        1 + sum(e.length for e in inlined),
    )


def _worth_keeping(var: Var, effort: _Effort, readers: list[Equation]) -> bool:
    if effort.work + LOAD * effort.loads > RECOMPUTE and _read_again(var, readers):
        return True
    return len(readers) > 1 and any(_moves(reader) for reader in readers)


def _readers(program: Program) -> dict[Atom, list[Equation]]:
    readers: dict[Atom, list[Equation]] = defaultdict(list)
    for equation in program.equations:
        for atom in equation.operands:
            readers[atom].append(equation)
    return readers


def _read_whole(equation: Equation, readers: list[Equation]) -> bool:
    """Say whether a reader wants an array: a library call does, a matrix product too unless this is a plain view."""
    lower = equation.primitive.lower
    plain_view = isinstance(lower, View) and lower.guard is None
    kinds = [reader.primitive.lower for reader in readers]
    products = any(isinstance(r.primitive.lower, Contraction) and not is_inlined(r) for r in readers)
    return any(isinstance(k, Library) for k in kinds) or (products and not plain_view)


def _read_again(var: Var, readers: list[Equation]) -> bool:
    return len(readers) > 1 or any(reader.results[0].aval.size > var.aval.size for reader in readers)


def _moves(reader: Equation) -> bool:
    """Say whether a reader reads at other indices than its own, so that reading through several would multiply work."""
    return isinstance(reader.primitive.lower, View | Gather) and len(reader.results[0].aval.shape) > 0
