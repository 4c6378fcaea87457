"""Primitives that move elements about, in dual pairs: each is the other's transpose.

    broadcast_in_dim / reduce_sum        slice / pad        reshape / reshape        transpose / transpose
    concatenate / slice                  reverse / reverse

All are linear and, but for the sum, views: an element of the result is an element of the operand, or zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from fnad.errors import AxisError, ShapeError
from fnad.ir.axes import Reindex
from fnad.ir.builder import current_builder
from fnad.ir.primitive import Concatenation, Fold, IndexMap, Iota, NonDifferentiable, Sample, everywhere
from fnad.ir.ranges import Range
from fnad.ir.size import is_size
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, DTYPES, F64, I64, Aval, Dtype, Shape
from fnad.ops.constructors import NUMBERS, Domain, check_dtype, linear, primitive, random_array

Ints = tuple[int, ...]

WIDER: dict[Dtype, Dtype] = {DTYPES["f32"]: F64, DTYPES["c64"]: DTYPES["c128"]}
"""The dtype that sums of this one are accumulated in."""


def sample(shape: Shape, dtype: Dtype = F64, seed: int = 0) -> Any:
    """A sample operand."""
    return random_array(np.random.default_rng(seed), shape, dtype)


def over_dtypes(shape: Shape, /, **params: Any) -> Iterable[Sample]:
    """A sample of this shape for every dtype."""
    for dtype in DTYPES.values():
        yield Sample((sample(shape, dtype),), params)


def check_axes(name: str, axes: Ints, ndim: int) -> None:
    """Raise where axes are not ascending, or not there."""
    if list(axes) != sorted(set(axes)) or any(not 0 <= a < ndim for a in axes):
        raise AxisError(f"{name} over axes {axes} of an array of {ndim} dimensions")


def behind(axes: Ints) -> Ints:
    """The axes, where there is a new one in front."""
    return tuple(a + 1 for a in axes)


def reduced_shape(shape: Shape, axes: Ints) -> Shape:
    """The shape without these axes."""
    return tuple(n for a, n in enumerate(shape) if a not in axes)


# ---- broadcast_in_dim / reduce_sum -------------------------------------------------------------------------------


def _infer_broadcast(x: Aval, *, shape: Shape, dims: Ints) -> Aval:
    fits = len(dims) == x.ndim and list(dims) == sorted(set(dims)) and all(0 <= d < len(shape) for d in dims)
    if not fits or any(n not in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True)):
        raise ShapeError(f"cannot broadcast {x} to shape {shape} along axes {dims}")
    return x.with_shape(shape)


def _transpose_broadcast(ct: Symbol, x: Symbol, *, shape: Shape, dims: Ints) -> tuple[Symbol]:
    stretched = [d for n, d in zip(x.shape, dims, strict=True) if n == 1 and shape[d] != 1]
    added = [d for d in range(len(shape)) if d not in dims]
    return (reshape_to(sum_over(ct, tuple(sorted(stretched + added))), x.shape),)


def _index_broadcast(indices: list[Any], operand: Aval, result: Aval, *, shape: Shape, dims: Ints) -> list[Any]:
    return [indices[d] if n == shape[d] else 0 for n, d in zip(operand.shape, dims, strict=True)]


def _broadcast_samples() -> Iterable[Sample]:
    yield from over_dtypes((2, 1), shape=(2, 4, 3), dims=(0, 2))
    yield Sample((sample(()),), {"shape": (3,), "dims": ()})
    yield Sample((sample((2, 3)),), {"shape": (2, 3), "dims": (0, 1)})
    yield Sample((sample((0, 1)),), {"shape": (0, 3), "dims": (0, 1)})


@linear(
    _infer_broadcast,
    _transpose_broadcast,
    IndexMap(_index_broadcast),
    _broadcast_samples,
    axes=Reindex(lambda count, *, shape, dims: {"shape": (count, *shape), "dims": (0, *behind(dims))}),
)
def broadcast_in_dim(x: Any, *, shape: Shape, dims: Ints) -> Any:
    """Repeat along new axes and axes of size 1: operand axis i becomes result axis dims[i]."""
    x = np.asarray(x)
    if x.flags.c_contiguous and x.size:
        strides = [0] * len(shape)
        for n, d, stride in zip(x.shape, dims, x.strides, strict=True):
            strides[d] = stride if n > 1 else 0
        return np.ndarray(shape, x.dtype, x, 0, strides)  # takes a fifth of the time of np.broadcast_to
    full = [1] * len(shape)
    for n, d in zip(x.shape, dims, strict=True):
        full[d] = n
    return np.broadcast_to(np.reshape(x, full), shape)


def infer_reduction(name: str, domain: Domain) -> Callable[..., Aval]:
    """The inference rule of a reduction over `axes`."""

    def infer(x: Aval, *, axes: Ints) -> Aval:
        check_dtype(name, x.dtype, domain)
        check_axes(name, axes, x.ndim)
        return x.with_shape(reduced_shape(x.shape, axes))

    return infer


def _transpose_sum(ct: Symbol, x: Symbol, *, axes: Ints) -> tuple[Symbol]:
    return (broadcast_in_dim(ct, shape=x.shape, dims=tuple(a for a in range(x.ndim) if a not in axes)),)


def reduction_samples() -> Iterable[Sample]:
    """Operands for reductions: every dtype, each kind of axes, an empty one."""
    yield from over_dtypes((2, 3), axes=(1,))
    for axes in ((), (0,), (1,), (0, 2), (0, 1, 2)):
        yield Sample((sample((2, 3, 4)),), {"axes": axes})
    yield Sample((sample(()),), {"axes": ()})


def _sum_samples() -> Iterable[Sample]:
    yield from (s for s in reduction_samples() if s.operands[0].dtype != BOOL)
    yield Sample((sample((0, 3)),), {"axes": (0,)})


@linear(
    infer_reduction("reduce_sum", NUMBERS),
    _transpose_sum,
    Fold("{dtype}(0)", "{acc} + {0}", sum=True),
    _sum_samples,
    bounds=lambda x, *, axes: x.summed(),
)
def reduce_sum(x: Any, *, axes: Ints) -> Any:
    """Sum over `axes`; rounding is about that of pairwise summation."""
    total = np.add.reduce(x, axis=axes, dtype=WIDER.get(x.dtype, x.dtype))
    return total if total.dtype == x.dtype else total.astype(x.dtype)


def broadcast_to(x: Symbol, shape: Shape) -> Symbol:
    """Repeat a value to a shape by NumPy's rule: axes are added in front, size 1 is stretched."""
    if x.shape == shape:
        return x
    return broadcast_in_dim(x, shape=shape, dims=tuple(range(len(shape) - x.ndim, len(shape))))


