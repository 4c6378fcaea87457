"""Systems of linear equations and triangular factorizations, on stacks of matrices.

A gradient is that of a function of all elements. `cholesky` reads one triangle of a matrix, as NumPy does, so its
gradients are 0 in the other one.

Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008) derives the rules of solutions and inverses; Murray, "Differentiation of the Cholesky decomposition" (2016), eqs.
8 to 10, that of `cholesky`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any
from warnings import catch_warnings

import numpy as np
from numpy.linalg import LinAlgError

from fnad.errors import FactorizationError, MatrixError, OutOfRangeError
from fnad.ir.axes import Stacked
from fnad.ir.primitive import HOST, Library, NonDifferentiable, Pull, Push, Routine, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F64, Aval, Dtype, Shape
from fnad.lapack_threads import MIDDLE, UP_TO_MIDDLE, threads_for
from fnad.ops.arithmetic import add, mul, neg
from fnad.ops.comparison import ge, gt
from fnad.ops.constructors import (
    INEXACT,
    INTEGERS,
    by_name,
    check_dtype,
    check_one_dtype,
    matrix_primitive,
    primitive,
    stacked,
)
from fnad.ops.conversion import convert
from fnad.ops.indexing import gather
from fnad.ops.matrix import (
    adjoint,
    check_matrices,
    check_square,
    columns,
    hermitian_of,
    identity_like,
    lower,
    matmul,
    row_and_column,
    rows,
    strictly_lower,
    strictly_upper,
    transposed,
    upper,
)
from fnad.ops.shape import constant, iota, pad, sample
from fnad.placement import is_cupys, scipy_module

I32, I64 = DTYPES["i32"], DTYPES["i64"]

# ---- operands ----------------------------------------------------------------------------------------------------


def check_system(name: str, a: Aval, b: Aval) -> None:
    """Raise where `a x = b` is no stack of systems of linear equations."""
    check_square(name, a)
    check_matrices(name, b)
    check_one_dtype(name, a, b)
    if a.shape[:-1] != b.shape[:-1]:
        raise MatrixError(f"{name} takes as many equations as unknowns, got {a} and {b}")


def regular(shape: Shape, dtype: Dtype, seed: int = 0) -> Any:
    """Sample matrices far from singular ones."""
    return (sample(shape, dtype, seed) + 2 * np.eye(shape[-2], shape[-1])).astype(dtype)


def matrix_samples(
    make: Callable[[Shape, Dtype], Any], first: Shape, *others: Shape, **params: Any
) -> Iterable[Sample]:
    """Matrices of the first shape in each inexact dtype, then of the other shapes in f64."""
    for dtype in by_name(INEXACT):
        yield Sample((make(first, dtype),), params)
    for shape in others:
        yield Sample((make(shape, F64),), params)


IF_SINGULAR = "take np.linalg.lstsq or pinv, which a singular matrix has, or add a multiple of the identity"
IF_NOT_POSITIVE = "see that the matrix is symmetric; add a small multiple of the identity for its rounding"
IF_NOT_CONVERGED = "look for nan and inf in the matrix"

SINGULAR = FactorizationError("Singular matrix", remedy=IF_SINGULAR)
NOT_POSITIVE = FactorizationError("Matrix is not positive definite", remedy=IF_NOT_POSITIVE)
ZERO_PIVOT = FactorizationError("singular matrix: a diagonal element of a triangular matrix is 0", remedy=IF_SINGULAR)
NO_EIGENVALUES = FactorizationError("Eigenvalues did not converge", remedy=IF_NOT_CONVERGED)
NOT_FINITE = FactorizationError("Array must not contain infs or NaNs", remedy=IF_NOT_CONVERGED)
NO_SINGULAR_VALUES = FactorizationError("SVD did not converge", remedy=IF_NOT_CONVERGED)
NO_LEAST_SQUARES = FactorizationError("SVD did not converge in Linear Least Squares", remedy=IF_NOT_CONVERGED)
"""The errors of NumPy's ufuncs for matrices, in the words of the functions that call them."""


