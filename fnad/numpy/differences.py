"""Differences and sums over a grid: gradients, integrals by trapezoids, phases without jumps."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ArgumentTypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.elements import difference
from fnad.numpy.joining import join
from fnad.numpy.operands import as_array, as_symbol, axes_of, axis_of, broadcast_all, common_dtype, to_dtype
from fnad.numpy.reductions import cumsum, sum_
from fnad.numpy.registry import implements
from fnad.numpy.ufuncs import (
    absolute,
    add,
    divide,
    equal,
    greater,
    less,
    logical_and,
    multiply,
    negative,
    remainder,
    subtract,
)
from fnad.ops.comparison import select
from fnad.ops.shape import broadcast_to, reshape_to, slice_axis, zeros_like

# ---- gradient --------------------------------------------------------------------------------------------------------


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    x = as_array(f)
    x = to_dtype(x, F64) if x.dtype.kind in "iu" else x
    axes = axes_of(axis, x.ndim)
    if edge_order > 2:
        raise ShapeError("'edge_order' greater than 2 not supported")
    results = [_along(x, a, h, edge_order) for a, h in zip(axes, _spacings(x, axes, varargs), strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


def _spacings(x: Symbol, axes: tuple[int, ...], given: tuple[Any, ...]) -> list[Any]:
    """Return the distance of neighbours along each axis: one number, or a vector of them."""
    if not given:
        return [1.0] * len(axes)
    if len(given) == 1 and as_symbol(given[0]).ndim == 0:
        return [given[0]] * len(axes)
    if len(given) != len(axes):
        raise ArgumentTypeError("invalid number of arguments")
    return [_spacing(h, x.shape[a]) for h, a in zip(given, axes, strict=True)]


def _spacing(given: Any, n: int) -> Any:
    places = as_symbol(given)
    if places.ndim == 0:
        return given
    if places.ndim != 1:
        raise ShapeError("distances must be either scalars or 1d")
    if places.shape[0] != n:
        raise ShapeError("when 1d, distances must match the length of the corresponding dimension")
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuf":
        steps = np.diff(given.astype(float) if given.dtype.kind in "biu" else given)
        if (steps == steps[0]).all():
            return steps[0]
    return difference(to_dtype(places, F64) if places.dtype.kind in "biu" else places, 0)


def _along(f: Symbol, axis: int, h: Any, edge_order: int) -> Symbol:
    """Return the gradient along one axis: second order inside, first or second order at the edges."""
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ShapeError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    is_uniform = as_symbol(h).ndim == 0
    inside = (_inside if is_uniform else _inside_unevenly)(f, axis, h)
    edges = [_edge(f, axis, h, first=side, order=edge_order, uniform=is_uniform) for side in (True, False)]
    parts = [edges[0], inside, edges[1]]
    return join([to_dtype(part, f.dtype) for part in parts], axis)


def _inside(f: Symbol, axis: int, h: Any) -> Symbol:
    n = f.shape[axis]
    later, earlier = slice_axis(f, axis, min(2, n), n), slice_axis(f, axis, 0, max(n - 2, 0))
    return divide(subtract(later, earlier), multiply(2.0, h))


def _inside_unevenly(f: Symbol, axis: int, h: Symbol) -> Symbol:
    n = f.shape[axis]
    h1, h2 = (_laid_along(slice_axis(h, 0, i, n - 2 + i), f, axis) for i in (0, 1))
    both = add(h1, h2)
    a = divide(negative(h2), multiply(h1, both))
    b = divide(subtract(h2, h1), multiply(h1, h2))
    c = divide(h1, multiply(h2, both))
    return _weighted((a, b, c), [slice_axis(f, axis, i, n - 2 + i) for i in range(3)])


def _laid_along(v: Symbol, f: Symbol, axis: int) -> Symbol:
    return reshape_to(v, tuple(v.shape[0] if i == axis else 1 for i in range(f.ndim)))


def _weighted(weights: tuple[Any, ...], values: list[Symbol]) -> Symbol:
    """Return a f0 + b f1 + c f2."""
    terms = [multiply(w, f) for w, f in zip(weights, values, strict=True)]
    return add(add(terms[0], terms[1]), terms[2])


def _edge(f: Symbol, axis: int, h: Any, *, first: bool, order: int, uniform: bool) -> Symbol:
    n = f.shape[axis]
    if order == 1:
        at = 0 if first else n - 2
        step = h if uniform else _step(h, at)
        later, earlier = slice_axis(f, axis, at + 1, at + 2), slice_axis(f, axis, at, at + 1)
        return divide(subtract(later, earlier), step)
    at = 0 if first else n - 3
    weights = _even_weights(h, first) if uniform else _uneven_weights(_step(h, at), _step(h, at + 1), first)
    return _weighted(weights, [slice_axis(f, axis, at + i, at + i + 1) for i in range(3)])


def _step(h: Symbol, i: int) -> Symbol:
    return reshape_to(slice_axis(h, 0, i, i + 1), ())


def _even_weights(h: Any, first: bool) -> tuple[Any, ...]:
    return tuple(divide(w, h) for w in ((-1.5, 2.0, -0.5) if first else (0.5, -2.0, 1.5)))


def _uneven_weights(h1: Symbol, h2: Symbol, first: bool) -> tuple[Any, ...]:
    """Return the weights of the parabola's derivative at the first, or the last, of three points."""
    both = add(h1, h2)
    if first:
        near = divide(negative(add(multiply(2.0, h1), h2)), multiply(h1, both))
        return near, divide(both, multiply(h1, h2)), divide(negative(h1), multiply(h2, both))
    far = divide(h2, multiply(h1, both))
    return far, divide(negative(both), multiply(h1, h2)), divide(add(multiply(2.0, h2), h1), multiply(h2, both))


