"""NumPy's indexing routines: elements chosen by a condition or by position, put into arrays; and positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.errors import DomainError, DtypeError, OutOfRangeError, ShapeError
from fnad.ir.builder import is_tracing
from fnad.ir.known import known_value
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval
from fnad.numpy.bodies import BodyOf
from fnad.numpy.joining import alike, rows
from fnad.numpy.manipulation import fresh, layout
from fnad.numpy.operands import (
    WeakSymbol,
    as_array,
    as_symbol,
    axis_of,
    broadcast_all,
    common_dtype,
    is_python_number,
    static_array,
    static_ints,
    strong,
    to_dtype,
)
from fnad.numpy.reductions import any_
from fnad.numpy.registry import OF_AVALS, RULES, implements, writes
from fnad.numpy.views import fitted, stored
from fnad.ops.arithmetic import add, mul
from fnad.ops.comparison import bitwise_and, bitwise_not, ge, lt, select
from fnad.ops.indexing import gather, scatter
from fnad.ops.piecewise import floor_divide, maximum, minimum, remainder
from fnad.ops.reduction import cumsum
from fnad.ops.requirement import require
from fnad.ops.shape import broadcast_to, concatenate, full_like, iota, reshape_to, transpose_to, zeros_like
from fnad.upward import UPWARD

# ---- by a condition --------------------------------------------------------------------------------------------------


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return np.nonzero(static_array(as_symbol(condition, BOOL)))
    dtype = common_dtype(x, y)
    return fresh(select(*broadcast_all([as_symbol(condition, BOOL), as_array(x, dtype), as_array(y, dtype)])))


OF_AVALS.add(where)


# ---- by position -----------------------------------------------------------------------------------------------------


@implements(np.take)
def take(a: Any, indices: Any, axis: Any, mode: str) -> Symbol:
    x = as_symbol(a)
    if axis is None or x.ndim == 0:
        x, axis = reshape_to(x, (x.aval.size,)), axis or 0
    at = axis_of(axis, x.ndim)
    index = within(integers(indices), x.shape[at], mode, at)
    order = (at, *(i for i in range(x.ndim) if i != at))
    taken = gather(transpose_to(x, order), index)
    back = (*range(index.ndim, index.ndim + at), *range(index.ndim), *range(index.ndim + at, taken.ndim))
    return transpose_to(taken, back)


def integers(indices: Any) -> Symbol:
    """Indices as integers of the machine's word."""
    index = as_symbol(indices)
    if index.aval.size == 0 and isinstance(indices, (list, tuple)):
        return to_dtype(index, I64)
    if index.dtype.kind not in "iu":
        raise DtypeError(f"indices are integers, got {index.aval}")
    return to_dtype(index, I64)


def within(index: Symbol, n: int, mode: str, axis: int = 0) -> Symbol:
    """Indices as a mode of np.take asks for; `raise` leaves those that are not known, which a program checks."""
    if mode == "wrap":
        return remainder(index, full_like(index, n))
    if mode == "clip":
        return minimum(maximum(index, zeros_like(index)), full_like(index, n - 1))
    if mode != "raise":
        raise DomainError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    known = known_value(index)
    if known is not None and (wrong := known[(known < -n) | (known >= n)]).size:
        raise OutOfRangeError(f"index {wrong.flat[0]} is out of bounds for axis {axis} with size {n}")
    return index


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any) -> Symbol:
    x, index = as_symbol(arr), integers(indices)
    if axis is None:
        x, axis = reshape_to(x, (x.aval.size,)), 0
    if index.ndim != x.ndim:
        raise ShapeError("`indices` and `arr` must have the same number of dimensions")
    at = axis_of(axis, x.ndim)
    shape = tuple(m if i == at or n == 1 else n for i, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)))
    index = broadcast_to(within(index, x.shape[at], "raise", at), shape)
    x = broadcast_to(x, (*shape[:at], x.shape[at], *shape[at + 1 :]))
    return gather(x, *[index if i == at else iota(dtype=I64, shape=shape, axis=i) for i in range(x.ndim)])


# ---- by a mask that is known -----------------------------------------------------------------------------------------


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any) -> Symbol:
    mask = np.asarray(static_array(condition)).astype(bool)
    if mask.ndim != 1:
        raise ShapeError("condition must be a 1-d array")
    x = as_symbol(a)
    if axis is None:
        x, axis = reshape_to(x, (x.aval.size,)), 0
    return take(x, np.flatnonzero(mask), axis_of(axis, x.ndim))


