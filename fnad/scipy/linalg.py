"""scipy.linalg, which NumPy's protocols do not reach: the functions here take traced values, and others as SciPy does.

>>> import fnad
>>> import numpy as np
>>> fnad.grad(lambda a: expm(a)[0, 0])(np.zeros((2, 2)))
array([[1., 0.],
       [0., 0.]])

All take stacks of matrices, in the last two axes, of any dtype; integers count as f64. Options for speed and for checks
have no effect on traced values. Functions of a Hermitian matrix read one triangle of it; in the other one derivatives
are 0. As in SciPy, what is no stack of matrices is a ValueError, and a singular matrix a LinAlgError.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from fnad.errors import DomainError, MatrixError, OutOfRangeError, UnsupportedFunctionError
from fnad.ir.builder import untried
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, is_complex, real_dtype
from fnad.numpy import linear_algebra
from fnad.numpy.bodies import XP, anew
from fnad.numpy.linear_algebra import floating, for_columns, square
from fnad.numpy.operands import as_symbol, static_array, to_dtype
from fnad.ops import banded, eigenvalues, least_squares, linalg, matrix_function, riccati
from fnad.ops.arithmetic import add, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import eq
from fnad.ops.conversion import convert
from fnad.ops.matrix import (
    adjoint,
    along_columns,
    check_matrices,
    check_square,
    columns,
    conjugate,
    diagonal,
    diagonal_matrix,
    hermitian_of,
    identity_like,
    matmul,
    mirrored,
    row_and_column,
    rows,
    strictly_lower,
    transposed,
)
from fnad.ops.matrix import lower as lower_triangle
from fnad.ops.matrix import upper as upper_triangle
from fnad.ops.positive import solve_positive
from fnad.ops.shape import broadcast_to, concatenate, reshape_to, slice_axis
from fnad.ops.sorting import argsort
from fnad.scipy.rule import on_values, others_of, rule_of
from fnad.scipy.special_matrices import circulant, hankel, toeplitz

__all__ = [
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "det",
    "eig",
    "eigh",
    "eigh_tridiagonal",
    "eigvals",
    "expm",
    "expm_frechet",
    "hankel",
    "inv",
    "logm",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul_toeplitz",
    "norm",
    "null_space",
    "pinv",
    "pinvh",
    "qr",
    "signm",
    "solve",
    "solve_banded",
    "solve_circulant",
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_sylvester",
    "solve_toeplitz",
    "solve_triangular",
    "solveh_banded",
    "sqrtm",
    "svd",
    "toeplitz",
]

of_scipy, on_values_of_scipy = rule_of("scipy.linalg"), on_values("scipy.linalg")

# ---- equations -------------------------------------------------------------------------------------------------------


@of_scipy
def solve(a: Any, b: Any, lower: bool = False, assume_a: str | None = None, transposed: bool = False) -> Any:
    """The solution x of a x = b, of b's shape; a is (…, n, n), b (n,) or (…, n, k).

    `assume_a` says what of a is read: all of it, the triangle that `lower` names of a symmetric ("sym"), Hermitian
    ("her") or positive definite ("pos") matrix, or its "upper triangular", "lower triangular" or "diagonal" part.

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    array([1. , 0.5])
    """
    x, y = floating(a, b)
    check_square("solve", x.aval)
    if transposed and is_complex(x.dtype):
        raise UnsupportedFunctionError("scipy.linalg.solve of a complex matrix has no rule for transposed=True")
    if x.aval.size == 1:
        assume_a = None
    if assume_a in ("pos", "positive definite"):
        return for_columns(lambda a, b: solve_positive(a, b, upper=not lower), x, y)
    return for_columns(linalg.solve, transposed_by(_assumed(x, assume_a, lower), int(transposed)), y)


def _assumed(a: Symbol, structure: str | None, is_lower: bool) -> Symbol:
    """The part of a matrix that its structure says is read."""
    match structure:
        case None | "gen" | "general":
            return a
        case "sym" | "symmetric":
            return mirrored(a, transposed(a), is_lower=is_lower)
        case "her" | "hermitian":
            return hermitian_of(a, is_lower=is_lower)
        case "upper triangular":
            return upper_triangle(a)
        case "lower triangular":
            return lower_triangle(a)
        case "diagonal":
            return diagonal_matrix(diagonal(a))
        case _:
            raise UnsupportedFunctionError(f"scipy.linalg.solve has no rule for assume_a={structure!r}")


def transposed_by(a: Symbol, trans: int | str) -> Symbol:
    """a, its transpose (1, "T") or its conjugate transpose (2, "C")."""
    match trans:
        case 0 | "N":
            return a
        case 1 | "T":
            return transposed(a)
        case 2 | "C":
            return adjoint(a)
        case _:
            raise MatrixError(f"trans is 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")


@of_scipy
def solve_triangular(a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """The solution x of a x = b, of b's shape, where a, (…, n, n), is read in its upper or `lower` triangle.

    The transposed (`trans` 1, "T") or adjoint (2, "C") matrix may stand in its place; with `unit_diagonal` its diagonal
    is not read and counts as ones.

    >>> solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True)
    array([1., 2.])
    """
    x, y = floating(a, b)
    check_square("solve_triangular", x.aval)
    matrix = transposed_by(x, trans)
    is_lower = lower if matrix is x else not lower
    return for_columns(lambda a, b: triangular(a, b, is_lower, unit=unit_diagonal), matrix, y)


def triangular(a: Symbol, b: Symbol, is_lower: bool, *, unit: bool = False) -> Symbol:
    """The solution of a triangular system."""
    return linalg.solve_triangular(a, b, lower=is_lower, unit=unit)


@of_scipy
def solve_banded(l_and_u: tuple[int, int], ab: Any, b: Any) -> Any:
    """The solution x of a x = b, of b's shape, where a has l diagonals below and u above the main one.

    ab, (l + u + 1, n), has a diagonal a row: ab[u + i - j, j] = a[i, j].

    >>> solve_banded((0, 1), [[0.0, 1.0], [1.0, 2.0]], [3.0, 2.0])
    array([2., 1.])
    """
    band, y = floating(ab, b)
    check_matrices("solve_banded", band.aval)
    below, above = l_and_u
    return for_columns(lambda a, b: banded.solve_banded(a, b, below=int(below), above=int(above)), band, y)


@of_scipy
def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Any:
    """The solution x of a x = b for a Hermitian matrix, of which ab has a diagonal a row, as for `solve_banded`.

    Raises LinAlgError where the matrix is not positive definite.

    >>> solveh_banded([[0.0, 1.0], [2.0, 2.0]], [3.0, 3.0])
    array([1., 1.])
    """
    band, y = floating(ab, b)
    check_matrices("solveh_banded", band.aval)
    k = band.shape[-2] - 1
    band = banded.hermitian_band(band, lower=bool(lower))
    mirrored = conjugate(banded.transposed_band(band, *((k, 0) if lower else (0, k))))
    parts = (rows(mirrored, 0, k), band) if lower else (band, rows(mirrored, 1, k + 1))
    whole = concatenate(*parts, axis=band.ndim - 2)
    return for_columns(lambda a, b: banded.solve_banded(a, b, below=k, above=k), whole, y)


@of_scipy
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution x, (m, n), of Sylvester's equation a x + x b = q; a is (m, m), b (n, n).

    >>> solve_sylvester([[1.0]], [[2.0]], [[6.0]])
    array([[2.]])
    """
    return matrix_function.solve_sylvester(*floating(a, b, q))


