"""The parameters of draws: shapes, dtypes and parameters, which are checked if their values are known."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, TypeAlias

import numpy as np

import fnad.numpy as fnp
from fnad.errors import AxisError, DomainError, DtypeError, ShapeError
from fnad.ir.builder import is_tracing
from fnad.ir.types import F32, F64, Dtype, Shape, dtype_name, native_dtype
from fnad.numpy import operands
from fnad.trace.source import current_source
from fnad.upward import UPWARD

Array: TypeAlias = Any
"""A NumPy array or scalar, or a traced one."""


def is_traced(*values: Any) -> bool:
    """True if any of these is traced, so that its value is not known."""
    return is_tracing() and UPWARD.has_traced(values)


def as_array(value: Any) -> Array:
    """A parameter as an array."""
    return fnp.asarray(value) if is_traced(value) else np.asarray(value)


def as_shape(shape: Any) -> Shape:
    """A shape given as an integer or several; raises `ShapeError` for a negative extent."""
    extents = tuple(map(index, shape)) if hasattr(shape, "__iter__") else (index(shape),)
    if any(n < 0 for n in extents):
        raise ShapeError.here(
            f"negative dimensions are not allowed, got the shape {extents}", remedy="give extents of at least 0"
        )
    return extents


def shape_of(shape: Any, what: str, *parameters: Shape) -> Shape:
    """The shape of a draw, by default that of its parameters; raises `ShapeError` if they do not broadcast to it."""
    if shape is None:
        return np.broadcast_shapes(*parameters)
    extents = as_shape(shape)
    try:
        fits = np.broadcast_shapes(extents, *parameters) == extents
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError.here(
            f"{what} of shape {' and '.join(map(str, parameters))} cannot be broadcast to a draw of shape {extents}",
            remedy="give the shape of the whole draw, which ends in that of the parameters",
        )
    return extents


def axis_of(axis: Any, ndim: int) -> int:
    """An axis counted from 0; raises `AxisError` if it does not exist."""
    try:
        return operands.axis_of(axis, ndim)
    except AxisError as error:
        raise error.at(current_source(), "axes are counted from 0, or from the last one as -1") from None


def float_dtype(dtype: Any) -> Dtype:
    """The dtype of a continuous draw; raises `DtypeError` for one that is neither float64 nor float32."""
    found = native_dtype(dtype)
    if found not in (F64, F32):
        raise DtypeError.here(
            f"a continuous draw cannot be {dtype_name(found)}",
            remedy="draw float64 or float32, and convert with astype",
        )
    return found


def check(what: str, holds: Callable[..., Any], *values: Any, remedy: str) -> None:
    """Raise `DomainError` unless a condition holds for all elements of known parameters."""
    if is_traced(*values):
        return
    with np.errstate(all="ignore"):
        if not np.all(holds(*map(np.asarray, values))):
            raise DomainError.here(what, remedy=remedy)
