"""The method `at` of ufuncs: an operation in place at some elements, as often as each is named.

The places are known while tracing. They are taken in rounds, the first time each element is named, then the second, and
so on: within a round no element is named twice, so it is read, computed and written at once. Sums need no rounds, and
may be at places that are traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from fnad.errors import OutOfRangeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, Aval
from fnad.numpy.assignment import fitted
from fnad.numpy.indexing import Advanced, entries_of
from fnad.numpy.loops import loop_dtypes
from fnad.numpy.operands import as_symbol, static_array
from fnad.numpy.registry import RULES, writes
from fnad.numpy.views import read, write
from fnad.ops.arithmetic import neg
from fnad.ops.indexing import gather, scatter, scatter_add
from fnad.ops.shape import invert, reshape_to, transpose_to


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


def by_rounds(ufunc: np.ufunc, a: Symbol, indices: Any, *b: Any) -> Symbol:
    """Return what `ufunc.at(a, indices, b)` leaves in a; results are cast to its dtype, whatever theirs."""
    places = places_of(a, indices)
    parts = [fitted(x, Aval(x.dtype, np.shape(places))) for x in map(as_symbol, b)]
    values = [reshape_to(part, (part.aval.size,)) for part in parts]
    flat = reshape_to(a, (a.aval.size,))
    for chosen in rounds(np.ravel(places)):
        entries, targets = as_symbol(chosen), as_symbol(np.ravel(places)[chosen])
        new = RULES[ufunc](gather(flat, targets), *[gather(value, entries) for value in values])
        flat = scatter(flat, as_symbol(new, a.dtype), targets)
    return reshape_to(flat, a.shape)


# ---- sums, which need no rounds --------------------------------------------------------------------------------------


@writes((np.add, "at"))
def add_at(a: Symbol, indices: Any, b: Any) -> Symbol:
    entries = entries_of(indices, a.shape)
    is_basic = all(entry is None or isinstance(entry, slice) for entry in entries)
    if is_basic or a.dtype == BOOL or loop_dtypes(np.add, (a, b))[-1] != a.dtype:
        return by_rounds(np.add, a, indices, b)
    index = Advanced.of(entries, a.shape)
    part = read(index.steps, a)
    moved = transpose_to(part, index.order)
    updates = transpose_to(fitted(b, index.selected(part.aval)), invert(index.back))
    added = scatter_add(moved, updates, *index.indices)
    return write(index.steps, a, transpose_to(added, invert(index.order)))


@writes((np.subtract, "at"))
def subtract_at(a: Symbol, indices: Any, b: Any) -> Symbol:
    if loop_dtypes(np.subtract, (a, b))[-1] != a.dtype:
        return by_rounds(np.subtract, a, indices, b)
    return add_at(a, indices, neg(as_symbol(b, a.dtype)))


# ---- all others ------------------------------------------------------------------------------------------------------

UFUNCS = (
    np.multiply,
    np.true_divide,
    np.floor_divide,
    np.remainder,
    np.power,
    np.maximum,
    np.minimum,
    np.fmax,
    np.fmin,
    np.logaddexp,
    np.hypot,
    np.logical_and,
    np.logical_or,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.negative,
    np.absolute,
    np.square,
    np.sqrt,
    np.exp,
    np.log,
    np.sin,
    np.cos,
    np.tanh,
    np.reciprocal,
)

for _ufunc in UFUNCS:
    writes((_ufunc, "at"))(partial(by_rounds, _ufunc))
