"""Selecting elements by a mask that is known while tracing, or by numbers that choose among arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64
from fnad.numpy.choosing import integers, take, within
from fnad.numpy.joining import alike, rows
from fnad.numpy.operands import as_symbol, axis_of, broadcast_all, common_shape, static_array, to_dtype
from fnad.numpy.reductions import all_, any_
from fnad.numpy.registry import RULES, implements, writes
from fnad.numpy.writing import check_safe
from fnad.ops.comparison import bitwise_and, bitwise_not, ge, lt, select
from fnad.ops.indexing import gather
from fnad.ops.piecewise import maximum, remainder
from fnad.ops.reduction import cumsum
from fnad.ops.requirement import require
from fnad.ops.shape import concatenate, full_like, iota, reshape_to, zeros_like

OUTSIDE: dict[str, Any] = {
    "message": "invalid entry in choice array",
    "remedy": "choose from 0 to the number of choices - 1, or give mode='clip' or 'wrap'",
}
NOTHING_TO_INSERT: dict[str, Any] = {
    "message": "Cannot insert from an empty array!",
    "remedy": "give values, or a mask that is false everywhere",
}

# ---- by a mask that is known -----------------------------------------------------------------------------------------


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: None = None) -> Symbol:
    mask = np.asarray(static_array(condition)).astype(bool)
    if mask.ndim != 1:
        raise ShapeError("condition must be a 1-d array")
    x = as_symbol(a)
    if axis is None:
        x, axis = reshape_to(x, (x.aval.size,)), 0
    return take(x, np.flatnonzero(mask), axis_of(axis, x.ndim))


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Symbol:
    return compress(np.ravel(static_array(condition)), arr)


# ---- by numbers ------------------------------------------------------------------------------------------------------


@implements(np.choose)
def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Symbol:
    given = list(choices) if isinstance(choices, (list, tuple)) else rows(as_symbol(choices))
    index = as_symbol(a)
    index = to_dtype(index, I64) if index.dtype == BOOL else integers(index)
    index, *options = broadcast_all([index, *alike(given)])
    count = len(options)
    if mode == "raise":
        fits = bitwise_and(ge(index, zeros_like(index)), lt(index, full_like(index, count)))
        index = require(index, fits, **OUTSIDE)
    stacked = concatenate(*[reshape_to(option, (1, *option.shape)) for option in options], axis=0)
    others = [iota(dtype=I64, shape=index.shape, axis=i) for i in range(index.ndim)]
    return gather(stacked, within(index, count, mode), *others)


@writes(np.place)
def place(arr: Symbol, mask: Any, vals: Any) -> Symbol:
    check_safe(vals, arr)
    chosen, values = as_symbol(mask, BOOL), as_symbol(vals, arr.dtype)
    if chosen.aval.size != arr.aval.size:
        raise ShapeError("place: mask and data must be the same size")
    flat = reshape_to(chosen, (arr.aval.size,))
    count = values.aval.size
    if count == 0:
        return require(arr, bitwise_not(any_(flat)), **NOTHING_TO_INSERT)
    order = cumsum(to_dtype(flat, I64), axis=0, reverse=False) - 1
    index = remainder(maximum(order, zeros_like(order)), full_like(order, count))
    new = gather(reshape_to(values, (count,)), index)
    return select(reshape_to(flat, arr.shape), reshape_to(new, arr.shape), arr)


# ---- comparison ------------------------------------------------------------------------------------------------------


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = as_symbol(a1), as_symbol(a2)
    try:
        common_shape([x.shape, y.shape])
    except ShapeError:
        return False
    return all_(RULES[np.equal](x, y))
