"""The parts that both loops share: the body, its operands in groups, and the rules that rewrite it.

The body of a loop takes constants, the carry and, of each of the arrays `xs`, the slice of this step; it returns the
carry for the next step and a row for each of the arrays `ys`.

Forward mode hands the tangent of the carry on beside the carry. Reverse mode runs the pullback of the body backwards
over the steps: its carry are the cotangents of the carry and, summed up, of the constants; its `xs` are what the steps
saved for it (see `fnad.control.partition`), and the cotangents of `ys`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, compress
from typing import NamedTuple, TypeAlias, TypeVar

from fnad.control.invariant import LoopPart, Specialized, specialized, unchanged
from fnad.control.partition import Parts, partitioned
from fnad.control.region_rules import (
    built,
    inexact,
    instantiated,
    of_inexact,
    on_inputs,
    pieces,
    reached,
    read_inputs,
    returning,
    spread,
)
from fnad.control.signatures import Cotangents, Flags, Pulled, Pushed, Regions, Symbols, Tangents
from fnad.ir.builder import inline, trace
from fnad.ir.primitive import Structured
from fnad.ir.program import Equation, Params, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.shape import zeros_like
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.joint import Cotangent
from fnad.transforms.pipeline import simplify
from fnad.transforms.sums import Sums

T = TypeVar("T")


class Groups(NamedTuple):
    """The numbers of constants, carried values and scanned arrays that the body of a loop takes, in this order."""

    consts: int
    carry: int
    xs: int

    def split(self, values: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """The values by group."""
        ends = self.consts, self.consts + self.carry
        return values[: ends[0]], values[ends[0] : ends[1]], values[ends[1] :]

    def body_avals(self, operands: Sequence[Symbol | Aval]) -> list[Aval]:
        """The avals of the body's inputs if the loop takes these operands."""
        consts, carry, xs = self.split([Aval(operand.dtype, operand.shape) for operand in operands])
        return [*consts, *carry, *[aval.with_shape(aval.shape[1:]) for aval in xs]]


class Loop(NamedTuple):
    """A loop equation as the rules see it, whichever of the two it is.

    The first `head` operands are the loop's own, not the body's. The results are the carry, the number of steps where
    the loop `counts` them, and the ys. Where it does not, and has no known `length`, its head is that number.
    `bind(body, groups, head, operands)` is the loop with another body, whose carry may have grown at its end.
    """

    body: Program
    groups: Groups
    head: int
    counts: bool
    length: int | None
    reverse: bool
    bind: Callable[[Program, Groups, Symbols, Symbols], list[Symbol]]


Scan: TypeAlias = Callable[[Program, Groups, Symbols, Symbols, int | None, bool], Symbols]
"""The function that runs a body: `scan(body, groups, count, operands, length, reverse)`; `count` means no length."""


def derivative(as_loop: Callable[[Params, Regions], Loop], scan: Scan) -> Structured:
    """The rules of a primitive that is a loop in this way."""

    def of(equation: Equation) -> Loop:
        return as_loop(equation.params, equation.regions)

    return Structured(
        lambda equation, primals, tangents: push(of(equation), primals, tangents),
        lambda equation, primals, needed: pull(of(equation), primals, needed, scan),
        lambda equation, active: _reach(of(equation), active),
    )


def _reach(loop: Loop, active: Flags) -> list[bool]:
    """Which results of a loop carry a derivative where the `active` operands do."""
    marked = settled(loop.body, loop.groups, active[loop.head :])
    ys = reached([loop.body], marked)[loop.groups.carry :]
    return [*loop.groups.split(marked)[1], *[False] * loop.counts, *ys]


# ---- forward mode ----------------------------------------------------------------------------------------------------


def closure(flags: Flags, step: Callable[[list[bool]], Flags]) -> list[bool]:
    """The flags of a carry, with what a `step` of the loop sets as well, until it sets no more."""
    while True:
        grown = [old or new for old, new in zip(flags, step(list(flags)), strict=True)]
        if grown == list(flags):
            return grown
        flags = grown


def settled(body: Program, groups: Groups, marked: Flags) -> list[bool]:
    """Which inputs of the body carry a derivative in some step where those `marked` do in the first."""
    consts, carry, xs = groups.split(marked)
    carry = closure(carry, lambda carry: reached([body], [*consts, *carry, *xs])[: groups.carry])
    return [*consts, *carry, *xs]


