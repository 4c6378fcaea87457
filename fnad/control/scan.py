"""`scan`: a body run once for each index of a leading axis, a carry handed on from step to step.

Operands are the trip count, where `length` is None, then constants, the carry at the start, and arrays whose leading
axis the loop goes over; results the carry at the end, and arrays of what each step returned beside its carry. Where the
trip count is known only when the program runs, these are residual stacks: their leading axis has no known length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from fnad.control.invariant import gains, specialized, unchanged
from fnad.control.loop import Flags, Groups, Rows, live_body, pulled, pushed, settled, sweep_back, with_tangents
from fnad.errors import DtypeError, ShapeError
from fnad.ir.builder import inline, trace
from fnad.ir.primitive import Primitive, Sample, ScanLoop, Structured, register
from fnad.ir.program import Equation, Params, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, UNKNOWN, Aval
from fnad.ops.kinds import random_array
from fnad.ops.shape import reshape_to, zeros_like
from fnad.transforms.interpret import check_time, region_runner
from fnad.transforms.joint import Cotangent, Pullback
from fnad.transforms.jvp import Tangent


def loop_groups(equation: Equation) -> Groups:
    """Return the groups of a scan's operands behind the trip count."""
    consts, carry = equation.params["consts"], equation.params["carry"]
    return Groups(consts, carry, len(equation.regions[0].inputs) - consts - carry)


def _row(aval: Aval) -> Aval:
    return aval.with_shape(aval.shape[1:])


def _rows(aval: Aval, length: int | None) -> Aval:
    return aval.with_shape((UNKNOWN if length is None else length, *aval.shape))


def _infer_scan(
    *avals: Aval, consts: int, carry: int, length: int | None, reverse: bool, regions: tuple[Program, ...]
) -> tuple[Aval, ...]:
    (body,) = regions
    if length is None:
        if avals[0] != Aval(I64):
            raise DtypeError(f"the trip count of a scan is {avals[0]}, not i64[]")
        avals = avals[1:]
    _, init, xs = Groups(consts, carry, len(avals) - consts - carry).split(avals)
    for aval in xs:
        if aval.shape[:1] != _rows(Aval(I64), length).shape:
            raise ShapeError(f"a scan over {length} steps goes over {aval}")
    given = (*avals[: consts + carry], *map(_row, xs))
    if body.in_avals != given:
        raise ShapeError(f"the body of a scan takes {listed(body.in_avals)}, and is given {listed(given)}")
    if body.out_avals[:carry] != tuple(init):
        raise ShapeError(f"the carry {listed(init)} of a scan becomes {listed(body.out_avals[:carry])}")
    return (*init, *[_rows(aval, length) for aval in body.out_avals[carry:]])


def listed(avals: Sequence[Aval]) -> str:
    """Return avals as errors list them."""
    return ", ".join(map(str, avals)) or "nothing"


def _evaluate_scan(
    *operands: Any, consts: int, carry: int, length: int | None, reverse: bool, regions: tuple[Program, ...]
) -> tuple[Any, ...]:
    (body,) = regions
    steps, operands = (int(operands[0]), operands[1:]) if length is None else (length, operands)
    constants, state, xs = Groups(consts, carry, len(operands) - consts - carry).split(operands)
    run = region_runner(body)
    ys = [np.empty((steps, *aval.shape), aval.dtype) for aval in body.out_avals[carry:]]
    for i in reversed(range(steps)) if reverse else range(steps):
        check_time()
        found = run([*constants, *state, *[x[i] for x in xs]])
        state = found[:carry]
        for y, row in zip(ys, found[carry:], strict=True):
            y[i] = row
    return (*state, *ys)


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _bind(
    body: Program,
    groups: Groups,
    count: Sequence[Symbol],
    operands: Sequence[Symbol],
    length: int | None,
    reverse: bool,
) -> list[Symbol]:
    params = {"consts": groups.consts, "carry": groups.carry, "length": length, "reverse": reverse}
    return list(scan(*count, *operands, **params, regions=(body,)))


