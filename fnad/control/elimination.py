"""Gaussian elimination with partial pivoting, as loops of the program: native code need not call a library for it.

Step k brings the row with the largest element of column k, of those not used yet, to place k, and takes multiples of it
from the rows below (Golub & Van Loan, "Matrix Computations", 2013, algorithm 3.4.1); then rows are solved upwards.
"""

from __future__ import annotations

from fnad.control.closures import demand, over
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.ops.arithmetic import div, mul, sub
from fnad.ops.comparison import gt, lt, ne, select
from fnad.ops.contraction import dot_general
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice
from fnad.ops.piecewise import abs_
from fnad.ops.reduction import argmax, reduce_and
from fnad.ops.shape import (
    broadcast_to,
    concatenate,
    constant,
    full_like,
    iota,
    reduce_sum,
    reshape_to,
    slice_axis,
    zeros_like,
)

SINGULAR = (
    "FactorizationError",
    "Singular matrix",
    "the equations do not determine the unknowns, or their derivative there: start elsewhere, or add an equation",
)


def eliminate(matrix: Symbol, right: Symbol) -> Symbol:
    """Return the solution of a system with one right side; FactorizationError when it runs, if it is singular."""
    n = right.shape[0]
    places = iota(dtype=I64, shape=(n,), axis=0)
    rows = concatenate(matrix, reshape_to(right, (n, 1)), axis=1)

    def forward(rows: Symbol, k: Symbol) -> list[Symbol]:
        below = gt(places, broadcast_to(k, (n,)))
        column = abs_(_column(rows, k))
        best = argmax(select(lt(places, broadcast_to(k, (n,))), full_like(column, -1), column), axis=0)
        upper, pivot = _row(rows, k), _row(rows, best)
        rows = _with_row(_with_row(rows, upper, best), pivot, k)
        column = _column(rows, k)
        top = reshape_to(dynamic_slice(pivot, k, sizes=(1,)), ())
        factors = select(below, div(column, broadcast_to(top, (n,))), zeros_like(column))
        return [sub(rows, dot_general(factors, pivot, contract=((), ()), batch=((), ()))), top]

    rows, pivots = over(forward, [rows], [places])
    triangle, sides = slice_axis(rows, 1, 0, n), reshape_to(slice_axis(rows, 1, n, n + 1), (n,))

    def backward(found: Symbol, k: Symbol, row: Symbol, side: Symbol, pivot: Symbol) -> list[Symbol]:
        value = (side - reduce_sum(mul(row, found), axes=(0,))) / pivot
        return [dynamic_update_slice(found, reshape_to(value, (1,)), k)]

    (found,) = over(backward, [zeros_like(right)], [places, triangle, sides, pivots], reverse=True)
    return demand(found, reduce_and(ne(pivots, zeros_like(pivots)), axes=(0,)), SINGULAR)


def _row(rows: Symbol, k: Symbol) -> Symbol:
    width = rows.shape[1]
    return reshape_to(dynamic_slice(rows, k, constant(0, I64), sizes=(1, width)), (width,))


def _column(rows: Symbol, k: Symbol) -> Symbol:
    height = rows.shape[0]
    return reshape_to(dynamic_slice(rows, constant(0, I64), k, sizes=(height, 1)), (height,))


def _with_row(rows: Symbol, row: Symbol, k: Symbol) -> Symbol:
    return dynamic_update_slice(rows, reshape_to(row, (1, row.shape[0])), k, constant(0, I64))