def push(loop: Loop, primals: Symbols, tangents: Tangents) -> Pushed:
    """The loop that hands tangents on beside the values."""
    body, groups, operands, given = loop.body, loop.groups, primals[loop.head :], tangents[loop.head :]
    marked = settled(body, groups, [tangent is not None for tangent in given])
    moved = reached([body], marked)[groups.carry :]
    carry = groups.split(marked)[1]
    # a tangent that is zero in the first step only has to be there
    real = [zeros_like(x) if m and t is None else t for x, t, m in zip(operands, given, marked, strict=True)]
    both = _beside(groups, marked, operands, real)
    pushed = _pushed_body(body, groups, marked, [*carry, *moved])
    grown = Groups(*[len(flags) + sum(flags) for flags in groups.split(marked)])
    found = loop.bind(pushed, grown, primals[: loop.head], both)
    ends, dends, steps, ys, dys = pieces(found, (groups.carry, sum(carry), loop.counts, len(moved), sum(moved)))
    return [*ends, *steps, *ys], [*spread(dends, carry), *[None] * loop.counts, *spread(dys, moved)]


def _pushed_body(body: Program, groups: Groups, marked: Flags, moved: Flags) -> Program:
    """The body (consts…, dconsts…, carry…, dcarry…, xs…, dxs…) -> (carry…, dcarry…, ys…, dys…)."""
    both, count = jvp(body, marked), len(body.outputs)
    inputs = _beside(groups, marked, both.inputs[: len(marked)], spread(both.inputs[len(marked) :], marked))
    tangents = spread(both.outputs[count:], inexact(body.out_avals))
    results = groups._replace(consts=0)
    return returning(replace(both, inputs=tuple(inputs)), _beside(results, moved, both.outputs[:count], tangents))


def _beside(groups: Groups, marked: Flags, values: Sequence[T], tangents: Sequence[T | None]) -> list[T]:
    """The values by group, each group followed by the tangents of those in it that are marked."""
    parts = zip(groups.split(values), groups.split(tangents), groups.split(marked), strict=True)
    return [value for group, beside, flags in parts for value in (*group, *built(compress(beside, flags)))]


# ---- reverse mode ----------------------------------------------------------------------------------------------------


class TwoWay(NamedTuple):
    """The two parts of a body, whose `marked` inputs carry a derivative; the second needs the carry at `carried`."""

    body: Program
    groups: Groups
    marked: list[bool]
    parts: Parts
    carried: Sequence[int]

    @property
    def forward(self) -> Program:
        """The body whose additional `ys` are what is saved: residuals, and as much of the carry as is needed."""
        program = self.parts.forward
        return replace(program, outputs=(*program.outputs, *[program.inputs[i] for i in self.carried]))


def two_way(body: Program, groups: Groups, needed: Flags, *, whole: bool = False) -> TwoWay:
    """The body's two parts; `whole` says that only the carry is saved, so that the second begins with the first."""
    marked, inputs = settled(body, groups, needed), range(len(body.inputs))
    carry = groups.split(inputs)[1]
    if whole:
        both = simplify(joint(body, marked))
        backward = replace(returning(both, both.outputs[len(body.outputs) :]), name=f"{body.name}_back")
        parts = Parts(body, backward, tuple(inputs), 0)
    else:
        parts = partitioned(body, marked, carry)
    return TwoWay(body, groups, marked, parts, [i for i in parts.inputs if i in carry])


class Sweep(NamedTuple):
    """The values of a reverse sweep: cotangents of the carry, sums for the constants, and the cotangents of ys."""

    way: TwoWay
    on: tuple[Flags, Flags, Flags]
    has_ct: list[bool]
    carry: list[Symbol]
    sums: list[Symbol]
    ys: list[Symbol]

    @classmethod
    def of(cls, way: TwoWay, cts: Cotangents) -> Sweep:
        """The sweep that starts with cotangents of carry and ys, None for a zero."""
        on, count = way.groups.split(way.marked), way.groups.carry
        consts, carry, _ = way.groups.split(way.body.in_avals)
        has_ct = [ct is not None and i for ct, i in zip(cts[count:], inexact(way.body.out_avals[count:]), strict=True)]
        start = instantiated(list(compress(cts, on[1])), list(compress(carry, on[1])))
        sums = [zeros_like(aval) for aval in compress(consts, on[0])]
        return cls(way, on, has_ct, start, sums, built(compress(cts[count:], has_ct)))

    def step(self, given: Symbols, carry: Symbols, ys: Symbols) -> list[Sequence[Symbol]]:
        """The cotangents of constants, carry and xs in a step, from those of carry and ys."""
        outer = instantiated([*spread(carry, self.on[1]), *spread(ys, self.has_ct)], self.way.body.out_avals)
        return pieces(inline(self.way.parts.backward, [*given, *of_inexact(outer)]), map(sum, self.on))

    def cotangents(self, found: Symbols) -> list[Cotangent]:
        """The cotangents of constants, carry and xs, from those that the loop ends with, of the carry first."""
        consts, carry, xs = self.on
        to_carry, to_consts, to_xs = pieces(found, map(sum, (carry, consts, xs)))
        return [*spread(to_consts, consts), *spread(to_carry, carry), *spread(to_xs, xs)]


