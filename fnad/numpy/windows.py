"""Windows that slide along axes: np.lib.stride_tricks.sliding_window_view, a view that cannot be written to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.numpy.axes import axis_of, static_ints
from fnad.numpy.operands import as_symbol
from fnad.numpy.registry import implements
from fnad.numpy.views import View
from fnad.ops.arithmetic import add
from fnad.ops.indexing import gather
from fnad.ops.shape import iota, transpose_to


class Windows(NamedTuple):
    """Windows of a size along an axis, which become the last axis."""

    axis: int
    size: int
    is_certain: bool = True
    is_writeable: bool = False

    def read(self, x: Symbol) -> Symbol:
        shape = (x.shape[self.axis] - self.size + 1, self.size)
        places = add(*[iota(dtype=I64, shape=shape, axis=i) for i in (0, 1)])
        others = [i for i in range(x.ndim) if i != self.axis]
        windows = gather(transpose_to(x, (self.axis, *others)), places)
        back = [2 + others.index(i) if i != self.axis else 0 for i in range(x.ndim)]
        return transpose_to(windows, (*back, 1))

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        raise AssertionError("windows are read-only")


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> View:
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
    return View(symbol, tuple(Windows(a, size) for a, size in zip(axes, sizes, strict=True)))
