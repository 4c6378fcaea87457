"""Choosing elements: by a condition, by position, within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy._core import umath

from fnad.errors import ArgumentTypeError, DomainError, DtypeError, ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64
from fnad.numpy.elementwise import elementwise
from fnad.numpy.joining import rows
from fnad.numpy.operands import as_symbol, axis_of, broadcast_all, common_dtype, static_array, static_int, to_dtype
from fnad.numpy.rearranging import fresh
from fnad.numpy.reductions import UNSET
from fnad.numpy.registry import RULES, implements
from fnad.numpy.ufuncs import TABLE, out_of_range, side
from fnad.numpy.views import ArrayView
from fnad.ops.comparison import bitwise_not, eq, gt, isnan, select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.indexing import gather
from fnad.ops.piecewise import maximum, minimum, remainder
from fnad.ops.shape import broadcast_to, full_like, iota, reshape_to, transpose_to, zeros_like

# ---- by a condition --------------------------------------------------------------------------------------------------


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return np.nonzero(static_array(as_symbol(condition)))
    dtype = common_dtype(x, y)
    return fresh(select(*broadcast_all([as_symbol(condition, BOOL), as_symbol(x, dtype), as_symbol(y, dtype)])))


@implements(np.select)
def select_(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> ArrayView:
    condlist, choicelist = (rows(given) if isinstance(given, Symbol) else given for given in (condlist, choicelist))
    if len(condlist) != len(choicelist):
        raise ShapeError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ShapeError("select with an empty condition list is not possible")
    conditions = [as_symbol(condition) for condition in condlist]
    for i, condition in enumerate(conditions):
        if condition.dtype != BOOL:
            raise DtypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    dtype = common_dtype(*choicelist, default)
    choices = [as_symbol(choice, dtype) for choice in choicelist]
    *operands, result = broadcast_all([*conditions, *choices, as_symbol(default, dtype)])
    count = len(conditions)
    for condition, choice in zip(operands[count - 1 :: -1], operands[: count - 1 : -1], strict=True):
        result = select(condition, choice, result)
    return fresh(result)


# ---- within bounds ---------------------------------------------------------------------------------------------------


@implements(np.clip)
def clip(
    a: Any,
    a_min: Any = UNSET,
    a_max: Any = UNSET,
    out: None = None,
    *,
    min: Any = UNSET,  # noqa: A002  # NumPy's names
    max: Any = UNSET,  # noqa: A002
    dtype: Any = None,
) -> Symbol:
    if a_min is UNSET and a_max is UNSET:
        return within_bounds(a, *[None if bound is UNSET else bound for bound in (min, max)], dtype=dtype)
    if a_min is UNSET or a_max is UNSET:
        name = "a_min" if a_min is UNSET else "a_max"
        raise ArgumentTypeError(f"clip() missing 1 required positional argument: '{name}'")
    if min is not UNSET or max is not UNSET:
        raise DomainError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    return within_bounds(a, a_min, a_max, dtype=dtype)


def within_bounds(
    a: Any,
    min: Any = None,  # noqa: A002  # NumPy's names
    max: Any = None,  # noqa: A002
    out: None = None,
    dtype: Any = None,
) -> Symbol:
    """Return an array within bounds; a Python integer beyond all numbers of its dtype is none."""
    x = as_symbol(a)
    low = None if out_of_range(min, x) and side(min) < 0 else min
    high = None if out_of_range(max, x) and side(max) > 0 else max
    if low is None and high is None:
        return RULES[np.positive](x, dtype=dtype)
    if high is None:
        return RULES[np.maximum](x, low, dtype=dtype)
    return RULES[np.minimum](x, high, dtype=dtype) if low is None else RULES[CLIP](x, low, high, dtype=dtype)


CLIP: np.ufunc = vars(umath)["clip"]
elementwise(CLIP)(lambda x, low, high: TABLE[np.minimum](TABLE[np.maximum](x, low), high))


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Symbol:
    symbol = as_symbol(x)
    if not copy and symbol.shape:
        raise UnsupportedFunctionError(
            "numpy.nan_to_num with copy=False writes into its argument", remedy="write x[...] = np.nan_to_num(x)"
        )
    if symbol.dtype.kind == "c":
        return complex_(*[_finite(part(symbol), nan, posinf, neginf) for part in (real, imag)])
    return symbol if symbol.dtype.kind in "biu" else _finite(symbol, nan, posinf, neginf)


def _finite(x: Symbol, nan: Any, posinf: Any, neginf: Any) -> Symbol:
    limits = np.finfo(x.dtype)
    infinity = full_like(x, np.inf)
    for place, value in (
        (eq(x, infinity), limits.max if posinf is None else posinf),
        (eq(x, full_like(x, -np.inf)), limits.min if neginf is None else neginf),
        (isnan(x), nan),
    ):
        x = select(place, broadcast_to(as_symbol(value, x.dtype), x.shape), x)
    return x


# ---- by position -----------------------------------------------------------------------------------------------------


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: None = None, mode: str = "raise") -> Symbol:
    x = as_symbol(a)
    if axis is None or x.ndim == 0:
        x, axis = reshape_to(x, (x.aval.size,)), axis or 0
    at = axis_of(axis, x.ndim)
    index = within(integers(indices), x.shape[at], mode)
    order = (at, *(i for i in range(x.ndim) if i != at))
    taken = gather(transpose_to(x, order), index)
    back = (*range(index.ndim, index.ndim + at), *range(index.ndim), *range(index.ndim + at, taken.ndim))
    return transpose_to(taken, back)


def integers(indices: Any) -> Symbol:
    """Return indices as integers of the machine's word."""
    index = as_symbol(indices)
    if index.aval.size == 0 and isinstance(indices, (list, tuple)):
        return to_dtype(index, I64)
    if index.dtype.kind not in "iu":
        raise DtypeError(f"indices are integers, got {index.aval}")
    return to_dtype(index, I64)


