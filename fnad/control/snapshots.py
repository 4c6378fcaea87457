"""`snapshots`: a loop that reverse mode goes back over with a given number of copies of its carry.

Its region is one loop equation, on the same operands and with the same results. What goes back is `revolve`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import Any

import numpy as np

from fnad.control.loop import Sweep, two_way
from fnad.control.region_rules import check_avals, inlined_primitive, pieces, returning
from fnad.control.revolve import revolve
from fnad.control.rows import put_row, row
from fnad.control.scan import scan, scan_as_loop
from fnad.control.signatures import Cotangents, Flags, Pulled, Pushed, Regions, Symbols, Tangents
from fnad.control.while_loop import while_as_loop, while_loop
from fnad.errors import ShapeError
from fnad.ir.builder import SymbolEnvironment, bind_equation, current_builder, inline, trace
from fnad.ir.primitive import Primitive, Sample, ScanLoop, WhileLoop
from fnad.ir.program import Equation, Params
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ops.arithmetic import add
from fnad.ops.shape import constant, zeros_like
from fnad.transforms.dce import without_effects
from fnad.transforms.joint import Cotangent, pull
from fnad.transforms.jvp import push

AS_LOOP = {scan: scan_as_loop, while_loop: while_as_loop}


def with_snapshots(loop: Primitive, count: int, operands: Symbols, **given: Any) -> tuple[Symbol, ...]:
    """The results of a loop on these operands, as many copies of its carry being saved as `count` says."""
    region = trace(lambda *args: loop(*args, **given), *[operand.aval for operand in operands], name=loop.name)
    return snapshots(*operands, count=count, regions=(region,))


def _reduce(operands: Symbols, params: Params, regions: Regions) -> Symbols | None:
    """The results with the loop alone in the region, where there is something beside it."""
    (region,) = regions
    loops = [e for e in region.equations if isinstance(e.primitive.lower, ScanLoop | WhileLoop)]
    if len(region.equations) == 1 and [(e.operands, e.results) for e in loops] == [(region.inputs, region.outputs)]:
        return None
    builder, env = current_builder(), SymbolEnvironment(region.inputs, operands)
    for equation in region.equations:
        builder.source = equation.source or builder.source
        given = env.read(equation.operands)
        if equation in loops[-1:]:  # what was put before the loop may itself be one: the loop that is meant is the last
            of_loop = {**equation.params, "regions": equation.regions}
            env.write(equation.results, with_snapshots(equation.primitive, params["count"], given, **of_loop))
        else:
            env.write(equation.results, bind_equation(equation, given))
    return tuple(env.read(region.outputs))


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _push(equation: Equation, primals: Symbols, tangents: Tangents) -> Pushed:
    """Push through the loop itself: forward mode saves nothing."""
    return push(equation.regions[0].equations[0], primals, tangents)


def _pull(equation: Equation, primals: Symbols, needed: Flags) -> Pulled:
    inner = equation.regions[0].equations[0]
    if inner.params.get("length") == 0:
        return pull(inner, primals, needed)
    results = list(snapshots(*primals, **equation.params, regions=equation.regions))
    if any(value.aval.is_residual_stack for value in (*primals, *results)):
        raise ShapeError("snapshots are of a loop without residual stacks")
    loop = AS_LOOP[inner.primitive](inner.params, tuple(map(without_effects, inner.regions)))
    head, carry = loop.head, loop.groups.carry
    way = two_way(loop.body, loop.groups, needed[head:], whole=True)
    steps = results[carry] if loop.counts else primals[0] if loop.length is None else constant(loop.length, I64)

    def pullback(cts: Cotangents) -> list[Cotangent]:
        sweep = Sweep.of(way, [*cts[:carry], *cts[carry + loop.counts :]])
        found = _swept(sweep, primals[head:], steps, equation.params["count"], reverse=loop.reverse)
        return [*[None] * head, *sweep.cotangents(found)]

    return results, pullback


def _swept(sweep: Sweep, operands: Symbols, steps: Symbol, count: int, *, reverse: bool) -> Symbols:
    """The cotangents of carry, constants and xs that the sweep ends with."""
    body, groups = sweep.way.body, sweep.way.groups
    consts, carry, xs = groups.split(operands)
    forward = returning(body, body.outputs[: groups.carry])
    totals = [len(sweep.carry), len(sweep.sums), len(xs)]

    def place(k: Symbol) -> Symbol:
        return steps - 1 - k if reverse else k

    def step(k: Symbol, state: Symbols) -> list[Symbol]:
        return inline(forward, [*consts, *state, *[row(x, place(k)) for x in xs]])

    def back(k: Symbol, state: Symbols, cts: Symbols) -> list[Symbol]:
        at = place(k)
        ct_s, sums, stacks = pieces(cts, totals)
        given, ct_y = [*consts, *state, *[row(x, at) for x in xs]], [row(ct, at) for ct in sweep.ys]
        to_consts, to_carry, to_xs = sweep.step(given, ct_s, ct_y)
        added = list(map(add, sums, to_consts))
        return [*to_carry, *added, *[put_row(stack, ct, at) for stack, ct in zip(stacks, to_xs, strict=True)]]

    stacks = [zeros_like(x.aval) for x in compress(xs, sweep.on[2])]
    return revolve(steps, count, carry, [*sweep.carry, *sweep.sums, *stacks], step, back)


# ---- samples ---------------------------------------------------------------------------------------------------------


def _samples() -> Iterable[Sample]:
    """The samples of the two loops."""
    for loop in (scan, while_loop):
        for sample in loop.samples():
            avals = [Aval(np.asarray(operand).dtype, np.shape(operand)) for operand in sample.operands]
            region = trace(
                lambda *args, loop=loop, s=sample: loop(*args, **s.params, regions=s.regions), *avals, name=loop.name
            )
            yield Sample(sample.operands, {"count": 2}, (region,))


@inlined_primitive(_push, _pull, _samples, reduce=_reduce)
def snapshots(*avals: Aval, count: int, regions: Regions) -> tuple[Aval, ...]:
    """The loop in the region, which reverse mode goes back over with so many copies of its carry."""
    (region,) = regions
    check_avals("the region of snapshots takes", region.in_avals, avals)
    if len(region.equations) != 1 or count < 1:
        raise ShapeError("snapshots are of one loop, which is the one equation of the region, and one at least")
    return region.out_avals
