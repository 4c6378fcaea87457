"""`np.hypot.reduce` and `accumulate`: the lengths of vectors.

Hypotenuses of hypotenuses have the right value, but where one of them is 0 not the right derivatives: of |(0, 0, z)| in
x the slope of the outer one is 0, that of the inner one undefined, and the curvature 1 / z of the whole lost. So the
length is r |x / r|, with the hypotenuse as a constant r, which neither overflows nor underflows.
"""

from __future__ import annotations

from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.numpy.joining import join
from fnad.numpy.operands import Ints
from fnad.numpy.statistics import root
from fnad.ops.arithmetic import div, mul
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import bitwise_and, ge, gt, isfinite, select
from fnad.ops.shape import broadcast_in_dim, iota, ones_like, reduce_sum, slice_axis, zeros_like


def lengths(value: Symbol, x: Symbol, axes: Ints) -> Symbol:
    """Return the roots of the sums of squares along `axes` of x, which are `value`, with their derivatives."""
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    known = stop_gradient(value)
    scale = select(bitwise_and(isfinite(known), gt(known, zeros_like(known))), known, ones_like(known))
    parts = div(x, broadcast_in_dim(scale, shape=x.shape, dims=kept))
    total = mul(scale, root(reduce_sum(mul(parts, parts), axes=axes)))
    return select(isfinite(known), total, value)


def lengths_of_prefixes(value: Symbol, x: Symbol, axis: int) -> Symbol:
    """Return the lengths of all prefixes: those of the rows of a matrix with 0 behind the diagonal.

    The first is the first element, with its sign, as of every ufunc.
    """
    if x.shape[axis] == 0:
        return x
    shape = (*x.shape[: axis + 1], *x.shape[axis:])
    repeated = broadcast_in_dim(x, shape=shape, dims=(*range(axis), *range(axis + 1, x.ndim + 1)))
    end, place = (iota(dtype=I64, shape=shape, axis=i) for i in (axis, axis + 1))
    found = lengths(value, select(ge(end, place), repeated, zeros_like(repeated)), (axis + 1,))
    return join([slice_axis(x, axis, 0, 1), slice_axis(found, axis, 1, x.shape[axis])], axis)
