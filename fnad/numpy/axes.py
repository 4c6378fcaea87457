"""Axes, shapes and counts as the user gives them: they have to be known while tracing."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from fnad.errors import AxisError, TracerEscapeError
from fnad.ir.known import known_value
from fnad.ir.symbol import Symbol
from fnad.ir.types import Shape

Ints = tuple[int, ...]

FIXED = "shapes are fixed in a trace: write int(n), which makes a path of each number, or pass an ordinary int"


def static_int(value: Any, what: str) -> int:
    """Return a size, a count or an axis as an int; raise where it is a traced value, and TypeError as NumPy."""
    return operator.index(static_number(value, what))


def static_number(value: Any, what: str, remedy: str = FIXED) -> Any:
    """Return a number that has to be known; raise where it is a traced value."""
    if not isinstance(value, Symbol):
        return value
    known = known_value(value)
    if known is None:
        raise TracerEscapeError(
            f"{what} was given as a traced value of aval {value.aval}, which has no number while tracing", remedy=remedy
        )
    return known[()]


def static_ints(value: Any, what: str) -> Ints:
    """Return one int or a sequence of them as a tuple."""
    known = known_value(value) if isinstance(value, Symbol) and value.ndim else None
    values: Iterable[Any] = known if known is not None else value if isinstance(value, Iterable) else (value,)
    return tuple(static_int(v, what) for v in values)


def axis_of(axis: Any, ndim: int) -> int:
    """Return an axis as a number from 0 on."""
    index = static_int(axis, "an axis")
    if not -ndim <= index < ndim:
        raise AxisError(f"axis {index} is out of bounds for array of dimension {ndim}")
    return index + ndim if index < 0 else index


def axes_of(axis: Any, ndim: int) -> Ints:
    """Return the axes, None for all, in the order given."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis_of(a, ndim) for a in (axis if isinstance(axis, Iterable) else (axis,)))
    if len(set(axes)) != len(axes):
        raise AxisError("duplicate value in 'axis'")
    return axes


def reduced_axes(axis: Any, ndim: int) -> Ints:
    """Return the axes that a ufunc reduces: of no dimensions it takes 0 and -1 for none."""
    is_none = ndim == 0 and isinstance(axis, int) and axis in (0, -1)
    return () if is_none else axes_of(axis, ndim)


def reduced_shape(shape: Shape, axes: Ints, keepdims: bool) -> Shape:
    """Return the shape after a reduction."""
    if keepdims:
        return tuple(1 if a in axes else n for a, n in enumerate(shape))
    return tuple(n for a, n in enumerate(shape) if a not in axes)
