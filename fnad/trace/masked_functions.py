"""The functions of `numpy.ma` that make masked arrays of traced values (`fnad.trace.masked`).

They replace the functions of numpy.ma in a trace (`fnad.trace.stand_ins`), and follow the rule here for a traced
argument. The functions that numpy.ma composes of these, `masked_greater`, `average`, `maximum`, keep their bodies.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.ma as ma

from fnad.errors import ShapeError
from fnad.trace.dispatch import call_function
from fnad.trace.entering import holds_traced
from fnad.trace.masked import TracedMaskedArray, made
from fnad.trace.masked_operands import (
    data_of,
    fill_value_of,
    is_masked_array,
    is_no_divisor,
    mask_of,
    mask_or,
    put_back,
    unsupported,
    whole_mask_of,
)

Function = Callable[..., Any]


def of_ma(path: str) -> Callable[[Function], Function]:
    """The replacement of a numpy.ma function if an argument is traced."""

    def enter(rule: Function) -> Function:
        @wraps(rule)
        def call(*args: Any, **kwargs: Any) -> Any:
            follows = holds_traced((args, kwargs))
            return (rule if follows else resolve_name(f"numpy.ma.core:{path}"))(*args, **kwargs)

        return call

    return enter


@of_ma("MaskedArray.__new__")
def masked_array(
    cls: Any,
    data: Any = None,
    mask: Any = ma.nomask,
    dtype: Any = None,
    copy: Any = False,
    subok: bool = True,
    ndmin: int = 0,
    fill_value: Any = None,
    keep_mask: bool = True,
    hard_mask: Any = None,
    shrink: bool = True,
    order: Any = None,
) -> Any:
    if hard_mask or cls is not ma.MaskedArray:
        raise unsupported(f"{cls.__name__} with hard_mask" if hard_mask else f"{cls.__module__}.{cls.__name__}")
    values = call_function(np.array, (data_of(data),), {"dtype": dtype, "copy": copy or None, "ndmin": ndmin})
    if mask is not ma.nomask:
        mask = call_function(np.array, (False if mask is None else mask, bool), {"copy": copy or None})
        mask = np.resize(mask, values.shape) if mask.size == 1 else np.reshape(mask, values.shape)
    own_mask = mask_of(data) if keep_mask else ma.nomask
    own_mask = own_mask.copy() if copy and own_mask is not ma.nomask else own_mask
    found = object.__new__(TracedMaskedArray)
    found._data, found._mask = values, mask if own_mask is ma.nomask else mask_or(own_mask, mask)
    found._fill_value = fill_value_of(data) if fill_value is None else fill_value
    return found


@of_ma("_MaskedUnaryOperation.__call__")
def unary(operation: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    data, mask = data_of(a), mask_of(a)
    result = operation.f(data, *args, **kwargs)
    if operation.domain is not None:
        mask = mask_or(~np.isfinite(result), operation.domain(data), mask)
    if np.ndim(result) and np.can_cast(data.dtype, result.dtype, "same_kind"):
        result = put_back(result, data, mask)
    return made(result, mask, fill_value_of(a))


@of_ma("_MaskedBinaryOperation.__call__")
def binary(operation: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    result, mask = operation.f(data_of(a), data_of(b), *args, **kwargs), mask_or(mask_of(a), mask_of(b))
    return made(put_back(result, data_of(a), mask), mask, fill_value_of(a, b))


@of_ma("_DomainedBinaryOperation.__call__")
def domained(operation: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    data = data_of(a)
    result = operation.f(data, data_of(b), *args, **kwargs)
    mask = mask_or(~np.isfinite(result), mask_of(a), mask_of(b), is_no_divisor(data, data_of(b)))
    left = data if np.can_cast(np.result_type(data), result.dtype) else np.zeros((), result.dtype)
    return made(put_back(result, left, mask), mask, fill_value_of(a, b))


@of_ma("power")
def power(a: Any, b: Any, third: Any = None) -> Any:
    mask = mask_or(mask_of(a), mask_of(b))
    result = np.power(data_of(a), data_of(b))
    result = put_back(result, data_of(a), mask)
    invalid = ~np.isfinite(result)
    fill = fill_value_of(a)
    fill = ma.default_fill_value(result.dtype) if fill is None else fill
    return made(np.where(invalid, np.asarray(fill, result.dtype), result), mask_or(mask, invalid), fill_value_of(a))


@of_ma("MaskedArray._comparison")
def compared(x: Any, y: Any, compare: Function) -> Any:
    """An operator; for `==` and `!=` two masked elements are equal, and a masked one differs from others."""
    masks = mask_of(x), mask_of(y)
    result, mask = compare(data_of(x), data_of(y)), mask_or(*masks)
    if mask is not ma.nomask and compare in (operator.eq, operator.ne):
        result = np.where(mask, compare(*masks), result)
    return made(result, mask)


@of_ma("masked_where")
def masked_where(condition: Any, a: Any, copy: bool = True) -> Any:
    where = filled(condition, True)
    where = call_function(np.asarray, (where, bool), {})
    if np.shape(where) not in ((), np.shape(a)):
        what = f"the condition is of shape {np.shape(where)}, and the array of shape {np.shape(a)}"
        raise ShapeError.here(what, remedy="give a condition of the shape of the array")
    data = call_function(np.array, (data_of(a),), {"copy": copy or None})
    return made(data, mask_or(np.broadcast_to(where, data.shape), mask_of(a)), fill_value_of(a))


@of_ma("masked_invalid")
def masked_invalid(a: Any, copy: bool = True) -> Any:
    return masked_where(~np.isfinite(data_of(a)), a, copy)


@of_ma("filled")
def filled(a: Any, fill_value: Any = None) -> Any:
    return a.filled(fill_value) if is_masked_array(a) else data_of(a)


@of_ma("getdata")
def getdata(a: Any, subok: bool = True) -> Any:
    return data_of(a)


@of_ma("getmaskarray")
def getmaskarray(arr: Any) -> Any:
    return whole_mask_of(arr)


@of_ma("where")
def where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise unsupported("numpy.ma.where of a condition alone")
    data = [0.0 if x is ma.masked else data_of(x) for x in choices]
    masks = map(whole_mask_of, choices)
    found = np.where(filled(condition, False), *data)
    mask = np.where(filled(condition, False), *masks)
    return made(found, mask_or(mask, mask_of(condition)))


@of_ma("dot")
def dot(a: Any, b: Any, strict: bool = False, out: Any = None) -> Any:
    if strict or out is not None:
        raise unsupported("the options strict and out of numpy.ma.dot")
    there = np.dot(*[(~whole_mask_of(x)).astype(int) for x in (a, b)])
    return made(np.dot(filled(a, 0), filled(b, 0)), there == 0, fill_value_of(a, b))


@of_ma("concatenate")
def concatenate(arrays: Any, axis: int = 0) -> Any:
    masks = ma.nomask if all(mask_of(x) is ma.nomask for x in arrays) else list(map(whole_mask_of, arrays))
    data = call_function(np.concatenate, ([data_of(x) for x in arrays], axis), {})
    return made(data, masks if masks is ma.nomask else call_function(np.concatenate, (masks, axis), {}))


MaskedArray = SimpleNamespace(__new__=masked_array, _comparison=compared)
_MaskedUnaryOperation = SimpleNamespace(__call__=unary)
_MaskedBinaryOperation = SimpleNamespace(__call__=binary)
_DomainedBinaryOperation = SimpleNamespace(__call__=domained)
