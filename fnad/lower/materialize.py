"""Materialization: which values get a buffer, and which are computed again wherever they are read.

Materialized are the outputs, whatever is neither elementwise nor a view, and any other value that costs more to compute
again than to store and load: one that is read several times, or many times over through a broadcast, and took some
work. Materializing a value costs nothing where its readers end up in the same nest: the store is removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from fnad.ir.primitive import (
    ArgFold,
    Concatenation,
    Contraction,
    Gather,
    IndexMap,
    Iota,
    Library,
    Scalar,
    SpanContraction,
)
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.size import estimate
from fnad.lower.expressions import is_inlined
from fnad.lower.target import Costs
from fnad.records import dataclass

MANY = 1000
"""The largest ratio of a value's elements to those of its operands, if these stay in the cache."""

CHOICE = 8
"""The least ratio of all elements to the few that are chosen."""


@dataclass(frozen=True, slots=True)
class _Effort:
    """The cost of computing a value again: operations, how many of them one after the other, the arrays they load."""

    work: int = 0
    length: int = 0
    depth: int = 0
    loads: frozenset[Var] = frozenset()

    def cost(self, costs: Costs) -> int:
        """The work, that of loading included."""
        return self.work + costs.load * len(self.loads)

    def __add__(self, other: _Effort) -> _Effort:
        depth = max(self.depth, other.depth)
        return _Effort(self.work + other.work, self.length + other.length, depth, self.loads | other.loads)


def materialized_values(
    program: Program, costs: Costs, stored: Iterable[Atom], read: Iterable[Atom] = (), whole: Iterable[Atom] = ()
) -> set[Var]:
    """The variables that get a buffer.

    These are the ones in `stored`, and the others that are better materialized. Values in `read` are read at the end,
    those in `whole` in a loop.
    """
    outputs = {atom for atom in stored if isinstance(atom, Var)}
    read_at_the_end = set(read)
    readers = _readers(program, {*outputs, *read_at_the_end, *whole})
    wanted = _wanted_whole(program, whole)
    efforts = {var: _load(var) for var in program.inputs}
    materialized: set[Var] = set(program.inputs)
    for equation in program.equations:
        if not is_inlined(equation):
            materialized.update(equation.results)
            efforts.update((result, _load(result)) for result in equation.results)
            continue
        effort, var = _effort(equation, efforts), equation.results[0]
        if (
            var in outputs
            or effort.depth > costs.longest_expression  # which is written by recursion
            or (effort.length > costs.longest_expression and not _is_one_of_many(var, effort, costs))
            or _has_many_pieces(equation, costs)
            or _read_whole(equation, readers[var])
            or _guarded_again(equation, readers[var])
            or var in wanted
            or (effort.work > 0 and any(is_read_twice(reader, costs) for reader in readers[var]))
            or (effort.work > 0 and _worth_materializing(var, effort, readers[var], var in read_at_the_end, costs))
        ):
            materialized.add(var)
            efforts[var] = _load(var)
        else:
            efforts[var] = effort
    return materialized


def _load(var: Var) -> _Effort:
    """The effort of reading a materialized value; a single number is read only once."""
    return _Effort(loads=frozenset([var]) if var.aval.size > 1 else frozenset())


def _effort(equation: Equation, efforts: dict[Var, _Effort]) -> _Effort:
    lower = equation.primitive.lower
    operands = sum((efforts[atom] for atom in equation.operands if isinstance(atom, Var)), _Effort())
    return operands + _Effort(lower.cost if isinstance(lower, Scalar) else 0, 1, 1 + operands.depth)


def _has_many_pieces(equation: Equation, costs: Costs) -> bool:
    """True if an element would have to test many ranges to find its operand."""
    return isinstance(equation.primitive.lower, Concatenation) and len(equation.operands) > costs.most_pieces


