"""Sorting, partitioning, places in sorted arrays, membership.

The order is an array of integers, without derivative; values are read through it. Equal elements keep their order, so
that the derivative goes to each by NumPy's stable permutation. The functions of sets are refused: how many elements
differ depends on their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fnad.errors import ArgumentTypeError, DomainError, ShapeError, TracerEscapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64
from fnad.numpy.indexing_routines import integers, take, take_along_axis
from fnad.numpy.joining import rows
from fnad.numpy.manipulation import fresh
from fnad.numpy.operands import Ints, as_symbol, axis_of, common_dtype, reduced_axes, static_int, static_ints
from fnad.numpy.registry import implements
from fnad.numpy.views import ArrayView
from fnad.ops import sorting as ops
from fnad.ops.comparison import bitwise_not, eq
from fnad.ops.indexing import gather
from fnad.ops.piecewise import minimum
from fnad.ops.shape import constant, reshape_to

KINDS = {None: False, "quicksort": False, "heapsort": False, "mergesort": True, "stable": True}
"""Whether equal elements keep their order."""


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
    dtype = common_dtype(a, v)
    array = as_symbol(a, dtype)
    if sorter is not None:
        order = integers(sorter)
        if order.shape != array.shape:
            raise ShapeError("sorter.size must equal a.size")
        array = take(array, order)
    return ops.searchsorted(array, as_symbol(v, dtype), side=side)


# ---- sets ------------------------------------------------------------------------------------------------------------


@implements(np.isin)
def isin(element: Any, test_elements: Any, invert: bool, kind: Any) -> ArrayView:
    dtype = common_dtype(element, test_elements)
    if kind not in (None, "sort", "table"):
        raise DomainError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    if kind == "table" and dtype.kind not in "biu":
        raise DomainError("The 'table' method is only supported for boolean or integer arrays.")
    x, tests = as_symbol(element, dtype), as_symbol(test_elements, dtype)
    n = tests.aval.size
    if n == 0:
        return fresh(constant(invert, BOOL, x.shape))
    ordered = sorted_along(reshape_to(tests, (n,)), 0)
    place = minimum(searchsorted(ordered, x), constant(n - 1, I64, x.shape))
    found = eq(gather(ordered, place), x)
    return fresh(bitwise_not(found) if invert else found)


def _depends_on_values(function: Callable[..., Any], remedy: str) -> None:
    """Enter a function that is refused because of the shape of its result."""

    def rule(*args: Any, **kwargs: Any) -> NoReturn:
        raise TracerEscapeError(
            f"the shape of the result of numpy.{function.__name__} depends on traced values", remedy=remedy
        )

    implements(function)(rule)


SETS = (
    np.unique,
    np.unique_all,
    np.unique_counts,
    np.unique_inverse,
    np.unique_values,
    np.union1d,
    np.intersect1d,
    np.setdiff1d,
    np.setxor1d,
)
"""Functions whose result has as many elements as there are different ones."""

for _function in SETS:
    _depends_on_values(
        _function, "sort with np.sort, compare neighbours, and reduce with where=; or compute the set outside"
    )
_depends_on_values(np.trim_zeros, "count the zeros outside, and take a slice of that size")
for _function in (np.nonzero, np.flatnonzero, np.argwhere):
    _depends_on_values(
        _function, "use the condition itself: np.where(condition, a, b), np.sum(x, where=condition), x[condition] = v"
    )
