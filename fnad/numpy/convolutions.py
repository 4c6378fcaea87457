"""Convolution and correlation of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64
from fnad.numpy.operands import as_array, as_vector, common_dtype, to_dtype
from fnad.numpy.registry import implements
from fnad.numpy.ufuncs import conjugate
from fnad.ops import convolution as ops
from fnad.ops.comparison import ne
from fnad.ops.shape import reverse, slice_axis, zeros_like

MODES = ("valid", "same", "full")


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Symbol:
    dtype = common_dtype(as_array(a), as_array(v))
    x, y = as_vector(a, dtype), as_vector(v, dtype)
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    _check(x, y)
    return _slide(x, y, mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Symbol:
    dtype = common_dtype(as_array(a), as_array(v))
    x, y = as_vector(a, dtype), conjugate(as_vector(v, dtype))
    _check(x, y)
    if y.shape[0] <= x.shape[0]:
        return _slide(x, reverse(y, axes=(0,)), mode)
    return reverse(_slide(y, reverse(x, axes=(0,)), mode), axes=(0,))


def _check(x: Symbol, y: Symbol) -> None:
    for name, vector in (("a", x), ("v", y)):
        if vector.ndim != 1:
            raise ShapeError("object too deep for desired array")
        if vector.shape[0] == 0:
            raise ShapeError(f"{name} cannot be empty")


def _slide(x: Symbol, y: Symbol, mode: Any) -> Symbol:
    """Return the convolution of x with y, which is not longer: all of it, or the part in the middle."""
    if x.dtype == BOOL:
        count = _slide(to_dtype(x, I64), to_dtype(y, I64), mode)
        return ne(count, zeros_like(count))
    name, m = mode_name(mode), y.shape[0]
    if name == "valid":
        return ops.convolve(x, y, mode="valid")
    whole = ops.convolve(x, y, mode="full")
    start = m - 1 - m // 2
    return whole if name == "full" else slice_axis(whole, 0, start, start + x.shape[0])


def mode_name(mode: Any) -> str:
    """Return the name of a mode, given by name, by its first letter or by number."""
    if isinstance(mode, int) and 0 <= mode < len(MODES):
        return MODES[mode]
    for name in MODES:
        if isinstance(mode, str) and mode and mode.lower()[0] == name[0]:
            return name
    raise ShapeError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
