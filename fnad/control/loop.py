"""What the two loops share: the body, its operands in groups, and the rules that rewrite it.

The body of a loop takes constants, the carry and, of each of the arrays `xs`, the slice of this step; it returns the
carry for the next step and a row for each of the arrays `ys`.

Forward mode hands the tangent of the carry on beside the carry. Reverse mode runs the pullback of the body backwards
over the steps: its carry are the cotangents of the carry and, summed up, of the constants; its `xs` are what the steps
kept for it (see `fnad.control.partition`), and the cotangents of `ys`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import NamedTuple, TypeAlias, TypeVar

from fnad.control.partition import Parts, partition
from fnad.ir.builder import inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.ir.walk import use_counts
from fnad.ops.shape import zeros_like
from fnad.transforms.activity import active_vars
from fnad.transforms.dce import dce
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.joint import Cotangent
from fnad.transforms.jvp import Tangent
from fnad.transforms.pipeline import simplify
from fnad.transforms.sums import Sums

T = TypeVar("T")
Flags: TypeAlias = Sequence[bool]


class Groups(NamedTuple):
    """How many constants, carried values and arrays to go over the body of a loop takes, in this order."""

    consts: int
    carry: int
    xs: int

    def split(self, values: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """Return the values by group."""
        ends = self.consts, self.consts + self.carry
        return values[: ends[0]], values[ends[0] : ends[1]], values[ends[1] :]


# ---- which values carry a derivative ---------------------------------------------------------------------------------


def settled(body: Program, groups: Groups, marked: Flags) -> list[bool]:
    """Return which inputs of the body carry a derivative in some step where those `marked` do in the first."""
    consts, carry, xs = groups.split(list(marked))
    while True:
        found = reached(body, [*consts, *carry, *xs])[: groups.carry]
        grown = [old or new for old, new in zip(carry, found, strict=True)]
        if grown == list(carry):
            return [*consts, *carry, *xs]
        carry = grown


def reached(body: Program, marked: Flags) -> list[bool]:
    """Return which outputs of the body carry a derivative where the `marked` inputs do."""
    active = active_vars(body, marked)
    return [atom in active for atom in body.outputs]


# ---- forward mode ----------------------------------------------------------------------------------------------------


class Pushed(NamedTuple):
    """The body with tangents, and which values have one: (consts…, dconsts…, carry…, dcarry…, xs…, dxs…) -> …."""

    body: Program
    groups: Groups
    carry: list[bool]
    ys: list[bool]


def pushed(body: Program, groups: Groups, marked: Flags) -> Pushed:
    """Return the body of the loop that hands tangents on, of the inputs that are `settled` to have one."""
    with_tangents = jvp(body, marked)
    consts, carry, xs = groups.split(list(marked))
    inexact = [is_inexact(aval.dtype) for aval in body.out_avals]
    ys = reached(body, marked)[groups.carry :]

    def run(*args: Symbol) -> list[Symbol]:
        sizes = groups.consts, sum(consts), groups.carry, sum(carry), groups.xs, sum(xs)
        c, dc, s, ds, x, dx = _pieces(args, sizes)
        found = inline(with_tangents, [*c, *s, *x, *dc, *ds, *dx])
        outputs, tangents = found[: len(inexact)], spread(found[len(inexact) :], inexact)
        new, rows = outputs[: groups.carry], outputs[groups.carry :]
        dnew, drows = tangents[: groups.carry], tangents[groups.carry :]
        return [*new, *_real(compress(dnew, carry)), *rows, *_real(compress(drows, ys))]

    parts = groups.split(body.in_avals)
    avals = [a for part, flags in zip(parts, (consts, carry, xs), strict=True) for a in [*part, *compress(part, flags)]]
    grown = Groups(groups.consts + sum(consts), groups.carry + sum(carry), groups.xs + sum(xs))
    return Pushed(dce(trace(run, *avals, name=body.name)), grown, list(carry), ys)


def with_tangents(
    groups: Groups, marked: Flags, primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> list[Symbol]:
    """Return the operands of the pushed loop; a zero tangent that becomes another in the loop is built."""
    real = [zeros_like(p) if t is None else t for p, t, m in zip(primals, tangents, marked, strict=True) if m]
    parts = zip(groups.split(primals), groups.split(spread(real, marked)), strict=True)
    return [value for values, moved in parts for value in [*values, *_real(moved)]]


# ---- reverse mode ----------------------------------------------------------------------------------------------------


class Pulled(NamedTuple):
    """The body that keeps what the way back needs, and how to go back."""

    parts: Parts
    groups: Groups
    marked: list[bool]
    carried: tuple[int, ...]

    @property
    def forward(self) -> Program:
        """The body whose additional `ys` are what is kept: the carry as it comes in, as far as needed, and results."""
        program = self.parts.forward
        carries = [program.inputs[self.groups.consts + j] for j in self.carried]
        outputs = (*program.outputs, *carries)
        return Program(program.name, program.inputs, program.equations, outputs)


def whole(body: Program, groups: Groups, needed: Flags) -> Pulled:
    """Return the body's two parts where nothing is kept but the carry: the second begins with the first."""
    marked = settled(body, groups, needed)
    swept = simplify(joint(body, marked))
    count = len(body.inputs)
    backward = dce(Program(f"{body.name}_back", swept.inputs, swept.equations, swept.outputs[len(body.outputs) :]))
    return Pulled(Parts(body, backward, tuple(range(count)), 0), groups, marked, tuple(range(groups.carry)))


