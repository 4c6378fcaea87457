"""Systems of linear equations, inverses, determinants and powers of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.errors import MatrixError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, Aval, real_dtype
from fnad.numpy.decompositions import check_two_dimensional, floating, for_columns, named, rank_of, square
from fnad.numpy.manipulation import fresh
from fnad.numpy.operands import axis_of, static_ints, static_number, to_dtype
from fnad.numpy.products import dot
from fnad.numpy.reductions import SUM
from fnad.numpy.registry import UNSET, implements
from fnad.numpy.views import ArrayView
from fnad.ops import determinant, eigenvalues, least_squares, linalg
from fnad.ops.arithmetic import mul, sub
from fnad.ops.comparison import eq
from fnad.ops.matrix import check_matrices, check_square, conjugate, real_part
from fnad.ops.requirement import require
from fnad.ops.shape import full_like, reshape_to, transpose_to, zeros_like

# ---- equations -------------------------------------------------------------------------------------------------------


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Symbol:
    x, y = floating(a, b)
    check_square("solve", x.aval)
    return for_columns(linalg.solve, x, y)


@implements(np.linalg.inv)
def inv(a: Any) -> Symbol:
    return linalg.inv(square("inv", a))


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any) -> ArrayView:
    x, y = floating(a, b)
    order = list(range(x.ndim))
    for axis in static_ints(axes, "an axis") if axes is not None else ():
        order.remove(axis_of(axis, x.ndim))
        order.append(axis_of(axis, x.ndim))
    x = transpose_to(x, tuple(order))
    shape = x.shape[y.ndim :]
    n = math.prod(shape)
    if x.aval.size != n**2:
        raise MatrixError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return fresh(reshape_to(solve(reshape_to(x, (n, n)), reshape_to(y, (y.aval.size,))), shape))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any) -> tuple[Symbol, Symbol, Symbol, Symbol]:
    x, y = floating(a, b)
    cut = max(x.shape) * np.finfo(x.dtype).eps if rcond is None else float(static_number(rcond, "rcond"))
    solution, rest, rank, values = least_squares_solution(x, y, cut)
    return solution, reshape_to(rest, (rest.aval.size,)), to_dtype(rank, DTYPES["i32"]), values


def least_squares_solution(a: Symbol, b: Symbol, rcond: float) -> tuple[Symbol, Symbol, Symbol, Symbol]:
    """Return the solution, the sums of squared residuals, the rank and the singular values of a."""
    check_two_dimensional(a)
    if b.ndim not in (1, 2):
        raise MatrixError(f"{b.ndim}-dimensional array given. Array must be two-dimensional")
    if a.shape[0] != b.shape[0]:
        raise MatrixError("Incompatible dimensions")
    solution = for_columns(lambda a, b: least_squares.lstsq(a, b, rcond=rcond), a, b)
    values = eigenvalues.svdvals(a)
    rank = rank_of(values, rcond)
    return solution, _residuals(a, sub(b, dot(a, solution)), rank), rank, values


def _residuals(a: Symbol, rest: Symbol, rank: Symbol) -> Symbol:
    """Return the sum of squares of each column; there is none where the rank is not full, which has to be known."""
    m, n = a.shape
    if m <= n:
        return zeros_like(Aval(real_dtype(a.dtype), (0,)))
    sums = SUM(real_part(mul(conjugate(rest), rest)), 0)
    message = "lstsq has no residuals of a matrix that is not of full rank"
    return require(sums, eq(rank, full_like(rank, n)), message=message, remedy="leave them unused")


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any, hermitian: Any, rtol: Any) -> Symbol:
    (x,) = floating(a)
    check_matrices("pinv", x.aval)
    if rcond is not None and rtol is not UNSET:
        raise ShapeError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is UNSET else rtol
    cut = max(x.shape[-2:]) * np.finfo(x.dtype).eps if rcond is None else rcond
    return least_squares.pinv(x, rcond=float(static_number(cut, "rcond")), is_hermitian=bool(hermitian))


# ---- determinants and powers -----------------------------------------------------------------------------------------


@implements(np.linalg.det)
def det(a: Any) -> Symbol:
    return determinant.det(square("det", a))


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    return named(np.linalg.slogdet, *determinant.slogdet(square("slogdet", a)))


# ---- products of several ---------------------------------------------------------------------------------------------
