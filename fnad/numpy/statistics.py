"""Means, variances and covariances, and what is made of them.

Note [Variance about the first element]
    The variance is taken of the distances to the first element. Of equal elements it is then exactly 0, where the
    distances to a rounded mean are not; and the standard deviation has derivative 0 there.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import DomainError, DtypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, F64, Aval, dtype_name, is_complex, is_inexact, native_dtype, real_dtype
from fnad.numpy.bodies import XP, Body, anew
from fnad.numpy.operands import (
    as_array,
    as_symbol,
    axes_of,
    broadcast_all,
    of_one_dtype,
    reduced_shape,
    static_number,
    to_dtype,
)
from fnad.numpy.reductions import (
    MAX,
    MIN,
    SUM,
    Reduction,
    any_,
    argmax,
    argmin,
    count_nonzero,
    is_given,
    masked,
    min_,
    reduce,
)
from fnad.numpy.registry import OF_AVALS, RULES, UNSET, implements
from fnad.ops.arithmetic import div, mul, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import bitwise_and, bitwise_not, eq, isnan, le, ne, select
from fnad.ops.conversion import conj, real
from fnad.ops.elementary import sqrt
from fnad.ops.piecewise import maximum
from fnad.ops.requirement import require
from fnad.ops.shape import broadcast_to, constant, full_like, ones_like, reshape_to, slice_, transpose_to, zeros_like
from fnad.upward import UPWARD

VANISHING: dict[str, Any] = {
    "message": "Weights sum to zero, can't be normalized",
    "remedy": "leave out what has no weight at all",
}


def inexact(a: Any, dtype: Any = None) -> Symbol:
    """The operand in the dtype its mean is taken in: the one given, or its own, f64 for integers."""
    x = as_symbol(a)
    if dtype is not None:
        return to_dtype(x, native_dtype(dtype))
    return to_dtype(x, F64) if x.dtype.kind in "biu" else x


def mean_over(x: Symbol, axis: Any, keepdims: Any, where: Any = True, ddof: Any = 0) -> Symbol:
    """The sum over axes, in the dtype of x, divided by the number of elements less `ddof`, in the same dtype."""
    total, ddof = reduce(SUM, x, axis, keepdims, where=where), static_number(ddof, "ddof")
    wide = to_dtype(total, x.dtype if is_inexact(x.dtype) else F64)
    if where is True:
        count = math.prod(x.shape[a] for a in axes_of(axis, x.ndim))
        return to_dtype(div(wide, full_like(wide, max(count - ddof, 0))), x.dtype)
    keep, _ = broadcast_all([as_symbol(where, BOOL), x])
    counts = to_dtype(count_nonzero(keep, axis, keepdims=keepdims), real_dtype(wide.dtype))
    counts = counts if ddof == 0 else maximum(counts - ddof, zeros_like(counts))
    return to_dtype(div(wide, to_dtype(counts, wide.dtype)), x.dtype)


@implements(np.mean)
def mean(a: Any, axis: Any, dtype: Any, keepdims: Any, where: Any) -> Symbol:
    return mean_over(inexact(a, dtype), axis, keepdims, where)


OF_AVALS.add(mean)


@implements(np.var)
def var(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any, correction: Any) -> Symbol:
    x, ddof = as_symbol(a), delta_degrees(ddof, correction)
    taken = F64 if dtype is None and not is_inexact(x.dtype) else dtype
    distance = _from_mean(x, taken, axis, where) if mean is UNSET else RULES[np.subtract](x, mean)
    is_square = x.dtype.kind in "fiu" or not is_complex(distance.dtype)
    square = mul(distance, distance) if is_square else real(mul(distance, conj(distance)))
    return mean_over(inexact(square, taken), axis, keepdims, where, ddof)


def _from_mean(x: Symbol, dtype: Any, axis: Any, where: Any) -> Symbol:
    """The distances to the mean taken in a dtype; of a complex x in a real one, to that of the real part."""
    taken = x.dtype if dtype is None else native_dtype(dtype)
    wide = to_dtype(x, np.result_type(x.dtype, taken))
    holds_all = is_inexact(taken) and is_complex(taken) >= is_complex(x.dtype)
    wide = _from_first(wide, axis) if where is True and holds_all else wide
    return sub(wide, broadcast_to(to_dtype(mean_over(to_dtype(wide, taken), axis, True, where), wide.dtype), x.shape))


def delta_degrees(ddof: Any, correction: Any) -> Any:
    """The number that is subtracted from the number of elements, under either of NumPy's names."""
    if correction is UNSET:
        return static_number(ddof, "ddof")
    if ddof != 0:
        raise DomainError("ddof and correction can't be provided simultaneously.", remedy="give one of them")
    return static_number(correction, "correction")