def pulled(body: Program, groups: Groups, needed: Flags) -> Pulled:
    """Return the body's two parts, with respect to the inputs that are `settled` to carry a derivative."""
    marked = settled(body, groups, needed)
    swept = simplify(joint(body, marked))
    parts = partition(swept, len(body.inputs), len(body.outputs))
    ends = groups.consts, groups.consts + groups.carry
    carried = tuple(i - ends[0] for i in parts.inputs if ends[0] <= i < ends[1])
    return Pulled(parts, groups, marked, carried)


class Rows(NamedTuple):
    """What the way back goes over: the arrays `xs`, what was kept of the body and of the carry."""

    xs: Sequence[Symbol]
    kept: Sequence[Symbol]
    carried: Sequence[Symbol]


Scan: TypeAlias = Callable[[Program, Groups, Sequence[Symbol]], Sequence[Symbol]]
"""How to run a body over the rows, backwards: `scan(body, groups, operands) -> (carry…, ys…)`."""


def sweep_back(
    way: Pulled, body: Program, consts: Sequence[Symbol], rows: Rows, cts: Sequence[Cotangent], scan: Scan
) -> list[Cotangent]:
    """Return the cotangents of constants, carry and xs, given those of carry and ys, None for a zero."""
    groups, marked = way.groups, way.marked
    on_consts, on_carry, on_xs = groups.split(marked)
    ct_carry, ct_ys = cts[: groups.carry], cts[groups.carry :]
    used = groups.split([i in way.parts.inputs for i in range(len(body.inputs))])
    const_avals, carry_avals, x_avals = groups.split(body.in_avals)
    y_avals = body.out_avals[groups.carry :]
    has_ct = [ct is not None and is_inexact(a.dtype) for ct, a in zip(ct_ys, y_avals, strict=True)]

    def step(*args: Symbol) -> list[Symbol]:
        sizes = (
            *(sum(used[0]), sum(on_carry), sum(on_consts)),
            *(sum(used[2]), way.parts.kept, len(way.carried), sum(has_ct)),
        )
        c, ct_s, sums, x, kept, carried, ct_y = _pieces(args, sizes)
        outer = [*filled(ct_s, on_carry, carry_avals), *filled(ct_y, has_ct, y_avals)]
        inexact = [ct for ct, aval in zip(outer, body.out_avals, strict=True) if is_inexact(aval.dtype)]
        found = inline(way.parts.backward, [*c, *carried, *x, *kept, *inexact])
        to_consts, to_carry, to_xs = _pieces(found, (sum(on_consts), sum(on_carry), sum(on_xs)))
        return [*to_carry, *map(Sums().add, sums, to_consts), *to_xs]

    avals = [
        *compress(const_avals, used[0]),
        *compress(carry_avals, on_carry),
        *compress(const_avals, on_consts),
        *compress(x_avals, used[2]),
        *way.parts.backward.in_avals[len(way.parts.inputs) : len(way.parts.inputs) + way.parts.kept],
        *[carry_avals[j] for j in way.carried],
        *compress(y_avals, has_ct),
    ]
    back = simplify(trace(step, *avals, name=f"{body.name}_back"))
    of_carry = [
        zeros_like(a) if ct is None else ct for ct, a, m in zip(ct_carry, carry_avals, on_carry, strict=True) if m
    ]
    operands = [
        *compress(consts, used[0]),
        *of_carry,
        *[zeros_like(aval) for aval in compress(const_avals, on_consts)],
        *compress(rows.xs, used[2]),
        *rows.kept,
        *rows.carried,
        *[ct for ct, h in zip(ct_ys, has_ct, strict=True) if h and ct is not None],
    ]
    counts = Groups(sum(used[0]), sum(on_carry) + sum(on_consts), 0)
    results = scan(back, counts._replace(xs=len(operands) - counts.consts - counts.carry), operands)
    to_carry, to_consts, to_xs = _pieces(results, (sum(on_carry), sum(on_consts), sum(on_xs)))
    return [*spread(to_consts, on_consts), *spread(to_carry, on_carry), *spread(to_xs, on_xs)]


