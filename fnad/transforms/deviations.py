"""Deviations from a mean add up to 0, and so do their products with one number.

The gradient of a mean that is subtracted contains such a sum: that of a variance or a layer norm takes a pass less.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import prod

import numpy as np

from fnad.ir.primitive import Primitive
from fnad.ir.program import Params
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import add, div, mul, strong_mul, sub
from fnad.ops.shape import Ints, broadcast_in_dim, reduce_sum, reshape, zeros_like
from fnad.transforms.rewrite import application, constant_of


def without_deviations(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The rewrite of a sum to that of its terms that are not such products, up to rounding."""
    if primitive is not reduce_sum or operands[0].dtype.kind != "f":
        return None
    (x,), axes = operands, params["axes"]
    for one, other in permutations(_operands(x, add), 2):
        if (total := _sum_of_deviations(one, axes)) is not None:
            return reduce_sum(other, axes=axes) + total
    return _sum_of_deviations(x, axes)


def _sum_of_deviations(x: Symbol, axes: Ints) -> Symbol | None:
    """0, or nan if the mean is not finite; None for a sum of other numbers."""
    match _operands(x, sub):
        case [y, mean] if _is_repeated(mean, axes):
            total = _sum_in_mean(_in_row_order(mean), y, axes)
            return None if total is None else total - total
        case _:
            pass
    for number, deviations in permutations(_operands(x, mul), 2):
        if constant_of(number) is not None:
            return _sum_of_deviations(deviations, axes)
    match _operands(x, strong_mul):
        case [ct, deviations] if _is_repeated(ct, axes):
            total = _sum_of_deviations(deviations, axes)
            return None if total is None else zeros_like(total)  # the products themselves are nan
        case _:
            return None


def _is_repeated(x: Symbol, axes: Ints) -> bool:
    """True for a broadcast along all of these axes."""
    found = application(x, broadcast_in_dim)
    if found is None:
        return False
    (operand,), params = found
    return all(n == 1 or dim not in axes for n, dim in zip(operand.shape, params["dims"], strict=True))


def _sum_in_mean(mean: Symbol, y: Symbol, axes: Ints) -> Symbol | None:
    """The sum of y over these axes if the mean is that, divided by the number of its terms."""
    count = prod(y.shape[axis] for axis in axes)
    for total, number in permutations(_operands(mean, mul), 2):
        inverse = constant_of(number)
        if inverse is not None and abs(float(inverse) * count - 1) <= 4 * np.finfo(y.dtype).eps:
            return _sum(total, y, axes)
    match _operands(mean, div):
        case [total, number] if constant_of(number) == count:
            return _sum(total, y, axes)
        case _:
            return None


def _sum(total: Symbol, y: Symbol, axes: Ints) -> Symbol | None:
    total = _in_row_order(total)
    found = application(total, reduce_sum)
    return total if found is not None and found[0][0].atom is y.atom and found[1]["axes"] == axes else None


def _in_row_order(x: Symbol) -> Symbol:
    """The value of which this one has the elements in the same order, each of them perhaps repeated."""
    moved = _operands(x, broadcast_in_dim) or _operands(x, reshape)
    return _in_row_order(moved[0]) if moved else x


def _operands(x: Symbol, primitive: Primitive) -> list[Symbol]:
    """The operands of the equation that defines a value; none if it has another primitive."""
    found = application(x, primitive)
    return [] if found is None else found[0]
