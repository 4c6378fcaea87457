"""The ufuncs: NumPy's own type resolution, broadcasting, then one primitive or a short composition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype, native_dtype
from fnad.numpy.operands import as_symbol, broadcast_all, promotes_as
from fnad.numpy.registry import RULES
from fnad.ops import arithmetic, elementary

_loops: dict[Any, tuple[Dtype, ...]] = {}


def loop_dtypes(ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None) -> tuple[Dtype, ...]:
    """Return the dtypes of the loop that NumPy runs on these operands: those it converts them to, then the results'."""
    key = (ufunc, dtype, *map(promotes_as, operands))
    found = _loops.get(key)
    if found is None:
        found = _loops[key] = _resolve(ufunc, key[2:], dtype)
    return found


def _resolve(ufunc: np.ufunc, dtypes: Sequence[Any], dtype: Any) -> tuple[Dtype, ...]:
    given = None if dtype is None else np.dtype(dtype)
    signature = (None,) * ufunc.nin + (given,) * ufunc.nout
    resolved = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout), signature=signature, casting="same_kind")
    return tuple(map(native_dtype, resolved))


def elementwise(ufunc: np.ufunc, compute: Callable[..., Symbol]) -> None:
    """Enter the rule of a ufunc, computed by `compute` on operands of one shape in the dtypes of the loop."""

    def rule(*operands: Any, dtype: Any = None) -> Symbol:
        dtypes = loop_dtypes(ufunc, operands, dtype)
        symbols = [as_symbol(operand, d) for operand, d in zip(operands, dtypes, strict=False)]
        return compute(*broadcast_all(symbols))

    RULES[ufunc] = rule


elementwise(np.add, arithmetic.add)
elementwise(np.multiply, arithmetic.mul)
elementwise(np.sin, elementary.sin)
