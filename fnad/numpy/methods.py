"""Methods of arrays whose arguments are not those of a function."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DtypeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import native_dtype
from fnad.numpy import rearranging, selecting, sorting, ufuncs
from fnad.numpy.operands import as_symbol
from fnad.numpy.rearranging import fresh
from fnad.numpy.registry import implements
from fnad.numpy.views import ArrayView, Cast


def astype(
    a: Symbol,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> ArrayView | Symbol:
    """Return the array in another dtype."""
    wanted = native_dtype(dtype)
    if not np.can_cast(a.dtype, wanted, casting):
        raise DtypeError(f"Cannot cast array data from {a.dtype!r} to {wanted!r} according to the rule {casting!r}")
    if wanted == a.dtype and not copy:
        return ArrayView(a)
    return ArrayView(a, (Cast(wanted),), is_copy=True, in_order=order == "C")


@implements(np.astype)
def astype_function(x: Any, dtype: Any, /, *, copy: bool = True, device: None = None) -> ArrayView | Symbol:
    return astype(as_symbol(x), dtype, copy=copy)


@implements(np.copy)
def copy_function(a: Any, order: str = "K", subok: bool = False) -> ArrayView:
    return fresh(as_symbol(a))


def view(a: Symbol, dtype: Any = None, type: Any = None) -> ArrayView:  # noqa: A002  # NumPy's name
    """Return the same memory once more.

    Raises `UnsupportedFunctionError` for its bytes as another dtype.
    """
    if type not in (None, np.ndarray) or dtype not in (None, np.ndarray, a.dtype):
        raise UnsupportedFunctionError("numpy.ndarray.view as another dtype has no rule", remedy="convert with astype")
    return ArrayView(a)


def copy(a: Symbol, order: str = "C") -> ArrayView:
    """Return a copy."""
    return ArrayView(a, is_copy=True, in_order=order == "C")


def flatten(a: Symbol, order: str = "C") -> ArrayView:
    """Return a copy of the elements, along one axis."""
    return fresh(rearranging.ravel(a, order).read(), in_order=True)


def reshape(a: Symbol, *shape: Any, order: str = "C", copy: Any = None) -> ArrayView:
    """Return the elements in another shape, given as one tuple or as several numbers."""
    return rearranging.reshape(a, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def transpose(a: Symbol, *axes: Any) -> ArrayView:
    """Return the axes in another order, given as one tuple or as several numbers; reversed if none is given."""
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return rearranging.transpose(a, None if order == () else order)


def conjugate(a: Symbol) -> Any:
    """Return the complex conjugate; of a real array, the array itself."""
    return ufuncs.conjugate(a) if a.dtype.kind == "c" else ArrayView(a)


def compress(a: Symbol, condition: Any, axis: Any = None, out: None = None) -> Symbol:
    """Return the parts along an axis where a condition that is known while tracing is true."""
    return selecting.compress(condition, a, axis)


def sort(a: Symbol, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Symbol:
    """Return what the array holds after it is sorted in place."""
    return sorting.sort(a, axis, kind, order, stable=stable)


def partition(a: Symbol, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Symbol:
    """Return what the array holds after it is partitioned in place."""
    return sorting.partition(a, kth, axis, kind, order)
