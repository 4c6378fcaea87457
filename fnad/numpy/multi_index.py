"""Positions in an array as one number and as one number an axis; indices of triangles and diagonals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import DomainError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import Shape
from fnad.numpy.choosing import integers, within
from fnad.numpy.joining import rows
from fnad.numpy.operands import as_symbol, broadcast_all, static_ints
from fnad.numpy.registry import implements
from fnad.ops.arithmetic import add, mul
from fnad.ops.comparison import bitwise_and, ge, lt
from fnad.ops.piecewise import floor_divide, remainder
from fnad.ops.requirement import require
from fnad.ops.shape import full_like, zeros_like


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Symbol:
    sizes = static_ints(dims, "a shape")
    given = multi_index if isinstance(multi_index, (list, tuple)) else rows(as_symbol(multi_index))
    indices = broadcast_all([integers(index) for index in given])
    if len(indices) != len(sizes):
        raise DomainError(f"parameter multi_index must be a sequence of length {len(sizes)}")
    modes = mode if isinstance(mode, (list, tuple)) else (mode,) * len(sizes)
    inside = [
        within(_checked(i, n, "invalid entry in coordinates array") if m == "raise" else i, n, m)
        for i, n, m in zip(indices, sizes, modes, strict=True)
    ]
    position = zeros_like(inside[0])
    for index, n in _by_significance(list(zip(inside, sizes, strict=True)), order):
        position = add(mul(position, full_like(position, n)), index)
    return position


def _checked(index: Symbol, n: int, message: str) -> Symbol:
    """Return indices; raise when the program runs where one is not in [0, n)."""
    why: dict[str, Any] = {"message": message, "remedy": "clip it, or take it modulo the size"}
    return require(index, bitwise_and(ge(index, zeros_like(index)), lt(index, full_like(index, n))), **why)


def _by_significance(axes: list[Any], order: str) -> list[Any]:
    """Return the axes from that of the largest stride on."""
    if order not in ("C", "F"):
        raise DomainError("only 'C' or 'F' order is permitted")
    return axes if order == "C" else axes[::-1]


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Symbol, ...]:
    sizes = static_ints(shape, "a shape")
    size = math.prod(sizes)
    position = _checked(integers(indices), size, f"an index is out of bounds for array with size {size}")
    found: list[tuple[int, Symbol]] = []
    for axis in reversed(_by_significance(list(range(len(sizes))), order)):
        n = full_like(position, max(sizes[axis], 1))
        found.append((axis, remainder(position, n)))
        position = floor_divide(position, n)
    return tuple(index for _, index in sorted(found, key=lambda pair: pair[0]))


# ---- triangles and diagonals -----------------------------------------------------------------------------------------


def _triangle(indices: Callable[..., Any]) -> Callable[..., Any]:
    def rule(arr: Any, k: int = 0) -> Any:
        shape = _matrix_shape(arr)
        return indices(shape[-2], k=k, m=shape[-1])

    return rule


def _matrix_shape(arr: Any) -> Shape:
    shape = as_symbol(arr).shape
    if len(shape) != 2:
        raise ShapeError("input array must be 2-d")
    return shape


tril_indices_from = implements(np.tril_indices_from)(_triangle(np.tril_indices))
triu_indices_from = implements(np.triu_indices_from)(_triangle(np.triu_indices))


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    shape = as_symbol(arr).shape
    if len(shape) < 2:
        raise ShapeError("input array must be at least 2-d")
    if len(set(shape)) > 1:
        raise ShapeError("All dimensions of input must be of equal length")
    return np.diag_indices(shape[0], len(shape))
