"""Sorting, partitioning, places in sorted arrays, membership.

The order is an array of integers, without derivative; values are read through it. Equal elements keep their order, so
that the derivative goes to each by NumPy's stable permutation. How many elements differ depends on their values: which
of those in order are new is decided while tracing, as a mask is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ArgumentTypeError, DomainError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64
from fnad.numpy.indexing_routines import integers, take, take_along_axis
from fnad.numpy.joining import rows
from fnad.numpy.manipulation import fresh, moveaxis
from fnad.numpy.operands import (
    Ints,
    as_symbol,
    axis_of,
    of_one_dtype,
    reduced_axes,
    static_array,
    static_int,
    static_ints,
)
from fnad.numpy.registry import implements
from fnad.numpy.views import ArrayView
from fnad.ops import sorting as ops
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_or, eq, isnan
from fnad.ops.indexing import gather
from fnad.ops.piecewise import minimum
from fnad.ops.shape import concatenate, constant, iota, reshape_to, slice_axis, transpose_to

KINDS = {None: False, "quicksort": False, "heapsort": False, "mergesort": True, "stable": True}
"""True if equal elements keep their order."""


def one_axis(a: Any, axis: Any) -> tuple[Symbol, int]:
    """An array and one of its axes; for None the elements along one axis."""
    x = as_symbol(a)
    if axis is None:
        return reshape_to(x, (x.aval.size,)), 0
    return x, axis_of(axis, x.ndim)


def flat_or_one_axis(a: Any, axis: Any) -> tuple[Symbol, int]:
    """The function `one_axis`, extended to arrays without dimensions, whose element is along one axis."""
    x = as_symbol(a)
    is_flat = axis is None or not reduced_axes(axis, x.ndim)
    return one_axis(x, None if is_flat else axis)


def is_stable(kind: Any, order: Any, stable: Any) -> bool:
    """Read the options of a sort; raise as NumPy for those there are not."""
    if order is not None:
        raise DomainError("Cannot specify order when the array has no fields.")
    if kind not in KINDS:
        raise DomainError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    if kind is not None and stable is not None:
        raise DomainError("`kind` and `stable` parameters can't be provided at the same time.")
    return bool(stable) or KINDS[kind]


# ---- sorting ---------------------------------------------------------------------------------------------------------


def sorted_along(x: Symbol, axis: int) -> Symbol:
    """The elements in ascending order along an axis."""
    return take_along_axis(x, ops.argsort(x, axis=axis, stable=True), axis)


@implements(np.sort)
def sort(a: Any, axis: Any, kind: Any, order: Any, stable: Any) -> Symbol:
    is_stable(kind, order, stable)
    return sorted_along(*one_axis(a, axis))


@implements(np.argsort)
def argsort(a: Any, axis: Any, kind: Any, order: Any, stable: Any) -> Symbol:
    keeps_order = is_stable(kind, order, stable)
    x, at = flat_or_one_axis(a, axis)
    return ops.argsort(x, axis=at, stable=keeps_order)


@implements(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> Symbol:
    keys = [as_symbol(key) for key in keys] if isinstance(keys, (list, tuple)) else rows(as_symbol(keys))
    if not keys:
        raise ArgumentTypeError("need sequence of keys with len > 0 in lexsort")
    if any(row.shape != keys[0].shape for row in keys):
        raise ShapeError("all keys need to be the same shape")
    along = static_int(axis, "an axis")
    if not reduced_axes(along, keys[0].ndim):
        return constant(0, I64)
    at = axis_of(along, keys[0].ndim)
    result = ops.argsort(keys[0], axis=at, stable=True)
    for row in keys[1:]:
        again = ops.argsort(take_along_axis(row, result, at), axis=at, stable=True)
        result = take_along_axis(result, again, at)
    return result


# ---- partitioning ----------------------------------------------------------------------------------------------------


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any, kind: str, order: Any) -> Symbol:
    x, at = flat_or_one_axis(a, axis)
    chosen = places(kth, x.shape[at] if x.aval.size else None, kind, order)
    if x.shape[at] <= ops.SHORT:
        return ops.argsort(x, axis=at, stable=True)
    return ops.argpartition(x, kth=chosen, axis=at) if x.aval.size else constant(0, I64, x.shape)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any, kind: str, order: Any) -> Symbol:
    x, at = one_axis(a, axis)
    return take_along_axis(x, argpartition(x, kth, at, kind, order), at)


def places(kth: Any, n: int | None, kind: str, order: Any) -> Ints:
    """The positions of n elements that come to their place, counted from the start; any position for None."""
    if order is not None or kind != "introselect":
        raise DomainError("partition takes kind='introselect' and no order")
    given = static_ints(kth, "kth")
    if n is None:
        return ()
    for k in given:
        if not -n <= k < n:
            raise ShapeError(f"kth(={k}) out of bounds ({n})")
    return tuple(k % n for k in given)


# ---- in sorted arrays ------------------------------------------------------------------------------------------------


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str, sorter: Any) -> Symbol:
    array, values = of_one_dtype(a, v)
    if sorter is not None:
        order = integers(sorter)
        if order.shape != array.shape:
            raise ShapeError("sorter.size must equal a.size")
        array = take(array, order)
    return ops.searchsorted(array, values, side=side)


# ---- sets ------------------------------------------------------------------------------------------------------------


@implements(np.isin)
def isin(element: Any, test_elements: Any, invert: bool, kind: Any) -> ArrayView:
    x, tests = of_one_dtype(element, test_elements)
    if kind not in (None, "sort", "table"):
        raise DomainError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    if kind == "table" and x.dtype.kind not in "biu":
        raise DomainError("The 'table' method is only supported for boolean or integer arrays.")
    n = tests.aval.size
    if n == 0:
        return fresh(constant(invert, BOOL, x.shape))
    ordered = sorted_along(reshape_to(tests, (n,)), 0)
    place = minimum(searchsorted(ordered, x), constant(n - 1, I64, x.shape))
    found = eq(gather(ordered, place), x)
    return fresh(bitwise_not(found) if invert else found)


@implements(np.unique)
def unique(ar: Any, return_index: Any, return_inverse: Any, return_counts: Any, axis: Any, equal_nan: Any) -> Any:
    x = as_symbol(ar)
    at = axis if axis is None else axis_of(axis, x.ndim)
    table = reshape_to(x, (x.aval.size,)) if at is None else moveaxis(x, at, 0).read()
    order, starts = in_order_of_rows(table, merges_nan=equal_nan and table.ndim == 1)
    first = gather(order, as_symbol(starts))
    counts = np.diff([*starts, table.shape[0]])
    values = gather(table, first)
    results: list[Any] = [values if at is None else moveaxis(values, 0, at)]
    if return_index:
        results.append(first)
    if return_inverse:
        groups = as_symbol(np.repeat(np.arange(len(starts)), counts))
        inverse = gather(groups, ops.argsort(order, axis=0, stable=True))
        results.append(fresh(reshape_to(inverse, x.shape)) if at is None else inverse)
    if return_counts:
        results.append(counts)
    return tuple(results) if len(results) > 1 else results[0]


def in_order_of_rows(table: Symbol, *, merges_nan: bool) -> tuple[Symbol, Any]:
    """The stable order of the rows of an array, and the places in it where one begins that differs from that before."""
    n = table.shape[0]
    if not table.aval.size:
        return iota(dtype=I64, shape=(n,), axis=0), np.arange(min(n, 1))
    columns = rows(transpose_to(reshape_to(table, (n, table.aval.size // n)), (1, 0)))
    order = lexsort(columns[::-1])
    differs = constant(np.False_, BOOL, (n - 1,))
    for column in columns:
        ordered = gather(column, order)
        before, after = slice_axis(ordered, 0, 0, n - 1), slice_axis(ordered, 0, 1, n)
        same = eq(before, after)
        if merges_nan and column.dtype.kind in "fc":
            same = bitwise_or(same, bitwise_and(isnan(before), isnan(after)))
        differs = bitwise_or(differs, bitwise_not(same))
    return order, np.flatnonzero([True, *static_array(differs)])


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any) -> Symbol:
    x = as_symbol(ar1)
    x = reshape_to(x, (x.aval.size,)) if assume_unique else unique(x)
    return gather(x, as_symbol(flatnonzero(isin(x, ar2, invert=True).read())))


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: Any, return_indices: Any) -> Any:
    given = of_one_dtype(ar1, ar2)
    if assume_unique:
        parts, firsts = [reshape_to(x, (x.aval.size,)) for x in given], None
    else:
        parts, firsts = zip(*[unique(x, return_index=True) for x in given], strict=True)
    (n, m), joined = (part.shape[0] for part in parts), concatenate(*parts, axis=0)
    order = ops.argsort(joined, axis=0, stable=True)
    ordered = gather(joined, order)
    same = eq(slice_axis(ordered, 0, 1, n + m), slice_axis(ordered, 0, 0, n + m - 1)) if n + m else []
    at = flatnonzero(same)
    common = gather(ordered, as_symbol(at))
    if not return_indices:
        return common
    left, right = gather(order, as_symbol(at)), gather(order, as_symbol(at + 1)) - n
    return (common, gather(firsts[0], left), gather(firsts[1], right)) if firsts else (common, left, right)


# ---- places of what is true: integers that are known, since they are a path ------------------------------------------


@implements(np.nonzero)
def nonzero(a: Any) -> Any:
    return np.nonzero(static_array(as_symbol(a, BOOL)))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    return np.flatnonzero(static_array(as_symbol(a, BOOL)))


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    return np.argwhere(static_array(as_symbol(a, BOOL)))
