"""Linear algebra on stacks of matrices: decompositions, eigenvalues, norms, ranks, equations, determinants.

Where NumPy's dtype depends on the values, as for the eigenvalues of a real matrix, the result is complex. At 0 norms
have derivative 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fnad.errors import MatrixError, ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F64, I64, Aval, is_complex, real_dtype
from fnad.numpy.indexing_routines import take_along_axis
from fnad.numpy.operands import as_symbol, axes_of, broadcast_all, common_shape, reduced_shape, static_number, to_dtype
from fnad.numpy.products import dot
from fnad.numpy.reductions import ANY, MAX, MIN, SUM
from fnad.numpy.registry import UNSET, implements
from fnad.numpy.sorting import argsort
from fnad.numpy.statistics import root
from fnad.numpy.ufuncs import absolute, power
from fnad.ops import determinant, eigenvalues, least_squares, linalg
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.comparison import bitwise_and, bitwise_not, eq, gt, isnan, ne, select
from fnad.ops.conversion import convert, imag, real
from fnad.ops.matrix import adjoint, along_columns, check_matrices, check_square, conjugate, real_part
from fnad.ops.piecewise import abs_, copysign
from fnad.ops.reduction import reduce_max
from fnad.ops.requirement import require
from fnad.ops.shape import (
    broadcast_to,
    full_like,
    ones_like,
    reduce_sum,
    reshape_to,
    reverse,
    slice_axis,
    transpose_to,
    zeros_like,
)


def floating(*operands: Any) -> list[Symbol]:
    """Operands in the dtype NumPy computes linear algebra for: the common one, where integers count as f64."""
    symbols = [as_symbol(operand) for operand in operands]
    dtypes = [F64 if symbol.dtype.kind in "biu" else symbol.dtype for symbol in symbols]
    return [to_dtype(symbol, np.result_type(*dtypes)) for symbol in symbols]


def square(name: str, a: Any) -> Symbol:
    """A stack of square matrices; raises `MatrixError` where it is none."""
    (x,) = floating(a)
    check_square(name, x.aval)
    return x


def check_two_dimensional(x: Symbol) -> None:
    """Raise where an operand is no matrix, with NumPy's message."""
    if x.ndim != 2:
        raise MatrixError(f"{x.ndim}-dimensional array given. Array must be two-dimensional")


def stacked(x: Symbol, y: Symbol) -> tuple[Symbol, Symbol]:
    """Broadcast all axes but the last two."""
    outer = common_shape([x.shape[:-2], y.shape[:-2]])
    return broadcast_to(x, (*outer, *x.shape[-2:])), broadcast_to(y, (*outer, *y.shape[-2:]))


def for_columns(solver: Callable[[Symbol, Symbol], Symbol], a: Symbol, b: Symbol) -> Symbol:
    """The result of a solver for stacks of matrices, where b may be one vector in the place of a matrix."""
    is_vector = b.ndim == 1
    x, y = stacked(a, reshape_to(b, (*b.shape, 1)) if is_vector else b)
    solution = solver(x, y)
    return reshape_to(solution, solution.shape[:-1]) if is_vector else solution


def named(function: Callable[..., Any], *results: Symbol) -> Any:
    """Results as the named tuple that a NumPy function returns."""
    return _result_type(function)(*results)


@cache
def _result_type(function: Callable[..., Any]) -> Any:
    return type(function(np.eye(1)))


# ---- decompositions --------------------------------------------------------------------------------------------------


@implements(np.linalg.cholesky)
def cholesky(a: Any, upper: Any) -> Symbol:
    return linalg.cholesky(square("cholesky", a), upper=bool(upper))


@implements(np.linalg.qr)
def qr(a: Any, mode: Any) -> Any:
    if mode not in ("reduced", "complete", "r", "raw", "economic", "e", "full", "f"):
        raise ShapeError(f"Unrecognized mode '{mode}'")
    if mode not in ("reduced", "complete", "r"):
        raise UnsupportedFunctionError(
            f"numpy.linalg.qr has no rule for mode={mode!r}", remedy="use reduced, complete or r"
        )
    (x,) = floating(a)
    check_matrices("qr", x.aval)
    q, r = least_squares.qr(x, complete=mode == "complete")
    return r if mode == "r" else named(np.linalg.qr, q, r)


# ---- singular values -------------------------------------------------------------------------------------------------


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: Any, compute_uv: Any, hermitian: Any) -> Any:
    (x,) = floating(a)
    check_matrices("svd", x.aval)
    if hermitian:
        return _hermitian_svd(x, bool(compute_uv))
    if not compute_uv:
        return eigenvalues.svdvals(x)
    return named(np.linalg.svd, *eigenvalues.svd(x, full=bool(full_matrices)))


