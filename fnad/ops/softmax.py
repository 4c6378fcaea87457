"""softmax and its logarithm, whose tails keep their digits, in their first two derivatives too.

    p = exp(x) / Σ exp(x)      dp = p · (dx - Σ p dx)
    y = log p                  dy = dx - Σ p dx

An element with more than half of the sum is computed without differences from 1. With Σ' the sum of all elements but
that one, its log p is -log1p(Σ' exp(x - x_max)), and its dx - Σ p dx is dx Σ' p - Σ' p dx.

The difference d of an element from the largest one is rounded by r, and exp(d + r) is exp(d) + exp(d) r: half a unit in
the last place of d may be hundreds of units of exp(d).

A second derivative multiplies three probabilities. For it to be within 4 units, p is rounded once: exponentials, their
sum and its inverse are sums of two floats. The terms of the sum are split at a common bit (Rump, Ogita & Oishi,
"Accurate floating-point summation", SIAM J. Sci. Comput. 31, 2008), so that the sum of the high parts is exact. All are
multiplied by 2**100, and the low part of the inverse is relative to the high part, so that none is subnormal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fnad.ir.axes import Along, Over
from fnad.ir.primitive import Library, Partials, Primitive, Pull, Rule, Sample, Scalar, declare
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.arithmetic import strong_mul
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import eq, gt, isfinite, lt, select
from fnad.ops.constructors import REALS, by_name, check_dtype, elementwise, infer_elementwise, primitive
from fnad.ops.elementary import log1p
from fnad.ops.reduction import reduce_max
from fnad.ops.shape import Ints, broadcast_in_dim, check_axes, full_like, ones_like, reduce_sum, sample, zeros_like
from fnad.scalar import operations
from fnad.scalar.operations import NEARLY_ZERO


def _infer(name: str, x: Aval, *, axes: Ints) -> Aval:
    check_dtype(name, x.dtype, REALS)
    check_axes(name, axes, x.ndim)
    return x


def _infer_complement(x: Aval, *, axes: Ints) -> Aval:
    _infer("softmax_complement", x, axes=axes)
    return Aval(x.dtype, tuple(n for a, n in enumerate(x.shape) if a not in axes))


def _samples() -> Iterable[Sample]:
    yield from _complement_samples()
    yield Sample((np.zeros((2, 0)),), {"axes": (1,)})
    yield Sample((np.array([[0.0, -800.0, -np.inf], [5.0, 5.0, -1e3]]),), {"axes": (1,)}, smooth=False)


def _complement_samples() -> Iterable[Sample]:
    for dtype in by_name(REALS):
        yield Sample((sample((2, 3), dtype),), {"axes": (1,)})
    yield Sample((sample((2, 3, 2)),), {"axes": (0, 2)})


# ---- exponentials --------------------------------------------------------------------------------------------------


def _part(name: str, evaluate: Callable[..., Any], doc: str) -> Primitive:
    """A part of an exponential; the sum of the parts has the derivative that is the sum of theirs."""
    return declare(
        name,
        infer_elementwise(name, 1, REALS, None),
        evaluate,
        Partials((lambda y, x: y,)),
        Scalar(f"{name}({{0}})", 25),
        _part_samples,
        doc,
    )


def _part_samples() -> Iterable[Sample]:
    for dtype in by_name(REALS):
        yield Sample((np.array([0.0, -1e-30, -0.3, -2.0, -70.0, -np.inf, np.nan], dtype),), smooth=False)


exp_high = _part("exp_high", operations.exp_high, "The larger part of 2**100 exp(x) for x <= 0, which is normal.")
exp_low = _part("exp_low", operations.exp_low, "2**100 exp(x) - exp_high(x), to more digits than exp(x) has.")
muladd = elementwise(
    "muladd",
    operations.muladd,
    "muladd({0}, {1}, {2})",
    (lambda _, x, y, z: y, lambda _, x, y, z: x, lambda _, x, y, z: ones_like(z)),
    domain=REALS,
    doc="x y + z, rounded once where the processor can.",
)
RAISED = 2.0**100
GRID = {8: 1.5 * RAISED * 2.0**24, 4: 1.5 * RAISED * 2.0**12}
"""A number to whose last bit the high parts are rounded, by the bytes of the dtype."""


class SoftmaxTerms(NamedTuple):
    """The exponentials high + low of the differences from the largest element, and their sum total + rest.

    All but the differences are multiplied by 2**100.
    """

    shifted: Any
    high: Any
    low: Any
    total: Any
    rest: Any

    def others(self) -> Any:
        """The sum without the largest term, exactly 2**100."""
        return (self.total - RAISED) + self.rest

    def inverse(self, multiply_add: Callable[..., Any], one: Any) -> tuple[Any, Any]:
        """The inverse of the sum as a rounded number, and the relative error of that."""
        total = self.total + self.rest
        inverse = one / total
        return inverse, multiply_add(-inverse, total, one) - inverse * ((self.total - total) + self.rest)


def _rounded_off(x: Any, y: Any, difference: Any) -> Any:
    """The rest of x - y beside the rounded difference: an exact number (Knuth, TAOCP 2, 4.2.2)."""
    back = difference - x
    return (x - (difference - back)) - (y + back)


class SoftmaxRow(NamedTuple):
    """The largest element of each row, the inverse sum with its relative error, and one minus the largest softmax."""

    top: Symbol
    inverse: Symbol
    error: Symbol
    complement: Symbol


def _by_parts(x: Symbol, axes: Ints) -> tuple[SoftmaxTerms, SoftmaxRow]:
    """The terms, and the numbers of rows, all of which are computed before the elements that depend on them."""
    size = x.dtype.itemsize
    top = stop_gradient(reduce_max(x, axes=axes))
    over_row = spread(top, x, axes)
    shifted = x - over_row
    is_term = gt(shifted, full_like(x, NEARLY_ZERO[size]))
    rest = select(is_term, _rounded_off(x, over_row, shifted), zeros_like(x))
    high, low = exp_high(shifted), exp_low(shifted)
    low = muladd(high + low, rest, low)
    whole = (high + GRID[size]) - GRID[size]
    terms = SoftmaxTerms(shifted, high, low, reduce_sum(whole, axes=axes), reduce_sum((high - whole) + low, axes=axes))
    inverse, error = terms.inverse(muladd, ones_like(terms.total))
    others = terms.others()
    return terms, SoftmaxRow(top, inverse, error, muladd(others, inverse, others * error * inverse))


def softmax_by_parts(x: Symbol, axes: Ints) -> Symbol:
    """The softmax by other primitives."""
    if not x.aval.size:
        return x
    terms, row = _by_parts(x, axes)
    inverse, error = spread(row.inverse, x, axes), spread(row.error, x, axes)
    return muladd(terms.high, inverse, muladd(terms.high, error, terms.low) * inverse)


def log_softmax_by_parts(x: Symbol, axes: Ints) -> Symbol:
    """The logarithm of the softmax by other primitives."""
    if not x.aval.size:
        return x
    terms, row = _by_parts(x, axes)
    is_infinite = eq(row.top, full_like(row.top, np.inf))
    return terms.shifted - spread(select(is_infinite, row.top, log1p(terms.others() * (1.0 / RAISED))), x, axes)


def complement_by_parts(x: Symbol, axes: Ints) -> Symbol:
    """One minus the largest element of the softmax by other primitives; 1 for a row without elements."""
    if not x.aval.size:
        return full_like(_infer_complement(x.aval, axes=axes), 1)
    return _by_parts(x, axes)[1].complement


# ---- values --------------------------------------------------------------------------------------------------------


def _terms(x: Any, axes: Ints) -> tuple[Any, SoftmaxTerms]:
    """The largest elements of rows, and the terms."""
    size = x.dtype.itemsize
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        shifted = x - top
        rest = np.where(shifted > NEARLY_ZERO[size], _rounded_off(x, top, shifted), x.dtype.type(0))
    high, low = operations.exp_high(shifted), operations.exp_low(shifted)
    low = low + (high + low) * rest
    whole = (high + GRID[size]) - GRID[size]
    total, beside = (np.sum(terms, axis=axes, keepdims=True) for terms in (whole, (high - whole) + low))
    return top, SoftmaxTerms(shifted, high, low, total, beside)


def _softmax(x: Any, *, axes: Ints) -> Any:
    _, terms = _terms(x, axes)
    inverse, error = terms.inverse(operations.muladd, x.dtype.type(1))
    return operations.muladd(terms.high, inverse, (terms.high * error + terms.low) * inverse)


def _log_softmax(x: Any, *, axes: Ints) -> Any:
    top, terms = _terms(x, axes)
    return terms.shifted - np.where(top == np.inf, top, np.log1p(terms.others() * (1.0 / RAISED)))


def spread(total: Symbol, x: Symbol, axes: Ints) -> Symbol:
    """A value of each row as one of each element of x, whose rows lie along `axes`."""
    return broadcast_in_dim(total, shape=x.shape, dims=tuple(a for a in range(x.ndim) if a not in axes))


def finite_maximum(x: Symbol, axes: Ints) -> Symbol:
    """The largest element of each row where it is finite, otherwise 0; a constant, on which no softmax depends."""
    top = reduce_max(x, axes=axes)
    return stop_gradient(select(isfinite(top), top, zeros_like(top)))


# ---- derivatives ---------------------------------------------------------------------------------------------------


def _pull_softmax(results: Any, primals: Any, cts: Any, *, axes: Ints) -> list[Symbol]:
    """P · (ct - Σ p ct)."""
    (p,), (x,), (ct,) = results, primals, cts
    if not x.aval.size:
        return [ct]
    most = gt(p, full_like(p, 0.5))
    terms = strong_mul(ct, p)
    total = _total_beside(terms, select(most, zeros_like(p), terms), most, axes)
    return [strong_mul(strong_mul(ct, _kept(x, most, axes)) - total, p)]


def _pull_log_softmax(results: Any, primals: Any, cts: Any, *, axes: Ints) -> list[Symbol]:
    """Ct - p Σ ct; the sums do not depend on p."""
    (x,), (ct,) = primals, cts
    if not x.aval.size:
        return [ct]
    top = reduce_max(x, axes=axes)
    has_most = lt(softmax_complement(x, axes=axes), full_like(top, 0.5))
    is_most = eq(x, spread(select(has_most, top, full_like(top, np.nan)), x, axes))
    p = softmax(x, axes=axes)
    most = gt(p, full_like(p, 0.5))
    total = _total_beside(ct, select(is_most, zeros_like(p), ct), most, axes)
    return [strong_mul(ct, _kept(x, most, axes)) + strong_mul(-total, p)]


def _pull_complement(results: Any, primals: Any, cts: Any, *, axes: Ints) -> list[Symbol]:
    """The negative derivative of the largest element."""
    (others,), (x,), (ct,) = results, primals, cts
    is_top = eq(x, spread(reduce_max(x, axes=axes), x, axes))
    slope = select(is_top, -spread(others, x, axes), softmax(x, axes=axes))
    return [strong_mul(spread(strong_mul(ct, 1.0 - others), x, axes), slope)]


def _kept(x: Symbol, most: Symbol, axes: Ints) -> Symbol:
    """1, or 1 - p where p is more than a half."""
    return select(most, spread(softmax_complement(x, axes=axes), x, axes), ones_like(x))


def _total_beside(terms: Symbol, others: Symbol, most: Symbol, axes: Ints) -> Symbol:
    """The sum of the terms; where `_kept` is 1 - p, the sum of the other terms."""
    total, beside = (spread(reduce_sum(each, axes=axes), terms, axes) for each in (terms, others))
    return select(most, beside, total)


def _along(name: str, evaluate: Any, pull: Rule, doc: str) -> Primitive:
    lower = Library(raises=False, dispatched=True)
    return declare(name, partial(_infer, name), evaluate, Pull(pull), lower, _samples, doc, axes=Along("axes"))


softmax = _along("softmax", _softmax, _pull_softmax, "exp(x) divided by its sum over `axes`, without overflow.")
log_softmax = _along("log_softmax", _log_softmax, _pull_log_softmax, "Logarithm of the softmax over `axes`.")


@primitive(
    _infer_complement,
    Pull(_pull_complement),
    Library(raises=False, dispatched=True),
    _complement_samples,
    axes=Over("axes"),
)
def softmax_complement(x: Any, *, axes: Ints) -> Any:
    """One minus the largest element of the softmax over `axes`, without loss of digits."""
    _, terms = _terms(x, axes)
    complement = terms.others() / (terms.total + terms.rest) if x.size else np.ones_like(terms.total)
    return np.squeeze(complement, axis=axes)