@of_scipy
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The solution x of Lyapunov's equation a x + x aᴴ = q; all are (n, n).

    >>> solve_continuous_lyapunov([[1.0]], [[6.0]])
    array([[3.]])
    """
    x, y = floating(a, q)
    check_square("solve_continuous_lyapunov", x.aval)
    return matrix_function.solve_sylvester(x, adjoint(x), y)


@on_values_of_scipy
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """The solution x of the discrete equation of Lyapunov, a x aᴴ - x + q = 0; both are (n, n), or stacks.

    SciPy solves a system of n² equations, or where that is large, from n = 10 on, a continuous equation.

    >>> solve_discrete_lyapunov([[0.5]], [[3.0]])
    array([[4.]])
    """
    if method is not None and method.lower() not in ("direct", "bilinear"):
        raise DomainError(f"solve_discrete_lyapunov: unknown method {method!r}", remedy="write 'direct' or 'bilinear'")
    return anew(import_module("scipy.linalg").solve_discrete_lyapunov)(a, q, method)


@of_scipy
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, balanced: bool = True) -> Any:
    """The stabilizing solution x of Riccati's equation aᵀ x + x a - x b r⁻¹ bᵀ x + q = 0, of real matrices.

    Of q and r the symmetric parts are read.

    >>> solve_continuous_are([[1.0]], [[1.0]], [[3.0]], [[1.0]])
    array([[3.]])
    """
    return riccati.solve_continuous_are(*_of_riccati("solve_continuous_are", a, b, q, r))


@of_scipy
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, balanced: bool = True) -> Any:
    """The stabilizing solution x of Riccati's equation aᵀ x a - x - aᵀ x b (r + bᵀ x b)⁻¹ bᵀ x a + q = 0.

    The matrices are real; of q and r the symmetric parts are read.

    >>> solve_discrete_are([[0.0]], [[1.0]], [[3.0]], [[1.0]])
    array([[3.]])
    """
    return riccati.solve_discrete_are(*_of_riccati("solve_discrete_are", a, b, q, r))


def _of_riccati(name: str, *matrices: Any) -> tuple[Symbol, ...]:
    symbols = map(as_symbol, matrices)
    found = tuple(floating(*[reshape_to(m, (1,) * (2 - m.ndim) + m.shape) for m in symbols]))
    if any(is_complex(m.dtype) for m in found):
        raise UnsupportedFunctionError(f"scipy.linalg.{name} of complex matrices has no rule for traced values")
    return found


@of_scipy
def lstsq(a: Any, b: Any, cond: float | None = None, lapack_driver: str | None = None) -> Any:
    """The x that makes |a x - b| least, the sums of squares that remain, the rank of a and its singular values.

    a is (m, n), b (m,) or (m, k). Of a matrix that is not of full rank, or not taller than wide, nothing remains: SciPy
    returns an empty array, and to use it where only the values of a traced matrix tell is a DomainError. The driver
    "gelsy" returns an empty array and None in the place of the sums and the singular values.

    >>> lstsq(np.ones((2, 1)), np.array([1.0, 3.0]))[0]
    array([2.])
    """
    x, y = floating(a, b)
    if lapack_driver not in (None, "gelsd", "gelss", "gelsy"):
        raise MatrixError(f'LAPACK driver "{lapack_driver}" is not found')
    cut = float(np.finfo(x.dtype).eps if cond is None else cond)
    found, rest, rank, values = linear_algebra.least_squares_solution(x, y, cut)
    return (found, np.zeros(0, x.dtype), rank, None) if lapack_driver == "gelsy" else (found, rest, rank, values)


# ---- factorizations --------------------------------------------------------------------------------------------------


@of_scipy
def cholesky(a: Any, lower: bool = False) -> Any:
    """The triangular factor of a Hermitian, positive definite matrix: U with a = Uᴴ U, or L with a = L Lᴴ.

    Raises LinAlgError where a is not positive definite. Its derivative is that of Murray (2016), eqs. 8 to 10.

    >>> cholesky([[4.0, 2.0], [2.0, 2.0]], lower=True)
    array([[2., 0.],
           [1., 1.]])
    """
    return linalg.cholesky(square("cholesky", a), upper=not lower)


@of_scipy
def cho_factor(a: Any, lower: bool = False) -> Any:
    """The operand of `cho_solve`: the Cholesky factor, and which triangle it is in.

    The other triangle is what was in a.

    >>> cho_solve(cho_factor(np.array([[4.0, 2.0], [2.0, 2.0]])), np.array([2.0, 2.0]))
    array([0., 1.])
    """
    x = square("cholesky", a)
    return mirrored(linalg.cholesky(x, upper=not lower), x, is_lower=lower), lower


@of_scipy
@untried()
def cho_solve(c_and_lower: Any, b: Any) -> Any:
    """The solution x of a x = b, of b's shape, from what `cho_factor` returned for a.

    >>> cho_solve(([[2.0, 0.0], [1.0, 1.0]], True), [2.0, 2.0])
    array([0., 1.])
    """
    c, is_lower = c_and_lower
    factor, y = floating(c, b)
    check_square("cho_solve", factor.aval)
    half = for_columns(lambda a, b: triangular(a, b, True), factor if is_lower else adjoint(factor), y)
    return for_columns(lambda a, b: triangular(a, b, False), adjoint(factor) if is_lower else factor, half)


@of_scipy
def lu(a: Any, permute_l: bool = False, p_indices: bool = False) -> Any:
    """P, L and U with a = P L U, where P exchanges rows, L is lower triangular with ones and U upper triangular.

    With `permute_l` P L and U, with `p_indices` the row of L U that each row of a is in the place of P.

    >>> lu([[0.0, 1.0], [2.0, 0.0]], p_indices=True)[0]
    array([1, 0], dtype=int32)
    """
    (x,) = floating(a)
    packed, pivots = linalg.lu(x)
    m, n = x.shape[-2:]
    order = linalg.row_order(pivots, size=m)
    left = strictly_lower(columns(packed, 0, min(m, n)))
    left, right = add(left, identity_like(left)), upper_triangle(rows(packed, 0, min(m, n)))
    places = argsort(order, axis=order.ndim - 1, stable=True)
    if permute_l:
        return linalg.permute_rows(left, places), right
    return (convert(places, dtype=DTYPES["i32"]) if p_indices else _exchanges(order, x)), left, right


def _exchanges(order: Symbol, like: Symbol) -> Symbol:
    """The matrix with 1 in row order[i] of column i."""
    m = order.shape[-1]
    row, _ = row_and_column(order.aval.with_shape((*order.shape, m)))
    return convert(eq(row, along_columns(order, row)), dtype=real_dtype(like.dtype))


@of_scipy
def lu_factor(a: Any) -> Any:
    """The operand of `lu_solve`: L and U in one matrix, and with which row each was exchanged.

    >>> lu_factor([[0.0, 1.0], [2.0, 0.0]])[0]
    array([[2., 0.],
           [0., 1.]])
    """
    return linalg.lu(floating(a)[0])


@of_scipy
@untried()
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> Any:
    """The solution x of a x = b, aᵀ x = b (`trans` 1) or aᴴ x = b (2) from what `lu_factor` returned for a.

    >>> lu_solve(lu_factor([[0.0, 1.0], [2.0, 0.0]]), [1.0, 2.0])
    array([1., 1.])
    """
    packed, y = floating(lu_and_piv[0], b)
    check_square("lu_solve", packed.aval)
    order = linalg.row_order(as_symbol(lu_and_piv[1]), size=packed.shape[-1])

    def forward(a: Symbol, b: Symbol) -> Symbol:
        permuted = linalg.permute_rows(b, broadcast_to(order, b.shape[:-1]))
        return triangular(a, triangular(a, permuted, True, unit=True), False)

    def backward(a: Symbol, b: Symbol) -> Symbol:
        half = triangular(a, b, True)
        places = argsort(order, axis=order.ndim - 1, stable=True)
        return linalg.permute_rows(triangular(a, half, False, unit=True), broadcast_to(places, b.shape[:-1]))

    return for_columns(backward if trans else forward, transposed_by(packed, trans), y)


@of_scipy
def qr(a: Any, mode: str = "full") -> Any:
    """Q, with orthonormal columns, and R, upper triangular, with a = Q R, (…, m, n).

    `mode` is "full", "economic" for no more columns of Q than a has, or "r" for R alone, in a tuple.

    >>> qr([[3.0], [4.0]], mode="economic")[1]
    array([[-5.]])
    """
    if mode not in ("full", "economic", "r"):
        raise UnsupportedFunctionError(f"scipy.linalg.qr has no rule for mode={mode!r}")
    (x,) = floating(a)
    check_matrices("qr", x.aval)
    q, r = least_squares.qr(x, complete=mode != "economic")
    return (r,) if mode == "r" else (q, r)


# ---- values ----------------------------------------------------------------------------------------------------------


@of_scipy
def inv(a: Any) -> Any:
    """The inverse of a square matrix; raises LinAlgError where it is singular.

    >>> inv([[2.0]])
    array([[0.5]])
    """
    return linear_algebra.inv(a)


@of_scipy
def det(a: Any) -> Any:
    """The determinant of a square matrix, in double precision; its derivatives are exact for singular ones too.

    >>> det([[2.0, 1.0], [1.0, 2.0]])
    np.float64(3.0)
    """
    x = square("det", a)
    return linear_algebra.det(to_dtype(x, np.result_type(x.dtype, np.float64)))


@of_scipy
def pinvh(a: Any, rtol: float | None = None, lower: bool = True) -> Any:
    """The pseudoinverse of a Hermitian matrix, by its eigenvalues.

    >>> pinvh([[2.0, 0.0], [0.0, 0.0]])
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    x = square("pinvh", a)
    return linear_algebra.pinv(hermitian_of(x, is_lower=lower), rtol=rtol, hermitian=True)


