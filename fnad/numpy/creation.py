"""New arrays: from values and shapes, in the likeness of others, from diagonals, over grids, along lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DomainError, ShapeError
from fnad.ir.primitive import Primitive
from fnad.ir.size import is_size
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval, Dtype, native_dtype
from fnad.numpy.joining import join
from fnad.numpy.manipulation import diagonal, expand_dims, fresh, moveaxis
from fnad.numpy.operands import (
    WeakSymbol,
    as_array,
    as_symbol,
    axis_of,
    broadcast_all,
    common_dtype,
    static_int,
    static_ints,
    static_number,
    to_dtype,
)
from fnad.numpy.reductions import sum_
from fnad.numpy.registry import RULES, implements
from fnad.numpy.ufuncs import divide, multiply
from fnad.numpy.views import ArrayView, Reshape, fitted
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.comparison import eq, ge
from fnad.ops.piecewise import floor
from fnad.ops.shape import (
    broadcast_to,
    concatenate,
    constant,
    full_like,
    iota,
    pad,
    reshape_to,
    slice_axis,
    transpose_to,
)

COUNTED = (
    "the number of elements is fixed in a trace: scale and shift a fixed range, start + step * np.arange(n), or write "
    "np.linspace(start, stop, n)"
)
"""The way out of a range that is traced."""


def _filled(a: Any, value: Any, dtype: Any, shape: Any) -> ArrayView:
    x = as_symbol(a)
    wanted = x.dtype if dtype is None else native_dtype(dtype)
    new_shape = x.shape if shape is None else static_ints(shape, "a shape")
    return fresh(fitted(_filling(value, wanted), Aval(wanted, new_shape)))


def _filling(value: Any, dtype: Any) -> Symbol:
    """A fill value for an array of a dtype: a Python integer has to fit, any other value is cast."""
    is_int = isinstance(value, int) or (isinstance(value, WeakSymbol) and value.python_type is int)
    return (as_symbol if is_int else as_array)(value, dtype)


# ---- from values and shapes ------------------------------------------------------------------------------------------


@implements(np.array)
def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False, ndmin: int = 0
) -> ArrayView:
    x = as_symbol(object, None if dtype is None else native_dtype(dtype))
    if copy is False and (not isinstance(object, (Symbol, np.ndarray)) or object.dtype != x.dtype):
        raise DomainError("Unable to avoid copy while creating an array as requested.", remedy="leave out copy=False")
    shape = (1,) * (ndmin - x.ndim) + x.shape
    if copy is None or copy is False:
        return ArrayView(x, (Reshape(shape),)) if shape != x.shape else ArrayView(x, is_array=True, is_same=True)
    return fresh(reshape_to(x, shape), in_order=order == "C" or (order == "K" and isinstance(object, (list, tuple))))


@implements(np.asarray, np.asanyarray)
def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: None = None, copy: Any = None) -> ArrayView:
    return array(a, dtype, copy=copy)


@implements(np.full)
def full(shape: Any, fill_value: Any, dtype: Any, order: str) -> ArrayView:
    value = _filling(fill_value, None if dtype is None else native_dtype(dtype))
    return fresh(fitted(value, Aval(value.dtype, static_ints(shape, "a shape"))), in_order=order == "C")


@implements(np.zeros, np.empty)
def zeros(shape: Any, dtype: Any = float, order: str = "C", *, device: None = None) -> ArrayView:
    return full(shape, 0, float if dtype is None else dtype, order)


@implements(np.ones)
def ones(shape: Any, dtype: Any, order: str) -> ArrayView:
    return full(shape, 1, float if dtype is None else dtype, order)


@implements(np.eye)
def eye(N: Any, M: Any, k: Any, dtype: Any, order: str) -> ArrayView:
    return fresh(_of_places(eq, np.eye, _corner(N, k, M), native_dtype(dtype)), in_order=order == "C")


@implements(np.identity)
def identity(n: Any, dtype: Any) -> ArrayView:
    return eye(n, dtype=float if dtype is None else dtype)


@implements(np.tri)
def tri(N: Any, M: Any, k: Any, dtype: Any) -> ArrayView:
    return fresh(_of_places(ge, np.tri, _corner(N, k, M), native_dtype(dtype)), in_order=True)


def _of_places(relation: Primitive, function: Any, corner: tuple[int, int, int], dtype: Dtype) -> Symbol:
    """`np.eye` or `np.tri`, which are 1 where row + k has a relation to column; computed where a size is a symbol."""
    rows, k, columns = corner
    if not is_size(rows) and not is_size(columns):
        return as_symbol(function(rows, columns, k, dtype))
    row, column = (iota(dtype=I64, shape=(rows, columns), axis=axis) for axis in (0, 1))
    return to_dtype(relation(add(row, broadcast_to(as_symbol(k, I64), row.shape)), column), dtype)


@implements(np.tril_indices)
def tril_indices(n: Any, k: Any, m: Any) -> Any:
    return np.tril_indices(*_corner(n, k, m))


@implements(np.triu_indices)
def triu_indices(n: Any, k: Any, m: Any) -> Any:
    return np.triu_indices(*_corner(n, k, m))


def _corner(n: Any, k: Any, m: Any) -> tuple[int, int, int]:
    rows = static_int(n, "a number of rows")
    columns = rows if m is None else static_int(m, "a number of columns")
    return rows, static_int(k, "a diagonal"), columns


@implements(np.indices)
def indices(dimensions: Any, dtype: Any, sparse: bool) -> Any:
    made = np.indices(static_ints(dimensions, "a shape"), native_dtype(dtype), sparse)
    if isinstance(made, tuple):
        return tuple(fresh(as_symbol(array), in_order=True) for array in made)
    return fresh(as_symbol(made), in_order=True)


@implements(np.arange)
def arange(start_or_stop: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: None = None) -> ArrayView:
    first, last = [static_number(end, "a bound of arange", COUNTED) for end in (start_or_stop, stop)]
    stride = static_number(step, "the step of arange", COUNTED)
    if is_size(first) or is_size(last):
        return fresh(_counted(first, last, stride, I64 if dtype is None else native_dtype(dtype)), in_order=True)
    made = np.arange(first, last, stride, dtype=None if dtype is None else native_dtype(dtype))
    return fresh(as_symbol(made), in_order=True)


def _counted(first: Any, last: Any, step: Any, dtype: Dtype) -> Symbol:
    """`np.arange` where a bound is a size that is a symbol."""
    start, stop = (0, first) if last is None else (first, last)
    start, stop, step = (static_int(x, "a bound of arange") for x in (start, stop, step))
    if step == 0:
        raise ZeroDivisionError("division by zero")
    distance, stride = (stop - start, step) if step > 0 else (start - stop, -step)
    shape = (max(0, (distance + stride - 1) // stride),)
    scaled = mul(iota(dtype=I64, shape=shape, axis=0), constant(step, I64, shape))
    return to_dtype(add(scaled, broadcast_to(as_symbol(start, I64), shape)), dtype)


# ---- in the likeness of others ---------------------------------------------------------------------------------------


@implements(np.empty_like)
def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: None = None
) -> ArrayView:
    return _filled(prototype, 0, dtype, shape)


@implements(np.zeros_like)
def zeros_like(a: Any, dtype: Any, shape: Any) -> ArrayView:
    return _filled(a, 0, dtype, shape)


@implements(np.ones_like)
def ones_like(a: Any, dtype: Any, shape: Any) -> ArrayView:
    return _filled(a, 1, dtype, shape)


@implements(np.full_like)
def full_like_(a: Any, fill_value: Any, dtype: Any, shape: Any) -> ArrayView:
    return _filled(a, fill_value, dtype, shape)


# ---- diagonals and lines ---------------------------------------------------------------------------------------------


@implements(np.diag)
def diag(v: Any, k: Any) -> ArrayView:
    x, k = as_symbol(v), static_int(k, "a diagonal")
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError("Input must be 1- or 2-d.")
    n = x.shape[0] + abs(k)
    start = k if k >= 0 else -k * n
    used = start + (x.shape[0] - 1) * (n + 1) + 1 if x.shape[0] else start
    flat = pad(x, low=(start,), high=(n * n - used,), interior=(n,))
    return fresh(reshape_to(flat, (n, n)))


@implements(np.diagflat)
def diagflat(v: Any, k: Any) -> ArrayView:
    x = as_symbol(v)
    return diag(reshape_to(x, (x.aval.size,)), k)


@implements(np.trace)
def trace(a: Any, offset: Any, axis1: Any, axis2: Any, dtype: Any) -> Symbol:
    return sum_(diagonal(a, offset, axis1, axis2).read(), -1, dtype)


@implements(np.linspace)
def linspace(start: Any, stop: Any, num: Any, endpoint: bool, retstep: bool, dtype: Any, axis: Any) -> Any:
    count = static_int(num, "a number of samples")
    if count < 0:
        raise ShapeError(f"Number of samples, {count}, must be non-negative.")
    kind = common_dtype(start, stop)
    first, last = broadcast_all([as_symbol(end, kind if kind.kind in "fc" else F64) for end in (start, stop)])
    intervals = count - 1 if endpoint else count
    delta = sub(last, first)
    step = div(delta, full_like(delta, intervals)) if intervals > 0 else delta
    samples = _samples(first, last, step, count, endpoint)
    wanted = samples.dtype if dtype is None else native_dtype(dtype)
    samples = to_dtype(floor(samples) if wanted.kind in "iu" else samples, wanted)
    at = axis_of(axis, samples.ndim)
    result = transpose_to(samples, (*range(1, at + 1), 0, *range(at + 1, samples.ndim)))
    return (result, step if intervals > 0 else np.nan) if retstep else result


def _samples(first: Symbol, last: Symbol, step: Symbol, count: int, endpoint: bool) -> Symbol:
    """First + i * step along a new axis in front; the end is hit exactly."""
    shape = (count, *first.shape)
    index = to_dtype(iota(dtype=I64, shape=shape, axis=0), first.dtype)
    samples = add(mul(index, broadcast_to(step, shape)), broadcast_to(first, shape))
    if not endpoint or count < 2:
        return samples
    return concatenate(slice_axis(samples, 0, 0, count - 1), reshape_to(last, (1, *last.shape)), axis=0)


# ---- along a line ----------------------------------------------------------------------------------------------------
# The ends may be traced.


@implements(np.logspace)
def logspace(start: Any, stop: Any, num: Any, endpoint: bool, base: Any, dtype: Any, axis: Any) -> Symbol:
    bases = as_array(base)
    if bases.ndim:
        start, stop, bases = _of_one_rank([start, stop, bases])
        bases = expand_dims(bases, axis).read()
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    result = RULES[np.power](bases if bases.ndim else base, exponents)
    return result if dtype is None else to_dtype(result, native_dtype(dtype))


def _of_one_rank(values: list[Any]) -> list[Symbol]:
    arrays = [as_array(value) for value in values]
    ndim = max(x.ndim for x in arrays)
    return [reshape_to(x, (1,) * (ndim - x.ndim) + x.shape) for x in arrays]


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any, endpoint: bool, dtype: Any, axis: Any) -> Symbol:
    wanted = np.dtype(float if dtype is None else dtype)
    kind = np.result_type(common_dtype(as_array(start), as_array(stop)), float(0), np.zeros((), wanted))
    first, last = as_array(start, kind), as_array(stop, kind)
    sign = RULES[np.sign](first)
    first, last = divide(first, sign), divide(last, sign)
    logs = RULES[np.log10](first), RULES[np.log10](last)
    inner = to_dtype(logspace(*logs, num, endpoint), kind)
    result = multiply(_with_ends(inner, first, last, endpoint), sign)
    return to_dtype(moveaxis(result, 0, axis).read(), kind if dtype is None else native_dtype(dtype))


def _with_ends(samples: Symbol, first: Symbol, last: Symbol, endpoint: bool) -> Symbol:
    """Samples along axis 0 that hit the ends exactly."""
    n = samples.shape[0]
    row = (1, *samples.shape[1:])
    parts = [broadcast_to(first, row)] if n else []
    hits_last = endpoint and n > 1
    parts.append(slice_axis(samples, 0, len(parts), n - hits_last))
    return join([*parts, *([broadcast_to(last, row)] if hits_last else [])], 0)
