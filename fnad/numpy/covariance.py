"""Covariances and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ArgumentTypeError, DtypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, dtype_name, is_inexact, native_dtype
from fnad.numpy.choosing import clip
from fnad.numpy.contractions import dot
from fnad.numpy.creating import diag
from fnad.numpy.joining import join
from fnad.numpy.operands import as_array, common_dtype, static_array, static_number, to_dtype
from fnad.numpy.rearranging import fresh, squeeze
from fnad.numpy.reductions import sum_
from fnad.numpy.registry import RULES, implements
from fnad.numpy.statistics import mean_over
from fnad.numpy.ufuncs import conjugate, divide, multiply, subtract
from fnad.numpy.views import ArrayView
from fnad.ops.comparison import gt, select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.shape import constant, reshape_to, transpose_to, zeros_like


@implements(np.cov)
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
) -> ArrayView:
    ddof = None if ddof is None else static_number(ddof, "ddof")
    if ddof is not None and ddof != int(ddof):
        raise ShapeError("ddof must be integer")
    x = _variables(m, y, rowvar, dtype)
    if x.shape[0] == 0:
        return fresh(constant(0, F64, (0, 0)))
    lost = int(ddof) if ddof is not None else 0 if bias else 1
    counts, importance = _counts(fweights, x), _importance(aweights, x)
    weights = [w for w in (counts, importance) if w is not None]
    weight = multiply(*weights) if len(weights) == 2 else weights[0] if weights else None
    centred = subtract(x, _mean(x, weight))
    products = dot(centred, conjugate(transpose_to(centred if weight is None else multiply(centred, weight), (1, 0))))
    scale = divide(1, _freedom(x, weight, importance, lost))
    return fresh(squeeze(to_dtype(multiply(products, scale), products.dtype)).read())


def _variables(m: Any, y: Any, rowvar: Any, dtype: Any) -> Symbol:
    """Return a matrix with one row for each variable."""
    given = [as_array(a) for a in (m, y) if a is not None]
    for name, a in zip(("m", "y"), given, strict=False):
        if a.ndim > 2:
            raise ShapeError(f"{name} has more than 2 dimensions")
    wanted = native_dtype(dtype) if dtype is not None else np.result_type(common_dtype(*given), F64)
    if not is_inexact(wanted):
        raise DtypeError(f"a covariance cannot be computed in {dtype_name(wanted)}", remedy="give a float dtype")
    rows = [to_dtype(reshape_to(a, (1,) * (2 - a.ndim) + a.shape), wanted) for a in given]
    if not rowvar:
        turned = [given[0].ndim != 1, *(row.shape[0] != 1 for row in rows[1:])]
        rows = [transpose_to(row, (1, 0)) if turn else row for row, turn in zip(rows, turned, strict=True)]
    return join(rows, 0) if rows[0].shape[0] else rows[0]


def _counts(fweights: Any, x: Symbol) -> Any:
    if fweights is None:
        return None
    counts = np.asarray(static_array(fweights), float)
    if not np.all(counts == np.around(counts)):
        raise ArgumentTypeError("fweights must be integer")
    if np.any(counts < 0):
        raise ShapeError("fweights cannot be negative")
    return _checked(counts, "fweights", x)


def _importance(aweights: Any, x: Symbol) -> Any:
    return None if aweights is None else _checked(as_array(aweights, F64), "aweights", x)


def _checked(weights: Any, name: str, x: Symbol) -> Any:
    if weights.ndim > 1:
        raise ShapeError(f"cannot handle multidimensional {name}")
    if weights.shape[0] != x.shape[1]:
        raise ShapeError(f"incompatible numbers of samples and {name}")
    return weights


def _mean(x: Symbol, weight: Any) -> Any:
    if weight is None:
        return mean_over(x, 1, True, True)
    return divide(sum_(multiply(x, weight), 1, keepdims=True), sum_(weight))


def _freedom(x: Symbol, weight: Any, importance: Any, lost: int) -> Any:
    """Return the number of degrees of freedom, not less than 0."""
    if weight is None:
        return np.float64(max(x.shape[1] - lost, 0))
    total = sum_(weight)
    correction: Any = lost
    if importance is not None and lost:
        correction = divide(multiply(lost, sum_(multiply(weight, importance))), total)
    count = subtract(total, correction)
    return select(gt(count, zeros_like(count)), count, zeros_like(count))


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    c = cov(x, y, rowvar, dtype=dtype).read()
    if c.ndim == 0:
        return divide(c, c)
    variances = diag(c).read()
    deviation = RULES[np.sqrt](real(variances) if variances.dtype.kind == "c" else variances)
    n = deviation.shape[0]
    c = divide(divide(c, reshape_to(deviation, (n, 1))), reshape_to(deviation, (1, n)))
    if c.dtype.kind == "c":
        return complex_(*[clip(part(c), -1, 1) for part in (real, imag)])
    return clip(c, -1, 1)