def _from_first(x: Symbol, axis: Any) -> Symbol:
    """The distances to the first element along the axes (Note [Variance about the first element])."""
    if x.aval.size == 0:
        return x
    limits = reduced_shape(x.shape, axes_of(axis, x.ndim), keepdims=True)
    first = slice_(x, starts=(0,) * x.ndim, limits=limits, strides=(1,) * x.ndim)
    return sub(x, broadcast_to(stop_gradient(first), x.shape))


@implements(np.std)
def std(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any, correction: Any) -> Symbol:
    freedom = delta_degrees(ddof, correction)
    return deviation(var(a, axis, dtype, ddof=freedom, keepdims=keepdims, where=where, mean=mean))


def deviation(square: Symbol) -> Symbol:
    """The square root of a variance, in its dtype."""
    if square.shape and not is_inexact(square.dtype):
        name = dtype_name(square.dtype)
        raise DtypeError(f"Cannot cast ufunc 'sqrt' output to {name}", remedy="give a float dtype")
    return root(square)


def root(square: Symbol) -> Symbol:
    """The square root, constant at 0: that of a norm, whose argument vanishes with its derivative."""
    if not is_inexact(square.dtype):
        return to_dtype(root(to_dtype(square, F64)), square.dtype)
    nothing = zeros_like(square)
    is_zero = eq(square, nothing)
    return select(is_zero, nothing, sqrt(select(is_zero, ones_like(square), square)))


@implements(np.average)
def average(a: Any, axis: Any, weights: Any, returned: bool, keepdims: Any) -> Any:
    if weights is None:
        x = inexact(a)
        result = mean_over(x, axis, keepdims)
        count = math.prod(x.shape[i] for i in axes_of(axis, x.ndim))
        return (result, full_like(result, count)) if returned else result
    x, w = of_one_dtype(a, weights)
    if as_array(a).dtype.kind in "biu":
        x, w = (to_dtype(s, np.result_type(s.dtype, F64)) for s in (x, w))
    weight = broadcast_to(_aligned(w, x, axis), x.shape)
    scale = SUM(weight, axis, keepdims)
    scale = require(scale, ne(scale, zeros_like(scale)), **VANISHING)
    result = div(SUM(mul(x, weight), axis, keepdims), scale)
    return (result, scale) if returned else result


