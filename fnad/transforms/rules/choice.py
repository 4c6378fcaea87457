"""Rules for selection by bools, logic, casts, and complex numbers and their parts."""

from __future__ import annotations

import numpy as np

from fnad.ir.primitive import Primitive
from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_or, eq, ne, select
from fnad.ops.constructors import BITS, BOOLS
from fnad.ops.conversion import convert_to, imag, real
from fnad.ops.shape import constant, zeros_like
from fnad.transforms.pattern import Rule


def _of_bools(operation: Primitive, c: Symbol, x: Symbol) -> Symbol | None:
    return operation(c, x) if c.aval == x.aval else None


SELECT = (
    Rule("select(c, x, x) = x", lambda c, x: x),
    Rule("select(True, x, y) = x", lambda x, y: x),
    Rule("select(False, x, y) = y", lambda x, y: y),
    Rule("select(bitwise_not(c), x, y) = select(c, y, x)", lambda c, x, y: select(c, y, x)),
    Rule("select(c, select(c, x, y), z) = select(c, x, z)", lambda c, x, y, z: select(c, x, z)),
    Rule("select(c, x, select(c, y, z)) = select(c, x, z)", lambda c, x, y, z: select(c, x, z)),
    Rule("select(c, True, x) = bitwise_or(c, x)", lambda c, x: _of_bools(bitwise_or, c, x)),
    Rule("select(c, x, False) = bitwise_and(c, x)", lambda c, x: _of_bools(bitwise_and, c, x)),
)

LOGIC = (
    Rule("bitwise_not(bitwise_not(x)) = x", lambda x: x),
    Rule("bitwise_not(eq(x, y)) = ne(x, y)", ne),
    Rule("bitwise_not(ne(x, y)) = eq(x, y)", eq),
    Rule("bitwise_and(x, x) = x", lambda x: x),
    Rule("bitwise_or(x, x) = x", lambda x: x),
    Rule("bitwise_xor(x, x) = 0", zeros_like),
    Rule("bitwise_and(x, 0) = 0", zeros_like),
    Rule("bitwise_or(x, 0) = x", lambda x: x),
    Rule("bitwise_xor(x, 0) = x", lambda x: x),
    Rule("bitwise_and(c, True) = c", lambda c: c, BOOLS),
    Rule("bitwise_or(c, True) = True", lambda c: constant(True, c.dtype, c.shape), BOOLS),
    Rule("bitwise_xor(c, True) = bitwise_not(c)", bitwise_not, BOOLS),
)


def _keeps_values(source: Dtype, target: Dtype) -> bool:
    """True if every value of one dtype is one of the other (NumPy calls i64 to f64 safe, which rounds)."""
    rounds = source in BITS and source.itemsize == 8 and target.kind in "fc"
    return bool(np.can_cast(source, target)) and not rounds


def _skip_convert(x: Symbol, between: Dtype, dtype: Dtype) -> Symbol | None:
    """Skip a cast that preserves values; casting an out-of-range float to an integer depends on the float's dtype."""
    overflows = between.kind in "fc" and dtype.kind in "iu" and dtype != x.dtype
    return None if overflows or not _keeps_values(x.dtype, between) else convert_to(x, dtype)


CONVERT = (
    Rule("convert(x, dtype=dtype) = x where this is its dtype", lambda x, dtype: x if x.dtype == dtype else None),
    Rule("convert(convert(x, dtype=between), dtype=dtype) = convert(x)", _skip_convert),
    Rule("real(complex(x, y)) = x", lambda x, y: x),
    Rule("imag(complex(x, y)) = y", lambda x, y: y),
    Rule("complex(real(z), imag(z)) = z", lambda z: z),
    Rule("conj(conj(z)) = z", lambda z: z),
    Rule("real(conj(z)) = real(z)", real),
    Rule("imag(conj(z)) = -imag(z)", lambda z: -imag(z)),
)
