"""The functions of numpy.linalg that NumPy has under its own name too, there on the last axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.numpy.contractions import matmul as matmul_
from fnad.numpy.contractions import outer as outer_
from fnad.numpy.contractions import tensordot as tensordot_
from fnad.numpy.creating import trace as trace_
from fnad.numpy.operands import as_symbol, axis_of
from fnad.numpy.rearranging import diagonal as diagonal_
from fnad.numpy.rearranging import moveaxis
from fnad.numpy.registry import RULES, implements
from fnad.numpy.views import ArrayView


@implements(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Symbol:
    return matmul_(x1, x2)


@implements(np.linalg.tensordot)
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> ArrayView:
    return tensordot_(x1, x2, axes)


@implements(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: Any = 0) -> ArrayView:
    return diagonal_(x, offset, -2, -1)


@implements(np.linalg.trace)
def trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Symbol:
    return trace_(x, offset, -2, -1, dtype)


@implements(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Symbol:
    x, y = as_symbol(x1), as_symbol(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"Input arrays must be one-dimensional, but they are x1.ndim={x.ndim} and x2.ndim={y.ndim}.")
    return outer_(x, y)


@implements(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Symbol:
    x, y = (moveaxis(x, axis_of(axis, x.ndim), -1).read() for x in map(as_symbol, (x1, x2)))
    return RULES[np.vecdot](x, y)


@implements(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    x, y = as_symbol(x1), as_symbol(x2)
    sizes = [symbol.shape[axis_of(axis, symbol.ndim)] for symbol in (x, y)]
    if sizes != [3, 3]:
        raise ShapeError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {sizes[0]} and {sizes[1]} dimensional instead."
        )
    return RULES[np.cross](x, y, axis=axis)
