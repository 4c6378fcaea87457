"""QR factorization, pseudoinverse and least squares, on stacks of matrices.

QR of a matrix of full column rank: with C = dA R⁻¹ and S = Qᴴ C, dQ = Q Ω + (I - Q Qᴴ) C; dR = (S - Ω) R. Ω is
skew-Hermitian, equals S below the diagonal, and is imaginary on it because R's diagonal is real. The formula is that of
Walter & Lehmann, "Algorithmic differentiation of linear algebra functions with application in optimum experimental
design", 2010, and of Seeger et al., 2017. Of a wide matrix [A₁ A₂] it is the factorization of A₁, and R₂ = Qᴴ A₂.

The columns that complete Q are those of LAPACK's product of reflections, which the others determine: with the first n
columns Q₁ over Q₂, they are [0; I] + ([I; 0] - [Q₁; Q₂]) (I - Q₁)⁻ᴴ Q₂ᴴ (Ballard et al., "Reconstructing Householder
vectors from tall-skinny QR", 2014).

The pseudoinverse P has dP = -P dA P + P Pᴴ dAᴴ (I - A P) + (I - P A) dAᴴ Pᴴ P at constant rank. The formula is equation
4.12 of Golub & Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
separate", 1973. It takes the singular values that are left out for 0, which they are but for rounding.

A larger `rcond` leaves out others. With A = U S Vᴴ and M = Uᴴ dA V, dP is then V N Uᴴ between the vectors of U and V,
and as above outside of them. For two values that are kept, N is -M / (σᵢ σⱼ). For σ that is kept and τ that is not,
their vectors turn towards each other, and N is (Mᴴ + M τ / σ) / (σ² - τ²). For two that are not kept it is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from fnad.errors import MatrixError
from fnad.ir.primitive import Library, Push, Routine, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval, is_complex
from fnad.ops import linalg
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.comparison import bitwise_and, eq, gt, ne, select
from fnad.ops.constructors import check_one_dtype, matrix_primitive
from fnad.ops.conversion import complex_, convert_to
from fnad.ops.eigenvalues import eigh, svd, svdvals
from fnad.ops.matrix import (
    adjoint,
    along_columns,
    along_rows,
    beside,
    check_matrices,
    columns,
    diagonal,
    diagonal_matrix,
    hermitian_of,
    identity_like,
    imaginary_part,
    matmul,
    row_and_column,
    rows,
    strictly_lower,
    transposed,
)
from fnad.ops.piecewise import abs_
from fnad.ops.reduction import reduce_max, reduce_or
from fnad.ops.shape import broadcast_in_dim, concatenate, constant, ones_like, sample, zeros_like

# ---- qr ------------------------------------------------------------------------------------------------------------


def _infer_qr(a: Aval, *, complete: bool) -> tuple[Aval, Aval]:
    check_matrices("qr", a)
    *outer, m, n = a.shape
    k = m if complete else min(m, n)
    return a.with_shape((*outer, m, k)), a.with_shape((*outer, k, n))


def _push_qr(results: Any, primals: Any, tangents: Any, *, complete: bool) -> list[Symbol | None]:
    (q, r), da = results, tangents[0]
    m, n = primals[0].shape[-2:]
    k = min(m, n)
    if k == 0:
        return [None, None]
    basis = columns(q, 0, k)
    within, dbasis, dsquare = _push_square(basis, columns(rows(r, 0, k), 0, k), columns(da, 0, k))
    rest = sub(matmul(adjoint(basis), columns(da, k, n)), matmul(within, columns(rows(r, 0, k), k, n)))
    dr = beside(dsquare, rest)
    if q.shape[-1] == k:
        return [dbasis, dr]
    dq = beside(dbasis, _push_completion(basis, dbasis))
    return [dq, concatenate(dr, zeros_like(rows(r, k, m)), axis=r.ndim - 2)]


def _push_square(q: Symbol, r: Symbol, da: Symbol) -> tuple[Symbol, Symbol, Symbol]:
    """Ω = Qᴴ dQ, dQ and dR for a matrix with no more columns than rows."""
    c = transposed(linalg.solve_triangular(transposed(r), transposed(da), lower=True, unit=False))
    s = matmul(adjoint(q), c)
    below = strictly_lower(s)
    rotation = add(sub(below, adjoint(below)), _imaginary_diagonal(s))
    growth = sub(s, rotation)
    return rotation, sub(c, matmul(q, growth)), matmul(growth, r)


def _imaginary_diagonal(s: Symbol) -> Symbol:
    if not is_complex(s.dtype):
        return zeros_like(s)
    part = imaginary_part(diagonal(s))
    return diagonal_matrix(complex_(zeros_like(part), part))


def _push_completion(q: Symbol, dq: Symbol) -> Symbol:
    """The tangent of [0; I] + ([I; 0] - Q) K, K = (I - Q₁)⁻ᴴ Q₂ᴴ."""
    m, n = q.shape[-2:]
    top, dtop = rows(q, 0, n), rows(dq, 0, n)
    divisor = adjoint(sub(identity_like(top), top))
    k = linalg.solve(divisor, adjoint(rows(q, n, m)))
    dk = linalg.solve(divisor, add(adjoint(rows(dq, n, m)), matmul(adjoint(dtop), k)))
    return sub(matmul(sub(identity_like(q), q), dk), matmul(dq, k))


_tall_and_wide_samples = partial(
    linalg.matrix_samples, sample, (3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (0, 0), (3, 0)
)


def _qr_samples() -> Iterable[Sample]:
    for complete in (False, True):
        yield from _tall_and_wide_samples(complete=complete)


@matrix_primitive(
    _infer_qr,
    Push(_push_qr),
    Library(
        "geqrf",
        native=lambda *_, complete: Routine("linalg_qr_complete" if complete else "linalg_qr_reduced"),
        dispatched=True,
    ),
    _qr_samples,
)
@linalg.by_lapack(linalg.IF_NOT_CONVERGED)
def qr(a: Any, *, complete: bool) -> Any:
    """QR factorization, Q with orthonormal columns, as many as rows if `complete`, and R upper triangular."""
    return tuple(np.linalg.qr(a, "complete" if complete else "reduced"))


def _infer_qr_r(a: Aval) -> Aval:
    return _infer_qr(a, complete=False)[1]


def _push_qr_r(results: Any, primals: Any, tangents: Any) -> list[Symbol | None]:
    return _push_qr(qr(primals[0], complete=False), primals, tangents, complete=False)[1:]


@matrix_primitive(
    _infer_qr_r,
    Push(_push_qr_r),
    Library("geqrf", native=lambda *_: Routine("linalg_qr_r"), dispatched=True),
    _tall_and_wide_samples,
)
@linalg.by_lapack(linalg.IF_NOT_CONVERGED)
def qr_r(a: Any) -> Any:
    """The triangular factor R of the QR factorization."""
    return np.linalg.qr(a, "r")


# ---- pinv ----------------------------------------------------------------------------------------------------------


def _infer_pinv(a: Aval, *, rcond: float, is_hermitian: bool) -> Aval:
    check_matrices("pinv", a)
    *outer, m, n = a.shape
    return a.with_shape((*outer, n, m))


def _push_pinv(results: Any, primals: Any, tangents: Any, *, rcond: float, is_hermitian: bool) -> list[Symbol]:
    (p,), (a,), (da,) = results, primals, tangents
    if is_hermitian:
        a, da = hermitian_of(a, is_lower=True), hermitian_of(da, is_lower=True)
    of_range = matmul(matmul(p, matmul(adjoint(p), adjoint(da))), _without_range(a, p))
    of_kernel = matmul(_without_range(p, a), matmul(adjoint(da), matmul(adjoint(p), p)))
    dp = add(sub(of_range, matmul(matmul(p, da), p)), of_kernel)
    return [_push_cut(p, a, da, rcond, dp) if _leaves_out(rcond, a) else dp]


def _leaves_out(rcond: float, a: Symbol) -> bool:
    """True if `rcond` may leave out more than rounding makes of a singular value that is 0."""
    return 0 not in a.shape[-2:] and rcond > _rounding(a)


def _rounding(a: Symbol) -> float:
    return 16 * max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)


def _is_cut(a: Symbol, rcond: float) -> Symbol:
    """True for a matrix of which singular values other than 0 are left out."""
    values = svdvals(a)
    left_out = ne(_inverse_of_large(values, _rounding(a)), _inverse_of_large(values, rcond))
    return reduce_or(left_out, axes=(values.ndim - 1,))


def _over(is_cut: Symbol, x: Symbol) -> Symbol:
    return broadcast_in_dim(is_cut, shape=x.shape, dims=tuple(range(x.ndim - 2)))


def _push_cut(p: Symbol, a: Symbol, da: Symbol, rcond: float, otherwise: Symbol) -> Symbol:
    """The tangent of a pseudoinverse that leaves out singular values other than 0, or `otherwise` if they are 0.

    If they are, another matrix takes the place of a, because their vectors may have no derivative.
    """
    is_cut = _is_cut(a, rcond)
    number = convert_to(row_and_column(a)[0], a.dtype)
    a = select(_over(is_cut, a), a, mul(identity_like(a), add(number, ones_like(number))))
    u, s, vh = svd(a, full=False)
    uh, v = adjoint(u), adjoint(vh)
    m = matmul(uh, matmul(da, v))
    inverse = _inverse_of_large(s, rcond)
    left = select(eq(inverse, zeros_like(s)), s, zeros_like(s))
    row, column = along_rows(inverse, m), along_columns(inverse, m)
    of_one, of_both = add(row, column), mul(row, column)
    is_mixed = bitwise_and(ne(of_one, zeros_like(m)), eq(of_both, zeros_like(m)))
    ratio = mul(add(along_rows(left, m), along_columns(left, m)), of_one)
    rest = sub(ones_like(m), select(is_mixed, mul(ratio, ratio), zeros_like(m)))
    towards = select(is_mixed, div(mul(of_one, of_one), rest), zeros_like(m))
    n = add(mul(towards, adjoint(m)), mul(sub(mul(towards, ratio), of_both), m))
    dah, ph = adjoint(da), adjoint(p)
    of_range = matmul(matmul(p, matmul(ph, dah)), _without_range(u, uh))
    of_kernel = matmul(_without_range(v, vh), matmul(dah, matmul(ph, p)))
    return select(_over(is_cut, p), add(matmul(v, matmul(n, uh)), add(of_range, of_kernel)), otherwise)


def _without_range(x: Symbol, y: Symbol) -> Symbol:
    """I - x y."""
    product = matmul(x, y)
    return sub(identity_like(product), product)


def _pinv_by_values(a: Symbol, *, rcond: float, is_hermitian: bool) -> Symbol:
    """V (1 / s, 0 where s counts as 0) Uᴴ."""
    if is_hermitian:
        s, u = eigh(a, uplo="L")
        v = u
    else:
        u, s, vh = svd(a, full=False)
        v = adjoint(vh)
    return matmul(v, mul(adjoint(u), along_rows(_inverse_of_large(s, rcond), adjoint(u))))


def _inverse_of_large(s: Symbol, rcond: float) -> Symbol:
    size = convert_to(abs_(s), F64)
    limit = mul(reduce_max(size, axes=(s.ndim - 1,)), constant(rcond, F64, s.shape[:-1]))
    is_large = gt(size, broadcast_in_dim(limit, shape=s.shape, dims=tuple(range(s.ndim - 1))))
    return select(is_large, div(ones_like(s), select(is_large, s, ones_like(s))), zeros_like(s))


def _pinv_samples() -> Iterable[Sample]:
    yield from _tall_and_wide_samples(rcond=1e-15, is_hermitian=False)
    yield from linalg.hermitian_samples(rcond=1e-15, is_hermitian=True)


@matrix_primitive(_infer_pinv, Push(_push_pinv), Library("gesdd", expansion=_pinv_by_values), _pinv_samples)
@linalg.by_lapack(linalg.IF_NOT_CONVERGED)
def pinv(a: Any, *, rcond: float, is_hermitian: bool) -> Any:
    """Pseudoinverse: singular values up to `rcond` times the largest count as 0.

    If `is_hermitian`, the lower triangle is read.
    """
    return np.linalg.pinv(a, rcond, is_hermitian)


# ---- lstsq ---------------------------------------------------------------------------------------------------------


def _infer_lstsq(a: Aval, b: Aval, *, rcond: float) -> Aval:
    check_matrices("lstsq", a)
    check_matrices("lstsq", b)
    check_one_dtype("lstsq", a, b)
    if a.shape[:-1] != b.shape[:-1]:
        raise MatrixError(f"Incompatible dimensions: lstsq of {a} and {b}")
    return a.with_shape((*a.shape[:-2], a.shape[-1], b.shape[-1]))


def _push_lstsq(results: Any, primals: Any, tangents: Any, *, rcond: float) -> list[Symbol]:
    """The sum dP b + P db, with x = P b and the residual r = b - A x."""
    (x,), (a, b), (da, db) = results, primals, tangents
    p = pinv(a, rcond=rcond, is_hermitian=False)
    if da is None:
        return [matmul(p, db)]
    if _leaves_out(rcond, a):
        (dp,) = _push_pinv((p,), (a,), (da,), rcond=rcond, is_hermitian=False)
        dx = matmul(dp, b)
        return [dx if db is None else add(dx, matmul(p, db))]
    residual = sub(b, matmul(a, x))
    inside = sub(matmul(adjoint(p), matmul(adjoint(da), residual)), matmul(da, x))
    outside = matmul(_without_range(p, a), matmul(adjoint(da), matmul(adjoint(p), x)))
    return [add(matmul(p, inside if db is None else add(inside, db)), outside)]


def _lstsq_samples() -> Iterable[Sample]:
    for (a,) in (given.operands for given in _tall_and_wide_samples()):
        b = sample((*a.shape[:-1], 2), a.dtype, 1)
        yield Sample((a, b), {"rcond": 1e-15})


@matrix_primitive(
    _infer_lstsq,
    Push(_push_lstsq),
    Library(
        "gelsd",
        native=lambda *_, rcond: Routine(
            "linalg_lstsq", (linalg.NO_LEAST_SQUARES,), (rcond,), in_double=True
        ),  # as `rcond` sets it
        dispatched=True,
    ),
    _lstsq_samples,
)
@linalg.by_lapack(linalg.IF_NOT_CONVERGED)
def lstsq(a: Any, b: Any, *, rcond: float) -> Any:
    """The shortest x that makes |a x - b| least, for each column of b; `rcond` as in pinv."""
    like = np.empty_like(a, shape=(*a.shape[:-2], a.shape[-1], b.shape[-1]))
    return linalg.each_matrix(lambda a, b: np.linalg.lstsq(a, b, rcond)[0], like, a, b)
