"""The methods `reduce`, `accumulate` and `reduceat` of ufuncs of two operands.

A ufunc that is associative is reduced and accumulated in pairs (see `fnad.ops.cumulative`), any other one element
after the other, as NumPy does it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from fnad.errors import OutOfRangeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Dtype, is_inexact
from fnad.numpy.elementwise import loop_dtypes
from fnad.numpy.joining import join, rows
from fnad.numpy.operands import (
    Ints,
    as_symbol,
    axes_of,
    axis_of,
    reduced_axes,
    reduced_shape,
    static_array,
    static_ints,
)
from fnad.numpy.reductions import Reduction, highest, is_given, lowest, several
from fnad.numpy.registry import RULES, implements
from fnad.numpy.statistics import root
from fnad.ops.arithmetic import div, mul
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import bitwise_and, ge, gt, isfinite, select
from fnad.ops.cumulative import scan_along
from fnad.ops.shape import (
    broadcast_in_dim,
    broadcast_to,
    constant,
    in_front,
    iota,
    ones_like,
    reduce_sum,
    reshape_to,
    slice_axis,
    zeros_like,
)

Combine = Callable[[Symbol, Symbol], Symbol]


def operand(ufunc: np.ufunc, array: Any, dtype: Any) -> Symbol:
    """The operand of a reduction in the dtype of its result."""
    x = as_symbol(array)
    return as_symbol(x, loop_dtypes(ufunc, (x, x), dtype)[-1])


# ---- reduce ----------------------------------------------------------------------------------------------------------


def in_pairs(combine: Combine, x: Symbol, *, axes: Ints) -> Symbol:
    """Combine the first half of the elements over these axes with the second, until one is left."""
    rows = in_front(x, axes)
    while (count := rows.shape[0]) > 1:
        half = count // 2
        paired = combine(slice_axis(rows, 0, 0, half), slice_axis(rows, 0, half, 2 * half))
        rows = join([paired, slice_axis(rows, 0, 2 * half, count)], 0) if count % 2 else paired
    return reshape_to(rows, rows.shape[1:])


def _lengths_in_pairs(combine: Combine, x: Symbol, *, axes: Ints) -> Symbol:
    return lengths(in_pairs(combine, x, axes=axes), x, axes)


def _nan_or(otherwise: Callable[[Dtype], Any]) -> Callable[[Dtype], Any]:
    return lambda dtype: np.nan if is_inexact(dtype) else otherwise(dtype)


NEUTRAL: dict[np.ufunc, Callable[[Dtype], Any]] = {
    np.fmax: _nan_or(lowest),
    np.fmin: _nan_or(highest),
    np.logaddexp: lowest,
    np.logaddexp2: lowest,
    np.hypot: lambda _: 0,
    np.logical_xor: lambda _: False,
    np.bitwise_and: lambda dtype: dtype.type(-1) if dtype.kind == "i" else ~dtype.type(0),
    np.bitwise_or: lambda _: 0,
    np.bitwise_xor: lambda _: 0,
    np.gcd: lambda _: 0,
}
"""Of associative ufuncs, the value that changes nothing."""


def _associative_reduce(ufunc: np.ufunc) -> Callable[..., Symbol]:
    has_identity = ufunc.identity is not None

    def rule(array: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any) -> Symbol:
        x, combine = operand(ufunc, array, dtype), RULES[ufunc]
        over = _lengths_in_pairs if ufunc is np.hypot else in_pairs
        kind = Reduction(ufunc.__name__, partial(over, combine), combine, NEUTRAL[ufunc], has_identity)
        if any(x.shape[i] == 0 for i in reduced_axes(axis, x.ndim)) and has_identity:
            shape = reduced_shape(x.shape, reduced_axes(axis, x.ndim), keepdims)
            return constant(NEUTRAL[ufunc](x.dtype), x.dtype, shape)
        return kind(x, axis, keepdims, initial, where)

    return rule


def _sequential_reduce(ufunc: np.ufunc) -> Callable[..., Symbol]:
    def rule(array: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any) -> Symbol:
        x = operand(ufunc, array, dtype)
        axes = reduced_axes(axis, x.ndim)
        if len(axes) > 1:
            raise ShapeError(
                f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
            )
        operands = rows(in_front(x, axes)) if axes else [x]
        if is_given(initial):
            operands = [broadcast_to(as_symbol(initial, x.dtype), reduced_shape(x.shape, axes, False)), *operands]
        if not operands:
            raise ShapeError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        return reshape_to(reduce(RULES[ufunc], operands), reduced_shape(x.shape, axes, keepdims))

    return rule


# ---- accumulate ------------------------------------------------------------------------------------------------------


def _accumulate(ufunc: np.ufunc, along: Callable[[Combine, Symbol, int], Symbol]) -> Callable[..., Symbol]:
    def rule(array: Any, axis: Any, dtype: Any) -> Symbol:
        x = operand(ufunc, several(array), dtype)
        axes = axes_of(axis, x.ndim)
        if len(axes) != 1:
            raise ShapeError("accumulate does not allow multiple axes")
        return along(RULES[ufunc], x, axes[0])

    return rule


def by_scan(combine: Combine, x: Symbol, axis: int) -> Symbol:
    """All prefixes, combined in pairs."""
    (result,) = scan_along(lambda a, b: [combine(a[0], b[0])], [x], axis)
    return result


def _lengths_by_scan(combine: Combine, x: Symbol, axis: int) -> Symbol:
    return lengths_of_prefixes(by_scan(combine, x, axis), x, axis)


def one_by_one(combine: Combine, x: Symbol, axis: int) -> Symbol:
    """All prefixes, each from the one before."""
    parts = [slice_axis(x, axis, i, i + 1) for i in range(x.shape[axis])]
    return join(list(accumulate(parts, combine)), axis) if parts else x


# ---- reduceat --------------------------------------------------------------------------------------------------------


def _reduceat(ufunc: np.ufunc) -> Callable[..., Symbol]:
    def rule(array: Any, indices: Any, axis: Any, dtype: Any) -> Symbol:
        x = as_symbol(array)
        at = axis_of(axis, x.ndim)
        n = x.shape[at]
        starts = static_ints(np.ravel(static_array(indices)), "a start")
        for start in starts:
            if not 0 <= start < n:
                raise OutOfRangeError(f"index {start} out-of-bounds in {ufunc.__name__}.reduceat [0, {n})")
        spans = [(i, j if j > i else i + 1) for i, j in pairwise((*starts, n))]
        return join([_segment(ufunc, slice_axis(x, at, i, j), at, dtype) for i, j in spans], at)

    return rule


def _segment(ufunc: np.ufunc, x: Symbol, axis: int, dtype: Any) -> Symbol:
    """Reduce along an axis that stays; a single hypotenuse keeps its sign, for the identity takes no part."""
    if ufunc is np.hypot and x.shape[axis] == 1:
        return operand(ufunc, x, dtype)
    return RULES[ufunc, "reduce"](x, axis, dtype, keepdims=True)


# ---- the lengths of vectors ------------------------------------------------------------------------------------------
# Hypotenuses of hypotenuses have the right value, but where one of them is 0 not the right derivatives: of |(0, 0, z)|
# in x the slope of the outer one is 0, that of the inner one undefined, and the curvature 1 / z of the whole lost. So
# the length is r |x / r|, with the hypotenuse as a constant r, which neither overflows nor underflows.


def lengths(value: Symbol, x: Symbol, axes: Ints) -> Symbol:
    """The roots of the sums of squares along `axes` of x, which are `value`, with their derivatives."""
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    known = stop_gradient(value)
    scale = select(bitwise_and(isfinite(known), gt(known, zeros_like(known))), known, ones_like(known))
    parts = div(x, broadcast_in_dim(scale, shape=x.shape, dims=kept))
    total = mul(scale, root(reduce_sum(mul(parts, parts), axes=axes)))
    return select(isfinite(known), total, value)


def lengths_of_prefixes(value: Symbol, x: Symbol, axis: int) -> Symbol:
    """The lengths of all prefixes: those of the rows of a matrix with 0 behind the diagonal.

    The first is the first element, with its sign, as of every ufunc.
    """
    if x.shape[axis] == 0:
        return x
    shape = (*x.shape[: axis + 1], *x.shape[axis:])
    repeated = broadcast_in_dim(x, shape=shape, dims=(*range(axis), *range(axis + 1, x.ndim + 1)))
    end, place = (iota(dtype=I64, shape=shape, axis=i) for i in (axis, axis + 1))
    found = lengths(value, select(ge(end, place), repeated, zeros_like(repeated)), (axis + 1,))
    return join([slice_axis(x, axis, 0, 1), slice_axis(found, axis, 1, x.shape[axis])], axis)


# ---- the table -------------------------------------------------------------------------------------------------------

SEQUENTIAL = (
    np.subtract,
    np.true_divide,
    np.floor_divide,
    np.remainder,
    np.fmod,
    np.power,
    np.float_power,
    np.arctan2,
    np.copysign,
    np.nextafter,
    np.lcm,
    np.heaviside,
    np.left_shift,
    np.right_shift,
)
"""Ufuncs whose result depends on the order."""

for _ufunc in NEUTRAL:
    implements((_ufunc, "reduce"))(_associative_reduce(_ufunc))
for _ufunc in (*NEUTRAL, np.maximum, np.minimum, np.logical_and, np.logical_or):
    implements((_ufunc, "accumulate"))(_accumulate(_ufunc, _lengths_by_scan if _ufunc is np.hypot else by_scan))
for _ufunc in SEQUENTIAL:
    implements((_ufunc, "reduce"))(_sequential_reduce(_ufunc))
    implements((_ufunc, "accumulate"))(_accumulate(_ufunc, one_by_one))
for _ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or, *NEUTRAL, *SEQUENTIAL):
    implements((_ufunc, "reduceat"))(_reduceat(_ufunc))