def _behind_count(equation: Equation, values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    start = equation.params["length"] is None
    return values[:start], values[start:]


def _push(
    equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> tuple[list[Symbol], list[Tangent]]:
    groups, (body,) = loop_groups(equation), equation.regions
    count, operands = _behind_count(equation, primals)
    given = _behind_count(equation, tangents)[1]
    marked = settled(body, groups, [tangent is not None for tangent in given])
    way = pushed(body, groups, marked)
    both = with_tangents(groups, marked, operands, given)
    found = _bind(way.body, way.groups, count, both, equation.params["length"], equation.params["reverse"])
    return split_tangents(found, way.carry, way.ys)


def split_tangents(found: Sequence[Symbol], carry: Flags, ys: Flags) -> tuple[list[Symbol], list[Tangent]]:
    """Return the results of a pushed loop, (carry…, dcarry…, ys…, dys…), as results and tangents."""
    ends = len(carry), len(carry) + sum(carry), len(carry) + sum(carry) + len(ys)
    dcarry, dys = iter(found[ends[0] : ends[1]]), iter(found[ends[2] :])
    tangents = [*[next(dcarry) if c else None for c in carry], *[next(dys) if y else None for y in ys]]
    return [*found[: ends[0]], *found[ends[1] : ends[2]]], tangents


def _pull(equation: Equation, primals: Sequence[Symbol], needed: Flags) -> tuple[list[Symbol], Pullback]:
    groups, (body,) = loop_groups(equation), equation.regions
    length, is_reversed = equation.params["length"], equation.params["reverse"]
    count, operands = _behind_count(equation, primals)
    way = pulled(body, groups, _behind_count(equation, needed)[1])
    found = _bind(way.forward, groups, count, operands, length, is_reversed)
    results, kept = found[: len(body.outputs)], found[len(body.outputs) :]

    def pullback(cts: Sequence[Cotangent]) -> list[Cotangent]:
        back = sweep_over(count, length, reverse=not is_reversed)
        consts, _, xs = groups.split(operands)
        rows = Rows(xs, kept[: way.parts.kept], kept[way.parts.kept :])
        return [*[None] * len(count), *sweep_back(way, body, consts, rows, cts, back)]

    return results, _only(pullback, needed)


def sweep_over(count: Sequence[Symbol], length: int | None, *, reverse: bool) -> Any:
    """Return what runs the body of a pullback over the steps that were taken."""
    return lambda body, groups, operands: _bind(body, groups, count, operands, length, reverse)


def _only(pullback: Pullback, needed: Flags) -> Pullback:
    return lambda cts: [ct if n else None for ct, n in zip(pullback(cts), needed, strict=True)]


def _prune(equation: Equation, live: Flags) -> Equation:
    """Return the scan without results that nobody reads and what only they need."""
    groups = loop_groups(equation)
    body, inputs, outputs = live_body(equation.regions[0], groups, live)
    count, operands = _behind_count(equation, equation.operands)
    consts, carry, _ = groups.split(inputs)
    return replace(
        equation,
        results=tuple(compress(equation.results, outputs)),
        operands=(*count, *compress(operands, inputs)),
        params={**equation.params, "consts": sum(consts), "carry": sum(carry)},
        regions=(body,),
    )


# ---- less to do ------------------------------------------------------------------------------------------------------


def _reduce(operands: Sequence[Symbol], params: Params, regions: tuple[Program, ...]) -> Sequence[Symbol] | None:
    """Return the results without the loop where there is one step or none; else with less to do in each."""
    (body,) = regions
    length, carry = params["length"], params["carry"]
    count, given = operands[: length is None], operands[length is None :]
    groups = Groups(params["consts"], carry, len(given) - params["consts"] - carry)
    if length == 0:
        rows = [_rows(aval, 0) for aval in body.out_avals[carry:]]
        return (*groups.split(given)[1], *map(zeros_like, rows))
    if length == 1:
        consts, state, xs = groups.split(given)
        found = inline(body, [*consts, *state, *[reshape_to(x, x.shape[1:]) for x in xs]])
        return (*found[:carry], *[reshape_to(row, (1, *row.shape)) for row in found[carry:]])
    return _in_each_step(count, given, groups, params, body)


def _in_each_step(
    count: Sequence[Symbol], given: Sequence[Symbol], groups: Groups, params: Params, body: Program
) -> Sequence[Symbol] | None:
    """Return the results with what is the same in every step put before the loop."""
    consts, init, xs = groups.split(given)
    vars_of_consts, vars_of_carry, _ = groups.split(body.inputs)
    ends, ys = body.outputs[: groups.carry], body.outputs[groups.carry :]
    same = unchanged(vars_of_carry, ends, init)
    fixed = dict(zip([*vars_of_consts, *compress(vars_of_carry, same)], [*consts, *compress(init, same)], strict=True))
    runs = params["length"] is not None
    if not any(same) and not gains(body, fixed, runs=runs):
        return None
    moving = [not s for s in same]
    inner = Program(body.name, body.inputs, body.equations, (*compress(ends, moving), *ys))
    way = specialized(inner, fixed, runs=runs)
    left = {**params, "consts": len(way.consts), "carry": sum(moving)}
    found = scan(*count, *way.consts, *compress(init, moving), *xs, **left, regions=(way.region,))
    return (*spread_among(init, moving, found), *found[sum(moving) :])


def spread_among(init: Sequence[Symbol], moving: Flags, found: Sequence[Symbol]) -> list[Symbol]:
    """Return the carry at the end, of which only what is moving was found by a loop."""
    rest = iter(found)
    return [next(rest) if m else start for start, m in zip(init, moving, strict=True)]


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


scan = register(
    Primitive(
        "scan",
        _infer_scan,
        _evaluate_scan,
        Structured(_push, _pull),
        ScanLoop(),
        _samples,
        "The region once for each index of a leading axis, a carry handed on.",
        prune=_prune,
        reduce=_reduce,
    )
)
