"""`snapshots`: a loop that reverse mode goes back over with a given number of copies of its carry.

It is a box around one loop equation, which it takes its operands and results from. What goes back is `revolve`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from fnad.control.loop import Flags, Groups, Pulled, filled, whole
from fnad.control.revolve import put_row, revolve, row
from fnad.control.scan import loop_groups, scan
from fnad.control.while_loop import while_loop
from fnad.errors import ShapeError
from fnad.ir.builder import SymbolEnvironment, bind_equation, current_builder, inline, trace
from fnad.ir.primitive import Inlined, Primitive, Sample, ScanLoop, Structured, WhileLoop, register
from fnad.ir.program import Equation, Params, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.ops.arithmetic import add
from fnad.ops.shape import zeros_like
from fnad.transforms.dce import dce
from fnad.transforms.interpret import region_runner
from fnad.transforms.joint import Cotangent, Pullback, pull
from fnad.transforms.jvp import Tangent, push


def _infer(*avals: Aval, count: int, regions: tuple[Program, ...]) -> tuple[Aval, ...]:
    (region,) = regions
    if region.in_avals != avals or len(region.equations) != 1 or count < 1:
        raise ShapeError("snapshots are of one loop, which is the one equation of the region, and one at least")
    return region.out_avals


def _evaluate(*operands: Any, count: int, regions: tuple[Program, ...]) -> tuple[Any, ...]:
    return tuple(region_runner(regions[0])(operands))


def with_snapshots(loop: Primitive, count: int, operands: Sequence[Symbol], **given: Any) -> tuple[Symbol, ...]:
    """Return the results of a loop on these operands, as many copies of its carry being kept as `count` says."""
    region = trace(lambda *args: loop(*args, **given), *[operand.aval for operand in operands], name=loop.name)
    return snapshots(*operands, count=count, regions=(region,))


def _reduce(operands: Sequence[Symbol], params: Params, regions: tuple[Program, ...]) -> Sequence[Symbol] | None:
    """Return the results with the box around the loop alone, where there is something beside it."""
    (region,) = regions
    loops = [e for e in region.equations if isinstance(e.primitive.lower, ScanLoop | WhileLoop)]
    if len(region.equations) == 1 and [(e.operands, e.results) for e in loops] == [(region.inputs, region.outputs)]:
        return None
    builder, env = current_builder(), SymbolEnvironment(region.inputs, operands)
    for equation in region.equations:
        builder.source = equation.source or builder.source
        given = env.read(equation.operands)
        if equation in loops[-1:]:
            of_loop = {**equation.params, "regions": equation.regions}
            env.write(equation.results, with_snapshots(equation.primitive, params["count"], given, **of_loop))
        else:
            env.write(equation.results, bind_equation(equation, given))
    return tuple(env.read(region.outputs))


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _push(
    equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> tuple[list[Symbol], list[Tangent]]:
    """Push through the loop itself: forward mode keeps nothing."""
    return push(equation.regions[0].equations[0], primals, tangents)


class _Loop(NamedTuple):
    """A loop equation, taken apart: what it goes over, how often, in which order."""

    body: Program
    groups: Groups
    operands: Sequence[Symbol]
    steps: Symbol
    reverse: bool
    skipped: int

    def place(self, step: Symbol, steps: Symbol) -> Symbol:
        return steps - 1 - step if self.reverse else step


def _loop(equation: Equation, primals: Sequence[Symbol], results: Sequence[Symbol]) -> _Loop:
    params, body = equation.params, equation.regions[-1]
    if isinstance(equation.primitive.lower, ScanLoop):
        groups, length = loop_groups(equation), params["length"]
        known = length is not None
        steps = current_builder().literal(np.int64(length)) if known else primals[0]
        return _Loop(body, groups, primals[not known :], steps, params["reverse"], int(not known))
    consts, first = params["body_consts"], params["test_consts"]
    groups = Groups(consts, len(body.inputs) - consts, 0)
    return _Loop(body, groups, primals[first:], results[groups.carry], False, first)


def _pull(equation: Equation, primals: Sequence[Symbol], needed: Flags) -> tuple[list[Symbol], Pullback]:
    inner = equation.regions[0].equations[0]
    if inner.params.get("length") == 0:
        return pull(inner, primals, needed)
    results = list(snapshots(*primals, **equation.params, regions=equation.regions))
    loop = _loop(inner, primals, results)
    if any(operand.aval.is_residual_stack for operand in loop.operands) or any(
        result.aval.is_residual_stack for result in results
    ):
        raise ShapeError("snapshots are of a loop without residual stacks")
    way = whole(loop.body, loop.groups, needed[loop.skipped :])

    def pullback(cts: Sequence[Cotangent]) -> list[Cotangent]:
        of_results = [*cts[: loop.groups.carry], *cts[loop.groups.carry + _counts_steps(equation) :]]
        found = _swept(loop, way, of_results, equation.params["count"])
        wanted = zip([*[None] * loop.skipped, *found], needed, strict=True)
        return [ct if n else None for ct, n in wanted]

    return results, pullback


def _counts_steps(equation: Equation) -> bool:
    """Say whether the loop returns behind its carry how many steps it took."""
    return equation.regions[0].equations[0].primitive is while_loop


def _swept(loop: _Loop, way: Pulled, cts: Sequence[Cotangent], count: int) -> list[Cotangent]:
    """Return the cotangents of constants, carry and xs."""
    groups, body = loop.groups, loop.body
    consts, carry, xs = groups.split(loop.operands)
    on_consts, on_carry, on_xs = groups.split(way.marked)
    carry_avals, y_avals = body.out_avals[: groups.carry], body.out_avals[groups.carry :]
    ct_carry, ct_ys = cts[: groups.carry], cts[groups.carry :]
    has_ct = [ct is not None and is_inexact(a.dtype) for ct, a in zip(ct_ys, y_avals, strict=True)]
    real_ys = [ct for ct, h in zip(ct_ys, has_ct, strict=True) if h and ct is not None]
    forward = dce(Program(body.name, body.inputs, body.equations, body.outputs[: groups.carry]))
    ends = groups.consts, groups.consts + groups.xs

    def rows(k: Symbol, given: Sequence[Symbol]) -> tuple[Symbol, list[Symbol], list[Symbol]]:
        at = loop.place(k, given[-1])
        return at, [row(x, at) for x in given[ends[0] : ends[1]]], [row(ct, at) for ct in given[ends[1] : -1]]

    def step(k: Symbol, given: Sequence[Symbol], state: Sequence[Symbol]) -> list[Symbol]:
        return inline(forward, [*given[: ends[0]], *state, *rows(k, given)[1]])

    def back(k: Symbol, given: Sequence[Symbol], state: Sequence[Symbol], sums: Sequence[Symbol]) -> list[Symbol]:
        at, x, of_ys = rows(k, given)
        of_carry = filled(sums[: sum(on_carry)], on_carry, carry_avals)
        outer = [*of_carry, *filled(of_ys, has_ct, y_avals)]
        inexact = [ct for ct, aval in zip(outer, body.out_avals, strict=True) if is_inexact(aval.dtype)]
        found = iter(inline(way.parts.backward, [*given[: ends[0]], *state, *x, *inexact]))
        of_consts, rest = [next(found) for on in on_consts if on], sums[sum(on_carry) :]
        of_state = [next(found) for on in on_carry if on]
        added = [add(s, ct) for s, ct in zip(rest, of_consts)]  # noqa: B905 the rows stand behind
        put = [put_row(s, ct, at) for s, ct in zip(rest[len(added) :], found, strict=True)]
        return [*of_state, *added, *put]

    start = [
        zeros_like(a) if ct is None else ct for ct, a, on in zip(ct_carry, carry_avals, on_carry, strict=True) if on
    ]
    sums = [zeros_like(v.aval) for v in [*compress(consts, on_consts), *compress(xs, on_xs)]]
    found = iter(revolve(loop.steps, count, [*consts, *xs, *real_ys, loop.steps], carry, [*start, *sums], step, back))
    of_carry = [next(found) if on else None for on in on_carry]
    of_consts = [next(found) if on else None for on in on_consts]
    return [*of_consts, *of_carry, *[next(found) if on else None for on in on_xs]]


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


snapshots = register(
    Primitive(
        "snapshots",
        _infer,
        _evaluate,
        Structured(_push, _pull),
        Inlined(),
        _samples,
        "The loop in the region, which reverse mode goes back over with so many copies of its carry.",
        reduce=_reduce,
    )
)
