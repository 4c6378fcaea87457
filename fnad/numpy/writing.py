"""Functions that write into their first argument: a rule returns what it holds afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval
from fnad.numpy.assignment import fitted, stored
from fnad.numpy.choosing import integers, within
from fnad.numpy.operands import as_symbol, axis_of
from fnad.numpy.registry import writes
from fnad.ops.comparison import select
from fnad.ops.indexing import gather, scatter
from fnad.ops.piecewise import remainder
from fnad.ops.shape import broadcast_to, full_like, iota, reshape_to


@writes(np.copyto)
def copyto(dst: Symbol, src: Any, casting: str = "same_kind", where: Any = True) -> Symbol:
    source = as_symbol(src)
    if source.ndim > dst.ndim and set(source.shape[: source.ndim - dst.ndim]) == {1}:
        source = reshape_to(source, source.shape[source.ndim - dst.ndim :])
    return stored("numpy.copyto", source, dst, where, casting)


@writes(np.put)
def put(a: Symbol, ind: Any, v: Any, mode: str = "raise") -> Symbol:
    index = integers(ind)
    if as_symbol(v).aval.size == 0:
        return a
    index = within(reshape_to(index, (index.aval.size,)), a.aval.size, mode)
    flat = scatter(reshape_to(a, (a.aval.size,)), repeated(v, a, index.shape[0]), index)
    return reshape_to(flat, a.shape)


def repeated(values: Any, like: Symbol, count: int) -> Symbol:
    """Return values as `count` elements of the dtype of an array: repeated from the start where they are fewer."""
    given = as_symbol(values, like.dtype)
    flat = reshape_to(given, (given.aval.size,))
    if flat.shape[0] == 1:
        return broadcast_to(flat, (count,))
    order = iota(dtype=I64, shape=(count,), axis=0)
    return gather(flat, remainder(order, full_like(order, flat.shape[0])))


def check_safe(values: Any, target: Symbol) -> None:
    """Raise where the values are an array that is not cast safely to the dtype of the target."""
    is_array = isinstance(values, (Symbol, np.ndarray)) and values.ndim
    if is_array and not np.can_cast(values.dtype, target.dtype, "safe"):
        what = f"from {values.dtype!r} to {target.dtype!r} according to the rule 'safe'"
        raise DtypeError(f"Cannot cast array data {what}", remedy="convert it with astype before")


@writes(np.fill_diagonal)
def fill_diagonal(a: Symbol, val: Any, wrap: bool = False) -> Symbol:
    if a.ndim < 2:
        raise ShapeError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ShapeError("All dimensions of input must be of equal length")
    step = sum(int(np.prod(a.shape[i:], dtype=int)) for i in range(1, a.ndim + 1))
    end = a.shape[1] * a.shape[1] if a.ndim == 2 and not wrap else a.aval.size
    return put(a, np.arange(0, min(end, a.aval.size), step), val)


@writes(np.put_along_axis)
def put_along_axis(arr: Symbol, indices: Any, values: Any, axis: Any) -> Symbol:
    if axis is None:
        return reshape_to(put_along_axis(reshape_to(arr, (arr.aval.size,)), indices, values, 0), arr.shape)
    at, index = axis_of(axis, arr.ndim), integers(indices)
    shape = tuple(index.shape[i] if i == at else n for i, n in enumerate(arr.shape))
    index = broadcast_to(index, shape)
    places = [index if i == at else iota(dtype=I64, shape=shape, axis=i) for i in range(arr.ndim)]
    return scatter(arr, fitted(values, Aval(arr.dtype, shape)), *places)


@writes(np.putmask)
def putmask(a: Symbol, mask: Any, values: Any) -> Symbol:
    check_safe(values, a)
    chosen = reshape_to(as_symbol(mask, BOOL), a.shape)
    if as_symbol(values).aval.size == 0:
        return a
    return select(chosen, reshape_to(repeated(values, a, a.aval.size), a.shape), a)
