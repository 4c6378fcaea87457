"""softmax and its logarithm, whose tails keep their digits, in their first two derivatives too.

    p = exp(x) / Σ exp(x)      dp = p · (dx - Σ p dx)
    y = log p                  dy = dx - Σ p dx

An element with more than half of the sum is computed without differences from 1. With Σ' the sum of all elements but
that one, its log p is -log1p(Σ' exp(x - x_max)), and its dx - Σ p dx is dx Σ' p - Σ' p dx.

The difference d of an element from the largest one is rounded by r, and exp(d + r) is exp(d) + exp(d) r: half a unit in
the last place of d may be hundreds of units of exp(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fnad.ir.axes import Along
from fnad.ir.primitive import Library, Primitive, Pull, Rule, Sample, register
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.arithmetic import strong_mul
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import bitwise_and, gt, isfinite, lt, select
from fnad.ops.constructors import REALS, by_name, check_dtype
from fnad.ops.elementary import exp, log1p
from fnad.ops.reduction import reduce_max
from fnad.ops.shape import Ints, broadcast_in_dim, check_axes, full_like, ones_like, reduce_sum, sample, zeros_like


def _infer(name: str) -> Callable[..., Aval]:
    def infer(x: Aval, *, axes: Ints) -> Aval:
        check_dtype(name, x.dtype, REALS)
        check_axes(name, axes, x.ndim)
        return x

    return infer


def _samples() -> Iterable[Sample]:
    for dtype in by_name(REALS):
        yield Sample((sample((2, 3), dtype),), {"axes": (1,)})
    yield Sample((sample((2, 3, 2)),), {"axes": (0, 2)})
    yield Sample((np.zeros((2, 0)),), {"axes": (1,)})
    yield Sample((np.array([[0.0, -800.0, -np.inf], [5.0, 5.0, -1e3]]),), {"axes": (1,)}, smooth=False)


# ---- values --------------------------------------------------------------------------------------------------------


def _terms(x: Any, axes: Ints) -> tuple[Any, Any, Any]:
    """The differences from the largest element, or from 0 if it is infinite; their exponentials; the sum of these."""
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    zero = x.dtype.type(0)
    top = np.where(np.isfinite(top), top, zero)
    shifted = x - top
    with np.errstate(invalid="ignore"):
        rest = np.where(np.isfinite(shifted), _rounded_off(x, top, shifted), zero)
        terms = np.exp(shifted)
        terms += terms * rest
    return shifted, terms, np.sum(terms, axis=axes, keepdims=True)


def _rounded_off(x: Any, y: Any, difference: Any) -> Any:
    """The rest of x - y beside the rounded difference: an exact number (Knuth, TAOCP 2, 4.2.2)."""
    back = difference - x
    return (x - (difference - back)) - (y + back)


def _softmax(x: Any, *, axes: Ints) -> Any:
    _, terms, total = _terms(x, axes)
    return terms / total


def _log_softmax(x: Any, *, axes: Ints) -> Any:
    shifted, terms, total = _terms(x, axes)
    p = terms / total
    others = total * np.sum(np.where(p > 0.5, x.dtype.type(0), p), axis=axes, keepdims=True)
    return shifted - np.log1p(np.where((total > 0) & (total < 2), others, total - 1))


def spread(total: Symbol, x: Symbol, axes: Ints) -> Symbol:
    """A value of each row as one of each element of x, whose rows lie along `axes`."""
    return broadcast_in_dim(total, shape=x.shape, dims=tuple(a for a in range(x.ndim) if a not in axes))


def finite_maximum(x: Symbol, axes: Ints) -> Symbol:
    """The largest element of each row where it is finite, otherwise 0; a constant, on which no softmax depends."""
    top = reduce_max(x, axes=axes)
    return stop_gradient(select(isfinite(top), top, zeros_like(top)))


def _symbolic_terms(x: Symbol, axes: Ints) -> tuple[Symbol, Symbol, Symbol]:
    top = spread(finite_maximum(x, axes), x, axes)
    shifted = x - top
    rest = select(isfinite(shifted), _rounded_off(x, top, shifted), zeros_like(x))
    terms = exp(shifted)
    terms += terms * rest
    total = reduce_sum(terms, axes=axes)
    return shifted, terms / spread(total, x, axes), total


def softmax_by_parts(x: Symbol, axes: Ints) -> Symbol:
    """The softmax by other primitives."""
    return _symbolic_terms(x, axes)[1] if x.aval.size else x


def log_softmax_by_parts(x: Symbol, axes: Ints) -> Symbol:
    """The logarithm of the softmax by other primitives."""
    if not x.aval.size:
        return x
    shifted, p, total = _symbolic_terms(x, axes)
    has_few = bitwise_and(gt(total, zeros_like(total)), lt(total, full_like(total, 2.0)))
    return shifted - spread(log1p(select(has_few, total * _others(p, axes), total - 1.0)), x, axes)


def _others(p: Symbol, axes: Ints) -> Symbol:
    """The sum of p without an element that is more than half of it."""
    return reduce_sum(select(gt(p, full_like(p, 0.5)), zeros_like(p), p), axes=axes)


# ---- derivatives ---------------------------------------------------------------------------------------------------


def _pull_softmax(results: Any, primals: Any, cts: Any, *, axes: Ints) -> list[Symbol]:
    """P · (ct - Σ p ct)."""
    (p,), (ct,) = results, cts
    total = _total_beside(strong_mul(ct, p), p, axes)
    return [strong_mul(strong_mul(ct, _kept(p, axes)) - total, p)]


def _pull_log_softmax(results: Any, primals: Any, cts: Any, *, axes: Ints) -> list[Symbol]:
    """Ct - p Σ ct."""
    (x,), (ct,) = primals, cts
    p = softmax(x, axes=axes)
    return [strong_mul(ct, _kept(p, axes)) + strong_mul(-_total_beside(ct, p, axes), p)]


def _kept(p: Symbol, axes: Ints) -> Symbol:
    """1, or 1 - p where that loses digits."""
    return select(gt(p, full_like(p, 0.5)), spread(_others(p, axes), p, axes), ones_like(p))


def _total_beside(terms: Symbol, p: Symbol, axes: Ints) -> Symbol:
    """The sum of the terms; where `_kept` is 1 - p, the sum of the other terms."""
    most = gt(p, full_like(p, 0.5))
    others = reduce_sum(select(most, zeros_like(p), terms), axes=axes)
    return select(most, spread(others, p, axes), spread(reduce_sum(terms, axes=axes), p, axes))


def _along(name: str, evaluate: Any, pull: Rule, doc: str) -> Primitive:
    lower = Library(raises=False, dispatched=True)
    return register(Primitive(name, _infer(name), evaluate, Pull(pull), lower, _samples, doc, axes=Along("axes")))


softmax = _along("softmax", _softmax, _pull_softmax, "exp(x) divided by its sum over `axes`, without overflow.")
log_softmax = _along("log_softmax", _log_softmax, _pull_log_softmax, "Logarithm of the softmax over `axes`.")
