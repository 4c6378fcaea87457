"""x.flat: an array read and written by the place of its elements in C order, wherever they lie in memory."""

from __future__ import annotations

from math import prod
from typing import Any

from fnad.errors import OutOfRangeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.numpy.indexing import as_tuple, getitem, has_ellipsis, is_traced_mask, setitem
from fnad.numpy.operands import as_symbol
from fnad.numpy.rearranging import fresh
from fnad.numpy.views import ArrayView
from fnad.numpy.writing import repeated
from fnad.ops.shape import constant, reshape_to


def flat_getitem(x: Symbol, index: Any) -> ArrayView | Symbol:
    """Return x.flat[index]: an element, or a copy of several."""
    found = getitem(_line(x), _checked(index))
    return fresh(found.read()) if isinstance(found, ArrayView) else found


def flat_setitem(x: Symbol, index: Any, value: Any) -> Symbol:
    """Return what x is after `x.flat[index] = value`: as many values as there are places, repeated or cut off."""
    if isinstance(index, tuple) and not index:
        raise OutOfRangeError("Assigning to a flat iterator with a 0-D index is not supported")
    line, index = _line(x), _checked(index)
    given = value if is_traced_mask(index) else _values(line, index, value)
    return x if given is None else reshape_to(setitem(line, index, given), x.shape)


def _line(x: Symbol) -> Symbol:
    return reshape_to(x, (x.aval.size,))


def _checked(index: Any) -> Any:
    parts = as_tuple(index)
    if len(parts) > 1:
        raise OutOfRangeError(
            f"too many indices for flat iterator: flat iterator is 1-dimensional, but {len(parts)} were indexed"
        )
    if any(part is None for part in parts):
        raise OutOfRangeError(
            "only integers, slices (`:`), ellipsis (`...`) and integer or boolean arrays are valid indices"
        )
    return parts[0] if parts else ...


def _values(line: Symbol, index: Any, value: Any) -> Symbol | None:
    """Return the values for the places of an index; None where there are no values, and NumPy writes none."""
    given = as_symbol(value, line.dtype)
    places = getitem(constant(0, I64, line.shape), index)
    if isinstance(places, Symbol) and not places.shape and not has_ellipsis(index):
        if given.shape:
            raise ShapeError("Error setting single item of array.")
        return given
    shape = places.read().shape if isinstance(places, ArrayView) else places.shape
    if not given.aval.size:
        return None
    return reshape_to(repeated(given, line, prod(shape)), shape)
