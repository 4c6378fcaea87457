"""Shapes and the order of axes and elements, where NumPy makes a view; and what asks for a layout in memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import DomainError, ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import Shape, native_dtype
from fnad.numpy.operands import (
    Ints,
    WeakSymbol,
    as_symbol,
    axes_of,
    axis_of,
    common_shape,
    reduced_axes,
    several,
    static_int,
    static_ints,
)
from fnad.numpy.registry import implements
from fnad.numpy.views import (
    ArrayView,
    Box,
    Broadcast,
    ImaginaryPart,
    NoImaginaryPart,
    Permute,
    RealPart,
    Reshape,
    Steps,
    ViewStep,
    read,
)
from fnad.ops.sliding_windows import windows

# ---- shapes ----------------------------------------------------------------------------------------------------------


@implements(np.reshape)
def reshape(a: Any, shape: Any, order: str, copy: Any) -> ArrayView:
    x = as_symbol(a)
    if layout(order) == "K":
        raise DomainError("order 'K' is not permitted for reshaping", remedy="give 'C' or 'F'")
    view = ArrayView(x, reshape_steps(x.shape, full_shape(shape, x.aval.size), order))
    return fresh(view.read()) if copy else view


@implements(np.ravel)
def ravel(a: Any, order: str) -> ArrayView:
    x = as_symbol(a)
    certain = x.aval.size <= 1
    return ArrayView(x, reshape_steps(x.shape, (x.aval.size,), order, certain=certain))


def full_shape(shape: Any, size: int) -> Shape:
    """The shape with a -1 in it replaced; raises `ShapeError` where it does not hold this many elements."""
    wanted = static_ints(shape, "a shape")
    known = math.prod(n for n in wanted if n != -1)
    if wanted.count(-1) > 1:
        raise ShapeError("can only specify one unknown dimension")
    if -1 in wanted and known and size % known == 0:
        wanted = tuple(size // known if n == -1 else n for n in wanted)
    if any(n < 0 for n in wanted) or math.prod(wanted) != size:
        raise ShapeError(f"cannot reshape array of size {size} into shape {wanted}")
    return wanted


def layout(order: str | None, default: str = "C") -> str:
    """The order of elements that an option names: "C", "F", or "A" or "K", which depend on the layout in memory."""
    if order is None:
        return default
    if order not in tuple("CFAKcfak"):
        raise DomainError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})", remedy="give 'C' or 'F'")
    return order.upper()


def reshape_steps(shape: Shape, wanted: Shape, order: str | None, *, certain: bool | None = None) -> Steps:
    """The steps of a reshape, which is surely a view of one axis, or where only axes of size 1 come and go."""
    if certain is None:
        certain = len(shape) <= 1 or without_ones(shape) == without_ones(wanted)
    order = layout(order)
    if order == "F":
        return (Permute(backwards(len(shape))), Reshape(wanted[::-1], certain), Permute(backwards(len(wanted))))
    if order != "C" and len(shape) > 1:
        raise UnsupportedFunctionError(
            f"order={order!r} asks for the layout in memory, which is not known while tracing", remedy="use 'C' or 'F'"
        )
    return (Reshape(wanted, certain),)


def without_ones(shape: Shape) -> Shape:
    """The sizes other than 1."""
    return tuple(n for n in shape if n != 1)


def backwards(ndim: int) -> Ints:
    """The axes in reverse order."""
    return tuple(range(ndim))[::-1]


def fresh(symbol: Symbol, *, in_order: bool = False) -> ArrayView:
    """A value as new memory, in C order or one that is not known."""
    return ArrayView(Symbol(symbol.builder, symbol.atom, symbol.aval), in_order=in_order)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> ArrayView:
    x = as_symbol(a)
    added = static_ints(axis, "an axis")
    axes = axes_of(added, x.ndim + len(added))
    rest = iter(x.shape)
    steps = (Reshape(tuple(1 if i in axes else next(rest) for i in range(x.ndim + len(added)))),)
    return ArrayView(x, steps, is_array=True)


@implements(np.squeeze)
def squeeze(a: Any, axis: Any) -> ArrayView:
    x = as_symbol(a)
    axes = reduced_axes(axis, x.ndim) if axis is not None else tuple(i for i, n in enumerate(x.shape) if n == 1)
    if any(x.shape[i] != 1 for i in axes):
        raise ShapeError("cannot select an axis to squeeze out which has size not equal to one")
    return ArrayView(x, (Reshape(tuple(n for i, n in enumerate(x.shape) if i not in axes)),))


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any) -> ArrayView:
    x = as_symbol(array)
    wanted = static_ints(shape, "a shape")
    if common_shape([x.shape, wanted]) != wanted:
        raise ShapeError(f"operands could not be broadcast together with remapped shapes {x.shape} and {wanted}")
    return ArrayView(x, (Broadcast(wanted),), is_array=True)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[ArrayView | Symbol, ...]:
    symbols = [as_symbol(arg) for arg in args]
    shape = common_shape([symbol.shape for symbol in symbols])
    return tuple(ArrayView(symbol, (Broadcast(shape),), is_array=True) for symbol in symbols)


# ---- the order of axes -----------------------------------------------------------------------------------------------


@implements(np.transpose)
def transpose(a: Any, axes: Any) -> ArrayView:
    x = as_symbol(a)
    permutation = backwards(x.ndim) if axes is None else axes_of(axes, x.ndim)
    if len(permutation) != x.ndim:
        raise ShapeError("axes don't match array")
    return ArrayView(x, (Permute(permutation),))


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> ArrayView:
    x = as_symbol(a)
    i, j = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return ArrayView(x, (Permute(tuple(order)),))


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> ArrayView:
    x = as_symbol(a)
    sources, destinations = (axes_of(static_ints(axes, "an axis"), x.ndim) for axes in (source, destination))
    if len(sources) != len(destinations):
        raise ShapeError("`source` and `destination` arguments must have the same number of elements")
    order = [i for i in range(x.ndim) if i not in sources]
    for to, from_ in sorted(zip(destinations, sources, strict=True)):
        order.insert(to, from_)
    return ArrayView(x, (Permute(tuple(order)),))


# ---- parts -----------------------------------------------------------------------------------------------------------


def diagonal_steps(shape: Shape, offset: int, axis1: int, axis2: int, *, is_writeable: bool) -> Steps:
    """The steps to a diagonal, as the last axis: every (m + 1)-th of the n·m elements of a matrix."""
    order = tuple(i for i in range(len(shape)) if i not in (axis1, axis2))
    outer, n, m = tuple(shape[i] for i in order), shape[axis1], shape[axis2]
    start = offset if offset >= 0 else -offset * m
    count = max(min(n, m - offset) if offset >= 0 else min(n + offset, m), 0)
    start = start if count else 0
    limit = start + (count - 1) * (m + 1) + 1 if count else start
    zeros, ones = (0,) * len(outer), (1,) * len(outer)
    box = Box((*zeros, start), (*outer, limit), (*ones, m + 1), is_writeable=is_writeable)
    return (Permute((*order, axis1, axis2)), Reshape((*outer, n * m)), box)


@implements(np.diagonal)
def diagonal(a: Any, offset: Any, axis1: Any, axis2: Any) -> ArrayView:
    x = as_symbol(a)
    if x.ndim < 2:
        raise ShapeError("diag requires an array of at least two dimensions")
    i, j = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    if i == j:
        raise ShapeError("axis1 and axis2 cannot be the same")
    return ArrayView(x, diagonal_steps(x.shape, static_int(offset, "an offset"), i, j, is_writeable=False))


@implements(np.real)
def real(val: Any) -> ArrayView | Symbol:
    x = as_symbol(val)
    steps: tuple[ViewStep, ...] = (RealPart(),) if x.dtype.kind == "c" else ()
    return read(steps, x) if isinstance(x, WeakSymbol) else ArrayView(x, steps)


@implements(np.imag)
def imag(val: Any) -> ArrayView | Symbol:
    x = as_symbol(val)
    steps: tuple[ViewStep, ...] = (ImaginaryPart(),) if x.dtype.kind == "c" else (NoImaginaryPart(),)
    return read(steps, x) if isinstance(x, WeakSymbol) else ArrayView(x, steps)


# ---- the layout in memory --------------------------------------------------------------------------------------------
# A copy or the array itself, which a trace does not know.

C_ORDER = {"C", "CONTIGUOUS", "C_CONTIGUOUS"}
OTHERS = {"F", "FORTRAN", "F_CONTIGUOUS", "A", "ALIGNED", "W", "WRITEABLE", "O", "OWNDATA", "E", "ENSUREARRAY"}


def laid_out(a: Any, dtype: Any, least: int, certain: bool) -> ArrayView:
    """An array of at least this many axes, surely the array itself or not."""
    x = as_symbol(a, None if dtype is None else native_dtype(dtype))
    return ArrayView(x, (Reshape(x.shape or (1,) * least, certain),), is_array=True)


def other_order(a: Any, dtype: Any) -> ArrayView:
    """An array in an order other than C: the array itself or a copy."""
    x = as_symbol(a, None if dtype is None else native_dtype(dtype))
    backwards = Permute(tuple(range(x.ndim))[::-1])
    return ArrayView(x, (backwards, Reshape(x.shape[::-1], is_certain=False), backwards), is_array=True)


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> ArrayView:
    return laid_out(a, dtype, 1, certain=False)


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None) -> ArrayView:
    return other_order(a, dtype) if as_symbol(a).shape else ascontiguousarray(a, dtype)


@implements(np.require)
def require(a: Any, dtype: Any, requirements: Any) -> ArrayView:
    wanted = {requirement.upper() for requirement in requirements or ()}
    if unknown := wanted - C_ORDER - OTHERS:
        raise ShapeError(f"numpy.require knows no requirement {min(unknown)!r}")
    return other_order(a, dtype) if wanted - C_ORDER else laid_out(a, dtype, 0, certain=not wanted)


# ---- sliding windows -------------------------------------------------------------------------------------------------
# A view that cannot be written to.


class Windows(NamedTuple):
    """Windows of a size along an axis, which become the last axis."""

    axis: int
    size: int
    is_certain: bool = True
    is_writeable: bool = False

    def read(self, x: Symbol) -> Symbol:
        return windows(x, axes=(self.axis,), sizes=(self.size,), strides=(1,), dilations=(1,))

    def write(self, x: Symbol, part: Symbol) -> Symbol:
        raise AssertionError("windows are read-only")


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x: Any, window_shape: Any, axis: Any, *, writeable: bool = False) -> ArrayView:
    symbol, sizes = as_symbol(x), static_ints(window_shape, "a window")
    axes = [axis_of(a, symbol.ndim) for a in (range(symbol.ndim) if axis is None else several(axis))]
    if any(size < 0 for size in sizes):
        raise ShapeError("`window_shape` cannot contain negative values")
    if len(axes) != len(sizes):
        raise ShapeError(f"Must provide matching length window_shape and axis; got {len(sizes)} and {len(axes)}.")
    left = list(symbol.shape)
    for a, size in zip(axes, sizes, strict=True):
        if left[a] < size:
            raise ShapeError("window shape cannot be larger than input array shape")
        left[a] -= size - 1
    return ArrayView(symbol, tuple(Windows(a, size) for a, size in zip(axes, sizes, strict=True)))
