"""The method `at` of ufuncs: an operation in place at some elements, as often as each is named.

Places that are known while tracing are taken in rounds, the first time each element is named, then the second, and so
on: within a round no element is named twice, so it is read, computed and written at once. Places that are traced are
taken one after the other. Sums are made at once, wherever they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fnad.errors import OutOfRangeError
from fnad.ir.known import known_value
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval, Shape
from fnad.numpy.assignment import fitted
from fnad.numpy.indexing import Advanced, entries_of, getitem
from fnad.numpy.operands import as_symbol, common_dtype, contains_symbol, static_array
from fnad.numpy.registry import RULES, writes
from fnad.numpy.views import read, write
from fnad.ops.arithmetic import neg
from fnad.ops.indexing import gather, scatter, scatter_add
from fnad.ops.shape import invert, iota, reshape_to, slice_axis, transpose_to


def places_of(a: Symbol, indices: Any) -> Any:
    """Return the positions, in row-major order, of the elements that an index names."""
    known = tuple(map(static_array, indices)) if isinstance(indices, tuple) else static_array(indices)
    try:
        return np.arange(a.aval.size).reshape(a.shape)[known]
    except IndexError as error:
        raise OutOfRangeError(str(error)) from None


def rounds(places: Any) -> Iterator[Any]:
    """Yield which entries name an element for the first time, for the second time, and so on."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    times = np.empty_like(places)
    times[order] = np.arange(places.size) - np.repeat(starts, np.diff([*starts, places.size]))
    for time in range(times.max(initial=-1) + 1):
        yield np.flatnonzero(times == time)


def at(ufunc: np.ufunc, a: Symbol, indices: Any, *b: Any) -> Symbol:
    """Return what `ufunc.at(a, indices, b)` leaves in a; results are cast to its dtype, whatever theirs."""
    return (by_rounds if are_known(indices) else one_by_one)(ufunc, a, indices, *b)


def are_known(indices: Any) -> bool:
    """Say whether the places that an index names can be told while tracing."""
    parts = indices if isinstance(indices, tuple) else (indices,)
    return all(not contains_symbol(part) or known_value(as_symbol(part)) is not None for part in parts)


def by_rounds(ufunc: np.ufunc, a: Symbol, indices: Any, *b: Any) -> Symbol:
    """Compute at places that are known."""
    places = places_of(a, indices)
    values = _flat_values(b, np.shape(places))
    flat = reshape_to(a, (a.aval.size,))
    for chosen in rounds(np.ravel(places)):
        entries, targets = as_symbol(chosen), as_symbol(np.ravel(places)[chosen])
        new = RULES[ufunc](gather(flat, targets), *[gather(value, entries) for value in values])
        flat = scatter(flat, as_symbol(new, a.dtype), targets)
    return reshape_to(flat, a.shape)


def one_by_one(ufunc: np.ufunc, a: Symbol, indices: Any, *b: Any) -> Symbol:
    """Compute at places that are traced."""
    size = a.aval.size
    places = as_symbol(getitem(reshape_to(iota(dtype=I64, shape=(size,), axis=0), a.shape), indices))
    values = _flat_values(b, places.shape)
    places, flat = reshape_to(places, (places.aval.size,)), reshape_to(a, (size,))
    for i in range(places.aval.size):
        target, *given = (slice_axis(part, 0, i, i + 1) for part in (places, *values))
        flat = scatter(flat, as_symbol(RULES[ufunc](gather(flat, target), *given), a.dtype), target)
    return reshape_to(flat, a.shape)


def _flat_values(operands: tuple[Any, ...], shape: Shape) -> list[Symbol]:
    """Return the second operand, if there is one, an element a place."""
    parts = [fitted(x, Aval(x.dtype, shape)) for x in map(as_symbol, operands)]
    return [reshape_to(part, (part.aval.size,)) for part in parts]


# ---- sums, which need no rounds --------------------------------------------------------------------------------------


@writes((np.add, "at"))
def add_at(a: Symbol, indices: Any, b: Any) -> Symbol:
    entries = entries_of(indices, a.shape)
    is_basic = all(entry is None or isinstance(entry, slice) for entry in entries)
    if is_basic or a.dtype == BOOL or common_dtype(a, b) != a.dtype:
        return at(np.add, a, indices, b)
    index = Advanced.of(entries, a.shape)
    part = read(index.steps, a)
    moved = transpose_to(part, index.order)
    updates = transpose_to(fitted(b, index.selected(part.aval)), invert(index.back))
    added = scatter_add(moved, updates, *index.indices)
    return write(index.steps, a, transpose_to(added, invert(index.order)))


@writes((np.subtract, "at"))
def subtract_at(a: Symbol, indices: Any, b: Any) -> Symbol:
    if a.dtype == BOOL or common_dtype(a, b) != a.dtype:
        return at(np.subtract, a, indices, b)
    return add_at(a, indices, neg(as_symbol(b, a.dtype)))
