"""Products of vectors and matrices that are no plain contraction: Kronecker's, the cross product, stacks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.builder import current_builder
from fnad.ir.symbol import Symbol
from fnad.numpy.contractions import matmul
from fnad.numpy.elementwise import loop_dtypes
from fnad.numpy.joining import join
from fnad.numpy.operands import as_array, as_symbol, axis_of, broadcast_all, common_dtype
from fnad.numpy.rearranging import fresh, moveaxis
from fnad.numpy.registry import implements
from fnad.numpy.ufuncs import conjugate, multiply, negative, subtract
from fnad.numpy.views import ArrayView
from fnad.ops.shape import reshape_to, slice_axis


@implements(np.kron)
def kron(a: Any, b: Any) -> Symbol:
    dtype = common_dtype(as_array(a), as_array(b))
    x, y = as_array(a, dtype), as_array(b, dtype)
    ndim = max(x.ndim, y.ndim)
    rows, columns = ((1,) * (ndim - s.ndim) + s.shape for s in (x, y))
    x = reshape_to(x, tuple(k for n in rows for k in (n, 1)))
    y = reshape_to(y, tuple(k for n in columns for k in (1, n)))
    return reshape_to(multiply(x, y), tuple(n * m for n, m in zip(rows, columns, strict=True)))


# ---- cross products --------------------------------------------------------------------------------------------------


WITHOUT_PLANES = np.lib.NumpyVersion(np.__version__) >= "2.5.0"
"""From then on NumPy takes no vectors in the plane."""


@implements(np.cross)
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> ArrayView:
    dtype = common_dtype(as_array(a), as_array(b))
    x, y = as_array(a, dtype), as_array(b, dtype)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError("At least one array has zero dimension")
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    u, v = _components(x, axisa), _components(y, axisb)
    sizes = {len(u), len(v)}
    if WITHOUT_PLANES and sizes != {3}:
        raise ShapeError(
            f"Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {len(u)} and {len(v)} dimensional instead."
        )
    if not sizes <= {2, 3}:
        raise ShapeError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    if 2 in sizes:
        _warn_of_planes()
    if sizes == {2}:
        return fresh(subtract(multiply(u[0], v[1]), multiply(u[1], v[0])))
    parts = broadcast_all([_component(u, v, i) for i in range(3)])
    whole = join([reshape_to(part, (*part.shape, 1)) for part in parts], -1)
    return moveaxis(whole, -1, axisc)


def _components(x: Symbol, axis: Any) -> list[Symbol]:
    """Return the parts along an axis, without it."""
    at = axis_of(axis, x.ndim)
    rest = (*x.shape[:at], *x.shape[at + 1 :])
    return [reshape_to(slice_axis(x, at, i, i + 1), rest) for i in range(x.shape[at])]


def _component(u: list[Symbol], v: list[Symbol], i: int) -> Symbol:
    """Return u[j] v[k] - u[k] v[j] for the cyclic order i, j, k; the third component of a vector in the plane is 0."""
    j, k = (i + 1) % 3, (i + 2) % 3
    ahead = multiply(u[j], v[k]) if j < len(u) and k < len(v) else None
    back = multiply(u[k], v[j]) if k < len(u) and j < len(v) else None
    if ahead is None or back is None:
        return negative(back) if ahead is None else ahead
    return subtract(ahead, back)


def _warn_of_planes() -> None:
    source = current_builder().source
    warnings.warn_explicit(
        "Arrays of 2-dimensional vectors are deprecated. Use arrays of 3-dimensional vectors instead. "
        "(deprecated in NumPy 2.0)",
        DeprecationWarning,
        source.file if source else __file__,
        source.line if source else 0,
    )


# ---- stacks of vectors and matrices ----------------------------------------------------------------------------------

if hasattr(np, "matvec"):

    @implements(np.matvec)
    def matvec(x1: Any, x2: Any, /) -> Symbol:
        dtype = loop_dtypes(np.matvec, (x1, x2))[0]
        matrix, vector = as_symbol(x1, dtype), as_symbol(x2, dtype)
        _check_core("matvec", "(m,n),(n)->(m)", matrix, 2, vector, 1)
        column = reshape_to(vector, (*vector.shape, 1))
        product = matmul(matrix, column)
        return reshape_to(product, product.shape[:-1])

    @implements(np.vecmat)
    def vecmat(x1: Any, x2: Any, /) -> Symbol:
        dtype = loop_dtypes(np.vecmat, (x1, x2))[0]
        vector, matrix = conjugate(as_symbol(x1, dtype)), as_symbol(x2, dtype)
        _check_core("vecmat", "(n),(n,m)->(m)", vector, 1, matrix, 2)
        row = reshape_to(vector, (*vector.shape[:-1], 1, vector.shape[-1]))
        product = matmul(row, matrix)
        return reshape_to(product, (*product.shape[:-2], product.shape[-1]))


def _check_core(name: str, signature: str, x: Symbol, rank_x: int, y: Symbol, rank_y: int) -> None:
    for i, (operand, rank) in enumerate(((x, rank_x), (y, rank_y))):
        if operand.ndim < rank:
            raise ShapeError(
                f"{name}: Input operand {i} does not have enough dimensions (has {operand.ndim}, gufunc core with "
                f"signature {signature} requires {rank})"
            )
