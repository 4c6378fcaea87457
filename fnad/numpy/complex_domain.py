"""`numpy.emath`: roots, powers and logarithms that are complex where those of real numbers end.

Whether NumPy's result is real or complex depends on the values. Those of traced numbers are not known, so here it is
complex always; of numbers in the real domain the imaginary part is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_array, to_dtype
from fnad.numpy.registry import RULES, Rule, implements
from fnad.numpy.ufuncs import divide

OF_ONE = {
    np.emath.sqrt: np.sqrt,
    np.emath.log: np.log,
    np.emath.log2: np.log2,
    np.emath.log10: np.log10,
    np.emath.arccos: np.arccos,
    np.emath.arcsin: np.arcsin,
    np.emath.arctanh: np.arctanh,
}


def complex_(value: Any) -> Symbol:
    """Return an operand as an array of complex numbers, of its precision."""
    x = as_array(value)
    return to_dtype(x, np.result_type(x.dtype, np.complex64))


def _on_complex(ufunc: np.ufunc) -> Rule:
    return lambda x: RULES[ufunc](complex_(x))


for _function, _ufunc in OF_ONE.items():
    implements(_function)(_on_complex(_ufunc))


@implements(np.emath.logn)
def logn(n: Any, x: Any) -> Symbol:
    log = RULES[np.log]
    return divide(log(complex_(x)), log(complex_(n)))


@implements(np.emath.power)
def power(x: Any, p: Any) -> Symbol:
    return RULES[np.power](complex_(x), p)