OUTSIDE: dict[str, Any] = {
    "message": "invalid entry in choice array",
    "remedy": "choose from 0 to the number of choices - 1, or give mode='clip' or 'wrap'",
}
NOTHING_TO_INSERT: dict[str, Any] = {
    "message": "Cannot insert from an empty array!",
    "remedy": "give values, or a mask that is false everywhere",
}


# ---- by numbers ------------------------------------------------------------------------------------------------------


@implements(np.choose)
def choose(a: Any, choices: Any, mode: str) -> Symbol:
    given = list(choices) if isinstance(choices, (list, tuple)) else rows(as_symbol(choices))
    index = as_symbol(a)
    index = to_dtype(index, I64) if index.dtype == BOOL else integers(index)
    index, *options = broadcast_all([index, *alike(given)])
    count = len(options)
    if mode == "raise":
        index = _checked(index, count, **OUTSIDE)
    stacked = concatenate(*[reshape_to(option, (1, *option.shape)) for option in options], axis=0)
    others = [iota(dtype=I64, shape=index.shape, axis=i) for i in range(index.ndim)]
    return gather(stacked, index if mode == "raise" else within(index, count, mode), *others)


# ---- into an array: a rule returns what it holds afterwards ----------------------------------------------------------


@writes(np.copyto)
def copyto(dst: Symbol, src: Any, casting: str = "same_kind", where: Any = True) -> Symbol:
    source = as_symbol(src)
    if is_python_number(src) or isinstance(source, WeakSymbol):
        is_value = source.dtype.kind == "i" and dst.dtype.kind in "iu"  # then the value has to fit, not the dtype
        source = as_symbol(src, dst.dtype) if is_value else strong(source)
    if source.ndim > dst.ndim and set(source.shape[: source.ndim - dst.ndim]) == {1}:
        source = reshape_to(source, source.shape[source.ndim - dst.ndim :])
    return stored("numpy.copyto", source, dst, where, casting)


@writes(np.put)
def put(a: Symbol, ind: Any, v: Any, mode: str) -> Symbol:
    index = integers(ind)
    if as_symbol(v).aval.size == 0:
        return a
    index = within(reshape_to(index, (index.aval.size,)), a.aval.size, mode)
    flat = scatter(reshape_to(a, (a.aval.size,)), repeated(v, a, index.shape[0]), index)
    return reshape_to(flat, a.shape)


def repeated(values: Any, like: Symbol, count: int) -> Symbol:
    """Values as `count` elements of the dtype of an array: repeated from the start where they are fewer."""
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
def fill_diagonal(a: Symbol, val: Any, wrap: bool) -> Symbol:
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


# ---- positions as one number and as one number an axis ---------------------------------------------------------------


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


def _checked(index: Symbol, n: int, message: str, remedy: str = "clip it, or take it modulo the size") -> Symbol:
    """Indices; raise where one is not in [0, n), when the program runs if it is not known."""
    known = known_value(index)
    if known is not None and ((known < 0) | (known >= n)).any():
        raise DomainError(message, remedy=remedy)
    why: dict[str, Any] = {"message": message, "remedy": remedy}
    return require(index, bitwise_and(ge(index, zeros_like(index)), lt(index, full_like(index, n))), **why)


def _by_significance(axes: list[Any], order: str) -> list[Any]:
    """The axes from that of the largest stride on."""
    named = layout(order)
    if named not in ("C", "F"):
        raise DomainError("only 'C' or 'F' order is permitted")
    return axes if named == "C" else axes[::-1]


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


# ---- r_[…] and c_[…]: arrays, numbers and ranges side by side, any of them traced ------------------------------------

Concatenator: Any = type(np.r_).__base__


class Sequences(Concatenator):
    """NumPy's `r_` or `c_` that takes traced values."""

    def __init__(self, original: Any) -> None:
        super().__init__(original.axis, original.matrix, original.ndmin, original.trans1d)

    def __getitem__(self, key: Any) -> Any:
        if is_tracing() and any(map(_has_traced, key if isinstance(key, tuple) else (key,))):
            return UPWARD.traced(Sequences.__getitem__, (self, key), {})
        return super().__getitem__(key)


def _has_traced(entry: Any) -> bool:
    return UPWARD.has_traced([entry.start, entry.stop, entry.step] if isinstance(entry, slice) else entry)


RULES[Sequences.__getitem__] = BodyOf(Concatenator.__getitem__)
r_ = Sequences(np.r_)
c_ = Sequences(np.c_)
