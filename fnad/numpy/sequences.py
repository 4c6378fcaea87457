"""`r_[…]` and `c_[…]`: arrays, numbers and ranges side by side, any of them traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.builder import is_tracing
from fnad.ir.symbol import Symbol
from fnad.numpy.creating import linspace
from fnad.numpy.joining import join
from fnad.numpy.namespace import CALLS
from fnad.numpy.operands import Ints, as_symbol, common_dtype, is_python_number
from fnad.numpy.registry import RULES
from fnad.ops.shape import reshape_to, transpose_to

Concatenator: Any = type(np.r_).__base__


class Sequences(Concatenator):
    """NumPy's `r_` or `c_` that takes traced values."""

    def __init__(self, original: Any) -> None:
        super().__init__(original.axis, original.matrix, original.ndmin, original.trans1d)

    def __getitem__(self, key: Any) -> Any:
        entries = key if isinstance(key, tuple) else (key,)
        if is_tracing() and any(map(_has_traced, entries)):
            return CALLS["traced"](side_by_side, (entries, self.axis, self.ndmin, self.trans1d), {})
        return super().__getitem__(key)


def _has_traced(entry: Any) -> bool:
    return CALLS["has_traced"]([entry.start, entry.stop, entry.step] if isinstance(entry, slice) else entry)


def side_by_side(entries: tuple[Any, ...], axis: int, ndmin: int, trans1d: int) -> Symbol:
    """Return the entries as arrays of at least `ndmin` axes, joined along an axis.

    The first may be a directive "axis", "axis,ndmin" or "axis,ndmin,trans1d", as NumPy describes it.
    """
    if isinstance(entries[0], str):
        numbers = _directive(entries[0])
        axis, ndmin, trans1d = (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])
        entries = entries[1:]
    if any(isinstance(entry, str) for entry in entries):
        raise ShapeError("special directives must be the first entry.")
    values = [_range(entry) if isinstance(entry, slice) else entry for entry in entries]
    dtype = common_dtype(*values)
    return join([_raised(as_symbol(v, dtype), v, ndmin, trans1d) for v in values], axis)


def _directive(text: str) -> Ints:
    if text in ("r", "c"):
        raise ShapeError(f"the directive {text!r} makes a np.matrix, which is not supported")
    try:
        return tuple(map(int, text.split(",")))[:3]
    except ValueError:
        raise ShapeError(f"unknown special directive {text!r}") from None


def _range(entry: slice) -> Any:
    start, step = 0 if entry.start is None else entry.start, 1 if entry.step is None else entry.step
    if isinstance(step, (complex, np.complexfloating)):
        return linspace(start, entry.stop, int(abs(step)))
    return np.arange(start, entry.stop, step)


def _raised(x: Symbol, value: Any, ndmin: int, trans1d: int) -> Symbol:
    """Return x with axes of size 1 in front, those it has moved to where `trans1d` says."""
    added = ndmin - x.ndim
    if added <= 0:
        return x
    raised = reshape_to(x, (1,) * added + x.shape)
    if trans1d == -1 or is_python_number(value):
        return raised
    at = trans1d + added + 1 if trans1d < 0 else trans1d
    axes = tuple(range(ndmin))
    return transpose_to(raised, axes[:at] + axes[added:] + axes[at:added])


RULES[side_by_side] = side_by_side

r_ = Sequences(np.r_)
c_ = Sequences(np.c_)