@of_scipy
def pinv(a: Any, *, rtol: float | None = None, return_rank: bool = False) -> Any:
    """The pseudoinverse, (…, n, m), of a matrix (…, m, n).

    Singular values up to `rtol`, by default max(m, n) eps, times the largest count as 0.

    >>> pinv([[2.0], [0.0]])
    array([[0.5, 0. ]])
    """
    inverse = linear_algebra.pinv(a, rtol=rtol)
    return (inverse, linear_algebra.matrix_rank(a, rtol=rtol)) if return_rank else inverse


@of_scipy
def null_space(A: Any, rcond: float | None = None) -> Any:
    """An orthonormal basis of the vectors x with a x = 0, in columns; `rcond` as for `pinv`.

    Its derivative is that at constant rank: the space moves by -a⁺ da, and the basis does not turn within it.

    >>> null_space([[2.0, 0.0]])
    array([[0.],
           [1.]])
    """
    (x,) = floating(A)
    check_matrices("null_space", x.aval)
    _, s, vh = eigenvalues.svd(stop_gradient(x), full=True)
    cut = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    ranks = np.unique(static_array(linear_algebra.rank_of(s, cut)))
    if ranks.size > 1:
        raise MatrixError(f"null_space takes matrices of the same rank, got ranks {ranks.tolist()}")
    basis = adjoint(rows(vh, int(ranks[0]), vh.shape[-1]))
    inverse = least_squares.pinv(x, rcond=float(cut), is_hermitian=False)
    moved = sub(basis, matmul(inverse, matmul(x, basis)))
    factor = linalg.cholesky(matmul(adjoint(moved), moved), upper=False)
    return adjoint(triangular(factor, adjoint(moved), True))


