"""Functions that only move elements about by numbers that are known while tracing: `insert`, `delete`, `resize`.

NumPy itself is asked where they go: the function is called on the positions of the elements, 0, 1, 2, …, and what it
returns says where each element of the result comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import OutOfRangeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.numpy.joining import join
from fnad.numpy.operands import as_symbol, axis_of, static_array, static_int, static_ints
from fnad.numpy.rearranging import fresh
from fnad.numpy.registry import implements
from fnad.numpy.views import ArrayView
from fnad.ops.indexing import gather
from fnad.ops.shape import constant, reshape_to


def moved(function: Callable[..., Any], *arrays: Symbol) -> Symbol:
    """Return what a function that moves the elements of arrays makes of these, which are of one dtype."""
    positions, start = [], 0
    for array in arrays:
        positions.append(np.arange(start, start + array.aval.size).reshape(array.shape))
        start += array.aval.size
    try:
        origin = np.asarray(function(*positions))
    except IndexError as error:
        raise OutOfRangeError(str(error)) from None
    except ValueError as error:
        raise ShapeError(str(error)) from None
    flat = join([reshape_to(array, (array.aval.size,)) for array in arrays], 0)
    if origin.size == 0:
        return constant(0, flat.dtype, origin.shape)
    return gather(flat, as_symbol(origin))


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Symbol:
    x = as_symbol(arr)
    where = static_object(obj)
    at = None if axis is None else axis_of(axis, x.ndim)
    return moved(lambda a, v: np.insert(a, where, v, at), x, as_symbol(values, x.dtype))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Symbol:
    x, where = as_symbol(arr), static_object(obj)
    at = None if axis is None else axis_of(axis, x.ndim)
    return moved(lambda a: np.delete(a, where, at), x)


def static_object(obj: Any) -> Any:
    """Return places that have to be known while tracing: an int, a slice, integers or a mask."""
    if isinstance(obj, slice):
        parts = (obj.start, obj.stop, obj.step)
        return slice(*[None if part is None else static_int(part, "a bound of a slice") for part in parts])
    return static_array(obj)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> ArrayView:
    x, shape = as_symbol(a), static_ints(new_shape, "a shape")
    if any(n < 0 for n in shape):
        raise ShapeError("all elements of `new_shape` must be non-negative")
    if x.aval.size == 0:
        return fresh(constant(0, x.dtype, shape), in_order=True)
    return fresh(moved(lambda p: np.resize(p, shape), x), in_order=True)