def _aligned(weights: Symbol, x: Symbol, axis: Any) -> Symbol:
    """Put the axes of weights that are given along `axis` where they belong."""
    axes = axes_of(axis, x.ndim)
    if weights.shape == x.shape:
        return weights
    if axis is None or weights.shape != tuple(x.shape[a] for a in axes):
        raise ShapeError(f"weights of shape {weights.shape} do not go along axis {axis} of an array of shape {x.shape}")
    ascending = transpose_to(weights, tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    return reshape_to(ascending, tuple(n if a in axes else 1 for a, n in enumerate(x.shape)))


# ---- covariances and correlations ------------------------------------------------------------------------------------


def cov(
    m: Any,
    y: Any = None,
    rowvar: Any = True,
    bias: Any = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """The covariances in the body of NumPy, which compares weights with 0, so that traced ones are not given to it."""
    is_known = not UPWARD.has_traced(aweights)
    importance = aweights if is_known else np.ones(np.shape(aweights))
    found = anew(inspect.unwrap(np.cov))(m, y, rowvar, bias, ddof, fweights, importance, dtype=dtype)
    if is_known or not found.size:
        return found
    rows = [XP.array(a, found.dtype, ndmin=2) for a in (m, y) if a is not None]
    turned = (np.ndim(m) != 1, len(rows[-1]) != 1)
    x = XP.concatenate([row if rowvar or not turn else row.T for row, turn in zip(rows, turned, strict=False)])
    weight = XP.asarray(aweights, float) * (1.0 if fweights is None else np.asarray(fweights, float))
    total, lost = XP.sum(weight), (0 if bias else 1) if ddof is None else ddof
    freedom = XP.maximum(total - lost * XP.sum(weight * aweights) / total, 0.0)
    centred = x - XP.sum(x * weight, 1, keepdims=True) / total
    products = XP.dot(centred, (centred * weight).T.conj())
    return XP.squeeze(products / freedom)


RULES[np.cov] = Body(cov)


# ---- without nan -----------------------------------------------------------------------------------------------------
# An element that is nan is replaced by one that changes nothing before anything is computed of it, so that it has no
# part in the derivative either.

ALL_NAN: dict[str, Any] = {
    "message": "All-NaN slice encountered",
    "remedy": "put a number in the place of nan: np.argmax(np.where(np.isnan(x), -np.inf, x))",
}


def present(x: Symbol, where: Any = True) -> Any:
    """The `where` of a reduction over the elements that are not nan and where `where` is true."""
    if x.dtype.kind not in "fc":
        return where
    numbers = bitwise_not(isnan(x))
    if where is True:
        return numbers
    return bitwise_and(*broadcast_all([numbers, as_symbol(where, BOOL)]))


def replaced(a: Any, value: Any) -> Symbol:
    """The operand with a number in the place of nan."""
    x = as_symbol(a)
    return masked(x, present(x), value) if x.dtype.kind in "fc" else x


@implements(np.nanmean)
def nanmean(a: Any, axis: Any, dtype: Any, keepdims: Any, where: Any) -> Symbol:
    x = as_symbol(a)
    check_inexact(x, dtype)
    return mean(x, axis, dtype, keepdims=keepdims, where=present(x, where))


def check_inexact(x: Symbol, dtype: Any) -> None:
    """Raise where what may have nan is taken in a dtype that has none."""
    if is_inexact(x.dtype) and dtype is not None and not is_inexact(native_dtype(dtype)):
        raise DtypeError("If a is inexact, then dtype must be inexact")


# ---- variances -------------------------------------------------------------------------------------------------------


@implements(np.nanvar)
def nanvar(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any, correction: Any) -> Symbol:
    freedom = delta_degrees(ddof, correction)
    if not is_inexact(as_symbol(a).dtype):
        return var(a, axis, dtype, ddof=freedom, keepdims=keepdims, where=where, mean=mean)
    x = as_symbol(a)
    check_inexact(x, dtype)
    chosen = present(x, where)
    if mean is not UNSET:
        distance, mean = to_dtype(RULES[np.subtract](x, mean), x.dtype), zeros_like(Aval(x.dtype))
    else:
        distance = x if x.dtype.kind == "c" else _from_least(x, axis, chosen)
    result = var(distance, axis, dtype, ddof=freedom, keepdims=keepdims, where=chosen, mean=mean)
    count = count_nonzero(broadcast_to(as_symbol(chosen, BOOL), x.shape), axis, keepdims=keepdims)
    too_few = le(count, full_like(count, int(np.floor(freedom))))
    return select(too_few, full_like(result, np.nan), result)


def _from_least(x: Symbol, axis: Any, where: Any) -> Symbol:
    """The distances to the least element (as Note [Variance about the first element], of those that count)."""
    if x.aval.size == 0:
        return x
    least = min_(x, axis, keepdims=True, initial=np.inf, where=where)
    return sub(x, broadcast_to(stop_gradient(least), x.shape))


@implements(np.nanstd)
def nanstd(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any, correction: Any) -> Symbol:
    variance = nanvar if is_inexact(as_symbol(a).dtype) else var
    freedom = delta_degrees(ddof, correction)
    return deviation(variance(a, axis, dtype, ddof=freedom, keepdims=keepdims, where=where, mean=mean))


# ---- extrema ---------------------------------------------------------------------------------------------------------


def _extremum(kind: Reduction) -> Callable[..., Symbol]:
    def rule(a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Symbol:
        x = as_symbol(a)
        if not is_inexact(x.dtype):
            return reduce(kind, x, axis, keepdims, initial, where)
        found = reduce(kind, replaced(x, kind.neutral(x.dtype)), axis, keepdims, initial, where)
        if is_given(initial):
            return found
        is_number = any_(broadcast_to(present(x, where), x.shape), axis, keepdims=keepdims)
        return select(is_number, found, constant(np.nan, found.dtype, found.shape))

    return rule


nanmax = implements(np.nanmax)(_extremum(MAX))
nanmin = implements(np.nanmin)(_extremum(MIN))


def _position(of_numbers: Callable[..., Symbol], least: float) -> Callable[..., Symbol]:
    def rule(a: Any, axis: Any, keepdims: Any) -> Symbol:
        x = as_symbol(a)
        found = of_numbers(replaced(x, least), axis, keepdims=keepdims)
        return require(found, any_(present(x), axis), **ALL_NAN) if is_inexact(x.dtype) else found

    return rule


nanargmax = implements(np.nanargmax)(_position(argmax, -np.inf))
nanargmin = implements(np.nanargmin)(_position(argmin, np.inf))
