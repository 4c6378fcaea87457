"""Iterations to a fixed point, to a root and to a minimum, on one vector of unknowns.

Each ends once a full step would move x by at most tol (1 + |x|) in the largest element, and takes that step. A nan, a
line search without success or too many steps end it as well, with a `ConvergenceError` when the program runs.

Line searches halve the step until what is to become small has become smaller, by a part of what the slope promises
(Armijo; Nocedal & Wright, "Numerical Optimization", 2006, eq. 3.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fnad.control.closures import demand, repeat
from fnad.control.vector import dot, norm, scaled
from fnad.errors import Failure
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Dtype
from fnad.ops.arithmetic import add, mul, neg, sub
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_or, ge, gt, isfinite, le, lt, select
from fnad.ops.elementary import sqrt
from fnad.ops.piecewise import abs_, minimum
from fnad.ops.reduction import reduce_max
from fnad.ops.shape import constant, full_like, ones_like, zeros_like

SMALLEST = 2.0**-40
"""The part of a step below which a line search gives up."""

ARMIJO = 1e-4


class Limits(NamedTuple):
    """When to stop, and how a run ends where that is too early."""

    tol: float
    max_steps: int
    failure: Failure


def fixed_point_iteration(function: Callable[[Symbol], Symbol], start: Symbol, limits: Limits) -> Symbol:
    """The solution of x = function(x), by x ← function(x)."""

    def step(x: Symbol) -> tuple[Symbol, Symbol]:
        new = function(x)
        return new, _movement(sub(new, x), new)

    return _until_settled(step, start, limits)[0]


def newton(
    residual: Callable[[Symbol], Symbol],
    direction: Callable[[Symbol], tuple[Symbol, Symbol]],
    start: Symbol,
    limits: Limits,
) -> Symbol:
    """A root of the residual; `direction(x)` is the residual there with Newton's step."""

    def step(x: Symbol) -> tuple[Symbol, Symbol]:
        value, full = direction(x)
        size = norm(value)
        moved = _movement(full, x)

        def falls(part: Symbol) -> Symbol:
            return le(norm(residual(add(x, scaled(part, full)))), size * (1 - ARMIJO * part))

        part = _line_search(falls, start.dtype, settled=le(moved, full_like(moved, limits.tol)))
        return add(x, scaled(part, full)), _unless_failed(moved, part, size)

    return _until_settled(step, start, limits)[0]


def newton_cg(
    value_and_gradient: Callable[[Symbol], tuple[Symbol, Symbol]],
    curvature: Callable[[Symbol], Callable[[Symbol], Symbol]],
    start: Symbol,
    limits: Limits,
) -> tuple[Symbol, Symbol]:
    """The point where the gradient is zero, the lowered value, and the number of steps.

    Steps are those of a truncated Newton method (Nocedal & Wright, algorithm 7.1); `curvature(x)` is the map
    d -> H(x) d. The line search takes for equal what differs by rounding.
    """
    rounding = 10 * float(np.finfo(start.dtype).eps)

    def step(x: Symbol) -> tuple[Symbol, Symbol]:
        value, gradient = value_and_gradient(x)
        full = _truncated_step(curvature(x), gradient)
        slope, allowed = dot(gradient, full), abs_(value) * rounding
        moved = _movement(full, x)

        def falls(part: Symbol) -> Symbol:
            new, _ = value_and_gradient(add(x, scaled(part, full)))
            return le(new, value + ARMIJO * part * slope + allowed)

        part = _line_search(falls, start.dtype, settled=le(moved, full_like(moved, limits.tol)))
        return add(x, scaled(part, full)), _unless_failed(moved, part, norm(gradient))

    return _until_settled(step, start, limits)


def _truncated_step(curvature: Callable[[Symbol], Symbol], gradient: Symbol) -> Symbol:
    """-H⁻¹ g by conjugate gradients, as far as is worth while, or until the curvature is negative."""
    size = norm(gradient)
    target = mul(minimum(full_like(size, 0.5), sqrt(size)), size)
    bent = constant(False, BOOL)
    count = constant(0, I64)

    def goes_on(step: Symbol, residual: Symbol, direction: Symbol, bent: Symbol, count: Symbol) -> Symbol:
        is_large = bitwise_and(gt(norm(residual), target), lt(count, full_like(count, 2 * gradient.shape[0])))
        return bitwise_and(is_large, bitwise_not(bent))

    def iterate(step: Symbol, residual: Symbol, direction: Symbol, bent: Symbol, count: Symbol) -> list[Symbol]:
        image = curvature(direction)
        bend, square = dot(direction, image), dot(residual, residual)
        bent = le(bend, zeros_like(bend))
        part = select(bent, _first(count), square / bend)
        new = add(residual, scaled(part, image))
        onward = sub(scaled(dot(new, new) / square, direction), new)
        return [add(step, scaled(part, direction)), new, onward, bent, count + 1]

    def _first(count: Symbol) -> Symbol:
        """1 at the first direction, which is that of steepest descent, else 0."""
        return select(le(count, zeros_like(count)), ones_like(size), zeros_like(size))

    none = zeros_like(gradient)
    return repeat(goes_on, iterate, [none, gradient, neg(gradient), bent, count])[0]


# ---- what they share -------------------------------------------------------------------------------------------------


def _until_settled(
    step: Callable[[Symbol], tuple[Symbol, Symbol]], start: Symbol, limits: Limits
) -> tuple[Symbol, Symbol]:
    """The unknowns after as many steps as settle it, and their number; `step` returns x and how far a full step is."""
    moved = constant(np.inf, start.dtype)

    def goes_on(x: Symbol, moved: Symbol, count: Symbol) -> Symbol:
        return bitwise_and(gt(moved, full_like(moved, limits.tol)), lt(count, full_like(count, limits.max_steps)))

    x, moved, count = repeat(goes_on, lambda x, moved, count: [*step(x), count + 1], [start, moved, constant(0, I64)])
    settled = le(moved, full_like(moved, limits.tol))
    return demand(x, settled, limits.failure), count


def _movement(step: Symbol, x: Symbol) -> Symbol:
    return _largest(step) / (1 + _largest(x))


def _line_search(falls: Callable[[Symbol], Symbol], dtype: Dtype, *, settled: Symbol) -> Symbol:
    """The largest part of a step, of 1, 1/2, 1/4, …, that falls; 1 if it is settled already."""

    def goes_on(part: Symbol) -> Symbol:
        is_done = bitwise_or(bitwise_or(settled, falls(part)), lt(part, full_like(part, SMALLEST)))
        return bitwise_not(is_done)

    return repeat(goes_on, lambda part: [part * 0.5], [constant(1, dtype)])[0]


def _unless_failed(moved: Symbol, part: Symbol, size: Symbol) -> Symbol:
    """A nan where the line search found nothing, or what is to vanish has grown beyond all numbers."""
    succeeded = bitwise_and(ge(part, full_like(part, SMALLEST)), isfinite(size))
    return select(succeeded, moved, full_like(moved, np.nan))


def _largest(x: Symbol) -> Symbol:
    return reduce_max(abs_(x), axes=(0,))
