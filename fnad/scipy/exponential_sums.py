"""The rules of logsumexp, softmax and log_softmax: exponentials of differences to the largest element."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from fnad.errors import DtypeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.operands import as_symbol, broadcast_all, common_dtype
from fnad.numpy.reductions import MAX, SUM, UNSET
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import eq, isfinite, select
from fnad.ops.elementary import exp, log
from fnad.ops.piecewise import abs_, sign
from fnad.ops.shape import broadcast_to, full_like, ones_like, reshape_to, zeros_like


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Return log(Σ b exp(a)), -inf with derivative 0 where the sum is 0; with its sign if wanted."""
    x = inexact(a) if b is None else as_symbol(a, _dtype(a, b))
    weights = ()
    if b is not None:
        x, *weights = broadcast_all([x, as_symbol(b, x.dtype)])
    top = shift(x, axis)
    total = total_over(reduce(mul, weights, exp(sub(x, broadcast_to(top, x.shape)))), axis)
    size = abs_(total) if return_sign else total
    is_zero = eq(size, zeros_like(size))
    result = add(log(select(is_zero, ones_like(size), size)), top)
    result = select(is_zero, full_like(size, -np.inf), result)
    results = tuple(
        r if keepdims else reshape_to(r, SUM(x, axis, False, UNSET, UNSET).shape) for r in (result, sign(total))
    )
    return results if return_sign else results[0]


def softmax(x: Any, axis: Any = None) -> Symbol:
    """Return exp(x) / Σ exp(x)."""
    a = inexact(x)
    terms = exp(sub(a, broadcast_to(shift(a, axis), a.shape)))
    return div(terms, broadcast_to(total_over(terms, axis), a.shape))


def log_softmax(x: Any, axis: Any = None) -> Symbol:
    """Return x - log(Σ exp(x))."""
    a = inexact(x)
    shifted = sub(a, broadcast_to(shift(a, axis), a.shape))
    return sub(shifted, broadcast_to(log(total_over(exp(shifted), axis)), a.shape))


def total_over(x: Symbol, axis: Any) -> Symbol:
    """Return the sum over axes, which stay with size 1."""
    return SUM(x, axis, True, UNSET, UNSET)


def shift(x: Symbol, axis: Any) -> Symbol:
    """Return the largest element where it is finite, else 0: a constant, on which no result here depends."""
    top = MAX(x, axis, True, -np.inf if x.aval.size == 0 else UNSET, UNSET)
    return stop_gradient(select(isfinite(top), top, zeros_like(top)))


def inexact(a: Any) -> Symbol:
    """Return an operand in its floating-point dtype, f64 of integers."""
    return as_symbol(a, _dtype(a))


def _dtype(*operands: Any) -> Any:
    dtype = common_dtype(*operands)
    if dtype.kind == "c":
        raise DtypeError(f"sums of exponentials have no rule for {dtype}", remedy="take the real and imaginary parts")
    return F64 if dtype.kind in "biu" else dtype
