"""The ufuncs of the digits of numbers: bits, divisors, exponents, neighbours."""

from __future__ import annotations

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy.loops import elementwise
from fnad.ops import digits as ops
from fnad.ops.arithmetic import neg

elementwise(np.gcd)(ops.gcd)
elementwise(np.lcm)(ops.lcm)
elementwise(np.bitwise_count)(ops.bitwise_count)
elementwise(np.spacing)(ops.spacing)
elementwise(np.nextafter)(ops.nextafter)
elementwise(np.ldexp)(ops.ldexp)


@elementwise(np.frexp)
def frexp(x: Symbol) -> tuple[Symbol, Symbol]:
    """Return m, which moves with x, and the integer e of x = m * 2**e."""
    e = ops.exponent(x)
    return ops.ldexp(x, neg(e)), e