@of_scipy
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, the singular values s, descending, and Vᴴ, with a = U diag(s) Vᴴ; or s alone.

    >>> svd([[0.0, 2.0], [1.0, 0.0]], compute_uv=False)
    array([2., 1.])
    """
    result = linear_algebra.svd(a, full_matrices, compute_uv)
    return tuple(result) if compute_uv else result


def _eigenvalues(a: Symbol, is_lower: bool, index: Any) -> Symbol:
    values = eigenvalues.eigvalsh(a, uplo="L" if is_lower else "U")
    return slice_axis(values, values.ndim - 1, *_part(index, values.shape[-1]))


@of_scipy
def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    type: int = 1,
    subset_by_index: Any = None,
    driver: str | None = None,
) -> Any:
    """The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors in columns.

    With a positive definite b those of a v = w b v (`type` 1), a b v = w v (2) or b a v = w v (3). For vectors
    vᴴ b v = 1, or for the third vᴴ b⁻¹ v = 1. They are those of NumPy's driver, and may have another sign than SciPy's.

    >>> eigh([[2.0, 0.0], [0.0, 1.0]])[0]
    array([1., 2.])
    """
    standard, back = _standard_form(a, b, lower, type)
    if eigvals_only:
        return _eigenvalues(standard, lower, subset_by_index)
    values, vectors = eigenvalues.eigh(standard, uplo="L" if lower else "U")
    part = _part(subset_by_index, values.shape[-1])
    return slice_axis(values, values.ndim - 1, *part), columns(back(vectors), *part)


def _part(index: Any, n: int) -> tuple[int, int]:
    """The first of the eigenvalues from .. to, and the one behind the last."""
    if index is None:
        return 0, n
    first, last = (int(i) for i in index)
    if not 0 <= first <= last < n:
        raise OutOfRangeError(f"requested eigenvalue indices are not valid: {index} of {n}")
    return first, last + 1


def _standard_form(a: Any, b: Any, is_lower: bool, kind: int) -> tuple[Symbol, Callable[[Symbol], Symbol]]:
    """The matrix with the same eigenvalues, and what makes the eigenvectors of its own, by b = L Lᴴ."""
    if b is None:
        return square("eigh", a), lambda vectors: vectors
    x, y = floating(a, b)
    check_square("eigh", x.aval)
    check_square("eigh", y.aval)
    factor = linalg.cholesky(y, upper=not is_lower)
    left, matrix = factor if is_lower else adjoint(factor), hermitian_of(x, is_lower=is_lower)
    match kind:
        case 1:
            half = adjoint(triangular(left, matrix, True))
            return triangular(left, half, True), lambda vectors: triangular(adjoint(left), vectors, False)
        case 2 | 3:
            found = matmul(matmul(adjoint(left), matrix), left)
            return found, lambda v: matmul(left, v) if kind == 3 else triangular(adjoint(left), v, False)
        case _:
            raise DomainError(f'"type" keyword only accepts 1, 2, and 3, got {kind!r}')


@of_scipy
def eig(a: Any, left: bool = False, right: bool = True) -> Any:
    """The eigenvalues of a square matrix, and where `right` its eigenvectors in columns, as complex numbers.

    >>> eig([[2.0]])[0]
    array([2.+0.j])
    """
    if left:
        raise UnsupportedFunctionError("scipy.linalg.eig has no rule for left=True")
    return tuple(linear_algebra.eig(a)) if right else linear_algebra.eigvals(a)


@on_values_of_scipy
def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False) -> Any:
    """The eigenvalues of a real symmetric matrix with diagonals d and e, ascending, and its eigenvectors.

    >>> eigh_tridiagonal([2.0, 1.0], [0.0], eigvals_only=True)
    array([1., 2.])
    """
    return eigh(XP.diag(d) + XP.diag(e, -1), eigvals_only=eigvals_only)


@of_scipy
def eigvals(a: Any) -> Any:
    """The eigenvalues of a square matrix, as complex numbers.

    >>> eigvals([[2.0]])
    array([2.+0.j])
    """
    return linear_algebra.eigvals(a)


@of_scipy
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of a vector or a matrix, as numpy.linalg.norm; its derivative at 0 is 0.

    >>> norm([3.0, 4.0])
    5.0
    """
    return linear_algebra.norm(a, ord, axis, keepdims)


