"""Materialization: which values get a buffer, and which are computed again wherever they are read.

Materialized are the outputs, whatever is neither elementwise nor a view, and any other value that costs more to compute
again than to store and load: one that is read several times, or many times over through a broadcast, and took some
work. Materializing a value costs nothing where its readers end up in the same nest: the store is removed.

Note [Shifted values]
    Slices, pads and concatenations read a value at its own indices plus constants. Nests that read it so do not merge
    with the nest that computes it, so the store would remain. Such a value is computed again at each of its places: the
    shapes of the nests that read it, each with the distance of the indices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from fnad.ir import primitive as kinds
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.size import estimate
from fnad.ir.types import Shape
from fnad.lower.expressions import is_inlined
from fnad.lower.index import as_index, counters
from fnad.lower.target import Costs

MANY = 1000
"""The largest ratio of a value's elements to those of its operands, if these stay in the cache."""

CHOICE = 8
"""The least ratio of all elements to the few that are chosen."""

Place: TypeAlias = tuple[Shape, tuple[int, ...]]
"""See Note [Shifted values]."""

MOST_PLACES = 8
"""The number of places after which no more are counted."""


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
    used = {*outputs, *read_at_the_end, *whole}
    readers = _readers(program, used)
    wanted = _wanted_whole(program, whole)
    places = _places(program, readers, used)
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
            or (
                effort.work > 0
                and _worth_materializing(var, effort, readers[var], var in read_at_the_end, places[var], costs)
            )
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
    return operands + _Effort(lower.cost if isinstance(lower, kinds.Scalar) else 0, 1, 1 + operands.depth)


def _has_many_pieces(equation: Equation, costs: Costs) -> bool:
    """True if an element would have to test many ranges to find its operand."""
    return isinstance(equation.primitive.lower, kinds.Concatenation) and len(equation.operands) > costs.most_pieces


def _worth_materializing(
    var: Var, effort: _Effort, readers: list[Equation], read_at_the_end: bool, places: AbstractSet[Place], costs: Costs
) -> bool:
    reads = len(readers) + read_at_the_end
    if any(place != _own_place(var) for place in places):
        nests, loads = len({shape for shape, _ in places}), len(effort.loads)
        again = (len(places) - 1) * (effort.work + loads) + (nests - 1) * costs.load * loads
        return reads > 1 and again > costs.recompute
    if reads > 1 and any(_moves(reader, var) for reader in readers):
        return True
    read_again = reads > 1 or any(_repeats(reader, var) for reader in readers)
    return read_again and effort.cost(costs) > costs.recompute and not _is_one_of_many(var, effort, costs)


def _own_place(var: Var) -> Place:
    return var.aval.shape, (0,) * var.aval.ndim


def _places(
    program: Program, readers: dict[Atom, list[Equation]], used: AbstractSet[Atom]
) -> dict[Atom, AbstractSet[Place]]:
    """The places of the values that are only read at their own indices plus constants; of all others, none."""
    found: dict[Atom, AbstractSet[Place]] = {}
    for equation in reversed(program.equations):
        for var in equation.results:
            places = {_own_place(var)} if var in used else set[Place]()
            for reader in readers[var]:
                further = _places_through(reader, var, found)
                if not further:
                    places.clear()
                    break
                if len(places) < MOST_PLACES:
                    places |= further
            found[var] = places
    return found


def _places_through(reader: Equation, var: Var, found: dict[Atom, AbstractSet[Place]]) -> AbstractSet[Place]:
    """The places of a value that are due to one reader."""
    lower = reader.primitive.lower
    if not is_inlined(reader):
        return {_own_place(var)}
    if isinstance(lower, kinds.Scalar):
        return found[reader.results[0]]
    found_at = set(distances(reader, var))
    if None in found_at:
        return set()
    moved = found[reader.results[0]]
    return {(shape, tuple(a + b for a, b in zip(at, d, strict=True))) for shape, at in moved for d in found_at if d}


