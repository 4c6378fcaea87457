"""The order of equations: what reads an array comes before what may overwrite it.

An update takes the memory of its operand if nobody reads that later (see `reuse`). So an update, or a loop that carries
an array, is put off until the others that read the same array, and do not need its result, have been.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fnad.ir.program import Atom, Equation, Program, Var
from fnad.lower.in_place import in_place_candidates
from fnad.transforms.dce import has_effect


def reads_first(program: Program) -> Program:
    """Return the program with its updates put off."""
    last = {atom: n for n, equation in enumerate(program.equations) for atom in equation.operands}
    last.update(dict.fromkeys(program.outputs, 0))  # nothing comes before what is returned is overwritten
    order = Order(program.equations)
    for n, equation in enumerate(program.equations):
        for candidate in in_place_candidates(equation):
            if candidate.operand.aval.size > 1 and last[candidate.operand] > n:
                order.put_off(equation, candidate.operand)
    return Program(program.name, program.inputs, tuple(order.equations), program.outputs)


MOST = 100
"""Equations that are put before another one at a time."""


class Order:
    """Equations in an order that changes."""

    def __init__(self, equations: Sequence[Equation]) -> None:
        self.equations = list(equations)
        self._positions = {equation: n for n, equation in enumerate(equations)}
        self._readers: dict[Atom, list[Equation]] = defaultdict(list)
        self._makers: dict[Atom, Equation] = {}
        for equation in equations:
            self._makers.update(dict.fromkeys(equation.results, equation))
            for atom in dict.fromkeys(equation.operands):
                self._readers[atom].append(equation)

    def put_off(self, equation: Equation, operand: Var) -> None:
        """Have those that read an operand, and what they need, before an equation, where they do not need that."""
        start = self._positions[equation]
        readers = [reader for reader in self._readers[operand] if self._positions[reader] > start]
        needed = self._needed(readers, equation)
        if needed:
            stop = self._positions[needed[-1]] + 1
            moved = set(needed)
            others = [other for other in self.equations[start:stop] if other not in moved]
            self.equations[start:stop] = [*needed, *others]
            self._positions.update({other: n for n, other in enumerate(self.equations[start:stop], start)})

    def _needed(self, readers: Sequence[Equation], equation: Equation) -> list[Equation]:
        """Return the readers and all behind an equation that they depend on, in order; nothing if it is among these.

        Nor where there are more than `MOST`: the array is copied then. To look further each time would take a time that
        grows with the square of a long program.
        """
        start, found, pending = self._positions[equation], set[Equation](), [*readers]
        while pending:
            other = pending.pop()
            if other is equation or len(found) > MOST or has_effect(other):
                return []
            if other not in found:
                found.add(other)
                makers = (self._makers.get(atom) for atom in other.operands)
                pending += [maker for maker in makers if maker and self._positions[maker] >= start]
        return sorted(found, key=self._positions.__getitem__)