def stack_operands(count: int, operands: Sequence[Symbol], stacked: Sequence[bool]) -> list[Symbol]:
    """The operands, with copies of those that are not stacked."""
    return [x if is_stacked else copies(x, count) for x, is_stacked in zip(operands, stacked, strict=True)]


def copies(x: Symbol, count: int) -> Symbol:
    """A stack of `count` times the same value, along a new axis in front."""
    return broadcast_to(x, (count, *x.shape))


def sum_over(x: Symbol, axes: Ints) -> Symbol:
    """Sum over axes, if there are any."""
    return reduce_sum(x, axes=axes) if axes else x


# ---- constants ---------------------------------------------------------------------------------------------------


def constant(value: Any, dtype: Dtype, shape: Shape = ()) -> Symbol:
    """A number as a value of this dtype and shape."""
    if is_size(value):
        return broadcast_to(number_of_size(value, dtype), shape)
    return broadcast_to(current_builder().literal(dtype.type(value)), shape)


def number_of_size(size: int, dtype: Dtype) -> Symbol:
    """A size that is a symbol as a number of a dtype: the last of so many numbers and one."""
    numbers = iota(dtype=dtype, shape=(size + 1,), axis=0)
    return reshape_to(slice_(numbers, starts=(size,), limits=(size + 1,), strides=(1,)), ())


def zeros_like(x: Symbol | Aval) -> Symbol:
    """Zeros of the dtype and shape of x."""
    return constant(0, x.dtype, x.shape)


def ones_like(x: Symbol | Aval) -> Symbol:
    """Ones of the dtype and shape of x."""
    return constant(1, x.dtype, x.shape)


def full_like(x: Symbol | Aval, value: complex) -> Symbol:
    """An array of the dtype and shape of x that has one value everywhere."""
    return constant(value, x.dtype, x.shape)


def _infer_iota(*, dtype: Dtype, shape: Shape, axis: int) -> Aval:
    check_dtype("iota", dtype, NUMBERS)
    check_axes("iota", (axis,), len(shape))
    return Aval(dtype, shape)


