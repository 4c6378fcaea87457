"""np.interp: through the points (xp, fp) by straight lines, constant outside.

On xp[j] <= x < xp[j+1] the result is fp[j] + s[j] (x - xp[j]) with the slope s[j] of the interval. At a point of xp,
where the slopes on both sides meet, the derivative in x is their mean; outside they are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F64, I64
from fnad.numpy.joining import join
from fnad.numpy.operands import as_array, as_symbol, static_array, to_dtype
from fnad.numpy.registry import RULES, implements
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.comparison import bitwise_and, bitwise_not, eq, gt, isfinite, isnan, lt, select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.indexing import gather
from fnad.ops.order import searchsorted
from fnad.ops.piecewise import maximum, minimum
from fnad.ops.shape import broadcast_to, constant, full_like, pad, slice_axis, zeros_like


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Symbol:
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
    """Return x and the points brought into one period, the points in order and continued by one on each side."""
    if period == 0:
        raise ShapeError("period must be a non-zero value")
    x, xp = RULES[np.remainder](x, period), RULES[np.remainder](xp, period)
    order = RULES[np.argsort](xp)
    xp, fp = gather(xp, order), gather(fp, order)
    first, last = slice_axis(xp, 0, 0, 1), slice_axis(xp, 0, xp.shape[0] - 1, xp.shape[0])
    width = full_like(first, period)
    before, after = slice_axis(fp, 0, fp.shape[0] - 1, fp.shape[0]), slice_axis(fp, 0, 0, 1)
    return x, join([sub(last, width), xp, add(first, width)], 0), join([before, fp, after], 0)


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
    """Return the value on the line that begins at point j, or ends at the last point."""
    n = xp.shape[0]
    run = sub(slice_axis(xp, 0, 1, n), slice_axis(xp, 0, 0, n - 1))
    rise = sub(slice_axis(fp, 0, 1, n), slice_axis(fp, 0, 0, n - 1))
    slopes = pad(div(rise, run), low=(1,), high=(1,), interior=(0,))
    after = minimum(add(j, full_like(j, 1)), full_like(j, n - 1))
    x0, x1, y0, y1 = gather(xp, j), gather(xp, after), gather(fp, j), gather(fp, after)
    slope = _slope_at(eq(x, x0), slopes, j)
    from_first = add(mul(slope, sub(x, x0)), y0)
    from_second = add(mul(slope, sub(x, x1)), y1)
    is_flat = bitwise_and(isnan(from_second), eq(y0, y1))
    return select(isnan(from_first), select(is_flat, y0, from_second), from_first)


def _slope_at(is_point: Symbol, slopes: Symbol, j: Symbol) -> Symbol:
    """Return the slope after point j; at the point the mean with the one before, 0 where that is not finite."""
    here = gather(slopes, add(j, full_like(j, 1)))
    mean = mul(add(gather(slopes, j), here), full_like(here, 0.5))
    at_point = select(bitwise_not(isfinite(mean)), zeros_like(mean), mean)
    return select(is_point, at_point, here)