def by_lapack(remedy: str, one_thread: range = MIDDLE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: a LinAlgError of the running program becomes one that is told its place and the remedy.

    Matrices of the sizes `one_thread` are on one thread.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def evaluate(*operands: Any, **params: Any) -> Any:
            try:
                with threads_for(operands, one_thread):
                    return function(*operands, **params)
            except LinAlgError as error:
                raise FactorizationError(str(error), remedy=remedy) from None

        return evaluate

    return declare


def each_matrix(function: Callable[..., Any], like: Any, *operands: Any) -> Any:
    """The results of a function of matrices for each of a stack; they have the shape and dtype of `like`'s."""
    out = np.empty_like(like)
    for i in np.ndindex(like.shape[:-2]) if like.size else ():
        out[i] = function(*[operand[i] for operand in operands])
    return out


def _system_samples(matrices: Callable[..., Any], **params: Any) -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((matrices((3, 3), dtype), sample((3, 2), dtype, 1)), params)
    for a, b in (((2, 2, 2), (2, 2, 1)), ((1, 1), (1, 3)), ((0, 0), (0, 2)), ((3, 3), (3, 0))):
        yield Sample((matrices(a, F64), sample(b, seed=1)), params)


# ---- solve -------------------------------------------------------------------------------------------------------


def _infer_solve(a: Aval, b: Aval) -> Aval:
    check_system("solve", a, b)
    return b


def _pull_solve(results: Any, primals: Any, cts: Any) -> list[Symbol]:
    """b̄ = A⁻ᵀ x̄ and Ā = -b̄ xᵀ."""
    b_ct = solve(transposed(primals[0]), cts[0])
    return [neg(matmul(b_ct, transposed(results[0]))), b_ct]


solve = stacked(
    "solve",
    _infer_solve,
    by_lapack(IF_SINGULAR)(np.linalg.solve),
    Pull(_pull_solve),
    Library("gesv", native=lambda *_: Routine("linalg_solve", (SINGULAR,)), dispatched=True),
    lambda: _system_samples(regular),
    "The solution x of the linear equations a x = b, for each column of b.",
)

# ---- inv ---------------------------------------------------------------------------------------------------------


def _infer_inv(a: Aval) -> Aval:
    check_square("inv", a)
    return a


def _pull_inv(results: Any, primals: Any, cts: Any) -> list[Symbol]:
    """Ā = -A⁻ᵀ x̄ A⁻ᵀ."""
    inverse = transposed(results[0])
    return [neg(matmul(matmul(inverse, cts[0]), inverse))]


_square_samples = partial(matrix_samples, regular, (3, 3), (2, 2, 2), (1, 1), (0, 0))


inv = stacked(
    "inv",
    _infer_inv,
    by_lapack(IF_SINGULAR)(np.linalg.inv),
    Pull(_pull_inv),
    Library("getri", native=lambda *_: Routine("linalg_inv", (SINGULAR,)), dispatched=True),
    _square_samples,
    "Inverse matrix.",
)


def _inv_or_nan_samples() -> Iterable[Sample]:
    yield from _square_samples()
    yield Sample((np.stack([np.ones((2, 2)), np.eye(2)]),), smooth=False)


@matrix_primitive(
    _infer_inv,
    Pull(_pull_inv),
    Library("getri", raises=False, native=lambda *_: Routine("linalg_inv")),
    _inv_or_nan_samples,
)
def inv_or_nan(a: Any) -> Any:
    """Inverse matrix; of a singular one, nan."""

    def one(a: Any) -> Any:
        try:
            return np.linalg.inv(a)
        except LinAlgError:
            return np.full_like(a, np.nan)

    return each_matrix(one, a, a)


# ---- solve_triangular --------------------------------------------------------------------------------------------


def _infer_solve_triangular(a: Aval, b: Aval, *, lower: bool, unit: bool) -> Aval:
    check_system("solve_triangular", a, b)
    return b


@by_lapack(IF_SINGULAR, UP_TO_MIDDLE)
def _solve_triangular(a: Any, b: Any, *, lower: bool, unit: bool) -> Any:
    if not unit and not np.diagonal(a, axis1=-2, axis2=-1).all():
        raise LinAlgError(ZERO_PIVOT.what)
    if math.prod(a.shape[:-2]) > a.shape[-1]:
        return _substitute(a, b, lower=lower, unit=unit)

    solve = scipy_module(a, "linalg").solve_triangular

    def one(a: Any, b: Any) -> Any:
        return solve(a, b, lower=lower, unit_diagonal=unit, check_finite=False)

    return each_matrix(one, b, a, b)


def _substitute(a: Any, b: Any, *, lower: bool, unit: bool) -> Any:
    """Solve all systems of a stack at once, row by row: for many small ones."""
    n = a.shape[-1]
    pivots = np.diagonal(a, axis1=-2, axis2=-1)
    x = np.empty_like(b)
    for i in range(n) if lower else reversed(range(n)):
        known = slice(i) if lower else slice(i + 1, n)
        rest = b[..., i, :] - (a[..., i : i + 1, known] @ x[..., known, :])[..., 0, :]
        x[..., i, :] = rest if unit else rest / pivots[..., i, None]
    return x


def _triangular_routine(*_: Aval, lower: bool, unit: bool) -> Routine:
    name = f"linalg_solve_{'unit_' if unit else ''}{'lower' if lower else 'upper'}"
    return Routine(name, () if unit else (ZERO_PIVOT,))


def _pull_solve_triangular(results: Any, primals: Any, cts: Any, *, lower: bool, unit: bool) -> list[Symbol]:
    """As of `solve`, within the triangle that is read."""
    b_ct = solve_triangular(transposed(primals[0]), cts[0], lower=not lower, unit=unit)
    a_ct = neg(matmul(b_ct, transposed(results[0])))
    return [_read_triangle(a_ct, lower, unit), b_ct]


def _read_triangle(x: Symbol, is_lower: bool, unit: bool) -> Symbol:
    if unit:
        return strictly_lower(x) if is_lower else strictly_upper(x)
    return lower(x) if is_lower else upper(x)


def _triangular_samples() -> Iterable[Sample]:
    for is_lower in (True, False):
        yield from _system_samples(regular, lower=is_lower, unit=False)
    for is_lower in (True, False):
        for count in (2, 5):
            operands = regular((count, 3, 3), F64), sample((count, 3, 2), seed=1)
            yield Sample(operands, {"lower": is_lower, "unit": True})
    yield Sample(
        (regular((2, 2, 3, 3), DTYPES["c64"]), sample((2, 2, 3, 1), DTYPES["c64"], 1)), {"lower": True, "unit": False}
    )


solve_triangular = stacked(
    "solve_triangular",
    _infer_solve_triangular,
    _solve_triangular,
    Pull(_pull_solve_triangular),
    Library("trtrs", native=_triangular_routine, dispatched=True),
    _triangular_samples,
    "The solution of linear equations whose matrix is the lower or upper triangle of a, with ones as diagonal if "
    "`unit`.",
)

# ---- cholesky ----------------------------------------------------------------------------------------------------


def _infer_cholesky(a: Aval, *, upper: bool) -> Aval:
    check_square("cholesky", a)
    return a


def _push_cholesky(results: Any, primals: Any, tangents: Any, *, upper: bool) -> list[Symbol]:
    """The tangent dL = L Φ(L⁻¹ dA L⁻ᴴ), where Φ takes the lower triangle and half the diagonal."""
    factor = adjoint(results[0]) if upper else results[0]
    moved = hermitian_of(tangents[0], is_lower=not upper)
    half = solve_triangular(factor, moved, lower=True, unit=False)
    both = solve_triangular(factor, adjoint(half), lower=True, unit=False)
    tangent = matmul(factor, mul(both, half_diagonal(both)))
    return [adjoint(tangent) if upper else tangent]


def half_diagonal(x: Symbol) -> Symbol:
    """1 below the diagonal, ½ on it and 0 above."""
    row, column = row_and_column(x)
    twice = add(convert(ge(row, column), dtype=x.dtype), convert(gt(row, column), dtype=x.dtype))
    return mul(twice, constant(0.5, x.dtype, x.shape))


def positive(shape: Shape, dtype: Dtype) -> Any:
    """Sample matrices that are Hermitian and positive definite."""
    x = sample(shape, dtype)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])).astype(dtype)


