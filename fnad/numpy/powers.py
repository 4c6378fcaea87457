"""Powers: a constant exponent that is a small integer is a product, and exact where a product is.

The operator takes the short cuts that NumPy's takes: x**2 is a square, x**0.5 a square root.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact
from fnad.numpy.loops import converted, enters, loop_dtypes
from fnad.numpy.operands import as_symbol, is_python_number
from fnad.numpy.registry import RULES, implements
from fnad.ops.elementary import sqrt
from fnad.ops.power import UNROLLED, constant_pow, int_pow, pow_


@implements(operator.pow)
def power_operator(x: Any, y: Any) -> Symbol:
    """Return x**y."""
    if isinstance(x, Symbol) and x.ndim > 0 and is_python_number(y):
        if y == 2 and isinstance(y, int):
            return RULES[np.square](x)
        if y == 0.5:
            return sqrt(as_symbol(x, loop_dtypes(np.power, (x, y))[0]))
    return power(x, y)


@enters(np.power)
def power(x: Any, y: Any, dtype: Any = None) -> Symbol:
    return _power(np.power, x, y, dtype)


@enters(np.float_power)
def float_power(x: Any, y: Any, dtype: Any = None) -> Symbol:
    return _power(np.float_power, x, y, dtype)


def _power(ufunc: np.ufunc, x: Any, y: Any, dtype: Any) -> Symbol:
    exponent = constant_exponent(y)
    if exponent is not None and is_integral(exponent):
        base_dtype, exponent_dtype, _ = loop_dtypes(ufunc, (x, y), dtype)
        as_symbol(y, exponent_dtype)  # raises where it does not fit
        return constant_pow(as_symbol(x, base_dtype), int(exponent.real))
    (base, by), _ = converted(ufunc, (x, y), dtype)
    return (pow_ if is_inexact(base.dtype) else int_pow)(base, by)


def constant_exponent(y: Any) -> Any:
    """Return the exponent where it is a number, not an array or a traced value."""
    return y if isinstance(y, (int, float, complex, np.number)) else None


def is_integral(exponent: Any) -> bool:
    """Say whether a number is an integer that multiplications are written out for, or any Python or NumPy integer."""
    if isinstance(exponent, (int, np.integer)):
        return True
    return exponent.imag == 0 and abs(exponent.real) <= UNROLLED and float(exponent.real).is_integer()
