"""Sums, products, extrema and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_symbol
from fnad.numpy.registry import implements
from fnad.ops.shape import reduce_sum


@implements(np.sum)
def sum_(a: Any, axis: Any = None) -> Symbol:
    x = as_symbol(a)
    axes = tuple(range(x.ndim)) if axis is None else (axis,)
    return reduce_sum(x, axes=axes)
