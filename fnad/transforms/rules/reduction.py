"""Reductions of one element, of no elements, and of reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from fnad.ir.primitive import Primitive
from fnad.ir.symbol import Symbol
from fnad.ir.types import Shape
from fnad.ops.arithmetic import neg, strong_div, strong_mul, sub
from fnad.ops.constructors import INEXACT, ORDERED
from fnad.ops.reduction import reduce_and, reduce_max, reduce_min, reduce_or
from fnad.ops.shape import Ints, broadcast_in_dim, reduce_sum, reduced_shape, reshape_to, zeros_like
from fnad.transforms.pattern import Rule


def _only_element(x: Symbol, axes: Ints) -> Symbol | None:
    return None if any(x.shape[axis] != 1 for axis in axes) else reshape_to(x, reduced_shape(x.shape, axes))


def _sum_of_one(x: Symbol, axes: Ints) -> Symbol | None:
    """The one element, plus 0 since a sum starts there: -0.0 alone adds up to 0.0."""
    element = _only_element(x, axes)
    return None if element is None else element + 0


def _sum_of_none(x: Symbol, axes: Ints) -> Symbol | None:
    return zeros_like(x.aval.with_shape(reduced_shape(x.shape, axes))) if x.aval.size == 0 else None


def _negated(x: Symbol, axes: Ints) -> Symbol:
    total = reduce_sum(x, axes=axes)
    return sub(zeros_like(total.aval), total)  # a sum is never -0.0, which the negation of 0.0 would be


def _of_broadcast(x: Symbol, shape: Shape, dims: Ints, axes: Ints) -> Symbol | None:
    """The sum before the broadcast, times the number of copies that are added."""
    own = {dim: axis for axis, dim in enumerate(dims) if x.shape[axis] == shape[dim]}
    copies = prod(shape[axis] for axis in axes if axis not in own)
    if copies == 0 or len(own) < x.ndim:
        return None
    total = reduce_sum(x, axes=tuple(own[axis] for axis in axes if axis in own))
    left = [axis for axis in range(len(shape)) if axis not in axes]
    result = reduced_shape(shape, axes)
    return broadcast_in_dim(total * copies, shape=result, dims=tuple(left.index(d) for d in dims if d in left))


def _of_quotients(
    ct: Symbol, q: Symbol, x: Symbol, y: Symbol, d: Symbol, shape: Shape, dims: Ints, axes: Ints
) -> Symbol | None:
    """The cotangent of a divisor, divided once for all terms: both are 0, inf or nan where the divisor is 0 or inf."""
    own = {dim: axis for axis, dim in enumerate(dims) if d.shape[axis] != 1}
    if not own.keys().isdisjoint(axes):
        return None
    left = [axis for axis in range(len(shape)) if axis not in axes]
    divisor = broadcast_in_dim(
        reshape_to(d, tuple(d.shape[axis] for axis in own.values())),
        shape=reduced_shape(shape, axes),
        dims=tuple(left.index(dim) for dim in own),
    )
    return neg(strong_div(reduce_sum(strong_mul(ct, q), axes=axes), divisor))


def _merge(reduction: Primitive) -> Callable[[Symbol, Ints, Ints], Symbol]:
    def merge(x: Symbol, inner: Ints, outer: Ints) -> Symbol:
        left = [axis for axis in range(x.ndim) if axis not in inner]
        return reduction(x, axes=tuple(sorted((*inner, *(left[axis] for axis in outer)))))

    return merge


def _exact(reduction: Primitive) -> Iterator[Rule]:
    """The rules of a reduction that does not round, and leaves a single element unchanged."""
    name = reduction.name
    yield Rule(f"{name}(x, axes=axes) = reshape(x) where one element is reduced", _only_element)
    yield Rule(f"{name}({name}(x, axes=inner), axes=outer) = {name}(x)", _merge(reduction))


REDUCTION = (
    Rule("reduce_sum(x, axes=axes) = reshape(x) + 0 where one element is summed", _sum_of_one),
    Rule("reduce_sum(x, axes=axes) = 0 where there is no element", _sum_of_none),
    Rule("reduce_sum(neg(x), axes=axes) = 0 - reduce_sum(x)", _negated),
    Rule("reduce_sum(reduce_sum(x, axes=inner), axes=outer) = reduce_sum(x)", _merge(reduce_sum), up_to="rounding"),
    Rule(
        "reduce_sum(broadcast_in_dim(x, shape=shape, dims=dims), axes=axes) = broadcast_in_dim(reduce_sum(x) * copies)",
        _of_broadcast,
        INEXACT,
        up_to="rounding",
    ),
    Rule(
        "reduce_sum(strong_mul(ct, div(neg(q := div(x, y := broadcast_in_dim(d, shape=shape, dims=dims))), y)), "
        "axes=axes) = -strong_div(reduce_sum(strong_mul(ct, q)), d)",
        _of_quotients,
        INEXACT,
        up_to="rounding",
    ),
    Rule("reduce_prod(x, axes=axes) = reshape(x) where one element is multiplied", _only_element, ORDERED),
    *(rule for reduction in (reduce_max, reduce_min, reduce_and, reduce_or) for rule in _exact(reduction)),
)
