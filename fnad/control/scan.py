"""`scan`: a body run once for each index of a leading axis, a carry handed on from step to step.

Operands are the trip count, where `length` is None, then constants, the carry at the start, and arrays whose leading
axis the loop goes over; results the carry at the end, and arrays of what each step returned beside its carry. Where the
trip count is known only when the program runs, these are residual stacks: their leading axis has no known length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from fnad.control import loop
from fnad.control.loop import Groups, Loop, lessened, restored
from fnad.control.region_rules import check_avals
from fnad.control.signatures import Flags, Regions, Symbols
from fnad.errors import DtypeError, ShapeError
from fnad.ir.builder import inline, trace
from fnad.ir.primitive import Sample, ScanLoop
from fnad.ir.program import Equation, Params, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, UNKNOWN, Aval
from fnad.ir.walk import has_effect
from fnad.ops.constructors import primitive, random_array
from fnad.ops.shape import reshape_to, zeros_like
from fnad.transforms.interpret import NEVER, check_time, region_runner


def _rows(aval: Aval, length: int | None) -> Aval:
    return aval.with_shape((UNKNOWN if length is None else length, *aval.shape))


def _infer(
    *avals: Aval, consts: int, carry: int, length: int | None, reverse: bool, regions: Regions
) -> tuple[Aval, ...]:
    (body,) = regions
    if length is None:
        if avals[0] != Aval(I64):
            raise DtypeError(f"the trip count of a scan is {avals[0]}, not i64[]")
        avals = avals[1:]
    groups = Groups(consts, carry, len(avals) - consts - carry)
    _, init, xs = groups.split(avals)
    for aval in xs:
        if aval.shape[:1] != _rows(Aval(I64), length).shape:
            raise ShapeError(f"a scan over {length} steps goes over {aval}")
    check_avals("the body of a scan takes", body.in_avals, groups.body_avals(avals))
    check_avals("the carry of a scan becomes", body.out_avals[:carry], init)
    return (*init, *[_rows(aval, length) for aval in body.out_avals[carry:]])


# ---- as a loop -------------------------------------------------------------------------------------------------------


def bind_scan(
    body: Program, groups: Groups, count: Symbols, operands: Symbols, length: int | None, reverse: bool
) -> list[Symbol]:
    """The results of a scan; `count` is the number of steps where `length` is None, else nothing."""
    params = {"consts": groups.consts, "carry": groups.carry, "length": length, "reverse": reverse}
    return list(scan(*count, *operands, **params, regions=(body,)))


def scan_as_loop(params: Params, regions: Regions) -> Loop:
    """The loop for rules of loops on a scan."""
    (body,), length, reverse = regions, params["length"], params["reverse"]
    groups = Groups(params["consts"], params["carry"], len(body.inputs) - params["consts"] - params["carry"])

    def bind(body: Program, groups: Groups, head: Symbols, operands: Symbols) -> list[Symbol]:
        return bind_scan(body, groups, head, operands, length, reverse)

    return Loop(body, groups, int(length is None), counts=False, length=length, reverse=reverse, bind=bind)


def _prune(equation: Equation, live: Flags) -> Equation:
    pruned, (consts, carry, _) = loop.prune(scan_as_loop(equation.params, equation.regions), equation, live)
    if pruned is equation:
        return equation
    return replace(pruned, params={**equation.params, "consts": sum(consts), "carry": sum(carry)})


# ---- less to do ------------------------------------------------------------------------------------------------------


def _reduce(operands: Symbols, params: Params, regions: Regions) -> Symbols | None:
    """The results without the loop where there is one step or none; else with less to do in each."""
    body, groups, head, _, length, reverse, _ = scan_as_loop(params, regions)
    count, (consts, init, xs) = operands[:head], groups.split(operands[head:])
    if length == 0:
        return (*init, *[zeros_like(_rows(aval, 0)) for aval in body.out_avals[groups.carry :]])
    if length == 1 and not any(map(has_effect, body.equations)):  # what is tapped in it has a row
        found = inline(body, [*consts, *init, *[reshape_to(x, x.shape[1:]) for x in xs]])
        return (*found[: groups.carry], *[reshape_to(row, (1, *row.shape)) for row in found[groups.carry :]])
    # a loop of unknown length may take no step, in which nothing would be computed
    less = lessened(body, groups, consts, init, runs=length is not None)
    if less is None:
        return None
    (inner,), moving = less
    left = Groups(len(inner.consts), sum(moving), groups.xs)
    found = bind_scan(inner.region, left, count, [*inner.consts, *compress(init, moving), *xs], length, reverse)
    return restored(found, init, moving)


# ---- samples ---------------------------------------------------------------------------------------------------------


def _samples() -> Iterable[Sample]:
    """A linear recurrence with an input and an output, over known steps, backwards, and none."""
    row, n = Aval(np.dtype("f8"), (2,)), 3
    body = trace(lambda a, s, x: [a * s + x, s * s], row, row, row, name="step")
    a, s, x = (
        random_array(np.random.default_rng(seed), shape, row.dtype) for seed, shape in enumerate(((2,), (2,), (n, 2)))
    )
    for reverse in (False, True):
        params = {"consts": 1, "carry": 1, "length": n, "reverse": reverse}
        yield Sample((a, s, x), params, (body,))
    yield Sample((a, s, x[:0]), {"consts": 1, "carry": 1, "length": 0, "reverse": False}, (body,))


@primitive(_infer, loop.derivative(scan_as_loop, bind_scan), ScanLoop(), _samples, prune=_prune, reduce=_reduce)
def scan(
    *operands: Any,
    consts: int,
    carry: int,
    length: int | None,
    reverse: bool,
    regions: Regions,
    deadline: float = NEVER,
) -> Any:
    """The region once for each index of a leading axis; the carry is passed on."""
    (body,) = regions
    steps, operands = (int(operands[0]), operands[1:]) if length is None else (length, operands)
    constants, state, xs = Groups(consts, carry, len(operands) - consts - carry).split(operands)
    run = region_runner(body)
    ys = [np.empty((steps, *aval.shape), aval.dtype) for aval in body.out_avals[carry:]]
    for i in reversed(range(steps)) if reverse else range(steps):
        check_time(deadline)
        found = run([*constants, *state, *[x[i] for x in xs]], deadline)
        state = found[:carry]
        for y, row in zip(ys, found[carry:], strict=True):
            y[i] = row
    return (*state, *ys)
