"""Windows that slide over axes, and their transpose, which adds what lies in windows at their places.

    windows:       y[…, o, …, k, …] = x[…, o · stride + k · dilation, …]
    overlap_add:   x[…, i, …] = Σ y[…, o, …, k, …]  over all  o · stride + k · dilation = i

`axes` are those of x; the place o of a window stands where its axis stood, the place k in a window at the end. Windows
contracted with a kernel are a convolution, whose derivatives are again contractions of these two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.axes import Reindex
from fnad.ir.primitive import Accumulation, IndexMap, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Shape
from fnad.ops.constructors import NUMBERS, by_name, check_dtype, linear
from fnad.ops.shape import Ints, behind, check_axes, over_dtypes, sample


def window_count(n: int, size: int, stride: int, dilation: int) -> int:
    """The number of windows in an axis of n elements."""
    return max(0, (n - (size - 1) * dilation - 1) // stride + 1)


def _check_geometry(name: str, ndim: int, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> None:
    check_axes(name, axes, ndim)
    if not len(axes) == len(sizes) == len(strides) == len(dilations) or min((0, *sizes)) < 0:
        raise ShapeError(f"{name} over axes {axes} takes as many sizes, strides and dilations, got {sizes}")
    if min((1, *strides, *dilations)) < 1:
        raise ShapeError(f"{name} takes positive strides and dilations, got {strides} and {dilations}")


def _window_shape(shape: Shape, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> Shape:
    places = list(shape)
    for a, *geometry in zip(axes, sizes, strides, dilations, strict=True):
        places[a] = window_count(shape[a], *geometry)
    return (*places, *sizes)


def _stack_windows(count: int, *, axes: Ints, **geometry: Ints) -> dict[str, Ints]:
    return {"axes": behind(axes), **geometry}


# ---- windows ---------------------------------------------------------------------------------------------------------


def _infer_windows(x: Aval, *, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> Aval:
    _check_geometry("windows", x.ndim, axes, sizes, strides, dilations)
    return x.with_shape(_window_shape(x.shape, axes, sizes, strides, dilations))


def _transpose_windows(ct: Symbol, x: Symbol, *, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> Any:
    extents = tuple(x.shape[a] for a in axes)
    return (overlap_add(ct, axes=axes, extents=extents, strides=strides, dilations=dilations),)


def _index_windows(
    indices: list[Any], operand: Aval, result: Aval, *, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints
) -> list[Any]:
    return _places(indices, operand.ndim, axes, strides, dilations)


def _places(indices: list[Any], ndim: int, axes: Ints, strides: Ints, dilations: Ints) -> list[Any]:
    places = list(indices[:ndim])
    for a, k, stride, dilation in zip(axes, indices[ndim:], strides, dilations, strict=True):
        places[a] = indices[a] * stride + k * dilation
    return places


def _windows_samples() -> Iterable[Sample]:
    yield from over_dtypes((5,), axes=(0,), sizes=(3,), strides=(1,), dilations=(1,))
    for shape, axes, sizes, strides, dilations in (
        ((3, 2), (0,), (2,), (1,), (1,)),
        ((2, 7, 5), (1, 2), (2, 3), (2, 1), (3, 2)),
        ((6,), (0,), (2,), (3,), (1,)),
        ((3, 2), (), (), (), ()),
        ((0, 4), (1,), (2,), (1,), (1,)),
        ((3,), (0,), (0,), (1,), (1,)),
        ((2,), (0,), (4,), (1,), (1,)),
    ):
        yield Sample((sample(shape),), {"axes": axes, "sizes": sizes, "strides": strides, "dilations": dilations})


@linear(_infer_windows, _transpose_windows, IndexMap(_index_windows), _windows_samples, axes=Reindex(_stack_windows))
def windows(x: Any, *, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> Any:
    """The windows of `sizes` that slide over `axes`, which become the last axes; see `overlap_add`."""
    shape = _window_shape(x.shape, axes, sizes, strides, dilations)
    steps = list(x.strides)
    for a, stride in zip(axes, strides, strict=True):
        steps[a] *= stride
    inside = [x.strides[a] * dilation for a, dilation in zip(axes, dilations, strict=True)]
    return np.lib.stride_tricks.as_strided(x, shape, (*steps, *inside), writeable=False)


# ---- overlap_add -----------------------------------------------------------------------------------------------------


def _infer_overlap_add(x: Aval, *, axes: Ints, extents: Ints, strides: Ints, dilations: Ints) -> Aval:
    check_dtype("overlap_add", x.dtype, NUMBERS)
    ndim = x.ndim - len(axes)
    sizes = x.shape[ndim:]
    _check_geometry("overlap_add", ndim, axes, sizes, strides, dilations)
    shape = list(x.shape[:ndim])
    for a, extent in zip(axes, extents, strict=True):
        shape[a] = extent
    if _window_shape(tuple(shape), axes, sizes, strides, dilations) != x.shape:
        raise ShapeError(f"overlap_add takes windows as they slide over axes {axes} of {tuple(shape)}, got {x}")
    return x.with_shape(tuple(shape))


def _transpose_overlap_add(ct: Symbol, x: Symbol, *, axes: Ints, extents: Ints, strides: Ints, dilations: Ints) -> Any:
    return (windows(ct, axes=axes, sizes=x.shape[x.ndim - len(axes) :], strides=strides, dilations=dilations),)


def _index_overlap_add(
    indices: list[Any], operand: Aval, result: Aval, *, axes: Ints, extents: Ints, strides: Ints, dilations: Ints
) -> list[Any]:
    return _places(indices, result.ndim, axes, strides, dilations)


def _overlap_add_samples() -> Iterable[Sample]:
    once = {"axes": (0,), "extents": (5,), "strides": (1,), "dilations": (1,)}
    for dtype in by_name(NUMBERS):
        yield Sample((sample((3, 3), dtype),), once)
    for shape, axes, extents, strides, dilations in (
        ((2, 2, 2), (0,), (3,), (1,), (1,)),
        ((2, 2, 1, 2, 3), (1, 2), (7, 5), (2, 1), (3, 2)),
        ((2, 2), (0,), (6,), (3,), (1,)),
        ((0, 3, 2), (1,), (4,), (1,), (1,)),
        ((0, 4), (0,), (2,), (1,), (1,)),
        ((4, 0), (0,), (3,), (1,), (1,)),
    ):
        yield Sample((sample(shape),), {"axes": axes, "extents": extents, "strides": strides, "dilations": dilations})


@linear(
    _infer_overlap_add,
    _transpose_overlap_add,
    Accumulation(_index_overlap_add),
    _overlap_add_samples,
    axes=Reindex(_stack_windows),
)
def overlap_add(x: Any, *, axes: Ints, extents: Ints, strides: Ints, dilations: Ints) -> Any:
    """Windows, the last axes, added up where they lie in `axes` of these `extents`."""
    ndim = x.ndim - len(axes)
    shape = list(x.shape[:ndim])
    for a, extent in zip(axes, extents, strict=True):
        shape[a] = extent
    total = np.zeros(shape, x.dtype)
    for place in np.ndindex(x.shape[ndim:]):
        box = [slice(None)] * ndim
        for a, k, stride, dilation in zip(axes, place, strides, dilations, strict=True):
            start = k * dilation
            box[a] = slice(start, start + (x.shape[a] - 1) * stride + 1 if x.shape[a] else start, stride)
        total[tuple(box)] += x[(..., *place)]
    return total
