"""`dot_general`, the one contraction: batched products of matrices of any rank.

Its result axes are the batch axes, then the free axes of x, then those of y, each in order. Both transposes are again
dot_general: of the cotangent with the other operand over the other's free axes, and a permutation back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from fnad.errors import AxisError, ShapeError
from fnad.ir.primitive import Bilinear, Contraction, Sample
from fnad.ir.ranges import Range
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.constructors import NUMBERS, by_name, check_dtype, check_one_dtype, primitive
from fnad.ops.shape import Ints, invert, sample, transpose_to

Axes: TypeAlias = tuple[Ints, Ints]
"""Axes of x and, one for one, axes of y."""


def free_axes(ndim: int, contract: Ints, batch: Ints) -> Ints:
    """The axes that are neither contracted nor batch axes, in order."""
    return tuple(a for a in range(ndim) if a not in contract and a not in batch)


def _infer_dot_general(x: Aval, y: Aval, *, contract: Axes, batch: Axes) -> Aval:
    check_dtype("dot_general", x.dtype, NUMBERS)
    check_one_dtype("dot_general", x, y)
    for aval, contracted, batched in zip((x, y), contract, batch, strict=True):
        named = (*contracted, *batched)
        if len(set(named)) != len(named) or any(not 0 <= a < aval.ndim for a in named):
            raise AxisError(f"dot_general contracts axes {contracted} with batch axes {batched} of {aval}")
    for pairs, verb in ((contract, "contracts"), (batch, "pairs batch")):
        _check_pairs(x, y, pairs, verb)
    free_x, free_y = free_axes(x.ndim, contract[0], batch[0]), free_axes(y.ndim, contract[1], batch[1])
    return x.with_shape((*_sizes(x, batch[0]), *_sizes(x, free_x), *_sizes(y, free_y)))


def _check_pairs(x: Aval, y: Aval, pairs: Axes, verb: str) -> None:
    if len(pairs[0]) != len(pairs[1]):
        raise ShapeError(f"dot_general {verb} axes {pairs[0]} of x with axes {pairs[1]} of y, which are not as many")
    for a, b in zip(*pairs, strict=True):
        if x.shape[a] != y.shape[b]:
            raise ShapeError(f"dot {verb} axis {a} of x: {x} with axis {b} of y: {y} ({x.shape[a]} != {y.shape[b]})")


def _sizes(x: Any, axes: Ints) -> Ints:
    return tuple(x.shape[a] for a in axes)


# ---- the transposes ----------------------------------------------------------------------------------------------


def _transpose_x(ct: Symbol, x: Symbol, y: Symbol, *, contract: Axes, batch: Axes) -> Symbol:
    """Contract the cotangent with y over the free axes of y: x̄ = ct yᵀ, contracted axes last."""
    free_x, free_y = free_axes(x.ndim, contract[0], batch[0]), free_axes(y.ndim, contract[1], batch[1])
    lead, first = tuple(range(len(batch[0]))), len(batch[0]) + len(free_x)
    of_ct = tuple(range(first, first + len(free_y)))
    product = dot_general(ct, y, contract=(of_ct, free_y), batch=(lead, batch[1]))
    return transpose_to(product, invert((*batch[0], *free_x, *_beside(contract[1], contract[0]))))


def _transpose_y(ct: Symbol, x: Symbol, y: Symbol, *, contract: Axes, batch: Axes) -> Symbol:
    """Contract x with the cotangent over the free axes of x: ȳ = xᵀ ct, contracted axes first."""
    free_x, free_y = free_axes(x.ndim, contract[0], batch[0]), free_axes(y.ndim, contract[1], batch[1])
    lead, first = tuple(range(len(batch[0]))), len(batch[0])
    of_ct = tuple(range(first, first + len(free_x)))
    product = dot_general(x, ct, contract=(free_x, of_ct), batch=(batch[0], lead))
    return transpose_to(product, invert((*batch[1], *_beside(contract[0], contract[1]), *free_y)))


def _beside(axes: Ints, others: Ints) -> Ints:
    """The other operand's axes in the order of this one's."""
    return tuple(other for _, other in sorted(zip(axes, others, strict=True)))


def _dot_samples() -> Iterable[Sample]:
    for dtype in by_name(NUMBERS):
        yield Sample((sample((2, 3), dtype), sample((3, 4), dtype, 1)), {"contract": ((1,), (0,)), "batch": ((), ())})
    for x, y, contract, batch in (
        ((3,), (3,), ((0,), (0,)), ((), ())),
        ((2,), (3,), ((), ()), ((), ())),
        ((4, 2, 3), (4, 3, 5), ((2,), (1,)), ((0,), (0,))),
        ((2, 4, 3), (3, 5, 4), ((2,), (0,)), ((1,), (2,))),
        ((2, 3, 4), (4, 5, 3), ((1, 2), (2, 0)), ((), ())),
        ((2, 0), (0, 3), ((1,), (0,)), ((), ())),
    ):
        yield Sample((sample(x), sample(y, seed=1)), {"contract": contract, "batch": batch})


def _bounds(x: Range, y: Range, *, contract: Axes, batch: Axes) -> Range:
    """That of a sum of products, of squares if an array is paired with itself."""
    return (x * (y if contract[0] == contract[1] else replace(y))).summed()


@primitive(_infer_dot_general, Bilinear((_transpose_x, _transpose_y)), Contraction(), _dot_samples, bounds=_bounds)
def dot_general(x: Any, y: Any, *, contract: Axes, batch: Axes) -> Any:
    """Sum of products over the pairs of axes `contract`, for each index of the pairs of axes `batch`."""
    # Bring both into the form (batch, free, contracted) x (batch, contracted, free) of np.matmul.
    free_x, free_y = free_axes(x.ndim, contract[0], batch[0]), free_axes(y.ndim, contract[1], batch[1])
    batch_shape, shape_x, shape_y = _sizes(x, batch[0]), _sizes(x, free_x), _sizes(y, free_y)
    inner = math.prod(_sizes(x, contract[0]))
    left = np.transpose(x, (*batch[0], *free_x, *contract[0])).reshape((*batch_shape, math.prod(shape_x), inner))
    right = np.transpose(y, (*batch[1], *contract[1], *free_y)).reshape((*batch_shape, inner, math.prod(shape_y)))
    return np.matmul(left, right).reshape((*batch_shape, *shape_x, *shape_y))
