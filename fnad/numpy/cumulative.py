"""Running products and sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.numpy.joining import join
from fnad.numpy.operands import as_symbol, axis_of
from fnad.numpy.reductions import cumsum, running, widened
from fnad.numpy.registry import implements
from fnad.ops import scan
from fnad.ops.shape import constant, reshape_to

# ---- running products ------------------------------------------------------------------------------------------------


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Symbol:
    x = widened(a, dtype)
    if axis is None or not x.shape:
        x, axis = reshape_to(x, (x.aval.size,)), axis or 0
    return running(scan.cumprod, x, axis_of(axis, x.ndim))


def _cumulative(running: Callable[..., Symbol], neutral: int) -> Callable[..., Symbol]:
    def rule(
        x: Any, /, *, axis: Any = None, dtype: Any = None, out: None = None, include_initial: bool = False
    ) -> Symbol:
        symbol = as_symbol(x)
        if symbol.ndim == 0:
            symbol = reshape_to(symbol, (1,))
        if axis is None and symbol.ndim > 1:
            raise ShapeError("For arrays which have more than one dimension ``axis`` argument is required.")
        at = axis_of(0 if axis is None else axis, symbol.ndim)
        result = running(symbol, at, dtype)
        if not include_initial:
            return result
        first = tuple(1 if i == at else n for i, n in enumerate(result.shape))
        return join([constant(neutral, result.dtype, first), result], at)

    return rule


cumulative_sum = implements(np.cumulative_sum)(_cumulative(cumsum, 0))
cumulative_prod = implements(np.cumulative_prod)(_cumulative(cumprod, 1))


@implements((np.multiply, "accumulate"))
def multiply_accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Symbol:
    return cumprod(array, axis, dtype)
