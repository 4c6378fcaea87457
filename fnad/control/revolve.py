"""Going back over a loop with few snapshots: the schedule that recomputes least.

Griewank and Walther, "Algorithm 799: Revolve", ACM TOMS 26 (2000). With s snapshots, the start among them, a loop of at
most C(s + r, s) steps can be gone back over with no step taken forward more than r times. From the last snapshot, some
of the steps to the point reached so far are taken forward and a snapshot is made there, and so on; a step that ends at
that point is pulled back; a snapshot from which nothing is left to do is given free.

All of it is a program of nested loops over a stack of snapshots. So memory is as many copies of the carry as there are
snapshots, however many steps there are, and how many there are need not be known before the program runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fnad.control.closures import repeat
from fnad.control.region_rules import pieces
from fnad.control.rows import put_row, row
from fnad.control.signatures import Symbols
from fnad.ir.builder import current_builder
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval
from fnad.ops.comparison import eq, gt, lt, select
from fnad.ops.conversion import convert_to
from fnad.ops.piecewise import maximum, minimum
from fnad.ops.shape import constant, zeros_like

Step: TypeAlias = Callable[[Symbol, Symbols], Symbols]
"""From the number of a step and the carry before it to the carry after it."""

Back: TypeAlias = Callable[[Symbol, Symbols, Symbols], Symbols]
"""From the same and what came from the steps behind it to that with this step pulled back."""


def revolve(steps: Symbol, snapshots: int, carry: Symbols, cts: Symbols, step: Step, back: Back) -> Symbols:
    """`cts` pulled back through `steps` steps, from the last to the first, over at most so many snapshots.

    There is one row more, which takes what finds no room: so a snapshot is written without a branch.
    """
    rows, size = snapshots + 1, len(carry)
    stacks = [put_row(zeros_like(Aval(c.dtype, (rows, *c.shape))), c, _number(0)) for c in carry]
    places = zeros_like(Aval(I64, (rows,)))

    def iterate(end: Symbol, top: Symbol, places: Symbol, *rest: Symbol) -> Symbols:
        stacks, cts = rest[:size], rest[size:]
        now = [row(stack, top) for stack in stacks]
        _, at, top, places, *moved = repeat(
            lambda end, at, *_: gt(end - at, _number(1)),
            lambda *state: _forward(state, snapshots, size, step),
            [end, row(places, top), top, places, *stacks, *now],
        )
        stacks, now = moved[:size], moved[size:]
        cts = back(at, now, cts)
        top = select(eq(row(places, top), at), top - 1, top)
        return [at, top, places, *stacks, *cts]

    found = repeat(lambda end, *_: gt(end, _number(0)), iterate, [steps, _number(0), places, *stacks, *cts])
    return found[len(found) - len(cts) :]


def _forward(state: Symbols, snapshots: int, size: int, step: Step) -> Symbols:
    """Go forward from the last snapshot, to where the next one belongs or, without room, before the end."""
    (end, at, top, places), stacks, now = pieces(state, (4, size, size))
    free = snapshots - 1 - top
    has_room = gt(free, _number(0))
    stride = select(has_room, _stride(end - at, free), end - at - 1)
    _, at, *now = repeat(
        lambda goal, at, *_: lt(at, goal),
        lambda goal, at, *now: [goal, at + 1, *step(at, now)],
        [at + stride, at, *now],
    )
    top = select(has_room, top + 1, top)
    place = select(has_room, top, _number(snapshots))
    stacks = [put_row(s, n, place) for s, n in zip(stacks, now, strict=True)]
    return [end, at, top, put_row(places, at, place), *stacks, *now]


def _stride(steps: Symbol, free: Symbol) -> Symbol:
    """The distance to the next snapshot that makes the fewest forward steps.

    With s snapshots, this one and the free ones, β(s, r) = C(s + r, s) steps are taken r times at most. The longest of
    the best strides leaves β(s, r - 1) steps before the next snapshot at most, and behind it β(s - 1, r - 1) at least.
    """
    s, whole = convert_to(maximum(free, _number(1)) + 1, F64), convert_to(steps, F64)
    one = current_builder().literal(np.float64(1.0))
    _, _, r, most = repeat(
        lambda s, whole, r, most: lt(most, whole),
        lambda s, whole, r, most: [s, whole, r + 1.0, most * (s + r + 1.0) / (r + 1.0)],
        [s, whole, one, s + 1.0],
    )
    before = most * r / (s + r)
    behind = before * s / (s + r - 1.0)
    stride = convert_to(minimum(before, whole - behind), I64)
    return minimum(maximum(stride, _number(1)), steps - 1)


def _number(value: int) -> Symbol:
    return constant(value, I64)
