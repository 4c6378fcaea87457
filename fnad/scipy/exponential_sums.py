"""The rules of logsumexp, softmax and log_softmax: exponentials of differences to the largest element."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DtypeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.operands import as_symbol, broadcast_all, common_dtype
from fnad.numpy.reductions import MAX, SUM
from fnad.numpy.registry import UNSET
from fnad.ops.arithmetic import add, div, strong_mul, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import eq, isfinite, select
from fnad.ops.elementary import exp, log
from fnad.ops.piecewise import abs_, sign
from fnad.ops.shape import broadcast_to, full_like, ones_like, reshape_to, zeros_like
from fnad.scipy.original import original


@original("scipy.special")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Return log(Σ b exp(a)) over axes (all if None), without overflow; -inf with derivative 0 where the sum is 0.

    The result has a's dtype, f64 for integers, and a's shape without the axes, or with size 1 there if `keepdims`.
    With `return_sign` it is log|Σ b exp(a)| and the sign of the sum. Complex numbers are refused.

    >>> logsumexp([1000.0, 1000.0])
    np.float64(1000.6931471805599)
    """
    if b is None:
        x = inexact(a)
        top = shift(x, axis)
        terms = exp(sub(x, broadcast_to(top, x.shape)))
    else:
        x, weights = broadcast_all([as_symbol(operand, _dtype(a, b)) for operand in (a, b)])
        top = shift(select(eq(weights, zeros_like(x)), full_like(x, -np.inf), x), axis)
        terms = strong_mul(weights, exp(sub(x, broadcast_to(top, x.shape))))
    total = total_over(terms, axis)
    shape = total.shape if keepdims else SUM(x, axis).shape
    result = reshape_to(_log_total(abs_(total) if return_sign else total, top), shape)
    return (result, reshape_to(sign(total), shape)) if return_sign else result


def _log_total(total: Symbol, top: Symbol) -> Symbol:
    is_zero = eq(total, zeros_like(total))
    result = add(log(select(is_zero, ones_like(total), total)), top)
    return select(is_zero, full_like(total, -np.inf), result)


@original("scipy.special")
def softmax(x: Any, axis: Any = None) -> Symbol:
    """Return exp(x) / Σ exp(x) over axes (all if None), without overflow, in x's shape and dtype, f64 for integers.

    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    a = inexact(x)
    terms = exp(sub(a, broadcast_to(shift(a, axis), a.shape)))
    return div(terms, broadcast_to(total_over(terms, axis), a.shape))


@original("scipy.special")
def log_softmax(x: Any, axis: Any = None) -> Symbol:
    """Return x - log(Σ exp(x)) over axes (all if None), without overflow, in x's shape and dtype, f64 for integers.

    >>> log_softmax([0.0, 0.0])
    array([-0.69314718, -0.69314718])
    """
    a = inexact(x)
    shifted = sub(a, broadcast_to(shift(a, axis), a.shape))
    return sub(shifted, broadcast_to(log(total_over(exp(shifted), axis)), a.shape))


def total_over(x: Symbol, axis: Any) -> Symbol:
    """Return the sum over axes, which stay with size 1."""
    return SUM(x, axis, True)


def shift(x: Symbol, axis: Any) -> Symbol:
    """Return the largest element where it is finite, else 0: a constant, on which no result here depends."""
    top = MAX(x, axis, True, -np.inf if x.aval.size == 0 else UNSET)
    return stop_gradient(select(isfinite(top), top, zeros_like(top)))


def inexact(a: Any) -> Symbol:
    """Return an operand in its floating-point dtype, f64 of integers."""
    return as_symbol(a, _dtype(a))


def _dtype(*operands: Any) -> Any:
    dtype = common_dtype(*operands)
    if dtype.kind == "c":
        raise DtypeError(f"sums of exponentials have no rule for {dtype}", remedy="take the real and imaginary parts")
    return F64 if dtype.kind in "biu" else dtype
