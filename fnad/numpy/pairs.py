"""The method `outer` of ufuncs of two operands: the ufunc on all pairs of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.numpy.operands import as_symbol
from fnad.numpy.registry import RULES, Rule
from fnad.ops.shape import reshape_to


def _outer(rule: Rule) -> Callable[..., Any]:
    def method(a: Any, b: Any, /, *, dtype: Any = None) -> Any:
        x, y = as_symbol(a), as_symbol(b)
        return rule(reshape_to(x, (*x.shape, *(1,) * y.ndim)), y, dtype=dtype)

    return method


for _ufunc, _rule in [(u, rule) for u, rule in RULES.items() if isinstance(u, np.ufunc)]:
    if _ufunc.nin == 2 and _ufunc.signature is None:
        RULES[_ufunc, "outer"] = _outer(_rule)
