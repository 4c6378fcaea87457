"""sin(πx) / (πx), with all its derivatives at 0.

The quotient loses its derivatives near 0, where numerator and denominator vanish together. For |πx| < 1 its series is
used, (DLMF 4.19.1) over z, with as many terms as the second derivative needs:

    sin z / z = Σ_k (-z²)^k / (2k + 1)!
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.operands import as_array, to_dtype
from fnad.numpy.registry import implements
from fnad.numpy.ufuncs import absolute, scaled
from fnad.ops.arithmetic import add, div, mul, neg
from fnad.ops.comparison import lt, select
from fnad.ops.elementary import sin
from fnad.ops.shape import full_like, ones_like, zeros_like

TERMS = 12


@implements(np.sinc)
def sinc(x: Any) -> Symbol:
    symbol = as_array(x)
    z = scaled(to_dtype(symbol, F64) if symbol.dtype.kind in "biu" else symbol, math.pi)
    size = absolute(z)
    is_small = lt(size, ones_like(size))
    near, far = select(is_small, z, zeros_like(z)), select(is_small, ones_like(z), z)
    return select(is_small, _series(mul(near, near)), div(sin(far), far))


def _series(square: Symbol) -> Symbol:
    """Return Σ_k (-square)^k / (2k + 1)!, by Horner's rule."""
    result = full_like(square, 1 / math.factorial(2 * TERMS + 1))
    for k in reversed(range(TERMS)):
        result = add(mul(result, neg(square)), full_like(square, 1 / math.factorial(2 * k + 1)))
    return result
