"""Functions of scipy.special: its ufuncs by name, so that SciPy need not be imported, and logsumexp with its kin."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.loops import ufunc_rule
from fnad.numpy.operands import as_symbol, broadcast_all, common_dtype
from fnad.numpy.reductions import MAX, SUM, UNSET
from fnad.numpy.registry import RULES, Rule
from fnad.ops import special
from fnad.ops.arithmetic import add, div, mul, neg, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import eq, isfinite, select
from fnad.ops.elementary import exp, log, log1p
from fnad.ops.shape import broadcast_to, full_like, ones_like, reshape_to, zeros_like

# ---- ufuncs ----------------------------------------------------------------------------------------------------------

UFUNCS: dict[str, Callable[..., Symbol]] = {
    "erf": special.erf,
    "erfc": special.erfc,
    "expit": special.logistic,
    "logit": lambda p: sub(log(p), log1p(neg(p))),
    "log_expit": lambda x: neg(special.logaddexp(zeros_like(x), neg(x))),
}


def special_rule(ufunc: np.ufunc) -> Rule | None:
    """Return the rule of a ufunc of scipy.special, if it is one and has one."""
    name = ufunc.__name__
    if name not in UFUNCS or getattr(sys.modules.get("scipy.special"), name, None) is not ufunc:
        return None
    RULES[ufunc] = ufunc_rule(ufunc, UFUNCS[name])
    return RULES[ufunc]


# ---- sums of exponentials --------------------------------------------------------------------------------------------


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Symbol:
    """Return log(Σ b exp(a)), -inf with derivative 0 where the sum is 0."""
    x = as_symbol(a, _inexact_dtype(a) if b is None else _inexact_dtype(a, b))
    weights = ()
    if b is not None:
        x, *weights = broadcast_all([x, as_symbol(b, x.dtype)])
    top = shift(x, axis)
    terms = exp(sub(x, broadcast_to(top, x.shape)))
    total = SUM(reduce(mul, weights, terms), axis, True, UNSET, UNSET)
    is_zero = eq(total, zeros_like(total))
    result = add(log(select(is_zero, ones_like(total), total)), top)
    result = select(is_zero, full_like(total, -np.inf), result)
    return result if keepdims else reshape_to(result, SUM(x, axis, False, UNSET, UNSET).shape)


def softmax(x: Any, axis: Any = None) -> Symbol:
    """Return exp(x) / Σ exp(x)."""
    a = _inexact(x)
    terms = exp(sub(a, broadcast_to(shift(a, axis), a.shape)))
    return div(terms, broadcast_to(SUM(terms, axis, True, UNSET, UNSET), a.shape))


def log_softmax(x: Any, axis: Any = None) -> Symbol:
    """Return x - log(Σ exp(x))."""
    a = _inexact(x)
    shifted = sub(a, broadcast_to(shift(a, axis), a.shape))
    total = SUM(exp(shifted), axis, True, UNSET, UNSET)
    return sub(shifted, broadcast_to(log(total), a.shape))


def shift(x: Symbol, axis: Any) -> Symbol:
    """Return the largest element where it is finite, else 0: a constant, on which no result here depends."""
    top = MAX(x, axis, True, -np.inf if x.aval.size == 0 else UNSET, UNSET)
    return stop_gradient(select(isfinite(top), top, zeros_like(top)))


def _inexact_dtype(*operands: Any) -> Any:
    dtype = common_dtype(*operands)
    return F64 if dtype.kind in "biu" else dtype


def _inexact(a: Any) -> Symbol:
    return as_symbol(a, _inexact_dtype(a))
