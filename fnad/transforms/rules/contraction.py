"""Transposes and sums around `dot_general`, which takes its operands' axes in any order and is linear in both."""

from __future__ import annotations

from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F64
from fnad.ops.arithmetic import mul
from fnad.ops.constructors import REALS
from fnad.ops.contraction import Axes, dot_general, free_axes
from fnad.ops.shape import Ints, Shape, broadcast_to, reduce_sum, transpose_to
from fnad.transforms.directions import placed
from fnad.transforms.pattern import Rule
from fnad.transforms.rewrite import used_once


def _through(permutation: Ints, contract: Ints, batch: Ints) -> tuple[Ints, Ints] | None:
    """The operand's axes for those of its transpose, if its free axes keep their order."""
    free = [permutation[a] for a in free_axes(len(permutation), contract, batch)]
    if free != sorted(free):
        return None
    return tuple(permutation[a] for a in contract), tuple(permutation[a] for a in batch)


def _transposed_left(x: Symbol, p: Ints, y: Symbol, contract: Axes, batch: Axes) -> Symbol | None:
    found = _through(p, contract[0], batch[0])
    if found is None:
        return None
    return dot_general(x, y, contract=(found[0], contract[1]), batch=(found[1], batch[1]))


def _transposed_right(x: Symbol, y: Symbol, p: Ints, contract: Axes, batch: Axes) -> Symbol | None:
    found = _through(p, contract[1], batch[1])
    if found is None:
        return None
    return dot_general(x, y, contract=(contract[0], found[0]), batch=(batch[0], found[1]))


def _swap(product: Symbol, x: Symbol, y: Symbol, contract: Axes, batch: Axes, p: Ints) -> Symbol | None:
    """Put y first where the result has y's free axes before those of x, unless it is also needed as it is."""
    count = len(batch[0])
    first = x.ndim - len(contract[0])
    swapped = (*range(count), *range(first, product.ndim), *range(count, first))
    if p != swapped or not used_once(product):
        return None
    return dot_general(y, x, contract=contract[::-1], batch=batch[::-1])


def _sum_before(product: Symbol, x: Symbol, y: Symbol, contract: Axes, batch: Axes, axes: Ints) -> Symbol | None:
    """Sum the operands over their free axes instead of the product, unless that is needed as it is too."""
    if not used_once(product):
        return None
    count, operands, pairs = len(batch[0]), (x, y), list(zip(contract, batch, strict=True))
    free = [free_axes(operand.ndim, *pair) for operand, pair in zip(operands, pairs, strict=True)]
    starts = (count, count + len(free[0]))
    taken = [
        tuple(a for n, a in enumerate(axes_, start) if n in axes) for axes_, start in zip(free, starts, strict=True)
    ]
    if len(taken[0]) + len(taken[1]) < len(axes) or not axes:
        return None  # a sum over batch axes would be a contraction of these, which takes longer
    summed = [
        reduce_sum(operand, axes=gone) if gone else operand for operand, gone in zip(operands, taken, strict=True)
    ]
    left = [[_without(named, gone) for named in pair] for pair, gone in zip(pairs, taken, strict=True)]
    (contract_x, batch_x), (contract_y, batch_y) = left
    return dot_general(*summed, contract=(contract_x, contract_y), batch=(batch_x, batch_y))


def _of_number(x: Symbol, y: Symbol, contract: Axes, batch: Axes) -> Symbol | None:
    """Multiply by a number, element by element."""
    if x.ndim and y.ndim:
        return None
    shape = (*x.shape, *y.shape)
    return mul(broadcast_to(x, shape), broadcast_to(y, shape))


def _broadcast_left(x: Symbol, shape: Shape, dims: Ints, y: Symbol, contract: Axes, batch: Axes) -> Symbol | None:
    """Sum y along the copies that are contracted, multiply, and copy the result along the others."""
    own = {dim: axis for axis, dim in enumerate(dims)}
    if len(own) == len(shape) or any(x.shape[axis] != shape[dim] for dim, axis in own.items()):
        return None
    if not own.keys() >= {*batch[0]} and not own.keys() <= {*batch[0]}:
        return None  # what is left is one matrix product with its axes in another order, which takes longer
    gone = tuple(sorted(j for i, j in zip(*contract, strict=True) if i not in own))
    left, right = ([(own[i], j) for i, j in zip(*pairs, strict=True) if i in own] for pairs in (contract, batch))
    first = (*batch[0], *free_axes(len(shape), contract[0], batch[0]))
    free = free_axes(y.ndim, contract[1], batch[1])
    places = {i: n for n, i in enumerate(first)}
    of_y = {j: places[i] for i, j in zip(*batch, strict=True)}
    of_y.update({j: len(first) + n for n, j in enumerate(free)})
    whole = (*(shape[i] for i in first), *(y.shape[j] for j in free))
    contracted, paired = (
        (tuple(i for i, _ in pairs), _without(tuple(j for _, j in pairs), gone)) for pairs in (left, right)
    )
    found = dot_general(x, reduce_sum(y, axes=gone) if gone else y, contract=contracted, batch=paired)
    taken = {*gone, *(j for _, j in (*left, *right))}
    order = [places[dims[i]] for i in (*paired[0], *free_axes(x.ndim, contracted[0], paired[0]))]
    order += [of_y[j] for j in range(y.ndim) if j not in taken]
    return placed(found, whole, order)


def _broadcast_right(x: Symbol, y: Symbol, shape: Shape, dims: Ints, contract: Axes, batch: Axes) -> Symbol | None:
    found = _broadcast_left(y, shape, dims, x, (contract[1], contract[0]), (batch[1], batch[0]))
    if found is None:
        return None
    first, count = len(batch[0]), len(shape) - len(contract[1])
    return transpose_to(found, (*range(first), *range(count, found.ndim), *range(first, count)))


def _without(axes: Ints, gone: Ints) -> Ints:
    """The axes, as they are numbered where some others are gone."""
    return tuple(a - sum(other < a for other in gone) for a in axes)


DOUBLES = frozenset({F64, DTYPES["c128"]})
"""The dtypes whose sums may be taken first: in f32 they overflow where products with small numbers are finite."""

CONTRACTION = (
    Rule(
        "dot_general(transpose(x, permutation=p), y, contract=contract, batch=batch) = dot_general(x, y)",
        _transposed_left,
    ),
    Rule(
        "dot_general(x, transpose(y, permutation=p), contract=contract, batch=batch) = dot_general(x, y)",
        _transposed_right,
    ),
    Rule(
        "dot_general(x, y, contract=contract, batch=batch) = mul(x, y) of a number",
        _of_number,
        REALS,
        up_to="the sign of zero",
    ),
    Rule(
        "dot_general(broadcast_in_dim(x, shape=shape, dims=dims), y, contract=contract, batch=batch) "
        "= broadcast_in_dim(dot_general(x, Σ y))",
        _broadcast_left,
        DOUBLES,
        up_to="rounding",
    ),
    Rule(
        "dot_general(x, broadcast_in_dim(y, shape=shape, dims=dims), contract=contract, batch=batch) "
        "= broadcast_in_dim(dot_general(Σ x, y))",
        _broadcast_right,
        DOUBLES,
        up_to="rounding",
    ),
    Rule(
        "transpose(product := dot_general(x, y, contract=contract, batch=batch), permutation=p) = dot_general(y, x)",
        _swap,
        up_to="rounding",
    ),
    Rule(
        "reduce_sum(product := dot_general(x, y, contract=contract, batch=batch), axes=axes) = dot_general(Σ x, Σ y)",
        _sum_before,
        DOUBLES,
        up_to="rounding",
    ),
)
