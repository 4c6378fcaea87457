"""Going back over a loop with few snapshots: the schedule that recomputes least.

Griewank and Walther, "Algorithm 799: Revolve", ACM TOMS 26 (2000). With s snapshots, the start among them, a loop of at
most C(s + r, s) steps can be gone back over with no step taken forward more than r times. From the last snapshot, some
of the steps to the point reached so far are taken forward and a snapshot is made there, and so on; a step that ends at
that point is pulled back; a snapshot from which nothing is left to do is given free.

All of it is a program of nested loops over a stack of snapshots. So memory is as many copies of the carry as there are
snapshots, however many steps there are, and how many there are need not be known before the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from fnad.control.while_loop import repeat_while
from fnad.ir.builder import current_builder
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval
from fnad.ops.comparison import eq, gt, lt, select
from fnad.ops.conversion import convert_to
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice
from fnad.ops.piecewise import maximum, minimum
from fnad.ops.shape import broadcast_in_dim, reshape_to, zeros_like

Symbols: TypeAlias = Sequence[Symbol]
Step: TypeAlias = Callable[[Symbol, Symbols, Symbols], Symbols]
"""From the number of a step, the constants and the carry before it to the carry after it."""

Back: TypeAlias = Callable[[Symbol, Symbols, Symbols, Symbols], Symbols]
"""From the same and what came from the steps behind it to that with this step pulled back."""


def revolve(
    steps: Symbol, snapshots: int, consts: Symbols, carry: Symbols, cts: Symbols, step: Step, back: Back
) -> Symbols:
    """Return `cts` pulled back through `steps` steps, from the last to the first, over at most so many snapshots.

    There is one row more, which takes what finds no room.
    """
    rows = snapshots + 1
    stacks = [put_row(zeros_like(Aval(c.dtype, (rows, *c.shape))), c, _number(0)) for c in carry]
    places = zeros_like(Aval(I64, (rows,)))

    def turn(consts: Symbols, state: Symbols) -> Symbols:
        end, top, places, *rest = state
        stacks, cts = rest[: len(carry)], rest[len(carry) :]
        at = row(places, top)
        now = [row(stack, top) for stack in stacks]
        _, at, top, places, *moved = repeat_while(
            lambda s: gt(s[0] - s[1], _number(1)),
            lambda consts, s: _forward(consts, s, snapshots, len(carry), step),
            consts,
            [end, at, top, places, *stacks, *now],
        )
        stacks, now = moved[: len(carry)], moved[len(carry) :]
        cts = back(at, consts, now, cts)
        top = select(eq(row(places, top), at), top - 1, top)
        return [at, top, places, *stacks, *cts]

    found = repeat_while(lambda s: gt(s[0], _number(0)), turn, consts, [steps, _number(0), places, *stacks, *cts])
    return found[len(found) - len(cts) :]


def _forward(consts: Symbols, state: Symbols, snapshots: int, size: int, step: Step) -> Symbols:
    """Go forward from the last snapshot, to where the next one belongs or, without room, before the end."""
    end, at, top, places, *rest = state
    stacks, now = rest[:size], rest[size:]
    free = snapshots - 1 - top
    has_room = gt(free, _number(0))
    stride = select(has_room, _stride(end - at, free), end - at - 1)
    at, now = _advance(consts, at, now, stride, step)
    top = select(has_room, top + 1, top)
    place = select(has_room, top, _number(snapshots))
    return [
        end,
        at,
        top,
        put_row(places, at, place),
        *[put_row(s, n, place) for s, n in zip(stacks, now, strict=True)],
        *now,
    ]


def _advance(consts: Symbols, at: Symbol, now: Symbols, stride: Symbol, step: Step) -> tuple[Symbol, Symbols]:
    goal = at + stride
    _, at, *now = repeat_while(
        lambda s: lt(s[1], s[0]), lambda c, s: [s[0], s[1] + 1, *step(s[1], c, s[2:])], consts, [goal, at, *now]
    )
    return at, now


def _stride(steps: Symbol, free: Symbol) -> Symbol:
    """Return how far the next snapshot is, so that the steps are taken forward as few times as can be.

    With s snapshots, this one and the free ones, β(s, r) = C(s + r, s) steps need r turns at most. The longest of the
    best strides leaves β(s, r - 1) steps before the next snapshot at most, and behind it β(s - 1, r - 1) at least.
    """
    s, whole = convert_to(maximum(free, _number(1)) + 1, F64), convert_to(steps, F64)
    one = current_builder().literal(np.float64(1.0))
    _, _, r, most = repeat_while(
        lambda v: lt(v[3], v[1]),
        lambda _, v: [v[0], v[1], v[2] + 1.0, v[3] * (v[0] + v[2] + 1.0) / (v[2] + 1.0)],
        [],
        [s, whole, one, s + 1.0],
    )
    before = most * r / (s + r)
    behind = before * s / (s + r - 1.0)
    stride = convert_to(minimum(before, whole - behind), I64)
    return minimum(maximum(stride, _number(1)), steps - 1)


def _number(value: int) -> Symbol:
    return current_builder().literal(np.int64(value))


# ---- rows ------------------------------------------------------------------------------------------------------------


def row(x: Symbol, index: Symbol) -> Symbol:
    """Return x[index]."""
    starts = [index, *[_number(0)] * (x.ndim - 1)]
    return reshape_to(dynamic_slice(x, *starts, sizes=(1, *x.shape[1:])), x.shape[1:])


def put_row(x: Symbol, value: Symbol, index: Symbol) -> Symbol:
    """Return x with x[index] = value."""
    starts = [index, *[_number(0)] * (x.ndim - 1)]
    raised = broadcast_in_dim(value, shape=(1, *value.shape), dims=tuple(range(1, x.ndim)))
    return dynamic_update_slice(x, raised, *starts)