def within(index: Symbol, n: int, mode: str) -> Symbol:
    """Return indices as a mode of np.take asks for; `raise` leaves them, since an index is checked where it is used."""
    if mode == "wrap":
        return remainder(index, full_like(index, n))
    if mode == "clip":
        return minimum(maximum(index, zeros_like(index)), full_like(index, n - 1))
    if mode != "raise":
        raise DomainError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    return index


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Symbol:
    x, index = as_symbol(arr), integers(indices)
    if axis is None:
        x, axis = reshape_to(x, (x.aval.size,)), 0
    if index.ndim != x.ndim:
        raise ShapeError("`indices` and `arr` must have the same number of dimensions")
    at = axis_of(axis, x.ndim)
    shape = tuple(index.shape[i] if i == at else n for i, n in enumerate(x.shape))
    index = broadcast_to(index, shape)
    return gather(x, *[index if i == at else iota(dtype=I64, shape=shape, axis=i) for i in range(x.ndim)])


# ---- triangles and diagonals -----------------------------------------------------------------------------------------


def below(x: Symbol, k: int) -> Symbol:
    """Return where the last two axes of x have column - row <= k."""
    row, column = (iota(dtype=I64, shape=x.shape, axis=x.ndim - i) for i in (2, 1))
    return bitwise_not(gt(column, row + k))


@implements(np.tril)
def tril(m: Any, k: Any = 0) -> ArrayView:
    x = _matrix(m)
    return fresh(select(below(x, static_int(k, "a diagonal")), x, zeros_like(x)))


@implements(np.triu)
def triu(m: Any, k: Any = 0) -> ArrayView:
    x = _matrix(m)
    return fresh(select(below(x, static_int(k, "a diagonal") - 1), zeros_like(x), x))


def _matrix(m: Any) -> Symbol:
    x = as_symbol(m)
    if x.ndim == 0:
        raise ShapeError("a triangle takes an array of at least one dimension")
    return broadcast_to(x, (x.shape[0], x.shape[0])) if x.ndim == 1 else x
