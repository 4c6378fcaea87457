"""The order of elements: the permutations that sort and partition, and places in a sorted array.

Their results are integers, so they have no derivative; what is sorted is read through them by `gather`, which has one.
As in NumPy a nan is larger than every number, and complex numbers are in lexicographic order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fnad.errors import DomainError, ShapeError
from fnad.ir.axes import Along, AxisPairs, Custom
from fnad.ir.primitive import Library, NonDifferentiable, Routine, Sample, declare
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval
from fnad.ops.constructors import ANY, by_name, check_one_dtype
from fnad.ops.shape import Ints, check_axes, reshape_to, sample, transpose_to

NAN = float("nan")
TIES = np.array([[2.0, 2.0, 1.0], [NAN, -0.0, 0.0]])
SIDES = ("left", "right")

SHORT = 1024
"""The length up to which all sorts are stable, and arrays are sorted to partition them."""

# ---- argsort -----------------------------------------------------------------------------------------------------


def _infer_argsort(x: Aval, *, axis: int, stable: bool) -> Aval:
    check_axes("argsort", (axis,), x.ndim)
    return x.with_dtype(I64)


def _is_stable(x: Aval | np.ndarray, axis: int, *, stable: bool) -> bool:
    """True if equal elements keep their order, as they do along short axes."""
    return stable or x.shape[axis] <= SHORT


def _native_argsort(x: Aval, *, axis: int, stable: bool) -> Routine | None:
    is_native = axis == x.ndim - 1 and _is_stable(x, axis, stable=stable)
    return Routine("linalg_argsort", kinds="bif") if is_native else None


def _along_last_axis(x: Symbol, *, axis: int, stable: bool) -> Symbol | None:
    if axis == x.ndim - 1:
        return None
    order = (*(a for a in range(x.ndim) if a != axis), axis)
    back = tuple(order.index(a) for a in range(x.ndim))
    return transpose_to(argsort(transpose_to(x, order), axis=x.ndim - 1, stable=stable), back)


def _argsort_samples() -> Iterable[Sample]:
    for dtype in by_name(ANY):
        yield Sample((sample((2, 3), dtype),), {"axis": 1, "stable": True})
    yield Sample((sample((4, 2)),), {"axis": 0, "stable": False})
    yield Sample((TIES,), {"axis": 1, "stable": True})
    yield Sample((np.zeros((0, 2)),), {"axis": 0, "stable": True})


argsort = declare(
    "argsort",
    _infer_argsort,
    lambda x, *, axis, stable: np.argsort(x, axis, kind="stable" if _is_stable(x, axis, stable=stable) else None),
    NonDifferentiable(),
    Library(
        "argsort",
        raises=False,
        native=_native_argsort,
        expansion=_along_last_axis,
        dispatched=True,
    ),
    _argsort_samples,
    "The positions that sort along `axis`; if `stable`, equal elements keep their order.",
    axes=Along(),
)

# ---- argpartition ------------------------------------------------------------------------------------------------


def _infer_argpartition(x: Aval, *, kth: Ints, axis: int) -> Aval:
    check_axes("argpartition", (axis,), x.ndim)
    for k in kth:
        if not 0 <= k < x.shape[axis]:
            raise ShapeError(f"kth(={k}) out of bounds ({x.shape[axis]})")
    return x.with_dtype(I64)


def _argpartition_samples() -> Iterable[Sample]:
    for dtype in by_name(ANY):
        yield Sample((sample((2, 3), dtype),), {"kth": (1,), "axis": 1})
    yield Sample((sample((7, 2)),), {"kth": (2, 4), "axis": 0})


argpartition = declare(
    "argpartition",
    _infer_argpartition,
    lambda x, *, kth, axis: np.argpartition(x, kth, axis=axis),
    NonDifferentiable(),
    Library("argpartition", raises=False),
    _argpartition_samples,
    "Positions along `axis` with those of the `kth` smallest in their place, smaller ones before, larger after.",
    axes=Along(),
)

# ---- searchsorted ------------------------------------------------------------------------------------------------


def _infer_searchsorted(a: Aval, v: Aval, *, side: str) -> Aval:
    if a.ndim != 1 or v.ndim != 1:
        raise ShapeError(f"searchsorted looks in an array of one dimension for a vector, got {a} and {v}")
    check_one_dtype("searchsorted", a, v)
    if side not in SIDES:
        raise DomainError(f"side must be 'left' or 'right' (got '{side}')")
    return v.with_dtype(I64)


def _stack_searchsorted(count: int, operands: Sequence[Symbol], stacked: Sequence[bool], *, side: str) -> Symbol | None:
    return None if stacked[0] else searchsorted(*operands, side=side)


def _align_searchsorted(a: Aval, v: Aval, **_: str) -> tuple[AxisPairs, ...]:
    return (), ((0, 0),)


def _searchsorted_samples() -> Iterable[Sample]:
    for dtype in by_name(ANY):
        yield Sample((np.sort(sample((4,), dtype)), sample((5,), dtype, 1)), {"side": "left"})
    for side in SIDES:
        ends = np.array([-np.inf, 0.0, 1.0, 1.0, np.inf, NAN, NAN])
        yield Sample((ends, np.array([-np.inf, -1.0, 1.0, 2.0, np.inf, NAN])), {"side": side})
    yield Sample((np.zeros(0), sample((3,), F64)), {"side": "left"})


searchsorted_vector = declare(
    "searchsorted",
    _infer_searchsorted,
    lambda a, v, *, side: np.searchsorted(a, v, side=side),
    NonDifferentiable(),
    Library(
        "searchsorted",
        raises=False,
        native=lambda *_, side: Routine(f"linalg_searchsorted_{side}", kinds="bif"),
        dispatched=True,
    ),
    _searchsorted_samples,
    "Where each element of the vector v would stand in the sorted a: before those equal to it, or after them.",
    axes=Custom(_stack_searchsorted, _align_searchsorted),
)


def searchsorted(a: Symbol, v: Symbol, *, side: str) -> Symbol:
    """The place of each element of v in the sorted array a."""
    return reshape_to(searchsorted_vector(a, reshape_to(v, (v.aval.size,)), side=side), v.shape)