# ---- functions of matrices -------------------------------------------------------------------------------------------


@of_scipy
def expm(A: Any) -> Any:
    """The exponential of a square matrix; Mathias (1996) has its derivative.

    >>> expm([[0.0, 1.0], [0.0, 0.0]])
    array([[1., 1.],
           [0., 1.]])
    """
    return matrix_function.expm(square("expm", A))


@of_scipy
def expm_frechet(A: Any, E: Any, method: str | None = None, compute_expm: bool = True) -> Any:
    """The exponential of A and its derivative along E, or with compute_expm=False the derivative alone.

    >>> expm_frechet([[0.0]], [[2.0]], compute_expm=False)
    array([[2.]])
    """
    x, direction = floating(A, E)
    derivative = matrix_function.expm_frechet(x, direction)
    return (matrix_function.expm(x), derivative) if compute_expm else derivative


@of_scipy
def sqrtm(A: Any) -> Any:
    """The principal square root of a square matrix; of a real traced one it has to be real, else DomainError.

    >>> sqrtm([[4.0]])
    array([[2.]])
    """
    return matrix_function.sqrtm(square("sqrtm", A))


@of_scipy
def logm(A: Any) -> Any:
    """The principal logarithm of a square matrix; of a real traced one it has to be real, else DomainError.

    >>> logm([[1.0]])
    array([[0.]])
    """
    return matrix_function.logm(square("logm", A))