hermitian_samples = partial(matrix_samples, positive, (3, 3), (2, 2, 2), (1, 1), (0, 0))
"""Positive definite matrices."""


def _cholesky_samples() -> Iterable[Sample]:
    for is_upper in (False, True):
        yield from hermitian_samples(upper=is_upper)


@matrix_primitive(
    _infer_cholesky,
    Push(_push_cholesky),
    Library(
        "potrf",
        native=lambda *_, upper: Routine("linalg_cholesky_up" if upper else "linalg_cholesky_lo", (NOT_POSITIVE,)),
        dispatched=True,
    ),
    _cholesky_samples,
)
@by_lapack(IF_NOT_POSITIVE)
def cholesky(a: Any, *, upper: bool) -> Any:
    """The triangular factor of a Hermitian, positive definite matrix, L Lᴴ or Uᴴ U; one triangle of a is read."""
    if upper and is_cupys(a):
        return np.conj(np.swapaxes(np.linalg.cholesky(np.conj(np.swapaxes(a, -1, -2))), -1, -2))
    return np.linalg.cholesky(a, upper=True) if upper else np.linalg.cholesky(a)


# ---- lu ----------------------------------------------------------------------------------------------------------


NO_ROW = OutOfRangeError("a pivot is the number of no row", remedy="check the index against the axis")


