"""Transposes around `dot_general`, which takes its operands' axes in any order, and its products with an identity.

Such a product is what the seeds of a Jacobian become in a linear function: not a sum of which all terms but one are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype, Shape
from fnad.ops.contraction import Axes, dot_general, free_axes
from fnad.ops.shape import Ints, transpose_to
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


class Counter(NamedTuple):
    """The params of an iota."""

    dtype: Dtype
    shape: Shape
    axis: int


def _times_identity(
    d: Dtype, s: Shape, a: int, e: Dtype, t: Shape, b: int, y: Symbol, contract: Axes, batch: Axes
) -> Symbol | None:
    """The operand itself, with the axis that is contracted in the place of the identity's other one."""
    if not _is_identity(Counter(d, s, a), Counter(e, t, b)) or len(contract[0]) != 1 or batch[0]:
        return None
    (axis,) = contract[1]
    return transpose_to(y, (axis, *(other for other in range(y.ndim) if other != axis)))


def _identity_times(
    y: Symbol, d: Dtype, s: Shape, a: int, e: Dtype, t: Shape, b: int, contract: Axes, batch: Axes
) -> Symbol | None:
    found = _times_identity(d, s, a, e, t, b, y, (contract[1], contract[0]), batch)
    return found if found is None else transpose_to(found, (*range(1, y.ndim), 0))


def _is_identity(row: Counter, column: Counter) -> bool:
    """Whether the indices are equal on the diagonal of a square alone: a dtype may be too narrow to tell them apart."""
    is_square = row.shape == column.shape and len(row.shape) == 2 and row.shape[0] == row.shape[1]
    return is_square and row.axis != column.axis and np.can_cast(np.min_scalar_type(row.shape[0]), row.dtype)


CONTRACTION = (
    Rule(
        "dot_general(convert(eq(iota(dtype=d, shape=s, axis=a), iota(dtype=e, shape=t, axis=b))), y, "
        "contract=contract, batch=batch) = transpose(y)",
        _times_identity,
        up_to="rounding",
    ),
    Rule(
        "dot_general(y, convert(eq(iota(dtype=d, shape=s, axis=a), iota(dtype=e, shape=t, axis=b))), "
        "contract=contract, batch=batch) = transpose(y)",
        _identity_times,
        up_to="rounding",
    ),
    Rule(
        "dot_general(transpose(x, permutation=p), y, contract=contract, batch=batch) = dot_general(x, y)",
        _transposed_left,
    ),
    Rule(
        "dot_general(x, transpose(y, permutation=p), contract=contract, batch=batch) = dot_general(x, y)",
        _transposed_right,
    ),
    Rule(
        "transpose(product := dot_general(x, y, contract=contract, batch=batch), permutation=p) = dot_general(y, x)",
        _swap,
        up_to="rounding",
    ),
)
