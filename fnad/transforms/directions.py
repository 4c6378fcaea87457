"""Products with the directions of a Jacobian, without multiplying: A @ I = A, and A @ (d * I) = A * d.

A Jacobian is a derivative along each of the rows of an identity (`directions` in `fnad/ops/autodiff.py`). Contracted
with another array, over the elements K of the argument and not over the others, R, they select from it:

    sum over K of  y[o, K] directions[i, K, R]  =  y[o, K of i] where R is that of i, else 0.

So they do where they are scaled, and in each row of a stack, which may have factors of its own. The zeros of a
direction are strong, as those of a cotangent: a product with them is 0, whatever the other factor is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from fnad.ir.primitive import Primitive
from fnad.ir.program import Atom, Equation, Params
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import add, mul, neg, strong_mul, sub
from fnad.ops.autodiff import directions
from fnad.ops.contraction import dot_general, free_axes
from fnad.ops.shape import Ints, Shape, broadcast_in_dim, constant, pad, reshape, reshape_to, transpose_to, zeros_like
from fnad.transforms.rewrite import application, constant_of, definition, operands_of

DEEPEST = 40
"""The most operations, one on the other, that directions are looked for under."""


class Scaled(NamedTuple):
    """Directions, of `params`, each element multiplied by a factor that is the same for all of them."""

    params: Params
    axes: Ints
    """The axis of the directions, then those of the argument; the others are stacks."""
    factors: Callable[[], Symbol]
    """The factors, which have all axes but that of the directions."""


def selected(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """A contraction with directions as a selection; None for others."""
    if primitive is not dot_general:
        return None
    (x, y), (in_x, in_y), (of_x, of_y) = operands, params["contract"], params["batch"]
    found = scaled_directions(y)
    if found is not None:
        return _selected(x, in_x, of_x, y.shape, found, in_y, of_y)
    found = scaled_directions(x)
    product = None if found is None else _selected(y, in_y, of_y, x.shape, found, in_x, of_x)
    if product is None:
        return None
    first = len(of_y)
    behind = y.ndim - len(in_y)  # the free axes of y stand before those of x, and belong behind
    return transpose_to(product, (*range(first), *range(behind, product.ndim), *range(first, behind)))


# ---- what are directions -----------------------------------------------------------------------------------------


def scaled_directions(x: Symbol) -> Scaled | None:
    """The directions that a value is, but for factors."""
    return _Search().find(x, DEEPEST)


class _Search:
    """Through sums, products and copies, to each value once."""

    def __init__(self) -> None:
        self._found: dict[Atom, Scaled | None] = {}

    def find(self, x: Symbol, depth: int) -> Scaled | None:
        if depth and x.atom not in self._found:
            equation = definition(x)
            self._found[x.atom] = None if equation is None else self._of(equation, x, depth - 1)
        return self._found.get(x.atom)

    def _of(self, equation: Equation, x: Symbol, depth: int) -> Scaled | None:
        primitive, operands = equation.primitive, operands_of(x, equation)
        if primitive is directions:
            axes = tuple(range(x.ndim))
            return Scaled(equation.params, axes, lambda: constant(1, x.dtype, x.shape[1:]))
        if primitive is reshape:
            return _reshaped(self.find(operands[0], depth), operands[0].shape, x.shape)
        if primitive is broadcast_in_dim:
            return _copied(self.find(operands[0], depth), operands[0].shape, **equation.params)
        if primitive is neg:
            found = self.find(operands[0], depth)
            return None if found is None else found._replace(factors=cache(lambda: neg(found.factors())))
        if primitive in (mul, strong_mul):
            one, other = (self.find(operand, depth) for operand in operands)
            return _multiplied(primitive, operands, one, other)
        if primitive in (add, sub):
            return _added(primitive, operands, [self.find(operand, depth) for operand in operands])
        return None


def _reshaped(found: Scaled | None, of: Shape, shape: Shape) -> Scaled | None:
    """The directions of a reshaped argument; an axis of one element is a stack, which may be copied."""
    if found is None or found.axes != tuple(range(len(of))) or of[0] != (*shape, 0)[0]:
        return None
    axes = (0, *[a for a in range(1, len(shape)) if shape[a] != 1])
    params = {**found.params, "shape": tuple(shape[a] for a in axes[1:])}
    return Scaled(params, axes, cache(lambda: reshape_to(found.factors(), shape[1:])))


def _copied(found: Scaled | None, of: Shape, *, shape: Shape, dims: Ints) -> Scaled | None:
    if found is None or any(of[a] != shape[dims[a]] for a in found.axes):
        return None
    axes = tuple(dims[a] for a in found.axes)
    kept = tuple(d for d in dims if d != axes[0])
    return Scaled(found.params, axes, cache(lambda: _without(found.factors(), shape, kept, axes[0])))


def _without(x: Symbol, shape: Shape, dims: Ints, axis: int) -> Symbol:
    """The value that is broadcast to a shape, without an axis that it does not go along."""
    return broadcast_in_dim(x, shape=(*shape[:axis], *shape[axis + 1 :]), dims=tuple(d - (d > axis) for d in dims))


def _multiplied(
    product: Primitive, operands: Sequence[Symbol], one: Scaled | None, other: Scaled | None
) -> Scaled | None:
    found, factor = (one, operands[1]) if one is not None else (other, operands[0])
    spread = application(factor, broadcast_in_dim)
    if found is None or spread is None or found.axes[0] in (dims := spread[1]["dims"]):
        return None

    def factors() -> Symbol:
        given = found.factors(), _without(spread[0][0], factor.shape, dims, found.axes[0])
        return product(*(given if one is not None else given[::-1]))

    return found._replace(factors=cache(factors))


def _added(total: Primitive, operands: Sequence[Symbol], terms: Sequence[Scaled | None]) -> Scaled | None:
    """The sum of directions of the same elements, or of directions and zeros."""
    found = next((term for term in terms if term is not None), None)
    if found is None:
        return None
    for operand, term in zip(operands, terms, strict=True):
        if constant_of(operand) != 0 if term is None else term[:2] != found[:2]:
            return None

    def factors() -> Symbol:
        return total(*[zeros_like(found.factors()) if term is None else term.factors() for term in terms])

    return found._replace(factors=cache(factors))


# ---- what they select --------------------------------------------------------------------------------------------


def _selected(
    y: Symbol, in_y: Ints, of_y: Ints, shape_of_x: Shape, found: Scaled, in_x: Ints, of_x: Ints
) -> Symbol | None:
    """The axes that are paired, the free ones of y, then those of the directions in their order."""
    shape, count, start = found.params["shape"], found.params["count"], found.params["start"]
    along, elements = found.axes[0], found.axes[1:]
    stacks = tuple(a for a in range(len(shape_of_x)) if a not in found.axes)
    if not (set(in_x) <= set(elements) and set(of_x) <= set(stacks) and math.prod(shape)):
        return None
    free, rest = free_axes(y.ndim, in_y, of_y), [a for a in range(len(shape)) if elements[a] not in in_x]
    lead = len(stacks) + len(free)
    # what is computed has the axes `stacks`, `free`, all elements of a direction, and those that are not contracted
    whole = (*[shape_of_x[a] for a in stacks], *[y.shape[a] for a in free], *shape, *[shape[a] for a in rest])
    place = {**{a: n for n, a in enumerate(stacks)}, **{a: lead + n for n, a in enumerate(elements)}}
    of = dict(zip((*of_y, *in_y), [place[a] for a in (*of_x, *in_x)], strict=True))
    of.update({a: len(stacks) + n for n, a in enumerate(free)})
    x = placed(y, whole, [of[a] for a in range(y.ndim)])
    x = mul(x, placed(found.factors(), whole, [place[a] for a in range(len(shape_of_x)) if a != along]))
    if rest:
        size = math.prod(shape[a] for a in rest)
        same = directions(dtype=y.dtype, count=size, start=0, shape=(size,))
        same = reshape_to(same, tuple(shape[a] for a in (*rest, *rest)))
        dims = (*[lead + a for a in rest], *range(lead + len(shape), len(whole)))
        x = strong_mul(broadcast_in_dim(same, shape=whole, dims=dims), x)
    flat = math.prod(shape)
    x = reshape_to(x, (*whole[:lead], flat, *whole[lead + len(shape) :]))
    if count != flat:
        low = tuple(start if a == lead else 0 for a in range(x.ndim))
        high = tuple(count - flat - start if a == lead else 0 for a in range(x.ndim))
        x = pad(x, low=low, high=high, interior=(0,) * x.ndim)
    place.update({along: lead, **{elements[a]: lead + 1 + n for n, a in enumerate(rest)}})
    left = free_axes(len(shape_of_x), in_x, of_x)
    return transpose_to(x, (*[place[a] for a in of_x], *range(len(stacks), lead), *[place[a] for a in left]))


def placed(x: Symbol, shape: Shape, dims: Sequence[int]) -> Symbol:
    """The value broadcast to a shape, its axes in any order."""
    order = sorted(range(x.ndim), key=dims.__getitem__)
    return broadcast_in_dim(transpose_to(x, tuple(order)), shape=shape, dims=tuple(sorted(dims)))
