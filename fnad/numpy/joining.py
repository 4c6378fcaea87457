"""Arrays side by side, repeated, padded, shifted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.errors import ArgumentTypeError, DtypeError, ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype, Shape, native_dtype
from fnad.numpy.axes import axis_of, static_ints
from fnad.numpy.operands import as_symbol, common_dtype, static_array
from fnad.numpy.rearranging import atleast_1d, atleast_2d, atleast_3d, fresh
from fnad.numpy.registry import implements
from fnad.numpy.views import View
from fnad.ops import shape as ops
from fnad.ops.indexing import gather
from fnad.ops.shape import broadcast_to, reshape_to, slice_axis

# ---- side by side ----------------------------------------------------------------------------------------------------


def alike(arrays: Any, dtype: Any = None, casting: Any = "same_kind") -> list[Symbol]:
    """Return the operands in their common dtype, or the one given, if they can be cast to it."""
    values = rows(arrays) if isinstance(arrays, Symbol) else list(arrays)
    if not values:
        raise ShapeError("need at least one array to concatenate")
    wanted = common_dtype(*values) if dtype is None else native_dtype(dtype)
    symbols = [as_symbol(value) for value in values]
    for symbol in symbols:
        if not np.can_cast(symbol.dtype, wanted, casting):
            what = f"from {symbol.dtype!r} to {wanted!r} according to the rule {casting!r}"
            raise DtypeError(f"Cannot cast array data {what}", remedy="convert it with astype before")
    return [as_symbol(value, wanted) for value in values]


def rows(x: Symbol) -> list[Symbol]:
    """Return what an array is a sequence of."""
    if not x.shape:
        raise ArgumentTypeError("iteration over a 0-d array", remedy="give a list of arrays")
    return [reshape_to(slice_axis(x, 0, i, i + 1), x.shape[1:]) for i in range(x.shape[0])]


def join(symbols: Sequence[Symbol], axis: int) -> Symbol:
    """Return arrays of one dtype side by side; raise `ShapeError` where they differ elsewhere than along the axis."""
    first = symbols[0]
    for i, symbol in enumerate(symbols):
        if symbol.ndim != first.ndim:
            raise ShapeError(
                "all the input array dimensions must match exactly, but along the concatenation axis: "
                f"the array at index 0 has {first.ndim} dimension(s) and the array at index {i} has {symbol.ndim}"
            )
    at = axis_of(axis, first.ndim)
    for i, symbol in enumerate(symbols):
        for d, (n, m) in enumerate(zip(first.shape, symbol.shape, strict=True)):
            if d != at and n != m:
                raise ShapeError(
                    "all the input array dimensions except for the concatenation axis must match exactly, but along "
                    f"dimension {d}, the array at index 0 has size {n} and the array at index {i} has size {m}"
                )
    return first if len(symbols) == 1 else ops.concatenate(*symbols, axis=at)


@implements(np.concatenate)
def concatenate(
    arrays: Any, axis: Any = 0, out: None = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Symbol:
    symbols = alike(arrays, dtype, casting)
    if axis is None:
        return join([reshape_to(symbol, (symbol.aval.size,)) for symbol in symbols], 0)
    if any(symbol.ndim == 0 for symbol in symbols):
        raise ShapeError("zero-dimensional arrays cannot be concatenated")
    return join(symbols, axis)


@implements(np.stack)
def stack(arrays: Any, axis: Any = 0, out: None = None, *, dtype: Any = None, casting: Any = "same_kind") -> Symbol:
    symbols = alike(arrays, dtype, casting)
    shape = symbols[0].shape
    if any(symbol.shape != shape for symbol in symbols):
        raise ShapeError("all input arrays must have the same shape")
    at = axis_of(axis, len(shape) + 1)
    return join([reshape_to(symbol, (*shape[:at], 1, *shape[at:])) for symbol in symbols], at)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Symbol:
    return join([atleast_2d(symbol).read() for symbol in alike(tup, dtype, casting)], 0)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Symbol:
    symbols = [atleast_1d(symbol).read() for symbol in alike(tup, dtype, casting)]
    return join(symbols, 0 if symbols[0].ndim == 1 else 1)


@implements(np.dstack)
def dstack(tup: Any) -> Symbol:
    return join([atleast_3d(symbol).read() for symbol in alike(tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Symbol:
    return join([_as_columns(symbol) for symbol in alike(tup)], 1)


def _as_columns(x: Symbol) -> Symbol:
    return reshape_to(x, (x.aval.size, 1)) if x.ndim < 2 else x


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Symbol:
    return concatenate([arr, values], axis)


@implements(np.block)
def block(arrays: Any) -> View:
    dtype = common_dtype(*_leaves(arrays))
    depth = _depth(arrays)
    leaves = [as_symbol(leaf, dtype) for leaf in _leaves(arrays)]
    rank = max(depth, *[leaf.ndim for leaf in leaves])
    return fresh(_block(arrays, dtype, depth, rank))


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for a in arrays for leaf in _leaves(a)] if isinstance(arrays, list) else [arrays]


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ShapeError("List at arrays cannot be empty")
    depths = {_depth(a) for a in arrays}
    if len(depths) > 1:
        raise ShapeError("List depths are mismatched in np.block")
    return 1 + depths.pop()


def _block(arrays: Any, dtype: Dtype, depth: int, rank: int) -> Symbol:
    if not isinstance(arrays, list):
        leaf = as_symbol(arrays, dtype)
        return reshape_to(leaf, (1,) * (rank - leaf.ndim) + leaf.shape)
    return join([_block(a, dtype, depth - 1, rank) for a in arrays], -depth)


# ---- again and again -------------------------------------------------------------------------------------------------


@implements(np.tile)
def tile(A: Any, reps: Any) -> View:  # noqa: N803
    x, times = as_symbol(A), static_ints(reps, "a number of repetitions")
    rank = max(x.ndim, len(times))
    shape = (1,) * (rank - x.ndim) + x.shape
    times = (1,) * (rank - len(times)) + times
    apart = tuple(k for n in shape for k in (1, n))
    repeated = tuple(k for n, r in zip(shape, times, strict=True) for k in (r, n))
    result = tuple(n * r for n, r in zip(shape, times, strict=True))
    return fresh(reshape_to(broadcast_to(reshape_to(x, apart), repeated), result))


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Symbol:
    x = as_symbol(a)
    if axis is None:
        x, axis = reshape_to(x, (x.aval.size,)), 0
    at = axis_of(axis, x.ndim)
    times = np.asarray(static_array(repeats))
    if times.size == 1:
        return _repeat_evenly(x, int(times.reshape(())), at)
    if times.shape != (x.shape[at],):
        raise ShapeError(f"operands could not be broadcast together with shape ({x.shape[at]},) {times.shape}")
    return select_along(x, np.repeat(np.arange(x.shape[at]), times), at)


def _repeat_evenly(x: Symbol, times: int, axis: int) -> Symbol:
    before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    apart = reshape_to(x, (*before, n, 1, *after))
    return reshape_to(broadcast_to(apart, (*before, n, times, *after)), (*before, n * times, *after))


def select_along(x: Symbol, indices: Any, axis: int) -> Symbol:
    """Return the elements at these positions of an axis."""
    from_front = ops.transpose_to(x, (axis, *(i for i in range(x.ndim) if i != axis)))
    taken = gather(from_front, as_symbol(indices))
    return ops.transpose_to(taken, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


# ---- around ----------------------------------------------------------------------------------------------------------


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0) -> View:
    x = as_symbol(array)
    widths = _widths(pad_width, x.ndim)
    if mode == "constant":
        return fresh(_pad_constant(x, widths, constant_values))
    if mode not in ("edge", "wrap", "reflect", "symmetric"):
        raise UnsupportedFunctionError(
            f"numpy.pad has no rule for mode={mode!r}", remedy="use constant, edge, wrap, reflect or symmetric"
        )
    for axis, width in enumerate(widths):
        if width != (0, 0):
            x = select_along(x, np.pad(np.arange(x.shape[axis]), width, mode=mode), axis)
    return fresh(x)


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """Return the width before and after each axis: given for each, for all, by axis in a dict, or as one number."""
    if isinstance(pad_width, dict):
        by_axis = {axis_of(axis, ndim): width for axis, width in pad_width.items()}
        pad_width = [by_axis.get(axis, (0, 0)) for axis in range(ndim)]
        pad_width = [(w, w) if np.ndim(w) == 0 else w for w in pad_width]
    pairs = np.broadcast_to(np.asarray(static_array(pad_width)), (ndim, 2))
    if pairs.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if pairs.size and pairs.min() < 0:
        raise ShapeError("index can't contain negative values")
    return [(int(before), int(after)) for before, after in pairs]


def _pad_constant(x: Symbol, widths: Sequence[tuple[int, int]], values: Any) -> Symbol:
    if isinstance(values, (int, float)) and values == 0:
        low, high = (tuple(width[side] for width in widths) for side in (0, 1))
        return ops.pad(x, low=low, high=high, interior=(0,) * x.ndim)
    pairs = broadcast_to(as_symbol(values, x.dtype), (x.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        parts = [_filled(pairs, axis, 0, x.shape, before), x, _filled(pairs, axis, 1, x.shape, after)]
        x = join(parts, axis)
    return x


def _filled(pairs: Symbol, axis: int, side: int, shape: Shape, width: int) -> Symbol:
    value = reshape_to(slice_axis(slice_axis(pairs, 0, axis, axis + 1), 1, side, side + 1), ())
    return broadcast_to(value, (*shape[:axis], width, *shape[axis + 1 :]))


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> View:
    x = as_symbol(a)
    if axis is None:
        flat = reshape_to(x, (x.aval.size,))
        total = sum(static_ints(shift, "a shift"))
        return fresh(reshape_to(_roll_along(flat, total, 0), x.shape))
    shifts, axes = np.broadcast_arrays(static_ints(shift, "a shift"), static_ints(axis, "an axis"))
    for places, at in zip(shifts.tolist(), axes.tolist(), strict=True):
        x = _roll_along(x, places, axis_of(at, x.ndim))
    return fresh(x)


def _roll_along(x: Symbol, places: int, axis: int) -> Symbol:
    n = x.shape[axis]
    at = -places % n if n else 0
    return x if at == 0 else join([slice_axis(x, axis, at, n), slice_axis(x, axis, 0, at)], axis)