@of_scipy
def signm(A: Any) -> Any:
    """The sign of a square matrix: its eigenvalues go to 1 and -1, by the signs of their real parts.

    >>> signm([[-2.0]])
    array([[-1.]])
    """
    return matrix_function.signm(square("signm", A))


# ---- matrices of few numbers -----------------------------------------------------------------------------------------


@on_values_of_scipy
def solve_toeplitz(c_or_cr: Any, b: Any) -> Any:
    """The solution x of a x = b, where a is the Toeplitz matrix of its first column, or of that and its first row.

    >>> solve_toeplitz([2.0, 0.0], [2.0, 4.0])
    array([1., 2.])
    """
    return solve(_toeplitz(c_or_cr), b)


@on_values_of_scipy
def matmul_toeplitz(c_or_cr: Any, x: Any) -> Any:
    """The product of such a matrix and x.

    >>> matmul_toeplitz([2.0, 0.0], [2.0, 4.0])
    array([4., 8.])
    """
    return XP.matmul(_toeplitz(c_or_cr), x)


def _toeplitz(c_or_cr: Any) -> Any:
    return toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)


@on_values_of_scipy
def solve_circulant(c: Any, b: Any) -> Any:
    """The solution x of a x = b, where a is the circulant matrix with this first column, singular if it is to rounding.

    >>> solve_circulant([2.0, 0.0], [2.0, 4.0])
    array([1., 2.])
    """
    size = XP.abs(XP.fft.fft(c))
    return solve(XP.where(size.min() <= size.max() * len(c) * 2.0**-52, 0.0, circulant(c)), b)


__getattr__ = others_of("scipy.linalg")
