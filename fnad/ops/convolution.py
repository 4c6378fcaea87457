"""Convolution over all axes.

    full:   z_i = Σ_j x_(i-j) y_j      for all i where there is a term
    valid:  the same, for those i where no term is missing; y is the smaller one along every axis

Each is bilinear, and the transposes are convolutions with the reversed operand: of the full one valid, of the valid one
full in x and valid in y.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any, cast

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.axes import Opaque
from fnad.ir.primitive import Bilinear, Library, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Shape
from fnad.ops.arithmetic import add, mul
from fnad.ops.constructors import NUMBERS, by_name, check_dtype, check_one_dtype, primitive
from fnad.ops.shape import broadcast_to, concatenate, pad, reduce_sum, reshape_to, reverse, sample, slice_axis
from fnad.placement import scipy_module


def _infer_convolve(x: Aval, y: Aval, *, mode: str) -> Aval:
    check_dtype("convolve", x.dtype, NUMBERS)
    check_one_dtype("convolve", x, y)
    if x.ndim != y.ndim or x.ndim == 0 or 0 in (*x.shape, *y.shape):
        raise ShapeError(f"convolve takes arrays of as many axes, none of them empty, got {x} and {y}")
    if mode == "full":
        return x.with_shape(tuple(n + m - 1 for n, m in zip(x.shape, y.shape, strict=True)))
    if any(n < m for n, m in zip(x.shape, y.shape, strict=True)):
        raise ShapeError(f"a valid convolve takes the smaller array along every axis as the second, got {x} and {y}")
    return x.with_shape(tuple(n - m + 1 for n, m in zip(x.shape, y.shape, strict=True)))


def backwards(x: Symbol) -> Symbol:
    """The operand reversed along every axis."""
    return reverse(x, axes=tuple(range(x.ndim)))


def _transpose_x(ct: Symbol, x: Symbol, y: Symbol, *, mode: str) -> Symbol:
    return convolve(ct, backwards(y), mode="valid" if mode == "full" else "full")


def _transpose_y(ct: Symbol, x: Symbol, y: Symbol, *, mode: str) -> Symbol:
    if mode == "full":
        return convolve(ct, backwards(x), mode="valid")
    return backwards(convolve(x, backwards(ct), mode="valid"))


LARGEST = 32
"""Elements of the smaller operand, or of the result, up to which a convolution is written out."""


def _written_out(x: Symbol, y: Symbol, *, mode: str) -> Symbol | None:
    """The sum of shifted multiples of x, or as many sums of products as there are results; None if both are many."""
    if mode == "full":
        x, y = (x, y) if x.aval.size >= y.aval.size else (y, x)
        if x.ndim == 1 and 1 < y.aval.size <= LARGEST:
            middle, width = _written_out(x, y, mode="valid"), y.aval.size - 1
            ends = _begin(x, y, width), backwards(_begin(backwards(x), backwards(y), width))
            return concatenate(ends[0], cast("Symbol", middle), ends[1], axis=0)
        width = tuple(m - 1 for m in y.shape)
        return _written_out(pad(x, low=width, high=width, interior=(0,) * x.ndim), y, mode="valid")
    shape = _infer_convolve(x.aval, y.aval, mode=mode).shape
    kernel = backwards(y)
    if y.aval.size <= LARGEST:
        terms = [mul(_box(x, place, shape), _broadcast(kernel, place, shape)) for place in np.ndindex(y.shape)]
        return reduce(add, terms)
    if math.prod(shape) > LARGEST:
        return None
    axes = tuple(range(x.ndim))
    sums = [reduce_sum(mul(_box(x, place, y.shape), kernel), axes=axes) for place in np.ndindex(shape)]
    return reshape_to(concatenate(*[reshape_to(total, (1,)) for total in sums], axis=0), shape)


def _begin(x: Symbol, y: Symbol, size: int) -> Symbol:
    """The first elements of the full convolution. What is outside of x is no factor, as it is infinitely often in y."""
    products = [mul(_box(x, (0,), (size - j,)), _broadcast(y, (j,), (size - j,))) for j in range(size)]
    return reduce(add, (pad(term, low=(j,), high=(0,), interior=(0,)) for j, term in enumerate(products)))


def _box(x: Symbol, start: Shape, shape: Shape) -> Symbol:
    """The elements of x from a place on."""
    for axis, (first, size) in enumerate(zip(start, shape, strict=True)):
        x = slice_axis(x, axis, first, first + size)
    return x


def _broadcast(x: Symbol, place: Shape, shape: Shape) -> Symbol:
    """An element of x everywhere."""
    return broadcast_to(reshape_to(_box(x, place, (1,) * x.ndim), ()), shape)


def _convolve_samples() -> Iterable[Sample]:
    for dtype in by_name(NUMBERS):
        yield Sample((sample((4,), dtype), sample((3,), dtype, 1)), {"mode": "full"})
    for x, y in (((5,), (2,)), ((3, 4), (2, 3)), ((1,), (1,)), ((3, 1, 2), (1, 1, 2))):
        for mode in ("full", "valid"):
            yield Sample((sample(x), sample(y, seed=1)), {"mode": mode})


@primitive(
    _infer_convolve,
    Bilinear((_transpose_x, _transpose_y)),
    Library("convolve", raises=False, expansion=_written_out, dispatched=True),
    _convolve_samples,
    axes=Opaque("it convolves over all axes"),
)
def convolve(x: Any, y: Any, *, mode: str) -> Any:
    """Convolution over all axes, as a sum of products; `mode` full or valid."""
    return scipy_module(x, "signal").convolve(x, y, mode, "direct").astype(x.dtype)
