"""The computation of a ufunc: NumPy's choice of loop, conversion to its dtypes, broadcasting, then symbols.

Its methods `outer` and `at` follow from its rule. `at` is an operation in place at some elements, as often as each is
named. Places that are known while tracing are taken in rounds: the first time each element is named, then the second,
and so on. Within a round no element is named twice, so it is read, computed and written at once. Places that are traced
are taken one after the other. Sums are made at once, wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from fnad.errors import DtypeError, OutOfRangeError
from fnad.ir.known import known_value
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, DTYPES, F32, F64, I64, Aval, Dtype, Shape, native_dtype
from fnad.numpy.indexing import Advanced, entries_of, getitem
from fnad.numpy.operands import (
    F16,
    PYTHON_DTYPES,
    HalfSymbol,
    as_array,
    as_symbol,
    broadcast_all,
    check_dtypes,
    common_dtype,
    contains_symbol,
    promotes_as,
    static_array,
    to_dtype,
)
from fnad.numpy.registry import OF_AVALS, OF_HALVES, RULES, WRITERS, Rule, writes
from fnad.numpy.views import fitted, read, write
from fnad.ops.arithmetic import add, mul, neg, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import eq, gt, lt, select
from fnad.ops.conversion import convert_to
from fnad.ops.floating_point import exponent, ldexp
from fnad.ops.indexing import gather, scatter, scatter_add
from fnad.ops.piecewise import abs_, maximum, rint
from fnad.ops.shape import full_like, invert, iota, reshape_to, slice_axis, transpose_to, zeros_like

Compute = Callable[..., Any]
"""From symbols of one shape, in the dtypes of the loop, to the result (a tuple of results where there are several)."""

_loops: dict[Any, tuple[Dtype, ...]] = {}
"""NumPy's own choices, float16 included."""


def loop_dtypes(
    ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None, casting: Any = "same_kind"
) -> tuple[Dtype, ...]:
    """The dtypes of the loop that NumPy runs on these operands: what it converts them to, then the results'.

    Raises `DtypeError`, with NumPy's message where there is no loop, and where fnad has none of its dtypes.
    """
    found = _loop_of(ufunc, operands, dtype, casting)
    if F16 in found:
        names = ", ".join(str(getattr(d, "__name__", d)) for d in map(promotes_as, operands))
        raise DtypeError(
            f"numpy.{ufunc.__name__} of {names} gives float16, which is not supported",
            remedy="convert the operand to float32 or float64 first",
        )
    return found


def _loop_of(ufunc: np.ufunc, operands: Sequence[Any], dtype: Any, casting: Any) -> tuple[Dtype, ...]:
    key = (ufunc, dtype, casting, *map(promotes_as, operands))
    found = _loops.get(key)
    if found is None:
        found = _loops[key] = _resolve(ufunc, key[3:], dtype, casting)
    return found


def _resolve(ufunc: np.ufunc, dtypes: Sequence[Any], dtype: Any, casting: Any) -> tuple[Dtype, ...]:
    given = None if dtype is None else np.dtype(dtype)
    if (given is None or ufunc.nin == 1) and all(isinstance(d, type) for d in dtypes):  # Python numbers alone
        dtypes = [PYTHON_DTYPES[d] for d in dtypes]
    signature = (None,) * ufunc.nin + (given,) * ufunc.nout
    try:
        resolved = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout), signature=signature, casting=casting)
    except TypeError as error:
        check_dtypes(dtypes)
        raise DtypeError(str(error)) from None
    return tuple(d if d == F16 else native_dtype(d) for d in resolved)


def converted(
    ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None, casting: Any = "same_kind"
) -> tuple[list[Symbol], tuple[Dtype, ...]]:
    """The operands as symbols in the dtypes of the loop, of one shape, and the dtypes of the results."""
    dtypes = loop_dtypes(ufunc, operands, dtype, casting)
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
    """The rule of the method `outer`: the ufunc on all pairs of elements."""

    def method(a: Any, b: Any, /, *, dtype: Any = None) -> Any:
        x, y = as_array(a), as_array(b)
        return rule(reshape_to(x, (*x.shape, *(1,) * y.ndim)), y, dtype=dtype)

    return method


def ufunc_rule(ufunc: np.ufunc, compute: Compute) -> Callable[..., Any]:
    """The rule of a ufunc. Its options are those of NumPy, but for `where` and `out`, which are writes."""

    def rule(
        *operands: Any, dtype: Any = None, casting: str = "same_kind", order: str = "K", subok: bool = True
    ) -> Any:
        loop = _loop_of(ufunc, operands, dtype, casting)
        if F16 in loop and ufunc not in (np.spacing, np.nextafter):  # neighbours in float16 are none in float32
            return _in_halves(compute, operands, loop)
        return compute(*converted(ufunc, operands, dtype, casting)[0])

    OF_AVALS.add(rule)
    OF_HALVES.add(rule)
    return rule


def _in_halves(compute: Compute, operands: Sequence[Any], loop: Sequence[Dtype]) -> Any:
    """The result of a loop of float16: it is computed in float32 and rounded."""
    wide = [F32 if d == F16 else d for d in loop]
    found = compute(*broadcast_all([as_symbol(x, d) for x, d in zip(operands, wide, strict=False)]))
    given = found if isinstance(found, tuple) else (found,)
    results = [as_half(x) if d == F16 else x for x, d in zip(given, loop[len(operands) :], strict=True)]
    return tuple(results) if isinstance(found, tuple) else results[0]


def as_half(x: Symbol) -> HalfSymbol:
    """The symbol for the numbers in float16, rounded as NumPy rounds; the derivative is that of the numbers."""
    x = to_dtype(x, F64 if x.dtype in (F64, DTYPES["c128"]) else F32)
    least = full_like(exponent(x), -13)
    place = sub(maximum(exponent(x), least), full_like(least, 11))
    rounded = ldexp(rint(ldexp(x, neg(place))), place)
    rounded = select(gt(abs_(rounded), full_like(x, 65504.0)), mul(x, full_like(x, np.inf)), rounded)
    moved = add(x, stop_gradient(sub(rounded, x)))
    mirrored = neg(add(neg(x), stop_gradient(sub(x, rounded))))  # of -0.0
    exact = convert_to(select(eq(x, rounded), x, select(lt(x, zeros_like(x)), mirrored, moved)), F32)
    return HalfSymbol(exact.builder, exact.atom, exact.aval)


# ---- the method `at` -------------------------------------------------------------------------------------------------


def places_of(a: Symbol, indices: Any) -> Any:
    """The positions, in row-major order, of the elements that an index names."""
    known = tuple(map(static_array, indices)) if isinstance(indices, tuple) else static_array(indices)
    try:
        return np.arange(a.aval.size).reshape(a.shape)[known]
    except IndexError as error:
        raise OutOfRangeError(str(error)) from None


def rounds(places: Any) -> Iterator[Any]:
    """The entries that name an element for the first time, for the second time, and so on."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    times = np.empty_like(places)
    times[order] = np.arange(places.size) - np.repeat(starts, np.diff([*starts, places.size]))
    for time in range(times.max(initial=-1) + 1):
        yield np.flatnonzero(times == time)


def at(ufunc: np.ufunc, a: Symbol, indices: Any, *b: Any) -> Symbol:
    """The value of a after `ufunc.at(a, indices, b)`; results are cast to its dtype, whatever theirs."""
    return (by_rounds if are_known(indices) else one_by_one)(ufunc, a, indices, *b)


def are_known(indices: Any) -> bool:
    """True if the places that an index names can be told while tracing."""
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
    """The second operand, if there is one, an element a place."""
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
