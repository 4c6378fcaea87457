"""Cotangents of the least or the largest element of each row: products with them need these elements alone.

    m = min(x, axis 1)
    d = select(x = m or isnan(x), w, 0)
    sum(d, axis 0)                            contract_spans(d, 1, first, last)
    dᵀ · y                                    contract_spans(d, y, first, last)

So are those with -d, c d and d / c for a known number c that leaves 0 as it is. Hardly ever are several elements of a
row its extremum, so the span is one element, and of a product of n · k · d multiplications n · d are left. Where there
are ties, or nans, the span is the whole row. This is done before a program is lowered, for a machine whose loops can
run over spans.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fnad.ir.primitive import Primitive
from fnad.ir.program import Params, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.ops.arithmetic import div, mul, neg, strong_mul
from fnad.ops.comparison import bitwise_or, eq, isnan, select
from fnad.ops.contraction import dot_general
from fnad.ops.conversion import convert
from fnad.ops.reduction import reduce_max, reduce_min
from fnad.ops.shape import (
    broadcast_in_dim,
    constant,
    iota,
    ones_like,
    reduce_sum,
    reshape_to,
    transpose_to,
    zeros_like,
)
from fnad.ops.spans import contract_spans
from fnad.transforms.dce import dce
from fnad.transforms.rewrite import application, constant_of, rewrite

FEWEST = 8
"""The fewest columns for which it takes less time."""


def by_spans(program: Program) -> Program:
    """The program with such products and sums over spans."""
    if not {isnan, eq, select}.issubset(equation.primitive for equation in program.equations):
        return program
    return dce(rewrite(program, _spanned))


def _spanned(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    if primitive is reduce_sum and params["axes"] == (0,):
        x = operands[0]
        chosen = _chosen(x)
        return None if chosen is None else reshape_to(_contracted(x, ones_like(_column(x)), chosen), x.shape[1:])
    if primitive is dot_general and params == {"contract": ((0,), (0,)), "batch": ((), ())}:
        return _product(*operands)
    return None


def _product(x: Symbol, y: Symbol) -> Symbol | None:
    if x.ndim != 2 or y.ndim != 2:
        return None
    if (chosen := _chosen(x)) is not None:
        return _contracted(x, y, chosen)
    if (chosen := _chosen(y)) is not None:
        return transpose_to(_contracted(y, x, chosen), (1, 0))
    return None


def _contracted(x: Symbol, y: Symbol, chosen: Symbol) -> Symbol:
    """The product with the rows' spans: one element, or all of them.

    The place of one element is the sum of all chosen places: an addition, where their least needs a comparison too.
    """
    column = iota(dtype=I64, shape=x.shape, axis=1)
    place = reduce_sum(select(chosen, column, zeros_like(column)), axes=(1,))
    is_one = eq(total := reduce_sum(convert(chosen, dtype=x.dtype), axes=(1,)), ones_like(total))
    first, last = zeros_like(place), constant(x.shape[1] - 1, I64, place.shape)
    return contract_spans(x, y, select(is_one, place, first), select(is_one, place, last))


def _chosen(x: Symbol) -> Symbol | None:
    """Where the elements of a matrix can differ from 0, if it is at the extrema of the rows of another one."""
    if x.ndim != 2 or x.shape[1] < FEWEST:
        return None
    for primitive in (neg, convert, strong_mul):
        if found := application(x, primitive):
            return _chosen(found[0][0])
    if (scaled := _scaled(x)) is not None:
        return _chosen(scaled)
    found = application(x, select)
    if found is None or (zero := constant_of(found[0][2])) is None or zero != 0:
        return None
    return found[0][0] if _are_extrema(found[0][0]) else None


def _scaled(x: Symbol) -> Symbol | None:
    """What a known number is multiplied with, or divided by one, that leaves 0 as it is."""
    if product := application(x, mul):
        for one, other in (product[0], product[0][::-1]):
            if (factor := constant_of(other)) is not None and np.isfinite(factor):
                return one
    if quotient := application(x, div):
        divisor = constant_of(quotient[0][1])
        return None if divisor is None or not divisor or np.isnan(divisor) else quotient[0][0]
    return None


def _are_extrema(chosen: Symbol) -> bool:
    """Whether a mask is that of the elements that are the extremum of their row, or nan."""
    either = application(chosen, bitwise_or)
    is_it, is_nan = (application(x, p) for x, p in zip(either[0], (eq, isnan), strict=True)) if either else (None, None)
    if is_it is None or is_nan is None or is_it[0][0].atom is not is_nan[0][0].atom:
        return False
    spread = application(is_it[0][1], broadcast_in_dim)
    extremum = spread and (application(spread[0][0], reduce_min) or application(spread[0][0], reduce_max))
    return (
        spread is not None
        and extremum is not None
        and spread[1]["dims"] == (0,)
        and extremum[1]["axes"] == (1,)
        and extremum[0][0].atom is is_it[0][0].atom
    )


def _column(x: Symbol) -> Symbol:
    return constant(np.float64(0), x.dtype, (x.shape[0], 1))
