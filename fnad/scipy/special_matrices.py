"""The matrices of scipy.linalg that are made of given elements: blocks, and one vector along all diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy.indexing_routines import take
from fnad.numpy.operands import as_symbol, of_one_dtype
from fnad.ops.matrix import conjugate
from fnad.ops.shape import concatenate, full_like, reshape_to, reverse, slice_axis
from fnad.scipy.rule import rule_of

of_scipy = rule_of("scipy.linalg")


@of_scipy
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with the same elements along each diagonal: c its first column, r, by default conj(c), its row.

    >>> toeplitz([1.0, 2.0], [1.0, 3.0, 4.0])
    array([[1., 3., 4.],
           [2., 1., 3.]])
    """
    column = _vector(c)
    row = conjugate(column) if r is None else _vector(r)
    column, row = of_one_dtype(column, row)
    axis, m, n = column.ndim - 1, column.shape[-1], row.shape[-1]
    values = concatenate(reverse(slice_axis(row, axis, 1, n), axes=(axis,)), column, axis=axis)
    return _by_index(values, np.subtract.outer(np.arange(m), np.arange(n)) + (n - 1))


@of_scipy
def circulant(c: Any) -> Any:
    """The square matrix with first column c whose columns are each the one before, moved down in a circle.

    >>> circulant([1.0, 2.0])
    array([[1., 2.],
           [2., 1.]])
    """
    column = _vector(c)
    n = column.shape[-1]
    return _by_index(column, np.subtract.outer(np.arange(n), np.arange(n)) % max(n, 1))


@of_scipy
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with the same elements along each antidiagonal: c first column, r, by default 0, last row.

    >>> hankel([1.0, 2.0], [2.0, 3.0, 4.0])
    array([[1., 2., 3.],
           [2., 3., 4.]])
    """
    column = _vector(c)
    row = full_like(column, 0) if r is None else _vector(r)
    column, row = of_one_dtype(column, row)
    axis, m, n = column.ndim - 1, column.shape[-1], row.shape[-1]
    values = concatenate(column, slice_axis(row, axis, 1, n), axis=axis)
    return _by_index(values, np.add.outer(np.arange(m), np.arange(n)))


def _vector(c: Any) -> Symbol:
    x = as_symbol(c)
    return x if x.ndim else reshape_to(x, (1,))


def _by_index(values: Symbol, index: Any) -> Symbol:
    """values[…, index]."""
    return take(values, index, axis=-1)