def _hermitian_svd(x: Symbol, with_vectors: bool) -> Any:
    """Order the eigenvalues by their sizes; their signs go into V."""
    check_square("svd", x.aval)
    values, vectors = eigenvalues.eigh(x, uplo="L")
    sizes = abs_(values if with_vectors else eigenvalues.eigvalsh(x, uplo="L"))
    order = reverse(argsort(sizes), axes=(sizes.ndim - 1,))
    descending = take_along_axis(sizes, order)
    if not with_vectors:
        return descending
    signs = take_along_axis(copysign(ones_like(values), values), order)
    u = take_along_axis(vectors, reshape_to(order, (*order.shape[:-1], 1, order.shape[-1])))
    return named(np.linalg.svd, u, descending, adjoint(mul(u, along_columns(signs, u))))


# ---- eigenvalues -----------------------------------------------------------------------------------------------------


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: Any) -> Any:
    return named(np.linalg.eigh, *eigenvalues.eigh(square("eigh", a), uplo=triangle(UPLO)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: Any) -> Symbol:
    return eigenvalues.eigvalsh(square("eigvalsh", a), uplo=triangle(UPLO))


def triangle(uplo: str) -> str:
    """L or U; raise where it is neither."""
    if uplo.upper() not in ("L", "U"):
        raise ShapeError("UPLO argument must be 'L' or 'U'")
    return uplo.upper()


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    return named(np.linalg.eig, *eigenvalues.eig(square("eig", a)))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Symbol:
    return eigenvalues.eig(square("eigvals", a))[0]


# ---- norms -----------------------------------------------------------------------------------------------------------


@implements(np.linalg.norm)
def norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Symbol:
    symbol = as_symbol(x)
    symbol = to_dtype(symbol, F64) if symbol.dtype.kind in "biu" else symbol
    ord = static_number(ord, "the order of a norm")  # noqa: A001
    axes = axes_of(axis, symbol.ndim)
    if ord is None and (axis is None or len(axes) in (1, 2)):
        return root(sum_of_squares(symbol, axis, keepdims))
    if len(axes) == 1:
        return norm_of_vectors(symbol, ord, axes, keepdims)
    if len(axes) == 2:
        return norm_of_matrices(symbol, ord, axes, keepdims)
    raise ShapeError("Improper number of dimensions to norm.")


def sum_of_squares(x: Symbol, axis: Any, keepdims: Any) -> Symbol:
    """The sum of |x|²."""
    square = add(mul(real(x), real(x)), mul(imag(x), imag(x))) if is_complex(x.dtype) else mul(x, x)
    return SUM(square, axis, keepdims)


def norm_of_vectors(x: Symbol, order: Any, axis: Any, keepdims: Any) -> Symbol:
    """(Σ |x|^p)^(1/p), with its limits at p = ±inf, and the number of nonzero elements at p = 0."""
    size = absolute(x)
    if order in (np.inf, -np.inf):
        return extremum(size, order, axis, keepdims)
    if order == 0:
        return SUM(to_dtype(ne(x, zeros_like(x)), size.dtype), axis, keepdims)
    if order == 1:
        return SUM(size, axis, keepdims)
    if order == 2:
        return root(sum_of_squares(x, axis, keepdims))
    if isinstance(order, str):
        raise ShapeError(f"Invalid norm order '{order}' for vectors")
    total = SUM(power(size, order), axis, keepdims)
    is_zero = eq(total, zeros_like(total))
    at_zero = total if order > 0 else full_like(total, np.inf)
    return select(is_zero, at_zero, power(select(is_zero, ones_like(total), total), 1 / order))


def norm_of_matrices(x: Symbol, order: Any, axes: tuple[int, ...], keepdims: Any) -> Symbol:
    """A norm of matrices.

    The Frobenius norm, the largest or smallest sum of sizes of a column (±1) or a row (±inf), the largest or smallest
    singular value (±2), or their sum ("nuc").
    """
    if order in ("fro", "f"):
        return root(sum_of_squares(x, axes, keepdims))
    if order in (2, -2, "nuc"):
        others = tuple(i for i in range(x.ndim) if i not in axes)
        values = eigenvalues.svdvals(transpose_to(x, (*others, *axes)))
        found = SUM(values, -1) if order == "nuc" else extremum(values, order, -1, False)
        return reshape_to(found, reduced_shape(x.shape, axes, keepdims))
    if order not in (1, -1, np.inf, -np.inf):
        raise ShapeError("Invalid norm order for matrices.")
    inner, outer = axes if order in (1, -1) else axes[::-1]
    sums = SUM(absolute(x), inner, True)
    return reshape_to(extremum(sums, order, outer, True), reduced_shape(x.shape, axes, keepdims))


def extremum(x: Symbol, order: float, axis: Any, keepdims: Any) -> Symbol:
    """The largest element, of none 0, or for a negative order the smallest."""
    if order < 0:
        return MIN(x, axis, keepdims)
    return MAX(x, axis, keepdims, 0.0 if x.aval.size == 0 else UNSET)


# ---- ranks -----------------------------------------------------------------------------------------------------------


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any, hermitian: Any, rtol: Any) -> Symbol:
    if rtol is not None and tol is not None:
        raise ShapeError("`tol` and `rtol` can't be both set.")
    (x,) = floating(A)
    if x.ndim < 2:
        return convert(ANY(ne(x, zeros_like(x)), None), dtype=I64)
    values = abs_(eigenvalues.eigvalsh(x, uplo="L")) if hermitian else eigenvalues.svdvals(x)
    if tol is not None:
        return count_above(values, as_symbol(tol, values.dtype))
    return rank_of(values, max(x.shape[-2:]) * np.finfo(values.dtype).eps if rtol is None else rtol)