# ---- lists -----------------------------------------------------------------------------------------------------------


def _pieces(values: Sequence[T], sizes: Sequence[int]) -> list[Sequence[T]]:
    pieces: list[Sequence[T]] = []
    start = 0
    for size in sizes:
        pieces.append(values[start : start + size])
        start += size
    return pieces


def spread(values: Sequence[T], flags: Flags) -> list[T | None]:
    """Return the values at the places that are marked, None at the others."""
    rest = iter(values)
    return [next(rest) if flag else None for flag in flags]


def _real(values: object) -> list[Symbol]:
    return [value for value in values if value is not None]  # type: ignore[attr-defined]


def filled(values: Sequence[Symbol], flags: Flags, avals: Sequence[Aval]) -> list[Symbol]:
    """Return the values at the places that are marked, zeros at the others."""
    return [zeros_like(a) if v is None else v for v, a in zip(spread(values, flags), avals, strict=True)]


# ---- pruning ---------------------------------------------------------------------------------------------------------


def live_body(body: Program, groups: Groups, live: Flags, always: Flags = ()) -> tuple[Program, list[bool], list[bool]]:
    """Return the body without what only dead results need, and which inputs and outputs it still has.

    `live` marks results; carried values marked in `always` are needed in any case.
    """
    carry = [a or b for a, b in zip(live[: groups.carry], always or [False] * groups.carry, strict=True)]
    while True:
        outputs = [*carry, *live[groups.carry :]]
        kept = dce(Program(body.name, body.inputs, body.equations, tuple(compress(body.outputs, outputs))))
        used = use_counts(kept)
        grown = [c or u for c, u in zip(carry, groups.split([v in used for v in body.inputs])[1], strict=True)]
        if grown == carry:
            break
        carry = grown
    inputs = [v in used for v in body.inputs]
    inputs[groups.consts : groups.consts + groups.carry] = carry
    return Program(body.name, tuple(compress(body.inputs, inputs)), kept.equations, kept.outputs), inputs, outputs
