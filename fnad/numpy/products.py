"""Products of vectors and matrices: contractions, Kronecker's, the cross product; and those of numpy.linalg.

What sums over pairs of axes is `dot_general` between permutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.builder import current_builder
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64
from fnad.numpy.elementwise import loop_dtypes
from fnad.numpy.joining import join
from fnad.numpy.manipulation import fresh, moveaxis
from fnad.numpy.operands import (
    Ints,
    as_symbol,
    axes_of,
    axis_of,
    broadcast_all,
    common_shape,
    of_one_dtype,
    static_int,
    static_ints,
    to_dtype,
)
from fnad.numpy.registry import OF_AVALS, RULES, implements
from fnad.numpy.ufuncs import TABLE, conjugate, multiply, negative, subtract
from fnad.numpy.views import ArrayView
from fnad.ops.comparison import ne
from fnad.ops.contraction import dot_general
from fnad.ops.shape import broadcast_to, reshape_to, slice_axis, transpose_to, zeros_like

NO_AXES = ((), ())


def contract(x: Symbol, y: Symbol, axes: tuple[Ints, Ints], batch: tuple[Ints, Ints] = NO_AXES) -> Symbol:
    """The sum of products over pairs of axes; of bools, whether any product is true."""
    if x.dtype == BOOL:
        count = dot_general(to_dtype(x, I64), to_dtype(y, I64), contract=axes, batch=batch)
        return ne(count, zeros_like(count))
    return dot_general(x, y, contract=axes, batch=batch)


def times(x: Symbol, y: Symbol) -> Symbol:
    """The product of two operands of one dtype, broadcast."""
    return TABLE[np.multiply](*broadcast_all([x, y]))


@implements(np.dot)
def dot(a: Any, b: Any, out: None = None) -> Symbol:
    x, y = of_one_dtype(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return times(x, y)
    over = max(y.ndim - 2, 0)
    _check_sizes(x, x.ndim - 1, y, over)
    return contract(x, y, ((x.ndim - 1,), (over,)))


def _check_sizes(x: Symbol, i: int, y: Symbol, j: int) -> None:
    if x.shape[i] != y.shape[j]:
        raise ShapeError(
            f"shapes {numpy_shape(x.shape)} and {numpy_shape(y.shape)} not aligned: "
            f"{x.shape[i]} (dim {i}) != {y.shape[j]} (dim {j})"
        )


def numpy_shape(shape: Sequence[int]) -> str:
    """A shape as NumPy's messages write it."""
    return f"({','.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@implements(np.inner)
def inner(a: Any, b: Any) -> Symbol:
    x, y = of_one_dtype(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return times(x, y)
    _check_sizes(x, x.ndim - 1, y, y.ndim - 1)
    return contract(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


@implements(np.vdot)
def vdot(a: Any, b: Any) -> Symbol:
    x, y = (reshape_to(s, (s.aval.size,)) for s in of_one_dtype(a, b))
    return dot(conjugate(x), y)


@implements(np.outer)
def outer(a: Any, b: Any) -> Symbol:
    x, y = of_one_dtype(a, b)
    return times(reshape_to(x, (x.aval.size, 1)), reshape_to(y, (1, y.aval.size)))


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any) -> ArrayView:
    x, y = of_one_dtype(a, b)
    if np.ndim(axes) == 0:
        count = static_int(axes, "a number of axes")
        pairs = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    else:
        pairs = static_ints(axes[0], "an axis"), static_ints(axes[1], "an axis")
    i, j = axes_of(pairs[0], x.ndim), axes_of(pairs[1], y.ndim)
    if len(i) != len(j) or any(x.shape[p] != y.shape[q] for p, q in zip(i, j, strict=True)):
        raise ShapeError("shape-mismatch for sum")
    return fresh(contract(x, y, (i, j)))


@implements(np.matmul)
def matmul(x1: Any, x2: Any, /, *, dtype: Any = None) -> Symbol:
    wanted = loop_dtypes(np.matmul, (x1, x2), dtype)[0]
    x, y = as_symbol(x1, wanted), as_symbol(x2, wanted)
    for i, operand in enumerate((x, y)):
        if operand.ndim == 0:
            raise ShapeError(
                f"matmul: Input operand {i} does not have enough dimensions (has 0, gufunc core with signature "
                "(n?,k),(k,m?)->(n?,m?) requires 1)"
            )
    _check_matmul(x, y)
    if y.ndim <= 2:
        return contract(x, y, ((x.ndim - 1,), (max(y.ndim - 2, 0),)))
    if x.ndim <= 2:
        return _matrix_by_stack(x, y)
    return _stack_by_stack(x, y)


def _check_matmul(x: Symbol, y: Symbol) -> None:
    i, j = x.ndim - 1, max(y.ndim - 2, 0)
    if x.shape[i] != y.shape[j]:
        raise ShapeError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"(n?,k),(k,m?)->(n?,m?) (size {y.shape[j]} is different from {x.shape[i]})"
        )