def _infer_row_order(pivots: Aval, *, size: int) -> Aval:
    check_dtype("row_order", pivots.dtype, INTEGERS)
    if pivots.ndim == 0 or pivots.shape[-1] > size:
        raise MatrixError(f"row_order of {size} rows takes at most as many exchanges, got {pivots}")
    return Aval(I64, (*pivots.shape[:-1], size))


def _row_order_samples() -> Iterable[Sample]:
    for dtype in by_name(INTEGERS):
        yield Sample((np.array([2, 2], dtype),), {"size": 3})
    yield Sample((np.array([[1, 1], [0, 1]]),), {"size": 2})
    yield Sample((np.zeros((2, 0), I32),), {"size": 0})


@primitive(
    _infer_row_order,
    NonDifferentiable(),
    Library(HOST, native=lambda *_, size: Routine("linalg_row_order", (NO_ROW,))),
    _row_order_samples,
    axes=Stacked(1),
)
def row_order(pivots: Any, *, size: int) -> Any:
    """Which of `size` rows comes where when row i is exchanged with row pivots[i], one after the other."""
    if not ((pivots >= 0) & (pivots < size)).all():
        raise NO_ROW.at(None)
    order = np.broadcast_to(np.arange(size), (*pivots.shape[:-1], size)).copy()
    for i in np.ndindex(pivots.shape[:-1]):
        for row, other in enumerate(pivots[i].tolist()):
            order[i][[row, other]] = order[i][[other, row]]
    return order


def _infer_lu(a: Aval) -> tuple[Aval, Aval]:
    check_matrices("lu", a)
    return a, Aval(I32, (*a.shape[:-2], min(a.shape[-2:])))


def _getrf(a: Any) -> tuple[Any, Any]:
    """The factors and the exchanges of a matrix, which may be singular."""
    linalg = scipy_module(a, "linalg")
    if isinstance(a, np.ndarray):
        (getrf,) = linalg.get_lapack_funcs(("getrf",), (a,))
        return getrf(a)[:2]
    with catch_warnings(action="ignore"):
        return linalg.lu_factor(a, check_finite=False)


