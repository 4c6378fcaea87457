"""Reductions that leave nan out: those of the elements where there is none.

An element that is nan is replaced by one that changes nothing before anything is computed of it, so that it has no part
in the derivative either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import DtypeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, Aval, is_inexact, native_dtype
from fnad.numpy.operands import as_symbol, broadcast_all, to_dtype
from fnad.numpy.reductions import (
    MAX,
    MIN,
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
from fnad.numpy.registry import RULES, UNSET, implements
from fnad.numpy.statistics import delta_degrees, deviation, mean, var
from fnad.ops.arithmetic import sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import bitwise_and, bitwise_not, isnan, le, select
from fnad.ops.requirement import require
from fnad.ops.shape import broadcast_to, constant, full_like, zeros_like

ALL_NAN: dict[str, Any] = {
    "message": "All-NaN slice encountered",
    "remedy": "put a number in the place of nan: np.argmax(np.where(np.isnan(x), -np.inf, x))",
}


def present(x: Symbol, where: Any = True) -> Any:
    """Return where elements are no nan and `where` is true, as the `where` of a reduction."""
    if x.dtype.kind not in "fc":
        return where
    numbers = bitwise_not(isnan(x))
    if where is True:
        return numbers
    return bitwise_and(*broadcast_all([numbers, as_symbol(where, BOOL)]))


def replaced(a: Any, value: Any) -> Symbol:
    """Return the operand with a number in the place of nan."""
    x = as_symbol(a)
    return masked(x, present(x), value) if x.dtype.kind in "fc" else x


# ---- sums, products, means -------------------------------------------------------------------------------------------


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
    """Return the distances to the least element (as Note [Variance about the first element], of those that count)."""
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
