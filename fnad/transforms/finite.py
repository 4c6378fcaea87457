"""Which values are never inf or nan, whatever the inputs are; the inputs themselves may be either.

That decides where the strong product of reverse mode may become a plain one (see Note [Strong zero] in
`fnad/ops/arithmetic.py`).
"""

from __future__ import annotations

import numpy as np

from fnad.ir.primitive import Concatenation, DynamicSlice, DynamicUpdate, Gather, IndexMap
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact
from fnad.transforms.rewrite import constant_of, definition, operands_of

MOVING = IndexMap | Concatenation | Gather | DynamicSlice | DynamicUpdate
"""Every element of the result is an element of an operand, or zero."""

DEPTH = 8
"""The number of equations through which a value is traced back, to bound the search."""


def is_finite(symbol: Symbol, depth: int = DEPTH) -> bool:
    """True if no element can ever be inf or nan."""
    if not is_inexact(symbol.dtype):
        return True
    value = constant_of(symbol)
    if value is not None:
        return bool(np.isfinite(value))
    found = definition(symbol)
    if found is None or depth == 0:
        return False  # an input, or an unfinished search: not finite is the safe answer
    primitive, operands = found.primitive, operands_of(symbol, found)
    dtypes = [operand.dtype for operand in operands]
    # Addition is not here: even of finite operands its result overflows.
    keeps = isinstance(primitive.lower, MOVING) or primitive.bounded(symbol.dtype, *dtypes)
    return keeps and all(is_finite(operand, depth - 1) for operand in operands)
