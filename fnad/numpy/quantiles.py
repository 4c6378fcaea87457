"""Medians, quantiles and percentiles: sorted elements, interpolated between.

Sorted along the axis, which stands in front, a slice has its quantile q at a virtual index that each method computes
from q and the number n of elements, by NumPy's own table. Where that lies between two elements, they are mixed by the
weight γ. Indices and weights are constants unless q or n is traced. The nan stand at the end of a sorted slice: there
is one where the last element is nan; leaving them out, n is the number of others.

Hyndman and Fan, "Sample quantiles in statistical packages" (1996), number the methods.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import DomainError, DtypeError, OutOfRangeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Shape, is_inexact
from fnad.numpy.bodies import XP, anew
from fnad.numpy.manipulation import fresh
from fnad.numpy.namespace import making_traced
from fnad.numpy.operands import (
    Ints,
    WeakSymbol,
    as_symbol,
    axes_of,
    contains_symbol,
    is_python_number,
    reduced_shape,
    to_dtype,
)
from fnad.numpy.reductions import SUM
from fnad.numpy.registry import RULES, implements
from fnad.numpy.sorting import sorted_along
from fnad.numpy.statistics import inexact
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.comparison import bitwise_and, bitwise_not, eq, ge, gt, isnan, le, lt, select
from fnad.ops.indexing import gather
from fnad.ops.piecewise import floor_divide, maximum, minimum, remainder
from fnad.ops.reduction import cumsum
from fnad.ops.requirement import require
from fnad.ops.shape import (
    broadcast_to,
    constant,
    full_like,
    in_front,
    iota,
    ones_like,
    reshape_to,
    slice_axis,
    transpose_to,
    zeros_like,
)
from fnad.upward import UPWARD


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """Sorted slices along axis 0, and how many elements of each count: a number, or one for each slice."""

    x: Symbol
    count: int | Symbol

    @staticmethod
    def of(a: Symbol, axes: Ints) -> Slices:
        """Sort an array over these axes; all elements count."""
        x = in_front(a, axes)
        return Slices(sorted_along(x, 0), x.shape[0])

    @staticmethod
    def without_nan(a: Symbol, axes: Ints) -> Slices:
        """Sort an array over these axes; a nan does not count."""
        x = in_front(a, axes)
        if x.dtype.kind not in "fc":
            return Slices.of(a, axes)
        present = to_dtype(bitwise_not(isnan(x)), I64)
        return Slices(sorted_along(x, 0), SUM(present, 0))

    @property
    def rest(self) -> Shape:
        return self.x.shape[1:]

    def at(self, index: Symbol) -> Symbol:
        """The elements at an index, of its shape and the rest; one for each slice if it has the rest's axes."""
        if not isinstance(self.count, Symbol):
            return gather(self.x, index)
        others = [
            iota(dtype=I64, shape=index.shape, axis=index.ndim - len(self.rest) + i) for i in range(len(self.rest))
        ]
        return gather(self.x, index, *others)

    def element(self, i: int) -> Symbol:
        """The i-th element of each."""
        return reshape_to(slice_axis(self.x, 0, i, i + 1), self.rest)

    def unless_nan(self, result: Symbol) -> Symbol:
        """The result, whose last axes are those of the slices, but nan where a slice has one."""
        if not is_inexact(self.x.dtype):
            return result
        last = self.element(self.x.shape[0] - 1)
        has_nan, last = (broadcast_to(part, result.shape) for part in (isnan(last), to_dtype(last, result.dtype)))
        return select(has_nan, last, result)


# ---- medians ---------------------------------------------------------------------------------------------------------


