"""Norms of vectors and matrices. At 0 they have derivative 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, is_complex
from fnad.numpy.operands import as_symbol, axes_of, reduced_shape, static_number, to_dtype
from fnad.numpy.reductions import MAX, MIN, SUM, UNSET
from fnad.numpy.registry import implements
from fnad.numpy.statistics import root
from fnad.numpy.ufuncs import absolute, power
from fnad.ops.arithmetic import add, mul
from fnad.ops.comparison import eq, ne, select
from fnad.ops.conversion import imag, real
from fnad.ops.shape import full_like, ones_like, reshape_to, transpose_to, zeros_like
from fnad.ops.spectrum import svdvals


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Symbol:  # noqa: A002
    symbol = as_symbol(x)
    symbol = to_dtype(symbol, F64) if symbol.dtype.kind in "biu" else symbol
    ord = static_number(ord, "the order of a norm")  # noqa: A001
    axes = axes_of(axis, symbol.ndim)
    if ord is None and (axis is None or len(axes) in (1, 2)):
        return root(sum_of_squares(symbol, axis, keepdims))
    if len(axes) == 1:
        return vector_norm(symbol, ord, axes, keepdims)
    if len(axes) == 2:
        return matrix_norm(symbol, ord, axes, keepdims)
    raise ShapeError("Improper number of dimensions to norm.")


def sum_of_squares(x: Symbol, axis: Any, keepdims: Any) -> Symbol:
    """Return the sum of |x|²."""
    square = add(mul(real(x), real(x)), mul(imag(x), imag(x))) if is_complex(x.dtype) else mul(x, x)
    return SUM(square, axis, keepdims, UNSET, UNSET)


def vector_norm(x: Symbol, order: Any, axis: Any, keepdims: Any) -> Symbol:
    """Return (Σ |x|^p)^(1/p), with its limits at p = ±inf, and the number of nonzero elements at p = 0."""
    size = absolute(x)
    if order in (np.inf, -np.inf):
        return extremum(size, order, axis, keepdims)
    if order == 0:
        return SUM(to_dtype(ne(x, zeros_like(x)), size.dtype), axis, keepdims, UNSET, UNSET)
    if order == 1:
        return SUM(size, axis, keepdims, UNSET, UNSET)
    if order == 2:
        return root(sum_of_squares(x, axis, keepdims))
    if isinstance(order, str):
        raise ShapeError(f"Invalid norm order '{order}' for vectors")
    total = SUM(power(size, order), axis, keepdims, UNSET, UNSET)
    is_zero = eq(total, zeros_like(total))
    at_zero = total if order > 0 else full_like(total, np.inf)
    return select(is_zero, at_zero, power(select(is_zero, ones_like(total), total), 1 / order))


def matrix_norm(x: Symbol, order: Any, axes: tuple[int, ...], keepdims: Any) -> Symbol:
    """Return a norm of matrices.

    The Frobenius norm, the largest or smallest sum of sizes of a column (±1) or a row (±inf), the largest or smallest
    singular value (±2), or their sum ("nuc").
    """
    if order in ("fro", "f"):
        return root(sum_of_squares(x, axes, keepdims))
    if order in (2, -2, "nuc"):
        others = tuple(i for i in range(x.ndim) if i not in axes)
        values = svdvals(transpose_to(x, (*others, *axes)))
        found = SUM(values, -1, False, UNSET, UNSET) if order == "nuc" else extremum(values, order, -1, False)
        return reshape_to(found, reduced_shape(x.shape, axes, keepdims))
    if order not in (1, -1, np.inf, -np.inf):
        raise ShapeError("Invalid norm order for matrices.")
    inner, outer = axes if order in (1, -1) else axes[::-1]
    sums = SUM(absolute(x), inner, True, UNSET, UNSET)
    return reshape_to(extremum(sums, order, outer, True), reduced_shape(x.shape, axes, keepdims))


def extremum(x: Symbol, order: float, axis: Any, keepdims: Any) -> Symbol:
    """Return the largest element, of none 0, or for a negative order the smallest."""
    if order < 0:
        return MIN(x, axis, keepdims, UNSET, UNSET)
    return MAX(x, axis, keepdims, 0.0 if x.aval.size == 0 else UNSET, UNSET)
