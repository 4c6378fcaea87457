"""Arrays side by side, in parts, repeated, shifted; elements inserted and deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from fnad.errors import ArgumentTypeError, DtypeError, OutOfRangeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype, Shape, native_dtype
from fnad.numpy.manipulation import fresh
from fnad.numpy.operands import (
    as_array,
    as_symbol,
    axis_of,
    common_dtype,
    of_one_dtype,
    promotes_as,
    static_array,
    static_int,
    static_ints,
)
from fnad.numpy.registry import OF_AVALS, implements
from fnad.numpy.views import ArrayView, Box
from fnad.ops import shape as ops
from fnad.ops.indexing import gather
from fnad.ops.shape import broadcast_to, constant, reshape_to, slice_axis

# ---- side by side ----------------------------------------------------------------------------------------------------


def alike(arrays: Any, dtype: Any = None, casting: Any = "same_kind") -> list[Symbol]:
    """The operands in their common dtype, or the one given, if they can be cast to it."""
    values = rows(arrays) if isinstance(arrays, Symbol) else list(arrays)
    if not values:
        raise ShapeError("need at least one array to concatenate")
    wanted = common_dtype(*values) if dtype is None else native_dtype(dtype)
    for value in values:
        given = promotes_as(value)
        if isinstance(given, np.dtype) and not np.can_cast(given, wanted, casting):
            what = f"from {given!r} to {wanted!r} according to the rule {casting!r}"
            raise DtypeError(f"Cannot cast array data {what}", remedy="convert it with astype before")
    return [as_array(value, wanted) for value in values]


def rows(x: Symbol) -> list[Symbol]:
    """The elements of an array as a sequence."""
    if not x.shape:
        raise ArgumentTypeError("iteration over a 0-d array", remedy="give a list of arrays")
    return [reshape_to(slice_axis(x, 0, i, i + 1), x.shape[1:]) for i in range(x.shape[0])]


def join(symbols: Sequence[Symbol], axis: int) -> Symbol:
    """Arrays of one dtype side by side; raises `ShapeError` where they differ elsewhere than along the axis."""
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
def stack(arrays: Any, axis: Any, dtype: Any, casting: Any) -> Symbol:
    symbols = alike(arrays_of(arrays), dtype, casting)
    shape = symbols[0].shape
    if any(symbol.shape != shape for symbol in symbols):
        raise ShapeError("all input arrays must have the same shape")
    at = axis_of(axis, len(shape) + 1)
    return join([reshape_to(symbol, (*shape[:at], 1, *shape[at:])) for symbol in symbols], at)


def arrays_of(values: Any) -> list[Symbol]:
    """The operands as arrays: a Python number among them has its own dtype, as np.asarray gives it."""
    return [as_array(value) for value in (rows(values) if isinstance(values, Symbol) else values)]


@implements(np.vstack)
def vstack(tup: Any, dtype: Any, casting: Any) -> Symbol:
    return concatenate([with_dimensions(x, 2) for x in arrays_of(tup)], 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Any, dtype: Any, casting: Any) -> Symbol:
    symbols = [with_dimensions(x, 1) for x in arrays_of(tup)]
    return concatenate(symbols, int(bool(symbols) and symbols[0].ndim > 1), dtype=dtype, casting=casting)


@implements(np.column_stack)
def column_stack(tup: Any) -> Symbol:
    return concatenate([x if x.ndim > 1 else reshape_to(x, (x.aval.size, 1)) for x in arrays_of(tup)], 1)


@implements(np.dstack)
def dstack(tup: Any) -> Symbol:
    symbols = [with_dimensions(x, 2) for x in arrays_of(tup)]
    return concatenate([x if x.ndim > 2 else reshape_to(x, (*x.shape, 1)) for x in symbols], 2)


OF_AVALS.update((concatenate, stack, vstack, hstack, column_stack, dstack))


def with_dimensions(x: Symbol, count: int) -> Symbol:
    """An array with at least so many dimensions, by new ones in front."""
    return x if x.ndim >= count else reshape_to(x, (*(1,) * (count - x.ndim), *x.shape))


@implements(np.block)
def block(arrays: Any) -> ArrayView:
    depth, leaves = _depth(arrays), of_one_dtype(*_leaves(arrays))
    dtype = leaves[0].dtype
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
        leaf = as_array(arrays, dtype)
        return reshape_to(leaf, (1,) * (rank - leaf.ndim) + leaf.shape)
    return join([_block(a, dtype, depth - 1, rank) for a in arrays], -depth)


# ---- again and again -------------------------------------------------------------------------------------------------


@implements(np.tile)
def tile(A: Any, reps: Any) -> ArrayView:
    x, times = as_symbol(A), static_ints(reps, "a number of repetitions")
    rank = max(x.ndim, len(times))
    shape = (1,) * (rank - x.ndim) + x.shape
    times = (1,) * (rank - len(times)) + times
    apart = tuple(k for n in shape for k in (1, n))
    repeated = tuple(k for n, r in zip(shape, times, strict=True) for k in (r, n))
    result = tuple(n * r for n, r in zip(shape, times, strict=True))
    return fresh(reshape_to(broadcast_to(reshape_to(x, apart), repeated), result))


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any) -> Symbol:
    x = as_symbol(a)
    if axis is None or x.ndim == 0:
        x, axis = reshape_to(x, (x.aval.size,)), axis or 0
    at = axis_of(axis, x.ndim)
    times = np.asarray(static_array(repeats))
    if times.dtype.kind not in "biu" and isinstance(repeats, (np.ndarray, np.generic, Symbol)):
        raise DtypeError(f"Cannot cast array data from {times.dtype!r} to dtype('int64') according to the rule 'safe'")
    times = times.astype(int)
    if x.aval.size and times.min(initial=0) < 0:
        raise ShapeError("repeats may not contain negative values.")
    if times.size == 1:
        return _repeat_evenly(x, max(int(times.reshape(())), 0), at)
    if times.shape != (x.shape[at],):
        raise ShapeError(f"operands could not be broadcast together with shape ({x.shape[at]},) {times.shape}")
    return select_along(x, np.repeat(np.arange(x.shape[at]), times), at)


def _repeat_evenly(x: Symbol, times: int, axis: int) -> Symbol:
    before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    apart = reshape_to(x, (*before, n, 1, *after))
    return reshape_to(broadcast_to(apart, (*before, n, times, *after)), (*before, n * times, *after))


MOST_RUNS = 8
"""Runs of positions up to which elements are selected by slices: a gather checks and loads each position."""


def select_along(x: Symbol, indices: Any, axis: int) -> Symbol:
    """The elements at these positions of an axis."""
    runs = [*islice(runs_of(indices), MOST_RUNS + 1)]
    if 0 < len(runs) <= MOST_RUNS:
        return join([_of_run(x, axis, *run) for run in runs], axis)
    from_front = ops.transpose_to(x, (axis, *(i for i in range(x.ndim) if i != axis)))
    taken = gather(from_front, as_symbol(indices))
    return ops.transpose_to(taken, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def runs_of(positions: Any) -> Iterator[tuple[int, int, int]]:
    """The first position, the step, of 1, 0 or -1, and the length of each evenly spaced part of `positions`."""
    steps, start = np.diff(positions), 0
    while start < len(positions):
        step = steps[start] if start < len(steps) and abs(steps[start]) <= 1 else 1
        others = np.flatnonzero(steps[start:] != step)
        length = 1 + (others[0] if others.size else len(steps) - start)
        yield int(positions[start]), int(step), int(length)
        start += length


def _of_run(x: Symbol, axis: int, first: int, step: int, length: int) -> Symbol:
    if step == 0:
        shape = tuple(length if a == axis else n for a, n in enumerate(x.shape))
        return broadcast_to(slice_axis(x, axis, first, first + 1), shape)
    if step > 0:
        return slice_axis(x, axis, first, first + length)
    return ops.reverse(slice_axis(x, axis, first - length + 1, first + 1), axes=(axis,))


# ---- shifted --------------------------------------------------------------------------------------------------------


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any) -> ArrayView:
    x = as_symbol(a)
    if axis is None:
        flat = reshape_to(x, (x.aval.size,))
        total = sum(_shifts(shift).ravel().tolist())
        return fresh(reshape_to(_roll_along(flat, total, 0), x.shape))
    if x.ndim == 0:
        raise ShapeError("a roll along axes takes an array of at least one dimension")
    shifts, axes = np.broadcast_arrays(_shifts(shift), static_ints(axis, "an axis"))
    for places, at in zip(shifts.tolist(), axes.tolist(), strict=True):
        x = _roll_along(x, places, axis_of(at, x.ndim))
    return fresh(x)


def _shifts(shift: Any) -> Any:
    return np.asarray(static_array(shift)).astype(int)


def _roll_along(x: Symbol, places: int, axis: int) -> Symbol:
    n = x.shape[axis]
    at = -places % n if n else 0
    return x if at == 0 else join([slice_axis(x, axis, at, n), slice_axis(x, axis, 0, at)], axis)


# ---- parts -----------------------------------------------------------------------------------------------------------


def box_along(shape: Shape, axis: int, start: int, limit: int) -> Box:
    """The step to a part of one axis."""
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    limits = tuple(limit if i == axis else n for i, n in enumerate(shape))
    return Box(starts, limits, (1,) * len(shape))


# ---- elements inserted and deleted -----------------------------------------------------------------------------------
# The functions only move elements about by numbers that are known while tracing. NumPy itself is asked where they go:
# the function is called on the positions of the elements, 0, 1, 2, …, and what it returns says where each of the result
# comes from.


def moved(function: Callable[..., Any], *arrays: Symbol) -> Symbol:
    """The result of a function that moves the elements of arrays, on these, which are of one dtype."""
    positions, start = [], 0
    for array in arrays:
        positions.append(np.arange(start, start + array.aval.size).reshape(array.shape))
        start += array.aval.size
    try:
        origin = np.asarray(function(*positions))
    except IndexError as error:
        raise OutOfRangeError(str(error)) from None
    except ValueError as error:
        raise ShapeError(str(error)) from None
    flat = join([reshape_to(array, (array.aval.size,)) for array in arrays], 0)
    if origin.size == 0:
        return constant(0, flat.dtype, origin.shape)
    return reshape_to(select_along(flat, origin.ravel(), 0), origin.shape)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any) -> Symbol:
    x = as_symbol(arr)
    where = static_object(obj)
    at = None if axis is None else axis_of(axis, x.ndim)
    return moved(lambda a, v: np.insert(a, where, v, at), x, as_symbol(values, x.dtype))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any) -> Symbol:
    x, where = as_symbol(arr), static_object(obj)
    at = None if axis is None else axis_of(axis, x.ndim)
    return moved(lambda a: np.delete(a, where, at), x)


def static_object(obj: Any) -> Any:
    """Places that have to be known while tracing: an int, a slice, integers or a mask."""
    if isinstance(obj, slice):
        parts = (obj.start, obj.stop, obj.step)
        return slice(*[None if part is None else static_int(part, "a bound of a slice") for part in parts])
    return static_array(obj)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> ArrayView:
    x, shape = as_symbol(a), static_ints(new_shape, "a shape")
    if any(n < 0 for n in shape):
        raise ShapeError("all elements of `new_shape` must be non-negative")
    if x.aval.size == 0:
        return fresh(constant(0, x.dtype, shape), in_order=True)
    return fresh(moved(lambda p: np.resize(p, shape), x), in_order=True)
