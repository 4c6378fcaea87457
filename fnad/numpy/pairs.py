"""The method `outer` of ufuncs of two operands: the ufunc on all pairs of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_symbol, is_python_number
from fnad.numpy.registry import RULES, Rule
from fnad.ops.shape import reshape_to


def _outer(rule: Rule) -> Callable[..., Any]:
    def method(a: Any, b: Any, /, *, dtype: Any = None) -> Any:
        y = b if is_python_number(b) else as_symbol(b)
        return rule(a if is_python_number(a) else _before(as_symbol(a), getattr(y, "ndim", 0)), y, dtype=dtype)

    return method


def _before(x: Symbol, ndim: int) -> Symbol:
    """Return x with axes of size 1 behind its own."""
    return reshape_to(x, (*x.shape, *(1,) * ndim))


for _ufunc, _rule in [(u, rule) for u, rule in RULES.items() if isinstance(u, np.ufunc)]:
    if _ufunc.nin == 2 and _ufunc.signature is None:
        RULES[_ufunc, "outer"] = _outer(_rule)
