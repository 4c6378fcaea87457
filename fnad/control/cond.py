"""`cond`: one of several regions, run on the same operands; the others are not run.

The first operand says which: a bool (False is region 0), or an integer, held within the number of regions. In reverse
mode the same region's pullback is run. What a region saves for it goes through results that all regions share, one for
each aval as often as any region needs it; the others fill them with zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from fnad.control.invariant import with_numbers
from fnad.control.partition import partitioned
from fnad.control.region_rules import (
    check_avals,
    instantiated_inexact,
    pruning,
    pushing,
    reached,
    returning,
    spread,
    taking,
)
from fnad.control.signatures import Cotangents, Flags, Pulled, Regions, Symbols
from fnad.errors import DtypeError, ShapeError
from fnad.ir.builder import current_builder, inline, trace
from fnad.ir.content import content_key
from fnad.ir.primitive import Cond, Sample, Structured
from fnad.ir.program import Equation, Literal, Params, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval
from fnad.ir.walk import has_effect
from fnad.ops.comparison import select
from fnad.ops.constructors import primitive
from fnad.ops.elementary import sin
from fnad.ops.shape import zeros_like
from fnad.transforms.interpret import NEVER, region_runner
from fnad.transforms.joint import Cotangent
from fnad.transforms.pipeline import simplify


def _infer(index: Aval, *operands: Aval, regions: Regions) -> tuple[Aval, ...]:
    if index not in (Aval(BOOL), Aval(I64)):
        raise DtypeError(f"what chooses a branch is {index}, not bool[] or i64[]")
    if len(regions) < 2 or (index.dtype == BOOL and len(regions) != 2):
        raise ShapeError(f"{index} chooses among {len(regions)} branches")
    for region in regions:
        check_avals(f"branch {region.name} takes", region.in_avals, operands)
        check_avals(f"branch {region.name} returns", region.out_avals, regions[0].out_avals)
    return regions[0].out_avals


def _held(index: Any, count: int) -> int:
    return min(max(int(index), 0), count - 1)


# ---- reverse mode ----------------------------------------------------------------------------------------------------


def _pull(equation: Equation, primals: Symbols, needed: Flags) -> Pulled:
    branches, (index, *given), marked = equation.regions, primals, needed[1:]
    count = len(branches[0].outputs)
    ways = [partitioned(branch, marked) for branch in branches]
    slots, places = _shared([way.forward.out_avals[count:] for way in ways])
    forward = tuple(_filled(way.forward, count, slots, place) for way, place in zip(ways, places, strict=True))
    found = list(cond(*primals, regions=forward))
    results, residuals = found[:count], found[count:]

    def pullback(cts: Cotangents) -> list[Cotangent]:
        operands = [*given, *residuals, *instantiated_inexact(cts, results)]
        avals = [operand.aval for operand in operands]
        first, behind = len(given), len(given) + len(slots)
        back = tuple(
            taking(way.backward, avals, [*way.inputs, *[first + i for i in place], *range(behind, len(avals))])
            for way, place in zip(ways, places, strict=True)
        )
        return [None, *spread(cond(index, *operands, regions=back), marked)]

    return results, pullback


def _shared(residuals: Sequence[Sequence[Aval]]) -> tuple[list[Aval], list[list[int]]]:
    """Avals of results that have room for the residuals of any one branch, and where each puts its own."""
    slots: list[Aval] = []
    places: list[list[int]] = []
    for avals in residuals:
        place: list[int] = []
        for aval in avals:
            # only one branch runs, so a slot serves all of them; one branch fills each slot once
            free = [i for i, slot in enumerate(slots) if slot == aval and i not in place]
            place.append(free[0] if free else len(slots))
            slots += [] if free else [aval]
        places.append(place)
    return slots, places


def _filled(forward: Program, count: int, slots: Sequence[Aval], place: Sequence[int]) -> Program:
    """The branch with a result for every slot."""

    def run(*args: Symbol) -> list[Symbol]:
        found = inline(forward, args)
        put = dict(zip(place, found[count:], strict=True))
        return [*found[:count], *[put[i] if i in put else zeros_like(aval) for i, aval in enumerate(slots)]]

    return trace(run, *forward.in_avals, name=forward.name)


def _reduce(operands: Symbols, params: Params, regions: Regions) -> Symbols | None:
    """The results of the branch that is known to be taken, or of branches with numbers put in.

    Branches that are the same are one, results that are the same in all branches are taken out, and a choice of numbers
    that are there is a `select`.
    """
    index, *given = operands
    if isinstance(index.atom, Literal):
        return tuple(inline(regions[_held(index.atom.value, len(regions))], given))
    if len(set(map(content_key, regions))) == 1:
        return tuple(inline(regions[0], given))
    if index.dtype == BOOL and not any(r.equations or any(a.shape for a in r.out_avals) for r in regions):
        no, yes = (inline(region, given) for region in regions)
        return tuple(select(index, *pair) for pair in zip(yes, no, strict=True))
    same = [_same(regions, number, given) for number in range(len(regions[0].outputs))]
    if None not in same and not any(has_effect(e) for region in regions for e in region.equations):
        return tuple(symbol for symbol in same if symbol is not None)
    if same.count(None) not in (0, len(same)):
        left = [symbol is None for symbol in same]
        found = iter(cond(*operands, regions=tuple(returning(r, compress(r.outputs, left)) for r in regions)))
        return tuple(next(found) if symbol is None else symbol for symbol in same)
    rest = [symbol for symbol in given if not isinstance(symbol.atom, Literal)]
    if len(rest) == len(given):
        return None
    put = tuple(simplify(with_numbers(branch, dict(zip(branch.inputs, given, strict=True)))) for branch in regions)
    return cond(index, *rest, regions=put)


def _same(regions: Regions, number: int, given: Symbols) -> Symbol | None:
    """The operand or number that each branch returns as the result of this number, if it is the same for all."""
    found: set[Any] = set()
    for region in regions:
        atom = region.outputs[number]
        found.add(
            atom.key if isinstance(atom, Literal) else region.inputs.index(atom) if atom in region.inputs else None
        )
    if len(found) > 1 or None in found:
        return None
    (key,) = found
    first = regions[0].outputs[number]
    return current_builder().literal(first.value) if isinstance(first, Literal) else given[key]


# ---- samples ---------------------------------------------------------------------------------------------------------


def _samples() -> Iterable[Sample]:
    """The sine of a value, or its cube, chosen by a bool and by integers within and outside of the range."""
    row = Aval(np.dtype("f8"), (3,))
    x = np.array([0.5, -1.0, 2.0])
    branches = (trace(lambda x: [sin(x)], row, name="sine"), trace(lambda x: [x * x * x], row, name="cube"))
    for index in (np.False_, np.True_, np.int64(0), np.int64(7), np.int64(-2)):
        yield Sample((index, x), {}, branches)


@primitive(
    _infer,
    Structured(pushing(1), _pull, lambda equation, active: reached(equation.regions, active[1:])),
    Cond(),
    _samples,
    prune=pruning(1),
    reduce=_reduce,
)
def cond(index: Any, *operands: Any, regions: Regions, deadline: float = NEVER) -> Any:
    """The region that the first operand numbers, run on the others."""
    return tuple(region_runner(regions[_held(index, len(regions))])(operands, deadline))
