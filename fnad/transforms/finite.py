"""Which values are never inf or nan, whatever the inputs are: inputs themselves may be either.

It decides where the strong product of reverse mode may become the plain one (see Note [Strong zero] in
`fnad/ops/arithmetic.py`).
"""

from __future__ import annotations

import numpy as np

from fnad.ir.primitive import Concatenation, DynamicSlice, DynamicUpdate, Gather, View
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact, real_dtype
from fnad.ops.arithmetic import neg
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import select
from fnad.ops.conversion import complex_, conj, convert, imag, real
from fnad.ops.elementary import arctan, cos, sin, tanh
from fnad.ops.piecewise import abs_, copysign, fmax, fmin, maximum, minimum, sign
from fnad.ops.shape import iota
from fnad.ops.special import erf, erfc, logistic
from fnad.transforms.rewrite import constant_of, definition, operands_of

BOUNDED = frozenset(
    {
        *(neg, abs_, sign, copysign, maximum, minimum, fmax, fmin, select, stop_gradient, real, imag, conj, complex_),
        *(arctan, erf, erfc, logistic, iota),
    }
)
"""Primitives that are finite at finite operands."""

BOUNDED_ON_REALS = frozenset({sin, cos, tanh})
"""Those that are so on the real line only."""

MOVING = View | Concatenation | Gather | DynamicSlice | DynamicUpdate
"""Every element of the result is an element of an operand, or zero."""

DEPTH = 8
"""How far back a value is followed, to keep the search short."""


def is_finite(symbol: Symbol, depth: int = DEPTH) -> bool:
    """Say whether no element can ever be inf or nan."""
    if not is_inexact(symbol.dtype):
        return True
    value = constant_of(symbol)
    if value is not None:
        return bool(np.isfinite(value))
    found = definition(symbol)
    if found is None or depth == 0:
        return False
    primitive, operands = found.primitive, operands_of(symbol, found)
    keeps = (
        primitive in BOUNDED
        or isinstance(primitive.lower, MOVING)
        or (primitive in BOUNDED_ON_REALS and symbol.dtype.kind == "f")
        or (primitive is convert and not _narrows(operands[0], symbol))
    )
    return keeps and all(is_finite(operand, depth - 1) for operand in operands)


def _narrows(source: Symbol, target: Symbol) -> bool:
    """Say whether a float may be too large for its new dtype; integers never are."""
    return is_inexact(source.dtype) and real_dtype(source.dtype).itemsize > real_dtype(target.dtype).itemsize
