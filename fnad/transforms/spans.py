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
from fnad.ops.arithmetic import add, div, mul, neg, strong_mul, sub
from fnad.ops.comparison import bitwise_or, eq, isnan, right_shift, select
from fnad.ops.contraction import dot_general
from fnad.ops.conversion import convert
from fnad.ops.reduction import reduce_max, reduce_min
from fnad.ops.shape import broadcast_in_dim, constant, iota, ones_like, reduce_sum, reshape_to, transpose_to, zeros_like
from fnad.ops.spans import contract_spans
from fnad.transforms.dce import dce
from fnad.transforms.rewrite import application, constant_of, rewrite

FEWEST = 8
"""The fewest columns for which it takes less time."""

MOST = 2**16
"""The most columns whose places have a sum below 2^32."""


def by_spans(program: Program) -> Program:
    """The program with such products and sums over spans."""
    if not {isnan, eq, select}.issubset(equation.primitive for equation in program.equations):
        return program
    spanned = rewrite(program, _spanned)
    if not any(equation.primitive is contract_spans for equation in spanned.equations):
        return spanned
    return dce(rewrite(spanned, _counted))


def _spanned(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    if primitive is reduce_sum and params["axes"] == (0,):
        x = operands[0]
        chosen = _chosen(x)
        return None if chosen is None else reshape_to(_contracted(x, ones_like(_column(x)), chosen), x.shape[1:])
    if primitive is dot_general and params == {"contract": ((0,), (0,)), "batch": ((), ())}:
        return _product(*operands)
    return None


def _counted(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The number of extrema of each row, by which cotangents are divided, from the sum that has their places."""
    if primitive is not reduce_sum or params["axes"] != (1,):
        return None
    counted = application(operands[0], convert)
    if counted is None or not _has_spans(chosen := counted[0][0]) or not _are_extrema(chosen):
        return None
    return convert(right_shift(_places(chosen), _number(32, chosen)), dtype=operands[0].dtype)


def _product(x: Symbol, y: Symbol) -> Symbol | None:
    if x.ndim != 2 or y.ndim != 2:
        return None
    if (chosen := _chosen(x)) is not None:
        return _contracted(x, y, chosen)
    if (chosen := _chosen(y)) is not None:
        return transpose_to(_contracted(y, x, chosen), (1, 0))
    return None


def _contracted(x: Symbol, y: Symbol, chosen: Symbol) -> Symbol:
    """The product with the rows' spans: one element, or all of them."""
    places = _places(chosen)
    is_one = eq(right_shift(places, _number(32, chosen)), _number(1, chosen))
    place = sub(places, _number(2**32, chosen))
    first, last = (_number(column, chosen) for column in (0, x.shape[1] - 1))
    return contract_spans(x, y, select(is_one, place, first), select(is_one, place, last))


def _places(chosen: Symbol) -> Symbol:
    """For each row 2^32 times the number of chosen elements, plus the sum of their places: one sum for both.

    The place of a single element is the sum of the places: an addition, where their least needs a comparison too.
    """
    column = iota(dtype=I64, shape=chosen.shape, axis=1)
    counted = add(column, constant(2**32, I64, chosen.shape))
    return reduce_sum(select(chosen, counted, zeros_like(counted)), axes=(1,))


def _number(number: int, chosen: Symbol) -> Symbol:
    """A number for each row."""
    return constant(number, I64, chosen.shape[:1])


def _chosen(x: Symbol) -> Symbol | None:
    """The places where a matrix can differ from 0, if it is at the extrema of the rows of another one."""
    if not _has_spans(x):
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


def _has_spans(x: Symbol) -> bool:
    return x.ndim == 2 and FEWEST <= x.shape[1] <= MOST


def _scaled(x: Symbol) -> Symbol | None:
    """The value that a known number multiplies, or that one divides, which leaves 0 as it is."""
    if product := application(x, mul):
        for one, other in (product[0], product[0][::-1]):
            if (factor := constant_of(other)) is not None and np.isfinite(factor):
                return one
    if quotient := application(x, div):
        divisor = constant_of(quotient[0][1])
        return None if divisor is None or not divisor or np.isnan(divisor) else quotient[0][0]
    return None


def _are_extrema(chosen: Symbol) -> bool:
    """True if a mask is that of the elements that are the extremum of their row, or nan."""
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
