"""Ranks and condition numbers of matrices, and the norms that numpy.linalg has under two more names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.errors import MatrixError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.numpy.matrices import floating
from fnad.numpy.norms import norm
from fnad.numpy.operands import as_symbol, axes_of, broadcast_all
from fnad.numpy.reductions import ANY, UNSET
from fnad.numpy.registry import implements
from fnad.ops import linalg, spectrum
from fnad.ops.arithmetic import div, mul
from fnad.ops.comparison import bitwise_and, bitwise_not, gt, isnan, ne, select
from fnad.ops.conversion import convert
from fnad.ops.matrix import check_square
from fnad.ops.piecewise import abs_
from fnad.ops.reduction import reduce_max
from fnad.ops.shape import full_like, reduce_sum, reshape_to, slice_axis, transpose_to, zeros_like

# ---- ranks -----------------------------------------------------------------------------------------------------------


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: Any = False, *, rtol: Any = None) -> Symbol:  # noqa: N803
    if rtol is not None and tol is not None:
        raise ShapeError("`tol` and `rtol` can't be both set.")
    (x,) = floating(A)
    if x.ndim < 2:
        return convert(ANY(ne(x, zeros_like(x)), None, False, UNSET, UNSET), dtype=I64)
    values = abs_(spectrum.eigvalsh(x, uplo="L")) if hermitian else spectrum.svdvals(x)
    if tol is not None:
        return count_above(values, as_symbol(tol, values.dtype))
    return rank_of(values, max(x.shape[-2:]) * np.finfo(values.dtype).eps if rtol is None else rtol)


def rank_of(values: Symbol, rtol: Any) -> Symbol:
    """Return how many of the singular values are larger than `rtol` times the largest."""
    if values.shape[-1] == 0:
        return count_above(values, as_symbol(0.0, values.dtype))
    largest = reduce_max(values, axes=(values.ndim - 1,))
    return count_above(values, mul(*broadcast_all([largest, as_symbol(rtol, values.dtype)])))


def count_above(values: Symbol, limit: Symbol) -> Symbol:
    """Return how many values along the last axis are larger than a limit."""
    values, limit = broadcast_all([values, reshape_to(limit, (*limit.shape, 1))])
    return reduce_sum(convert(gt(values, limit), dtype=I64), axes=(values.ndim - 1,))


# ---- condition numbers -----------------------------------------------------------------------------------------------


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Symbol:
    (matrix,) = floating(x)
    if matrix.ndim >= 2 and 0 in matrix.shape[-2:]:
        raise MatrixError("cond is not defined on empty arrays")
    ratio = _ratio(matrix, p)
    has_nan = ANY(isnan(matrix), (-2, -1), False, UNSET, UNSET)
    return select(bitwise_and(isnan(ratio), bitwise_not(has_nan)), full_like(ratio, np.inf), ratio)


def _ratio(x: Symbol, order: Any) -> Symbol:
    if order is None or order in (2, -2):
        values = spectrum.svdvals(x)
        n = values.shape[-1]
        first, last = (slice_axis(values, values.ndim - 1, i, i + 1) for i in (0, n - 1))
        ratio = div(last, first) if order == -2 else div(first, last)
        return reshape_to(ratio, values.shape[:-1])
    check_square("cond", x.aval)
    return mul(norm(x, order, (-2, -1)), norm(linalg.inv_or_nan(x), order, (-2, -1)))


# ---- norms -----------------------------------------------------------------------------------------------------------


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Symbol:  # noqa: A002
    return norm(as_symbol(x), ord, (-2, -1), keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Symbol:  # noqa: A002
    symbol = as_symbol(x)
    axes = axes_of(axis, symbol.ndim)
    rest = tuple(i for i in range(symbol.ndim) if i not in axes)
    shape = tuple(symbol.shape[i] for i in rest)
    flat = reshape_to(transpose_to(symbol, (*axes, *rest)), (_size(symbol, axes), *shape))
    result = norm(flat, ord, 0)
    return reshape_to(result, tuple(1 if i in axes else n for i, n in enumerate(symbol.shape))) if keepdims else result


def _size(x: Symbol, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[i] for i in axes)