def distances(reader: Equation, var: Var) -> Iterator[tuple[int, ...] | None]:
    """The differences of the indices at which a reader reads a value and its own; None if they are not constants."""
    result, lower = reader.results[0].aval, reader.primitive.lower
    if isinstance(lower, kinds.Concatenation):
        axis, start = reader.params["axis"], 0
        for operand in reader.operands:
            if operand == var:
                yield tuple(-start if a == axis else 0 for a in range(result.ndim))
            start += operand.aval.shape[axis]
    elif isinstance(lower, kinds.IndexMap) and result.ndim == var.aval.ndim:
        own = counters(result.shape, 0)
        moved = map(as_index, lower.index(own, var.aval, result, **reader.params))
        distance = [b - a for a, b in zip(own, moved, strict=True)]
        yield None if any(d.terms for d in distance) else tuple(d.constant for d in distance)
    else:
        yield None


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
        for atom in equation.operands[isinstance(equation.primitive.lower, kinds.SpanContraction) :]:
            readers[atom].append(equation)
    return readers


def _read_whole(equation: Equation, readers: list[Equation]) -> bool:
    """True if a reader needs a whole array: a library call does, and a matrix product unless this is a plain view."""
    lower = equation.primitive.lower
    plain_view = isinstance(lower, kinds.IndexMap) and lower.guard is None
    lowered = [reader.primitive.lower for reader in readers]
    products = any(isinstance(r.primitive.lower, kinds.Contraction) and not is_inlined(r) for r in readers)
    return any(isinstance(k, kinds.Library) for k in lowered) or (products and not plain_view)


def _guarded_again(equation: Equation, readers: list[Equation]) -> bool:
    """True if a view reads elements more than once, so that each read would test the guard again."""
    lower = equation.primitive.lower
    has_guard = isinstance(lower, kinds.IndexMap) and lower.guard is not None
    return has_guard and any(
        isinstance(r.primitive.lower, kinds.IndexMap) and _repeats(r, equation.results[0]) for r in readers
    )


def is_read_twice(reader: Equation, costs: Costs) -> bool:
    """True if a reader reads its operand twice.

    Both reads must give the same bits. A function computed again may not: in vector lanes it rounds differently than in
    the remaining elements.
    """
    lower = reader.primitive.lower
    return (
        isinstance(lower, kinds.ArgFold)
        and estimate(reader.operands[0].aval.shape[reader.params["axis"]]) >= costs.long_row
    )


def _wanted_whole(program: Program, read_in_loops: Iterable[Atom]) -> set[Var]:
    """The values read in regions, possibly in each iteration of a loop; a view counts as its operand."""
    whole: set[Atom] = set(read_in_loops)
    for equation in reversed(program.equations):
        lower = equation.primitive.lower
        is_view = isinstance(lower, kinds.IndexMap) and lower.guard is None
        if equation.regions or (is_view and equation.results[0] in whole):
            whole.update(equation.operands)
        if is_view or isinstance(lower, kinds.Iota):
            whole.difference_update(equation.results)
    return {atom for atom in whole if isinstance(atom, Var)}


def _repeats(reader: Equation, var: Var) -> bool:
    """True if a reader reads an element more than once."""
    repeats = isinstance(reader.primitive.lower, kinds.IndexMap | kinds.Gather | kinds.Contraction)
    return repeats and reader.results[0].aval.size > var.aval.size


def _moves(reader: Equation, var: Var) -> bool:
    """True if a reader reads at other indices than its own, so that a chain of such readers would multiply work.

    One that chooses a few of many elements does not.
    """
    lower, result = reader.primitive.lower, reader.results[0].aval
    is_choice = isinstance(lower, kinds.Gather) and result.size * CHOICE <= var.aval.size
    return isinstance(lower, kinds.IndexMap | kinds.Gather) and result.ndim > 0 and not is_choice
