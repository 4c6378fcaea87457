"""Differences, integrals by trapezoids, phases without jumps, interpolation and convolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ArgumentTypeError, DtypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, DTYPES, F64, I64
from fnad.numpy.bodies import XP, Body
from fnad.numpy.joining import join
from fnad.numpy.operands import (
    as_array,
    as_symbol,
    as_vector,
    axes_of,
    axis_of,
    common_dtype,
    of_one_dtype,
    static_array,
    static_int,
    to_dtype,
)
from fnad.numpy.registry import RULES, UNSET, implements
from fnad.numpy.ufuncs import conjugate, subtract
from fnad.numpy.views import ArrayView
from fnad.ops import arithmetic, convolution
from fnad.ops.arithmetic import div, mul, sub
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_xor, eq, gt, isfinite, isnan, lt, ne, select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.indexing import gather
from fnad.ops.piecewise import maximum, minimum
from fnad.ops.shape import broadcast_to, constant, full_like, pad, reshape_to, reverse, slice_axis, zeros_like
from fnad.ops.sorting import searchsorted

# ---- differences -----------------------------------------------------------------------------------------------------


@implements(np.diff)
def diff(a: Any, n: Any, axis: Any, prepend: Any, append: Any) -> ArrayView | Symbol:
    x, times = as_symbol(a), static_int(n, "a number of differences")
    if times == 0:
        return ArrayView(x)
    if times < 0:
        raise ShapeError(f"order must be non-negative but got {times}")
    if x.ndim == 0:
        raise ShapeError("diff requires input that is at least one dimensional")
    at = axis_of(axis, x.ndim)
    prepend, append = (end if end is UNSET else as_array(end) for end in (prepend, append))
    dtype = common_dtype(x, *[end for end in (prepend, append) if end is not UNSET])
    row = tuple(1 if i == at else size for i, size in enumerate(x.shape))
    parts = [as_symbol(part, dtype) for part in (prepend, x, append) if part is not UNSET]
    x = join([broadcast_to(part, row) if part.ndim == 0 else part for part in parts], at)
    for _ in range(times):
        x = difference(x, at)
    return x


def difference(x: Symbol, axis: int) -> Symbol:
    """Each element less the one before along an axis; of bools, whether they differ."""
    size = x.shape[axis]
    later, earlier = slice_axis(x, axis, min(1, size), size), slice_axis(x, axis, 0, max(size - 1, 0))
    return bitwise_xor(later, earlier) if x.dtype == BOOL else sub(later, earlier)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any, to_begin: Any) -> Symbol:
    x = as_symbol(ary)
    for name, end in (("to_begin", to_begin), ("to_end", to_end)):
        if end is not None and not np.can_cast(as_array(end).dtype, x.dtype, "same_kind"):
            raise DtypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
    x, n = reshape_to(x, (x.aval.size,)), x.aval.size
    parts = [to_begin, subtract(slice_axis(x, 0, min(1, n), n), slice_axis(x, 0, 0, max(n - 1, 0))), to_end]
    symbols = [as_symbol(part, x.dtype) for part in parts if part is not None]
    return join([reshape_to(symbol, (symbol.aval.size,)) for symbol in symbols], 0)


# ---- gradient --------------------------------------------------------------------------------------------------------


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Second order inside, first or second order at the edges; NumPy's body compares distances that may be traced."""
    x = XP.asarray(f)
    x = x.astype(F64) if x.dtype.kind in "iu" else x
    axes = axes_of(axis, x.ndim)
    if edge_order > 2:
        raise ShapeError("'edge_order' greater than 2 not supported")
    results = [_along(x, a, h, edge_order) for a, h in zip(axes, _spacings(x, axes, varargs), strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


RULES[np.gradient] = Body(gradient)


def _spacings(x: Any, axes: tuple[int, ...], given: tuple[Any, ...]) -> list[Any]:
    """The distance of neighbours along each axis: one number, or a vector of them."""
    if len(given) < 2 and all(np.ndim(h) == 0 for h in given):
        return [*(given or (1.0,))] * len(axes)
    if len(given) != len(axes):
        raise ArgumentTypeError("invalid number of arguments")
    return [_spacing(h, x.shape[a]) for h, a in zip(given, axes, strict=True)]


def _spacing(given: Any, n: int) -> Any:
    places = XP.asarray(given)
    if places.ndim == 0:
        return given
    if places.ndim != 1:
        raise ShapeError("distances must be either scalars or 1d")
    if places.shape[0] != n:
        raise ShapeError("when 1d, distances must match the length of the corresponding dimension")
    steps = XP.diff(places.astype(F64) if places.dtype.kind in "biu" else places)
    is_known = isinstance(given, np.ndarray) and type(steps) is np.ndarray
    return steps[0] if is_known and (steps == steps[0]).all() else steps


def _along(f: Any, axis: int, h: Any, edge_order: int) -> Any:
    """The gradient along one axis."""
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ShapeError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )

    def part(begin: int, end: int) -> Any:
        return f[(slice(None),) * axis + (slice(begin, end),)]

    def weighted(weights: Any, begin: int, end: int) -> Any:
        a, b, c = weights
        return a * part(begin, end) + b * part(begin + 1, end + 1) + c * part(begin + 2, end + 2)

    if np.ndim(h) == 0:
        inside, steps = (part(2, n) - part(0, n - 2)) / (2.0 * h), [h] * (n - 1)
        edges = [[w / h for w in weights] for weights in ((-1.5, 2.0, -0.5), (0.5, -2.0, 1.5))]
    else:
        steps = XP.reshape(h, (n - 1, *[1] * (f.ndim - axis - 1)))
        inside = weighted(_inside(steps[:-1], steps[1:]), 0, n - 2)
        edges = [_first(steps[0], steps[1]), _first(-steps[-1], -steps[-2])[::-1]] if edge_order == 2 else []
    if edge_order == 2:
        first, last = weighted(edges[0], 0, 1), weighted(edges[1], n - 3, n - 2)
    else:
        first, last = (part(1, 2) - part(0, 1)) / steps[0], (part(n - 1, n) - part(n - 2, n - 1)) / steps[-1]
    return XP.concatenate([first, inside, last], axis).astype(f.dtype)


def _inside(h1: Any, h2: Any) -> Any:
    """The weights of the derivative of a parabola at the second of three points."""
    return -h2 / (h1 * (h1 + h2)), (h2 - h1) / (h1 * h2), h1 / (h2 * (h1 + h2))


def _first(h1: Any, h2: Any) -> Any:
    """The weights at the first of three points."""
    return -(2.0 * h1 + h2) / (h1 * (h1 + h2)), (h1 + h2) / (h1 * h2), -h1 / (h2 * (h1 + h2))


# ---- interpolation ---------------------------------------------------------------------------------------------------
# Through the points (xp, fp) by straight lines, constant outside: on xp[j] <= x < xp[j+1] the result is
# fp[j] + s[j] (x - xp[j]) with the slope s[j] of the interval. At a point of xp, where the slopes on both sides meet,
# the derivative in x is their mean; outside they are 0.


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Symbol:
    values = as_array(fp)
    for given in (x, xp):
        if (dtype := as_symbol(given).dtype).kind == "c" and period is None:
            raise DtypeError(f"Cannot cast array data from {dtype!r} to dtype('float64') according to the rule 'safe'")
    at, points = as_array(x, F64), as_array(xp, F64)
    values = to_dtype(values, DTYPES["c128"] if values.dtype.kind == "c" else F64)
    _check(points, values)
    if period is not None:
        at, points, values = _periodic(at, points, values, abs(static_array(period)))
        left = right = None
    if values.dtype.kind == "c":
        parts = [_interpolate(at, points, part(values), *_parts(part, left, right)) for part in (real, imag)]
        return complex_(*parts)
    return _interpolate(at, points, values, left, right)


def _check(points: Symbol, values: Symbol) -> None:
    if points.ndim != 1 or values.ndim != 1:
        raise ShapeError("Data points must be 1-D sequences")
    if points.shape[0] == 0:
        raise ShapeError("array of sample points is empty")
    if points.shape != values.shape:
        raise ShapeError("fp and xp are not of the same length.")


def _parts(part: Any, *ends: Any) -> list[Any]:
    return [None if end is None else part(as_array(end, DTYPES["c128"])) for end in ends]


def _periodic(x: Symbol, xp: Symbol, fp: Symbol, period: Any) -> tuple[Symbol, Symbol, Symbol]:
    """X and the points brought into one period, the points in order and continued by one on each side."""
    if period == 0:
        raise ShapeError("period must be a non-zero value")
    x, xp = RULES[np.remainder](x, period), RULES[np.remainder](xp, period)
    order = RULES[np.argsort](xp)
    xp, fp = gather(xp, order), gather(fp, order)
    first, last = slice_axis(xp, 0, 0, 1), slice_axis(xp, 0, xp.shape[0] - 1, xp.shape[0])
    width = full_like(first, period)
    before, after = slice_axis(fp, 0, fp.shape[0] - 1, fp.shape[0]), slice_axis(fp, 0, 0, 1)
    return x, join([sub(last, width), xp, arithmetic.add(first, width)], 0), join([before, fp, after], 0)


def _interpolate(x: Symbol, xp: Symbol, fp: Symbol, left: Any, right: Any) -> Symbol:
    n = xp.shape[0]
    found = sub(searchsorted(xp, x, side="right"), full_like(x.aval.with_dtype(I64), 1))
    j = maximum(found, zeros_like(found))
    inside = _on_line(x, xp, fp, j) if n > 1 else gather(fp, j)
    first, last = _element(xp, 0), _element(xp, n - 1)
    below = _element(fp, 0) if left is None else as_symbol(left, F64)
    above = _element(fp, n - 1) if right is None else as_symbol(right, F64)
    below, above, first, last = (broadcast_to(end, x.shape) for end in (below, above, first, last))
    return select(isnan(x), x, select(lt(x, first), below, select(gt(x, last), above, inside)))


def _element(v: Symbol, i: int) -> Symbol:
    return gather(v, constant(i, I64))


def _on_line(x: Symbol, xp: Symbol, fp: Symbol, j: Symbol) -> Symbol:
    """The value on the line that begins at point j, or ends at the last point."""
    n = xp.shape[0]
    run = sub(slice_axis(xp, 0, 1, n), slice_axis(xp, 0, 0, n - 1))
    rise = sub(slice_axis(fp, 0, 1, n), slice_axis(fp, 0, 0, n - 1))
    slopes = pad(div(rise, run), low=(1,), high=(1,), interior=(0,))
    after = minimum(arithmetic.add(j, full_like(j, 1)), full_like(j, n - 1))
    x0, x1, y0, y1 = gather(xp, j), gather(xp, after), gather(fp, j), gather(fp, after)
    is_point = eq(x, x0)
    slope = _slope_at(is_point, slopes, j)
    from_first = arithmetic.add(mul(slope, sub(x, x0)), y0)
    from_second = arithmetic.add(mul(slope, sub(x, x1)), y1)
    is_first = select(is_point, is_point, bitwise_and(isnan(from_second), eq(y0, y1)))
    return select(isnan(from_first), select(is_first, y0, from_second), from_first)


def _slope_at(is_point: Symbol, slopes: Symbol, j: Symbol) -> Symbol:
    """The slope after point j; at the point the mean with the one before, 0 where that is not finite."""
    here = gather(slopes, arithmetic.add(j, full_like(j, 1)))
    mean = mul(arithmetic.add(gather(slopes, j), here), full_like(here, 0.5))
    at_point = select(bitwise_not(isfinite(mean)), zeros_like(mean), mean)
    return select(is_point, at_point, here)


# ---- convolution -----------------------------------------------------------------------------------------------------

MODES = ("valid", "same", "full")


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any) -> Symbol:
    x, y = map(as_vector, of_one_dtype(a, v))
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    _check_vectors(x, y)
    return _slide(x, y, mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any) -> Symbol:
    x, y = map(as_vector, of_one_dtype(a, v))
    y = conjugate(y)
    _check_vectors(x, y)
    if y.shape[0] <= x.shape[0]:
        return _slide(x, reverse(y, axes=(0,)), mode)
    return reverse(_slide(y, reverse(x, axes=(0,)), mode), axes=(0,))


def _check_vectors(x: Symbol, y: Symbol) -> None:
    for name, vector in (("a", x), ("v", y)):
        if vector.ndim != 1:
            raise ShapeError("object too deep for desired array")
        if vector.shape[0] == 0:
            raise ShapeError(f"{name} cannot be empty")


def _slide(x: Symbol, y: Symbol, mode: Any) -> Symbol:
    """The convolution of x with y, which is not longer: all of it, or the part in the middle."""
    if x.dtype == BOOL:
        count = _slide(to_dtype(x, I64), to_dtype(y, I64), mode)
        return ne(count, zeros_like(count))
    name, m = mode_name(mode), y.shape[0]
    if name == "valid":
        return convolution.convolve(x, y, mode="valid")
    whole = convolution.convolve(x, y, mode="full")
    start = m - 1 - m // 2
    return whole if name == "full" else slice_axis(whole, 0, start, start + x.shape[0])


def mode_name(mode: Any) -> str:
    """The name of a mode, given by name, by its first letter or by number."""
    if isinstance(mode, int) and 0 <= mode < len(MODES):
        return MODES[mode]
    for name in MODES:
        if isinstance(mode, str) and mode and mode.lower()[0] == name[0]:
            return name
    raise ShapeError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
