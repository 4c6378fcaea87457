"""Which results take the memory of an operand: an array that is dead afterwards is changed where it lies.

An update of an array in part, and a loop that carries it, would copy it first. They need not if nobody reads the old
array later, neither an equation nor an expression that is computed only where it is read. So filling an array element
by element takes time in proportion to its elements, not to their square.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fnad.ir.primitive import DynamicUpdate, ScanLoop, Scatter, WhileLoop
from fnad.ir.program import Atom, Equation, Program, Var

END = 2**62
"""The position of what is read at the end."""


def reusable(program: Program, kept: set[Var], last: Iterable[Atom], carried: set[Var]) -> dict[Var, Var]:
    """Return, for each result that may take the memory of an operand, that operand.

    `kept` are the values with memory, `last` those read at the end, `carried` the inputs that may be overwritten.
    """
    if not any(map(takers, program.equations)):
        return {}
    behind = _what_is_read(program, kept)
    last_read = _last_reads(program, kept, last, behind)
    owned = {var for equation in program.equations for var in equation.results if var in kept} | carried
    return {
        result: operand
        for position, equation in enumerate(program.equations)
        for slot, result, operand in takers(equation)
        if operand in owned and operand.aval.size > 1 and last_read[operand] == position
        if not any(operand in behind[atom] for atom in _read_meanwhile(equation, slot) if isinstance(atom, Var))
    }


class Taker(NamedTuple):
    """A result that could take the memory of an operand, and the place of that among the operands."""

    slot: int
    result: Var
    operand: Var


def takers(equation: Equation) -> list[Taker]:
    """Return the results of an equation that could take the memory of an operand."""
    params = equation.params
    match equation.primitive.lower:
        case DynamicUpdate() | Scatter():
            start, count = 0, 1
        case ScanLoop():
            start, count = params["consts"] + (params["length"] is None), params["carry"]
        case WhileLoop():
            start = params["test_consts"] + params["body_consts"]
            count = len(equation.operands) - start
        case _:
            return []
    pairs = enumerate(equation.operands[start : start + count])
    return [Taker(start + n, equation.results[n], atom) for n, atom in pairs if isinstance(atom, Var)]


def _read_meanwhile(equation: Equation, slot: int) -> Sequence[Atom]:
    """Return the operands that an equation may read after it has begun to write its result.

    An update of one element has read all by then; others compute what they write to the side where they have to.
    """
    operands = equation.operands
    if not equation.regions:
        return () if operands[1].aval.size == 1 else operands[2:]
    return [*operands[:slot], *operands[slot + 1 :]]


def _what_is_read(program: Program, kept: set[Var]) -> dict[Var, frozenset[Var]]:
    """Return which values with memory are read where a value is read."""
    behind = {var: frozenset([var]) for var in program.inputs}
    for equation in program.equations:
        read = frozenset[Var]().union(*(behind[atom] for atom in equation.operands if isinstance(atom, Var)))
        behind.update((var, frozenset([var]) if var in kept else read) for var in equation.results)
    return behind


def _last_reads(
    program: Program, kept: set[Var], last: Iterable[Atom], behind: dict[Var, frozenset[Var]]
) -> dict[Var, int]:
    """Return the position of the last equation that reads a value in memory, directly or through what has none."""
    found: dict[Var, int] = {}
    for position, equation in enumerate(program.equations):
        if not equation.results or kept.intersection(equation.results):
            for atom in equation.operands:
                found.update(dict.fromkeys(behind[atom] if isinstance(atom, Var) else (), position))
    for atom in last:
        found.update(dict.fromkeys(behind[atom] if isinstance(atom, Var) else (), END))
    return found
