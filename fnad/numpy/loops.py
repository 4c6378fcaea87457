"""How a ufunc is computed: NumPy's own choice of loop, conversion to its dtypes, broadcasting, then symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fnad.errors import DtypeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype, native_dtype
from fnad.numpy.operands import PYTHON_DTYPES, as_symbol, broadcast_all, check_dtypes, promotes_as
from fnad.numpy.registry import RULES, WRITERS, Rule
from fnad.numpy.ufunc_at import at
from fnad.ops.shape import reshape_to

Compute = Callable[..., Any]
"""From symbols of one shape, in the dtypes of the loop, to the result (a tuple of results where there are several)."""

_loops: dict[Any, tuple[Dtype, ...]] = {}


def loop_dtypes(ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None) -> tuple[Dtype, ...]:
    """Return the dtypes of the loop that NumPy runs on these operands: what it converts them to, then the results'.

    Raises `DtypeError`, with NumPy's message where there is no loop, and where its dtypes are none of fnad's.
    """
    key = (ufunc, dtype, *map(promotes_as, operands))
    found = _loops.get(key)
    if found is None:
        found = _loops[key] = _resolve(ufunc, key[2:], dtype)
    return found


def _resolve(ufunc: np.ufunc, dtypes: Sequence[Any], dtype: Any) -> tuple[Dtype, ...]:
    if all(isinstance(d, type) for d in dtypes):  # Python numbers alone
        dtypes = [PYTHON_DTYPES[d] for d in dtypes]
    given = None if dtype is None else np.dtype(dtype)
    signature = (None,) * ufunc.nin + (given,) * ufunc.nout
    try:
        resolved = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout), signature=signature, casting="same_kind")
    except TypeError as error:
        check_dtypes(dtypes)
        raise DtypeError(str(error)) from None
    for found in resolved:
        if found == np.float16:
            names = ", ".join(str(getattr(d, "__name__", d)) for d in dtypes)
            raise DtypeError(
                f"numpy.{ufunc.__name__} of {names} gives float16, which is not supported",
                remedy="convert the operand to float32 or float64 first",
            )
    return tuple(map(native_dtype, resolved))


def converted(ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None) -> tuple[list[Symbol], tuple[Dtype, ...]]:
    """Return the operands as symbols in the dtypes of the loop, of one shape, and the dtypes of the results."""
    dtypes = loop_dtypes(ufunc, operands, dtype)
    symbols = [as_symbol(operand, d) for operand, d in zip(operands, dtypes, strict=False)]
    return broadcast_all(symbols), dtypes[len(operands) :]


def enters(ufunc: np.ufunc) -> Callable[[Rule], Rule]:
    """Enter the rule of a ufunc, and with it those of its methods `outer` and `at`, which follow from it."""

    def enter(rule: Rule) -> Rule:
        RULES[ufunc] = rule
        if ufunc.nin == 2:
            RULES.setdefault((ufunc, "outer"), outer(rule))
        if ufunc.nin <= 2 and ufunc.nout == 1:
            WRITERS.setdefault((ufunc, "at"), partial(at, ufunc))
        return rule

    return enter


def elementwise(*ufuncs: np.ufunc) -> Callable[[Compute], Compute]:
    """Enter the rules of ufuncs that are computed on symbols of one shape in the dtypes of the loop."""

    def enter_all(compute: Compute) -> Compute:
        for ufunc in ufuncs:
            enters(ufunc)(ufunc_rule(ufunc, compute))
        return compute

    return enter_all


def outer(rule: Rule) -> Rule:
    """Return the rule of the method `outer`: the ufunc on all pairs of elements."""

    def method(a: Any, b: Any, /, *, dtype: Any = None) -> Any:
        x, y = as_symbol(a), as_symbol(b)
        return rule(reshape_to(x, (*x.shape, *(1,) * y.ndim)), y, dtype=dtype)

    return method


def ufunc_rule(ufunc: np.ufunc, compute: Compute) -> Callable[..., Any]:
    """Return the rule of a ufunc. Its options are those of NumPy, but for `where` and `out`, which are writes."""

    def rule(
        *operands: Any, dtype: Any = None, casting: str = "same_kind", order: str = "K", subok: bool = True
    ) -> Any:
        if casting != "same_kind":
            raise UnsupportedFunctionError(f"numpy.{ufunc.__name__} has no rule for casting={casting!r}")
        return compute(*converted(ufunc, operands, dtype)[0])

    return rule
