"""The order of equations: what reads an array comes before what may overwrite it.

An update takes the memory of its operand if the operand is not read later (see `in_place`). So an update, or a loop
that carries an array, is moved behind the equations that read the same array and do not need its result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fnad.ir.program import Atom, Equation, Program, Var
from fnad.lower.in_place import in_place_candidates
from fnad.transforms.dce import has_effect


def reads_first(program: Program) -> Program:
    """The program with its updates deferred."""
    last = {atom: n for n, equation in enumerate(program.equations) for atom in equation.operands}
    last.update(dict.fromkeys(program.outputs, 0))  # a returned array is not overwritten anyway
    order = Order(program.equations)
    for n, equation in enumerate(program.equations):
        for candidate in in_place_candidates(equation):
            if candidate.operand.aval.size > 1 and last[candidate.operand] > n:
                order.put_off(equation, candidate.operand)
    return Program(program.name, program.inputs, tuple(order.equations), program.outputs)


MOST = 100
"""The most equations that are moved before another one at once."""


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
        """Move the readers of an operand, and what they depend on, before an equation, unless they depend on it."""
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
        """The readers and all they depend on behind an equation, in order; nothing if they depend on that equation.

        If there are more than `MOST`, nothing is moved and the array is copied: searching further each time would take
        time quadratic in the length of the program.
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
