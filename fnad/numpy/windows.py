"""Windows that slide along axes: np.lib.stride_tricks.sliding_window_view, a view that cannot be written to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_symbol, axis_of, static_ints
from fnad.numpy.registry import implements
from fnad.numpy.views import ArrayView
from fnad.ops.windows import windows


class Windows(NamedTuple):
    """Windows of a size along an axis, which become the last axis."""

    axis: int
    size: int
    is_certain: bool = True
    is_writeable: bool = False

    def read(self, x: Symbol) -> Symbol:
        return windows(x, axes=(self.axis,), sizes=(self.size,), strides=(1,), dilations=(1,))

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        raise AssertionError("windows are read-only")


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> ArrayView:
    symbol, sizes = as_symbol(x), static_ints(window_shape, "a window")
    given: Iterable[Any] = range(symbol.ndim) if axis is None else axis if isinstance(axis, Iterable) else (axis,)
    axes = [axis_of(a, symbol.ndim) for a in given]
    if writeable:
        raise UnsupportedFunctionError("sliding_window_view has no rule for writeable=True")
    if any(size < 0 for size in sizes):
        raise ShapeError("`window_shape` cannot contain negative values")
    if len(axes) != len(sizes):
        raise ShapeError(f"Must provide matching length window_shape and axis; got {len(sizes)} and {len(axes)}.")
    left = list(symbol.shape)
    for a, size in zip(axes, sizes, strict=True):
        if left[a] < size:
            raise ShapeError("window shape cannot be larger than input array shape")
        left[a] -= size - 1
    return ArrayView(symbol, tuple(Windows(a, size) for a, size in zip(axes, sizes, strict=True)))
