"""Products with the directions of a Jacobian, without multiplying: A @ I = A, and A @ (d * I) = A * d.

A Jacobian is a derivative along each of the rows of an identity (`directions` in `fnad/ops/autodiff.py`). Contracted
with another array, over the elements K of the argument and not over the others, R, they select from it:

    sum over K of  y[o, K] directions[i, K, R]  =  y[o, K of i] where R is that of i, else 0.

The zeros of a direction are strong, as those of a cotangent: a product with them is 0, whatever the other factor is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fnad.ir.primitive import Primitive
from fnad.ir.program import Params
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import mul, strong_mul
from fnad.ops.autodiff import directions
from fnad.ops.contraction import dot_general, free_axes
from fnad.ops.shape import Ints, broadcast_in_dim, pad, reshape_to, transpose_to
from fnad.transforms.rewrite import application


class Scaled(NamedTuple):
    """Directions whose elements are scaled by factors, each with the axes of the argument that it goes along."""

    params: Params
    factors: tuple[tuple[Symbol, Ints], ...]


def selected(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """A contraction with directions as a selection; None for others."""
    if primitive is not dot_general or params["batch"] != ((), ()):
        return None
    (x, y), (in_x, in_y) = operands, params["contract"]
    found = scaled_directions(y)
    if found is not None:
        return _selected(x, in_x, found, in_y)
    found = scaled_directions(x)
    if found is None:
        return None
    product = _selected(y, in_y, found, in_x)
    count = y.ndim - len(in_y)  # its axes stand first, and belong behind
    return None if product is None else transpose_to(product, (*range(count, product.ndim), *range(count)))


def scaled_directions(x: Symbol) -> Scaled | None:
    """The directions that a value is, but for factors that are the same for all of them."""
    given = application(x, directions)
    if given is not None:
        return Scaled(given[1], ())
    for product in (mul, strong_mul):
        factors = application(x, product)
        for one, other in [] if factors is None else (factors[0], factors[0][::-1]):
            spread, found = application(other, broadcast_in_dim), scaled_directions(one)
            if found is not None and spread is not None and 0 not in (dims := spread[1]["dims"]):
                factor = spread[0][0], tuple(d - 1 for d in dims)
                return found._replace(factors=(*found.factors, factor))
    return None


def _selected(y: Symbol, of_y: Ints, found: Scaled, contracted: Ints) -> Symbol | None:
    """The free axes of y, the directions, then the elements that are not contracted."""
    shape, count, start = found.params["shape"], found.params["count"], found.params["start"]
    sums = [a - 1 for a in contracted]
    if -1 in sums or not math.prod(shape):
        return None
    free, rest = free_axes(y.ndim, of_y, ()), [a for a in range(len(shape)) if a not in sums]
    lead = len(free)
    x = transpose_to(y, (*free, *[of_y[sums.index(a)] for a in sorted(sums)]))
    # the axes are now those of `free`, then of all elements of the direction, then of those that are not contracted
    whole = (*x.shape[:lead], *shape, *[shape[a] for a in rest])
    x = broadcast_in_dim(x, shape=whole, dims=(*range(lead), *[lead + a for a in sorted(sums)]))
    for factor, along in found.factors:
        x = mul(x, broadcast_in_dim(factor, shape=whole, dims=tuple(lead + a for a in along)))
    if rest:
        size = math.prod(shape[a] for a in rest)
        same = directions(dtype=y.dtype, count=size, start=0, shape=(size,))
        same = reshape_to(same, tuple(shape[a] for a in (*rest, *rest)))
        dims = (*[lead + a for a in rest], *range(lead + len(shape), len(whole)))
        x = strong_mul(broadcast_in_dim(same, shape=whole, dims=dims), x)
    flat = math.prod(shape)
    x = reshape_to(x, (*whole[:lead], flat, *whole[lead + len(shape) :]))
    if count == flat:
        return x
    low = tuple(start if a == lead else 0 for a in range(x.ndim))
    high = tuple(count - flat - start if a == lead else 0 for a in range(x.ndim))
    return pad(x, low=low, high=high, interior=(0,) * x.ndim)