@implements(np.median)
def median(a: Any, axis: Any, keepdims: Any) -> Symbol:
    x, axes = inexact(a), axes_of(axis, as_symbol(a).ndim)
    shape = reduced_shape(x.shape, axes, keepdims)
    slices = Slices.of(x, axes)
    n = slices.x.shape[0]
    if n == 0:
        return constant(np.nan, x.dtype, shape)
    low, high = (slices.element(i) for i in ((n - 1) // 2, n // 2))
    return reshape_to(slices.unless_nan(low if n % 2 else mean_of(low, high)), shape)


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Any, keepdims: Any) -> Symbol:
    x, axes = inexact(a), axes_of(axis, as_symbol(a).ndim)
    shape = reduced_shape(x.shape, axes, keepdims)
    slices = Slices.without_nan(x, axes)
    if x.aval.size == 0:
        return constant(np.nan, x.dtype, shape)
    n = as_symbol(slices.count)
    two = full_like(n, 2)
    low = slices.at(maximum(floor_divide(n - 1, two), zeros_like(n)))
    high = slices.at(floor_divide(n, two))
    is_odd = eq(remainder(n, two), ones_like(n))
    return reshape_to(select(is_odd, low, mean_of(low, high)), shape)


def mean_of(x: Symbol, y: Symbol) -> Symbol:
    """(x + y) / 2."""
    return div(add(x, y), full_like(x, 2))


# ---- positions -------------------------------------------------------------------------------------------------------

METHODS: dict[str, dict[str, Callable[..., Any]]] = import_module("numpy.lib._function_base_impl")._QuantileMethods
"""NumPy's functions of n and q for virtual indices, which are integers if no elements are mixed, and for weights."""


def _positions(n: Any, q: Any, method: str) -> list[Symbol]:
    """The index of the element that is the quantile, or those of two elements and the weight of the second."""
    if method not in METHODS:
        raise DomainError(f"{method!r} is not a valid method. Use one of: {', '.join(METHODS)}")
    virtual_index, fix_gamma = METHODS[method].values()
    n, q = (UPWARD.fresh_handle_of(x, not x.ndim) if isinstance(x, Symbol) else x for x in (n, q))
    with making_traced() if UPWARD.has_traced((n, q)) else nullcontext():
        virtual = anew(virtual_index)(n, q)
        if virtual.dtype.kind == "i":
            return [_symbol(virtual)]
        above, below = virtual >= n - 1, virtual < 0
        low = XP.where(below, 0, XP.where(above, -1, XP.floor(virtual)))
        gamma = anew(fix_gamma)(virtual - low, virtual).astype(virtual.dtype)
    first = XP.where(above, n - 1, low)
    second = XP.where(above | below, first, low + 1)
    return [_symbol(first.astype(np.int64)), _symbol(second.astype(np.int64)), _symbol(gamma)]


def _symbol(value: Any) -> Symbol:
    return value.symbol if UPWARD.has_traced(value) else as_symbol(value[()])


# ---- quantiles -------------------------------------------------------------------------------------------------------


class Fraction(NamedTuple):
    """The quantiles: numbers in [0, 1], traced or not, and a flag that is True if the array decides the dtype."""

    q: Any
    is_weak: bool

    @staticmethod
    def of(q: Any, scale: int, method: str) -> Fraction:
        """Read what the user gave, a part of `scale`; raise as NumPy where it is outside."""
        symbol = as_symbol(q)
        if symbol.ndim > 2:
            raise ShapeError("q must be a scalar or 1d")
        if symbol.dtype.kind == "c":
            raise DtypeError(f"quantiles take real fractions, got {symbol.aval}")
        is_end = symbol.dtype.kind in "biu" and scale == 1 and method == "linear"
        dtype = symbol.dtype if is_end or is_inexact(symbol.dtype) else F64
        is_weak = isinstance(q, WeakSymbol) or is_python_number(q)
        message = f"{'Quantiles' if scale == 1 else 'Percentiles'} must be in the range [0, {scale}]"
        if not contains_symbol(q):
            parts = np.asarray(q, dtype)
            if not np.all((parts >= 0) & (parts <= scale)):
                raise DomainError(message, remedy="clip them")
            return Fraction(parts if scale == 1 else parts / dtype.type(scale), is_weak)
        x = to_dtype(symbol, dtype)
        x = x if scale == 1 else div(x, full_like(x, scale))
        inside = bitwise_and(ge(x, zeros_like(x)), le(x, ones_like(x)))
        return Fraction(require(x, inside, message=message, remedy="clip them"), is_weak)


def _quantile(slices: Slices, fraction: Fraction, method: str) -> Symbol:
    """The quantiles of each slice, those of the fraction in front."""
    n, q = slices.count, fraction.q
    if isinstance(n, Symbol):  # one for each slice
        q = reshape_to(as_symbol(q), (*q.shape, *(1,) * n.ndim))
        shape = (*fraction.q.shape, *n.shape)
        q, n = broadcast_to(q, shape), broadcast_to(to_dtype(n, q.dtype) if is_inexact(q.dtype) else n, shape)
    first, *rest = _positions(n, q, method)
    if not rest:
        return slices.at(first)
    second, gamma = rest
    return mixed(slices.at(first), slices.at(second), gamma, fraction.is_weak)


def mixed(a: Symbol, b: Symbol, gamma: Symbol, is_weak: bool) -> Symbol:
    """A (1 - γ) + b γ as NumPy rounds it: from the nearer of the two."""
    dtype = a.dtype if is_weak and is_inexact(a.dtype) else np.result_type(a.dtype, gamma.dtype)
    distance = to_dtype(sub(b, a), dtype)
    extra = a.ndim - gamma.ndim

    def part(weight: Symbol) -> Symbol:
        return mul(distance, broadcast_to(reshape_to(to_dtype(weight, dtype), (*weight.shape, *(1,) * extra)), a.shape))

    is_near_b = broadcast_to(reshape_to(ge(gamma, full_like(gamma, 0.5)), (*gamma.shape, *(1,) * extra)), a.shape)
    from_a = add(to_dtype(a, dtype), part(gamma))
    return select(is_near_b, sub(to_dtype(b, dtype), part(sub(ones_like(gamma), gamma))), from_a)


# ---- weighted --------------------------------------------------------------------------------------------------------


def _weighted(x: Symbol, weights: Any, axis: Any, fraction: Fraction, *, without_nan: bool) -> Symbol:
    """The quantiles where elements have weights: the first at which their running sum reaches q of the whole."""
    axes = axes_of(axis, x.ndim)
    w, values = in_front(_weights_of(x, weights, axis), axes), in_front(x, axes)
    if without_nan and is_inexact(x.dtype):
        w = select(isnan(values), zeros_like(w), w)
    order = RULES[np.argsort](values, 0)
    values, w = (RULES[np.take_along_axis](part, order, 0) for part in (values, w))
    index = _reached(w, as_symbol(fraction.q), may_vanish=without_nan)
    slices = Slices(values, constant(values.shape[0], I64, values.shape[1:]))
    return slices.at(index) if without_nan else slices.unless_nan(slices.at(index))


def _weights_of(x: Symbol, weights: Any, axis: Any) -> Symbol:
    """Weights in the shape of x: given so, or along the axes."""
    w = to_dtype(as_symbol(weights), F64)
    w = require(w, ge(w, zeros_like(w)), message="Weights must be non-negative.", remedy="take them from 0 on")
    if w.shape == x.shape:
        return w
    if axis is None:
        raise DtypeError("Axis must be specified when shapes of a and weights differ.")
    axes = axes_of(axis, x.ndim)
    if w.shape != tuple(x.shape[a] for a in axes):
        raise ShapeError("Shape of weights must be consistent with shape of a along specified axis.")
    inner = transpose_to(w, tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    return broadcast_to(reshape_to(inner, tuple(n if i in axes else 1 for i, n in enumerate(x.shape))), x.shape)


def _reached(w: Symbol, q: Symbol, *, may_vanish: bool) -> Symbol:
    """The positions where the cumulative sums of weights along axis 0 reach q of the whole, the axes of q in front."""
    sums = cumsum(w, axis=0, reverse=False)
    whole = slice_axis(sums, 0, sums.shape[0] - 1, sums.shape[0])
    if not may_vanish:
        message = "Weights included NaN, inf or were all zero."
        whole = require(whole, gt(whole, zeros_like(whole)), message=message, remedy="leave these out")
    cdf = div(sums, broadcast_to(whole, sums.shape))
    cdf = to_dtype(select(eq(cdf, zeros_like(cdf)), full_like(cdf, -1), cdf), q.dtype)
    n, rest = cdf.shape[0], cdf.shape[1:]
    shape = (n, *q.shape, *rest)
    found = broadcast_to(reshape_to(cdf, (n, *(1,) * q.ndim, *rest)), shape)
    below = lt(found, broadcast_to(reshape_to(q, (1, *q.shape, *(1,) * len(rest))), shape))
    count = SUM(to_dtype(below, I64), 0)
    return minimum(count, full_like(count, n - 1))


def _quantile_rule(scale: int, *, without_nan: bool) -> Callable[..., Any]:
    def rule(a: Any, q: Any, axis: Any, method: str, keepdims: Any, weights: Any) -> Any:
        x, fraction = real_array(a), Fraction.of(q, scale, method)
        if weights is not None and method != "inverted_cdf":
            raise DomainError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        axes = axes_of(axis, x.ndim)
        shape = reduced_shape(x.shape, axes, keepdims)
        if weights is not None and x.aval.size:
            found = _weighted(x, weights, axis, fraction, without_nan=without_nan)
            return fresh(reshape_to(found, (*fraction.q.shape, *shape)))
        if without_nan and x.aval.size == 0:
            return constant(np.nan, np.result_type(x.dtype, np.float32 if is_inexact(x.dtype) else F64), shape)
        slices = Slices.without_nan(x, axes) if without_nan else Slices.of(x, axes)
        if slices.x.shape[0] == 0:
            raise OutOfRangeError("index -1 is out of bounds for axis 0 with size 0")
        found = _quantile(slices, fraction, method)
        found = found if without_nan else slices.unless_nan(found)
        return reshape_to(found, (*fraction.q.shape, *shape))

    return rule


def real_array(a: Any) -> Symbol:
    """An array; raise where it is complex, and so in no order."""
    x = as_symbol(a)
    if x.dtype.kind == "c":
        raise DtypeError("a must be an array of real numbers")
    return x


quantile = implements(np.quantile)(_quantile_rule(1, without_nan=False))
percentile = implements(np.percentile)(_quantile_rule(100, without_nan=False))
nanquantile = implements(np.nanquantile)(_quantile_rule(1, without_nan=True))
nanpercentile = implements(np.nanpercentile)(_quantile_rule(100, without_nan=True))
