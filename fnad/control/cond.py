"""`cond`: one of several regions, run on the same operands; the others are not run.

The first operand says which: a bool (False is region 0), or an integer, held within the number of regions. In reverse
mode the same region's pullback is run. What a region keeps for it goes through results that all regions share, one for
each aval as often as any region needs it; the others fill them with zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, TypeAlias

import numpy as np

from fnad.control.invariant import with_numbers
from fnad.control.partition import Parts, partition
from fnad.errors import DtypeError, ShapeError
from fnad.ir.builder import inline, trace
from fnad.ir.primitive import Cond, Primitive, Sample, Structured, register
from fnad.ir.program import Equation, Literal, Params, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval, is_inexact
from fnad.ir.walk import use_counts
from fnad.ops.elementary import sin
from fnad.ops.shape import zeros_like
from fnad.transforms.activity import active_vars
from fnad.transforms.dce import dce
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.interpret import region_runner
from fnad.transforms.joint import Cotangent, Pullback
from fnad.transforms.jvp import Tangent
from fnad.transforms.pipeline import simplify

Flags: TypeAlias = Sequence[bool]


def _infer_cond(index: Aval, *operands: Aval, regions: tuple[Program, ...]) -> tuple[Aval, ...]:
    if index not in (Aval(BOOL), Aval(I64)):
        raise DtypeError(f"what chooses a branch is {index}, not bool[] or i64[]")
    if len(regions) < 2 or (index.dtype == BOOL and len(regions) != 2):
        raise ShapeError(f"{index} chooses among {len(regions)} branches")
    for region in regions:
        if region.in_avals != operands or region.out_avals != regions[0].out_avals:
            raise ShapeError(f"branch {region.name} takes or returns other values than branch {regions[0].name}")
    return regions[0].out_avals


def _evaluate_cond(index: Any, *operands: Any, regions: tuple[Program, ...]) -> tuple[Any, ...]:
    return tuple(region_runner(regions[_held(index, len(regions))])(operands))


def _held(index: Any, count: int) -> int:
    return min(max(int(index), 0), count - 1)


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _reached(branches: Sequence[Program], marked: Flags) -> list[bool]:
    """Return which results carry a derivative in some branch."""
    active = [active_vars(branch, marked) for branch in branches]
    count = len(branches[0].outputs)
    return [any(b.outputs[i] in found for b, found in zip(branches, active, strict=True)) for i in range(count)]


def _push(
    equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> tuple[list[Symbol], list[Tangent]]:
    marked = [tangent is not None for tangent in tangents[1:]]
    moved = _reached(equation.regions, marked)
    regions = tuple(_pushed(branch, marked, moved) for branch in equation.regions)
    given = [tangent for tangent in tangents[1:] if tangent is not None]
    found = list(cond(*primals, *given, regions=regions))
    count = len(moved)
    rest = iter(found[count:])
    return found[:count], [next(rest) if m else None for m in moved]


def _pushed(branch: Program, marked: Flags, moved: Flags) -> Program:
    """Return the branch with the tangents of the results that have one."""
    way = jvp(branch, marked)
    count = len(branch.outputs)
    inexact = list(compress(moved, [is_inexact(aval.dtype) for aval in branch.out_avals]))
    return dce(
        Program(way.name, way.inputs, way.equations, (*way.outputs[:count], *compress(way.outputs[count:], inexact)))
    )


def _pull(equation: Equation, primals: Sequence[Symbol], needed: Flags) -> tuple[list[Symbol], Pullback]:
    branches, marked = equation.regions, list(needed[1:])
    count = len(branches[0].outputs)
    ways = [_parts(branch, marked) for branch in branches]
    slots, places = _shared([way.forward.out_avals[count:] for way in ways])
    forward = tuple(_filled(way.forward, count, slots, place) for way, place in zip(ways, places, strict=True))
    found = list(cond(*primals, regions=forward))

    def pullback(cts: Sequence[Cotangent]) -> list[Cotangent]:
        results = [zeros_like(r) if ct is None else ct for ct, r in zip(cts, found[:count], strict=True)]
        real = [ct for ct in results if is_inexact(ct.dtype)]
        operands = [*primals[1:], *found[count:], *real]
        avals = [operand.aval for operand in operands]
        back = tuple(_back(w, p, len(primals) - 1, len(slots), avals) for w, p in zip(ways, places, strict=True))
        rest = iter(cond(primals[0], *operands, regions=back))
        return [None, *[next(rest) if m else None for m in marked]]

    return found[:count], pullback


def _parts(branch: Program, marked: Flags) -> Parts:
    return partition(simplify(joint(branch, marked)), len(branch.inputs), len(branch.outputs))


def _shared(kept: Sequence[Sequence[Aval]]) -> tuple[list[Aval], list[list[int]]]:
    """Return avals of results that have room for what any one branch keeps, and where each puts it."""
    slots: list[Aval] = []
    places: list[list[int]] = []
    for avals in kept:
        place: list[int] = []
        for aval in avals:
            free = [i for i, slot in enumerate(slots) if slot == aval and i not in place]
            place.append(free[0] if free else len(slots))
            slots += [] if free else [aval]
        places.append(place)
    return slots, places


def _filled(forward: Program, count: int, slots: Sequence[Aval], place: Sequence[int]) -> Program:
    """Return the branch with a result for every slot."""

    def run(*args: Symbol) -> list[Symbol]:
        found = inline(forward, args)
        put = dict(zip(place, found[count:], strict=True))
        return [*found[:count], *[put[i] if i in put else zeros_like(aval) for i, aval in enumerate(slots)]]

    return trace(run, *forward.in_avals, name=forward.name)


def _back(way: Parts, place: Sequence[int], operands: int, slots: int, avals: Sequence[Aval]) -> Program:
    """Return the pullback of a branch on (operands…, slots…, ct…), as all of them take these."""

    def run(*args: Symbol) -> list[Symbol]:
        given, put, cts = args[:operands], args[operands : operands + slots], args[operands + slots :]
        return inline(way.backward, [*[given[i] for i in way.inputs], *[put[i] for i in place], *cts])

    return trace(run, *avals, name=way.backward.name)


def _prune(equation: Equation, live: Flags) -> Equation:
    """Return the choice without results that nobody reads and operands that no branch reads."""
    branches = [
        dce(Program(branch.name, branch.inputs, branch.equations, tuple(compress(branch.outputs, live))))
        for branch in equation.regions
    ]
    used = [use_counts(branch) for branch in branches]
    keep = [
        any(branch.inputs[i] in read for branch, read in zip(branches, used, strict=True))
        for i in range(len(equation.operands) - 1)
    ]
    return replace(
        equation,
        results=tuple(compress(equation.results, live)),
        operands=(equation.operands[0], *compress(equation.operands[1:], keep)),
        regions=tuple(Program(b.name, tuple(compress(b.inputs, keep)), b.equations, b.outputs) for b in branches),
    )


def _reduce(operands: Sequence[Symbol], params: Params, regions: tuple[Program, ...]) -> Sequence[Symbol] | None:
    """Return the results of the branch that is known to be taken, or of branches with numbers put in."""
    index, *given = operands
    if isinstance(index.atom, Literal):
        return tuple(inline(regions[_held(index.atom.value, len(regions))], given))
    rest = [symbol for symbol in given if not isinstance(symbol.atom, Literal)]
    if len(rest) == len(given):
        return None
    put = tuple(simplify(with_numbers(branch, dict(zip(branch.inputs, given, strict=True)))) for branch in regions)
    return cond(index, *rest, regions=put)


# ---- samples ---------------------------------------------------------------------------------------------------------


def _samples() -> Iterable[Sample]:
    """The sine of a value, or its cube, chosen by a bool and by integers within and outside of the range."""
    row = Aval(np.dtype("f8"), (3,))
    x = np.array([0.5, -1.0, 2.0])
    branches = (trace(lambda x: [sin(x)], row, name="sine"), trace(lambda x: [x * x * x], row, name="cube"))
    for index in (np.False_, np.True_, np.int64(0), np.int64(7), np.int64(-2)):
        yield Sample((index, x), {}, branches)


cond = register(
    Primitive(
        "cond",
        _infer_cond,
        _evaluate_cond,
        Structured(_push, _pull),
        Cond(),
        _samples,
        "The region that the first operand numbers, run on the others.",
        prune=_prune,
        reduce=_reduce,
    )
)