# ---- integrals -------------------------------------------------------------------------------------------------------


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Symbol:
    f = as_array(y)
    at = axis_of(axis, f.ndim)
    n = f.shape[at]
    sums = add(slice_axis(f, at, min(1, n), n), slice_axis(f, at, 0, max(n - 1, 0)))
    return sum_(divide(multiply(dx if x is None else _widths(as_array(x), f, at, axis), sums), 2.0), axis)


def _widths(x: Symbol, f: Symbol, axis: int, given: Any) -> Symbol:
    return _laid_along(difference(x, 0), f, axis) if x.ndim == 1 else difference(x, axis_of(given, x.ndim))


# ---- phases ----------------------------------------------------------------------------------------------------------


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * np.pi) -> Symbol:
    x = as_array(p)
    at = axis_of(axis, x.ndim)
    steps = difference(x, at)
    dtype = common_dtype(steps, period)
    high, is_ambiguous = (period // 2, period % 2 == 0) if dtype.kind in "iu" else (divide(period, 2), True)
    low = -high if isinstance(high, int) else negative(high)
    wrapped = add(remainder(subtract(steps, low), period), low)
    if is_ambiguous:
        at_low = logical_and(equal(wrapped, low), greater(steps, 0))
        wrapped = _put(at_low, high, wrapped)
    small = less(absolute(steps), divide(period, 2) if discont is None else discont)
    correction = _put(small, 0, subtract(wrapped, steps))
    n = x.shape[at]
    first, rest = slice_axis(x, at, 0, min(1, n)), slice_axis(x, at, min(1, n), n)
    return join([to_dtype(first, dtype), to_dtype(add(rest, cumsum(correction, at)), dtype)], at)


def _put(where: Symbol, value: Any, x: Symbol) -> Symbol:
    """Return x with a value where the condition holds."""
    where, x = broadcast_all([where, x])
    new = zeros_like(x) if isinstance(value, int) and value == 0 else broadcast_to(as_symbol(value, x.dtype), x.shape)
    return select(where, new, x)