def _iota_samples() -> Iterable[Sample]:
    for dtype in sorted(NUMBERS, key=str):
        yield Sample((), {"dtype": dtype, "shape": (2, 3), "axis": 1})
    yield Sample((), {"dtype": I64, "shape": (4,), "axis": 0})


@primitive(
    _infer_iota,
    NonDifferentiable(),
    Iota(),
    _iota_samples,
    axes=Reindex(lambda count, *, dtype, shape, axis: {"dtype": dtype, "shape": (count, *shape), "axis": axis + 1}),
    bounded=everywhere,
    bounds=lambda *, dtype, shape, axis: Range(0.0, max(0.0, shape[axis] - 1.0)),
)
def iota(*, dtype: Dtype, shape: Shape, axis: int) -> Any:
    """The index along `axis`, 0, 1, 2, …, as a number of `dtype`."""
    column = [1] * len(shape)
    column[axis] = shape[axis]
    return np.broadcast_to(np.arange(shape[axis]).astype(dtype).reshape(column), shape)


# ---- reshape -----------------------------------------------------------------------------------------------------


def _infer_reshape(x: Aval, *, shape: Shape) -> Aval:
    if math.prod(shape) != x.size or any(n < 0 for n in shape):
        raise ShapeError(f"cannot reshape array of size {x.size} into shape {shape}")
    return x.with_shape(shape)


def _transpose_reshape(ct: Symbol, x: Symbol, *, shape: Shape) -> tuple[Symbol]:
    return (reshape(ct, shape=x.shape),)


def _index_reshape(indices: list[Any], operand: Aval, result: Aval, *, shape: Shape) -> list[Any]:
    return unflatten(flatten(indices, shape), operand.shape)


def flatten(indices: list[Any], shape: Shape) -> Any:
    """The row-major position of a multi-index."""
    position: Any = 0
    for index, n in zip(indices, shape, strict=True):
        position = position * n + index
    return position