def _push_lu(results: Any, primals: Any, tangents: Any) -> list[Symbol | None]:
    """d(LU) = L tril(F, -1) + triu(F) U, F = L⁻¹ P dA U⁻¹; L and U are completed to squares by identities."""
    packed, pivots = results
    left, right = _square_factors(packed)
    permuted = permute_rows(tangents[0], row_order(pivots, size=packed.shape[-2]))
    half = solve_triangular(left, permuted, lower=True, unit=True)
    both = transposed(solve_triangular(transposed(right), transposed(half), lower=True, unit=False))
    below = strictly_lower(both)
    return [add(matmul(left, below), matmul(upper(both), right)), None]


def _square_factors(packed: Symbol) -> tuple[Symbol, Symbol]:
    m, n = packed.shape[-2:]
    count = min(m, n)
    left = _grown(strictly_lower(columns(packed, 0, count)), (0, 0), (0, m - count))
    right = _grown(upper(rows(packed, 0, count)), (0, 0), (n - count, 0))
    rest = identity_like(packed.aval.with_shape((*packed.shape[:-2], n - count, n - count)))
    return add(left, identity_like(left)), add(right, _grown(rest, (count, count), (0, 0)))


def _grown(x: Symbol, low: tuple[int, int], high: tuple[int, int]) -> Symbol:
    """Matrices with zero rows and columns before and after."""
    outer = (0,) * (x.ndim - 2)
    return pad(x, low=(*outer, *low), high=(*outer, *high), interior=(0,) * x.ndim)


def permute_rows(x: Symbol, permutation: Symbol) -> Symbol:
    """The rows of matrices in another order: row i is row permutation[i]."""
    outer = [iota(dtype=I64, shape=permutation.shape, axis=axis) for axis in range(x.ndim - 2)]
    return gather(x, *outer, permutation)


_lu_samples = partial(matrix_samples, sample, (3, 3), (2, 2, 2), (4, 2), (2, 4), (1, 1), (0, 0), (0, 2))


@matrix_primitive(
    _infer_lu,
    Push(_push_lu),
    Library("getrf", raises=False, native=lambda *_: Routine("linalg_lu"), dispatched=True),
    _lu_samples,
)
def lu(a: Any) -> Any:
    """LU factorization with row exchanges: L, without its diagonal of ones, and U in one matrix, and the exchanges."""
    packed = a.astype(np.result_type(a.dtype, np.float64))
    pivots = np.empty_like(a, I32, shape=(*a.shape[:-2], min(a.shape[-2:])))
    for i in np.ndindex(a.shape[:-2]) if a.size else ():
        packed[i], pivots[i] = _getrf(packed[i])
    return packed.astype(a.dtype), pivots


# ---- systems that share a matrix ---------------------------------------------------------------------------------


def _infer_lu_by_columns(a: Aval) -> tuple[Aval, Aval]:
    check_square("lu_by_columns", a)
    return a, _exchanges(a)


def _exchanges(a: Aval) -> Aval:
    """The type of the rows that are exchanged with the rows of a, as columns."""
    return Aval(I64, (*a.shape[:-1], 1))


def _lu_by_columns_samples() -> Iterable[Sample]:
    for given in _square_samples():
        yield Sample(given.operands, smooth=False)


@matrix_primitive(
    _infer_lu_by_columns,
    NonDifferentiable(),
    Library("getrf", raises=False, native=lambda *_: Routine("linalg_lu_by_columns")),
    _lu_by_columns_samples,
)
def lu_by_columns(a: Any) -> Any:
    """LU factorization with row exchanges, as `lu`, stored by columns, as LAPACK has it; and the exchanges."""
    packed, pivots = np.empty_like(a), np.empty((*a.shape[:-1], 1), I64)
    for i in np.ndindex(a.shape[:-2]) if a.size else ():
        found, pivots[i][:, 0] = _getrf(a[i])
        packed[i] = found.T
    return packed, pivots


