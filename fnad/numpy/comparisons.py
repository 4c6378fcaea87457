"""The ufuncs that answer yes or no, and those on bits.

NumPy compares by value a Python integer that an array's dtype cannot hold, and i64 with u64; it compares complex
numbers in lexicographic order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, DTYPES, Dtype
from fnad.numpy.lexicographic import lexicographic
from fnad.numpy.loops import Compute, converted, elementwise, enters
from fnad.numpy.operands import as_symbol, to_dtype
from fnad.ops import comparison
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, eq, lt, ne
from fnad.ops.shape import constant, zeros_like

U8, U64 = DTYPES["u8"], DTYPES["u64"]

# ---- comparisons -----------------------------------------------------------------------------------------------------


def _comparison(ufunc: np.ufunc, compare: Compute, of_complex: Compute) -> None:
    """Enter the rule of a comparison that is `compare` on real numbers of one dtype."""

    def rule(x: Any, y: Any, dtype: Any = None) -> Symbol:  # numpy has only bool here
        if out_of_range(x, y) or out_of_range(y, x):
            return constant(bool(ufunc(side(x), side(y))), BOOL, as_symbol(x if isinstance(y, int) else y).shape)
        (a, b), _ = converted(ufunc, (x, y))
        if a.dtype != b.dtype:
            return _by_value(ufunc, compare, a, b)
        if a.dtype.kind == "b":
            return compare(to_dtype(a, U8), to_dtype(b, U8))
        return (of_complex if a.dtype.kind == "c" else compare)(a, b)

    enters(ufunc)(rule)


def out_of_range(x: Any, y: Any) -> bool:
    """Say whether x is a Python integer that the integer dtype of y does not hold."""
    dtype: Dtype | None = getattr(y, "dtype", None)
    if not isinstance(x, int) or dtype is None or dtype.kind not in "iu":
        return False
    return not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max


def side(x: Any) -> int:
    """Return a number that compares with 0 as an out-of-range integer does with anything, and 0 for anything."""
    return (1 if x > 0 else -1) if isinstance(x, int) else 0


def _by_value(ufunc: np.ufunc, compare: Compute, x: Symbol, y: Symbol) -> Symbol:
    """Compare i64 with u64: a negative number is below all unsigned ones."""
    signed = x if x.dtype.kind == "i" else y
    negative = lt(signed, zeros_like(signed))
    same_sign = compare(to_dtype(x, U64), to_dtype(y, U64))
    if ufunc(-1, 1) if signed is x else ufunc(1, -1):
        return bitwise_or(negative, same_sign)
    return bitwise_and(bitwise_not(negative), same_sign)


_comparison(np.equal, eq, eq)
_comparison(np.not_equal, ne, ne)
for _ufunc, _strict, _compare in (
    (np.less, comparison.lt, comparison.lt),
    (np.less_equal, comparison.lt, comparison.le),
    (np.greater, comparison.gt, comparison.gt),
    (np.greater_equal, comparison.gt, comparison.ge),
):
    _comparison(_ufunc, _compare, lexicographic(_strict, _compare))

# ---- logic, on the truth of numbers ----------------------------------------------------------------------------------


def on_truth(logic: Compute) -> Compute:
    """Return a function of bools on whether its operands are other than 0."""
    return lambda *operands: logic(*[to_dtype(operand, BOOL) for operand in operands])


elementwise(np.logical_and)(on_truth(bitwise_and))
elementwise(np.logical_or)(on_truth(bitwise_or))
elementwise(np.logical_xor)(on_truth(bitwise_xor))
elementwise(np.logical_not)(on_truth(bitwise_not))

# ---- bits ------------------------------------------------------------------------------------------------------------

elementwise(np.bitwise_and)(bitwise_and)
elementwise(np.bitwise_or)(bitwise_or)
elementwise(np.bitwise_xor)(bitwise_xor)
elementwise(np.invert)(bitwise_not)
elementwise(np.left_shift)(comparison.left_shift)
elementwise(np.right_shift)(comparison.right_shift)

# ---- properties of numbers -------------------------------------------------------------------------------------------


def of_floats(primitive: Compute, otherwise: bool) -> Compute:
    """Return a property that integers and bools have, or not, all alike."""
    return lambda x: primitive(x) if x.dtype.kind in "fc" else constant(otherwise, BOOL, x.shape)


elementwise(np.isnan)(of_floats(comparison.isnan, False))
elementwise(np.isinf)(of_floats(comparison.isinf, False))
elementwise(np.isfinite)(of_floats(comparison.isfinite, True))
elementwise(np.signbit)(comparison.signbit)