def _matrix_by_stack(x: Symbol, y: Symbol) -> Symbol:
    """Multiply a matrix or a vector with each of a stack: x's free axis comes out first and belongs before the last."""
    product = contract(x, y, ((x.ndim - 1,), (y.ndim - 2,)))
    if x.ndim == 1:
        return product
    return transpose_to(product, (*range(1, product.ndim - 1), 0, product.ndim - 1))


OF_AVALS.update((dot, inner, vdot, outer, matmul))


def _stack_by_stack(x: Symbol, y: Symbol) -> Symbol:
    outer_shape = common_shape([x.shape[:-2], y.shape[:-2]])
    x, y = (broadcast_to(s, (*outer_shape, *s.shape[-2:])) for s in (x, y))
    count = len(outer_shape)
    stack = tuple(range(count))
    return contract(x, y, ((count + 1,), (count,)), (stack, stack))


if hasattr(np, "vecdot"):

    @implements(np.vecdot)
    def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Symbol:
        dtype = loop_dtypes(np.vecdot, (x1, x2))[0]
        x, y = as_symbol(x1, dtype), as_symbol(x2, dtype)
        if axis != -1:
            x, y = (moveaxis(s, axis_of(axis, s.ndim), -1).read() for s in (x, y))
        if x.ndim and y.ndim and x.shape[-1] != y.shape[-1]:
            raise ShapeError(f"vecdot: the last axes differ, of sizes {x.shape[-1]} and {y.shape[-1]}")
        product = times(conjugate(x), y)
        return RULES[np.sum](product, -1, product.dtype)


# ---- cross products --------------------------------------------------------------------------------------------------


WITHOUT_PLANES = np.lib.NumpyVersion(np.__version__) >= "2.5.0"
"""From then on NumPy takes no vectors in the plane."""


@implements(np.cross)
def cross(a: Any, b: Any, axisa: Any, axisb: Any, axisc: Any, axis: Any) -> ArrayView:
    x, y = of_one_dtype(a, b)
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
    """The parts along an axis, without it."""
    at = axis_of(axis, x.ndim)
    rest = (*x.shape[:at], *x.shape[at + 1 :])
    return [reshape_to(slice_axis(x, at, i, i + 1), rest) for i in range(x.shape[at])]


def _component(u: list[Symbol], v: list[Symbol], i: int) -> Symbol:
    """U[j] v[k] - u[k] v[j] for the cyclic order i, j, k; the third component of a vector in the plane is 0."""
    j, k = (i + 1) % 3, (i + 2) % 3
    ahead = multiply(u[j], v[k]) if j < len(u) and k < len(v) else None
    back = multiply(u[k], v[j]) if k < len(u) and j < len(v) else None
    if ahead is None or back is None:
        return negative(back) if ahead is None else ahead
    return subtract(ahead, back)


def _warn_of_planes() -> None:
    current_builder().warn(
        "Arrays of 2-dimensional vectors are deprecated. Use arrays of 3-dimensional vectors instead. "
        "(deprecated in NumPy 2.0)",
        DeprecationWarning,
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


# ---- in numpy.linalg, on the last axes -------------------------------------------------------------------------------


@implements(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, axis: Any) -> Symbol:
    x, y = (moveaxis(x, axis_of(axis, x.ndim), -1).read() for x in map(as_symbol, (x1, x2)))
    return RULES[np.vecdot](x, y)