def _infer_solve_by_lu(packed: Aval, pivots: Aval, b: Aval, *, transposed: bool) -> Aval:
    check_system("solve_by_lu", packed, b)
    if pivots != _exchanges(packed):
        raise MatrixError(f"solve_by_lu takes the exchanges of {packed}, i64, got {pivots}")
    return b


def _solve_by_lu_samples() -> Iterable[Sample]:
    for is_transposed in (False, True):
        for a, b in (given.operands for given in _system_samples(regular)):
            yield Sample((*lu_by_columns.evaluate(a), b), {"transposed": is_transposed}, smooth=False)


@matrix_primitive(
    _infer_solve_by_lu,
    NonDifferentiable(),
    Library(
        "getrs",
        native=lambda *_, transposed: Routine(f"linalg_solve_by_lu{'_transposed' if transposed else ''}", (SINGULAR,)),
    ),
    _solve_by_lu_samples,
)
@by_lapack(IF_SINGULAR)
def solve_by_lu(packed: Any, pivots: Any, b: Any, *, transposed: bool) -> Any:
    """The solution x of a x = b, or of aᵀ x = b if `transposed`, from the result of `lu_by_columns` for a."""
    if not np.diagonal(packed, axis1=-2, axis2=-1).all():
        raise LinAlgError(SINGULAR.what)
    (getrs,) = scipy_module(b, "linalg").get_lapack_funcs(("getrs",), (packed, b))
    return each_matrix(lambda lu, p, b: getrs(lu.T, p[:, 0], b, trans=transposed)[0], b, packed, pivots, b)


SMALLEST_PIVOT = 2.0**-10
"""The size of a pivot, relative to the elements right of it, below which columns are exchanged, too."""


def _infer_revealing_lu(a: Aval) -> tuple[Aval, Aval, Aval]:
    check_square("revealing_lu", a)
    exchanges = Aval(I32, a.shape[:-1])
    return a, exchanges, exchanges


def _revealing_lu(a: Any) -> tuple[Any, Any, Any]:
    packed, exchanges = a.copy(), np.empty((2, *a.shape[:-1]), I32)
    getrf, getc2 = scipy_module(a, "linalg").get_lapack_funcs(("getrf", "getc2"), (a,))
    for i in np.ndindex(a.shape[:-2]) if a.size else ():
        packed[i], exchanges[0][i], _ = getrf(a[i])
        exchanges[1][i] = np.arange(a.shape[-1])
        if not has_large_pivots(packed[i]):
            packed[i], exchanges[0][i], exchanges[1][i], _ = getc2(a[i])
    return packed, *exchanges


def has_large_pivots(packed: Any) -> Any:
    """True if no element right of a pivot is much larger, and no pivot is 0."""
    sizes = abs(packed.real) + abs(packed.imag)
    pivots = np.diagonal(sizes)[:, None]
    return bool((pivots > 0).all() and (pivots >= SMALLEST_PIVOT * np.triu(sizes)).all())


def _revealing_lu_samples() -> Iterable[Sample]:
    for given in _lu_samples():
        if given.operands[0].shape[-2] == given.operands[0].shape[-1]:
            yield Sample(given.operands, smooth=False)
    small_pivot = np.array([[1e-9, 1.0, 0.5], [0.0, 1.0, 2.0], [0.0, -1.0, 1.0]])
    yield Sample((np.stack([small_pivot, np.diag([3.0, 2.0, 0.0]), np.eye(3)]),), smooth=False)


revealing_lu = stacked(
    "revealing_lu",
    _infer_revealing_lu,
    _revealing_lu,
    NonDifferentiable(),
    Library(HOST, native=lambda *_: Routine("linalg_revealing_lu")),
    _revealing_lu_samples,
    "LU factorization without small pivots beside large elements: as `lu`, or with exchanges of columns, too, and "
    "tiny numbers for pivots of 0. For values that do not depend on the choice of the pivots.",
)
