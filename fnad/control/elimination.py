"""Gaussian elimination with partial pivoting, as loops of the program: native code need not call a library for it.

Step k brings the row with the largest element of column k, of those not used yet, to place k. It subtracts multiples of
this row from the rows below (Golub & Van Loan, "Matrix Computations", 2013, algorithm 3.4.1). Then rows are solved
upwards.
"""

from __future__ import annotations

from fnad.control.closures import demand, over
from fnad.control.rows import put_row, row
from fnad.control.vector import dot
from fnad.errors import FailureKind
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.ops.arithmetic import div, sub
from fnad.ops.comparison import gt, lt, ne, select
from fnad.ops.contraction import dot_general
from fnad.ops.indexing import dynamic_slice
from fnad.ops.piecewise import abs_
from fnad.ops.reduction import argmax, reduce_and
from fnad.ops.shape import broadcast_to, concatenate, constant, full_like, iota, reshape_to, slice_axis, zeros_like

SINGULAR = FailureKind.FACTORIZATION.of(
    "Singular matrix",
    "the equations do not determine the unknowns, or their derivative there: start elsewhere, or add an equation",
)


def eliminate(matrix: Symbol, right: Symbol) -> Symbol:
    """The solution of a system with one right side; FactorizationError when it runs, if it is singular."""
    n = right.shape[0]
    places = iota(dtype=I64, shape=(n,), axis=0)
    rows = concatenate(matrix, reshape_to(right, (n, 1)), axis=1)

    def forward(rows: Symbol, k: Symbol) -> list[Symbol]:
        below = gt(places, broadcast_to(k, (n,)))
        column = abs_(_column(rows, k))
        best = argmax(select(lt(places, broadcast_to(k, (n,))), full_like(column, -1), column), axis=0)
        upper, pivot = row(rows, k), row(rows, best)
        rows = put_row(put_row(rows, upper, best), pivot, k)
        column = _column(rows, k)
        top = row(pivot, k)
        factors = select(below, div(column, broadcast_to(top, (n,))), zeros_like(column))
        return [sub(rows, dot_general(factors, pivot, contract=((), ()), batch=((), ()))), top]

    rows, pivots = over(forward, [rows], [places])
    triangle, sides = slice_axis(rows, 1, 0, n), reshape_to(slice_axis(rows, 1, n, n + 1), (n,))

    def backward(found: Symbol, k: Symbol, above: Symbol, side: Symbol, pivot: Symbol) -> list[Symbol]:
        value = (side - dot(above, found)) / pivot
        return [put_row(found, value, k)]

    (found,) = over(backward, [zeros_like(right)], [places, triangle, sides, pivots], reverse=True)
    return demand(found, reduce_and(ne(pivots, zeros_like(pivots)), axes=(0,)), SINGULAR)


def _column(rows: Symbol, k: Symbol) -> Symbol:
    height = rows.shape[0]
    return reshape_to(dynamic_slice(rows, constant(0, I64), k, sizes=(height, 1)), (height,))
