"""Products of arrays that sum over pairs of axes: all of them are `dot_general` between permutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64
from fnad.numpy.elementwise import loop_dtypes
from fnad.numpy.operands import (
    Ints,
    as_symbol,
    axes_of,
    broadcast_all,
    common_dtype,
    common_shape,
    static_int,
    static_ints,
    to_dtype,
)
from fnad.numpy.rearranging import fresh
from fnad.numpy.registry import RULES, implements
from fnad.numpy.ufuncs import TABLE, conjugate
from fnad.numpy.views import ArrayView
from fnad.ops.comparison import ne
from fnad.ops.contraction import dot_general
from fnad.ops.shape import broadcast_to, reshape_to, transpose_to, zeros_like

NO_AXES = ((), ())


def pair(x: Any, y: Any) -> tuple[Symbol, Symbol]:
    """Return two operands in their common dtype."""
    dtype = common_dtype(x, y)
    return as_symbol(x, dtype), as_symbol(y, dtype)


def contract(x: Symbol, y: Symbol, axes: tuple[Ints, Ints], batch: tuple[Ints, Ints] = NO_AXES) -> Symbol:
    """Return the sum of products over pairs of axes; of bools, whether any product is true."""
    if x.dtype == BOOL:
        count = dot_general(to_dtype(x, I64), to_dtype(y, I64), contract=axes, batch=batch)
        return ne(count, zeros_like(count))
    return dot_general(x, y, contract=axes, batch=batch)


def multiply(x: Symbol, y: Symbol) -> Symbol:
    """Return the product of two operands of one dtype, broadcast."""
    return TABLE[np.multiply](*broadcast_all([x, y]))


@implements(np.dot)
def dot(a: Any, b: Any, out: None = None) -> Symbol:
    x, y = pair(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
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
    """Return a shape as NumPy's messages write it."""
    return f"({','.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Symbol:
    x, y = pair(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    _check_sizes(x, x.ndim - 1, y, y.ndim - 1)
    return contract(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Symbol:
    x, y = (reshape_to(s, (s.aval.size,)) for s in pair(a, b))
    return dot(conjugate(x), y)


@implements(np.outer)
def outer(a: Any, b: Any, out: None = None) -> Symbol:
    x, y = pair(a, b)
    return multiply(reshape_to(x, (x.aval.size, 1)), reshape_to(y, (1, y.aval.size)))


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> ArrayView:
    x, y = pair(a, b)
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


def _stack_by_stack(x: Symbol, y: Symbol) -> Symbol:
    outer_shape = common_shape([x.shape[:-2], y.shape[:-2]])
    x, y = (broadcast_to(s, (*outer_shape, *s.shape[-2:])) for s in (x, y))
    count = len(outer_shape)
    stack = tuple(range(count))
    return contract(x, y, ((count + 1,), (count,)), (stack, stack))


if hasattr(np, "vecdot"):

    @implements(np.vecdot)
    def vecdot(x1: Any, x2: Any, /) -> Symbol:
        dtype = loop_dtypes(np.vecdot, (x1, x2))[0]
        x, y = as_symbol(x1, dtype), as_symbol(x2, dtype)
        if x.ndim and y.ndim and x.shape[-1] != y.shape[-1]:
            raise ShapeError(f"vecdot: the last axes differ, of sizes {x.shape[-1]} and {y.shape[-1]}")
        product = multiply(conjugate(x), y)
        return RULES[np.sum](product, -1, product.dtype)