def _worth_materializing(
    var: Var, effort: _Effort, readers: list[Equation], read_at_the_end: bool, costs: Costs
) -> bool:
    reads = len(readers) + read_at_the_end
    if reads > 1 and any(_moves(reader, var) for reader in readers):
        return True
    read_again = reads > 1 or any(_repeats(reader, var) for reader in readers)
    return read_again and effort.cost(costs) > costs.recompute and not _is_one_of_many(var, effort, costs)


def _is_one_of_many(var: Var, effort: _Effort, costs: Costs) -> bool:
    """True if a value is cheap for one with many more elements than the arrays it is computed from."""
    has_many = estimate(var.aval.size) > MANY * estimate(sum(load.aval.size for load in effort.loads))
    return has_many and effort.cost(costs) <= costs.recompute_of_many


def _readers(program: Program, used: AbstractSet[Atom]) -> dict[Atom, list[Equation]]:
    """The equations that read each value; those that read few of its elements, or are read so, are not counted."""
    readers: dict[Atom, list[Equation]] = defaultdict(list)
    for equation in reversed(program.equations):
        if is_inlined(equation) and equation.results[0] not in used and not readers[equation.results[0]]:
            continue
        for atom in equation.operands[isinstance(equation.primitive.lower, SpanContraction) :]:
            readers[atom].append(equation)
    return readers


def _read_whole(equation: Equation, readers: list[Equation]) -> bool:
    """True if a reader needs a whole array: a library call does, and a matrix product unless this is a plain view."""
    lower = equation.primitive.lower
    plain_view = isinstance(lower, IndexMap) and lower.guard is None
    kinds = [reader.primitive.lower for reader in readers]
    products = any(isinstance(r.primitive.lower, Contraction) and not is_inlined(r) for r in readers)
    return any(isinstance(k, Library) for k in kinds) or (products and not plain_view)


def _guarded_again(equation: Equation, readers: list[Equation]) -> bool:
    """True if a view reads elements more than once, so that each read would test the guard again."""
    lower = equation.primitive.lower
    has_guard = isinstance(lower, IndexMap) and lower.guard is not None
    return has_guard and any(
        isinstance(r.primitive.lower, IndexMap) and _repeats(r, equation.results[0]) for r in readers
    )


def is_read_twice(reader: Equation, costs: Costs) -> bool:
    """True if a reader reads its operand twice.

    Both reads must give the same bits. A function computed again may not: in vector lanes it rounds differently than in
    the remaining elements.
    """
    lower = reader.primitive.lower
    return (
        isinstance(lower, ArgFold) and estimate(reader.operands[0].aval.shape[reader.params["axis"]]) >= costs.long_row
    )


def _wanted_whole(program: Program, read_in_loops: Iterable[Atom]) -> set[Var]:
    """The values read in regions, possibly in each iteration of a loop; a view counts as its operand."""
    whole: set[Atom] = set(read_in_loops)
    for equation in reversed(program.equations):
        lower = equation.primitive.lower
        is_view = isinstance(lower, IndexMap) and lower.guard is None
        if equation.regions or (is_view and equation.results[0] in whole):
            whole.update(equation.operands)
        if is_view or isinstance(lower, Iota):
            whole.difference_update(equation.results)
    return {atom for atom in whole if isinstance(atom, Var)}


def _repeats(reader: Equation, var: Var) -> bool:
    """True if a reader reads an element more than once."""
    repeats = isinstance(reader.primitive.lower, IndexMap | Gather | Contraction)
    return repeats and reader.results[0].aval.size > var.aval.size


def _moves(reader: Equation, var: Var) -> bool:
    """True if a reader reads at other indices than its own, so that a chain of such readers would multiply work.

    One that chooses a few of many elements does not.
    """
    lower, result = reader.primitive.lower, reader.results[0].aval
    is_choice = isinstance(lower, Gather) and result.size * CHOICE <= var.aval.size
    return isinstance(lower, IndexMap | Gather) and result.ndim > 0 and not is_choice
