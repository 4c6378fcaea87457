"""NumPy's functions that call a user function: it is called on traced values, as many times as NumPy would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np

from fnad.errors import DomainError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, Shape
from fnad.numpy.operands import as_symbol, axis_of, contains_symbol
from fnad.numpy.registry import implements
from fnad.trace.dispatch import call_function
from fnad.trace.handle import Handle
from fnad.trace.selection import check_mask
from fnad.upward import UPWARD


def handle(value: Any) -> Any:
    """The value that the user's function receives for an argument."""
    return UPWARD.handle_of(value, is_scalar=not value.shape) if isinstance(value, Symbol) else value


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Callable[..., Any], axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    x: Any = UPWARD.handle_of(as_symbol(arr))
    at = axis_of(axis, x.ndim)
    others = (*x.shape[:at], *x.shape[at + 1 :])
    if 0 in others:
        raise ShapeError("Cannot apply_along_axis when any iteration dimensions are 0")
    rows = np.moveaxis(x, at, -1)
    given, named = [handle(arg) for arg in args], {name: handle(arg) for name, arg in kwargs.items()}
    results = [func1d(rows[i], *given, **named) for i in np.ndindex(others)]
    stacked = call_function(np.stack, (results,), {})
    size = stacked.ndim - 1
    whole = np.reshape(stacked, (*others, *stacked.shape[1:]))
    inner = range(len(others), len(others) + size)
    return np.transpose(whole, (*range(at), *inner, *range(at, len(others)))).copy()


@implements(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: int = -1) -> Any:  # noqa: A002  # NumPy's name
    values = list(islice(handle(iter), None if count < 0 else count))
    if len(values) < count:
        raise ShapeError(f"iterator too short: Expected {count} but iterator had only {len(values)} items.")
    if not any(isinstance(value, Handle) for value in values):
        return np.fromiter(values, dtype)
    return call_function(np.stack, (values,), {}).astype(dtype)


# ---- piecewise -------------------------------------------------------------------------------------------------------


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    values: Any = UPWARD.handle_of(as_symbol(x))
    conditions = [_condition(condition, values.shape) for condition in _listed(condlist, values.ndim)]
    funclist = [*handle(funclist)]
    if len(conditions) == len(funclist) - 1:
        conditions.append(~reduce(np.logical_or, conditions))
    if len(conditions) != len(funclist):
        n = len(conditions)
        raise DomainError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    given, named = [handle(arg) for arg in args], {name: handle(arg) for name, arg in kw.items()}
    flat = values.reshape(-1)
    result = np.zeros_like(flat)
    for condition, function in zip(conditions, funclist, strict=True):
        chosen = flat[condition]
        result[condition] = function(chosen, *given, **named) if callable(function) else handle(function)
    return result.reshape(values.shape).copy()


def _listed(condlist: Any, ndim: int) -> list[Any]:
    """The conditions, of which one of one dimension may stand outside a list."""
    if not isinstance(condlist, (Symbol, np.ndarray, list, tuple)):
        return [condlist]
    rows = list(handle(condlist)) if isinstance(condlist, (Symbol, np.ndarray)) else list(condlist)
    is_one = ndim > 0 and all(np.ndim(handle(row)) == 0 for row in rows)
    return [condlist] if is_one else rows


def _condition(condition: Any, shape: Shape) -> Any:
    """The elements for which a condition over the first axes is true, along one axis."""
    mask: Any
    if isinstance(condition, Handle) or contains_symbol(condition):
        mask = UPWARD.handle_of(as_symbol(getattr(condition, "symbol", condition), BOOL))
    else:
        mask = np.asarray(condition, bool)
    if mask.ndim:
        check_mask(shape, mask.shape)
    return np.broadcast_to(mask.reshape((*mask.shape, *(1,) * (len(shape) - mask.ndim))), shape).reshape(-1).copy()
