"""Methods and attributes of arrays whose arguments are not those of a function; and what is known while tracing."""

from __future__ import annotations

import builtins
from math import prod
from typing import Any

import numpy as np

from fnad.errors import DtypeError, OutOfRangeError, ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Dtype, native_dtype
from fnad.numpy import indexing_routines, manipulation, sorting, ufuncs
from fnad.numpy.elementwise import as_half
from fnad.numpy.indexing import as_tuple, getitem, has_ellipsis, is_traced_mask, setitem
from fnad.numpy.indexing_routines import repeated
from fnad.numpy.manipulation import fresh
from fnad.numpy.operands import HalfSymbol, as_symbol, common_dtype, promotion_example, static_array, to_dtype
from fnad.numpy.registry import OF_HALVES, RULES, implements
from fnad.numpy.views import ArrayView, Cast
from fnad.ops.shape import constant, reshape_to

HALVES = (np.float16, "float16", "f2", "e")
"""Arguments that request float16."""


def astype(
    a: Symbol, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
) -> ArrayView | Symbol:
    """The array in another dtype."""
    if dtype in HALVES:
        return as_half(a)
    if isinstance(a, HalfSymbol):
        return to_dtype(Symbol(a.builder, a.atom, a.aval), native_dtype(dtype))
    wanted = native_dtype(dtype)
    if not np.can_cast(a.dtype, wanted, casting):
        raise DtypeError(f"Cannot cast array data from {a.dtype!r} to {wanted!r} according to the rule {casting!r}")
    if wanted == a.dtype and not copy:
        return ArrayView(a, is_same=True)
    return ArrayView(a, (Cast(wanted),), is_copy=True, in_order=order == "C")


@implements(np.astype)
def astype_function(x: Any, dtype: Any, copy: bool) -> ArrayView | Symbol:
    return astype(as_symbol(x), dtype, copy=copy)


OF_HALVES.update((astype, RULES[np.astype]))


@implements(np.copy)
def copy_function(a: Any) -> ArrayView:
    return fresh(as_symbol(a))


def view(a: Symbol, dtype: Any = None, type: Any = None) -> ArrayView:
    """The same memory once more.

    Raises `UnsupportedFunctionError` for its bytes as another dtype, for another class of arrays, and for a shape, as
    PyTorch's method takes one.
    """
    if isinstance(dtype, (int, tuple)):
        raise UnsupportedFunctionError("numpy.ndarray.view takes a dtype, no shape", remedy="write x.reshape(shape)")
    kind = dtype if type is None and isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray) else type
    if kind not in (None, np.ndarray):
        what = f"numpy.ndarray.view as {kind.__module__}.{kind.__name__} has no rule"
        raise UnsupportedFunctionError(what, remedy="compute with arrays: of np.matrix A * B is A @ B")
    if dtype not in (None, np.ndarray, a.dtype):
        raise UnsupportedFunctionError("numpy.ndarray.view as another dtype has no rule", remedy="convert with astype")
    return ArrayView(a)


def copy(a: Symbol, order: str = "C") -> ArrayView:
    """A copy."""
    return ArrayView(a, is_copy=True, in_order=order == "C")


def flatten(a: Symbol, order: str = "C") -> ArrayView:
    """A copy of the elements, along one axis."""
    return fresh(manipulation.ravel(a, order).read(), in_order=True)


def reshape(a: Symbol, *shape: Any, order: str = "C", copy: Any = None) -> ArrayView:
    """The elements in another shape, given as one tuple or as several numbers."""
    return manipulation.reshape(a, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def transpose(a: Symbol, *axes: Any) -> ArrayView:
    """The axes in another order, given as one tuple or as several numbers; reversed if none is given."""
    return manipulation.transpose(a, axes[0] if len(axes) == 1 else axes or None)


def conjugate(a: Symbol) -> Any:
    """The complex conjugate; of a real array, the array itself."""
    return ufuncs.conjugate(a) if a.dtype.kind == "c" else ArrayView(a)


def compress(a: Symbol, condition: Any, axis: Any = None, out: None = None) -> Symbol:
    """The parts along an axis where a condition that is known while tracing is true."""
    return indexing_routines.compress(condition, a, axis)


def sort(a: Symbol, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Symbol:
    """The array after it is sorted in place."""
    return sorting.sort(a, axis, kind, order, stable=stable)


def partition(a: Symbol, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Symbol:
    """The array after it is partitioned in place."""
    return sorting.partition(a, kth, axis, kind, order)


# ---- x.flat: elements by their place in C order, wherever they lie in memory -----------------------------------------


def flat_getitem(x: Symbol, index: Any) -> ArrayView | Symbol:
    """X.flat[index]: an element, or a copy of several."""
    found = getitem(_line(x), _checked(index))
    return fresh(found.read()) if isinstance(found, ArrayView) else found


def flat_setitem(x: Symbol, index: Any, value: Any) -> Symbol:
    """The value of x after `x.flat[index] = value`: as many values as there are places, repeated or cut off."""
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
    """The values for the places of an index; None where there are no values, and NumPy writes none."""
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


# ---- what is known while tracing: plain Python values ----------------------------------------------------------------


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> Dtype:
    return np.result_type(*[promotion_example(value) for value in arrays_and_dtypes])


@implements(np.common_type)
def common_type(*arrays: Any) -> type:
    return np.common_type(*[np.empty((), common_dtype(array)) for array in arrays])


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(common_dtype(from_), to, casting)


@implements(np.min_scalar_type)
def min_scalar_type(a: Any) -> Dtype:
    x = as_symbol(a)
    if x.ndim == 0:
        static_array(x)
    return x.dtype


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    shapes = [np.broadcast_to(np.zeros((), o.dtype), o.shape) if isinstance(o, Symbol) else o for o in operands]
    return np.einsum_path(*shapes, optimize=optimize)