def pull(loop: Loop, primals: Symbols, needed: Flags, scan: Scan) -> Pulled:
    """The loop that saves what the way back needs, which is a scan."""
    groups, head, operands = loop.groups, primals[: loop.head], primals[loop.head :]
    way = two_way(loop.body, groups, needed[loop.head :])
    found = loop.bind(way.forward, groups, head, operands)
    count = len(loop.body.outputs) - groups.carry
    ends, steps, ys, saved = pieces(found, (groups.carry, loop.counts, count, len(found)))

    def pullback(cts: Cotangents) -> list[Cotangent]:
        sweep = Sweep.of(way, [*cts[: groups.carry], *cts[groups.carry + loop.counts :]])
        back, counts, given = _way_back(sweep, operands, saved)
        found = scan(back, counts, steps or head, given, loop.length, not loop.reverse)
        return [*[None] * loop.head, *sweep.cotangents(found)]

    return [*ends, *steps, *ys], pullback


def _way_back(sweep: Sweep, operands: Symbols, saved: Symbols) -> tuple[Program, Groups, list[Symbol]]:
    """The loop that goes back: its body, its groups and its operands."""
    way = sweep.way
    used = [i in way.parts.inputs for i in range(len(operands))]
    consts, _, xs = map(compress, way.groups.split(operands), way.groups.split(used))
    residuals, carried = saved[: way.parts.residuals], saved[way.parts.residuals :]
    given: list[Symbols] = [list(consts), sweep.carry, sweep.sums, list(xs), residuals, carried, sweep.ys]
    sizes = list(map(len, given))

    def step(*args: Symbol) -> list[Symbol]:
        c, ct_s, sums, x, residuals, carried, ct_y = pieces(args, sizes)
        to_consts, to_carry, to_xs = sweep.step([*c, *carried, *x, *residuals], ct_s, ct_y)
        return [*to_carry, *map(Sums().add, sums, to_consts), *to_xs]

    counts = Groups(sizes[0], sizes[1] + sizes[2], sum(sizes[3:]))
    operands = list(chain(*given))
    return simplify(trace(step, *counts.body_avals(operands), name=f"{way.body.name}_back")), counts, operands


# ---- less to do ------------------------------------------------------------------------------------------------------


def prune(
    loop: Loop, equation: Equation, live: Flags, always: Flags = ()
) -> tuple[Equation, tuple[Flags, Flags, Flags]]:
    """The loop without results that nobody reads and what only they need; and which inputs its body still has.

    Carried values marked in `always` are needed in any case.
    """
    groups, body = loop.groups, loop.body
    ends, steps, ys = pieces(live, (groups.carry, loop.counts, len(live)))
    carry = [a or b for a, b in zip(ends, always, strict=True)] if always else list(ends)
    while True:
        inner = returning(body, compress(body.outputs, [*carry, *ys]))
        consts, read, xs = groups.split(read_inputs(inner))
        grown = [a or b for a, b in zip(carry, read, strict=True)]  # what this step reads the one before has to make
        if grown == carry:
            break
        carry = grown
    inputs = [*consts, *carry, *xs]
    left = on_inputs(inner, inputs)
    if left is body:
        return equation, (consts, carry, xs)
    pruned = replace(
        equation,
        results=tuple(compress(equation.results, [*carry, *[True] * len(steps), *ys])),
        operands=(*equation.operands[: loop.head], *compress(equation.operands[loop.head :], inputs)),
        regions=(*equation.regions[:-1], left),
    )
    return pruned, (consts, carry, xs)


def lessened(
    body: Program, groups: Groups, consts: Symbols, init: Symbols, *others: LoopPart, runs: bool
) -> tuple[list[Specialized], list[bool]] | None:
    """The regions of a loop with what is the same in every step put before it, and what is still carried.

    None where that is not worth while. The body's region is the last.
    """
    same = unchanged(body, groups.split(body.inputs)[1], body.outputs[: groups.carry], init)
    moving = [not s for s in same]
    inner = replace(body, outputs=(*compress(body.outputs, moving), *body.outputs[groups.carry :]))
    found = specialized([*others, LoopPart(inner, consts, runs)], init, same)
    return None if found is None else (found, moving)


def restored(found: Symbols, init: Symbols, moving: Flags) -> tuple[Symbol, ...]:
    """The results of a loop from those of one that carries only what is moving."""
    carry = [start if end is None else end for start, end in zip(init, spread(found, moving), strict=True)]
    return (*carry, *found[sum(moving) :])
