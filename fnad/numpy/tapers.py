"""Windows that taper off, of a shape that may be traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy.operands import static_int
from fnad.numpy.registry import implements
from fnad.numpy.ufuncs import add, divide, multiply
from fnad.ops.bessel import i0


@implements(np.kaiser)
def kaiser(M: Any, beta: Any) -> Symbol:  # noqa: N803
    count = static_int(M, "a number of points")
    if count == 1:
        return add(np.ones(1), multiply(0.0, beta))
    middle = (count - 1) / 2
    chord = np.sqrt(1 - ((np.arange(count) - middle) / middle) ** 2)
    shape = multiply(1.0, beta)
    return divide(i0(multiply(shape, chord)), i0(shape))
