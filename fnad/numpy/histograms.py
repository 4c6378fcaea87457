"""Counting by bins: `digitize`, `bincount`, and histograms over bins that are known while tracing.

How many bins there are is the shape of a result, so it has to be known; where their edges are need not. Which bin an
element falls in is constant almost everywhere: counts have no derivative but in their weights, and the edges that
NumPy spaces between the least and the largest element have that of these two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.errors import DomainError, DtypeError, ShapeError, TracerEscapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, F64, I64, Dtype, Shape, is_inexact
from fnad.numpy.creation import linspace
from fnad.numpy.joining import alike, rows
from fnad.numpy.operands import as_symbol, common_dtype, contains_symbol, static_array, static_int, to_dtype
from fnad.numpy.reductions import all_, max_, min_, sum_
from fnad.numpy.registry import implements
from fnad.numpy.sorting import searchsorted
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.comparison import bitwise_and, eq, ge, isfinite, le, select
from fnad.ops.indexing import scatter_add
from fnad.ops.piecewise import minimum
from fnad.ops.requirement import require
from fnad.ops.shape import broadcast_to, constant, full_like, ones_like, reshape_to, reverse, slice_axis, zeros_like

INCREASING = "bins must be monotonically increasing while tracing"
ENDLESS: dict[str, Any] = {
    "message": "autodetected range of the elements is not finite",
    "remedy": "give range=, or leave out nan and infinities",
}
NEGATIVE: dict[str, Any] = {
    "message": "'list' argument must have no negative elements",
    "remedy": "numpy.bincount counts integers from 0 on: clip them, or give the others a weight of 0",
}
SORTED = "sort the bins with np.sort"

# ---- counting integers -----------------------------------------------------------------------------------------------


@implements(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Symbol:
    least = static_int(minlength, "a number of bins")
    if least < 0:
        raise DomainError("'minlength' must not be negative")
    places = as_symbol(x)
    if places.ndim != 1:
        raise ShapeError(f"numpy.bincount takes an array of one dimension, got {places.aval}")
    if places.dtype.kind not in "biu" and (places.aval.size or not isinstance(x, (list, tuple))):
        raise DtypeError(f"Cannot cast array data from {places.dtype!r} to dtype('int64') according to the rule 'safe'")
    index = to_dtype(places, I64)
    index = require(index, ge(index, zeros_like(index)), **NEGATIVE)
    if not contains_symbol(x):
        known = np.maximum(np.asarray(static_array(x)), 0)
        return counted(index, weights, (len(np.bincount(known.astype(int), minlength=least)),), F64)
    if not least:
        return counted(index, weights, (1 + int(static_array(max_(index, initial=-1))),), F64)
    message = f"numpy.bincount of traced integers takes those from 0 to minlength - 1, which is {least - 1}"
    remedy = "give a larger minlength, or clip the integers"
    fits = le(index, full_like(index, least - 1))
    return counted(require(index, fits, message=message, remedy=remedy), weights, (least,), F64)


def counted(index: Symbol, weights: Any, shape: Shape, dtype: Dtype | None, chosen: Symbol | None = None) -> Symbol:
    """The sums of weights at each index, of those that are chosen; numbers of elements if there are no weights.

    `dtype` is that of the sums, by default that of the weights.
    """
    if weights is None:
        w = ones_like(index)
    else:
        w = as_symbol(weights)
        if dtype is not None and w.dtype.kind == "c":
            raise DtypeError(f"Cannot cast array data from {w.dtype!r} to {dtype!r} according to the rule 'safe'")
        w = w if dtype is None else to_dtype(w, dtype)
        if w.shape != index.shape:
            raise ShapeError("The weights and list don't have the same length.")
    if chosen is not None:
        w, index = select(chosen, w, zeros_like(w)), select(chosen, index, zeros_like(index))
    return scatter_add(constant(0, w.dtype, shape), w, index)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool) -> Symbol:
    values, edges = (to_dtype(s, I64) if s.dtype == BOOL else s for s in map(as_symbol, (x, bins)))
    if values.dtype.kind == "c":
        raise DtypeError("x may not be complex")
    if edges.ndim != 1:
        raise ShapeError("object too deep for desired array")
    side = "left" if right else "right"
    if contains_symbol(bins):
        edges = require(edges, increases(edges), message=INCREASING, remedy=SORTED)
        return searchsorted(edges, values, side)
    steps = np.diff(static_array(bins))
    if np.all(steps >= 0):
        return searchsorted(edges, values, side)
    if not np.all(steps <= 0):
        raise DomainError("bins must be monotonically increasing or decreasing")
    found = searchsorted(reverse(edges, axes=(0,)), values, side)
    return sub(full_like(found, edges.shape[0]), found)


def increases(edges: Symbol) -> Symbol:
    """True if no edge is below the one before."""
    n = edges.shape[0]
    return all_(le(slice_axis(edges, 0, 0, max(n - 1, 0)), slice_axis(edges, 0, min(1, n), n)))


# ---- edges -----------------------------------------------------------------------------------------------------------


def edges_of(a: Symbol, bins: Any, span: Any, dtype: Dtype | None = None) -> Symbol:
    """The edges of bins along one axis: those given, or so many of equal width over the span of the elements.

    `dtype` is that of edges of equal width, by default that of the elements.
    """
    if isinstance(bins, str):
        raise TracerEscapeError(
            f"the number of bins that bins={bins!r} chooses depends on traced values",
            remedy="give the number of bins, or their edges",
        )
    if as_symbol(bins).ndim == 0:
        return _even_edges(a, static_int(bins, "a number of bins"), span, dtype)
    edges = as_symbol(bins)
    if edges.ndim != 1:
        raise ShapeError("`bins` must be 1d, when an array")
    message = "`bins` must increase monotonically, when an array"
    if contains_symbol(bins):
        return require(edges, increases(edges), message=message, remedy=SORTED)
    if np.any(np.diff(static_array(bins)) < 0):
        raise DomainError(message)
    return edges


def _even_edges(a: Symbol, count: int, span: Any, dtype: Dtype | None) -> Symbol:
    if count < 1:
        raise DomainError("`bins` must be positive, when an integer")
    low, high = _outer_edges(a, span)
    if dtype is None:
        common = common_dtype(low, high, a)
        dtype = common if is_inexact(common) else F64
    return linspace(low, high, count + 1, dtype=dtype)


def _outer_edges(a: Symbol, span: Any) -> tuple[Any, Any]:
    """The first and last edge, half apart from where they are equal."""
    if span is None:
        return _of_elements(a)
    low, high = span
    if contains_symbol((low, high)):
        return low, high
    if low > high:
        raise DomainError("max must be larger than min in range parameter.")
    if not (np.isfinite(low) and np.isfinite(high)):
        raise DomainError(f"supplied range of [{low}, {high}] is not finite")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _of_elements(a: Symbol) -> tuple[Any, Any]:
    if a.aval.size == 0:
        return 0, 1
    low, high = (to_dtype(end, F64) if a.dtype.kind in "biu" else end for end in (min_(a), max_(a)))
    low = require(low, bitwise_and(isfinite(low), isfinite(high)), **ENDLESS)
    distance = select(eq(low, high), full_like(low, 0.5), zeros_like(low))
    return sub(low, distance), add(high, distance)


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any, range: Any, weights: Any) -> Symbol:
    check_weights(a, weights)
    return edges_of(elements(a), bins, range)


def check_weights(a: Any, weights: Any) -> None:
    """Raise where there are weights, in another shape than the array."""
    if weights is not None and as_symbol(weights).shape != as_symbol(a).shape:
        raise ShapeError("weights should have the same shape as a.")


def elements(a: Any) -> Symbol:
    """The elements of an array along one axis."""
    x = as_symbol(a)
    return reshape_to(x, (x.aval.size,))


# ---- histograms ------------------------------------------------------------------------------------------------------


def bin_of(a: Symbol, edges: Symbol) -> tuple[Symbol, Symbol]:
    """The bin of each element, the last of which has its last edge too, and whether it is in any."""
    dtype = common_dtype(a, edges)
    a, edges = to_dtype(a, dtype), to_dtype(edges, dtype)
    n = edges.shape[0] - 1
    first, last = (broadcast_to(slice_axis(edges, 0, i, i + 1), a.shape) for i in (0, n))
    place = sub(searchsorted(edges, a, "right"), constant(1, I64, a.shape))
    return minimum(place, full_like(place, n - 1)), bitwise_and(ge(a, first), le(a, last))


@implements(np.histogram)
def histogram(a: Any, bins: Any, range: Any, density: Any, weights: Any) -> tuple[Symbol, Symbol]:
    x = elements(a)
    check_weights(a, weights)
    edges = edges_of(x, bins, range)
    index, is_inside = bin_of(x, edges)
    counts = counted(index, None if weights is None else elements(weights), (edges.shape[0] - 1,), None, is_inside)
    return (_density(counts, [edges]) if density else counts), edges


def _density(counts: Symbol, edges: Sequence[Symbol]) -> Symbol:
    """Counts divided by their sum and by the volume of each bin."""
    result = to_dtype(counts, F64) if counts.dtype.kind in "biu" else counts
    dtype = common_dtype(result, *edges)
    result = total = to_dtype(result, dtype)
    for axis, along in enumerate(edges):
        n = along.shape[0]
        width = to_dtype(sub(slice_axis(along, 0, 1, n), slice_axis(along, 0, 0, n - 1)), dtype)
        shape = tuple(n - 1 if i == axis else 1 for i, _ in enumerate(edges))
        result = div(result, broadcast_to(reshape_to(width, shape), result.shape))
    return div(result, broadcast_to(sum_(total), result.shape))


@implements(np.histogramdd)
def histogramdd(sample: Any, bins: Any, range: Any, density: Any, weights: Any) -> tuple[Symbol, list[Symbol]]:
    columns = _columns(sample)
    d = len(columns)
    bins = rows(bins) if isinstance(bins, Symbol) and bins.ndim else bins
    each = list(bins) if isinstance(bins, (list, tuple)) or np.ndim(bins) else [bins] * d
    if len(each) != d:
        raise DomainError("The dimension of bins must be equal to the dimension of the sample x.")
    spans = [None] * d if range is None else list(range)
    if len(spans) != d:
        raise DomainError("range argument must have one entry per dimension")
    edges = [
        edges_of(x, b, span, F64 if span is not None else None) for x, b, span in zip(columns, each, spans, strict=True)
    ]
    shape = tuple(along.shape[0] - 1 for along in edges)
    index, is_inside = constant(0, I64, columns[0].shape), constant(True, np.dtype(bool), columns[0].shape)
    for x, along in zip(columns, edges, strict=True):
        place, inside = bin_of(x, along)
        index = add(mul(index, full_like(index, along.shape[0] - 1)), place)
        is_inside = bitwise_and(is_inside, inside)
    counts = counted(index, weights, (math.prod(shape),), F64, is_inside)
    counts = to_dtype(reshape_to(counts, shape), F64)
    return (_density(counts, edges) if density else counts), edges


def _columns(sample: Any) -> list[Symbol]:
    """The coordinates of points: columns of an (n, d) array, or d arrays."""
    if isinstance(sample, (list, tuple)):
        return alike(sample)
    x = as_symbol(sample)
    if x.ndim == 1:
        return [x]
    if x.ndim != 2:
        raise ShapeError(f"a sample is an array of points, (n, d), got {x.aval}")
    return [reshape_to(slice_axis(x, 1, i, i + 1), (x.shape[0],)) for i in np.arange(x.shape[1]).tolist()]
