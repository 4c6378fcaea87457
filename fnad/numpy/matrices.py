"""Operands of linear algebra: stacks of matrices in a floating-point dtype, and what names their results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fnad.errors import MatrixError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.operands import as_symbol, common_shape, to_dtype
from fnad.ops.matrix import check_square
from fnad.ops.shape import broadcast_to, reshape_to


def floating(*operands: Any) -> list[Symbol]:
    """Return operands in the dtype NumPy computes linear algebra for: the common one, where integers count as f64."""
    symbols = [as_symbol(operand) for operand in operands]
    dtypes = [F64 if symbol.dtype.kind in "biu" else symbol.dtype for symbol in symbols]
    return [to_dtype(symbol, np.result_type(*dtypes)) for symbol in symbols]


def square(name: str, a: Any) -> Symbol:
    """Return a stack of square matrices; raise `MatrixError` where it is none."""
    (x,) = floating(a)
    check_square(name, x.aval)
    return x


def check_two_dimensional(x: Symbol) -> None:
    """Raise where an operand is no matrix, with NumPy's message."""
    if x.ndim != 2:
        raise MatrixError(f"{x.ndim}-dimensional array given. Array must be two-dimensional")


def stacked(x: Symbol, y: Symbol) -> tuple[Symbol, Symbol]:
    """Broadcast all axes but the last two."""
    outer = common_shape([x.shape[:-2], y.shape[:-2]])
    return broadcast_to(x, (*outer, *x.shape[-2:])), broadcast_to(y, (*outer, *y.shape[-2:]))


def for_columns(solver: Callable[[Symbol, Symbol], Symbol], a: Symbol, b: Symbol) -> Symbol:
    """Return what a solver makes of stacks of matrices, where b may be one vector in the place of a matrix."""
    is_vector = b.ndim == 1
    x, y = stacked(a, reshape_to(b, (*b.shape, 1)) if is_vector else b)
    solution = solver(x, y)
    return reshape_to(solution, solution.shape[:-1]) if is_vector else solution


def named(function: Callable[..., Any], *results: Symbol) -> Any:
    """Return results as the named tuple that a function of NumPy's returns."""
    return _result_type(function)(*results)


@cache
def _result_type(function: Callable[..., Any]) -> Any:
    return type(function(np.eye(1)))
