"""Which values are kept in a buffer, and which are computed again wherever they are read.

Kept are the outputs, whatever is not elementwise or a view, and of the rest what would cost more to compute again than
to store and load: a value that is read several times, or many times over through a broadcast, and took some work.
A kept value costs nothing where its readers end up in the same nest: the store falls away.
"""

from __future__ import annotations

from collections import defaultdict

from fnad.ir.primitive import Concatenation, Contraction, Gather, Library, Scalar, View
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.lower.expressions import is_inlined

RECOMPUTE = 10
"""The work, in additions, up to which a value that is read again is computed again."""

LONGEST = 100
"""How many operations one expression may have."""


PIECES = 4
"""How many operands a concatenation may have that is computed where it is read."""


def kept_values(program: Program) -> set[Var]:
    """Return the variables that get a buffer."""
    readers = _readers(program)
    outputs = {atom for atom in program.outputs if isinstance(atom, Var)}
    kept: set[Var] = set(program.inputs)
    work: dict[Var, int] = defaultdict(int)
    length: dict[Var, int] = defaultdict(int)
    for equation in program.equations:
        inlined = [a for a in equation.operands if isinstance(a, Var) and a not in kept]
        var = equation.results[0]
        work[var] = _cost(equation) + sum(work[a] for a in inlined)
        length[var] = 1 + sum(length[a] for a in inlined)
        if (
            not is_inlined(equation)
            or var in outputs
            or length[var] > LONGEST
            or _has_many_pieces(equation)
            or _read_whole(equation, readers[var])
            or (work[var] > RECOMPUTE and _read_again(var, readers[var]))
            or (work[var] > 0 and len(readers[var]) > 1 and any(_moves(reader) for reader in readers[var]))
        ):
            kept.update(equation.results)
    return kept


def _has_many_pieces(equation: Equation) -> bool:
    """Say whether an element would have to ask in many places where it comes from."""
    return isinstance(equation.primitive.lower, Concatenation) and len(equation.operands) > PIECES


def _readers(program: Program) -> dict[Atom, list[Equation]]:
    readers: dict[Atom, list[Equation]] = defaultdict(list)
    for equation in program.equations:
        for atom in equation.operands:
            readers[atom].append(equation)
    return readers


def _cost(equation: Equation) -> int:
    lower = equation.primitive.lower
    return lower.cost if isinstance(lower, Scalar) else 0


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
