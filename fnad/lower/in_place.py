"""In-place updates: which results take the memory of an operand that is dead afterwards.

A partial update of an array would copy it first, and so would a loop that carries it or a branch that changes it. No
copy is needed if the old array is not read later, neither by an equation nor by an expression that is computed only
where it is read. So filling an array element by element takes time in proportion to its elements, not to their square.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fnad.ir.primitive import Cond, DynamicUpdate, ScanLoop, Scatter, ScatterRuns, WhileLoop
from fnad.ir.program import Atom, Equation, Program, Var

SMALL = 4
"""A part of an array is small if it fits into it this many times."""

END = 2**62
"""The position of what is read at the end."""


def reusable(program: Program, materialized: set[Var], last: Iterable[Atom], carried: set[Var]) -> dict[Var, Var]:
    """For each result that may take the memory of an operand, that operand.

    `materialized` are the values with a buffer, `last` those read at the end, and `carried` the inputs that may be
    overwritten.
    """
    if not any(map(in_place_candidates, program.equations)):
        return {}
    behind = _what_is_read(program, materialized)
    last_read = _last_reads(program, materialized, last, behind)
    owned = {var for equation in program.equations for var in equation.results if var in materialized} | carried
    # The operand must be a buffer of this program or a carry, never an argument of the caller, and this equation its
    # last reader, both directly and through expressions that are computed only where they are read.
    return {
        result: operand
        for position, equation in enumerate(program.equations)
        for slot, result, operand in in_place_candidates(equation)
        if operand in owned and operand.aval.size > 1 and last_read[operand] == position
        if not any(operand in behind[atom] for atom in _read_meanwhile(equation, slot) if isinstance(atom, Var))
    }


def sampled(program: Program, materialized: set[Var], last: Iterable[Atom]) -> set[Var]:
    """Small parts of arrays that are better copied now than read later, so that the array's memory is free earlier."""
    ends = _last_uses(program, materialized, last)
    readers: dict[Atom, list[Equation]] = defaultdict(list)
    for equation in program.equations:
        for atom in dict.fromkeys(equation.operands):
            readers[atom].append(equation)
    found: set[Var] = set()
    for position, equation in enumerate(program.equations):
        for _, _, operand in in_place_candidates(equation):
            # A later read of x[3] keeps all of x alive past its update and forces a copy of x; to copy x[3] is cheaper.
            others = [other for other in readers[operand] if other is not equation]
            late = [
                var for other in others for var in other.results if var not in materialized and ends[var] > position
            ]
            if SMALL * sum(var.aval.size for var in late) <= operand.aval.size:
                found.update(late)
    return found


def _last_uses(program: Program, materialized: set[Var], last: Iterable[Atom]) -> dict[Atom, int]:
    """The position where each value is read last, directly or through values without a buffer."""
    ends: dict[Atom, int] = defaultdict(int, dict.fromkeys(last, END))
    for position, equation in reversed(list(enumerate(program.equations))):
        has_memory = not equation.results or bool(materialized.intersection(equation.results))
        end = position if has_memory else ends[equation.results[0]]
        for atom in equation.operands:
            ends[atom] = max(ends[atom], end)
    return ends


class InPlaceCandidate(NamedTuple):
    """A result that could take the memory of an operand, and the position of that operand."""

    slot: int
    result: Var
    operand: Var


def in_place_candidates(equation: Equation) -> list[InPlaceCandidate]:
    """The results of an equation that could take the memory of an operand."""
    params = equation.params
    match equation.primitive.lower:
        case DynamicUpdate() | Scatter() | ScatterRuns():
            start, count = 0, 1
        case ScanLoop():
            start, count = params["consts"] + (params["length"] is None), params["carry"]
        case WhileLoop():
            start = params["test_consts"] + params["body_consts"]
            count = len(equation.operands) - start
        case Cond():
            return _through_branches(equation)
        case _:
            return []
    pairs = enumerate(equation.operands[start : start + count])
    return [InPlaceCandidate(start + n, equation.results[n], atom) for n, atom in pairs if isinstance(atom, Var)]


def _through_branches(equation: Equation) -> list[InPlaceCandidate]:
    """The results that each branch makes of one and the same operand, updated or unchanged, or computes anew."""
    found: dict[int, InPlaceCandidate] = {}
    inputs = [_origins(region) for region in equation.regions]
    for n, result in enumerate(equation.results):
        origins = [places[n] for places in inputs]
        slots = {1 + origin for origin in origins if origin is not None}
        if len(slots) == 1:
            (slot,) = slots
            operand = equation.operands[slot]
            if isinstance(operand, Var):
                found.setdefault(slot, InPlaceCandidate(slot, result, operand))
    return list(found.values())


def _origins(region: Program) -> list[int | None]:
    """The position of the input whose memory each output of a region may be in."""
    came_from = {
        candidate.result: candidate.operand
        for equation in region.equations
        for candidate in in_place_candidates(equation)
    }
    places: dict[Atom, int] = {var: place for place, var in enumerate(region.inputs)}

    def place(atom: Atom) -> int | None:
        while isinstance(atom, Var) and atom in came_from:
            atom = came_from[atom]
        return places.get(atom)

    return list(map(place, region.outputs))


def _read_meanwhile(equation: Equation, slot: int) -> Sequence[Atom]:
    """The operands that an equation may read after it has begun to write its result.

    An update of one element has read all its operands by then. Scatters read the indices as they go; where the new
    elements must not be overwritten before they are read, they are copied first.
    """
    operands = equation.operands
    if not equation.regions:
        return () if operands[1].aval.size == 1 else operands[2:]
    return [*operands[:slot], *operands[slot + 1 :]]


def _what_is_read(program: Program, materialized: set[Var]) -> dict[Var, frozenset[Var]]:
    """For each value, the buffered values that are read where it is read."""
    behind = {var: frozenset([var]) for var in program.inputs}
    for equation in program.equations:
        read = frozenset[Var]().union(*(behind[atom] for atom in equation.operands if isinstance(atom, Var)))
        behind.update((var, frozenset([var]) if var in materialized else read) for var in equation.results)
    return behind


def _last_reads(
    program: Program, materialized: set[Var], last: Iterable[Atom], behind: dict[Var, frozenset[Var]]
) -> dict[Var, int]:
    """The position of the last equation that reads each buffered value, directly or through values without a buffer."""
    found: dict[Var, int] = {}
    for position, equation in enumerate(program.equations):
        if not equation.results or materialized.intersection(equation.results):
            for atom in equation.operands:
                found.update(dict.fromkeys(behind[atom] if isinstance(atom, Var) else (), position))
    for atom in last:
        found.update(dict.fromkeys(behind[atom] if isinstance(atom, Var) else (), END))
    return found