def rank_of(values: Symbol, rtol: Any) -> Symbol:
    """The number of singular values larger than `rtol` times the largest."""
    if values.shape[-1] == 0:
        return count_above(values, as_symbol(0.0, values.dtype))
    largest = reduce_max(values, axes=(values.ndim - 1,))
    return count_above(values, mul(*broadcast_all([largest, as_symbol(rtol, values.dtype)])))


def count_above(values: Symbol, limit: Symbol) -> Symbol:
    """The number of values along the last axis that are larger than a limit."""
    values, limit = broadcast_all([values, reshape_to(limit, (*limit.shape, 1))])
    return reduce_sum(convert(gt(values, limit), dtype=I64), axes=(values.ndim - 1,))


# ---- condition numbers -----------------------------------------------------------------------------------------------


@implements(np.linalg.cond)
def cond(x: Any, p: Any) -> Symbol:
    (matrix,) = floating(x)
    if matrix.ndim >= 2 and 0 in matrix.shape[-2:]:
        raise MatrixError("cond is not defined on empty arrays")
    ratio = _ratio(matrix, p)
    has_nan = ANY(isnan(matrix), (-2, -1))
    return select(bitwise_and(isnan(ratio), bitwise_not(has_nan)), full_like(ratio, np.inf), ratio)


def _ratio(x: Symbol, order: Any) -> Symbol:
    if order is None or order in (2, -2):
        values = eigenvalues.svdvals(x)
        n = values.shape[-1]
        first, last = (slice_axis(values, values.ndim - 1, i, i + 1) for i in (0, n - 1))
        ratio = div(last, first) if order == -2 else div(first, last)
        return reshape_to(ratio, values.shape[:-1])
    check_square("cond", x.aval)
    return mul(norm(x, order, (-2, -1)), norm(linalg.inv_or_nan(x), order, (-2, -1)))


# ---- equations -------------------------------------------------------------------------------------------------------


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Symbol:
    x, y = floating(a, b)
    check_square("solve", x.aval)
    return for_columns(linalg.solve, x, y)


@implements(np.linalg.inv)
def inv(a: Any) -> Symbol:
    return linalg.inv(square("inv", a))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any) -> tuple[Symbol, Symbol, Symbol, Symbol]:
    x, y = floating(a, b)
    cut = max(x.shape) * np.finfo(F64).eps if rcond is None else float(static_number(rcond, "rcond"))
    wide = [to_dtype(v, np.promote_types(v.dtype, F64)) for v in (x, y)]  # NumPy computes single precision in double
    solution, rest, rank, values = least_squares_solution(wide[0], wide[1], cut)
    rest, values = (to_dtype(v, real_dtype(x.dtype)) for v in (reshape_to(rest, (rest.aval.size,)), values))
    return to_dtype(solution, x.dtype), rest, to_dtype(rank, DTYPES["i32"]), values


def least_squares_solution(a: Symbol, b: Symbol, rcond: float) -> tuple[Symbol, Symbol, Symbol, Symbol]:
    """The solution, the sums of squared residuals, the rank and the singular values of a."""
    check_two_dimensional(a)
    if b.ndim not in (1, 2):
        raise MatrixError(f"{b.ndim}-dimensional array given. Array must be two-dimensional")
    if a.shape[0] != b.shape[0]:
        raise MatrixError("Incompatible dimensions")
    rcond = rcond if 0 < rcond < 1 else float(np.finfo(a.dtype).epsneg)  # as LAPACK does
    solution = for_columns(lambda a, b: least_squares.lstsq(a, b, rcond=rcond), a, b)
    values = eigenvalues.svdvals(a)
    rank = rank_of(values, rcond)
    return solution, _residuals(a, sub(b, dot(a, solution)), rank), rank, values


def _residuals(a: Symbol, rest: Symbol, rank: Symbol) -> Symbol:
    """The sum of squares of each column; there is none where the rank is not full, which has to be known."""
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


# ---- determinants ----------------------------------------------------------------------------------------------------


@implements(np.linalg.det)
def det(a: Any) -> Symbol:
    return determinant.det(square("det", a))


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    return named(np.linalg.slogdet, *determinant.slogdet(square("slogdet", a)))