def unflatten(position: Any, shape: Shape) -> list[Any]:
    """The multi-index of a row-major position.

    A position outside of the array, which only the other side of a guard has, is outside of its first long axis: the
    remainder would keep the addresses of what a guard cuts out from being affine.
    """
    strides = [max(math.prod(shape[a + 1 :]), 1) for a in range(len(shape))]
    first = next((axis for axis, n in enumerate(shape) if n != 1), 0)
    places = [position // s for s in strides]
    return [p if a == first else p % max(n, 1) for a, (p, n) in enumerate(zip(places, shape, strict=True))]


def _reshape_samples() -> Iterable[Sample]:
    yield from over_dtypes((2, 3), shape=(3, 2))
    yield Sample((sample((2, 3, 4)),), {"shape": (6, 4)})
    yield Sample((sample((1,)),), {"shape": ()})
    yield Sample((sample((0, 3)),), {"shape": (3, 0, 2)})


@linear(
    _infer_reshape,
    _transpose_reshape,
    IndexMap(_index_reshape),
    _reshape_samples,
    axes=Reindex(lambda count, *, shape: {"shape": (count, *shape)}),
)
def reshape(x: Any, *, shape: Shape) -> Any:
    """The elements in row-major order, in another shape of the same size."""
    return np.reshape(x, shape)


def reshape_to(x: Symbol, shape: Shape) -> Symbol:
    """Reshape, if the shape differs."""
    return x if x.shape == shape else reshape(x, shape=shape)


# ---- transpose ---------------------------------------------------------------------------------------------------


def _infer_transpose(x: Aval, *, permutation: Ints) -> Aval:
    if sorted(permutation) != list(range(x.ndim)):
        raise AxisError(f"{permutation} is no permutation of the axes of {x}")
    return x.with_shape(tuple(x.shape[a] for a in permutation))


def invert(permutation: Ints) -> Ints:
    """The inverse permutation."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _transpose_transpose(ct: Symbol, x: Symbol, *, permutation: Ints) -> tuple[Symbol]:
    return (transpose(ct, permutation=invert(permutation)),)


def _index_transpose(indices: list[Any], operand: Aval, result: Aval, *, permutation: Ints) -> list[Any]:
    return [indices[a] for a in invert(permutation)]


def _transpose_samples() -> Iterable[Sample]:
    yield from over_dtypes((2, 3), permutation=(1, 0))
    yield Sample((sample((2, 3, 4)),), {"permutation": (1, 2, 0)})
    yield Sample((sample(()),), {"permutation": ()})


@linear(
    _infer_transpose,
    _transpose_transpose,
    IndexMap(_index_transpose),
    _transpose_samples,
    axes=Reindex(lambda count, *, permutation: {"permutation": (0, *behind(permutation))}),
)
def transpose(x: Any, *, permutation: Ints) -> Any:
    """Axes in another order: result axis i is operand axis permutation[i]."""
    return np.transpose(x, permutation)


def transpose_to(x: Symbol, permutation: Ints) -> Symbol:
    """Permute axes, if the order changes."""
    return x if permutation == tuple(range(x.ndim)) else transpose(x, permutation=permutation)


def in_front(x: Symbol, axes: Ints) -> Symbol:
    """The operand with these axes, as one, in front."""
    others = tuple(a for a in range(x.ndim) if a not in axes)
    moved = transpose_to(x, (*axes, *others))
    return reshape_to(moved, (math.prod(x.shape[a] for a in axes), *reduced_shape(x.shape, axes)))


# ---- slice / pad -------------------------------------------------------------------------------------------------


def _infer_slice(x: Aval, *, starts: Ints, limits: Ints, strides: Ints) -> Aval:
    if not len(starts) == len(limits) == len(strides) == x.ndim:
        raise ShapeError(f"slice of {x} takes {x.ndim} starts, limits and strides")
    for n, start, limit, stride in zip(x.shape, starts, limits, strides, strict=True):
        if not (0 <= start <= limit <= n and stride >= 1):
            raise ShapeError(f"slice {start}:{limit}:{stride} does not lie in an axis of size {n}")
    return x.with_shape(
        tuple(-(-(limit - start) // stride) for start, limit, stride in zip(starts, limits, strides, strict=True))
    )


def _transpose_slice(ct: Symbol, x: Symbol, *, starts: Ints, limits: Ints, strides: Ints) -> tuple[Symbol]:
    dilated = [n + (n - 1) * (s - 1) if n else 0 for n, s in zip(ct.shape, strides, strict=True)]
    high = tuple(n - start - d for n, start, d in zip(x.shape, starts, dilated, strict=True))
    return (pad(ct, low=starts, high=high, interior=tuple(s - 1 for s in strides)),)


def _index_slice(indices: list[Any], operand: Aval, result: Aval, *, starts: Ints, limits: Ints, strides: Ints) -> Any:
    return [index * stride + start for index, start, stride in zip(indices, starts, strides, strict=True)]


def _stack_slice(count: int, *, starts: Ints, limits: Ints, strides: Ints) -> dict[str, Ints]:
    return {"starts": (0, *starts), "limits": (count, *limits), "strides": (1, *strides)}


def _slice_samples() -> Iterable[Sample]:
    yield from over_dtypes((4,), starts=(1,), limits=(3,), strides=(1,))
    yield Sample((sample((5, 4)),), {"starts": (0, 1), "limits": (5, 4), "strides": (2, 3)})
    yield Sample((sample((3,)),), {"starts": (2,), "limits": (2,), "strides": (1,)})


@linear(_infer_slice, _transpose_slice, IndexMap(_index_slice), _slice_samples, axes=Reindex(_stack_slice))
def slice_(x: Any, *, starts: Ints, limits: Ints, strides: Ints) -> Any:
    """A box of static bounds: `starts` <= index < `limits`, every `strides`-th."""
    return x[tuple(np.s_[a:b:c] for a, b, c in zip(starts, limits, strides, strict=True))]


def _infer_pad(x: Aval, *, low: Ints, high: Ints, interior: Ints) -> Aval:
    if not len(low) == len(high) == len(interior) == x.ndim or min((*low, *high, *interior), default=0) < 0:
        raise ShapeError(f"pad of {x} takes {x.ndim} non-negative widths, got {low}, {high}, {interior}")
    return x.with_shape(
        tuple(a + n + max(n - 1, 0) * i + b for n, a, b, i in zip(x.shape, low, high, interior, strict=True))
    )


def _transpose_pad(ct: Symbol, x: Symbol, *, low: Ints, high: Ints, interior: Ints) -> tuple[Symbol]:
    limits = tuple(a + n + max(n - 1, 0) * i for n, a, i in zip(x.shape, low, interior, strict=True))
    return (slice_(ct, starts=low, limits=limits, strides=tuple(i + 1 for i in interior)),)


def _index_pad(indices: list[Any], operand: Aval, result: Aval, *, low: Ints, high: Ints, interior: Ints) -> list[Any]:
    return [(index - a) // (i + 1) if i else index - a for index, a, i in zip(indices, low, interior, strict=True)]


def _guard_pad(indices: list[Any], operand: Aval, result: Aval, *, low: Ints, high: Ints, interior: Ints) -> Any:
    conditions: list[Any] = []
    for index, n, a, b, i in zip(indices, operand.shape, low, high, interior, strict=True):
        if a or b:
            conditions.append((index, a, a + n + max(n - 1, 0) * i))
        if i:
            conditions.append(((index - a) % (i + 1), 0, 1))
    return conditions


def _pad_samples() -> Iterable[Sample]:
    yield from over_dtypes((3,), low=(1,), high=(2,), interior=(0,))
    yield Sample((sample((2, 3)),), {"low": (0, 1), "high": (2, 0), "interior": (1, 2)})
    yield Sample((sample((0, 2)),), {"low": (2, 0), "high": (0, 0), "interior": (1, 0)})


@linear(
    _infer_pad,
    _transpose_pad,
    IndexMap(_index_pad, _guard_pad),
    _pad_samples,
    axes=Reindex(lambda count, **widths: {name: (0, *width) for name, width in widths.items()}),
)
def pad(x: Any, *, low: Ints, high: Ints, interior: Ints) -> Any:
    """Zeros around (`low`, `high`) and between (`interior`) the elements."""
    shape = _infer_pad(Aval(x.dtype, x.shape), low=low, high=high, interior=interior).shape
    out = np.zeros(shape, x.dtype)
    spans = zip(low, x.shape, interior, strict=True)
    out[tuple(np.s_[a : a + (n - 1) * (i + 1) + 1 if n else a : i + 1] for a, n, i in spans)] = x
    return out


# ---- concatenate -------------------------------------------------------------------------------------------------


def _infer_concatenate(*xs: Aval, axis: int) -> Aval:
    first = xs[0]
    check_axes("concatenate", (axis,), first.ndim)
    for x in xs:
        alike = x.ndim == first.ndim and reduced_shape(x.shape, (axis,)) == reduced_shape(first.shape, (axis,))
        if x.dtype != first.dtype or not alike:
            raise ShapeError(
                f"concatenate along axis {axis} takes arrays alike but for that axis, got {', '.join(map(str, xs))}"
            )
    total = sum(x.shape[axis] for x in xs)
    return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _transpose_concatenate(ct: Symbol, *xs: Symbol, axis: int) -> list[Symbol]:
    ends = list(accumulate(x.shape[axis] for x in xs))
    return [slice_axis(ct, axis, end - x.shape[axis], end) for x, end in zip(xs, ends, strict=True)]


def slice_axis(x: Symbol, axis: int, start: int, limit: int, stride: int = 1) -> Symbol:
    """Slice along one axis."""
    starts = tuple(start if a == axis else 0 for a in range(x.ndim))
    limits = tuple(limit if a == axis else n for a, n in enumerate(x.shape))
    strides = tuple(stride if a == axis else 1 for a in range(x.ndim))
    return slice_(x, starts=starts, limits=limits, strides=strides)


def _concatenate_samples() -> Iterable[Sample]:
    for dtype in DTYPES.values():
        yield Sample((sample((2, 3), dtype), sample((2, 1), dtype, 1)), {"axis": 1})
    yield Sample((sample((2,)), sample((0,)), sample((3,), seed=2)), {"axis": 0})


@linear(_infer_concatenate, _transpose_concatenate, Concatenation(), _concatenate_samples)
def concatenate(*xs: Any, axis: int) -> Any:
    """Arrays side by side along an axis."""
    return np.concatenate(xs, axis)


# ---- reverse -----------------------------------------------------------------------------------------------------


def _infer_reverse(x: Aval, *, axes: Ints) -> Aval:
    check_axes("reverse", axes, x.ndim)
    return x


def _index_reverse(indices: list[Any], operand: Aval, result: Aval, *, axes: Ints) -> list[Any]:
    return [n - 1 - i if a in axes else i for a, (i, n) in enumerate(zip(indices, operand.shape, strict=True))]


def _transpose_reverse(ct: Symbol, x: Symbol, *, axes: Ints) -> tuple[Symbol]:
    return (reverse(ct, axes=axes),)


@linear(
    _infer_reverse,
    _transpose_reverse,
    IndexMap(_index_reverse),
    lambda: over_dtypes((2, 3), axes=(1,)),
    axes=Reindex(lambda count, *, axes: {"axes": behind(axes)}),
)
def reverse(x: Any, *, axes: Ints) -> Any:
    """The elements in reverse order along `axes`."""
    return np.flip(x, axes)
