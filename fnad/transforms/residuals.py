"""The values that cross a split: each value that the second part needs of the first is saved or computed again.

The choice is a minimum cut, as in `min_cut_rematerialization_partition` of PyTorch's AOTAutograd. That saving less is
worth some work is Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016); that bytes are weighed against
the cost of each operation, Jain et al., "Checkmate" (2020).

    source --cost--> equation --price--> result --∞--> equations that read it, and the sink where the second part does

A value on the sink's side is there in the second part. If its equation is on that side too, it runs again, at its cost,
and its operands have to be there; else the value is saved, at its price. The unit is an addition, as in `Scalar.cost`,
times the bytes of an element, so that all holds for any dtype.

- Equations whose results need no memory of their own may run again: arithmetic, views, gathers, outer products. Where
  the result needs memory there, since a library call or a loop reads it or several views do, this costs a store and a
  load more.
- Matrix products, sums, library calls and loops store their results wherever they run, so that saving costs less; they
  run again only for residual stacks, where these cannot be saved. An effect never does, and a constant is never saved.
- A function such as `exp` or a random draw costs more than saving its result, too. So what runs again is arithmetic,
  which rounds in one way wherever it is compiled: the results are the same to the bit.
- Of choices that cost the same, that with fewer bytes is taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from fnad.ir.primitive import LOAD, Concatenation, Contraction, DynamicSlice, Gather, IndexMap, Iota, Library, Scalar
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.walk import has_effect
from fnad.transforms.min_cut import SINK, SOURCE, Network

Price: TypeAlias = Callable[[Var], int]

LONGEST = 100
"""The most equations that run again in a row: the results of more would not fit in one loop, and take memory again."""

LAST_RESORT = 1 << 80
"""More than all prices together."""

NEVER = 1 << 100
"""More than a program has of last resorts."""


def price_of(var: Var) -> int:
    """The price of saving a value: twice that of a temporary, which may lie in the cache; a stack counts as one row."""
    return 4 * LOAD * abs(var.aval.nbytes)


def chosen(first: Sequence[Equation], second: Program, price: Price) -> tuple[list[Var], set[Equation]]:
    """The results of the first equations to save, in their order, and those of the equations to run again."""
    return _Choice(first, second, price).made()


class _Choice:
    """The network of what the second part reads, back to the inputs and to equations that never run again.

    What the second part reads is at the sink; what never runs again is at the source.
    """

    def __init__(self, first: Sequence[Equation], second: Program, price: Price) -> None:
        self.makers = {var: equation for equation in first for var in equation.results}
        self.price = price
        self.whole = _read_whole(first, second.equations)
        self.readers = _readers((*first, *second.equations))
        self.deep = _deep(first)
        self.network = Network()
        read = (*[atom for equation in second.equations for atom in equation.operands], *second.outputs)
        self.places = {atom: SINK for atom in read if isinstance(atom, Var)}
        self.runs: dict[Equation, int] = {}
        self.pending = list(self.places)
        for var in self.pending:  # which grows
            self._enter(var)

    def made(self) -> tuple[list[Var], set[Equation]]:
        """The choice with the least total."""
        at_source = self.network.source_side()
        again = {equation for equation, node in self.runs.items() if not at_source[node]}
        there = [var for var in self.makers if var in self.places and not at_source[self.places[var]]]
        return [var for var in there if self.makers[var] not in again], again

    def _enter(self, var: Var) -> None:
        equation = self.makers.get(var)
        start = SOURCE if equation is None else self._run(equation)
        if start != self.places[var] and self.places[var] != SOURCE:
            self.network.join(start, self.places[var], self.price(var))

    def _run(self, equation: Equation) -> int:
        """The place of an equation, entered with its operands the first time."""
        if equation not in self.runs:
            cost = self._cost(equation)
            # where running again costs more than the results, it never is part of a minimum
            if cost > sum(map(self.price, equation.results)):
                self.runs[equation] = SOURCE
                return SOURCE
            self.runs[equation] = self.network.node()
            self.network.join(SOURCE, self.runs[equation], cost)
            for operand in equation.operands:
                if isinstance(operand, Var):
                    self.network.join(self._place(operand), self.runs[equation], NEVER)
        return self.runs[equation]

    def _place(self, var: Var) -> int:
        if var not in self.places:
            self.places[var] = self.network.node()
            self.pending.append(var)
        return self.places[var]

    def _cost(self, equation: Equation) -> int:
        """The cost of running an equation again."""
        if has_effect(equation):
            return NEVER
        work = _work(equation)
        if work is None or equation in self.deep:
            return LAST_RESORT
        if not any(isinstance(atom, Var) for atom in equation.operands):
            return 0
        buffer = 2 * LOAD * equation.results[0].aval.nbytes if self._has_buffer(equation) else 0
        return work * max(atom.aval.nbytes for atom in _moved(equation)) + buffer

    def _has_buffer(self, equation: Equation) -> bool:
        """True if the result would be stored, since a reader needs all of it or several read it at various places."""
        if _is_view(equation):
            return False
        result = equation.results[0]
        readers = self.readers[result]
        moved = any(isinstance(reader.primitive.lower, IndexMap | Gather) for reader in readers)
        return result in self.whole or (len(readers) > 1 and moved)


def _work(equation: Equation) -> int | None:
    """The additions that an element takes; None where the result is stored in any case."""
    match equation.primitive.lower:
        case Scalar(_, cost):
            return cost
        case IndexMap(guard=guard):
            return 0 if guard is None else 1
        case Iota() | Concatenation():
            return 1
        case Gather() | DynamicSlice():
            return LOAD
        case Contraction() if _is_outer(equation):
            return 1
        case _:
            return None


def _deep(first: Sequence[Equation]) -> set[Equation]:
    """Every equation that would be the last of a chain of `LONGEST` run again: it is saved, and others start there."""
    lengths: dict[Atom, int] = {}
    deep: set[Equation] = set()
    for equation in first:
        if _work(equation) is not None:
            length = 1 + max((lengths.get(atom, 0) for atom in equation.operands), default=0)
            if length < LONGEST:
                lengths[equation.results[0]] = length
            else:
                deep.add(equation)
    return deep


def _readers(equations: Sequence[Equation]) -> dict[Atom, list[Equation]]:
    readers: dict[Atom, list[Equation]] = defaultdict(list)
    for equation in equations:
        for atom in equation.operands:
            readers[atom].append(equation)
    return readers


def _is_outer(equation: Equation) -> bool:
    return not equation.params["contract"][0]


def _moved(equation: Equation) -> Iterable[Atom]:
    """The values whose elements an equation goes through."""
    return (*equation.operands, *equation.results) if isinstance(equation.primitive.lower, Scalar) else equation.results


def _is_view(equation: Equation) -> bool:
    lower = equation.primitive.lower
    return isinstance(lower, IndexMap) and lower.guard is None


def _read_whole(first: Sequence[Equation], second: Sequence[Equation]) -> set[Atom]:
    """The values that the second part reads as a whole; a view counts as its operand."""
    whole: set[Atom] = set()
    for equation in reversed(second):
        lower = equation.primitive.lower
        product = isinstance(lower, Contraction) and not _is_outer(equation)
        if product or isinstance(lower, Library) or equation.regions:
            whole.update(equation.operands)
    for equation in (*reversed(second), *reversed(first)):
        if _is_view(equation) and equation.results[0] in whole:
            whole.update(equation.operands)
    return whole
